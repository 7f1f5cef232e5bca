//! `while(x, y).0 = while(x).0` where the next x, the condition and all side effects are computed
//! without y.
//!
//! An element of a loop's state is alive if a needed instruction takes it from the state. The
//! needed instructions are the entry's result, those with side effects, the conditions of needed
//! loops, the next values of elements that are alive, and the operands of all these. All other
//! elements are removed, with the instructions that compute them. All loops are analysed together:
//! an element of an inner loop may be read only for a dead element of the outer loop.
//!
//! Preconditions: the state is a tuple whose users all take single elements; no other instruction
//! calls the body or condition; nothing (a sharding, a trip count) is attached to the loop, its
//! state or its parameters; at least one element stays.

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::{CompId, EditError, InstId, Module};

use super::state::{Callers, Element, Loop, element_of, part_of};
use crate::driver::numbers::Class;
use crate::driver::{Context, Pass};
use crate::driver::{Note, Outcome, Place};

/// See the module.
pub struct DeadElements;

impl Pass for DeadElements {
    fn name(&self) -> &'static str {
        "dead-elements"
    }

    fn summary(&self) -> &'static str {
        "drop from the state of loops what nothing reads"
    }

    fn class(&self) -> Class {
        Class::Exact
    }

    fn run(&self, module: &mut Module, cx: &mut Context<'_>) -> Result<usize, EditError> {
        let Needs { loops, alive, mut needed, .. } = Needs::of(module);
        let dying: Vec<(Loop, Vec<bool>)> =
            loops.into_iter().zip(alive).filter(|(_, alive)| some_die(alive)).collect();
        let sweep = instructions_around(module, &dying);
        let mut dropped = 0;
        // Callers stand after callees, so the readers of an inner loop's state go first.
        for (found, alive) in dying.iter().rev() {
            let (place, text) = (Place::of(module, found.id), words(module, found.id, alive));
            let (pass, outcome) = (self.name(), Outcome::Done);
            cx.notes.push(Note { pass, outcome, place, text, cycles: None, reason: None });
            let kept = alive.iter().enumerate().filter(|(_, alive)| **alive);
            let elements: Vec<Element> = kept.map(|(was, _)| Element { was, form: None }).collect();
            dropped += alive.len() - elements.len();
            found.restate(module, &elements)?;
            needed.remove(&found.id);
        }
        for id in sweep {
            if !needed.contains(&id) && module.is_removable(id) {
                module.remove(id)?;
            }
        }
        Ok(dropped)
    }
}

/// Checks whether some elements are dead and some are alive.
fn some_die(alive: &[bool]) -> bool {
    alive.contains(&true) && alive.contains(&false)
}

/// Returns the instructions of these loops' bodies, conditions and callers, users before
/// operands.
fn instructions_around(module: &Module, loops: &[(Loop, Vec<bool>)]) -> Vec<InstId> {
    let mut around: FxHashSet<CompId> = FxHashSet::default();
    for (found, _) in loops {
        around.extend([found.body, found.condition]);
        around.extend(module.instruction(found.id).parent());
    }
    let computations = module.computations().iter().filter(|c| around.contains(c));
    computations.flat_map(|&c| module.instructions(c).rev()).collect()
}

fn words(module: &Module, id: InstId, alive: &[bool]) -> String {
    let shapes = module.shape(id).as_tuple().unwrap_or_default();
    let dead = alive.iter().zip(shapes).enumerate().filter(|(_, (alive, _))| !**alive);
    let dead: Vec<String> = dead
        .map(|(place, (_, shape))| format!("{} (element {place})", shape.without_layout()))
        .collect();
    format!("dropped from the state of the loop, as nothing reads it: {}", dead.join(", "))
}

/// The instructions and loop elements that a module needs.
struct Needs<'a> {
    module: &'a Module,
    /// The loops whose state can be changed.
    loops: Vec<Loop>,
    /// For each state (a `while` or the parameter of its body or condition), its loop.
    loop_of: FxHashMap<InstId, usize>,
    /// For each element of the state of each loop, whether it is alive.
    alive: Vec<Vec<bool>>,
    /// For each loop, whether it is needed.
    runs: Vec<bool>,
    /// The needed instructions; loops and their states are not among them.
    needed: FxHashSet<InstId>,
    /// Needed instructions whose operands are still to be followed.
    pending: Vec<InstId>,
}

impl<'a> Needs<'a> {
    fn of(module: &'a Module) -> Self {
        let callers = Callers::of(module);
        let all = || module.computations().iter().flat_map(|&c| module.instructions(c));
        let loops: Vec<Loop> = all().filter_map(|id| Loop::of(module, id, &callers)).collect();
        let states = |(i, found): (usize, &Loop)| found.states().map(|state| (state, i));
        let mut needs = Self {
            module,
            loop_of: loops.iter().enumerate().flat_map(states).collect(),
            alive: loops.iter().map(|l| vec![false; module.operands(l.root).len()]).collect(),
            runs: vec![false; loops.len()],
            loops,
            needed: FxHashSet::default(),
            pending: Vec::new(),
        };
        if needs.loops.is_empty() {
            return needs;
        }
        let effectful = module.effectful_computations();
        let waited_for =
            |id| module.extras(id).is_some_and(|extras| !extras.control_successors().is_empty());
        for id in all().filter(|&id| module.has_side_effect(id, &effectful) || waited_for(id)) {
            needs.need(id);
        }
        let result = module.entry().and_then(|entry| module.computation(entry).root());
        result.into_iter().for_each(|root| needs.need(root));
        while let Some(id) = needs.pending.pop() {
            needs.follow(id);
        }
        needs
    }

    fn need(&mut self, id: InstId) {
        if self.needed.insert(id) {
            self.pending.push(id);
        }
    }

    /// Marks everything that a needed instruction depends on.
    fn follow(&mut self, id: InstId) {
        let module = self.module;
        if let Some((state, place)) = element_of(module, id)
            && let Some(&of) = self.loop_of.get(&state)
        {
            return self.need_element(of, place);
        }
        if let Some(&of) = self.loop_of.get(&id) {
            return self.run(of);
        }
        for &operand in module.operands(id) {
            self.need(operand);
        }
        for callee in module.called(id) {
            module.computation(callee).root().into_iter().for_each(|root| self.need(root));
        }
    }

    fn need_element(&mut self, of: usize, place: usize) {
        self.run(of);
        let alive = self.alive.get_mut(of).and_then(|alive| alive.get_mut(place));
        let (Some(alive), Some(found)) = (alive, self.loops.get(of)) else { return };
        if std::mem::replace(alive, true) {
            return;
        }
        let first = part_of(self.module, found.init, place).unwrap_or(found.init);
        let next = part_of(self.module, found.root, place);
        self.need(first);
        next.into_iter().for_each(|next| self.need(next));
    }

    /// Marks a loop as needed, and so its condition.
    fn run(&mut self, of: usize) {
        let (Some(runs), Some(found)) = (self.runs.get_mut(of), self.loops.get(of)) else { return };
        if !std::mem::replace(runs, true) {
            let decides = self.module.computation(found.condition).root();
            decides.into_iter().for_each(|root| self.need(root));
        }
    }
}
