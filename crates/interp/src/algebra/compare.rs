//! Are two modules equal over the field?

use std::collections::BTreeSet;
use std::fmt;

use smallvec::SmallVec;
use tilewright_ir::{Data, InstId, Literal, Op, Opcode, Shape, Verified};

use super::field::{OPAQUE, ROUNDED, UNSURE, marks, residue};
use super::inputs::inputs;
use super::meaning::{has_floats, is_unsure};
use super::step::Field;
use crate::devices::{Device, tells_devices_apart};
use crate::error::{EvalError, Fault};
use crate::frame::Evaluator;
use crate::inputs::InputKind;
use crate::limits::{Limits, WORK_PER_STEP};
use crate::strides::{extent, index_of};
use crate::value::Value;

/// The options for comparing modules over the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlgebraOptions {
    /// The seed of the inputs.
    pub seed: u64,
    /// The limits of one evaluation; an output that needs more is undecided.
    pub limits: Limits,
}

impl Default for AlgebraOptions {
    /// a million steps (5 * 10^8 operations on elements, some seconds) and 2 GiB.
    fn default() -> Self {
        Self { seed: 0, limits: Limits { max_steps: 1_000_000, max_bytes: 2 << 30 } }
    }
}

/// The verdict of the field on an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The outputs are equal over the reals, for all floats.
    Equal,
    /// The outputs were equal here, but the program orders values, and the field has no order
    /// of the reals: other values may take other paths.
    Agrees {
        /// The ops that order them.
        through: Vec<Opcode>,
    },
    /// It is another one over the reals.
    Differs {
        /// The first element that differs and is sure to, in row-major order.
        at: Vec<i64>,
        /// The facts that the difference depends on: laws of functions that the field does not
        /// model, or the rounding of constants.
        unless: Vec<&'static str>,
    },
    /// The field cannot say.
    Undecided {
        /// The reason.
        why: String,
    },
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Equal => f.write_str("equal"),
            Self::Agrees { through } => {
                let names: Vec<&str> = through.iter().map(|opcode| opcode.name()).collect();
                write!(f, "agrees, through {}", names.join(", "))
            }
            Self::Differs { at, unless } => {
                write!(f, "differs at {at:?}")?;
                if unless.is_empty() {
                    Ok(())
                } else {
                    write!(f, ", unless by {}", unless.join(" or "))
                }
            }
            Self::Undecided { why } => write!(f, "undecided: {why}"),
        }
    }
}

impl Verdict {
    /// Checks whether the outputs are not the same over the reals, unless a law explains it that the
    /// field does not know.
    pub fn differs(&self) -> bool {
        matches!(self, Self::Differs { .. })
    }

    /// Checks whether the outputs are certainly not the same over the reals.
    pub fn disproves(&self) -> bool {
        matches!(self, Self::Differs { unless, .. } if unless.is_empty())
    }

    /// The stronger of the verdicts from two inputs.
    fn and(self, other: Self) -> Self {
        let rank = |verdict: &Self| match verdict {
            Self::Equal => 0,
            Self::Agrees { .. } => 1,
            Self::Undecided { .. } => 2,
            Self::Differs { .. } => 3,
        };
        if rank(&other) > rank(&self) { other } else { self }
    }
}

/// Compares the outputs of two modules whose parameters are of the same shapes,
/// tuples flattened in order, over the field of 2^61 - 1 elements: see the module
/// documentation. Modules with integers among their parameters are tried on several.
pub fn compare(a: &Verified, b: &Verified, options: &AlgebraOptions) -> Vec<Verdict> {
    let outputs = root(a).map_or(0, |root| a.shape(root).leaves().len());
    let undecided = |why: String| vec![Verdict::Undecided { why }; outputs];
    if tells_devices_apart(a) || tells_devices_apart(b) {
        return undecided("it runs on several devices".into());
    }
    if [a, b].iter().any(|module| least_steps(module) > options.limits.max_steps) {
        return undecided("it takes more steps than it may".into());
    }
    let mut verdicts = vec![Verdict::Equal; outputs];
    for (seed, &kind) in tries(a, options.seed) {
        let found = match both(a, b, kind, AlgebraOptions { seed, ..*options }) {
            Ok(values) => judge_all(a, b, &values),
            Err(why) => return undecided(why),
        };
        if found.len() != outputs {
            return undecided("the modules yield different numbers of outputs".into());
        }
        verdicts = verdicts.into_iter().zip(found).map(|(old, new)| old.and(new)).collect();
    }
    verdicts
}

