//! Computations: copies them to where they are called, and calls fewer of them.

use std::collections::HashMap;

use tilewright::ir::{CompId, InstId, Module, Op, Opcode, Shape};

use super::draft::{Draft, Inlined};
use super::search::{Ended, Search};
use super::walk::{all_instructions, callers};

/// How many times as many instructions a module may have with all calls inlined.
const MAX_GROWTH: usize = 3;

/// Inlines all that can be inlined at once, or at least all calls, even if the module becomes larger:
/// what is cut in the entry is then found by halves.
pub(super) fn inline_all(search: &mut Search<'_>) -> Result<bool, Ended> {
    let drops_unused = search.drops_unused;
    let make = |module: &Module, number: usize| {
        let is_call = |&id: &InstId| module.opcode(id) == Opcode::Call;
        let is_chosen = |id: &InstId| number == 0 || is_call(id);
        let chosen: Vec<(InstId, usize)> = all_instructions(module)
            .filter(is_chosen)
            .filter(|&id| !bodies(module, id).is_empty())
            .map(|id| (id, 0))
            .collect();
        if chosen.is_empty() { None } else { inlined(module, &chosen, drops_unused) }
    };
    Ok(search.first_of_any_size("calls", 2, &make)?.is_some())
}

/// Inlines calls, fusions, asynchronous computations, a branch of conditionals, and one turn of
/// loops.
pub(super) fn inline(search: &mut Search<'_>) -> Result<bool, Ended> {
    let drops_unused = search.drops_unused;
    search.sweep(
        "calls",
        &|module| {
            let choices = |id| (0..bodies(module, id).len()).map(move |choice| (id, choice));
            all_instructions(module).flat_map(choices).collect()
        },
        &|module, chunk: &[(InstId, usize)]| inlined(module, chunk, drops_unused),
    )
}

fn inlined(module: &Module, chosen: &[(InstId, usize)], drops_unused: bool) -> Option<Module> {
    let mut all: HashMap<InstId, Inlined> = HashMap::new();
    for &(id, choice) in chosen {
        let body = bodies(module, id).into_iter().nth(choice)?;
        all.entry(id).or_insert(body);
    }
    if !is_bounded(module, &all) {
        return None;
    }
    Draft { inlined: all, drops_unused, ..Draft::default() }.write(module)
}

/// Checks that the module stays small: computations that call each other twice grow fast.
fn is_bounded(module: &Module, inlined: &HashMap<InstId, Inlined>) -> bool {
    let most = module.instruction_count().saturating_mul(MAX_GROWTH).saturating_add(100);
    let mut lengths: HashMap<CompId, usize> = HashMap::new();
    let mut total = 0usize;
    for &computation in module.computations() {
        let length = module.instructions(computation).fold(0usize, |length, id| {
            let callee = inlined.get(&id).map(|inlined| inlined.callee);
            let own = callee.map_or(1, |callee| lengths.get(&callee).copied().unwrap_or(1));
            length.saturating_add(own)
        });
        lengths.insert(computation, length);
        total = total.saturating_add(length);
    }
    total <= most
}

/// Returns the computations that can be copied to the place of an instruction.
fn bodies(module: &Module, id: InstId) -> Vec<Inlined> {
    let operands = module.operands(id);
    let with = |callee: CompId, arguments: &[InstId]| {
        // A fusion may have operands for which it has no parameters.
        let taken = module.computation(callee).parameters().len();
        let arguments = arguments.get(..taken).unwrap_or(arguments).to_vec();
        Inlined { callee, arguments }
    };
    match module.op(id) {
        Op::Call(attrs) => vec![with(attrs.to_apply, operands)],
        Op::Fusion(attrs) => vec![with(attrs.calls, operands)],
        Op::While(attrs) => vec![with(attrs.body, operands)],
        Op::Conditional(_) => {
            let branches = module.called(id);
            let arguments = operands.get(1..).unwrap_or_default();
            let pairs = branches.iter().zip(arguments);
            pairs.map(|(&branch, &argument)| with(branch, &[argument])).collect()
        }
        Op::AsyncDone(_) => {
            let start = start_of(module, id);
            let found = start.and_then(|start| match module.op(start) {
                Op::AsyncStart(attrs) => Some(with(attrs.calls?, module.operands(start))),
                _ => None,
            });
            found.into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the start of what an `async-done` ends, if nothing comes between the two.
fn start_of(module: &Module, done: InstId) -> Option<InstId> {
    let start = *module.operands(done).first()?;
    (module.opcode(start) == Opcode::AsyncStart).then_some(start)
}

/// Calls the first of several computations that take and yield the same shapes in place of the
/// others.
pub(super) fn merge(search: &mut Search<'_>) -> Result<bool, Ended> {
    let drops_unused = search.drops_unused;
    search.sweep("computations", &mergeable, &|module, chunk: &[(CompId, CompId)]| {
        let to: HashMap<CompId, CompId> = chunk.iter().copied().collect();
        let mut draft = Draft { drops_unused, ..Draft::default() };
        let callers = callers(module);
        for id in to.keys().filter_map(|computation| callers.get(computation)).flatten() {
            let mut op = module.op(*id).clone();
            op.map_computations(&mut |callee| to.get(&callee).copied().unwrap_or(callee));
            draft.ops.insert(*id, op);
        }
        draft.write(module)
    })
}

/// Returns the computations that can be replaced, with the first that can stand for each.
fn mergeable(module: &Module) -> Vec<(CompId, CompId)> {
    let mut first: HashMap<(Vec<Shape>, Shape), CompId> = HashMap::new();
    let mut pairs = Vec::new();
    for &computation in module.computations() {
        let found = module.computation(computation);
        let Some(root) = found.root() else { continue };
        if module.entry() == Some(computation) {
            continue;
        }
        let taken = found.parameters().iter().map(|&id| module.shape(id).without_layout());
        let signature = (taken.collect(), module.shape(root).without_layout());
        match first.get(&signature) {
            Some(&other) => pairs.push((computation, other)),
            None => {
                first.insert(signature, computation);
            }
        }
    }
    pairs
}
