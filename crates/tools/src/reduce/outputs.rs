//! Computes less: fewer elements of the result, or only the first instructions.

use std::collections::HashMap;

use tilewright::ir::{InstId, Module, Op};

use super::draft::{Draft, DraftRoot};
use super::search::{Ended, Search};
use super::walk::{entry_instructions, is_leaf};

/// The most instructions of an entry of which each is tried as the root.
const FEW: usize = 64;

pub(super) fn run(search: &mut Search<'_>) -> Result<bool, Ended> {
    let mut any = elements(search)?;
    any |= cones(search)?;
    any |= prefixes(search)?;
    any |= elements(search)?;
    any |= roots(search)?;
    Ok(any)
}

/// Returns the elements of the entry's result, if it is made as a tuple.
fn root_elements(module: &Module) -> Option<&[InstId]> {
    let root = module.computation(module.entry()?).root()?;
    matches!(module.op(root), Op::Tuple).then(|| module.operands(root))
}

fn rooted(module: &Module, root: DraftRoot, drops_unused: bool) -> Option<Module> {
    let roots = [(module.entry()?, root)].into_iter().collect();
    Draft { roots, drops_unused, ..Draft::default() }.write(module)
}

/// Drops elements of the root tuple.
pub(super) fn elements(search: &mut Search<'_>) -> Result<bool, Ended> {
    let drops_unused = search.drops_unused;
    search.sweep(
        "outputs",
        &|module| (0..root_elements(module).map_or(0, <[InstId]>::len)).collect(),
        &|module, dropped: &[usize]| {
            let elements = root_elements(module)?.iter().enumerate();
            let rest = elements.filter(|(place, _)| !dropped.contains(place));
            let rest: Vec<InstId> = rest.map(|(_, &id)| id).collect();
            if rest.is_empty() {
                None
            } else {
                rooted(module, DraftRoot::Tuple(rest), drops_unused)
            }
        },
    )
}

/// Makes an instruction in the middle the only result: the one with the longest chain of operands among
/// those before a cut, again and again. One result is computed and judged faster than all values that
/// cross the cut, which [`prefixes`] keeps.
fn cones(search: &mut Search<'_>) -> Result<bool, Ended> {
    let drops_unused = search.drops_unused;
    let mut any = false;
    loop {
        let deepest = deepest(&search.best);
        let lengths = lengths(deepest.len());
        let make = |module: &Module, number: usize| {
            let last = lengths.get(number)?.checked_sub(1)?;
            rooted(module, DraftRoot::Of(*deepest.get(last)?), drops_unused)
        };
        if search.first("outputs", lengths.len(), &make)?.is_none() {
            return Ok(any);
        }
        any = true;
    }
}

/// Returns for every instruction of the entry the one with the longest chain of operands among it and
/// those before it; the later one of two that are alike.
fn deepest(module: &Module) -> Vec<InstId> {
    let mut depths: HashMap<InstId, usize> = HashMap::new();
    let mut found: Option<(usize, InstId)> = None;
    let through = entry_instructions(module).map(|id| {
        let operands = module.operands(id).iter().filter_map(|id| depths.get(id));
        let depth = operands.max().map_or(0, |depth| depth.saturating_add(1));
        depths.insert(id, depth);
        let (_, deepest) = *found.insert(match found {
            Some((most, before)) if most > depth => (most, before),
            Some(_) | None => (depth, id),
        });
        deepest
    });
    through.collect()
}

/// Returns the lengths at which a list is cut: a quarter, a half, three quarters, and so on.
fn lengths(count: usize) -> Vec<usize> {
    let mut lengths = vec![count / 4];
    let mut dropped = count / 2;
    while dropped > 0 {
        lengths.push(count.saturating_sub(dropped));
        dropped /= 2;
    }
    lengths
}

/// Leaves out the last instructions: three quarters of them, a half, a quarter, an eighth and so on,
/// again and again. What the first ones compute for them becomes the result.
fn prefixes(search: &mut Search<'_>) -> Result<bool, Ended> {
    let drops_unused = search.drops_unused;
    let mut any = false;
    loop {
        let lengths = lengths(entry_instructions(&search.best).count());
        let make = |module: &Module, number: usize| {
            let root = result_of_prefix(module, *lengths.get(number)?)?;
            rooted(module, root, drops_unused)
        };
        if search.first("outputs", lengths.len(), &make)?.is_none() {
            return Ok(any);
        }
        any = true;
    }
}

fn result_of_prefix(module: &Module, length: usize) -> Option<DraftRoot> {
    let all: Vec<InstId> = entry_instructions(module).collect();
    let (prefix, rest) = all.split_at_checked(length)?;
    let rest: std::collections::HashSet<InstId> = rest.iter().copied().collect();
    let is_needed = |&id: &InstId| {
        let is_used = module.uses(id).any(|found| rest.contains(&found.user));
        !is_leaf(module, id) && (is_used || module.is_root(id))
    };
    let needed: Vec<InstId> = prefix.iter().copied().filter(is_needed).collect();
    match needed.as_slice() {
        [] => None,
        [only] => Some(DraftRoot::Of(*only)),
        _ => Some(DraftRoot::Tuple(needed)),
    }
}

/// Makes another instruction of a small module the root.
fn roots(search: &mut Search<'_>) -> Result<bool, Ended> {
    let drops_unused = search.drops_unused;
    let mut any = false;
    loop {
        let is_other = |&id: &InstId| !search.best.is_root(id);
        let choices: Vec<InstId> =
            entry_instructions(&search.best).take(FEW).filter(is_other).collect();
        let make = |module: &Module, number: usize| {
            rooted(module, DraftRoot::Of(*choices.get(number)?), drops_unused)
        };
        let is_small = search.size.instructions <= FEW;
        if !is_small || search.first("outputs", choices.len(), &make)?.is_none() {
            return Ok(any);
        }
        any = true;
    }
}
