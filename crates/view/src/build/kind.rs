//! The kinds of nodes.

use tilewright::Residency;
use tilewright::ir::{ArrayShape, Family, InstId, Module, Op, Opcode};
use tilewright::targets::{Alignment, MoveKind, Target};

use crate::picture::NodeKind;

/// Returns the kind of an instruction's node, given where its value lives. `is_stored` says whether it
/// lies in memory.
pub(super) fn of(
    module: &Module,
    id: InstId,
    target: &Target,
    residency: Residency,
    is_stored: bool,
) -> NodeKind {
    let op = module.op(id);
    let opcode = op.opcode();
    match op {
        Op::Parameter(_) => return NodeKind::Input,
        Op::Constant(_) => return NodeKind::Constant,
        Op::Reshape(_) | Op::DynamicReshape | Op::Transpose(_) => {
            // The model lets a small array have the layout of its reshape.
            let is_free = residency != Residency::Stored && target.alignment != Alignment::None;
            let moves = !is_free && moves(module, id, target);
            return if moves { NodeKind::Moves } else { NodeKind::Free };
        }
        Op::Broadcast(_) | Op::Iota(_) => {
            return if is_stored { NodeKind::Moves } else { NodeKind::Free };
        }
        Op::Bitcast | Op::BitcastConvert | Op::GetDimensionSize(_) | Op::SetDimensionSize(_) => {
            return NodeKind::Free;
        }
        Op::PartitionId | Op::ReplicaId => return NodeKind::Other,
        _ => {}
    }
    match opcode.family() {
        Family::Elementwise => NodeKind::Elementwise,
        Family::Shaping | Family::Indexing => NodeKind::Moves,
        Family::Contract => NodeKind::Contraction,
        Family::Window | Family::Reduce => NodeKind::Reduction,
        Family::Collective => NodeKind::Exchanges,
        Family::Control => match opcode {
            Opcode::Infeed | Opcode::Outfeed | Opcode::Send | Opcode::Recv => NodeKind::Exchanges,
            Opcode::CopyStart | Opcode::CopyDone => NodeKind::Moves,
            _ => NodeKind::Control,
        },
        Family::Random | Family::Linalg => NodeKind::Other,
    }
}

/// Checks whether a reshape or transpose moves elements on a target.
fn moves(module: &Module, id: InstId, target: &Target) -> bool {
    let from = module.operands(id).first().and_then(|&from| module.array_shape(from));
    let (Some(from), Some(to)) = (from, module.array_shape(id)) else { return true };
    let kind = match module.op(id) {
        Op::Transpose(attrs) => target.transpose_cost(from, to, &attrs.dimensions).kind,
        _ if target.alignment == Alignment::None => linear_reshape(from, to),
        _ => target.reshape_cost(from, to).kind,
    };
    kind == MoveKind::Realigns
}

/// On a linear memory, a reshape moves elements only if a layout is not row major.
fn linear_reshape(from: &ArrayShape, to: &ArrayShape) -> MoveKind {
    let rows = [from, to].iter().all(|array| array.has_default_layout());
    if rows { MoveKind::Free } else { MoveKind::Realigns }
}

/// Checks whether a value that could be computed where it is used is stored, because a user does not
/// compute it or because it is a result of the module.
pub(super) fn is_stored_for_a_user(module: &Module, id: InstId, target: &Target) -> bool {
    let is_result = module.is_root(id)
        && module.instruction(id).parent().is_some_and(|parent| Some(parent) == module.entry());
    is_result
        || module.uses(id).any(|one| {
            let opcode = module.opcode(one.user);
            match opcode.family() {
                Family::Elementwise | Family::Shaping | Family::Reduce | Family::Window => false,
                Family::Contract => !target.fuses_contractions,
                Family::Control => {
                    matches!(opcode, Opcode::Tuple | Opcode::While | Opcode::CustomCall)
                }
                _ => true,
            }
        })
}
