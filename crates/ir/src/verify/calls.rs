//! Checks attributes of calls and other ops: composites, attributes without a meaning for the
//! op, and asynchronous computations.

use rustc_hash::FxHashSet;

use super::Report;
use super::asynchronous::MAIN;
use crate::diag::DiagnosticPlace;
use crate::entity::{CompId, InstId};
use crate::metadata::Extras;
use crate::module::Module;
use crate::ops::{Op, Opcode};

pub(super) fn check(module: &Module, id: InstId, report: &mut Report) {
    let Some(extras) = module.extras(id) else {
        if is_composite(module.op(id)) {
            report.add(super::COMPOSITE, DiagnosticPlace::Instruction(id), NO_NAME);
        }
        return;
    };
    if is_composite(module.op(id))
        && let Some(message) = wrong_composite(extras)
    {
        report.add(super::COMPOSITE, DiagnosticPlace::Instruction(id), message);
    }
    for (name, value) in &extras.other {
        if is_misplaced(module, id, name, &value.0) {
            let opcode = module.opcode(id);
            let message = format!("`{opcode}` has no `{name}`; leave it out");
            report.add(super::MISPLACED, DiagnosticPlace::Instruction(id), message);
        }
    }
}

fn is_composite(op: &Op) -> bool {
    matches!(op, Op::Call(attrs) if attrs.is_composite)
}

const NO_NAME: &str = "a composite call has a name; write \
                       frontend_attributes={composite.name=\"dialect.op\"}";

fn wrong_composite(extras: &Extras) -> Option<String> {
    let value = |key: &str| {
        let mut all = extras.frontend_attributes.iter();
        all.find(|(name, _)| name == key).map(|(_, value)| &**value)
    };
    if value("composite.name").is_none_or(str::is_empty) {
        return Some(NO_NAME.into());
    }
    if value("composite.attributes").is_some_and(str::is_empty) {
        return Some("composite.attributes is empty; write \"{}\" where there are none".into());
    }
    let version = value("composite.version")?;
    let fits = version.trim().parse::<i64>().is_ok_and(|version| version >= 0);
    (!fits).then(|| format!("composite.version is \"{version}\", not a number from 0"))
}

/// Checks whether an unmodelled attribute requires something that the op cannot do.
fn is_misplaced(module: &Module, id: InstId, name: &str, value: &str) -> bool {
    let opcode = module.opcode(id);
    let spaceless = || value.chars().filter(|c| !c.is_whitespace()).collect::<String>();
    match name {
        "result_accuracy" => {
            let computes = opcode.is_elementwise() || opcode == Opcode::Copy;
            computes && module.operands(id).len() == 1 && spaceless() != "{mode=default}"
        }
        "output_to_operand_aliasing" => opcode == Opcode::Call && spaceless() != "{}",
        _ => false,
    }
}

/// Checks that an asynchronous op wraps one op, only sends and receives, or a group of
/// collectives that is marked as such.
pub(super) fn check_wrapped(module: &Module, report: &mut Report) {
    let mut seen: FxHashSet<CompId> = FxHashSet::default();
    let all = module.computations().iter().flat_map(|&c| module.instructions(c));
    for start in all.filter(|&id| module.opcode(id) == Opcode::AsyncStart) {
        for callee in module.called(start) {
            let thread = module.computation(callee).execution_thread();
            let is_main = thread.is_none_or(|thread| thread == MAIN);
            if is_main && seen.insert(callee) && !is_group(module, start) {
                check_one_op(module, callee, report);
            }
        }
    }
}

/// Checks whether a start is marked as running several collectives together.
fn is_group(module: &Module, start: InstId) -> bool {
    let named = |extras: &Extras| {
        extras.frontend_attributes.iter().any(|(name, _)| name == "_collectives_group")
    };
    module.extras(start).is_some_and(named)
}

fn check_one_op(module: &Module, computation: CompId, report: &mut Report) {
    let is_transfer = |id: InstId| {
        matches!(
            module.opcode(id),
            Opcode::Send | Opcode::Recv | Opcode::Bitcast | Opcode::Parameter | Opcode::Tuple
        )
    };
    let others: Vec<InstId> = module
        .instructions(computation)
        .filter(|&id| !module.is_root(id) && module.opcode(id) != Opcode::Parameter)
        .collect();
    let Some(&first) = others.first() else { return };
    // A barrier accepts tuples, and moves no elements.
    let moves_nothing = others.iter().all(|&id| module.opcode(id) == Opcode::GetTupleElement);
    if moves_nothing || module.instructions(computation).all(is_transfer) {
        return;
    }
    let message = format!(
        "`async-start` runs it, so it has parameters and one op; move `{}` out of it",
        module.name_of(first)
    );
    report.add(super::WRAPPED, DiagnosticPlace::Computation(computation), message);
}
