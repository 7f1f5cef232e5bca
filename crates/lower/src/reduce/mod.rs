//! Reductions as kernels.

mod blocks;
mod fused;
mod place;
mod walk;

use thiserror::Error;
use tilewright_ir::shape::ArrayShape;
use tilewright_ir::{ElementType, Literal};

use crate::kernel::{Function, Kernel};

/// A reduction, whatever it reduces by.
#[derive(Clone, Debug)]
pub struct Reduction {
    /// What the kernel is called.
    pub name: String,
    /// The arrays: all of the same dims.
    pub arrays: Vec<ArrayShape>,
    /// The dims that vanish.
    pub axes: Vec<usize>,
    /// What becomes of each array.
    pub results: Vec<ArrayShape>,
    /// Combines as many accumulators as there are arrays with as many elements,
    /// in any order; its types are those that are accumulated in.
    pub by: Function,
    /// What changes nothing when it is combined with anything, for each array, in
    /// the type that is accumulated in.
    pub identity: Vec<Literal>,
    /// The same in the types of the arrays.
    pub padding: Vec<Literal>,
}

/// Why there is no kernel.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LowerError {
    /// Sizes that 64 bits do not count.
    #[error("it has more than 2^64 elements, padding included")]
    TooLarge,
    /// Dims that are only known at run time.
    #[error("it has dynamic dims")]
    Dynamic,
    /// Tiles that do not make whole vectors.
    #[error("its layout's tiles do not make whole vectors")]
    Tiles,
    /// Arrays that do not lie alike.
    #[error("its arrays do not lie alike in memory, or their results in other vectors")]
    Unlike,
    /// Results beyond what vector memory holds.
    #[error("its results do not fit the vector memory")]
    Results,
}

impl Reduction {
    /// The kernel that reads every element once and stores nothing in between.
    ///
    /// # Errors
    /// If the layouts or sizes are none that a kernel can walk on this target.
    pub fn fused(&self, target: &tilewright_target::Target) -> Result<Kernel, LowerError> {
        fused::kernel(self, target)
    }

    /// The types that are accumulated in.
    fn accumulated(&self) -> Vec<ElementType> {
        self.by.result_types().collect()
    }
}
