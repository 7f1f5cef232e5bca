//! Elementwise ops on storage, for those who bring their own control flow.

use tilewright_ir::{Data, ElementType, Op};

use crate::eval::elementwise::{Kernel, kernel};

/// An elementwise op on operands of known types, computed as
/// [`evaluate`](crate::evaluate) computes it.
pub struct Elementwise(Kernel);

impl Elementwise {
    /// Creates the function of an op on operands of these types; `None` if it is not
    /// elementwise or does not accept these operands.
    pub fn new(op: &Op, operands: &[ElementType], result: ElementType) -> Option<Self> {
        kernel(op, operands, result).ok().flatten().map(Self)
    }

    /// Computes `lanes` elements from the first `lanes` elements of each operand, and replaces
    /// the content of `out`, which stores the result's type. Returns `false` if an operand
    /// stores another type than expected, or too few elements.
    pub fn compute(&self, operands: &[&Data], lanes: usize, out: &mut Data) -> bool {
        (self.0)(operands, lanes, out).is_ok()
    }
}

impl std::fmt::Debug for Elementwise {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Elementwise").finish()
    }
}
