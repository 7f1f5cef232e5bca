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

use thiserror::Error;
use tilewright_ir::shape::ArrayShape;
use tilewright_ir::{ElementType, Literal};

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
    #[error("its arrays do not lie alike in memory: give them one layout, and types of one width")]
    Unlike,
    /// Results of a type of which a vector holds more elements than of any array.
    #[error("its results lie in longer vectors than its arrays")]
    Narrow,
    /// A computation of which nothing is known to change nothing, where something must be.
    #[error("no identity of its computation is known, which its strategy needs")]
    NoIdentity,
    /// Indices that are not those along rows of all that is reduced.
    #[error("it counts along its reduced dims in other steps than along rows of all of them")]
    Uneven,
    /// Lists of different lengths, or types that do not agree.
    #[error("its arrays, results and computation do not agree")]
    Unsound,
    /// What is kept of a block beyond what vector memory holds.
    #[error("the results that are worked on at one time do not fit the vector memory")]
    Results,
    /// Rows of which some elements are selected, and these, beyond what vector memory
    /// holds.
    #[error("whole rows and what is selected of them do not fit the vector memory")]
    Rows,
    /// More selected elements of a row than can sensibly be looked for one by one.
    #[error(
        "it selects {count} elements of each row, which takes as many passes over the row, and \
         {most} are the most: sort it"
    )]
    Selected {
        /// How many are selected.
        count: u64,
        /// The most that are.
        most: u64,
    },
    /// Elements that no kernel puts in order.
    #[error("no kernel puts elements of type {0} in order")]
    Unordered(ElementType),
    /// More values at one time than there are registers.
    #[error("its computation takes {used} vector registers, and there are {has}")]
    Registers {
        /// How many are in use at one time.
        used: u64,
        /// How many there are.
        has: u64,
    },
}

impl Reduction {
    /// The kernel that reads every element once and stores nothing in between. Its
    /// inputs are [`Reduction::inputs`].
    ///
    /// # Errors
    /// If the layouts or sizes are none that a kernel can walk on this target.
    pub fn fused(&self, target: &tilewright_target::Target) -> Result<Kernel, LowerError> {
        fused::kernel(self, target)
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
