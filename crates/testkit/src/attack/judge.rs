//! Who is to blame: a rewrite, or the program's own rounding.
//!
//! The truth is the program in `f64`. The program's own error is the largest of that on
//! the given inputs and on some next to them, with its roundings as they are and falling the
//! other way, and with what is equal over the reals found equal where it is compared: a
//! choice that falls either way in the program itself is not held against a rewrite. A
//! rewrite is blamed for what it does on the given inputs and on at least a third of those
//! next to them.

use std::sync::atomic::{AtomicBool, Ordering};

use tilewright_interp::algebra::{AlgebraOptions, Ties};
use tilewright_interp::{Evaluation, Limits, Observer, Seen, evaluate, widened, widened_literal};
use tilewright_ir::{Data, ElementType, InstId, Literal, Module, Op, Verified};

use super::nudge::nudged;

/// How far a rewrite may change floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// Every bit stays.
    Exact,
    /// Within the [`Contract`].
    Default,
    /// Within a wider one.
    FastMath,
}

/// How much larger an error may become.
#[derive(Clone, Copy, Debug)]
pub struct Contract {
    /// Times the program's own.
    pub growth: f64,
    /// And as many units in the last place of an output's largest value.
    pub slack_ulps: f64,
    /// Whether an output stays zero where all its elements cancel exactly.
    pub keeps_zero: bool,
}

/// The judgement on a rewrite.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// Nothing wrong.
    Fine,
    /// Why nothing can be said.
    Unjudged(&'static str),
    /// Something wrong.
    Blamed(Blame),
}

/// The defect of a rewrite.
#[derive(Clone, Debug, PartialEq)]
pub enum Blame {
    /// It cannot be run.
    Fails(String),
    /// It changes bits that it had to keep, of this output.
    Bits(usize),
    /// Elements of this output that were finite are not.
    NotFinite(usize),
    /// The error of this output grew.
    Error {
        /// Which output.
        output: usize,
        /// The program's own error.
        own: f64,
        /// The error of the rewritten program.
        rewritten: f64,
        /// The largest value of the output.
        scale: f64,
    },
}

impl Blame {
    /// Checks whether both are of one kind, whatever the numbers.
    pub fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

/// How many inputs next to the given ones are tried where something looks wrong.
const NUDGES: u64 = 12;
/// On how many of them a rewrite must be wrong.
const ENOUGH: usize = 4;

/// A program with its inputs, on which rewrites of it are judged.
#[derive(Debug)]
pub struct Judge<'m> {
    original: &'m Verified,
    wide: Option<Verified>,
    result: Literal,
    overflows: bool,
    /// The given inputs and those next to them, with what is right on them.
    runs: Vec<JudgedRun>,
    /// The largest errors of the program, with noise and without, by output, once a
    /// rewrite looked wrong beside the program alone.
    own: Option<Vec<f64>>,
}

#[derive(Debug)]
struct JudgedRun {
    inputs: Vec<Literal>,
    original: Vec<Leaf>,
    truth: Vec<Leaf>,
}

/// An output as numbers.
#[derive(Debug)]
struct Leaf {
    element: ElementType,
    numbers: Vec<f64>,
}

impl<'m> Judge<'m> {
    /// Runs a program.
    ///
    /// # Errors
    /// Returns an error if it cannot be run.
    pub fn new(original: &'m Verified, inputs: Vec<Literal>) -> Result<Self, String> {
        let seen = AtomicBool::new(inputs.iter().any(is_near_overflow));
        let watch = Watch { module: original, is: is_near_overflow, seen };
        let run = Evaluation::new(original).observer(&watch).run(&[&inputs[..]]);
        let result = run.map_err(|error| error.to_string())?.pop().ok_or("no device")?.output;
        let overflows = watch.seen.load(Ordering::Relaxed);
        // In `f64` there is nothing wider to judge by.
        let wide = if has_doubles(original) { None } else { widened(original).ok() };
        let mut judge = Self { original, wide, result, overflows, runs: Vec::new(), own: None };
        if !overflows && judge.wide.is_some() {
            let original = leaves(&judge.result);
            let truth = judge.truth(&inputs)?;
            judge.runs.push(JudgedRun { inputs, original, truth });
        } else {
            judge.runs.push(JudgedRun { inputs, original: Vec::new(), truth: Vec::new() });
        }
        Ok(judge)
    }

