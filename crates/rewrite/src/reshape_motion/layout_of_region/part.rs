//! Chooses the part of a region that costs least in another layout, by a minimum cut.
//!
//! ```text
//! cost(M) = sum over v in M of laid(v) + sum over v not in M of left(v) + copies
//! ```
//!
//! A value that is read on the other side is copied once for all its readers there. A leaf, which
//! reads nothing in another layout, is made on each side that reads it. Only copies that turn tiles
//! are made.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use tilewright_ir::{InstId, Module, Op, Shape};

use super::plan::{LayoutPlan, is_read_within, laid_along, turns_tiles};
use super::reach::Member;
use crate::analysis::min_cut::{Cut, Node};
use crate::cost::{Cost, CostModel, Operand};

/// Returns the members to lay out; none, if the module is cheapest as it is.
pub(super) fn cheapest(module: &Module, members: &[Member], model: &CostModel<'_>) -> Vec<Member> {
    let plan = LayoutPlan::of(module, members);
    let (costs, _) = model.patch_costs(module, &plan.patch);
    let mut cut = Cut::default();
    let nodes: FxHashMap<InstId, Node> = members.iter().map(|one| (one.id, cut.node())).collect();
    let by_id = members.iter().map(|one| (one.id, one)).collect();
    let mut readers: FxHashMap<(InstId, usize), SmallVec<[Node; 4]>> = FxHashMap::default();
    for member in members {
        for (&operand, dim) in module.operands(member.id).iter().zip(&member.operands) {
            if let Some(dim) = *dim {
                readers.entry((operand, dim)).or_default().push(nodes[&member.id]);
            }
        }
    }
    let mut network = Network { module, model, cut, nodes, by_id, readers };
    for (member, &planned) in members.iter().zip(&plan.planned) {
        let laid = costs.get(planned).map_or(0.0, |cost: &Cost| cost.cycles);
        network.member(member, laid);
    }
    network.copies_in(members);
    let moved = network.cut.solve();
    let chosen = |member: &&Member| moved.has(network.nodes[&member.id]);
    let ids: FxHashSet<InstId> = members.iter().filter(chosen).map(|one| one.id).collect();
    if members.iter().all(|one| one.is_leaf(module) || !ids.contains(&one.id)) {
        return Vec::new();
    }
    members.iter().filter(chosen).cloned().collect()
}

struct Network<'a> {
    module: &'a Module,
    model: &'a CostModel<'a>,
    cut: Cut,
    nodes: FxHashMap<InstId, Node>,
    by_id: FxHashMap<InstId, &'a Member>,
    /// The members that read a value along a dim.
    readers: FxHashMap<(InstId, usize), SmallVec<[Node; 4]>>,
}

/// The copy of a value into another layout.
struct Copy {
    cycles: f64,
    /// The cycles that each reader pays to load it.
    load: f64,
}

impl Network<'_> {
    /// Adds the costs of a member, and of the copies between its result and readers on the other
    /// side.
    fn member(&mut self, member: &Member, laid: f64) {
        let (module, id) = (self.module, member.id);
        let node = self.nodes[&id];
        let left = self.model.of(module, id).cycles;
        let Some(dim) = member.result else {
            self.cut.costs(node, laid, left);
            return;
        };
        let readers = self.readers.get(&(id, dim)).cloned().unwrap_or_default();
        let is_read_within = is_read_within(module, id, member.result, &self.by_id);
        if member.is_leaf(module) {
            // Its own node is on the new side if any reader is.
            self.cut.costs(node, laid, 0.0);
            readers.iter().for_each(|&reader| self.cut.together(reader, node));
            if is_read_within {
                let all = self.cut.node();
                self.cut.costs(all, 0.0, left);
                readers.iter().for_each(|&reader| self.cut.together(all, reader));
            }
            return;
        }
        self.cut.costs(node, laid, left);
        let laid = laid_along(module, id, dim);
        let back = self.copy((id, dim), &laid, module.shape(id));
        let over = self.copy((id, dim), module.shape(id), &laid);
        if is_read_within {
            let arrived = self.cut.node();
            self.cut.apart(node, arrived, back.cycles);
            readers.iter().for_each(|&reader| self.cut.together(arrived, reader));
        } else {
            self.cut.costs(node, back.cycles, 0.0);
        }
        let wanted = self.cut.node();
        self.cut.apart(wanted, node, over.cycles);
        for &reader in &readers {
            self.cut.together(reader, wanted);
            self.cut.apart(node, reader, back.load);
            self.cut.apart(reader, node, over.load);
        }
    }

    /// Adds the costs of copies of values that no member makes, once for all readers of each.
    fn copies_in(&mut self, members: &[Member]) {
        let mut seen: FxHashSet<(InstId, usize)> = FxHashSet::default();
        for member in members {
            for (&operand, dim) in self.module.operands(member.id).iter().zip(&member.operands) {
                let Some(dim) = *dim else { continue };
                let is_made = self.by_id.get(&operand).is_some_and(|one| one.result == Some(dim));
                if is_made || !seen.insert((operand, dim)) {
                    continue;
                }
                let laid = laid_along(self.module, operand, dim);
                let copy = self.copy((operand, dim), self.module.shape(operand), &laid);
                let any = self.cut.node();
                self.cut.costs(any, copy.cycles, 0.0);
                for &reader in self.readers.get(&(operand, dim)).into_iter().flatten() {
                    self.cut.together(reader, any);
                }
            }
        }
    }

    /// The copy of a value between its layout and the one along a dim.
    fn copy(&self, (id, dim): (InstId, usize), from: &Shape, to: &Shape) -> Copy {
        if from == to {
            return Copy { cycles: 0.0, load: 0.0 };
        }
        if !turns_tiles(self.module, id, dim) {
            return Copy { cycles: f64::INFINITY, load: 0.0 };
        }
        let from =
            [Operand { value: self.model.with_footprint(from), fused: true, changes_minor: false }];
        let to = self.model.with_footprint(to);
        let cycles = self.model.instruction(&Op::Copy, to, &from).cycles;
        Copy { cycles, load: self.model.load(to).cycles }
    }
}
