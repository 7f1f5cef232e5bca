//! What begins in one instruction and ends in another, and on which thread.

use super::Report;
use crate::diag::Place;
use crate::entity::InstId;
use crate::module::Module;
use crate::ops::control::{AsyncAttrs, TransferAttrs};
use crate::ops::{Op, Opcode};

/// The thread of computations that name none.
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

/// What an op that ends or continues another must be given. A transfer may end
/// in the turn of a loop after that in which it began; then its start comes as
/// an element of what the loop carries.
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

/// What must take what an op that only starts or continues yields: one of
/// these, once. A transfer may be carried out of a loop in a tuple.
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
        // What an asynchronous op wraps ends where that op does.
        [] if is_transfer && module.is_root(id) => return,
        &[user] if ends.contains(&module.opcode(user)) => return,
        // It ends something else, and that is said of it.
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
    report.add(super::ENDS, Place::Instruction(id), message);
}

/// A custom call that only says what comes first.
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
        report.add(super::PAIRING, Place::Instruction(id), message);
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
        report.add(super::PAIRING, Place::Instruction(id), message);
    }
}

/// An attribute with its value here and that of the start.
type Unlike = Option<(&'static str, String, String)>;

fn unlike_transfers(start: &TransferAttrs, done: &TransferAttrs) -> Unlike {
    if start.channel_id != done.channel_id {
        let value = |id: Option<i64>| id.map_or_else(|| "absent".to_owned(), |id| id.to_string());
        return Some(("channel_id", value(done.channel_id), value(start.channel_id)));
    }
    let hosts = (done.is_host_transfer, start.is_host_transfer);
    (hosts.0 != hosts.1).then(|| ("is_host_transfer", hosts.0.to_string(), hosts.1.to_string()))
}

/// Where both name their computation and thread, they name the same.
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

/// Whether what it calls runs as a part of the caller. A `call` may lead to
/// another thread, as XLA has it.
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
            report.add(super::THREAD, Place::Instruction(id), message);
        }
    }
}
