//! Finds the differences between a module and the original.

use petgraph::unionfind::UnionFind;
use rustc_hash::FxHashSet;
use tilewright_ir::entity::Entity as _;
use tilewright_ir::{CompId, InstId, Module, Op};

/// A use of a value that now takes another, equal value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Edge {
    /// The computation of the use.
    pub(super) computation: CompId,
    /// The user and the operand's number; `None` for the root.
    pub(super) user: Option<(InstId, usize)>,
    /// The operand, or the root, in the old module.
    pub(super) from: InstId,
    /// The operand, or the root, in the new module.
    pub(super) to: InstId,
}

/// Checks whether an instruction was made in a module and is still in its computation.
pub(super) fn has(module: &Module, id: InstId) -> bool {
    id.index() < module.instruction_bound() && module.instruction(id).parent().is_some()
}

/// Finds the differences between a module and the original in which a cost-gated pass had a
/// part, in the order of the old module; `simplest` is the form between them. Returns `None` if
/// an instruction of both modules has a different op or operands of other shapes.
pub(super) fn edges_of_gains(old: &Module, simplest: &Module, new: &Module) -> Option<Vec<Edge>> {
    if old.entry() != new.entry() {
        return None;
    }
    let left: FxHashSet<CompId> = new.computations().iter().copied().collect();
    let mut edges = Vec::new();
    for &computation in old.computations() {
        if left.contains(&computation) {
            add_edges(old, new, computation, &mut edges)?;
        }
    }
    Some(Groups::of(old, simplest, new).edges_of_gains(edges))
}

fn add_edges(old: &Module, new: &Module, computation: CompId, edges: &mut Vec<Edge>) -> Option<()> {
    let (before, after) = (old.computation(computation), new.computation(computation));
    if before.parameters() != after.parameters() {
        return None;
    }
    let mut add = |user, from, to| {
        if from != to {
            edges.push(Edge { computation, user, from, to });
        }
        (from == to || old.shape(from).compatible(new.shape(to))).then_some(())
    };
    for id in old.instructions(computation).filter(|&id| has(new, id)) {
        let (from, to) = (old.operands(id), new.operands(id));
        let same = old.op(id) == new.op(id)
            && old.shape(id) == new.shape(id)
            && from.len() == to.len()
            && waits_for(old, id) == waits_for(new, id);
        if !same {
            return None;
        }
        for (place, (&from, &to)) in from.iter().zip(to).enumerate() {
            add(Some((id, place)), from, to)?;
        }
    }
    match (before.root(), after.root()) {
        (Some(from), Some(to)) => add(None, from, to),
        _ => Some(()),
    }
}

/// Returns the control predecessors of an instruction.
pub(super) fn waits_for(module: &Module, id: InstId) -> &[InstId] {
    module.extras(id).map_or(&[], |extras| &extras.control_predecessors)
}

/// Groups of instructions that come and go together, because they are operands of each other.
struct Groups<'a> {
    old: &'a Module,
    simplest: &'a Module,
    new: &'a Module,
    joined: UnionFind<usize>,
}

impl<'a> Groups<'a> {
    fn of(old: &'a Module, simplest: &'a Module, new: &'a Module) -> Self {
        let joined = UnionFind::new(old.instruction_bound().max(new.instruction_bound()));
        Self { old, simplest, new, joined }
    }

    /// Returns the edges of the groups that were not completely in the simplest form already.
    fn edges_of_gains(mut self, mut edges: Vec<Edge>) -> Vec<Edge> {
        let (old, new) = (self.old, self.new);
        self.join_operands(old, new);
        self.join_operands(new, old);
        for edge in &edges {
            if comes_or_goes(old, new, edge.from) && comes_or_goes(new, old, edge.to) {
                self.joined.union(edge.from.index(), edge.to.index());
            }
        }
        let mut of_gains: FxHashSet<usize> = FxHashSet::default();
        for (one, other) in [(old, new), (new, old)] {
            let late = |id: &InstId| has(self.simplest, *id) != has(new, *id);
            let moved = all(one).filter(|&id| comes_or_goes(one, other, id));
            of_gains.extend(moved.filter(late).map(|id| self.joined.find(id.index())));
        }
        let late = edges.iter().filter(|edge| !self.is_in_simplest(edge));
        of_gains.extend(late.map(|edge| self.group_of(edge)));
        edges.retain(|edge| of_gains.contains(&self.group_of(edge)));
        edges
    }

    fn group_of(&self, edge: &Edge) -> usize {
        let goes = comes_or_goes(self.old, self.new, edge.from);
        self.joined.find(if goes { edge.from } else { edge.to }.index())
    }

    /// Joins each instruction that only one of the modules has with its operands of the same
    /// kind.
    fn join_operands(&mut self, one: &Module, other: &Module) {
        for id in all(one).filter(|&id| comes_or_goes(one, other, id)) {
            for &operand in one.operands(id) {
                if comes_or_goes(one, other, operand) {
                    self.joined.union(id.index(), operand.index());
                }
            }
        }
    }

    fn is_in_simplest(&self, edge: &Edge) -> bool {
        match edge.user {
            Some((user, place)) => self.simplest.operands(user).get(place) == Some(&edge.to),
            None => self.simplest.computation(edge.computation).root() == Some(edge.to),
        }
    }
}

fn all(module: &Module) -> impl Iterator<Item = InstId> + '_ {
    module.computations().iter().flat_map(|&computation| module.instructions(computation))
}

/// Checks whether only the one module has an instruction that costs something. Constants do not
/// tie their users together.
fn comes_or_goes(one: &Module, other: &Module, id: InstId) -> bool {
    has(one, id) && !has(other, id) && !is_free(one, id)
}

/// Checks whether an instruction costs nothing to recompute: a constant, a broadcast constant,
/// or an iota.
pub(super) fn is_free(module: &Module, id: InstId) -> bool {
    match (module.op(id), module.operands(id)) {
        (Op::Constant(_) | Op::Iota(_), _) => true,
        (Op::Broadcast(_), &[operand]) => matches!(module.op(operand), Op::Constant(_)),
        _ => false,
    }
}
