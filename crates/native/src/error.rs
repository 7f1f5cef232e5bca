//! Why a reduction cannot be computed.

use crate::reduce::Fold;

/// Why a view or a reduction is refused. Nothing was computed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// An axis is not one of the array's.
    #[error("axis {axis} is out of range for an array of {rank} dims")]
    AxisOutOfRange {
        /// The axis as it was given.
        axis: i64,
        /// The number of dims.
        rank: usize,
    },
    /// An axis is given twice.
    #[error("axis {0} is given more than once")]
    AxisRepeated(usize),
    /// There is not one stride for each dim.
    #[error("{strides} strides for {dims} dims: give one for each dim")]
    StridesOfOtherRank {
        /// The number of strides.
        strides: usize,
        /// The number of dims.
        dims: usize,
    },
    /// Some element would lie outside the data.
    #[error(
        "elements of the view lie outside its data of {0} elements: check dims, strides and offset"
    )]
    OutOfBounds(usize),
    /// The elements do not fit in memory.
    #[error("there is no memory for so many elements: the product of the dims is too large")]
    TooLarge,
    /// A maximum or minimum of nothing.
    #[error(
        "a reduction without an identity has no value over no elements: the reduced dims have size 0"
    )]
    Empty,
    /// The place for the results has not their number of elements.
    #[error("there is room for {given} results, and there are {results}")]
    OutputOfOtherLength {
        /// The length of the place.
        given: usize,
        /// The number of results.
        results: usize,
    },
    /// A task panicked, and the pool went on.
    #[error("a task of the reduction did not come to its end: the pool caught a panic of it")]
    Unfinished,
    /// The places of extrema are counted in 32 bits, by an `i32` in 31.
    #[error("{count} elements are reduced to one place; at most {most} can be told apart")]
    TooManyPlaces {
        /// The number of elements.
        count: usize,
        /// The most that can be told apart.
        most: usize,
    },
    /// Numbers have no fold of truth values, and the other way round.
    #[error(
        "elements have no fold {0:?}: `And` and `Or` are those of truth values, the others of numbers"
    )]
    NoSuchFold(Fold),
    /// A program has another number of inputs.
    #[error("{given} operands for a program of {wanted} inputs")]
    Operands {
        /// The number of operands.
        given: usize,
        /// The number of inputs.
        wanted: usize,
    },
    /// There is not one room for each output of a program.
    #[error("{given} rooms for a program of {wanted} outputs")]
    Rooms {
        /// The number of rooms.
        given: usize,
        /// The number of outputs.
        wanted: usize,
    },
    /// The room for an output is one for elements of another type.
    #[error("the room for output {output} is one for elements of another type")]
    OtherKind {
        /// The number of the output.
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
    /// An id is not one of the program's, or not of moments.
    #[error("a value is not one of this program's, or not what is asked for")]
    OfAnotherProgram,
    /// Channels that are no whole number of groups.
    #[error("{channels} channels do not divide into {groups} groups")]
    Groups {
        /// The number of groups.
        groups: usize,
        /// The number of channels.
        channels: usize,
    },
    /// Channels that are those of the batch.
    #[error(
        "the channel of an instance or group norm is dim 0, which is the batch: give another one"
    )]
    ChannelIsBatch,
    /// An output has not all dims that its value changes along.
    #[error("output {0} changes along a dim that its array does not have")]
    Dropped(usize),
}
