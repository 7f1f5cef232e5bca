//! Chooses the part of a region whose move costs least.
//!
//! ```text
//! cost(M) = sum over v in M of moved(v) + sum over v not in M of left(v)
//!         + what it costs to bring values across
//! ```
//!
//! Each instruction of a region is computed in the old dims or in the new ones. A value that is
//! read on the other side is reshaped once for all readers there; a broadcast is made on each side
//! that reads it; a live-out costs what it costs on the side of its value. A minimum cut can
//! express each term: a cost is paid if one node is moved, if it is left, or if one node is moved
//! and one of several others is left. So the chosen part is optimal on the model of
//! [`crate::cost`]; all of the region and none of it are among the choices.
//!
//! With more than one list of new dims, each round moves the best part to one of them, and the
//! pipeline repeats to a fixpoint; every step lowers the cost, but the result may not be optimal.
//! It is no worse than the best choice between the region's dims and any single other list.

#[cfg(test)]
mod tests;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use tilewright_ir::{InstId, Module, Op, Opcode, Shape, Value};

use super::plan::{LiveInPiece, LiveOutPiece, Planner};
use crate::analysis::min_cut::{Cut, Node};
use crate::analysis::reduce::reshape_op;
use crate::analysis::region::{LiveIn, LiveOut};
use crate::cost::{Cost, CostModel, Operand, large_minor};

/// Returns the members of a region to move, if they are neither all nor none; takes the result
/// of [`Planner::patch_costs`].
pub(super) fn part_to_move(
    planner: &Planner<'_>,
    (costs, fused): &(Vec<Cost>, Vec<bool>),
) -> Option<FxHashSet<InstId>> {
    let region = planner.region;
    if region.interior.len() < 2 {
        return None;
    }
    let live_outs = region.live_outs.iter().zip(&planner.pieces.live_outs);
    let needed_back = live_outs.filter(|(_, piece)| piece.result.is_none());
    let needed_back = needed_back.map(|(live_out, _)| live_out.value).collect();
    let (cut, nodes) = (Cut::default(), FxHashMap::default());
    let model = planner.model;
    let slots = FxHashMap::default();
    let mut network = Network { planner, model, costs, fused, needed_back, cut, nodes, slots };
    network.build()?;
    let moved = network.cut.solve();
    let chosen = |id: &InstId| network.nodes.get(id).is_some_and(|&node| moved.has(node));
    let part: FxHashSet<InstId> = region.members.iter().copied().filter(|id| chosen(id)).collect();
    let moves = region.interior.iter().any(|id| part.contains(id));
    (moves && part.len() < region.members.len()).then_some(part)
}

struct Network<'a> {
    planner: &'a Planner<'a>,
    model: &'a CostModel<'a>,
    /// The costs of the planned instructions.
    costs: &'a [Cost],
    fused: &'a [bool],
    /// Values that a use outside needs in the old dims.
    needed_back: FxHashSet<InstId>,
    cut: Cut,
    /// The node of each member of the region.
    nodes: FxHashMap<InstId, Node>,
    /// For each value the interior instructions that read it, once for each operand.
    slots: FxHashMap<InstId, SmallVec<[Node; 4]>>,
}

/// The reshape of a value to the other side.
struct Crossing {
    cost: f64,
    /// The cycles that each reader there pays to load it.
    load: f64,
    fused: bool,
}

