//! What a layer computes, by its reductions.

use tilewright::ir::ops::Op;
use tilewright::ir::{ArrayShape, InstId, Module, Opcode};

/// The facts about a layer's instructions that tell its pattern.
#[derive(Clone, Debug, Default)]
pub(super) struct Pattern {
    has_root: bool,
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
            }
            Op::Dot(_) | Op::Convolution(_) => self.has_contraction = true,
            op => {
                self.has_root |= matches!(op.opcode(), Opcode::Rsqrt | Opcode::Sqrt);
                self.has_exponential |= op.opcode() == Opcode::Exp;
            }
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
            Self { has_root: true, reduced: Some(_), .. } => "norm",
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

/// Returns a shape without its layout.
fn plain(array: &ArrayShape) -> String {
    tilewright::ir::Shape::Array(array.clone()).without_layout().to_string()
}

fn elements(array: &ArrayShape) -> i64 {
    array.num_elements().unwrap_or(0)
}
