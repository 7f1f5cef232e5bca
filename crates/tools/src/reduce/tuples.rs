//! Leaves out elements of tuples: what loops carry, and what calls yield.

use std::collections::{BTreeMap, BTreeSet};

use tilewright::ir::ops::control::GetTupleElementAttrs;
use tilewright::ir::{CompId, InstId, Module, Op, Shape};

use super::draft::{Draft, DraftRoot, Stand};
use super::search::{Ended, Search};
use super::walk::{all_instructions, callers, elements_taken, only_caller};

pub(super) fn run(search: &mut Search<'_>) -> Result<bool, Ended> {
    let drops_unused = search.drops_unused;
    search.sweep(
        "tuples",
        &|module| {
            let callers = callers(module);
            let only = |callee| only_caller(&callers, callee).is_some();
            let elements = |id| {
                let steering = steering(module, id);
                let all = 0..width(module, id, &only);
                all.filter(move |element| !steering.contains(element))
                    .map(move |element| (id, element))
            };
            all_instructions(module).flat_map(elements).collect()
        },
        &|module, chunk: &[(InstId, usize)]| {
            let mut draft = Draft { drops_unused, ..Draft::default() };
            let mut dropped: BTreeMap<InstId, BTreeSet<usize>> = BTreeMap::new();
            for &(id, element) in chunk {
                dropped.entry(id).or_default().insert(element);
            }
            for (id, dropped) in dropped {
                narrow(module, id, &dropped, &mut draft)?;
            }
            draft.write(module)
        },
    )
}

/// Returns the number of elements of which some can be left out: 0 unless all users take single
/// elements, and all places that make the tuple are known.
fn width(module: &Module, id: InstId, only_caller: &dyn Fn(CompId) -> bool) -> usize {
    let Some(elements) = module.shape(id).as_tuple() else { return 0 };
    let callees = module.called(id);
    let is_in_entry = module.instruction(id).parent() == module.entry();
    let is_fit = match module.op(id) {
        Op::While(attrs) => {
            let init = module.operands(id).first();
            init.is_some_and(|&init| is_own_state(module, init, is_in_entry))
                && takes_elements(module, attrs.condition, false)
                && takes_elements(module, attrs.body, true)
        }
        Op::Call(_) | Op::Fusion(_) | Op::Conditional(_) => {
            callees.iter().all(|&callee| makes_tuple(module, callee))
        }
        _ => false,
    };
    let is_fit = is_fit
        && callees.iter().all(|&callee| only_caller(callee))
        && (is_in_entry || !module.is_root(id));
    if is_fit && elements_taken(module, id).is_some() { elements.len() } else { 0 }
}

/// Checks whether a loop alone begins with a tuple, which is made for it or is a parameter of the
/// entry.
fn is_own_state(module: &Module, init: InstId, is_in_entry: bool) -> bool {
    let is_known = match module.op(init) {
        Op::Tuple => true,
        Op::Parameter(_) => is_in_entry,
        _ => false,
    };
    is_known && module.uses(init).count() == 1
}

/// Checks whether a computation takes single elements of its parameter, and if it is the body of a
/// loop, yields a tuple of values or the parameter itself.
fn takes_elements(module: &Module, computation: CompId, is_body: bool) -> bool {
    let Some(&state) = module.computation(computation).parameters().first() else { return false };
    elements_taken(module, state).is_some()
        && (!is_body || module.is_root(state) || makes_tuple(module, computation))
}

/// Returns the elements that decide whether a loop goes on: without them it may never end.
fn steering(module: &Module, id: InstId) -> BTreeSet<usize> {
    let Op::While(attrs) = module.op(id) else { return BTreeSet::new() };
    let state = module.computation(attrs.condition).parameters().first();
    let taken = state.and_then(|&state| elements_taken(module, state)).unwrap_or_default();
    let used = taken.into_iter().filter(|&(id, _)| module.is_live(id));
    used.map(|(_, element)| element).collect()
}

