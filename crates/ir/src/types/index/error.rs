//! Errors of layouts, indices and addresses.

/// Why a shape has no addresses in its layout.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// A dim without a bound.
    #[error("dim {dim} is unbounded (`?`); give it a size or a bound")]
    Unbounded {
        /// The dim.
        dim: usize,
    },
    /// A dim with a size below zero.
    #[error("dim {dim} has the negative size {size}")]
    Negative {
        /// The dim.
        dim: usize,
        /// Its size.
        size: i64,
    },
    /// The layout has another rank than the array.
    #[error("minor_to_major orders {layout} dims, but the array has {rank}")]
    Rank {
        /// Dims in the layout.
        layout: usize,
        /// Dims of the array.
        rank: usize,
    },
    /// The layout's dims are not a permutation.
    #[error(
        "minor_to_major names dim {dim}, which is named before or is not below the rank {rank}"
    )]
    NotAPermutation {
        /// The invalid entry.
        dim: u32,
        /// Dims of the array.
        rank: usize,
    },
    /// The explicit padding has another rank than the array.
    #[error("the padding has {padding} sizes, but the array has {rank} dims")]
    PaddingRank {
        /// Sizes in the padding.
        padding: usize,
        /// Dims of the array.
        rank: usize,
    },
    /// The padded size of a dim is less than its size.
    #[error("dim {dim} of size {size} cannot be padded to {padded}")]
    PaddedTooSmall {
        /// The dim.
        dim: usize,
        /// Its size.
        size: i64,
        /// The padded size.
        padded: i64,
    },
    /// A tile has a size below one that is not `*`.
    #[error("tile {tile} has the size {size}; a tile size is 1 or more, or `*`")]
    TileSize {
        /// The number of the tile; 0 is the outermost.
        tile: usize,
        /// The size.
        size: i64,
    },
    /// A tile's last size is `*`: no dim is left to merge with.
    #[error("tile {tile} ends with `*`, but there is no more minor dim to merge with")]
    CombineLast {
        /// The number of the tile; 0 is the outermost.
        tile: usize,
    },
    /// The alignment of the buffer's length is not valid.
    #[error("the tail padding alignment {alignment} is negative")]
    TailPadding {
        /// The alignment.
        alignment: i64,
    },
    /// The layout does not describe a dense array in one buffer.
    #[error("a sparse or split layout has no single buffer to address")]
    NotOneBuffer,
    /// The buffer's element count does not fit in `i64`.
    #[error("the buffer has more than 2^63-1 elements")]
    Overflow,
}

/// Why an index or address is not valid for a shape.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IndexError {
    /// The number of indices differs from the rank.
    #[error("{given} indices were given for {rank} dims")]
    Rank {
        /// Indices given.
        given: usize,
        /// Rank of the shape.
        rank: usize,
    },
    /// An index outside its dim.
    #[error("index {index} is out of range in dim {dim} of size {size}")]
    OutOfRange {
        /// The dim.
        dim: usize,
        /// The index.
        index: i64,
        /// The dim's size.
        size: i64,
    },
    /// An address outside the buffer.
    #[error("address {address} is outside the buffer of {elements} elements")]
    OutsideBuffer {
        /// The address.
        address: i64,
        /// Elements in the buffer, padding included.
        elements: i64,
    },
    /// A dim number that is neither in `0..rank` nor in `-rank..0`.
    #[error("there is no dim {dim} in an array of rank {rank}")]
    NoSuchDim {
        /// The dim number.
        dim: i64,
        /// Rank of the shape.
        rank: usize,
    },
}
