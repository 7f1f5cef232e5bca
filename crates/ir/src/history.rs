//! Records when each instruction of a module was last edited.
//!
//! Facts about a module, such as costs or that it is well formed, stay true of the instructions
//! that were not edited since they were found. [`Module::moment`] marks the time when they were
//! found, and [`Module::edited_since`] has the instructions to look at again.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::entity::{Entity as _, InstId};
use crate::module::Module;

/// A time in the history of one module, between two edits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The history that it belongs to.
    of: u64,
    at: u32,
}

/// The last edit of each instruction. A clone is edited independently, so it has its own
/// history.
#[derive(Debug)]
pub(crate) struct History {
    /// Tells histories apart.
    id: u64,
    edited: Vec<u32>,
    now: u32,
    /// When all instructions were well formed.
    verified: Option<u32>,
}

static NEXT_ID: AtomicU64 = AtomicU64::new(0);

impl Default for History {
    fn default() -> Self {
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        Self { id, edited: Vec::new(), now: 0, verified: None }
    }
}

impl Clone for History {
    fn clone(&self) -> Self {
        let &Self { now, verified, .. } = self;
        Self { edited: self.edited.clone(), now, verified, ..Self::default() }
    }
}

impl History {
    /// Notes an edit, or a new instruction.
    pub(crate) fn note(&mut self, id: InstId) {
        let index = id.index();
        if index >= self.edited.len() {
            self.edited.resize(index + 1, self.now);
        }
        self.edited[index] = self.now;
    }

    /// Forgets instructions that were made and undone.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.edited.truncate(len);
    }

    /// Checks whether an instruction was edited after a time. When time has come to its end,
    /// all edits count.
    fn is_later(&self, id: InstId, time: u32) -> bool {
        let edited = self.edited.get(id.index()).copied().unwrap_or(self.now);
        edited > time || time == u32::MAX
    }
}

impl Module {
    /// Returns the present: the edits made so far are earlier, and those to come are later.
    pub fn moment(&mut self) -> Moment {
        let moment = Moment { of: self.history.id, at: self.history.now };
        self.history.now = moment.at.saturating_add(1);
        moment
    }

    /// Returns the instructions that were made, removed, edited or moved after a moment, or
    /// whose operands, users, neighbours or control edges changed, and former and new roots, in
    /// order of their ids; all instructions if it is a moment of another module. Names,
    /// metadata and the attributes of the module do not count.
    pub fn edited_since(&self, moment: Moment) -> Vec<InstId> {
        let is_own = moment.of == self.history.id;
        let ids = (0..self.instruction_bound()).map(InstId::from_index);
        ids.filter(|&id| !is_own || self.history.is_later(id, moment.at)).collect()
    }

    /// Checks whether an instruction is as it was when the module was last verified.
    pub(crate) fn is_verified(&self, id: InstId) -> bool {
        self.history.verified.is_some_and(|time| !self.history.is_later(id, time))
    }

    /// Notes that all instructions are well formed.
    pub(crate) fn set_verified(&mut self) {
        self.history.verified = Some(self.moment().at);
    }
}
