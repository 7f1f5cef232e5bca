//! What is computed beside contractions, while the matrix unit works.
//!
//! XLA's compiler for such machines makes one kernel of a product or convolution, what is
//! computed elementwise for it alone and what is computed elementwise of its result. The
//! vector units have time for that: it costs nothing besides (`fuses_contractions`).

use tilewright_ir::{ArrayShape, CompId, InstId, Module, Op, Opcode, SecondaryMap, Shape};

use super::residency::AllFacts;
use super::sweeps::filled;
use super::{Operand, size};

/// Whether an instruction is a product of matrices or a convolution.
pub(super) fn is_contraction(module: &Module, id: InstId) -> bool {
    matches!(module.opcode(id), Opcode::Dot | Opcode::Convolution)
}

/// The inlined instructions that are part of a contraction's kernel: those that only
/// contractions read, directly or through such instructions, and the elementwise ones that
/// compute on the result of a contraction which nothing else reads.
pub(super) fn beside_contractions(
    module: &Module,
    computation: CompId,
    facts: &AllFacts,
) -> Vec<InstId> {
    let len = module.computation(computation).len();
    let mut inputs: SecondaryMap<InstId, bool> = filled(module, len);
    for id in module.instructions(computation).rev() {
        let goes_in = |user: InstId| is_contraction(module, user) || inputs[user];
        let is_used = module.instruction(id).use_count() > 0 && !module.is_root(id);
        let is_input =
            facts[id].is_inlined() && is_used && module.uses(id).all(|one| goes_in(one.user));
        inputs.set(id, is_input);
    }
    let mut outputs: SecondaryMap<InstId, bool> = filled(module, len);
    for id in module.instructions(computation) {
        let comes_out = |&operand: &InstId| {
            let is_made = is_contraction(module, operand) || outputs[operand];
            is_made && module.uses(operand).all(|one| one.user == id)
        };
        // A broadcast makes more elements than the contraction does.
        let opcode = module.opcode(id);
        let keeps_size = opcode.is_elementwise() || opcode == Opcode::Reshape;
        let is_inlined = facts[id].is_inlined() && keeps_size;
        outputs.set(id, is_inlined && module.operands(id).iter().any(comes_out));
    }
    module.instructions(computation).filter(|&id| inputs[id] || outputs[id]).collect()
}

/// Two operations for each product that is summed.
pub(super) fn contraction_flops(op: &Op, result: &Shape, operands: &[Operand<'_>]) -> u64 {
    let elements = |shape: &Shape| shape.as_array().and_then(ArrayShape::num_elements);
    let summed = match op {
        Op::Dot(attrs) => operands.first().and_then(|o| o.value.shape.as_array()).map(|lhs| {
            let sizes = attrs.lhs_contracting_dims.iter().map(|&d| size(lhs, d));
            sizes.fold(1i64, i64::saturating_mul)
        }),
        Op::Convolution(attrs) => {
            operands.get(1).and_then(|o| o.value.shape.as_array()).map(|kernel| {
                let outputs = size(kernel, attrs.dim_labels.kernel_output_feature).max(1);
                kernel.num_elements().unwrap_or(0) / outputs
            })
        }
        _ => None,
    };
    let products = elements(result).unwrap_or(0).saturating_mul(summed.unwrap_or(0));
    products.unsigned_abs().saturating_mul(2)
}
