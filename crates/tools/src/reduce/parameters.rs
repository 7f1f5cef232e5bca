//! Leaves out parameters: those that nothing uses, and those that another can stand for.

use std::collections::{HashMap, HashSet};

use tilewright::ir::{CompId, InstId, Module, Opcode, Shape};

use super::draft::{Draft, Stand};
use super::search::{Ended, Search};
use super::walk::{callers, entry_instructions, is_leaf};

/// Finds out whether the parameters of the entry may change. If nothing is unused yet, the module
/// is tried with one parameter more.
pub(super) fn probe(search: &mut Search<'_>) -> Result<(), Ended> {
    let unused = |module: &Module| {
        let entry = module.entry().map(|entry| module.computation(entry).parameters());
        entry.unwrap_or_default().iter().any(|&id| !module.is_live(id))
    };
    search.drops_unused = if unused(&search.best) {
        let make = |module: &Module, _: usize| {
            Draft { drops_unused: true, ..Draft::default() }.write(module)
        };
        search.first("unused parameters", 1, &make)?.is_some()
    } else {
        let probe = Draft { has_probe: true, ..Draft::default() }.write(&search.best);
        search.passes(probe)?
    };
    Ok(())
}

pub(super) fn run(search: &mut Search<'_>) -> Result<bool, Ended> {
    let mut any = merge(search)?;
    any |= of_entry(search)?;
    any |= of_callees(search)?;
    Ok(any)
}

/// Uses one parameter in place of others of its shape, and a parameter in place of repeated
/// constants.
fn merge(search: &mut Search<'_>) -> Result<bool, Ended> {
    if !search.drops_unused {
        return Ok(false);
    }
    search.sweep("parameters", &mergeable, &|module, chunk: &[(InstId, Option<InstId>)]| {
        let stand = |other: Option<InstId>| other.map_or(Stand::Parameter, Stand::Value);
        let stands = chunk.iter().map(|&(id, other)| (id, stand(other))).collect();
        Draft { stands, drops_unused: true, ..Draft::default() }.write(module)
    })
}

/// Returns leaves of the entry with a parameter before them that can stand for each. Constants
/// that are repeated can also become a new parameter.
fn mergeable(module: &Module) -> Vec<(InstId, Option<InstId>)> {
    let mut first: HashMap<Shape, InstId> = HashMap::new();
    let mut found = Vec::new();
    for id in entry_instructions(module).filter(|&id| is_leaf(module, id)) {
        let shape = module.shape(id).without_layout();
        let is_parameter = module.opcode(id) == Opcode::Parameter;
        match first.get(&shape) {
            Some(&other) => found.push((id, Some(other))),
            None if is_parameter => {
                first.insert(shape, id);
            }
            None if module.opcode(id) == Opcode::Broadcast => found.push((id, None)),
            None => {}
        }
    }
    found
}

/// Leaves out parameters of the entry that nothing uses, where not all can be left out.
fn of_entry(search: &mut Search<'_>) -> Result<bool, Ended> {
    if search.drops_unused {
        return Ok(false);
    }
    search.sweep(
        "unused parameters",
        &|module| {
            let entry = module.entry().map(|entry| module.computation(entry).parameters());
            let all = entry.unwrap_or_default().iter().copied();
            all.filter(|&id| !module.is_live(id)).collect()
        },
        &|module, chunk: &[InstId]| {
            let dropped = chunk.iter().copied().collect();
            Draft { dropped, ..Draft::default() }.write(module)
        },
    )
}

/// Leaves out parameters of calls and fusions that nothing in these uses.
fn of_callees(search: &mut Search<'_>) -> Result<bool, Ended> {
    let drops_unused = search.drops_unused;
    search.sweep("unused parameters", &unused, &|module, chunk: &[(CompId, InstId)]| {
        let dropped: HashSet<InstId> = chunk.iter().map(|&(_, parameter)| parameter).collect();
        let computations: HashSet<CompId> = chunk.iter().map(|&(id, _)| id).collect();
        let callers = callers(module);
        let mut draft = Draft { dropped, drops_unused, ..Draft::default() };
        for callee in computations {
            for &caller in callers.get(&callee).into_iter().flatten() {
                let parameters = module.computation(callee).parameters().iter();
                let given = module.operands(caller).iter().zip(parameters);
                let kept = given.filter(|(_, parameter)| !draft.dropped.contains(parameter));
                let operands = kept.map(|(&operand, _)| operand).collect();
                draft.operands.insert(caller, operands);
            }
        }
        draft.write(module)
    })
}

fn unused(module: &Module) -> Vec<(CompId, InstId)> {
    let callers = callers(module);
    let is_plain = |&id: &InstId| matches!(module.opcode(id), Opcode::Call | Opcode::Fusion);
    let mut found = Vec::new();
    for &computation in module.computations() {
        let Some(calls) = callers.get(&computation) else { continue };
        if calls.iter().all(is_plain) {
            let parameters = module.computation(computation).parameters().iter();
            let unused = parameters.filter(|&&id| !module.is_live(id));
            found.extend(unused.map(|&id| (computation, id)));
        }
    }
    found
}
