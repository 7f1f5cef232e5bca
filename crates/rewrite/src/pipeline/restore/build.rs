//! A module with some of the changes that were made to it.

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::{CompId, EditError, InstId, Module, Op, Position};

use super::diff::{Edge, has, is_free};

/// The old module with the new values of these edges; `None` where one of them would act
/// outside of the module, which the old one does already.
pub(super) fn build<'e>(
    old: &Module,
    new: &Module,
    edges: impl Iterator<Item = &'e Edge>,
) -> Result<Option<Module>, EditError> {
    let edges: Vec<&Edge> = edges.collect();
    let wanted = Wanted::of(old, new, &edges);
    let effectful = new.effectful_computations();
    if wanted.instructions.iter().any(|&id| new.has_side_effect(id, &effectful)) {
        return Ok(None);
    }
    let mut import = Import {
        old,
        new,
        module: old.clone(),
        made: FxHashMap::default(),
        computations: FxHashMap::default(),
        constants: constants(old),
        copies: FxHashMap::default(),
    };
    import.add(&wanted)?;
    for edge in edges {
        let position = match edge.user {
            Some((user, _)) => Position::Before(user),
            None => Position::End(edge.computation),
        };
        let to = import.value(edge.to, position)?;
        match edge.user {
            Some((user, place)) => import.module.set_operand(user, place, to)?,
            None => import.module.set_root(to)?,
        }
    }
    let mut module = import.module;
    drop_unused(old, &mut module)?;
    for &computation in old.computations() {
        if module.computations().contains(&computation) {
            put_in_order(&mut module, computation)?;
        }
    }
    Ok(Some(module))
}

/// What of the new module is needed.
#[derive(Default)]
struct Wanted {
    instructions: FxHashSet<InstId>,
    computations: FxHashSet<CompId>,
}

impl Wanted {
    fn of(old: &Module, new: &Module, edges: &[&Edge]) -> Self {
        let mut wanted = Self::default();
        let mut open: Vec<InstId> = edges.iter().map(|edge| edge.to).collect();
        while let Some(id) = open.pop() {
            if has(old, id) || !wanted.instructions.insert(id) {
                continue;
            }
            open.extend(new.operands(id));
            open.extend(new.extras(id).iter().flat_map(|extras| &extras.control_predecessors));
            for called in new.called(id) {
                if !old.computations().contains(&called) && wanted.computations.insert(called) {
                    open.extend(new.instructions(called));
                }
            }
        }
        wanted
    }
}

struct Import<'a> {
    old: &'a Module,
    new: &'a Module,
    module: Module,
    /// What became of the instructions that are new, but for constants.
    made: FxHashMap<InstId, InstId>,
    computations: FxHashMap<CompId, CompId>,
    /// The place of each instruction of the old module in its computation, and the
    /// constants of each computation.
    constants: Constants,
    /// The copy of each new constant that stands first, and the place before which it does.
    copies: FxHashMap<InstId, (usize, InstId)>,
}

#[derive(Default)]
struct Constants {
    places: FxHashMap<InstId, usize>,
    of: FxHashMap<CompId, Vec<InstId>>,
}

fn constants(old: &Module) -> Constants {
    let mut found = Constants::default();
    for &computation in old.computations() {
        found.places.extend(old.instructions(computation).zip(0..));
        let constants = old.instructions(computation);
        let constants = constants.filter(|&id| matches!(old.op(id), Op::Constant(_)));
        found.of.insert(computation, constants.collect());
    }
    found
}

