//! Finds the first instruction in which two modules differ.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use tilewright_interp::{Comparison, InputKind, Observer, Seen, Slack};
use tilewright_ir::expand::plain;
use tilewright_ir::{CompId, InstId, Literal, Module, Opcode, Verified};
use tilewright_text::print_instruction;

use crate::agreement::Witness;
use crate::check::{CheckOptions, Inputs, Trial, not_comparable};
use crate::error::Error;
use crate::nudge::{EXCUSED, NUDGES, UNMOVED};

/// The result of a search for the first difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bisection {
    /// The first instruction whose values differ; `None` if all compared values agree.
    pub first: Option<FirstDifference>,
    /// Number of compared values.
    pub compared: usize,
    /// Number of instructions of the first module without an instruction of the same name and
    /// shape in the second.
    pub unmatched: usize,
    /// Number of values that were not compared because the memory limit for kept values was
    /// reached.
    pub left_out: usize,
}

/// The first instruction, in the evaluation order of the first module, whose value differs from
/// the value of its match.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FirstDifference {
    /// Its name.
    pub instruction: String,
    /// Its text in the first module.
    pub expected_text: String,
    /// The text of its match in the second.
    pub actual_text: String,
    /// Number of earlier evaluations of the instruction in a loop.
    pub turn: usize,
    /// The number of the array in its value, tuples flattened in order.
    pub output: usize,
    /// The first element that differs.
    pub at: Vec<i64>,
    /// The value of the element in the first module.
    pub expected: String,
    /// The value of the element in the second module.
    pub actual: String,
    /// The operands in the first module.
    pub operands: Vec<OperandAgreement>,
}

/// Whether an operand has the same value in both modules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OperandAgreement {
    /// Its name.
    pub name: String,
    /// Whether it agrees; `None` if it was not compared.
    pub agrees: Option<bool>,
}

impl fmt::Display for FirstDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the first value that differs is that of `{}`", self.instruction)?;
        if self.turn > 0 {
            write!(f, ", evaluated for the {}. time", self.turn.saturating_add(1))?;
        }
        writeln!(f, "\n  first:   {}\n  second:  {}", self.expected_text, self.actual_text)?;
        let Self { output, at, expected, actual, .. } = self;
        let array = if *output == 0 { String::new() } else { format!(" of array {output}") };
        write!(f, "  element {at:?}{array} is {expected} in the first and {actual} in the second")?;
        for OperandAgreement { name, agrees } in &self.operands {
            let how = match agrees {
                Some(true) => "agrees",
                Some(false) => "differs",
                None => "was not compared",
            };
            write!(f, "\n  operand `{name}` {how}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Bisection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, compared, unmatched, left_out } = self;
        match first {
            Some(first) => write!(f, "{first}")?,
            None => write!(f, "all {compared} values that both name agree")?,
        }
        if *unmatched > 0 {
            write!(f, "\n  {unmatched} instructions of the first have no match in the second")?;
        }
        if *left_out > 0 {
            write!(
                f,
                "\n  {left_out} values were not compared for lack of memory (raise `max_bytes`, on \
                 the command line `--max-bytes`)"
            )?;
        }
        Ok(())
    }
}

/// Evaluates two modules on inputs on which they differ and returns the first instruction whose
/// values differ. Instructions are matched by name and shape, in the entry computation and in
/// computations that are called from one place only; those of loops iteration by iteration.
///
/// # Errors
/// The errors of [`check()`](crate::check()).
pub fn bisect(
    a: &Verified,
    b: &Verified,
    options: &CheckOptions<'_>,
    witness: &Witness,
) -> Result<Bisection, Error> {
    let (a, b) = (plain(a), plain(b));
    let trial = Trial::new(&a, &b, options)?;
    let kind = InputKind::ALL.iter().copied().find(|kind| kind.name() == witness.inputs);
    let kind = kind.unwrap_or(InputKind::Normal);
    let search = Bisector {
        inputs: trial.inputs(kind, witness.seed)?,
        device: witness.device.unwrap_or(0),
        kind,
        trial,
    };
    search.run()
}

