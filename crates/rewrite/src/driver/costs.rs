//! Hands the costs of a module from pass to pass.

use tilewright_ir::{Module, Moment};

use crate::cost::{CostModel, Ledger};

/// The ledger of a module at some earlier moment, if there is one. Later edits are counted when
/// the ledger is next asked for.
#[derive(Debug, Default)]
pub(crate) struct Costs<'a>(Option<(Ledger<'a>, Moment)>);

impl<'a> Costs<'a> {
    /// Returns the ledger of the current module.
    pub(crate) fn ledger(&mut self, module: &mut Module, model: CostModel<'a>) -> &Ledger<'a> {
        let now = self.take(module, model);
        &self.0.insert(now).0
    }

    /// Returns the ledger of the current module, which the caller then keeps up to date, and
    /// the present moment.
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

    /// Takes a ledger back. It may contain edits that were made after the moment.
    pub(crate) fn give_back(&mut self, (ledger, at): (Ledger<'a>, Moment)) {
        self.0 = Some((ledger, at));
    }

    /// Forgets the ledger, because the module is replaced by another one.
    pub(crate) fn forget(&mut self) {
        self.0 = None;
    }
}