fn makes_tuple(module: &Module, computation: CompId) -> bool {
    let root = module.computation(computation).root();
    root.is_some_and(|root| matches!(module.op(root), Op::Tuple))
}

/// Leaves out elements of the result of a loop, a call, a fusion or a conditional.
fn narrow(module: &Module, id: InstId, dropped: &BTreeSet<usize>, draft: &mut Draft) -> Option<()> {
    let shape = narrowed(module.shape(id), dropped)?;
    draft.shapes.insert(id, shape.clone());
    let is_entry = module.instruction(id).parent() == module.entry();
    let init = match module.op(id) {
        Op::While(attrs) => {
            let init = *module.operands(id).first()?;
            let is_made = matches!(module.op(init), Op::Tuple);
            if is_made {
                narrow_tuple(module, init, dropped, draft)?;
            } else {
                draft.shapes.insert(init, shape.clone());
            }
            for callee in [attrs.condition, attrs.body] {
                let state = *module.computation(callee).parameters().first()?;
                draft.shapes.insert(state, shape.clone());
                renumber(module, state, dropped, draft, &|_| Some(Stand::Zero))?;
            }
            narrow_root(module, attrs.body, dropped, draft)?;
            is_made.then(|| module.operands(init))
        }
        _ => {
            for callee in module.called(id) {
                narrow_root(module, callee, dropped, draft)?;
            }
            None
        }
    };
    renumber(module, id, dropped, draft, &|element| match init {
        Some(init) => init.get(element).copied().map(Stand::Value),
        None if is_entry => Some(Stand::Parameter),
        None => Some(Stand::Zero),
    })
}

/// Gives the users of the remaining elements their new numbers, and those of others a stand.
fn renumber(
    module: &Module,
    tuple: InstId,
    dropped: &BTreeSet<usize>,
    draft: &mut Draft,
    stand: &dyn Fn(usize) -> Option<Stand>,
) -> Option<()> {
    for (user, element) in elements_taken(module, tuple)? {
        if dropped.contains(&element) {
            draft.stands.insert(user, stand(element)?);
        } else {
            let before = dropped.range(..element).count();
            let index = i64::try_from(element.saturating_sub(before)).ok()?;
            let op = Op::GetTupleElement(Box::new(GetTupleElementAttrs { index }));
            draft.ops.insert(user, op);
        }
    }
    Some(())
}

fn narrowed(shape: &Shape, dropped: &BTreeSet<usize>) -> Option<Shape> {
    let elements = shape.as_tuple()?.iter().enumerate();
    let kept = elements.filter(|(element, _)| !dropped.contains(element));
    Some(Shape::Tuple(kept.map(|(_, shape)| shape.clone()).collect()))
}

fn kept_operands(module: &Module, tuple: InstId, dropped: &BTreeSet<usize>) -> Vec<InstId> {
    let operands = module.operands(tuple).iter().enumerate();
    operands.filter(|(element, _)| !dropped.contains(element)).map(|(_, &id)| id).collect()
}

fn narrow_tuple(
    module: &Module,
    tuple: InstId,
    dropped: &BTreeSet<usize>,
    draft: &mut Draft,
) -> Option<()> {
    draft.shapes.insert(tuple, narrowed(module.shape(tuple), dropped)?);
    draft.operands.insert(tuple, kept_operands(module, tuple, dropped));
    Some(())
}

fn narrow_root(
    module: &Module,
    callee: CompId,
    dropped: &BTreeSet<usize>,
    draft: &mut Draft,
) -> Option<()> {
    let root = module.computation(callee).root()?;
    if !matches!(module.op(root), Op::Tuple) {
        // The state of a loop, which its parameter hands on.
        return Some(());
    }
    draft.roots.insert(callee, DraftRoot::Tuple(kept_operands(module, root, dropped)));
    Some(())
}
