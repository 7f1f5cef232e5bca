//! The costs of a module, which one pass hands to the next.

use tilewright_ir::{Module, Moment};

use crate::cost::{CostModel, Ledger};

/// The ledger of a module at a given moment, if one was made. Later edits are counted when the
/// ledger is asked for.
#[derive(Debug, Default)]
pub(crate) struct Costs<'a>(Option<(Ledger<'a>, Moment)>);

impl<'a> Costs<'a> {
    /// Takes a ledger that is up to date.
    pub(crate) fn of(module: &mut Module, ledger: Ledger<'a>) -> Self {
        Self(Some((ledger, module.moment())))
    }

    /// Returns the ledger of the module in its present state.
    pub(crate) fn ledger(&mut self, module: &mut Module, model: CostModel<'a>) -> &Ledger<'a> {
        let now = self.take(module, model);
        &self.0.insert(now).0
    }

    /// Returns the ledger of the module in its present state, which the caller keeps up to date,
    /// and the present moment.
    pub(crate) fn take(
        &mut self,
        module: &mut Module,
        model: CostModel<'a>,
    ) -> (Ledger<'a>, Moment) {
        let ledger = match self.0.take() {
            Some((ledger, at)) => ledger.caught_up(module, &module.edited_since(at)),
            None => Ledger::of(module, model),
        };
        (ledger, module.moment())
    }

    /// Gives a ledger back. It may have followed edits that were made after the moment.
    pub(crate) fn give_back(&mut self, (ledger, at): (Ledger<'a>, Moment)) {
        self.0 = Some((ledger, at));
    }
}
