//! Lowers reductions to kernels.

mod accumulate;
pub(crate) mod blocks;
pub(crate) mod chain;
mod empty;
mod finish;
pub(crate) mod fused;
mod lift;
mod place;
pub(crate) mod produce;
mod select;
pub(crate) mod state;
pub(crate) mod walk;
pub(crate) mod window;

pub use select::Selection;

use tilewright_ir::shape::ArrayShape;
use tilewright_ir::{ElementType, Literal};

use crate::error::LowerError;
use crate::kernel::{Function, Kernel};

/// A reduction by any computation.
#[derive(Clone, Debug)]
pub struct ReductionSpec {
    /// The name of the kernel.
    pub name: String,
    /// The arrays. All have the same dims, and at least one is in memory.
    pub arrays: Vec<Source>,
    /// The reduced dims.
    pub axes: Vec<usize>,
    /// The types of the inits, one for each array.
    pub inits: Vec<ElementType>,
    /// The shape of each array's result.
    pub results: Vec<ArrayShape>,
    /// Combines as many accumulators as there are arrays with as many elements, in any order.
    /// Its types are the types of the accumulators.
    pub by: Function,
    /// The identity, if it is known.
    pub neutral: Option<Neutral>,
    /// Whether combinations round, so that one long chain is less exact than several short ones.
    pub rounds: bool,
}

/// An array that is reduced.
#[derive(Clone, Debug)]
pub struct Source {
    /// Its dims and type, and its layout if it is in memory.
    pub shape: ArrayShape,
    /// The source of its elements.
    pub elements: Elements,
}

/// The source of an array's elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Elements {
    /// The array is in main memory.
    Memory,
    /// Each element is the sum of its indices, each times the factor of its dim. The type is an
    /// integer type, in which sums wrap around.
    Indices(Vec<i64>),
    /// The kernel computes the elements from other arrays.
    Computed,
}

/// The identity of a reduction, one literal for each array.
#[derive(Clone, Debug)]
pub struct Neutral {
    /// The identity in the types of the accumulators.
    pub accumulated: Vec<Literal>,
    /// The identity in the types of the arrays.
    pub elements: Vec<Literal>,
}

impl ReductionSpec {
    /// Returns the kernel that reads every element once and stores nothing in between. Its
    /// inputs are [`ReductionSpec::inputs`].
    ///
    /// # Errors
    /// Returns an error if a kernel cannot walk arrays of these layouts or sizes on this
    /// target.
    pub fn fused(&self, target: &tilewright_target::Target) -> Result<Kernel, LowerError> {
        fused::kernel(self, target).map_err(|error| error.in_kernel(&self.name))
    }

    /// Returns the operands of the reduce, arrays before inits, that kernels read, in the order
    /// of their inputs: the arrays in memory and all inits.
    pub fn inputs(&self) -> Vec<usize> {
        let arrays = self.arrays.iter().enumerate();
        let read = arrays.filter(|(_, array)| array.elements == Elements::Memory);
        let inits = self.arrays.len()..self.arrays.len().saturating_mul(2);
        read.map(|(place, _)| place).chain(inits).collect()
    }

    /// Returns the shapes of the arrays that are in memory or are walked as if they were.
    pub(crate) fn walked(&self) -> impl Iterator<Item = &ArrayShape> {
        let walked = |array: &&Source| !matches!(array.elements, Elements::Indices(_));
        self.arrays.iter().filter(walked).map(|array| &array.shape)
    }
}