/// Returns a lower bound of the entry's steps, before its inputs are made.
pub(super) fn least_steps(module: &Verified) -> u64 {
    let entry = module.entry().into_iter().flat_map(|entry| module.instructions(entry));
    let leaves = entry.flat_map(|id| module.shape(id).leaves()).filter_map(Shape::as_array);
    let elements = leaves.map(|array| array.num_elements().map_or(u64::MAX, i64::unsigned_abs));
    elements.fold(0, u64::saturating_add) / WORK_PER_STEP
}

/// Returns the seeds and kinds of inputs that are tried. Half of all elements keep their sign
/// in both modules by chance, so one input of few elements proves little.
fn tries(module: &Verified, seed: u64) -> impl Iterator<Item = (u64, &'static InputKind)> {
    let times = if least_steps(module) <= FEW_STEPS { SEEDS_OF_FEW } else { 1 };
    (0..times).flat_map(move |turn| kinds(module).iter().map(move |k| (seed.wrapping_add(turn), k)))
}

/// A module of few elements, which is tried on more inputs.
const FEW_STEPS: u64 = 64;
const SEEDS_OF_FEW: u64 = 16;

/// Floats are random whatever the kind; it is for integers.
pub(super) fn kinds(module: &Verified) -> &'static [InputKind] {
    let entry = module.entry().map(|c| module.computation(c).parameters()).unwrap_or_default();
    let mut leaves = entry.iter().flat_map(|&id| module.shape(id).leaves());
    if leaves.all(has_floats) {
        &[InputKind::Normal]
    } else {
        &[InputKind::Normal, InputKind::Uniform, InputKind::Edges]
    }
}

fn root(module: &Verified) -> Option<InstId> {
    module.computation(module.entry()?).root()
}

/// The leaves of the results of both.
type Leaves = [Vec<Value>; 2];

fn both(
    a: &Verified,
    b: &Verified,
    kind: InputKind,
    options: AlgebraOptions,
) -> Result<Leaves, String> {
    let inputs = inputs(a, options.seed, kind, &options.limits)?;
    let run = |module| {
        let (value, _) = evaluate(module, &inputs, options.limits, Field::default())
            .map_err(|e| e.to_string())?;
        let mut leaves = Vec::new();
        flatten(value, &mut leaves);
        Ok::<_, String>(leaves)
    };
    Ok([run(a)?, run(b)?])
}

/// Returns the result of the entry over the field, with the state of the evaluation.
pub(super) fn evaluate(
    module: &Verified,
    inputs: &[Literal],
    limits: Limits,
    field: Field,
) -> Result<(Value, Field), EvalError> {
    let nothing = || EvalError::Internal { instruction: String::new(), what: "an empty entry" };
    let entry = module.entry().ok_or_else(nothing)?;
    let computation = module.computation(entry);
    let root = computation.root().ok_or_else(nothing)?;
    let mut evaluator = Evaluator::new(module, limits, Device::single());
    evaluator.fuses = false;
    evaluator.field = Some(Box::new(field));
    let mut arguments = SmallVec::new();
    for (&id, input) in computation.parameters().iter().zip(inputs) {
        let value = Value::from_literal(input, &evaluator.ledger);
        arguments.push(value.map_err(|fault: Fault| fault.at(module, id))?);
    }
    let value = evaluator.run(entry, arguments).map_err(|fault| fault.at(module, root))?;
    Ok((value, evaluator.field.take().map(|field| *field).unwrap_or_default()))
}

fn flatten(value: Value, leaves: &mut Vec<Value>) {
    match value {
        Value::Tuple(elements) => elements.iter().for_each(|e| flatten(e.clone(), leaves)),
        leaf @ (Value::Array(_) | Value::Token) => leaves.push(leaf),
    }
}

fn judge_all(a: &Verified, b: &Verified, [of_a, of_b]: &Leaves) -> Vec<Verdict> {
    let sources = [sources(a, of_a.len()), sources(b, of_b.len())];
    let pairs = of_a.iter().zip(of_b).enumerate();
    let judged = pairs.map(|(output, (left, right))| {
        let through = || {
            let of = |module, ids: &[InstId]| ids.get(output).map(|&id| ordering(module, id));
            let (a, b) = (of(a, &sources[0]), of(b, &sources[1]));
            a.into_iter().chain(b).flatten().collect::<BTreeSet<Opcode>>()
        };
        judge(left, right, &through)
    });
    judged.collect()
}