    /// Checks whether the program computes an infinity or a NaN, is given one, or comes near.
    pub fn overflows(&self) -> bool {
        self.overflows
    }

    fn truth(&self, inputs: &[Literal]) -> Result<Vec<Leaf>, String> {
        let Some(wide) = &self.wide else { return Ok(Vec::new()) };
        let inputs = inputs.iter().map(widened_literal).collect::<Result<Vec<_>, _>>();
        let inputs = inputs.map_err(|error| error.to_string())?;
        Ok(leaves(&run(wide, &inputs)?))
    }

    /// Judges a rewrite of the program.
    pub fn judge(&mut self, rewritten: &Verified, mode: Mode, contract: Contract) -> Verdict {
        let result = match run(rewritten, &self.runs[0].inputs) {
            Ok(result) => result,
            Err(error) => return Verdict::Blamed(Blame::Fails(error)),
        };
        let Some(output) = different(&self.result, &result) else { return Verdict::Fine };
        if mode == Mode::Exact || !has_floats(self.original) {
            return Verdict::Blamed(Blame::Bits(output));
        }
        if self.overflows {
            return Verdict::Unjudged("the program computes infinities, or NaN, or comes near");
        }
        if self.wide.is_none() {
            return Verdict::Unjudged("there is no wider type");
        }
        let Some(suspect) = self.compare(&leaves(&result), 0, contract) else {
            return Verdict::Fine;
        };
        self.confirm(rewritten, suspect, contract)
    }

    /// Whether a suspicion holds on inputs next to the given ones, and against the largest
    /// error of the program on any of them.
    fn confirm(&mut self, rewritten: &Verified, suspect: Blame, contract: Contract) -> Verdict {
        if let Err(error) = self.nudge() {
            return Verdict::Blamed(Blame::Fails(error));
        }
        let mut found = None;
        let mut wrong = 0;
        for turn in 0..self.runs.len() {
            let result = match run(rewritten, &self.runs[turn].inputs) {
                Ok(result) => leaves(&result),
                Err(error) => return Verdict::Blamed(Blame::Fails(error)),
            };
            let blame = self.compare(&result, turn, contract).filter(|b| b.is_like(&suspect));
            if turn == 0 {
                found = blame;
                if found.is_none() {
                    return Verdict::Fine;
                }
            } else {
                wrong += usize::from(blame.is_some());
            }
        }
        match found {
            Some(Blame::Error { .. }) if wrong >= ENOUGH && self.loses_terms(rewritten) => {
                Verdict::Unjudged(
                    "a term that the rewrite sums lies below the smallest normal number",
                )
            }
            Some(blame) if wrong >= ENOUGH => Verdict::Blamed(blame),
            _ => Verdict::Fine,
        }
    }

    /// Whether a rewrite computes terms below the smallest normal number, of which the contract states
    /// nothing.
    fn loses_terms(&self, rewritten: &Verified) -> bool {
        let watch = Watch { module: rewritten, is: has_subnormals, seen: AtomicBool::new(false) };
        let run = Evaluation::new(rewritten).observer(&watch).run(&[&self.runs[0].inputs[..]]);
        run.is_ok() && watch.seen.into_inner()
    }

    /// Runs the program on inputs next to the given ones, once.
    fn nudge(&mut self) -> Result<(), String> {
        if self.runs.len() > 1 {
            return Ok(());
        }
        for turn in 1..=NUDGES {
            let inputs: Vec<Literal> =
                self.runs[0].inputs.iter().map(|x| nudged(x, turn)).collect();
            let original = leaves(&run(self.original, &inputs)?);
            let truth = self.truth(&inputs)?;
            self.runs.push(JudgedRun { inputs, original, truth });
        }
        let mut own: Vec<f64> = (0..self.runs[0].truth.len()).map(|o| self.own_error(o)).collect();
        let ties = Ties::of(self.original, &AlgebraOptions::default());
        for (seed, known) in (0..).zip(&self.runs) {
            let mut others = vec![noisy(self.original, &known.inputs, seed)?];
            if !ties.is_empty() {
                others.push(tied(self.original, &known.inputs, &ties)?);
            }
            for result in others {
                let results = leaves(&result);
                let outputs = results.iter().zip(&known.original).zip(&known.truth);
                for (own, ((result, original), truth)) in own.iter_mut().zip(outputs) {
                    // Where its roundings decide whether there is a number, any error is its own.
                    let lost = not_finite(result, original);
                    *own = if lost { f64::INFINITY } else { own.max(error(result, truth)) };
                }
            }
        }
        self.own = Some(own);
        Ok(())
    }

