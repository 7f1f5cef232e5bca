//! Evaluates `gather`, and what it shares with `scatter`: windows at computed places.

use smallvec::SmallVec;
use tilewright_ir::ops::indexing::GatherAttrs;
use tilewright_ir::{Data, Dims};

use super::indexing::index_values;
use super::{Cx, unsupported};
use crate::error::Outcome;
use crate::limits::Charge;
use crate::strides::{Level, Nest, dim_numbers, extent, place_many, row_major};
use crate::value::{Array, Value};

/// The rule by which indices choose windows of an operand, common to the attributes of `gather`
/// and `scatter`.
pub(super) struct Indexing<'a> {
    /// The operand's dims.
    pub(super) operand: &'a [i64],
    /// The window's size in each operand dim.
    pub(super) sizes: Dims,
    /// For each entry of an index, the operand dim it indexes.
    pub(super) index_map: &'a [i64],
    /// Operand dims that run along with dims of the indices, and those.
    pub(super) operand_batching: &'a [i64],
    pub(super) index_batching: &'a [i64],
    /// The dim of the indices that holds the entries of one index.
    pub(super) vector_dim: i64,
    /// Dims of the result (or updates) that walk within a window.
    pub(super) window_dims: &'a [i64],
    /// Operand dims that these lack.
    pub(super) collapsed: &'a [i64],
}

/// All windows: a walk within each, and where each begins.
pub(super) struct WindowPlaces {
    /// Within a window: first the moved array's strides, second the operand's.
    pub(super) nest: Nest<2>,
    /// Elements of a window.
    pub(super) len: usize,
    /// The position of each window in the moved array.
    pub(super) moved: Vec<isize>,
    /// The position in the operand, before clamping: one index per dim.
    starts: Vec<i64>,
    rank: usize,
    strides: SmallVec<[isize; 6]>,
    sizes: Dims,
    operand: Dims,
    /// Held as long as the windows are.
    pub(super) charge: Charge,
}

fn malformed() -> crate::error::Fault {
    unsupported("its dimension numbers do not fit its operands")
}

/// The dims of an [`Indexing`], checked against the indices and the moved array.
struct WalkDims {
    /// The dim of the indices that holds the entries of one index.
    vector_dim: usize,
    /// The dims that walk over windows, in the indices.
    over: SmallVec<[usize; 6]>,
    /// The same dims in the moved array.
    moved_over: SmallVec<[usize; 6]>,
    /// The dims of the moved array that walk within a window.
    window_dims: SmallVec<[usize; 6]>,
    /// For each entry of an index, the operand dim it indexes.
    map: SmallVec<[usize; 6]>,
    /// The batching dims of the operand, each with the paired dim of the indices.
    batching: SmallVec<[[usize; 2]; 6]>,
}

impl WalkDims {
    fn of(indexing: &Indexing<'_>, indices: &Array, moved: &[i64]) -> Outcome<Self> {
        let vector_dim = extent(indexing.vector_dim);
        let vector_size = indices.dims().get(vector_dim).map_or(1, |&d| extent(d));
        let window_dims = dim_numbers(indexing.window_dims);
        let over: SmallVec<[usize; 6]> = (0..indices.rank()).filter(|&d| d != vector_dim).collect();
        let moved_over: SmallVec<[usize; 6]> =
            (0..moved.len()).filter(|d| !window_dims.contains(d)).collect();
        let same_sizes = over.len() == moved_over.len()
            && over.iter().zip(&moved_over).all(|(&i, &m)| indices.dims()[i] == moved[m]);
        let map = dim_numbers(indexing.index_map);
        let rank = indexing.operand.len();
        let in_range = |dims: &[usize], rank: usize| dims.iter().all(|&d| d < rank);
        let batching = dim_numbers(indexing.operand_batching);
        let batching_from = dim_numbers(indexing.index_batching);
        if !same_sizes
            || map.len() != vector_size
            || batching.len() != batching_from.len()
            || !in_range(&map, rank)
            || !in_range(&batching, rank)
            || !in_range(&batching_from, indices.rank())
            || indexing.sizes.len() != rank
        {
            return Err(malformed());
        }
        let along = |(&a, &i): (&usize, &usize)| indexing.operand[a] == indices.dims()[i];
        if map.iter().any(|dim| batching.contains(dim))
            || !batching.iter().zip(&batching_from).all(along)
        {
            return Err(unsupported("its batching dims do not run along with the indices"));
        }
        let batching = batching.iter().zip(&batching_from).map(|(&a, &i)| [a, i]).collect();
        Ok(Self { vector_dim, over, moved_over, window_dims, map, batching })
    }

    /// Returns the position of each window in the moved array, and its indices in the operand,
    /// one per dim. There are `windows` of them in an operand of `rank` dims.
    fn starts(
        &self,
        indices: &Array,
        moved_strides: &[isize],
        [windows, rank]: [usize; 2],
    ) -> Outcome<(Vec<isize>, Vec<i64>)> {
        let index_strides = row_major(indices.dims());
        let vector_stride = index_strides.get(self.vector_dim).copied().unwrap_or(1);
        let levels = self.over.iter().zip(&self.moved_over).map(|(&i, &m)| Level {
            size: extent(indices.dims()[i]),
            strides: [index_strides[i], moved_strides[m]],
        });
        let values = index_values(indices)?;
        let mut starts = Vec::with_capacity(windows.saturating_mul(rank));
        let mut begins = Vec::with_capacity(windows);
        for [index, moved] in Nest::single_steps(levels).positions([0, 0]) {
            let first = starts.len();
            starts.resize(first + rank, 0);
            for (entry, &dim) in self.map.iter().enumerate() {
                let at = index + entry.cast_signed() * vector_stride;
                starts[first + dim] = values[at.cast_unsigned()];
            }
            for &[dim, from] in &self.batching {
                let position = index / index_strides[from] % indices.dims()[from] as isize;
                starts[first + dim] = position as i64;
            }
            begins.push(moved);
        }
        Ok((begins, starts))
    }
}