impl Import<'_> {
    fn add(&mut self, wanted: &Wanted) -> Result<(), EditError> {
        let new = self.new;
        // Those that are called come first, and so each before who calls it.
        for &computation in new.computations() {
            if wanted.computations.contains(&computation) {
                self.computation(computation)?;
            } else if self.old.computations().contains(&computation) {
                self.instructions(computation, &wanted.instructions)?;
            }
        }
        Ok(())
    }

    /// A computation that is new.
    fn computation(&mut self, id: CompId) -> Result<(), EditError> {
        let name = self.new.computation(id).name();
        let made = match self.module.entry() {
            Some(entry) => self.module.add_computation_before(name, entry),
            None => self.module.add_computation(name),
        };
        self.computations.insert(id, made);
        for instruction in self.new.instructions(id) {
            self.instruction(instruction, Position::End(made))?;
        }
        match self.new.computation(id).root().and_then(|root| self.made.get(&root)) {
            Some(&root) => self.module.set_root(root),
            None => Ok(()),
        }
    }

    /// The instructions that are new in a computation, each before the next one that stays.
    fn instructions(
        &mut self,
        computation: CompId,
        wanted: &FxHashSet<InstId>,
    ) -> Result<(), EditError> {
        let mut waiting: Vec<InstId> = Vec::new();
        for id in self.new.instructions(computation) {
            if has(self.old, id) {
                for new in std::mem::take(&mut waiting) {
                    self.instruction(new, Position::Before(id))?;
                }
            } else if wanted.contains(&id) && !is_free(self.new, id) {
                waiting.push(id);
            }
        }
        for id in waiting {
            self.instruction(id, Position::End(computation))?;
        }
        Ok(())
    }

    /// What became of a value of the new module, for somebody at a position. Constants that
    /// are new come just before who uses them, unless there is one before already.
    fn value(&mut self, id: InstId, position: Position) -> Result<InstId, EditError> {
        if has(self.old, id) {
            return Ok(id);
        }
        if let Some(&made) = self.made.get(&id) {
            return Ok(made);
        }
        if let Some(constant) = self.constant_before(id, position) {
            return Ok(constant);
        }
        let place = self.place(position);
        match self.copies.get(&id) {
            Some(&(before, copy)) if before <= place => Ok(copy),
            _ => {
                let copy = self.copy(id, position)?;
                self.copies.insert(id, (place, copy));
                Ok(copy)
            }
        }
    }

    /// Before which instruction of the old module a position is, in the order of its
    /// computation.
    fn place(&self, position: Position) -> usize {
        let place = match position {
            Position::Before(next) => self.constants.places.get(&next).copied(),
            Position::End(_) => None,
        };
        place.unwrap_or(usize::MAX)
    }

    /// A constant of the old module that is equal, and stands before a position.
    fn constant_before(&self, id: InstId, position: Position) -> Option<InstId> {
        let computation = match position {
            Position::Before(next) => self.module.instruction(next).parent()?,
            Position::End(computation) => computation,
        };
        let before = self.place(position);
        let equal = |&&old: &&InstId| {
            self.constants.places.get(&old).is_some_and(|&place| place < before)
                && self.old.op(old) == self.new.op(id)
                && self.old.shape(old) == self.new.shape(id)
        };
        self.constants.of.get(&computation)?.iter().find(equal).copied()
    }

    fn instruction(&mut self, id: InstId, position: Position) -> Result<(), EditError> {
        let made = self.copy(id, position)?;
        self.made.insert(id, made);
        Ok(())
    }

    fn copy(&mut self, id: InstId, position: Position) -> Result<InstId, EditError> {
        let new = self.new;
        let operands = new.operands(id).iter().map(|&operand| self.value(operand, position));
        let operands: Vec<InstId> = operands.collect::<Result<_, _>>()?;
        let mut extras = new.extras(id).cloned();
        if let Some(extras) = &mut extras {
            let to = |old: &InstId| self.made.get(old).copied().unwrap_or(*old);
            extras.control_predecessors = extras.control_predecessors.iter().map(to).collect();
        }
        let mut op = new.op(id).clone();
        op.map_computations(&mut |c| self.computations.get(&c).copied().unwrap_or(c));
        let name = self.module.fresh_name(new.name_of(id));
        let made = self.module.insert(position, op, new.shape(id).clone(), &operands, name)?;
        if let Some(metadata) = new.metadata(id) {
            self.module.set_metadata(made, metadata.clone());
        }
        if let Some(extras) = extras {
            self.module.set_extras(made, extras);
        }
        Ok(made)
    }
}

/// Removes what was used before, and is not any more.
fn drop_unused(old: &Module, module: &mut Module) -> Result<(), EditError> {
    let effectful = module.effectful_computations();
    for computation in old.computations() {
        let backwards: Vec<InstId> = module.instructions(*computation).rev().collect();
        for id in backwards {
            let was_used = has(old, id) && (old.instruction(id).use_count() > 0 || old.is_root(id));
            if was_used && module.is_removable(id) && !module.has_side_effect(id, &effectful) {
                module.remove(id)?;
            }
        }
    }
    let called = |module: &Module| -> FxHashSet<CompId> {
        module
            .entry()
            .map(|entry| module.call_order(entry))
            .unwrap_or_default()
            .into_iter()
            .collect()
    };
    let (before, after) = (called(old), called(module));
    module.retain_computations(|id| after.contains(&id) || !before.contains(&id));
    Ok(())
}

/// Puts operands before what uses them: a pass that moves instructions may have relied on
/// it. What stands right stays.
fn put_in_order(module: &mut Module, computation: CompId) -> Result<(), EditError> {
    let before: Vec<InstId> = module.instructions(computation).collect();
    let mut order: Vec<InstId> = Vec::with_capacity(before.len());
    let mut placed: FxHashSet<InstId> = FxHashSet::default();
    for &id in &before {
        let mut open = vec![id];
        while let Some(&next) = open.last() {
            let waits_for = module.extras(next).into_iter().flat_map(|e| &e.control_predecessors);
            let missing = module.operands(next).iter().chain(waits_for);
            let missing: Vec<InstId> =
                missing.copied().filter(|id| !placed.contains(id) && !open.contains(id)).collect();
            if missing.is_empty() {
                open.pop();
                if placed.insert(next) {
                    order.push(next);
                }
            } else {
                open.extend(missing);
            }
        }
    }
    if order == before { Ok(()) } else { module.order_instructions(computation, &order) }
}
