//! A list of changes to a module, and the module written anew with them.
//!
//! What is not live after the changes is left out: instructions that the result does not depend
//! on, and computations that nothing calls.

mod header;
mod live;
mod writer;

use std::collections::{HashMap, HashSet};

use tilewright::ir::{CompId, InstId, Literal, Module, Op, Shape};

use self::writer::Writer;
use super::annotations::Kinds;

/// What stands in place of an instruction.
#[derive(Clone, Debug)]
pub(super) enum Stand {
    /// A new parameter of the entry computation.
    Parameter,
    /// An array of zeros, or a tuple of such arrays.
    Zero,
    /// An array of ones, or a tuple of such arrays.
    One,
    /// A constant.
    Constant(Literal),
    /// A value of the same computation that is computed before.
    Value(InstId),
}

/// The root of a computation.
#[derive(Clone, Debug)]
pub(super) enum DraftRoot {
    /// An instruction.
    Of(InstId),
    /// A new tuple of these values.
    Tuple(Vec<InstId>),
}

/// A computation that is copied to the place of an instruction.
#[derive(Clone, Debug)]
pub(super) struct Inlined {
    pub(super) callee: CompId,
    /// The values of its parameters, by number.
    pub(super) arguments: Vec<InstId>,
}

/// Which names become short.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Renamed {
    pub(super) module: bool,
    pub(super) computations: bool,
    pub(super) instructions: bool,
}

/// Changes to a module. What is not listed stays as it is.
#[derive(Clone, Debug, Default)]
pub(super) struct Draft {
    pub(super) stands: HashMap<InstId, Stand>,
    pub(super) roots: HashMap<CompId, DraftRoot>,
    pub(super) inlined: HashMap<InstId, Inlined>,
    pub(super) ops: HashMap<InstId, Op>,
    pub(super) shapes: HashMap<InstId, Shape>,
    pub(super) operands: HashMap<InstId, Vec<InstId>>,
    /// Parameters that are left out. Their users and callers must not need them any more.
    pub(super) dropped: HashSet<InstId>,
    /// Whether parameters of the entry that nothing uses are left out, too.
    pub(super) drops_unused: bool,
    /// Whether the entry gets one more parameter, which nothing uses.
    pub(super) has_probe: bool,
    /// Annotations that instructions lose.
    pub(super) stripped: HashMap<InstId, Kinds>,
    /// Annotations that the header loses.
    pub(super) stripped_header: Kinds,
    pub(super) renamed: Renamed,
}

impl Draft {
    /// Returns the module with these changes; `None` if they do not fit together.
    pub(super) fn write(&self, from: &Module) -> Option<Module> {
        let written = Writer::new(from, self)?.write()?;
        if self.inlined.is_empty() {
            return Some(written);
        }
        // Arguments that the inlined computations do not use are dead now.
        let rest = Self { drops_unused: self.drops_unused, ..Self::default() };
        Writer::new(&written, &rest)?.write()
    }

    /// Returns the value that an instruction's users see: itself, or what replaces it.
    pub(super) fn resolve(&self, from: &Module, id: InstId) -> Option<InstId> {
        let mut at = id;
        for _ in 0..=from.instruction_bound() {
            match self.stands.get(&at) {
                Some(Stand::Value(next)) => at = *next,
                Some(Stand::Parameter | Stand::Zero | Stand::One | Stand::Constant(_)) | None => {
                    return Some(at);
                }
            }
        }
        None
    }

    /// Returns the operands of an instruction after the changes, unresolved.
    pub(super) fn operands_of<'a>(&'a self, from: &'a Module, id: InstId) -> &'a [InstId] {
        self.operands.get(&id).map_or_else(|| from.operands(id), Vec::as_slice)
    }

    /// Returns the op of an instruction after the changes.
    pub(super) fn op_of<'a>(&'a self, from: &'a Module, id: InstId) -> &'a Op {
        self.ops.get(&id).unwrap_or_else(|| from.op(id))
    }

    /// Returns the shape of an instruction after the changes.
    pub(super) fn shape_of<'a>(&'a self, from: &'a Module, id: InstId) -> &'a Shape {
        self.shapes.get(&id).unwrap_or_else(|| from.shape(id))
    }
}