/// The inputs and the device of a difference.
struct Bisector<'a> {
    trial: Trial<'a>,
    kind: InputKind,
    inputs: Inputs,
    device: usize,
}

impl Bisector<'_> {
    fn run(&self) -> Result<Bisection, Error> {
        let Trial { a, b, options, .. } = self.trial;
        let pairs = Pairs::of(a, b);
        let limit = options.limits.max_bytes;
        let recorder = Recorder { pairs: &pairs, limit, record: Mutex::default() };
        self.trial.observe(a, &self.inputs, &recorder, self.device)?;
        let Record { values, left_out, .. } =
            recorder.record.into_inner().unwrap_or_else(PoisonError::into_inner);
        let comparer = Comparer::new(self, &pairs, &values);
        self.trial.observe(b, &self.inputs, &comparer, self.device)?;
        let mut others =
            comparer.others.into_inner().unwrap_or_else(PoisonError::into_inner).outcomes;
        if !options.exact {
            self.excuse(&values, &mut others)?;
        }
        let first = self.first(&pairs, &values, &others);
        let compared = others.iter().filter(|other| other.is_some()).count();
        Ok(Bisection { first, compared, unmatched: pairs.unmatched, left_out })
    }

    /// Compares values in the same way as outputs.
    fn differing(&self, a: &Literal, b: &Literal, slack: &Slack) -> Option<Comparison> {
        let Trial { options, ref rounding, .. } = self.trial;
        let worst = rounding.worst();
        let tolerance = |_, element_type| options.tolerance(self.kind, element_type, worst);
        let found = slack.compare(a, b, tolerance).map_err(not_comparable);
        found.unwrap_or_default().into_iter().find(|found| !found.equal)
    }

    /// Excuses differences that follow from the first module's rounding.
    fn excuse(&self, values: &[Valued], others: &mut [Outcome]) -> Result<(), Error> {
        let places = places(values);
        let mut slacks: HashMap<usize, Slack> = HashMap::new();
        for (place, other) in others.iter().enumerate() {
            if matches!(other, Some(Other::Differs(_))) {
                slacks.insert(place, Slack::default());
            }
        }
        for seed in 0..NUDGES {
            if slacks.is_empty() {
                break;
            }
            let widener =
                Widener { values, places: &places, slacks: Mutex::new((slacks, HashMap::new())) };
            let (evaluation, moved) = self.trial.moved(&self.inputs, seed);
            evaluation.observer(&widener).watched(self.device).run(&moved)?;
            slacks = widener.slacks.into_inner().unwrap_or_else(PoisonError::into_inner).0;
            slacks.retain(|&place, slack| self.remains(values, others, place, slack));
        }
        Ok(())
    }

    /// Checks whether a difference is not excused by slack; an excused value is marked as
    /// agreeing.
    fn remains(
        &self,
        values: &[Valued],
        others: &mut [Outcome],
        place: usize,
        slack: &Slack,
    ) -> bool {
        let (Some(value), Some(other)) = (values.get(place), others.get_mut(place)) else {
            return false;
        };
        let Some(Other::Differs(actual)) = other else { return false };
        let remains = self.differing(&value.literal, actual, slack).is_some();
        if !remains {
            *other = Some(Other::Agrees);
        }
        remains
    }

    fn first(
        &self,
        pairs: &Pairs,
        values: &[Valued],
        others: &[Outcome],
    ) -> Option<FirstDifference> {
        let Trial { a, b, .. } = self.trial;
        let place = others.iter().position(|other| matches!(other, Some(Other::Differs(_))))?;
        let Some(Some(Other::Differs(actual))) = others.get(place) else { return None };
        let Valued { id, turn, literal } = values.get(place)?;
        let found = self.differing(literal, actual, &Slack::default())?;
        let at = found.at?;
        let places = places(values);
        let operand = |&operand: &InstId| OperandAgreement {
            name: a.name_of(operand).to_owned(),
            agrees: places
                .get(&(operand, *turn))
                .and_then(|&place| others.get(place)?.as_ref())
                .map(|other| matches!(other, Other::Agrees)),
        };
        Some(FirstDifference {
            instruction: a.name_of(*id).to_owned(),
            expected_text: print_instruction(a, *id),
            actual_text: print_instruction(b, *pairs.of_a.get(id)?),
            turn: *turn,
            output: found.index,
            at: at.index.to_vec(),
            expected: at.expected,
            actual: at.actual,
            operands: a.operands(*id).iter().map(operand).collect(),
        })
    }
}