impl WindowPlaces {
    /// Returns the windows that `indices` choose; `moved` are the dims of the result of a
    /// gather or the updates of a scatter.
    pub(super) fn new(
        cx: &Cx<'_, '_>,
        indexing: &Indexing<'_>,
        indices: &Array,
        moved: &[i64],
    ) -> Outcome<Self> {
        let dims = WalkDims::of(indexing, indices, moved)?;
        let windows = dims.over.iter().map(|&d| extent(indices.dims()[d]));
        let windows = windows.fold(1, usize::saturating_mul);
        let rank = indexing.operand.len();
        let charge = charge(cx, windows, rank, indices.len())?;
        let moved_strides = row_major(moved);
        let (begins, starts) = dims.starts(indices, &moved_strides, [windows, rank])?;
        let (nest, len) = window_walk(indexing, &dims.window_dims, moved, &moved_strides)?;
        Ok(Self {
            nest,
            len,
            moved: begins,
            starts,
            rank,
            strides: row_major(indexing.operand),
            sizes: indexing.sizes.clone(),
            operand: indexing.operand.into(),
            charge,
        })
    }

    /// Returns the place in the operand where a window begins, moved so that it fits.
    fn clamped(&self, window: usize) -> isize {
        let start = &self.starts[window * self.rank..][..self.rank];
        let room = self.operand.iter().zip(&self.sizes).map(|(dim, size)| (dim - size).max(0));
        let at = start.iter().zip(room).map(|(&at, room)| at.clamp(0, room));
        at.zip(&self.strides).map(|(at, stride)| at as isize * stride).sum()
    }

    /// Returns the place in the operand where a window begins, if it is all inside.
    pub(super) fn inside(&self, window: usize) -> Option<isize> {
        let start = &self.starts[window * self.rank..][..self.rank];
        let room = self.operand.iter().zip(&self.sizes).map(|(dim, size)| dim - size);
        let fits = start.iter().zip(room).all(|(&at, room)| (0..=room).contains(&at));
        let at = start.iter().zip(&self.strides).map(|(&at, stride)| at as isize * stride);
        fits.then(|| at.sum())
    }
}

/// Reserves the memory for every window: an index for each dim, its start in the moved array,
/// the pair of both starts that the caller makes, and the indices as numbers.
fn charge(cx: &Cx<'_, '_>, windows: usize, rank: usize, indices: usize) -> Outcome<Charge> {
    let each = rank.saturating_mul(size_of::<i64>()).saturating_add(3 * size_of::<isize>());
    let numbers = indices.saturating_mul(size_of::<i64>());
    cx.spend(windows.saturating_add(indices))?;
    cx.scratch(1, each.saturating_mul(windows).saturating_add(numbers))
}

/// Returns the walk within a window, and its number of elements.
fn window_walk(
    indexing: &Indexing<'_>,
    window_dims: &[usize],
    moved: &[i64],
    moved_strides: &[isize],
) -> Outcome<(Nest<2>, usize)> {
    let gone = [dim_numbers(indexing.collapsed), dim_numbers(indexing.operand_batching)].concat();
    let strides = row_major(indexing.operand);
    let mut window_dims = window_dims.iter();
    let mut levels: SmallVec<[Level<2>; 6]> = SmallVec::new();
    for (dim, &size) in indexing.sizes.iter().enumerate() {
        if size > indexing.operand[dim] || size < 0 {
            return Err(malformed());
        }
        if gone.contains(&dim) {
            if size > 1 {
                return Err(malformed());
            }
            // A collapsed dim of size 0 leaves nothing to walk.
            levels.push(Level { size: extent(size), strides: [0, 0] });
            continue;
        }
        let to = window_dims.next().copied().filter(|&to| moved.get(to) == Some(&size));
        let to = to.ok_or_else(malformed)?;
        levels.push(Level { size: extent(size), strides: [moved_strides[to], strides[dim]] });
    }
    if window_dims.next().is_some() {
        return Err(malformed());
    }
    let len = levels.iter().map(|l| l.size).product();
    Ok((Nest::new(levels), len))
}

/// Windows that reach outside are moved until they fit.
pub(super) fn gather(cx: &mut Cx<'_, '_>, attrs: &GatherAttrs) -> Outcome<Value> {
    let result = cx.allocate_result()?;
    let (operand, indices) = (cx.array(0)?, cx.array(1)?);
    let indexing = Indexing {
        operand: operand.dims(),
        sizes: attrs.slice_sizes.clone(),
        index_map: &attrs.start_index_map,
        operand_batching: &attrs.operand_batching_dims,
        index_batching: &attrs.start_indices_batching_dims,
        vector_dim: attrs.index_vector_dim,
        window_dims: &attrs.offset_dims,
        collapsed: &attrs.collapsed_slice_dims,
    };
    let mut data = Data::zeros(result.element_type, result.len);
    if result.len > 0 && operand.len() > 0 {
        let windows = WindowPlaces::new(cx, &indexing, indices, &result.dims)?;
        let starts = windows.moved.iter().enumerate();
        let starts: Vec<[isize; 2]> = starts.map(|(w, &to)| [to, windows.clamped(w)]).collect();
        place_many(&mut data, operand.data(), &windows.nest, &starts)?;
    }
    result.with(data)
}
