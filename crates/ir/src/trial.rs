//! Trials: edits that can be rolled back.
//!
//! A rewrite whose cost depends on the whole module is made in the module itself and rolled back
//! if it does not pay. The time depends on the number of edits, while a copy would take time for
//! the whole module.

use rustc_hash::FxHashMap;

use crate::entity::{CompId, InstId, MetadataId, Packed};
use crate::metadata::Extras;
use crate::module::Module;

/// State of a module at the beginning of a trial that its maps do not record themselves.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trial {
    order: Vec<CompId>,
    entry: Packed<CompId>,
    instructions: usize,
    shapes: usize,
    extras: FxHashMap<InstId, Option<Box<Extras>>>,
    metadata: FxHashMap<InstId, Packed<MetadataId>>,
    unique_ids: FxHashMap<InstId, Option<i64>>,
}

impl Module {
    /// Begins a trial: [`Module::roll_back`] undoes all later edits, and [`Module::keep`] keeps
    /// them. The module's name and header are not included. Keeps the edits of an earlier trial
    /// under way.
    pub fn begin_trial(&mut self) {
        self.computations.begin_record();
        self.instructions.begin_record();
        self.operands.begin_record();
        self.uses.begin_record();
        self.metadata.begin_record();
        self.history.begin_record();
        self.names.begin_record(self.instructions.keys());
        self.trial = Some(Box::new(Trial {
            order: self.order.clone(),
            entry: self.entry,
            instructions: self.instructions.len(),
            shapes: self.shapes.len(),
            ..Trial::default()
        }));
    }

    /// Returns the instructions that were created or edited in the trial under way, or whose
    /// uses, control edges or neighbours changed, and old and new roots, in order of their ids.
    pub fn tried(&self) -> Vec<InstId> {
        self.instructions.recorded()
    }

    /// Ends the trial under way and keeps its edits.
    pub fn keep(&mut self) {
        self.computations.end_record();
        self.instructions.end_record();
        self.operands.end_record();
        self.uses.end_record();
        self.metadata.end_record();
        self.history.end_record();
        self.names.end_record();
        self.trial = None;
    }

    /// Ends the trial under way and restores the module to the state in which the trial began,
    /// except that the old names of renamed instructions stay reserved.
    pub fn roll_back(&mut self) {
        let Some(trial) = self.trial.take() else { return };
        if !self.history.roll_back() {
            self.instructions.recorded().into_iter().for_each(|id| self.history.note(id));
        }
        self.history.truncate(trial.instructions);
        self.computations.roll_back();
        self.instructions.roll_back();
        self.operands.roll_back();
        self.uses.roll_back();
        self.metadata.roll_back();
        self.names.roll_back();
        self.order = trial.order;
        self.entry = trial.entry;
        self.shapes.truncate(trial.shapes);
        for (id, extras) in trial.extras {
            match extras {
                Some(extras) => self.extras.insert(id, extras),
                None => self.extras.remove(&id),
            };
        }
        for (id, metadata) in trial.metadata {
            self.metadata_of.set(id, metadata);
        }
        for (id, unique_id) in trial.unique_ids {
            self.unique_ids.set(id, unique_id);
        }
        debug_assert_eq!(self.instructions.len(), trial.instructions);
    }

    /// Records that the root of a computation will change.
    pub(crate) fn record_root(&mut self, computation: CompId, new: InstId) {
        if let Some(old) = self.computations[computation].root() {
            self.edited(old);
        }
        self.edited(new);
    }

    /// Records the extras of an instruction for the trial under way.
    pub(crate) fn record_extras(&mut self, id: InstId) {
        self.edited(id);
        if let Some(trial) = &mut self.trial {
            trial.extras.entry(id).or_insert_with(|| self.extras.get(&id).cloned());
        }
    }

    /// Records the metadata of an instruction for the trial under way.
    pub(crate) fn record_metadata(&mut self, id: InstId) {
        if let Some(trial) = &mut self.trial {
            trial.metadata.entry(id).or_insert(self.metadata_of[id]);
        }
    }

    /// Records the binary id of an instruction for the trial under way.
    pub(crate) fn record_unique_id(&mut self, id: InstId) {
        if let Some(trial) = &mut self.trial {
            trial.unique_ids.entry(id).or_insert(self.unique_ids[id]);
        }
    }
}
