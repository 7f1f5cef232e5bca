//! The errors of views, reductions and programs.

use crate::reduce::Fold;

/// Why a view, a reduction or a program failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// An axis is out of range.
    #[error("axis {axis} is out of range for an array of {rank} dims")]
    AxisOutOfRange {
        /// The axis as the caller gave it.
        axis: i64,
        /// The number of dims.
        rank: usize,
    },
    /// An axis, counted from the first, is given more than once.
    #[error("axis {0} is given more than once")]
    AxisRepeated(usize),
    /// The number of strides is not the number of dims.
    #[error("{strides} strides for {dims} dims: give one for each dim")]
    StridesOfOtherRank {
        /// The number of strides.
        strides: usize,
        /// The number of dims.
        dims: usize,
    },
    /// An element of the view would lie outside its data, which have this many elements.
    #[error(
        "elements of the view lie outside its data of {0} elements: check dims, strides and offset"
    )]
    OutOfBounds(usize),
    /// The number of elements overflows, or memory for them cannot be allocated.
    #[error("there is no memory for so many elements: the product of the dims is too large")]
    TooLarge,
    /// A reduction without an identity, such as a maximum, is asked for over no elements.
    #[error(
        "a reduction without an identity has no value over no elements: the reduced dims have size 0"
    )]
    Empty,
    /// The length of an output is not the number of results.
    #[error("there is room for {given} results, and there are {results}")]
    OutputOfOtherLength {
        /// The length of the output.
        given: usize,
        /// The number of results.
        results: usize,
    },
    /// A task panicked, and the pool caught the panic. Other tasks may have written results.
    #[error("a task of the reduction did not come to its end: the pool caught a panic of it")]
    Unfinished,
    /// Too many elements are reduced to one for their places to be counted in 32 bits, or in the 31
    /// bits of an `i32`.
    #[error("{count} elements are reduced to one place; at most {most} can be told apart")]
    TooManyPlaces {
        /// The number of elements that are reduced to one.
        count: usize,
        /// The most elements whose places can be counted.
        most: usize,
    },
    /// The fold does not exist for the type: `bool` has `And` and `Or`, numbers have the others.
    #[error(
        "elements have no fold {0:?}: `And` and `Or` are those of truth values, the others of numbers"
    )]
    NoSuchFold(Fold),
    /// The number of operands is not the number of a program's inputs.
    #[error("{given} operands for a program of {wanted} inputs")]
    Operands {
        /// The number of operands.
        given: usize,
        /// The number of inputs.
        wanted: usize,
    },
    /// The number of output buffers is not the number of a program's outputs.
    #[error("{given} rooms for a program of {wanted} outputs")]
    Rooms {
        /// The number of output buffers.
        given: usize,
        /// The number of outputs.
        wanted: usize,
    },
    /// The buffer for an output has another element type than the output.
    #[error("the room for output {output} is one for elements of another type")]
    OtherKind {
        /// The index of the output.
        output: usize,
    },
    /// An operand has other dims than the program.
    #[error(
        "an operand of dims {given:?} for a program over {wanted:?}: broadcast it by strides of 0"
    )]
    OtherDims {
        /// The dims of the operand.
        given: Vec<usize>,
        /// The dims of the program.
        wanted: Vec<usize>,
    },
    /// An id is not one of the program's, or is no reduction by moments where one is needed.
    #[error("a value is not one of this program's, or not what is asked for")]
    OfAnotherProgram,
    /// The number of channels is not a multiple of the number of groups.
    #[error("{channels} channels do not divide into {groups} groups")]
    Groups {
        /// The number of groups.
        groups: usize,
        /// The number of channels.
        channels: usize,
    },
    /// The channel of an instance or group norm is dim 0, which is the batch.
    #[error(
        "the channel of an instance or group norm is dim 0, which is the batch: give another one"
    )]
    ChannelIsBatch,
    /// The output of this index has not all dims along which its value varies.
    #[error("output {0} changes along a dim that its array does not have")]
    Dropped(usize),
}
