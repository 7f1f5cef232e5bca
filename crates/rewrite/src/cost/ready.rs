//! Finds when values are ready: the earliest sweep over main memory in which they can be computed.

use super::roles::{Role, Timing};

/// The time at which a value is ready; the order is that of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ready {
    /// The sweep over main memory in which it can be read.
    pub(super) sweep: u32,
    /// Whether only its own row can read it in this sweep, and all others in the next one.
    row_only: bool,
}

impl Ready {
    /// Returns the time at which all rows can read it.
    pub(super) fn whole(self) -> Self {
        if self.row_only { self.next() } else { self }
    }

    /// Returns the time after this sweep.
    fn next(self) -> Self {
        Self { sweep: self.sweep.saturating_add(1), row_only: false }
    }

    /// Returns the same sweep, for its own row only.
    fn for_its_row(self) -> Self {
        Self { row_only: true, ..self }
    }
}

/// Returns when the result of an instruction is ready whose operands are ready at `waits`;
/// `of_large` says whether any of these is in main memory, or inlined and computed from an array
/// there, and `serves_rows` whether a kernel that goes from row to row needs the result.
pub(super) fn readiness(role: Role, waits: Ready, of_large: bool, serves_rows: bool) -> Ready {
    match role.timing {
        Timing::AsOperands => waits,
        Timing::Reshape if !of_large => waits,
        Timing::RowReduce if of_large && serves_rows => waits.for_its_row(),
        Timing::WholeOperands => waits.whole(),
        Timing::Reshape if role.is_alias() => waits.whole(),
        Timing::Reduce | Timing::RowReduce | Timing::Reshape | Timing::AfterLarge => {
            if of_large {
                waits.next()
            } else {
                waits.whole()
            }
        }
    }
}
