//! Computes when values are ready: the earliest sweep over main memory in which each can be read.
//! `sweeps.rs` asks for every instruction of a computation.

use super::roles::{ReadyRule, Role};

/// The earliest time at which a value can be read. The order of these values is the order of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ready {
    /// The number of the sweep over main memory in which the value can be read.
    pub(super) sweep: u32,
    /// Whether only a computation on the value's own row can read it in this sweep. Computations on
    /// other rows can then read it in the next sweep.
    row_only: bool,
}

impl Ready {
    /// Returns the time at which computations on all rows can read the value.
    pub(super) fn whole(self) -> Self {
        if self.row_only { self.next() } else { self }
    }

    /// Returns the start of the next sweep, when all rows can read the value.
    fn next(self) -> Self {
        Self { sweep: self.sweep.saturating_add(1), row_only: false }
    }

    /// Returns this sweep, for computations on the value's own row only.
    fn for_its_row(self) -> Self {
        Self { row_only: true, ..self }
    }
}

/// Returns when the result of an instruction is ready. `waits` is the time at which the last of its
/// operands is ready. `of_large` says whether an operand is a large array, or inlined and computed
/// from one. `serves_rows` says whether a kernel that goes from row to row needs the result.
pub(super) fn readiness(role: Role, waits: Ready, of_large: bool, serves_rows: bool) -> Ready {
    match role.ready_rule {
        ReadyRule::AsOperands => waits,
        ReadyRule::Reshape if !of_large => waits,
        ReadyRule::RowReduce if of_large && serves_rows => waits.for_its_row(),
        ReadyRule::WholeOperands => waits.whole(),
        ReadyRule::Reshape if role.is_alias() => waits.whole(),
        ReadyRule::Reduce | ReadyRule::RowReduce | ReadyRule::Reshape | ReadyRule::AfterLarge => {
            if of_large {
                waits.next()
            } else {
                waits.whole()
            }
        }
    }
}
