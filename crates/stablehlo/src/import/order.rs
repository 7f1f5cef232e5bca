//! Puts instructions in the order in which XLA prints them.

use rustc_hash::FxHashSet;
use tilewright_ir::{CompId, InstId, Module};

/// Orders each computation: depth first from the values without users, operands first.
pub(super) fn sort(module: &mut Module) {
    for computation in module.computations().to_vec() {
        let order = post_order(module, computation);
        // The new order has the same instructions with operands first, so this succeeds.
        let _ = module.order_instructions(computation, &order);
    }
}

fn post_order(module: &Module, computation: CompId) -> Vec<InstId> {
    let mut order = Vec::new();
    let mut begun = FxHashSet::default();
    let mut done = FxHashSet::default();
    for id in module.instructions(computation) {
        if module.instruction(id).use_count() > 0 {
            continue;
        }
        let mut rest = vec![id];
        while let Some(&id) = rest.last() {
            if begun.insert(id) {
                rest.extend(module.operands(id).iter().rev().filter(|id| !begun.contains(id)));
            } else {
                rest.pop();
                if done.insert(id) {
                    order.push(id);
                }
            }
        }
    }
    order
}