impl Network<'_> {
    fn build(&mut self) -> Option<()> {
        let region = self.planner.region;
        for &id in &region.members {
            let node = self.cut.node();
            self.nodes.insert(id, node);
        }
        for id in &region.interior {
            for &operand in self.planner.module.operands(*id) {
                self.slots.entry(operand).or_default().push(self.nodes[id]);
            }
        }
        for (&id, &planned) in region.interior.iter().zip(&self.planner.pieces.interior) {
            let moved = self.costs.get(planned)?.cycles;
            self.cut.costs(self.nodes[&id], moved, self.of(id));
        }
        for (live_in, piece) in region.live_ins.iter().zip(&self.planner.pieces.live_ins) {
            self.live_in(live_in, piece);
        }
        for &id in &region.interior {
            self.crossings(id)?;
        }
        for (live_out, piece) in region.live_outs.iter().zip(&self.planner.pieces.live_outs) {
            self.live_out(live_out, piece)?;
        }
        Some(())
    }

    fn module(&self) -> &Module {
        self.planner.module
    }

    fn of(&self, id: InstId) -> f64 {
        self.planner.cost_of(id)
    }

    fn sum(&self, planned: std::ops::Range<usize>) -> f64 {
        self.costs.get(planned).map_or(0.0, |costs| costs.iter().map(|cost| cost.cycles).sum())
    }

    /// Returns the interior instructions that read a value.
    fn readers(&self, id: InstId) -> SmallVec<[Node; 4]> {
        let mut readers = self.slots.get(&id).cloned().unwrap_or_default();
        // Repeated operands of one reader are neighbours.
        readers.dedup();
        readers
    }

    /// Adds a cost that is paid once if any of these nodes is moved.
    fn if_any_moved(&mut self, nodes: &[Node], cost: f64) {
        let any = self.cut.node();
        self.cut.costs(any, cost, 0.0);
        for &node in nodes {
            self.cut.together(node, any);
        }
    }

    /// Adds a cost that is paid once if any of these nodes is left.
    fn if_any_left(&mut self, nodes: &[Node], cost: f64) {
        let all = self.cut.node();
        self.cut.costs(all, 0.0, cost);
        for &node in nodes {
            self.cut.together(all, node);
        }
    }

    /// Adds the costs of a live-in, which is made on each side that reads it.
    fn live_in(&mut self, live_in: &LiveIn, piece: &LiveInPiece) {
        let mut readers = self.readers(live_in.id);
        let mut stays = piece.reads_live_in;
        match self.nodes.get(&live_in.id).copied() {
            // Uses outside the region are live-outs, on the side of the node.
            Some(node) if self.used_outside(live_in.id) => {
                stays |= self.needed_back.contains(&live_in.id);
                readers.push(node);
            }
            Some(node) => readers.iter().for_each(|&reader| self.cut.together(reader, node)),
            None => stays |= self.used_outside(live_in.id),
        }
        let made = self.sum(piece.planned.clone()) - piece.also;
        self.if_any_moved(&readers, made - piece.spared);
        if !stays {
            let now = self.of(live_in.id);
            self.if_any_left(&readers, now - piece.spared);
        }
    }

    fn used_outside(&self, id: InstId) -> bool {
        let within = self.slots.get(&id).map_or(0, SmallVec::len);
        self.module().is_root(id) || self.module().instruction(id).use_count() > within
    }

    /// Adds a cost that is paid once if `node` is moved and any of the readers is left.
    fn once_across(&mut self, node: Node, readers: &[Node], cost: f64) {
        let arrived = self.cut.node();
        self.cut.apart(node, arrived, cost);
        for &reader in readers {
            self.cut.together(arrived, reader);
        }
    }

    /// Adds a cost that is paid once if `node` is left and any of the readers is moved.
    fn once_over(&mut self, node: Node, readers: &[Node], cost: f64) {
        let wanted = self.cut.node();
        self.cut.apart(wanted, node, cost);
        for &reader in readers {
            self.cut.together(reader, wanted);
        }
    }

    /// Adds the costs for readers of an interior value on the other side.
    fn crossings(&mut self, id: InstId) -> Option<()> {
        let (node, readers) = (self.nodes[&id], self.readers(id));
        let (back, over) = (self.back(id)?, self.over(id)?);
        if self.needed_back.contains(&id) {
            self.cut.costs(node, back.cost, 0.0);
        } else {
            self.once_across(node, &readers, back.cost);
        }
        // If the value is left, a reshape of it may already exist.
        let twin = self.planner.reshape_to(id, &self.planner.new_shape(id)?);
        let cost = if twin.is_some() { 0.0 } else { over.cost };
        self.once_over(node, &readers, cost);
        for reader in self.slots.get(&id).cloned().unwrap_or_default() {
            self.cut.apart(node, reader, back.load);
            self.cut.apart(reader, node, over.load);
        }
        Some(())
    }

    /// Returns the reshape from the new dims to the old ones.
    fn back(&self, id: InstId) -> Option<Crossing> {
        Some(self.crossing(&self.planner.new_shape(id)?, self.module().shape(id)))
    }

    /// Returns the reshape from the old dims to the new ones.
    fn over(&self, id: InstId) -> Option<Crossing> {
        Some(self.crossing(self.module().shape(id), &self.planner.new_shape(id)?))
    }

    fn crossing(&self, from: &Shape, to: &Shape) -> Crossing {
        let operand =
            [Operand { value: self.model.with_footprint(from), fused: true, changes_minor: false }];
        let (op, to) = (reshape_op(), self.model.with_footprint(to));
        let fused = self.model.fuses(&op, to.shape, &operand);
        let load = if fused { 0.0 } else { self.model.load(to).cycles };
        Crossing { cost: self.model.instruction(&op, to, &operand).cycles, load, fused }
    }

    fn live_out(&mut self, live_out: &LiveOut, piece: &LiveOutPiece) -> Option<()> {
        let node = *self.nodes.get(&live_out.value)?;
        match (piece.result, live_out.user) {
            (Some(result), Some(user)) => {
                let moved = self.sum(piece.planned.clone()) + self.users_pay(user, result);
                self.cut.costs(node, moved, self.of(user));
            }
            // A reshape live-in still has the old dims.
            _ if self.module().opcode(live_out.value) == Opcode::Reshape => {}
            _ => {
                let moved = self.back_pays(live_out)?;
                self.cut.costs(node, moved, 0.0);
            }
        }
        Some(())
    }

    /// Returns the additional cycles of the users of a value that read its replacement instead.
    fn users_pay(&self, old: InstId, new: Value) -> f64 {
        let now = self.model.operand(self.module(), old);
        let patch = &self.planner.patch;
        let then = self.model.planned_operand(self.module(), patch, self.fused, new);
        let users = self.module().users(old);
        let mut more: f64 = users.iter().map(|&user| self.user_pays(user, old, then)).sum();
        if self.is_result(old) && then.fused != now.fused {
            let store = self.model.store_cost(now.value).cycles;
            more += if now.fused { -store } else { store };
        }
        more
    }

    /// Returns the additional cycles of a use of a moved value that reads the reshape back.
    fn back_pays(&self, live_out: &LiveOut) -> Option<f64> {
        let fused = self.back(live_out.value)?.fused;
        let value = self.model.with_footprint(self.module().shape(live_out.value));
        Some(match live_out.user {
            Some(user) => {
                let new = self.planner.new_shape(live_out.value)?;
                let old = value.shape.as_array()?;
                let changes_minor = fused && large_minor(new.as_array()?) != large_minor(old);
                self.user_pays(user, live_out.value, Operand { value, fused, changes_minor })
            }
            None if self.is_result(live_out.value) && !fused => {
                -self.model.store_cost(value).cycles
            }
            None => 0.0,
        })
    }

    /// Returns the additional cycles of a user that reads `then` instead of an operand.
    fn user_pays(&self, user: InstId, old: InstId, then: Operand<'_>) -> f64 {
        let (module, model) = (self.module(), self.model);
        let op: &Op = module.op(user);
        if op.opcode() == Opcode::Tuple {
            // It can have thousands of operands, and pays for each by itself.
            let paid = |one| model.instruction(op, then.value, &[one]).cycles;
            let times: f64 =
                module.operands(user).iter().filter(|&&id| id == old).map(|_| 1.0).sum();
            return times * (paid(then) - paid(model.operand(module, old)));
        }
        let operands: SmallVec<[Operand<'_>; 4]> = module
            .operands(user)
            .iter()
            .map(|&id| if id == old { then } else { model.operand(module, id) })
            .collect();
        let result = model.with_footprint(module.shape(user));
        model.in_module(module, op, result, &operands).cycles - self.of(user)
    }

    /// Checks whether it is the result of the module.
    fn is_result(&self, id: InstId) -> bool {
        let entry = self.module().entry();
        entry.and_then(|entry| self.module().computation(entry).root()) == Some(id)
    }
}
