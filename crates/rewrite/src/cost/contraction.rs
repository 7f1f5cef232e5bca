//! Finds the instructions that are computed in the kernel of a contraction (a matrix product or a
//! convolution), and the convolutions whose spatial dims the compiler moves into the batch. The
//! ledger and the searches for readers use both.
//!
//! XLA's compiler for machines with a matrix unit makes one kernel of a contraction, the inlined
//! ops that only compute its operands, and the elementwise ops on its result. The vector units are
//! free while the matrix unit works, so these ops cost no cycles on a target with
//! `fuses_contractions`.

use tilewright_ir::{ArrayShape, CompId, InstId, Module, Op, Opcode, SecondaryMap, Shape};

use tilewright_target::Target;

use super::residency::AllFacts;
use super::sweeps::filled;
use super::{Operand, as_f64, size};

/// Checks whether an instruction is a matrix product or a convolution.
pub(super) fn is_contraction(module: &Module, id: InstId) -> bool {
    matches!(module.opcode(id), Opcode::Dot | Opcode::Convolution)
}

/// Checks whether the compiler moves the spatial dims of a convolution into its batch, which it
/// does for few images: `2 <= images < space_to_batch_below`. A single image is left as it is, or
/// read as if it were.
pub(crate) fn moves_space(module: &Module, id: InstId, target: &Target) -> bool {
    let (Op::Convolution(attrs), Some(&images)) = (module.op(id), module.operands(id).first())
    else {
        return false;
    };
    let dims = module.array_shape(images).map(ArrayShape::dims);
    let place = usize::try_from(attrs.dim_labels.input_batch).ok();
    let batch = dims.zip(place).and_then(|(dims, place)| dims.get(place)).copied();
    batch.is_some_and(|batch| (2..i64::from(target.space_to_batch_below)).contains(&batch))
}

/// Returns how many copies of its images a convolution is charged for. `takes_moved` says whether
/// the convolution has space in its batch, and `are_moved` whether its images have.
/// - Only the convolution has: one copy brings its images into that form.
/// - Only the images have: the convolution is the gradient of a kernel, and copies the images once
///   for each index of the kernel's first spatial dim (`PropagateOnBackpropFilterConv` in
///   `xla/service/space_to_batch_converter.cc`).
/// - Otherwise: none.
pub(super) fn copies_of_images(
    module: &Module,
    id: InstId,
    takes_moved: bool,
    are_moved: bool,
) -> f64 {
    let Op::Convolution(attrs) = module.op(id) else { return 0.0 };
    match (takes_moved, are_moved) {
        (true, false) => 1.0,
        (false, true) => {
            let first = attrs.dim_labels.output_spatial.first();
            let size = first.zip(module.array_shape(id)).map(|(&dim, result)| size(result, dim));
            as_f64(size.unwrap_or(1).unsigned_abs())
        }
        _ => 0.0,
    }
}

/// Returns the dim of a contraction's result that runs along the lanes: the output feature of a
/// convolution, or the last dim of a matrix product. `None` if the right operand of a product has
/// only batch and contracting dims, so that the last dim comes from the left operand.
pub(super) fn output_feature(module: &Module, id: InstId) -> Option<i64> {
    match module.op(id) {
        Op::Convolution(attrs) => Some(attrs.dim_labels.output_feature),
        Op::Dot(attrs) => {
            let &[_, rhs] = module.operands(id) else { return None };
            let taken = attrs.rhs_batch_dims.len() + attrs.rhs_contracting_dims.len();
            let has_own = module.array_shape(rhs)?.rank() > taken;
            let last = module.array_shape(id)?.rank().checked_sub(1)?;
            i64::try_from(last).ok().filter(|_| has_own)
        }
        _ => None,
    }
}

/// Returns the inlined instructions of a computation that are part of a contraction's kernel: those
/// that only contractions read, directly or through other such instructions, and the elementwise
/// ops and reshapes on the result of a contraction that nothing else reads.
pub(super) fn beside_contractions(
    module: &Module,
    computation: CompId,
    facts: &AllFacts,
) -> Vec<InstId> {
    let mut nodes: SecondaryMap<InstId, KernelNode> =
        filled(module, module.computation(computation).len());
    for id in module.instructions(computation).rev() {
        let (role, node) = (facts.role(id), nodes.get_mut(id));
        node.is_input =
            role.is_inlined() && node.is_used && !node.leads_elsewhere && !module.is_root(id);
        let goes_in = role.is_contraction || node.is_input;
        for &operand in module.operands(id) {
            let operand = nodes.get_mut(operand);
            operand.is_used = true;
            operand.leads_elsewhere |= !goes_in;
        }
    }
    let mut found = Vec::new();
    for id in module.instructions(computation) {
        let comes_out = |&operand: &InstId| {
            let is_made = facts.role(operand).is_contraction || nodes[operand].is_output;
            is_made && module.uses(operand).all(|one| one.user == id)
        };
        let is_inlined = facts.role(id).is_inlined();
        let is_output = is_inlined
            && module.operands(id).iter().any(comes_out)
            && keeps_size(module.opcode(id));
        if is_output {
            nodes.get_mut(id).is_output = true;
        }
        if is_output || nodes[id].is_input {
            found.push(id);
        }
    }
    found
}

/// The facts about an instruction in [`beside_contractions`].
#[derive(Clone, Copy, Default)]
struct KernelNode {
    /// Whether any instruction reads the value.
    is_used: bool,
    /// Whether a user is no contraction, and no [input](Self::is_input) of one.
    leads_elsewhere: bool,
    /// Whether the instruction is inlined, and only contractions read it, directly or through such
    /// instructions.
    is_input: bool,
    /// Whether the instruction is inlined and computed from the result of a contraction that
    /// nothing else reads, directly or through such instructions.
    is_output: bool,
}

/// Checks whether an inlined op makes as many elements as it reads. A broadcast makes more than the
/// contraction does.
fn keeps_size(opcode: Opcode) -> bool {
    opcode.is_elementwise() || opcode == Opcode::Reshape
}

/// Counts the arithmetic operations of a contraction, a multiplication and an addition per product:
/// `2 * elements of the result * products summed per element`.
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
