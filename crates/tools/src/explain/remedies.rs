//! Where the time of a module goes in which nothing was rewritten, and what can be done by hand.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use tilewright::ir::{Module, Opcode};
use tilewright::report::{bytes, meaning};
use tilewright::targets::slow_ops::SlowOps;
use tilewright::{Cost, InstructionCost, Note, Outcome, Place, Target, memory_use, run_costs};

/// The least part of all cycles for which an instruction is named.
const LEAST_SHARE: f64 = 0.05;
/// The most instructions that are named.
const MOST_NAMED: usize = 4;
/// How many times as long as its bytes take an instruction runs that is called slow.
const SLOW: f64 = 3.0;
/// The least part of all cycles with which contractions are what a program is about.
const MOSTLY: f64 = 0.5;

/// The advice on a reduction that takes longer than its bytes.
const SLOW_REDUCTION: &str = "it goes through its array in an order that this engine is slow at: reduce \
                              other dims first, or an array whose last dim is long";
/// The advice on an exchange.
const WAITS: &str = "devices wait for each other: divide the array along another dim";
/// The advice on a module that is mostly contractions.
const CONTRACTIONS: &str = "most of the time is in matrix products and convolutions, which are left as they \
                            are: fewer or smaller ones, or operands of 16 bits, are what helps";

/// A kind of instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Matrix products and convolutions.
    Contractions,
    /// Reductions, along dims or windows, and sorts.
    Reductions,
    /// Ops that move elements or select some.
    Moves,
    /// Ops that work element by element.
    Elementwise,
    /// Exchanges between devices.
    Communication,
    /// Arguments, which are read from main memory.
    Arguments,
    /// Calls of what XLA does not compile, random numbers, and the rest.
    Others,
}

impl Kind {
    fn of(opcode: Opcode) -> Self {
        match opcode {
            Opcode::Dot | Opcode::Convolution | Opcode::RaggedDot | Opcode::ScaledDot => {
                Self::Contractions
            }
            Opcode::Reduce | Opcode::ReduceWindow | Opcode::SelectAndScatter | Opcode::Sort => {
                Self::Reductions
            }
            Opcode::Reshape
            | Opcode::Transpose
            | Opcode::Copy
            | Opcode::Bitcast
            | Opcode::Broadcast
            | Opcode::Slice
            | Opcode::DynamicSlice
            | Opcode::DynamicUpdateSlice
            | Opcode::Concatenate
            | Opcode::Pad
            | Opcode::Reverse
            | Opcode::Gather
            | Opcode::Scatter => Self::Moves,
            opcode if opcode.is_elementwise() || opcode == Opcode::Iota => Self::Elementwise,
            Opcode::AllReduce
            | Opcode::AllReduceStart
            | Opcode::AllGather
            | Opcode::AllGatherStart
            | Opcode::ReduceScatter
            | Opcode::AllToAll
            | Opcode::CollectivePermute
            | Opcode::CollectivePermuteStart => Self::Communication,
            Opcode::Parameter => Self::Arguments,
            _ => Self::Others,
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Contractions => "matrix products and convolutions",
            Self::Reductions => "reductions",
            Self::Moves => "moves of elements",
            Self::Elementwise => "elementwise ops",
            Self::Communication => "exchanges between devices",
            Self::Arguments => "arguments",
            Self::Others => "other ops",
        }
    }
}

/// The part of a module's modelled cycles that a kind of instructions takes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Share {
    /// The kind.
    pub kind: Kind,
    /// The part, from 0 to 1.
    pub share: f64,
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:.0} %", self.kind.words(), 100.0 * self.share)
    }
}

