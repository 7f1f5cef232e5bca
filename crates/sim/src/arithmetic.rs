//! The interface for arithmetic on elements. The machine has none of its own; its caller
//! provides it.

use std::fmt;

use tilewright_ir::{Data, ElementType, Op};

/// Computes elementwise ops.
pub trait Arithmetic: fmt::Debug {
    /// Returns the op on operands of these types; `None` if it cannot be computed.
    fn prepare(
        &self,
        op: &Op,
        operands: &[ElementType],
        result: ElementType,
    ) -> Option<Box<dyn Lanes>>;
}

/// An elementwise op on known types.
pub trait Lanes {
    /// Computes `lanes` elements and makes them the whole content of `out`, which stores the
    /// result's type. Returns `false` if the operands do not store the types that the op was
    /// prepared for, or have too few elements.
    fn compute(&self, operands: &[&Data], lanes: usize, out: &mut Data) -> bool;
}
