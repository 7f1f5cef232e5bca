//! Which instructions the result depends on, after the changes of a draft.

use std::collections::HashSet;

use tilewright::ir::{CompId, InstId, Module, Op};

use super::{Draft, DraftRoot, Stand};

/// The live parts of a module.
#[derive(Default)]
pub(super) struct Live {
    pub(super) instructions: HashSet<InstId>,
    pub(super) computations: HashSet<CompId>,
}

impl Live {
    /// Returns what is live; `None` if the changes do not fit together.
    pub(super) fn of(from: &Module, draft: &Draft) -> Option<Self> {
        let effectful = from.effectful_computations();
        let mut live = Self::default();
        live.computations.insert(from.entry()?);
        // Callers come before their callees in this direction.
        for &computation in from.computations().iter().rev() {
            if !live.computations.contains(&computation) {
                continue;
            }
            let mut stack = match draft.roots.get(&computation) {
                Some(DraftRoot::Of(root)) => vec![*root],
                Some(DraftRoot::Tuple(elements)) => elements.clone(),
                None => vec![from.computation(computation).root()?],
            };
            let acts = |&id: &InstId| {
                from.has_side_effect(id, &effectful) && !draft.stands.contains_key(&id)
            };
            stack.extend(from.instructions(computation).filter(acts));
            while let Some(id) = stack.pop() {
                let id = draft.resolve(from, id)?;
                if live.instructions.insert(id) {
                    live.visit(from, draft, id, &mut stack);
                }
            }
        }
        Some(live)
    }

    /// Adds what an instruction needs.
    fn visit(&mut self, from: &Module, draft: &Draft, id: InstId, stack: &mut Vec<InstId>) {
        match draft.stands.get(&id) {
            Some(Stand::Parameter | Stand::Zero | Stand::One | Stand::Constant(_)) => return,
            Some(Stand::Value(_)) | None => {}
        }
        if let Some(inlined) = draft.inlined.get(&id) {
            self.computations.insert(inlined.callee);
            stack.extend(&inlined.arguments);
            return;
        }
        stack.extend(draft.operands_of(from, id));
        let op: &Op = draft.op_of(from, id);
        op.for_each_computation(&mut |callee| {
            self.computations.insert(callee);
        });
    }
}
