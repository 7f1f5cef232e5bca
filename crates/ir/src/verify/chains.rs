//! Ops that end what another one began have that one as operand.

use super::Report;
use crate::diag::Place;
use crate::entity::InstId;
use crate::module::Module;
use crate::ops::{Op, Opcode};

pub(super) fn check(module: &Module, report: &mut Report) {
    for &computation in module.computations() {
        for id in module.instructions(computation) {
            if let Some(message) = judge(module, id) {
                report.add(super::OPERAND, Place::Instruction(id), message);
            }
        }
    }
}

/// The ops that may stand before this one in its chain. Transfers are not
/// among them: their ends may lie in different turns of a loop.
fn beginnings(opcode: Opcode) -> &'static [Opcode] {
    match opcode {
        Opcode::AsyncUpdate | Opcode::AsyncDone => &[Opcode::AsyncStart, Opcode::AsyncUpdate],
        Opcode::CopyDone => &[Opcode::CopyStart],
        _ => &[],
    }
}

fn judge(module: &Module, id: InstId) -> Option<String> {
    let (opcode, operand) = (module.opcode(id), *module.operands(id).first()?);
    let beginnings = beginnings(opcode);
    if beginnings.is_empty() {
        return None;
    }
    let name = module.name_of(operand);
    if !beginnings.contains(&module.opcode(operand)) {
        let wanted: Vec<String> = beginnings.iter().map(|b| format!("`{b}`")).collect();
        let (wanted, given) = (wanted.join(" or "), module.opcode(operand));
        return Some(format!("`{opcode}` takes what {wanted} yields, but `{name}` is `{given}`"));
    }
    let (Op::AsyncUpdate(own) | Op::AsyncDone(own)) = module.op(id) else { return None };
    let (Op::AsyncStart(before) | Op::AsyncUpdate(before)) = module.op(operand) else {
        return None;
    };
    // Where an op of the chain does not say what runs, the first one does.
    let differ = own.calls.is_some() && before.calls.is_some() && own.calls != before.calls;
    differ.then(|| format!("`{opcode}` names another computation than `{name}`, which it awaits"))
}