/// The comparison of two arrays.
#[derive(Default)]
struct Comparison {
    /// Whether an element is unsure, though it agrees.
    unsure: bool,
    /// Whether an element differs that is unsure.
    undecided: bool,
    /// The place of an element that differs and is sure, and its marks.
    differs: Option<(usize, u64)>,
}

fn judge(a: &Value, b: &Value, through: &dyn Fn() -> BTreeSet<Opcode>) -> Verdict {
    let (a, b) = match (a, b) {
        (Value::Array(a), Value::Array(b)) => (a, b),
        _ => return Verdict::Equal,
    };
    if a.dims() != b.dims() || a.element_type() != b.element_type() {
        return Verdict::Undecided { why: "the outputs differ in shape".into() };
    }
    let found = match (a.data(), b.data()) {
        (Data::F64(a), Data::F64(b)) => {
            find(a.iter().zip(b).map(|(a, b)| (a.to_bits(), b.to_bits())))
        }
        (of_a, of_b) => find_other(of_a, of_b, a.is_unsure() || b.is_unsure()),
    };
    match found {
        Comparison { differs: Some((at, marks)), .. } => {
            Verdict::Differs { at: index(at, a.dims()), unless: excuses(marks) }
        }
        Comparison { undecided: true, .. } => {
            let names: Vec<&str> = through().into_iter().map(Opcode::name).collect();
            let names =
                if names.is_empty() { "a quotient by zero".into() } else { names.join(", ") };
            Verdict::Undecided { why: format!("it depends on {names}") }
        }
        Comparison { unsure: true, .. } => {
            Verdict::Agrees { through: through().into_iter().collect() }
        }
        Comparison { .. } => Verdict::Equal,
    }
}

fn find(pairs: impl Iterator<Item = (u64, u64)>) -> Comparison {
    let mut found = Comparison::default();
    for (at, (a, b)) in pairs.enumerate() {
        let marks = marks(a | b);
        let unsure = marks & UNSURE != 0;
        let differs = residue(a) != residue(b);
        found.unsure |= unsure;
        found.undecided |= differs && unsure;
        // An output that depends on fewer constants tells more.
        let plain = |(_, old): (usize, u64)| old.count_ones() > marks.count_ones();
        if differs && !unsure && found.differs.is_none_or(plain) {
            found.differs = Some((at, marks));
        }
    }
    found
}

/// Integers and truth values.
fn find_other(a: &Data, b: &Data, unsure: bool) -> Comparison {
    let differs = (0..a.len()).find(|&at| {
        let one = |data: &Data| data.gather(std::iter::once(at));
        a != b && one(a) != one(b)
    });
    Comparison {
        unsure,
        undecided: unsure && differs.is_some(),
        differs: differs.filter(|_| !unsure).map(|at| (at, 0)),
    }
}

fn excuses(marks: u64) -> Vec<&'static str> {
    let named = [
        (OPAQUE, "a law of a function that has no meaning in a field"),
        (ROUNDED, "the rounding of a constant"),
    ];
    named.into_iter().filter(|(mark, _)| marks & mark != 0).map(|(_, name)| name).collect()
}

fn index(at: usize, dims: &[i64]) -> Vec<i64> {
    let sizes: Vec<usize> = dims.iter().map(|&size| extent(size)).collect();
    index_of(at, &sizes).into_iter().map(|place| i64::try_from(place).unwrap_or(i64::MAX)).collect()
}

/// Returns the instruction that makes each output, traced through tuples; otherwise the root.
fn sources(module: &Verified, outputs: usize) -> Vec<InstId> {
    let Some(root) = root(module) else { return Vec::new() };
    let operands = module.operands(root);
    if matches!(module.op(root), Op::Tuple) && operands.len() == outputs {
        return operands.to_vec();
    }
    vec![root; outputs]
}

/// Returns the ops on the way to a value that leave its real value open.
fn ordering(module: &Verified, id: InstId) -> BTreeSet<Opcode> {
    let mut needed = module.post_order(id);
    let mut called = BTreeSet::new();
    let mut found = BTreeSet::new();
    while let Some(id) = needed.pop() {
        if is_unsure(module, id) {
            found.insert(module.opcode(id));
        }
        for computation in module.called(id) {
            if called.insert(computation) {
                needed.extend(module.instructions(computation));
            }
        }
    }
    found
}
