//! Operations whose results nothing uses.

use rustc_hash::FxHashMap;

use crate::mlir::{Attribute, Block, Operation, Value};

/// Counts the uses of each value in an operation.
pub(super) fn count(operation: &Operation) -> FxHashMap<Value, usize> {
    let mut uses = FxHashMap::default();
    for_each(operation, &mut |operand| *uses.entry(operand).or_default() += 1);
    uses
}

fn for_each(operation: &Operation, f: &mut impl FnMut(Value)) {
    let mut rest = vec![operation];
    while let Some(operation) = rest.pop() {
        operation.operands.iter().copied().for_each(&mut *f);
        let blocks = operation.regions.iter().flat_map(|region| &region.blocks);
        rest.extend(blocks.flat_map(|block| &block.operations));
    }
}

/// Removes operations without effect whose results nothing uses. Returns whether there were any.
pub(super) fn remove(function: &mut Operation) -> bool {
    let mut uses = count(function);
    let mut removed = false;
    for block in function.regions.iter_mut().flat_map(|region| &mut region.blocks) {
        removed |= remove_in(block, &mut uses, 0);
    }
    removed
}

fn remove_in(block: &mut Block, uses: &mut FxHashMap<Value, usize>, depth: usize) -> bool {
    if depth > super::super::MAX_DEPTH {
        return false;
    }
    let before = block.operations.len();
    let mut removed = false;
    let mut kept = Vec::with_capacity(before);
    for mut operation in std::mem::take(&mut block.operations).into_iter().rev() {
        let is_used = operation.results.iter().any(|r| uses.get(r).is_some_and(|&n| n > 0));
        if !is_used && is_pure(&operation) {
            for_each(&operation, &mut |operand| {
                if let Some(count) = uses.get_mut(&operand) {
                    *count = count.saturating_sub(1);
                }
            });
            removed = true;
            continue;
        }
        for inner in operation.regions.iter_mut().flat_map(|region| &mut region.blocks) {
            removed |= remove_in(inner, uses, depth + 1);
        }
        kept.push(operation);
    }
    kept.reverse();
    block.operations = kept;
    removed
}

/// Operations that do more than compute their results.
const EFFECTS: &[&str] = &[
    "all_gather",
    "all_reduce",
    "all_to_all",
    "collective_broadcast",
    "collective_permute",
    "composite",
    "infeed",
    "outfeed",
    "recv",
    "reduce_scatter",
    "return",
    "rng",
    "send",
];

/// Checks whether an operation and its regions only compute results.
fn is_pure(operation: &Operation) -> bool {
    let mut rest = vec![(operation, true)];
    while let Some((operation, is_outermost)) = rest.pop() {
        let pure = match operation.name.split_once('.') {
            Some(("stablehlo", "custom_call")) => {
                operation.attribute("has_side_effect") != Some(&Attribute::Bool(true))
            }
            Some(("stablehlo" | "mhlo", "return")) => !is_outermost,
            Some(("stablehlo", name)) => !EFFECTS.contains(&name),
            Some(("chlo", _)) => true,
            Some(("mhlo", name)) => crate::rows::ROWS.iter().any(|row| {
                row.name.strip_prefix("mhlo.") == Some(name) && row.opcode.is_elementwise()
            }),
            _ => false,
        };
        if !pure {
            return false;
        }
        let blocks = operation.regions.iter().flat_map(|region| &region.blocks);
        rest.extend(blocks.flat_map(|block| &block.operations).map(|inner| (inner, false)));
    }
    true
}
