//! Reductions as kernels.

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

/// A reduction, whatever it reduces by.
#[derive(Clone, Debug)]
pub struct Reduction {
    /// What the kernel is called.
    pub name: String,
    /// The arrays: all of the same dims, and one of them at least in memory.
    pub arrays: Vec<Source>,
    /// The dims that vanish.
    pub axes: Vec<usize>,
    /// The types of the inits, of which there is one for each array.
    pub inits: Vec<ElementType>,
    /// What becomes of each array.
    pub results: Vec<ArrayShape>,
    /// Combines as many accumulators as there are arrays with as many elements,
    /// in any order; its types are those that are accumulated in.
    pub by: Function,
    /// What changes nothing, if that is known.
    pub neutral: Option<Neutral>,
    /// Whether combinations are rounded, so that what is combined in one long
    /// chain is less exact than what is combined in several.
    pub rounds: bool,
}

/// What is reduced.
#[derive(Clone, Debug)]
pub struct Source {
    /// Its dims and type, and how it lies in memory if it does.
    pub shape: ArrayShape,
    /// Its elements.
    pub elements: Elements,
}

/// Where elements come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Elements {
    /// Main memory.
    Memory,
    /// The indices along the dims: each times its factor, summed up. The type is
    /// one of integers, in which sums wrap around.
    Indices(Vec<i64>),
    /// Other arrays, of which a kernel computes them.
    Computed,
}

/// What changes nothing when it is combined with anything, for each array.
#[derive(Clone, Debug)]
pub struct Neutral {
    /// In the types that are accumulated in.
    pub accumulated: Vec<Literal>,
    /// In the types of the arrays.
    pub elements: Vec<Literal>,
}

impl Reduction {
    /// The kernel that reads every element once and stores nothing in between. Its
    /// inputs are [`Reduction::inputs`].
    ///
    /// # Errors
    /// If the layouts or sizes are none that a kernel can walk on this target.
    pub fn fused(&self, target: &tilewright_target::Target) -> Result<Kernel, LowerError> {
        fused::kernel(self, target).map_err(|error| error.in_kernel(&self.name))
    }

    /// Which of the reduce's operands, arrays before inits, kernels read, in the
    /// order of their inputs: the arrays in memory, and all inits.
    pub fn inputs(&self) -> Vec<usize> {
        let arrays = self.arrays.iter().enumerate();
        let read = arrays.filter(|(_, array)| array.elements == Elements::Memory);
        let inits = self.arrays.len()..self.arrays.len().saturating_mul(2);
        read.map(|(place, _)| place).chain(inits).collect()
    }

    /// The arrays that lie in memory, or are computed as if they did.
    pub(crate) fn walked(&self) -> impl Iterator<Item = &ArrayShape> {
        let walked = |array: &&Source| !matches!(array.elements, Elements::Indices(_));
        self.arrays.iter().filter(walked).map(|array| &array.shape)
    }
}
