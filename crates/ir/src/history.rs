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
/// history, which continues that of the original.
#[derive(Debug)]
pub(crate) struct History {
    /// Tells histories apart.
    id: u64,
    /// The histories that it continues, each with the first time that is not shared.
    continued: Vec<(u64, u32)>,
    edited: Vec<u32>,
    now: u32,
    /// Whether anything was edited at the present time.
    is_edited_now: bool,
    /// When all instructions were well formed.
    verified: Option<u32>,
    record: Option<Record>,
}

/// The state of a history when the trial under way began.
#[derive(Clone, Debug)]
struct Record {
    now: u32,
    is_edited_now: bool,
    /// The earlier last edits of instructions, newest last.
    before: Vec<(usize, u32)>,
}

static NEXT_ID: AtomicU64 = AtomicU64::new(0);

impl Default for History {
    fn default() -> Self {
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        Self {
            id,
            continued: Vec::new(),
            edited: Vec::new(),
            now: 0,
            is_edited_now: true,
            verified: None,
            record: None,
        }
    }
}

impl Clone for History {
    fn clone(&self) -> Self {
        let &Self { id, now, is_edited_now, verified, .. } = self;
        let mut continued = self.continued.clone();
        continued.push((id, now));
        let (edited, record) = (self.edited.clone(), self.record.clone());
        Self { continued, edited, now, is_edited_now, verified, record, ..Self::default() }
    }
}

impl History {
    /// Notes an edit, or a new instruction.
    pub(crate) fn note(&mut self, id: InstId) {
        let index = id.index();
        if index >= self.edited.len() {
            self.edited.resize(index + 1, self.now);
        }
        let last = std::mem::replace(&mut self.edited[index], self.now);
        if let Some(record) = &mut self.record
            && last != self.now
        {
            record.before.push((index, last));
        }
        self.is_edited_now = true;
    }

    /// Begins a record for [`Self::roll_back`].
    pub(crate) fn begin_record(&mut self) {
        let &mut Self { now, is_edited_now, .. } = self;
        self.record = Some(Record { now, is_edited_now, before: Vec::new() });
    }

    /// Ends the record and keeps all edits.
    pub(crate) fn end_record(&mut self) {
        self.record = None;
    }

    /// Ends the record and forgets the edits since it began, which were undone. Returns whether
    /// that is possible: nobody asked for a moment after any of them.
    pub(crate) fn roll_back(&mut self) -> bool {
        let Some(record) = self.record.take() else { return false };
        if record.now != self.now || self.now == u32::MAX {
            return false;
        }
        for (index, last) in record.before.into_iter().rev() {
            self.edited[index] = last;
        }
        self.is_edited_now = record.is_edited_now;
        true
    }

    /// Checks whether a moment lies in this history, or in the shared part of one that it
    /// continues.
    fn has(&self, moment: Moment) -> bool {
        let is_shared = |&(id, end): &(u64, u32)| id == moment.of && moment.at < end;
        self.id == moment.of || self.continued.iter().any(is_shared)
    }

    /// Forgets instructions that were made and undone.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.edited.truncate(len);
    }

    /// Checks whether an instruction was edited after a time. When time has come to its end,
    /// all edits are later than any moment.
    fn is_later(&self, id: InstId, time: u32) -> bool {
        let edited = self.edited.get(id.index()).copied().unwrap_or(self.now);
        edited > time
    }
}

impl Module {
    /// Returns the present: the edits made so far are earlier, and those to come are later. It
    /// is also a moment of clones that are made later, and of one made earlier if this module was
    /// not edited in between.
    pub fn moment(&mut self) -> Moment {
        let history = &mut self.history;
        // Time only passes with edits, so that a module and its clone share it until then.
        if history.is_edited_now {
            history.is_edited_now = false;
            history.now = history.now.saturating_add(1);
        }
        Moment { of: history.id, at: history.now - 1 }
    }

    /// Returns the instructions that were made, removed, edited or moved after a moment, or
    /// whose operands, users, neighbours or control edges changed, and former and new roots, in
    /// order of their ids; all instructions if it is not a moment of this module. Edits of
    /// a trial that were undone only count if a moment in the trial was asked for. Names,
    /// metadata and the attributes of the module do not count.
    pub fn edited_since(&self, moment: Moment) -> Vec<InstId> {
        let is_own = self.history.has(moment);
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
        self.names.set_verified();
    }
}
