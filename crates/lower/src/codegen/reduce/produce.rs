//! Elements that a kernel computes as it reduces them.

use super::blocks::{Blocks, Loop};
use super::state::Statements;
use super::walk::Walk;
use crate::error::LowerError;
use crate::kernel::build::Build;
use crate::kernel::{Block, IndexId, RegisterId, Value};

/// What computes the elements of a reduction.
#[derive(Debug, Default)]
pub(crate) struct Produced {
    /// What is copied with every block.
    pub(crate) streams: Vec<Block>,
    /// What is computed once for a block.
    pub(crate) block: Statements,
    /// What is computed within loops, before what else is done there.
    pub(crate) within: Vec<(IndexId, Statements)>,
    /// The vector of each array, and whether padding in it changes nothing.
    pub(crate) values: Vec<(RegisterId, bool)>,
    /// What each reduction begins with.
    pub(crate) inits: Vec<Value>,
}

/// Computes elements along a walk that is cut into blocks.
pub(crate) struct Producer<'a> {
    /// Makes it.
    pub(crate) produce: &'a dyn Fn(&mut Build, &Walk, &Blocks) -> Result<Produced, LowerError>,
    /// Bytes that are read from main memory for every element.
    pub(crate) bytes: u64,
}

impl Produced {
    /// Loops around statements, the first outermost, with what is computed in them.
    pub(super) fn nest(this: Option<&Self>, loops: &[&Loop], body: Statements) -> Statements {
        loops.iter().rev().fold(body, |inner, l| {
            let mut body = Statements::new();
            let within = this.into_iter().flat_map(|produced| &produced.within);
            for (_, statements) in within.filter(|(index, _)| *index == l.index) {
                body.extend(statements.iter().cloned());
            }
            body.extend(inner);
            vec![crate::kernel::Statement::For { index: l.index, count: l.count.clone(), body }]
        })
    }
}
