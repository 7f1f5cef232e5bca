//! Remembers when a pass of the cleanup last went over a module, so that it need not look again at
//! what nobody edited.
//!
//! Such a pass reads the expression around an instruction, down to a known depth ([`Reach`]), and
//! changes it or not. If it does not, the instruction is due again after an edit of what the pass
//! read. A walk that leaves the others out finds what a whole walk would find; builds with debug
//! assertions check that. The pipeline does not depend on it: before it stops, [`super::run`] has
//! the cleanup go over the whole module once more.

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::{CompId, InstId, Module, Moment, Opcode};

/// How far from an instruction those stand that a pass reads in order to change it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reach {
    /// The most steps from the instruction down to an operand.
    pub(crate) steps: usize,
    /// Whether the pass follows broadcasts and reshapes further than that, to a constant.
    pub(crate) follows_numbers: bool,
}

impl Reach {
    /// The reach of a pass that reads operands down to this depth.
    pub(crate) const fn down(steps: usize) -> Self {
        Self { steps, follows_numbers: false }
    }

    /// The reach of two passes together.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            steps: self.steps.max(other.steps),
            follows_numbers: self.follows_numbers || other.follows_numbers,
        }
    }
}

/// The moments at which passes last began to go over a module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Swept {
    at: FxHashMap<&'static str, Moment>,
    /// The number of walks that left instructions out.
    spared: usize,
}

impl Swept {
    /// Begins a walk of a pass. Returns the instructions edited since its last walk began, or since
    /// [`Self::forget`]; `None` if that is not known, or if they are many.
    pub(crate) fn begin(&mut self, pass: &'static str, module: &mut Module) -> Option<Vec<InstId>> {
        let now = module.moment();
        let edited = module.edited_since(self.at.insert(pass, now)?);
        if edited.len() > module.instruction_count() / 4 {
            return None;
        }
        self.spared = self.spared.saturating_add(1);
        Some(edited)
    }

    /// Begins a walk of a pass, and returns the instructions that it must look at.
    pub(crate) fn due(&mut self, pass: &'static str, reach: Reach, module: &mut Module) -> Due {
        match self.begin(pass, module) {
            Some(edited) => Due(Some(readers(module, edited, reach))),
            None => Due::ALL,
        }
    }

    /// Notes that the last walk of a pass did not look at all that it had to.
    pub(crate) fn forget(&mut self, pass: &'static str) {
        self.at.remove(pass);
    }

    /// Returns the number of walks so far that left instructions out.
    pub(super) fn spared(&self) -> usize {
        self.spared
    }

    /// Lets all passes begin anew.
    pub(super) fn forget_all(&mut self) {
        *self = Self::default();
    }
}

/// The instructions that a pass must look at.
#[derive(Debug)]
pub(crate) struct Due(Option<FxHashSet<InstId>>);

impl Due {
    /// All instructions of a module.
    pub(crate) const ALL: Self = Self(None);

    /// Checks whether there is nothing to look at.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.as_ref().is_some_and(FxHashSet::is_empty)
    }

    /// Checks whether an instruction must be looked at.
    pub(crate) fn holds(&self, id: InstId) -> bool {
        self.0.as_ref().is_none_or(|due| due.contains(&id))
    }
}

/// Returns the instructions that have an edited one within reach, and the edited ones. Constants are
/// not followed to their users: no edit changes a value that is read there.
pub(crate) fn readers(
    module: &Module,
    edited: Vec<InstId>,
    Reach { steps, follows_numbers }: Reach,
) -> FxHashSet<InstId> {
    let mut last = edited;
    last.extend(callers(module, &last));
    let mut found: FxHashSet<InstId> = last.iter().copied().collect();
    if follows_numbers {
        let mut place = 0;
        while let Some(&id) = last.get(place) {
            place += 1;
            if matches!(module.opcode(id), Opcode::Broadcast | Opcode::Reshape) {
                last.extend(module.uses(id).map(|one| one.user).filter(|&user| found.insert(user)));
            }
        }
    }
    for _ in 0..steps {
        last.retain(|&id| module.opcode(id) != Opcode::Constant);
        let users = last.iter().flat_map(|&id| module.uses(id).map(|one| one.user));
        last = users.filter(|&user| found.insert(user)).collect();
    }
    found
}

