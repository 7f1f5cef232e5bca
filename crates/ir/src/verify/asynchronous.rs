//! Checks asynchronous ops, which start in one instruction and end in another, and their
//! threads.

use super::Report;
use crate::diag::DiagnosticPlace;
use crate::entity::InstId;
use crate::module::Module;
use crate::ops::control::{AsyncAttrs, TransferAttrs};
use crate::ops::{Op, Opcode};

/// The thread of computations that do not name one.
pub(super) const MAIN: &str = "main";

pub(super) fn check(module: &Module, id: InstId, report: &mut Report) {
    let opcode = module.opcode(id);
    if let Some(starts) = starts_of(opcode) {
        check_end(module, id, starts, report);
    }
    if let Some(ends) = ends_of(opcode) {
        check_user(module, id, ends, report);
    }
    if runs_where_it_stands(opcode) {
        check_thread(module, id, report);
    }
}

/// Returns the ops whose result an op that ends or continues another must take. A transfer may
/// end in the loop iteration after the one in which it starts; then its start is an element of
/// the loop's state.
fn starts_of(opcode: Opcode) -> Option<&'static [Opcode]> {
    Some(match opcode {
        Opcode::SendDone => &[Opcode::Send, Opcode::GetTupleElement],
        Opcode::RecvDone => &[Opcode::Recv, Opcode::GetTupleElement],
        Opcode::AsyncUpdate | Opcode::AsyncDone => &[Opcode::AsyncStart, Opcode::AsyncUpdate],
        Opcode::AllGatherDone => &[Opcode::AllGatherStart],
        Opcode::AllReduceDone => &[Opcode::AllReduceStart],
        Opcode::CollectivePermuteDone => &[Opcode::CollectivePermuteStart],
        Opcode::CopyDone => &[Opcode::CopyStart],
        _ => return None,
    })
}

/// Returns the ops of which exactly one must use the result of an op that starts or continues
/// another. A transfer may leave a loop in a tuple.
fn ends_of(opcode: Opcode) -> Option<&'static [Opcode]> {
    Some(match opcode {
        Opcode::Send => &[Opcode::SendDone, Opcode::Tuple],
        Opcode::Recv => &[Opcode::RecvDone, Opcode::Tuple],
        Opcode::AsyncStart | Opcode::AsyncUpdate => &[Opcode::AsyncUpdate, Opcode::AsyncDone],
        Opcode::AllGatherStart => &[Opcode::AllGatherDone],
        Opcode::AllReduceStart => &[Opcode::AllReduceDone],
        Opcode::CollectivePermuteStart => &[Opcode::CollectivePermuteDone],
        Opcode::CopyStart => &[Opcode::CopyDone],
        _ => return None,
    })
}

fn check_user(module: &Module, id: InstId, ends: &[Opcode], report: &mut Report) {
    let mut users = module.users(id);
    users.retain(|user| !only_orders(module, *user));
    let opcode = module.opcode(id);
    let is_transfer = matches!(opcode, Opcode::Send | Opcode::Recv);
    let message = match users.as_slice() {
        // An op wrapped by an asynchronous op ends where that op ends.
        [] if is_transfer && module.is_root(id) => return,
        &[user] if ends.contains(&module.opcode(user)) => return,
        // The user ends another op; `check_end` reports that.
        &[user] if starts_of(module.opcode(user)).is_some() => return,
        &[user] => format!(
            "`{opcode}` is taken by {}, but `{}` is `{}`",
            listed(ends),
            module.name_of(user),
            module.opcode(user)
        ),
        several => format!(
            "`{opcode}` is taken once, by {}, not by {} instructions",
            listed(ends),
            several.len()
        ),
    };
    report.add(super::ENDS, DiagnosticPlace::Instruction(id), message);
}

/// Returns a custom call that only defines an order.
fn only_orders(module: &Module, id: InstId) -> bool {
    matches!(module.op(id), Op::CustomCall(attrs) if attrs.custom_call_target == "control_dep")
}

fn listed(opcodes: &[Opcode]) -> String {
    let names: Vec<String> = opcodes.iter().map(|opcode| format!("`{opcode}`")).collect();
    names.join(" or ")
}

fn check_end(module: &Module, id: InstId, starts: &[Opcode], report: &mut Report) {
    let Some(&start) = module.operands(id).first() else { return };
    let (opcode, given) = (module.opcode(id), module.opcode(start));
    if !starts.contains(&given) {
        let message = format!(
            "`{opcode}` takes {}, but `{}` is `{given}`",
            listed(starts),
            module.name_of(start)
        );
        report.add(super::PAIRING, DiagnosticPlace::Instruction(id), message);
        return;
    }
    let problem = match (module.op(start), module.op(id)) {
        (Op::Send(start), Op::SendDone(done)) | (Op::Recv(start), Op::RecvDone(done)) => {
            unlike_transfers(start, done)
        }
        (
            Op::AsyncStart(start) | Op::AsyncUpdate(start),
            Op::AsyncUpdate(next) | Op::AsyncDone(next),
        ) => unlike_async(module, start, next),
        _ => None,
    };
    if let Some((what, here, there)) = problem {
        let start = module.name_of(start);
        let message = format!("{what} is {here}, but {there} in `{start}`, which it belongs to");
        report.add(super::PAIRING, DiagnosticPlace::Instruction(id), message);
    }
}

/// An attribute with its value here and its value in the start.
type Unlike = Option<(&'static str, String, String)>;

fn unlike_transfers(start: &TransferAttrs, done: &TransferAttrs) -> Unlike {
    if start.channel_id != done.channel_id {
        let value = |id: Option<i64>| id.map_or_else(|| "absent".to_owned(), |id| id.to_string());
        return Some(("channel_id", value(done.channel_id), value(start.channel_id)));
    }
    let hosts = (done.is_host_transfer, start.is_host_transfer);
    (hosts.0 != hosts.1).then(|| ("is_host_transfer", hosts.0.to_string(), hosts.1.to_string()))
}

/// Returns the difference between two ops that should name the same computation and the same
/// thread. An op that names none differs from no other.
fn unlike_async(module: &Module, start: &AsyncAttrs, next: &AsyncAttrs) -> Unlike {
    if let (Some(first), Some(second)) = (start.calls, next.calls)
        && first != second
    {
        let name = |id| format!("`{}`", module.computation(id).name());
        return Some(("calls", name(second), name(first)));
    }
    match (&start.async_execution_thread, &next.async_execution_thread) {
        (Some(first), Some(second)) if first != second => {
            Some(("async_execution_thread", format!("\"{second}\""), format!("\"{first}\"")))
        }
        _ => None,
    }
}

/// Checks whether the called computation runs on the caller's thread. A `call` may run on
/// another thread, as in XLA.
fn runs_where_it_stands(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::Conditional | Opcode::Fusion | Opcode::While)
}

fn check_thread(module: &Module, id: InstId, report: &mut Report) {
    let Some(parent) = module.instruction(id).parent() else { return };
    let here = module.computation(parent).execution_thread().unwrap_or(MAIN);
    for callee in module.called(id) {
        let computation = module.computation(callee);
        let there = computation.execution_thread().unwrap_or(MAIN);
        if here != there {
            let message = format!(
                "it runs on thread \"{here}\", but `{}` on \"{there}\"; use `async-start`",
                computation.name()
            );
            report.add(super::THREAD, DiagnosticPlace::Instruction(id), message);
        }
    }
}