    /// Compares results with those of the program on the inputs of a run. Returns the defect,
    /// if there is one.
    fn compare(&self, results: &[Leaf], turn: usize, contract: Contract) -> Option<Blame> {
        let run = self.runs.get(turn)?;
        let outputs = results.iter().zip(&run.original).zip(&run.truth).enumerate();
        for (output, ((result, original), truth)) in outputs {
            let scale = scale(original).max(scale(truth));
            let slack = contract.slack_ulps * ulp(original.element, scale);
            if not_finite(result, original) {
                // An error that the contract allows may be large enough to overflow.
                let allowed = contract.growth * self.own_error(output) + slack;
                if scale + allowed <= largest(original.element) {
                    return Some(Blame::NotFinite(output));
                }
                continue;
            }
            let rewritten = error(result, truth);
            if rewritten <= slack || (scale == 0.0 && !contract.keeps_zero) {
                continue;
            }
            let own = self.own_error(output);
            if rewritten > contract.growth * own + slack {
                return Some(Blame::Error { output, own, rewritten, scale });
            }
        }
        None
    }

    /// Returns the largest error of an output of the program, on any inputs tried.
    fn own_error(&self, output: usize) -> f64 {
        if let Some(&own) = self.own.as_ref().and_then(|own| own.get(output)) {
            return own;
        }
        let errors = self
            .runs
            .iter()
            .filter_map(|run| Some(error(run.original.get(output)?, run.truth.get(output)?)));
        errors.fold(0.0, f64::max)
    }
}

fn run(module: &Verified, inputs: &[Literal]) -> Result<Literal, String> {
    evaluate(module, inputs, &Limits::default()).map_err(|error| error.to_string())
}

/// Returns the result of a program whose comparisons of what is equal over the reals find it
/// equal, whatever rounding made of it.
fn tied(module: &Verified, inputs: &[Literal], ties: &Ties) -> Result<Literal, String> {
    let run = Evaluation::new(module).ties(ties).run(&[inputs]);
    let mut run = run.map_err(|error| error.to_string())?;
    Ok(run.pop().ok_or("no device")?.output)
}

/// Evaluates a program with noise in its roundings.
fn noisy(module: &Verified, inputs: &[Literal], seed: u64) -> Result<Literal, String> {
    let run = Evaluation::new(module).noise(seed).run(&[inputs]);
    let mut run = run.map_err(|error| error.to_string())?;
    Ok(run.pop().ok_or("no device")?.output)
}

/// Sees whether an instruction computes such a value. Constants may be so.
struct Watch<'m> {
    module: &'m Module,
    is: fn(&Literal) -> bool,
    seen: AtomicBool,
}

impl Observer for Watch<'_> {
    fn evaluated(&self, seen: &Seen<'_>) {
        if self.seen.load(Ordering::Relaxed) || is_constant(self.module, seen.id()) {
            return;
        }
        if seen.literal().is_some_and(|value| (self.is)(&value)) {
            self.seen.store(true, Ordering::Relaxed);
        }
    }
}

fn is_constant(module: &Module, id: InstId) -> bool {
    match (module.op(id), module.operands(id)) {
        (Op::Constant(_), _) => true,
        (Op::Broadcast(_) | Op::Reshape(_), &[operand]) => is_constant(module, operand),
        _ => false,
    }
}

/// Checks whether an element is infinite or NaN, or the sum of as many as there are may be: a
/// factor comes out of a sum of values that the program computes already, whatever their size
/// (`docs/numerics.md`).
fn is_near_overflow(value: &Literal) -> bool {
    leaves(value).iter().any(|leaf| {
        if !leaf.element.is_float() {
            return false;
        }
        let most = largest(leaf.element);
        let terms = u32::try_from(leaf.numbers.len()).map_or(f64::INFINITY, f64::from);
        leaf.numbers.iter().any(|x| x.is_nan() || x.abs() > most / terms.max(1.0))
    })
}

/// Checks whether an element lies between zero and the smallest normal number, where it has fewer digits.
fn has_subnormals(value: &Literal) -> bool {
    leaves(value).iter().any(|leaf| {
        let least = match leaf.element {
            ElementType::F16 => 2f64.powi(-14),
            ElementType::BF16 | ElementType::F32 => f64::from(f32::MIN_POSITIVE),
            _ => return false,
        };
        leaf.numbers.iter().any(|&x| x != 0.0 && x.abs() < least)
    })
}