/// Returns the instructions that call computations with edited instructions, directly or not: a
/// pass may read what they call.
pub(crate) fn callers(module: &Module, edited: &[InstId]) -> Vec<InstId> {
    let parents = edited.iter().filter_map(|&id| module.instruction(id).parent());
    // Nothing calls the entry, which most edits are in.
    let mut called: FxHashSet<CompId> =
        parents.filter(|&parent| module.entry() != Some(parent)).collect();
    let mut callers = Vec::new();
    if called.is_empty() {
        return callers;
    }
    // Callees stand before callers.
    for &computation in module.computations() {
        for id in module.instructions(computation) {
            let mut calls = false;
            module.op(id).for_each_computation(&mut |callee| calls |= called.contains(&callee));
            if calls {
                called.insert(computation);
                callers.push(id);
            }
        }
    }
    callers
}

#[cfg(test)]
mod tests {
    use tilewright_ir::{Builder, ElementType, Position, Shape};

    use super::*;

    #[test]
    fn readers_are_users_within_reach_and_constants_have_none() {
        let mut b = Builder::new("m");
        let scalar = Shape::array(ElementType::F32, [] as [i64; 0]);
        let x = b.parameter("x", scalar).expect("a parameter");
        let zero =
            tilewright_ir::reducer::Monoid { opcode: Opcode::Add, element_type: ElementType::F32 };
        let zero = b.constant(zero.identity().expect("a literal")).expect("a constant");
        let a = b.binary(Opcode::Add, x, zero).expect("an op");
        let wide = b.broadcast(a, [4], []).expect("an op");
        let flat = b.reshape(wide, [2, 2]).expect("an op");
        let c = b.unary(Opcode::Negate, flat).expect("an op");
        let d = b.unary(Opcode::Negate, c).expect("an op");
        let module = b.finish(d).expect("a module").into_inner();
        let found = |edited: InstId, reach: Reach| {
            let mut found: Vec<InstId> =
                readers(&module, vec![edited], reach).into_iter().collect();
            found.sort_unstable();
            found
        };
        assert_eq!(found(a, Reach::down(2)), [a, wide, flat]);
        assert_eq!(found(zero, Reach::down(2)), [zero]);
        let numbers = Reach { steps: 1, follows_numbers: true };
        assert_eq!(found(wide, numbers), [wide, flat, c, d]);
        assert_eq!(found(c, numbers), [c, d]);
    }

    #[test]
    fn a_walk_is_told_of_the_edits_since_the_last_one_of_its_pass() {
        let mut b = Builder::new("chain");
        let x = b.parameter("x", Shape::array(ElementType::F32, [4])).expect("a parameter");
        let mut ids = vec![x];
        while let (true, Some(&last)) = (ids.len() < 40, ids.last()) {
            ids.push(b.unary(Opcode::Negate, last).expect("an op"));
        }
        let mut module = b.finish(ids[39]).expect("a module").into_inner();
        let mut swept = Swept::default();
        assert_eq!(swept.begin("pass", &mut module), None, "the first walk");
        assert_eq!(swept.begin("pass", &mut module), Some(Vec::new()));
        let before = (module.clone(), swept.clone());
        module.set_operand(ids[20], 0, ids[10]).expect("an edit");
        assert_eq!(swept.begin("pass", &mut module), Some(vec![ids[10], ids[19], ids[20]]));
        assert_eq!(swept.begin("other", &mut module), None);
        swept.forget("other");
        assert_eq!(swept.begin("other", &mut module), None);
        assert_eq!(swept.spared(), 2);
        // A state that was restored has the edits since its own last walk.
        let (mut module, mut restored) = before;
        assert_eq!(swept.begin("pass", &mut module), None, "a walk over another state");
        let position = Position::Before(ids[5]);
        let shape = module.shape(x).clone();
        let op = tilewright_ir::Op::Negate;
        let new = module.insert(position, op, shape, &[x], "n").expect("an edit");
        assert_eq!(restored.begin("pass", &mut module), Some(vec![x, ids[4], ids[5], new]));
        for &id in ids.iter().skip(20) {
            module.set_operand(id, 0, x).expect("an edit");
        }
        assert_eq!(restored.begin("pass", &mut module), None, "too many edits");
    }
}
