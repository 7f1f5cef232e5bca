//! Computes less: fewer elements of the result, or only the first instructions.

use tilewright_ir::{InstId, Module, Op};

use super::draft::{Draft, Root};
use super::search::{Ended, Search};
use super::walk::{entry_instructions, is_leaf};

/// The most instructions of an entry of which each is tried as the root.
const FEW: usize = 64;

pub(super) fn run(search: &mut Search<'_>) -> Result<bool, Ended> {
    let mut any = elements(search)?;
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

fn rooted(module: &Module, root: Root, drops_unused: bool) -> Option<Module> {
    let roots = [(module.entry()?, root)].into_iter().collect();
    Draft { roots, drops_unused, ..Draft::default() }.write(module)
}

/// Drops elements of the root tuple.
fn elements(search: &mut Search<'_>) -> Result<bool, Ended> {
    let drops_unused = search.drops_unused;
    search.sweep(
        "outputs",
        &|module| (0..root_elements(module).map_or(0, <[InstId]>::len)).collect(),
        &|module, dropped: &[usize]| {
            let elements = root_elements(module)?.iter().enumerate();
            let rest = elements.filter(|(place, _)| !dropped.contains(place));
            let rest: Vec<InstId> = rest.map(|(_, &id)| id).collect();
            if rest.is_empty() { None } else { rooted(module, Root::Tuple(rest), drops_unused) }
        },
    )
}

/// Leaves out the last instructions: a quarter, a half, or three quarters of them, again and again.
/// What the first ones compute for the others becomes the result.
fn prefixes(search: &mut Search<'_>) -> Result<bool, Ended> {
    let drops_unused = search.drops_unused;
    let mut any = false;
    loop {
        let count = entry_instructions(&search.best).count();
        if count < 8 {
            return Ok(any);
        }
        let make = |module: &Module, number: usize| {
            let length = count.saturating_mul(number.saturating_add(1)) / 4;
            let root = result_of_prefix(module, length)?;
            rooted(module, root, drops_unused)
        };
        if search.first("outputs", 3, &make)?.is_none() {
            return Ok(any);
        }
        any = true;
    }
}

fn result_of_prefix(module: &Module, length: usize) -> Option<Root> {
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
        [only] => Some(Root::Of(*only)),
        _ => Some(Root::Tuple(needed)),
    }
}

/// Makes an operand of the root the root, or in a small module any instruction.
fn roots(search: &mut Search<'_>) -> Result<bool, Ended> {
    let drops_unused = search.drops_unused;
    let mut any = false;
    loop {
        let choices = choices(&search.best);
        let make = |module: &Module, number: usize| {
            rooted(module, Root::Of(*choices.get(number)?), drops_unused)
        };
        if search.first("outputs", choices.len(), &make)?.is_none() {
            return Ok(any);
        }
        any = true;
    }
}

fn choices(module: &Module) -> Vec<InstId> {
    let all: Vec<InstId> = entry_instructions(module).collect();
    if all.len() <= FEW {
        return all.into_iter().filter(|&id| !module.is_root(id)).collect();
    }
    let root = module.entry().and_then(|entry| module.computation(entry).root());
    let mut choices: Vec<InstId> =
        root.map(|root| module.operands(root).to_vec()).unwrap_or_default();
    choices.truncate(FEW);
    choices
}