/// The pairs of matching instructions of two modules.
struct Pairs {
    of_a: HashMap<InstId, InstId>,
    of_b: HashMap<InstId, InstId>,
    /// Instructions of the first module without a match.
    unmatched: usize,
}

impl Pairs {
    fn of(a: &Module, b: &Module) -> Self {
        let mut pairs = Self { of_a: HashMap::new(), of_b: HashMap::new(), unmatched: 0 };
        if let (Some(from), Some(to)) = (a.entry(), b.entry()) {
            let (from, to) = (a.computation(from), b.computation(to));
            let parameters = from.parameters().iter().zip(to.parameters());
            parameters.for_each(|(&from, &to)| pairs.add(a, b, from, to));
            if let (Some(from), Some(to)) = (from.root(), to.root()) {
                pairs.add(a, b, from, to);
            }
        }
        let named: HashMap<&str, InstId> =
            instructions(b).into_iter().map(|id| (b.name_of(id), id)).collect();
        let all = instructions(a);
        for &id in &all {
            if let Some(&to) = named.get(a.name_of(id)) {
                pairs.add(a, b, id, to);
            }
        }
        pairs.unmatched = all.len().saturating_sub(pairs.of_a.len());
        pairs
    }

    /// Pairs two instructions if neither has a match and they can match.
    fn add(&mut self, a: &Module, b: &Module, from: InstId, to: InstId) {
        let taken = self.of_a.contains_key(&from) || self.of_b.contains_key(&to);
        if !taken && a.shape(from).without_layout().compatible(&b.shape(to).without_layout()) {
            self.of_a.insert(from, to);
            self.of_b.insert(to, from);
        }
    }
}

/// Returns the instructions of the entry computation, and of computations that are called as a
/// whole (not per element) from one place in such a computation.
fn instructions(module: &Module) -> Vec<InstId> {
    let all = module.computations();
    let mut callers: HashMap<CompId, Vec<(CompId, Opcode)>> = HashMap::new();
    for &computation in all {
        for id in module.instructions(computation) {
            for callee in module.called(id) {
                callers.entry(callee).or_default().push((computation, module.opcode(id)));
            }
        }
    }
    let mut once: HashSet<CompId> = module.entry().into_iter().collect();
    // Callers follow their callees.
    for computation in all.iter().rev() {
        use Opcode::{AsyncStart, Call, Conditional, Fusion, While};
        let [(caller, op)] = callers.get(computation).map_or(&[][..], Vec::as_slice) else {
            continue;
        };
        let whole = matches!(op, AsyncStart | Call | Conditional | Fusion | While);
        if whole && once.contains(caller) {
            once.insert(*computation);
        }
    }
    let chosen = all.iter().filter(|computation| once.contains(computation));
    chosen.flat_map(|&computation| module.instructions(computation)).collect()
}

/// The value of an instruction of the first module.
struct Valued {
    id: InstId,
    turn: usize,
    literal: Literal,
}

fn places(values: &[Valued]) -> HashMap<(InstId, usize), usize> {
    values.iter().enumerate().map(|(place, value)| ((value.id, value.turn), place)).collect()
}

