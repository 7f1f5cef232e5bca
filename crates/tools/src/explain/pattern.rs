//! What a layer computes, by its reductions.

use rustc_hash::FxHashSet;
use tilewright::ir::ops::Op;
use tilewright::ir::{ArrayShape, InstId, Module, Opcode};

/// The facts about a layer's instructions that tell its pattern.
#[derive(Clone, Debug, Default)]
pub(super) struct Pattern {
    has_norm: bool,
    has_exponential: bool,
    has_maximum: bool,
    has_contraction: bool,
    /// The largest array that is reduced, and the reduced dims.
    reduced: Option<(ArrayShape, Vec<i64>)>,
    /// The largest array.
    largest: Option<ArrayShape>,
}

impl Pattern {
    /// Looks at one more instruction of the layer.
    pub(super) fn see(&mut self, module: &Module, id: InstId) {
        match module.op(id) {
            Op::Reduce(attrs) => {
                let operand = module.operands(id).first().copied();
                let from = operand.and_then(|operand| module.array_shape(operand));
                let is_larger = |from: &&ArrayShape| {
                    let known = self.reduced.as_ref().map_or(-1, |(known, _)| elements(known));
                    elements(from) > known
                };
                if let Some(from) = from.filter(is_larger) {
                    self.reduced = Some((from.clone(), attrs.dimensions.to_vec()));
                }
                let root = module.computation(attrs.to_apply).root();
                self.has_maximum |= root.is_some_and(|root| module.opcode(root) == Opcode::Maximum);
                self.has_norm |= is_of_norm(module, id);
            }
            Op::Dot(_) | Op::Convolution(_) => self.has_contraction = true,
            op => self.has_exponential |= op.opcode() == Opcode::Exp,
        }
        let arrays = module.operands(id).iter().chain([&id]);
        for array in arrays.filter_map(|&one| module.array_shape(one)) {
            if self.largest.as_ref().is_none_or(|known| elements(known) < elements(array)) {
                self.largest = Some(array.clone());
            }
        }
    }

    /// Returns the bytes of the largest array that an instruction of the layer reads or makes.
    pub(super) fn array_bytes(&self) -> u64 {
        self.largest.as_ref().map_or(0, |array| {
            let bits = u64::from(array.element_type.bits());
            elements(array).unsigned_abs().saturating_mul(bits) / 8
        })
    }

    /// Returns the pattern in words: `norm of f32[8,32,32,320] over {1,2}`.
    pub(super) fn words(&self) -> String {
        let kind = match self {
            Self { has_exponential: true, has_maximum: true, .. } => "softmax",
            Self { has_norm: true, reduced: Some(_), .. } => "norm",
            Self { has_contraction: true, .. } => "contraction",
            Self { reduced: Some(_), .. } => "sums",
            _ => "elementwise ops",
        };
        match (&self.reduced, &self.largest) {
            (Some((from, dims)), _) => {
                let dims: Vec<String> = dims.iter().map(i64::to_string).collect();
                format!("{kind} of {} over {{{}}}", plain(from), dims.join(","))
            }
            (None, Some(array)) => format!("{kind} on {}", plain(array)),
            (None, None) => kind.to_owned(),
        }
    }
}

/// The most instructions that are looked at around a root.
const MOST_VISITED: usize = 64;

/// Checks whether a sum becomes the deviation by which a norm divides: the root of a mean, which is repeated over
/// an array.
fn is_of_norm(module: &Module, sum: InstId) -> bool {
    let next = |id: InstId| module.uses(id).map(|one| one.user).collect();
    reached(module, sum, next, |id| {
        matches!(module.opcode(id), Opcode::Rsqrt | Opcode::Sqrt)
            && is_of_a_mean(module, id)
            && is_spread(module, id)
    })
}

/// Checks whether a value is computed element by element from a sum times a constant: a mean of squares, as in
/// a norm, rather than a sum of squares, as in a distance.
fn is_of_a_mean(module: &Module, id: InstId) -> bool {
    let is_constant = |id: InstId| {
        let source = if module.opcode(id) == Opcode::Broadcast {
            module.operands(id).first()
        } else {
            Some(&id)
        };
        source.is_some_and(|&source| module.opcode(source) == Opcode::Constant)
    };
    let next = |id: InstId| module.operands(id).to_vec();
    reached(module, id, next, |id| {
        matches!(module.opcode(id), Opcode::Multiply | Opcode::Divide)
            && module.operands(id).iter().any(|&operand| is_constant(operand))
            && module.operands(id).iter().any(|&operand| is_from_sum(module, operand))
    })
}

fn is_from_sum(module: &Module, id: InstId) -> bool {
    let next = |id: InstId| module.operands(id).to_vec();
    module.opcode(id) == Opcode::Reduce
        || reached(module, id, next, |id| module.opcode(id) == Opcode::Reduce)
}

/// Checks whether a value is repeated over a larger array.
fn is_spread(module: &Module, id: InstId) -> bool {
    let next = |id: InstId| module.uses(id).map(|one| one.user).collect();
    reached(module, id, next, |id| module.opcode(id) == Opcode::Broadcast)
}

/// Checks whether an instruction is found by going on, from one, through those that work element by element.
fn reached(
    module: &Module,
    from: InstId,
    next: impl Fn(InstId) -> Vec<InstId>,
    is_it: impl Fn(InstId) -> bool,
) -> bool {
    let mut waiting = next(from);
    let mut seen = FxHashSet::default();
    while let Some(id) = waiting.pop().filter(|_| seen.len() < MOST_VISITED) {
        if !seen.insert(id) {
            continue;
        }
        if is_it(id) {
            return true;
        }
        let opcode = module.opcode(id);
        if opcode.is_elementwise()
            || matches!(opcode, Opcode::Reshape | Opcode::Broadcast | Opcode::Copy)
        {
            waiting.extend(next(id));
        }
    }
    false
}

/// Returns a shape without its layout.
fn plain(array: &ArrayShape) -> String {
    tilewright::ir::Shape::Array(array.clone()).without_layout().to_string()
}

fn elements(array: &ArrayShape) -> i64 {
    array.num_elements().unwrap_or(0)
}