/// Where the cycles of a module go, and what can be done about them. `notes` say what was left.
pub(super) fn now_what(
    module: &Module,
    target: &Target,
    notes: &[Note],
) -> (Vec<Share>, Vec<String>) {
    let costs = run_costs(module, target);
    let all: f64 = costs.iter().map(|one| one.cost.cycles).sum();
    if all <= 0.0 {
        return (Vec::new(), Vec::new());
    }
    let mut of: BTreeMap<Kind, f64> = BTreeMap::new();
    for one in &costs {
        *of.entry(Kind::of(module.opcode(one.id))).or_default() += one.cost.cycles / all;
    }
    let mut shares: Vec<Share> =
        of.into_iter().map(|(kind, share)| Share { kind, share }).collect();
    shares.sort_by(|a, b| b.share.total_cmp(&a.share));
    let known = costs.iter().filter_map(|one| measured(module, target, one, all));
    let modelled = costs.iter().filter_map(|one| remedy(module, target, one, all));
    let mut named: Vec<(f64, String)> = known.chain(modelled).collect();
    named.sort_by(|a, b| b.0.total_cmp(&a.0));
    let named = named.into_iter().take(MOST_NAMED).map(|(_, text)| text);
    let mut remedies: Vec<String> = named.chain(on_large_arrays(module, target)).collect();
    let in_contractions = shares.iter().find(|share| share.kind == Kind::Contractions);
    if in_contractions.is_some_and(|share| share.share >= MOSTLY) {
        remedies.push(CONTRACTIONS.to_owned());
    }
    if notes.iter().any(is_small_gain) {
        remedies.push(format!(
            "rewrites were left that gain less than the least gain of {}: `tilewright tune`, or \
             `tilewright.jit(f, tune=True)`, measures them",
            target.name
        ));
    }
    (shares, remedies)
}

/// Checks whether a note says that a whole module would cost less, by too little.
fn is_small_gain(note: &Note) -> bool {
    let saves = note.cycles.is_some_and(|cycles| cycles.after < cycles.before);
    note.outcome == Outcome::Left && note.pass == "pipeline" && saves
}

/// Says how slow an op was that was measured, if that is a large part of the module's time.
fn measured(
    module: &Module,
    target: &Target,
    one: &InstructionCost,
    all: f64,
) -> Option<(f64, String)> {
    let SlowOps { times, instead, .. } = target.slow_op(module.opcode(one.id))?;
    let cycles = one.cost.cycles;
    let (place, name) = (Place::of(module, one.id), &target.name);
    let text = format!(
        "{place}: on {name} it took {times} times as long as a copy of its bytes; {instead}"
    );
    (cycles >= LEAST_SHARE * all).then_some((cycles, text))
}

/// Says what the engine is known to be slow at in making the largest array, if that is large.
fn on_large_arrays(module: &Module, target: &Target) -> Option<String> {
    let arrays = memory_use(module, target).arrays;
    let is_made = |id| module.opcode(id) != Opcode::Parameter && module.array_shape(id).is_some();
    let made = arrays.iter().filter(|array| is_made(array.id));
    let largest = made.max_by_key(|array| array.footprint.padded_bytes)?;
    let is_reached =
        |slow: &&SlowOps| slow.ops.is_empty() && largest.footprint.padded_bytes >= slow.least_bytes;
    let known = target.slow_ops.iter().filter(is_reached);
    let SlowOps { least_bytes, times, instead, .. } = known.max_by_key(|slow| slow.least_bytes)?;
    Some(format!(
        "programs that make arrays of {} and more, such as `{}` ({}), took {times} times as long as they need on {}: \
         {instead}",
        bytes(*least_bytes),
        module.name_of(largest.id),
        module.shape(largest.id).without_layout(),
        target.name,
    ))
}

/// Returns the cycles in which main memory reads and writes the bytes of an instruction.
#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn by_bytes(target: &Target, cost: Cost) -> f64 {
    cost.padded_bytes as f64 / target.hbm_bytes_per_cycle
}

/// Says what is slow about an instruction, and what can be done; `None` if nothing is known.
fn remedy(
    module: &Module,
    target: &Target,
    one: &InstructionCost,
    all: f64,
) -> Option<(f64, String)> {
    let InstructionCost { id, cost } = *one;
    let opcode = module.opcode(id);
    if cost.cycles < LEAST_SHARE * all || target.slow_op(opcode).is_some() {
        return None;
    }
    let is_slow = cost.cycles >= SLOW * by_bytes(target, cost);
    let why = match (Kind::of(opcode), opcode) {
        (Kind::Moves, _) => {
            let advice = match opcode {
                Opcode::Reshape => "; compute in one of the two shapes throughout",
                Opcode::Transpose => {
                    "; keep one order of dims from where it is made to where it is read"
                }
                _ => "",
            };
            format!("it {}{advice}", meaning(module, id)?)
        }
        (Kind::Reductions, Opcode::Reduce) if is_slow => SLOW_REDUCTION.to_owned(),
        (Kind::Communication, _) => WAITS.to_owned(),
        _ => return None,
    };
    let share = 100.0 * cost.cycles / all;
    Some((cost.cycles, format!("{}, {share:.0} % of the cycles: {why}", Place::of(module, id))))
}
