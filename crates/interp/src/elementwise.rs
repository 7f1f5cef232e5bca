//! Elementwise ops on storage, for those who bring their own control flow.

use tilewright_ir::{Data, ElementType, Op};

use crate::eval::elementwise::{Kernel, kernel};

/// An elementwise op on operands of known types, computed as
/// [`evaluate`](crate::evaluate) computes it.
pub struct Elementwise(Kernel);

impl Elementwise {
    /// The op on operands of these types; `None` if it is not elementwise, or
    /// takes no such operands.
    pub fn new(op: &Op, operands: &[ElementType], result: ElementType) -> Option<Self> {
        kernel(op, operands, result).ok().flatten().map(Self)
    }

    /// Computes `lanes` elements from the first that many of each operand, and
    /// leaves them as all there is in `out`, which stores the result's type.
    /// `false` where an operand stores another type than that it was made for, or
    /// too few elements.
    pub fn compute(&self, operands: &[&Data], lanes: usize, out: &mut Data) -> bool {
        (self.0)(operands, lanes, out).is_ok()
    }
}

impl std::fmt::Debug for Elementwise {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Elementwise").finish()
    }
}
