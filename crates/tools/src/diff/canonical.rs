//! An order of the instructions of a computation that depends on its graph alone.

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright::ir::{CompId, Entity as _, InstId};

use super::interner::{Class, number};
use super::side::{Side, control_predecessors};

/// Returns the instructions of a computation: those that the root needs in the order of a
/// depth-first walk, then those that nothing uses, sorted by class, each after what it needs.
///
/// Isomorphic computations have the same order, unless they have unused instructions of equal
/// class that share operands in different ways.
pub(super) fn order(side: &Side<'_>, id: CompId) -> Vec<InstId> {
    let module = side.module;
    let root = module.computation(id).root();
    let unused = |&id: &InstId| module.instruction(id).use_count() == 0 && Some(id) != root;
    let mut sinks: Vec<InstId> = module.instructions(id).filter(unused).collect();
    sinks.sort_by_key(|id| side.exact[id.index()]);
    let mut walk = PostOrder { side, seen: FxHashSet::default(), order: Vec::new() };
    walk.seen.reserve(module.computation(id).len());
    for sink in root.into_iter().chain(sinks) {
        walk.visit(sink);
    }
    walk.order
}

struct PostOrder<'s, 'm> {
    side: &'s Side<'m>,
    seen: FxHashSet<InstId>,
    order: Vec<InstId>,
}

impl PostOrder<'_, '_> {
    /// Adds an instruction after all that it needs. Keeps its own stack: chains can be long.
    fn visit(&mut self, id: InstId) {
        let module = self.side.module;
        let mut stack = vec![(id, 0)];
        if !self.seen.insert(id) {
            return;
        }
        while let Some((id, next)) = stack.pop() {
            match module.operands(id).get(next) {
                Some(&operand) => {
                    stack.push((id, next + 1));
                    if self.seen.insert(operand) {
                        stack.push((operand, 0));
                    }
                }
                None => self.order.push(id),
            }
        }
    }
}

/// Describes the graph of a computation in full, given the classes of its instructions and of the
/// computations called: equal descriptions mean isomorphic computations.
pub(super) fn body(
    side: &Side<'_>,
    id: CompId,
    order: &[InstId],
    labels: &[Class],
    bodies: &FxHashMap<CompId, Class>,
) -> Vec<u32> {
    let module = side.module;
    let places: FxHashMap<InstId, u32> =
        order.iter().enumerate().map(|(place, &id)| (id, number(place))).collect();
    let place = |id: InstId| places.get(&id).copied().unwrap_or(u32::MAX);
    let mut body = vec![module.computation(id).root().map_or(u32::MAX, place)];
    for &id in order {
        body.push(labels[id.index()]);
        body.push(number(module.operands(id).len()));
        body.extend(module.operands(id).iter().map(|&operand| place(operand)));
        body.extend(
            module.called(id).iter().map(|callee| bodies.get(callee).copied().unwrap_or(0)),
        );
        let mut before: Vec<u32> =
            control_predecessors(module, id).into_iter().map(place).collect();
        before.sort_unstable();
        body.push(number(before.len()));
        body.extend(before);
    }
    body
}
