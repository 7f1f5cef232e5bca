//! Builds a module with some of the changes that were made to it.

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::{CompId, EditError, InstId, Module, Op, Position};

use super::diff::{Edge, has, is_free, waits_for};

/// Builds the old module with the new values of these edges. Returns `None` if a new value has
/// effects outside of the module: the old instruction stays and has these effects already.
pub(super) fn build(
    old: &Module,
    new: &Module,
    edges: &[Edge],
) -> Result<Option<Module>, EditError> {
    let mut import = Import::new(old, new);
    let wanted = import.wanted(edges);
    let effectful = new.effectful_computations();
    if wanted.instructions.iter().any(|&id| new.has_side_effect(id, &effectful)) {
        return Ok(None);
    }
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
    for computation in module.computations().to_vec() {
        put_in_order(&mut module, computation)?;
    }
    Ok(Some(module))
}

/// The instructions and computations of the new module that the old one lacks.
#[derive(Default)]
struct Wanted {
    instructions: FxHashSet<InstId>,
    computations: FxHashSet<CompId>,
}

struct Import<'a> {
    old: &'a Module,
    new: &'a Module,
    module: Module,
    /// The copies of new instructions that may be used anywhere behind them.
    made: FxHashMap<InstId, InstId>,
    /// The computations of the old module, and the copies of new ones.
    computations: FxHashMap<CompId, CompId>,
    /// The place of each instruction of the old module in its computation.
    places: FxHashMap<InstId, usize>,
    /// The first of equal constants in each computation of the old module.
    constants: FxHashMap<(CompId, &'a Op), InstId>,
    /// The earliest copy of each new constant, and the place before which it stands.
    copies: FxHashMap<InstId, (usize, InstId)>,
}

impl<'a> Import<'a> {
    fn new(old: &'a Module, new: &'a Module) -> Self {
        let mut places = FxHashMap::default();
        let mut constants = FxHashMap::default();
        for &computation in old.computations() {
            for (place, id) in old.instructions(computation).enumerate() {
                places.insert(id, place);
                if matches!(old.op(id), Op::Constant(_)) {
                    constants.entry((computation, old.op(id))).or_insert(id);
                }
            }
        }
        Self {
            old,
            new,
            module: old.clone(),
            made: FxHashMap::default(),
            computations: old.computations().iter().map(|&id| (id, id)).collect(),
            places,
            constants,
            copies: FxHashMap::default(),
        }
    }
}

impl Import<'_> {
    /// Collects the new instructions and computations that the values of the edges depend on.
    fn wanted(&self, edges: &[Edge]) -> Wanted {
        let new = self.new;
        let mut wanted = Wanted::default();
        let mut open: Vec<InstId> = edges.iter().map(|edge| edge.to).collect();
        while let Some(id) = open.pop() {
            if has(self.old, id) || !wanted.instructions.insert(id) {
                continue;
            }
            open.extend(new.operands(id).iter().chain(waits_for(new, id)));
            for called in new.called(id) {
                if !self.computations.contains_key(&called) && wanted.computations.insert(called) {
                    open.extend(new.instructions(called));
                }
            }
        }
        wanted
    }

    fn add(&mut self, wanted: &Wanted) -> Result<(), EditError> {
        let new = self.new;
        let old = |id: &CompId| self.computations.contains_key(id);
        let is_old: Vec<bool> = new.computations().iter().map(old).collect();
        // A computation stands before its callers, here as in the new module.
        for (place, &id) in new.computations().iter().enumerate() {
            if wanted.computations.contains(&id) {
                let later = new.computations().iter().zip(&is_old).skip(place);
                let next = later.filter(|(_, is_old)| **is_old).map(|(&id, _)| id).next();
                self.computation(id, next)?;
            } else if is_old.get(place) == Some(&true) {
                self.instructions(id, &wanted.instructions)?;
            }
        }
        Ok(())
    }

    /// Copies a new computation, placed before one of the old module.
    fn computation(&mut self, id: CompId, next: Option<CompId>) -> Result<(), EditError> {
        let name = self.new.computation(id).name();
        let made = match next {
            Some(next) => self.module.add_computation_before(name, next),
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

    /// Copies the new instructions of a computation, each placed before the next one of the old
    /// module.
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

    /// Returns a value of the new module for a user at a position. A new constant is copied to
    /// just before its user, unless an equal one already stands before it.
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

    /// Returns the place of a position: that of the old module's next instruction in its
    /// computation.
    fn place(&self, position: Position) -> usize {
        let place = match position {
            Position::Before(next) => self.places.get(&next).copied(),
            Position::End(_) => None,
        };
        place.unwrap_or(usize::MAX)
    }

    /// Finds an equal constant of the old module that stands before a position.
    fn constant_before(&self, id: InstId, position: Position) -> Option<InstId> {
        let computation = match position {
            Position::Before(next) => self.module.instruction(next).parent()?,
            Position::End(computation) => computation,
        };
        let constant = *self.constants.get(&(computation, self.new.op(id)))?;
        let stands_before = *self.places.get(&constant)? < self.place(position);
        let same_shape = self.old.shape(constant) == self.new.shape(id);
        (stands_before && same_shape).then_some(constant)
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

/// Removes the instructions and computations that were used before and are unused now.
fn drop_unused(old: &Module, module: &mut Module) -> Result<(), EditError> {
    let effectful = module.effectful_computations();
    for computation in old.computations() {
        let backwards: Vec<InstId> = module.instructions(*computation).rev().collect();
        for id in backwards {
            let was_used = has(old, id) && old.is_live(id);
            if was_used && module.is_removable(id) && !module.has_side_effect(id, &effectful) {
                module.remove(id)?;
            }
        }
    }
    let called = |module: &Module| -> FxHashSet<CompId> {
        module.entry().into_iter().flat_map(|entry| module.call_order(entry)).collect()
    };
    let (before, after) = (called(old), called(module));
    module.retain_computations(|id| after.contains(&id) || !before.contains(&id));
    Ok(())
}

/// Moves operands before their users: a rewrite may rely on a pass that moved instructions.
/// Instructions that are in order keep their order.
fn put_in_order(module: &mut Module, computation: CompId) -> Result<(), EditError> {
    let before: Vec<InstId> = module.instructions(computation).collect();
    let mut order: Vec<InstId> = Vec::with_capacity(before.len());
    let (mut met, mut placed) = (FxHashSet::default(), FxHashSet::default());
    let mut open: Vec<InstId> = Vec::new();
    for &id in &before {
        open.push(id);
        while let Some(&next) = open.last() {
            if met.insert(next) {
                let needed = module.operands(next).iter().chain(waits_for(module, next));
                open.extend(needed.filter(|id| !met.contains(id)));
            } else {
                open.pop();
                if placed.insert(next) {
                    order.push(next);
                }
            }
        }
    }
    if order == before { Ok(()) } else { module.order_instructions(computation, &order) }
}
