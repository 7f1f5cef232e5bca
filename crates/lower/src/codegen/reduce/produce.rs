//! Elements that a kernel computes while it reduces them.

use super::blocks::{Blocks, Loop};
use super::state::Statements;
use super::walk::VectorWalk;
use crate::error::LowerError;
use crate::kernel::build::Build;
use crate::kernel::{Block, IndexId, RegisterId, Value};

/// The computed elements of a reduction.
#[derive(Debug, Default)]
pub(crate) struct Produced {
    /// The regions copied with every block.
    pub(crate) streams: Vec<Block>,
    /// Statements that run once per block.
    pub(crate) block: Statements,
    /// Statements that run first in the body of each loop.
    pub(crate) within: Vec<(IndexId, Statements)>,
    /// For each array, the register with its vector and whether its padding holds the identity.
    pub(crate) values: Vec<(RegisterId, bool)>,
    /// The init of each reduction.
    pub(crate) inits: Vec<Value>,
}

/// Computes elements along a walk that is divided into blocks.
pub(crate) struct Producer<'a> {
    /// Emits the statements.
    pub(crate) produce:
        &'a dyn Fn(&mut Build, &VectorWalk, &Blocks) -> Result<Produced, LowerError>,
    /// Bytes read from main memory per element.
    pub(crate) bytes: u64,
}

impl Produced {
    /// Nests statements in loops, the first outermost, with the values that are computed in each
    /// loop.
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
