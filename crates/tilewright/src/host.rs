//! The instructions that a backend leaves to the interpreter.

use std::collections::BTreeMap;

use tilewright_ir::Opcode;

/// Counts a host call; an instruction that moves no element is none.
pub(crate) fn count(calls: &mut BTreeMap<&'static str, u64>, opcode: Opcode) {
    // The instructions of a fusion are counted separately.
    let nothing = opcode.hands_on_its_operands()
        || matches!(opcode, Opcode::Constant | Opcode::Bitcast | Opcode::AfterAll | Opcode::Fusion);
    if !nothing {
        let calls = calls.entry(opcode.name()).or_default();
        *calls = calls.saturating_add(1);
    }
}
