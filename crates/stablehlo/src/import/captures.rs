//! The values that a region uses from outside.

use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashSet};

use crate::mlir::{Operation, Region, Value};

/// Returns the values that regions use from outside, in the order in which they are first used,
/// where the operations of an inner region come before the operation that has it.
pub(super) fn captured<'r>(regions: impl Iterator<Item = &'r Region> + Clone) -> Vec<Value> {
    let mut inside = FxHashSet::default();
    let mut used = IndexSet::with_hasher(FxBuildHasher);
    for region in regions {
        visit(region, &mut inside, &mut used);
    }
    used.retain(|value| !inside.contains(value));
    used.into_iter().collect()
}

/// A step of the walk: the operations of a region, or one operation after its regions.
enum RegionVisit<'r> {
    Region(&'r Region),
    Operation(&'r Operation),
    Uses(&'r Operation),
}

fn visit(
    region: &Region,
    inside: &mut FxHashSet<Value>,
    used: &mut IndexSet<Value, FxBuildHasher>,
) {
    let mut rest = vec![RegionVisit::Region(region)];
    while let Some(step) = rest.pop() {
        match step {
            RegionVisit::Region(region) => {
                for block in region.blocks.iter().rev() {
                    inside.extend(&block.arguments);
                    rest.extend(block.operations.iter().rev().map(RegionVisit::Operation));
                }
            }
            RegionVisit::Operation(operation) => {
                inside.extend(&operation.results);
                rest.push(RegionVisit::Uses(operation));
                rest.extend(operation.regions.iter().rev().map(RegionVisit::Region));
            }
            RegionVisit::Uses(operation) => used.extend(&operation.operands),
        }
    }
}
