//! Lets other code compute instructions.

use std::fmt;
use std::rc::Rc;

use smallvec::SmallVec;
use tilewright_ir::{InstId, Literal, Op, Verified};

use crate::error::{Fault, Outcome};
use crate::limits::Ledger;
use crate::value::Value;

/// An evaluator of some of a module's instructions in place of this crate, for example a
/// simulated machine. It is called for every instruction of the entry and of called
/// computations, except parameters and except calls, branches and loops, whose instructions are
/// passed instead. A fusion that is not computed as a whole is passed by instructions, too. The
/// computation that a reduction or a sort applies to elements is a part of the instruction.
pub trait Delegate: Sync {
    /// Returns the instruction's value, given those of its operands; `None` if the evaluation
    /// should compute it.
    ///
    /// # Errors
    /// The reason why it could not be computed.
    fn compute(&self, id: InstId, operands: &[Literal]) -> Result<Option<Literal>, String>;
}

/// The delegate of an evaluation, if there is one.
#[derive(Clone, Copy, Default)]
pub(crate) struct Delegated<'m>(pub(crate) Option<&'m dyn Delegate>);

impl Delegated<'_> {
    /// Returns the value of an instruction, if a delegate computes it.
    pub(crate) fn compute(
        &self,
        module: &Verified,
        id: InstId,
        operands: &[Value],
        ledger: &Rc<Ledger>,
    ) -> Outcome<Option<Value>> {
        let Some(delegate) = self.0 else { return Ok(None) };
        if runs_others(module.op(id)) {
            return Ok(None);
        }
        let literals = operands.iter().map(|value| value.clone().into_literal().ok());
        let Some(operands) = literals.collect::<Option<SmallVec<[Literal; 3]>>>() else {
            return Ok(None);
        };
        let value = delegate.compute(id, &operands).map_err(Fault::Unsupported)?;
        value.map(|value| Value::from_literal(&value, ledger)).transpose()
    }
}

/// Checks whether an op's work is the instructions of a computation, which are asked for by
/// themselves.
fn runs_others(op: &Op) -> bool {
    matches!(
        op,
        Op::Call(_)
            | Op::Conditional(_)
            | Op::While(_)
            | Op::AsyncStart(_)
            | Op::AsyncUpdate(_)
            | Op::AsyncDone(_)
    )
}

impl fmt::Debug for Delegated<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Delegated").field(&self.0.is_some()).finish()
    }
}
