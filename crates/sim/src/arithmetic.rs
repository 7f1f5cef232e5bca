//! What ops do to elements. The machine knows no arithmetic: whoever runs it
//! lends some.

use std::fmt;

use tilewright_ir::{Data, ElementType, Op};

/// Something that computes elementwise ops.
pub trait Arithmetic: fmt::Debug {
    /// The op on operands of these types; `None` if it cannot be computed.
    fn prepare(
        &self,
        op: &Op,
        operands: &[ElementType],
        result: ElementType,
    ) -> Option<Box<dyn Lanes>>;
}

/// An elementwise op on known types.
pub trait Lanes {
    /// Computes as many elements as `lanes` says, and leaves them as all there is
    /// in `out`, which stores the result's type. `false` if operands do not store
    /// the types that the op was prepared for, or too few elements.
    fn compute(&self, operands: &[&Data], lanes: usize, out: &mut Data) -> bool;
}
