//! In what a module differs from the one that it was made of.

use petgraph::unionfind::UnionFind;
use rustc_hash::FxHashMap;
use tilewright_ir::entity::Entity as _;
use tilewright_ir::{CompId, InstId, Module, Op};

/// Operands that differ, together: they came from one rewrite, or from some that build upon
/// each other.
#[derive(Default)]
pub(super) struct Change {
    pub(super) edges: Vec<Edge>,
    /// Whether any of it was not in the simplest form already.
    pub(super) is_of_heart: bool,
}

/// A value in the place of another one that is equal.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Edge {
    /// In which computation.
    pub(super) computation: CompId,
    /// The instruction that takes it, and as which operand; none for the root.
    pub(super) user: Option<(InstId, usize)>,
    /// What stood there.
    pub(super) from: InstId,
    /// What stands there.
    pub(super) to: InstId,
}

/// Whether a module has an instruction, in the computation in which another module may have
/// it.
pub(super) fn has(module: &Module, id: InstId) -> bool {
    id.index() < module.instruction_bound() && module.instruction(id).parent().is_some()
}

/// The changes that make one module of another, by way of its simplest form. `None` where
/// an instruction that both have is another one in each, or takes values of another shape.
pub(super) fn changes(old: &Module, simplest: &Module, new: &Module) -> Option<Vec<Change>> {
    if old.entry() != new.entry() {
        return None;
    }
    let mut edges = Vec::new();
    for &computation in old.computations() {
        if new.computations().contains(&computation) {
            add_edges(old, new, computation, &mut edges)?;
        }
    }
    Some(Groups::of(old, simplest, new).changes(edges))
}

fn add_edges(old: &Module, new: &Module, computation: CompId, edges: &mut Vec<Edge>) -> Option<()> {
    let (before, after) = (old.computation(computation), new.computation(computation));
    if before.parameters() != after.parameters() {
        return None;
    }
    for id in old.instructions(computation).filter(|&id| has(new, id)) {
        let waits_for = |module: &Module| {
            module.extras(id).map(|extras| extras.control_predecessors.clone()).unwrap_or_default()
        };
        let (from, to) = (old.operands(id), new.operands(id));
        let same = old.op(id) == new.op(id)
            && old.shape(id) == new.shape(id)
            && from.len() == to.len()
            && waits_for(old) == waits_for(new);
        if !same {
            return None;
        }
        for (place, (&from, &to)) in from.iter().zip(to).enumerate() {
            edges.push(Edge { computation, user: Some((id, place)), from, to });
        }
    }
    if let (Some(from), Some(to)) = (before.root(), after.root()) {
        edges.push(Edge { computation, user: None, from, to });
    }
    edges.retain(|edge| edge.from != edge.to);
    let alike = |edge: &Edge| old.shape(edge.from).compatible(new.shape(edge.to));
    edges.iter().all(alike).then_some(())
}

/// Instructions that come and go together, being operands of each other.
struct Groups<'a> {
    old: &'a Module,
    simplest: &'a Module,
    new: &'a Module,
    joined: UnionFind<usize>,
    /// Of each group, by its representative.
    changes: FxHashMap<usize, Change>,
}

impl<'a> Groups<'a> {
    fn of(old: &'a Module, simplest: &'a Module, new: &'a Module) -> Self {
        let joined = UnionFind::new(old.instruction_bound().max(new.instruction_bound()));
        Self { old, simplest, new, joined, changes: FxHashMap::default() }
    }

    fn changes(mut self, edges: Vec<Edge>) -> Vec<Change> {
        let (old, new) = (self.old, self.new);
        self.join_operands(old, new);
        self.join_operands(new, old);
        for edge in &edges {
            if comes_or_goes(old, new, edge.from) && comes_or_goes(new, old, edge.to) {
                self.joined.union(edge.from.index(), edge.to.index());
            }
        }
        self.mark(old, new);
        self.mark(new, old);
        for edge in edges {
            let is_of_heart = !self.is_in_simplest(&edge);
            let member = if comes_or_goes(old, new, edge.from) { edge.from } else { edge.to };
            let change = self.change_of(member);
            change.edges.push(edge);
            change.is_of_heart |= is_of_heart;
        }
        self.changes.into_values().collect()
    }

    fn change_of(&mut self, member: InstId) -> &mut Change {
        self.changes.entry(self.joined.find_mut(member.index())).or_default()
    }

    /// Joins what one module has and the other has not with its operands of that kind.
    fn join_operands(&mut self, one: &Module, other: &Module) {
        for id in all(one).filter(|&id| comes_or_goes(one, other, id)) {
            for &operand in one.operands(id) {
                if comes_or_goes(one, other, operand) {
                    self.joined.union(id.index(), operand.index());
                }
            }
        }
    }

    /// Marks the groups of what came or went after the simplest form.
    fn mark(&mut self, one: &Module, other: &Module) {
        for id in all(one).filter(|&id| comes_or_goes(one, other, id)) {
            if has(self.simplest, id) != has(self.new, id) {
                self.change_of(id).is_of_heart = true;
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

/// Whether one module has an instruction that the other has not, and that costs something:
/// constants do not tie together those who use them.
fn comes_or_goes(one: &Module, other: &Module, id: InstId) -> bool {
    has(one, id) && !has(other, id) && !is_free(one, id)
}

/// Whether an instruction is a constant, or one that is the same everywhere.
pub(super) fn is_free(module: &Module, id: InstId) -> bool {
    match (module.op(id), module.operands(id)) {
        (Op::Constant(_) | Op::Iota(_), _) => true,
        (Op::Broadcast(_), &[operand]) => matches!(module.op(operand), Op::Constant(_)),
        _ => false,
    }
}