/// Returns the greatest finite number of a type of floats.
fn largest(element: ElementType) -> f64 {
    match element {
        ElementType::F16 => 65504.0,
        ElementType::BF16 | ElementType::F32 => f64::from(f32::MAX),
        _ => f64::MAX,
    }
}

fn element_types(module: &Module) -> impl Iterator<Item = ElementType> {
    let all = module.computations().iter().flat_map(|&c| module.instructions(c));
    all.filter_map(|id| module.array_shape(id)).map(|shape| shape.element_type)
}

fn has_floats(module: &Module) -> bool {
    element_types(module).any(ElementType::is_float)
}

fn has_doubles(module: &Module) -> bool {
    element_types(module).any(|element| element == ElementType::F64)
}

/// Returns the first output in which two results differ, NaN being the same as NaN.
fn different(a: &Literal, b: &Literal) -> Option<usize> {
    let same = |(a, b): (&&Literal, &&Literal)| match (leaf(a), leaf(b)) {
        _ if a == b => true,
        (Some(a), Some(b)) if a.element.is_float() => {
            let bits = |x: f64| if x.is_nan() { f64::NAN.to_bits() } else { x.to_bits() };
            a.numbers.iter().map(|&x| bits(x)).eq(b.numbers.iter().map(|&x| bits(x)))
        }
        _ => false,
    };
    a.leaves().iter().zip(&b.leaves()).position(|pair| !same(pair))
}

fn leaves(value: &Literal) -> Vec<Leaf> {
    value.leaves().into_iter().filter_map(leaf).collect()
}

#[expect(clippy::cast_precision_loss, reason = "integers are judged to 53 bits")]
fn leaf(value: &Literal) -> Option<Leaf> {
    let array = value.as_array()?;
    let numbers = match array.data() {
        Data::Pred(v) => v.iter().map(|&x| f64::from(u8::from(x))).collect(),
        Data::S8(v) => v.iter().map(|&x| f64::from(x)).collect(),
        Data::S16(v) => v.iter().map(|&x| f64::from(x)).collect(),
        Data::S32(v) => v.iter().map(|&x| f64::from(x)).collect(),
        Data::S64(v) => v.iter().map(|&x| x as f64).collect(),
        Data::U8(v) => v.iter().map(|&x| f64::from(x)).collect(),
        Data::U16(v) => v.iter().map(|&x| f64::from(x)).collect(),
        Data::U32(v) => v.iter().map(|&x| f64::from(x)).collect(),
        Data::U64(v) => v.iter().map(|&x| x as f64).collect(),
        Data::F16(v) => v.iter().map(|x| x.to_f64()).collect(),
        Data::BF16(v) => v.iter().map(|x| x.to_f64()).collect(),
        Data::F32(v) => v.iter().map(|&x| f64::from(x)).collect(),
        Data::F64(v) => v.clone(),
        Data::C64(_) | Data::C128(_) => return None,
    };
    Some(Leaf { element: array.element_type(), numbers })
}

fn not_finite(result: &Leaf, original: &Leaf) -> bool {
    result.numbers.iter().zip(&original.numbers).any(|(r, o)| !r.is_finite() && o.is_finite())
}

/// Returns the largest finite value.
fn scale(leaf: &Leaf) -> f64 {
    leaf.numbers.iter().filter(|x| x.is_finite()).fold(0.0, |most: f64, x| most.max(x.abs()))
}

/// Returns the largest difference from what is right, where that is finite.
fn error(values: &Leaf, truth: &Leaf) -> f64 {
    let pairs = values.numbers.iter().zip(&truth.numbers).filter(|(_, t)| t.is_finite());
    pairs.map(|(v, t)| (v - t).abs()).filter(|e| !e.is_nan()).fold(0.0, f64::max)
}

/// Returns a unit in the last place of a number of this size; 0 for types that are exact.
fn ulp(element: ElementType, scale: f64) -> f64 {
    let (digits, least) = match element {
        ElementType::F16 => (10, -24),
        ElementType::BF16 => (7, -133),
        ElementType::F32 => (23, -149),
        ElementType::F64 => (52, -1074),
        _ => return 0.0,
    };
    (scale * 0.5f64.powi(digits)).max(2f64.powi(least))
}
