//! A computation: an ordered list of instructions with parameters and a root.

use smol_str::SmolStr;

use crate::entity::{InstId, Packed};
use crate::metadata::Residue;

/// A computation of a module. Its instructions form a list in which operands precede their
/// users.
#[derive(Clone, Debug)]
pub struct Computation {
    pub(crate) name: SmolStr,
    pub(crate) first: Packed<InstId>,
    pub(crate) last: Packed<InstId>,
    pub(crate) len: usize,
    pub(crate) parameters: Vec<InstId>,
    pub(crate) root: Packed<InstId>,
    pub(crate) execution_thread: Option<SmolStr>,
    pub(crate) unique_id: Option<i64>,
    pub(crate) residue: Residue,
}

impl Computation {
    pub(crate) fn new(name: SmolStr) -> Self {
        Self {
            name,
            first: Packed::NONE,
            last: Packed::NONE,
            len: 0,
            parameters: Vec::new(),
            root: Packed::NONE,
            execution_thread: None,
            unique_id: None,
            residue: Residue::default(),
        }
    }

    /// Returns the name, without `%`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the instruction whose value is the computation's result; `None` if there are no
    /// instructions.
    pub fn root(&self) -> Option<InstId> {
        self.root.get().or(self.last.get())
    }

    /// Checks whether the root was set, rather than being the last instruction.
    pub fn has_explicit_root(&self) -> bool {
        !self.root.is_none()
    }

    /// Returns the parameters, by number.
    pub fn parameters(&self) -> &[InstId] {
        &self.parameters
    }

    /// Returns the number of instructions.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Checks whether there are no instructions.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the thread that executes it, if that is not the main thread.
    pub fn execution_thread(&self) -> Option<&str> {
        self.execution_thread.as_deref()
    }

    /// Its id in the binary form it was read from.
    pub fn unique_id(&self) -> Option<i64> {
        self.unique_id
    }

    /// Returns the rest of its binary form.
    pub fn residue(&self) -> &Residue {
        &self.residue
    }
}