/// Returns the number of earlier evaluations of an instruction.
fn turn(turns: &mut HashMap<InstId, usize>, id: InstId) -> usize {
    let count = turns.entry(id).or_default();
    let turn = *count;
    *count = turn.saturating_add(1);
    turn
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps the values of the first module's matched instructions.
struct Recorder<'a> {
    pairs: &'a Pairs,
    /// The maximum number of bytes kept.
    limit: u64,
    record: Mutex<Record>,
}

#[derive(Default)]
struct Record {
    values: Vec<Valued>,
    turns: HashMap<InstId, usize>,
    bytes: u64,
    left_out: usize,
}

impl Observer for Recorder<'_> {
    fn evaluated(&self, seen: &Seen<'_>) {
        let id = seen.id();
        if !self.pairs.of_a.contains_key(&id) {
            return;
        }
        let mut record = lock(&self.record);
        let turn = turn(&mut record.turns, id);
        let bytes = record.bytes.saturating_add(seen.bytes());
        match seen.literal().filter(|_| bytes <= self.limit) {
            Some(literal) => {
                record.bytes = bytes;
                record.values.push(Valued { id, turn, literal });
            }
            None => record.left_out = record.left_out.saturating_add(1),
        }
    }
}

/// The result of comparing a value; `None` if it had no counterpart.
type Outcome = Option<Other>;

enum Other {
    Agrees,
    /// The values differ; this is the second module's value.
    Differs(Literal),
}

/// Compares the values of the second module with the kept values.
struct Comparer<'a> {
    search: &'a Bisector<'a>,
    pairs: &'a Pairs,
    values: &'a [Valued],
    places: HashMap<(InstId, usize), usize>,
    others: Mutex<Others>,
}

struct Others {
    /// One outcome for each kept value.
    outcomes: Vec<Outcome>,
    turns: HashMap<InstId, usize>,
    bytes: u64,
}

impl<'a> Comparer<'a> {
    fn new(search: &'a Bisector<'a>, pairs: &'a Pairs, values: &'a [Valued]) -> Self {
        let outcomes = values.iter().map(|_| None).collect();
        let others = Others { outcomes, turns: HashMap::new(), bytes: 0 };
        Self { search, pairs, values, places: places(values), others: Mutex::new(others) }
    }
}

impl Observer for Comparer<'_> {
    fn evaluated(&self, seen: &Seen<'_>) {
        let Some(&id) = self.pairs.of_b.get(&seen.id()) else { return };
        let mut others = lock(&self.others);
        let turn = turn(&mut others.turns, id);
        let Some(&place) = self.places.get(&(id, turn)) else { return };
        let Some((expected, actual)) = self.values.get(place).zip(seen.literal()) else { return };
        let differs = self.search.differing(&expected.literal, &actual, &Slack::default());
        let bytes = others.bytes.saturating_add(seen.bytes());
        let outcome = match differs {
            None => Some(Other::Agrees),
            Some(_) if bytes <= self.search.trial.options.limits.max_bytes => {
                others.bytes = bytes;
                Some(Other::Differs(actual))
            }
            Some(_) => None,
        };
        if let Some(slot) = others.outcomes.get_mut(place) {
            *slot = outcome;
        }
    }
}

/// Widens the slack of values that differ, while the first module runs on inputs that differ in
/// the last place from the given ones.
struct Widener<'a> {
    values: &'a [Valued],
    places: &'a HashMap<(InstId, usize), usize>,
    /// Slacks by position, and the number of evaluations of each instruction.
    slacks: Mutex<(HashMap<usize, Slack>, HashMap<InstId, usize>)>,
}

impl Observer for Widener<'_> {
    fn evaluated(&self, seen: &Seen<'_>) {
        let mut slacks = lock(&self.slacks);
        let turn = turn(&mut slacks.1, seen.id());
        let Some(&place) = self.places.get(&(seen.id(), turn)) else { return };
        let (Some(value), Some(slack)) = (self.values.get(place), slacks.0.get_mut(&place)) else {
            return;
        };
        if let Some(moved) = seen.literal() {
            slack.widen(&value.literal, &moved, EXCUSED, UNMOVED);
        }
    }
}
