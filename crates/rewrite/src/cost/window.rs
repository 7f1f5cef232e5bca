//! Computes the cost of a `reduce-window` for [`CostModel`], from the layout of its arrays on the
//! target.

use smallvec::SmallVec;
use tilewright_ir::ops::dims::WindowDim;
use tilewright_ir::{ArrayShape, Dims, Shape};
use tilewright_target::Alignment;

use super::{Cost, CostModel, Operand, SizedShape, as_f64};

/// A window that moves over an array.
struct Windows<'a> {
    array: &'a ArrayShape,
    window: &'a [WindowDim],
    /// The number of positions that the window takes along each dim: the dims of the result.
    places: Dims,
    /// The number of array elements that are combined into one result: the window's size.
    taps: u64,
    /// The number of results.
    results: u64,
}

/// A dim along which a vector spans several elements, and along which a window has to move elements
/// within vectors.
struct IntraVectorDim {
    dim: usize,
    /// The number of elements of the dim that a vector spans.
    span: u64,
    /// The number of cycles to move all elements of a vector along the dim.
    shift: f64,
    /// The number of further moves after which the results left in a vector are adjacent.
    sifts: u64,
}

impl CostModel<'_> {
    /// Computes the cost of a `reduce-window`. A fused operand is computed in place, as for a
    /// reduce, unless windows overlap: then it is stored first and loaded again.
    pub(super) fn reduce_window(
        &self,
        result: SizedShape<'_>,
        operands: &[Operand<'_>],
        window: &[WindowDim],
    ) -> Cost {
        let (arrays, _inits) = operands.split_at(operands.len() / 2);
        let mut cost = self.store_cost(result);
        for operand in arrays {
            let array = operand.value.shape.as_array();
            let Some(windows) = array.and_then(|array| Windows::of(array, window)) else {
                continue;
            };
            if operand.fused && windows.overlap() {
                cost += self.store_cost(operand.value);
            }
            if !operand.fused || windows.overlap() {
                cost += self.load(operand.value);
            }
            cost.cycles += match self.target.alignment {
                Alignment::None => self.windows_in_line(&windows),
                Alignment::Tiles => self.windows_in_tiles(&windows),
            };
            cost.flops = cost.flops.saturating_add(windows.taps.saturating_mul(windows.results));
        }
        cost
    }

    /// Computes the cycles of windows on a linear memory:
    /// `vectors of the result * taps / vector_alu_slots`.
    /// A window along the minor dim is a short run and costs in addition, as for a reduce,
    /// `results * cross_lane_reduce_cycles + runs * reduce_run_cycles`.
    fn windows_in_line(&self, windows: &Windows<'_>) -> f64 {
        let vectors = self.vectors(windows, &windows.places);
        let cycles = self.operations(as_f64(vectors) * as_f64(windows.taps));
        let minor = windows.inner_dims().first().and_then(|&dim| windows.window.get(dim));
        let Some(run) = minor.filter(|w| w.size > 1 && w.window_dilation == 1) else {
            return cycles;
        };
        let runs = as_f64(windows.results) * as_f64(windows.taps / run.size.max(1).unsigned_abs());
        cycles
            + as_f64(windows.results) * self.target.cross_lane_reduce_cycles
            + runs * self.target.reduce_run_cycles
    }

    /// Computes the cycles of windows on a tiled memory. Whole vectors are combined first, along
    /// the dims that lie across vectors, and then the elements within vectors.
    fn windows_in_tiles(&self, windows: &Windows<'_>) -> f64 {
        let inner = self.intra_vector_dims(windows);
        let mut dims = Dims::from_slice(windows.array.dims());
        let mut taps = 1;
        for (dim, w) in windows.window.iter().enumerate() {
            if inner.iter().all(|inner| inner.dim != dim) {
                dims[dim] = windows.places[dim];
                taps = u64::saturating_mul(taps, w.size.max(1).unsigned_abs());
            }
        }
        let mut vectors = self.vectors(windows, &dims);
        let combined = as_f64(vectors) * as_f64(taps);
        let mut cycles = self.operations(combined);
        if windows.overlap() {
            // The first load of each vector is already charged with the operand.
            let again = combined - as_f64(self.memo.footprint(self.target, windows.array).vectors);
            cycles += again.max(0.0) / f64::from(self.target.load_slots.max(1));
        }
        for IntraVectorDim { dim, span, shift, sifts } in inner {
            let w = windows.window[dim];
            // Taps that are whole vectors apart are combined before any elements are moved.
            let size = w.size.max(1).unsigned_abs();
            let left = vectors.div_ceil((size.min(w.stride.max(1).unsigned_abs()) / span).max(1));
            let step = shift + self.operations(1.0);
            cycles += as_f64(left) * as_f64(halvings(size.min(span))) * step;
            dims[dim] = windows.places[dim];
            vectors = self.vectors(windows, &dims);
            if scatters(&w) {
                let results: Shape = windows.resized(&dims).into();
                cycles += as_f64(left) * as_f64(sifts) * step;
                cycles += self.realignment(vectors, [&results]);
            }
        }
        cycles
    }

    /// Returns the dims along which elements have to move within vectors: the second-minor dim,
    /// then the minor one.
    fn intra_vector_dims(&self, windows: &Windows<'_>) -> SmallVec<[IntraVectorDim; 2]> {
        let bits = windows.array.element_type.bytes().saturating_mul(8);
        let [rows, lanes] = self.target.tile(bits);
        let rotation = self.target.cross_lane_reduce_cycles;
        // One operation shifts the rows of a vector, and no further moves are needed.
        let kinds = [(lanes, rotation, halvings(lanes)), (rows, self.operations(1.0), 0)];
        let inner = windows.inner_dims().into_iter().zip(kinds).filter_map(|(dim, kind)| {
            let (span, shift, sifts) = kind;
            let moves =
                !keeps_vectors(windows.window.get(dim)?, *windows.array.dims().get(dim)?, span);
            moves.then_some(IntraVectorDim { dim, span, shift, sifts })
        });
        let mut inner: SmallVec<[IntraVectorDim; 2]> = inner.collect();
        inner.reverse();
        inner
    }

    fn vectors(&self, windows: &Windows<'_>, dims: &[i64]) -> u64 {
        self.memo.footprint(self.target, &windows.resized(dims)).vectors
    }

    /// Computes the cycles of one operation on each of this many vectors.
    fn operations(&self, vectors: f64) -> f64 {
        vectors / f64::from(self.target.vector_alu_slots.max(1))
    }
}

impl<'a> Windows<'a> {
    fn of(array: &'a ArrayShape, window: &'a [WindowDim]) -> Option<Self> {
        let pairs = window.iter().zip(array.dims());
        let places: Option<Dims> = pairs.map(|(w, &size)| w.output_size(size)).collect();
        let places = places.filter(|_| window.len() == array.rank())?;
        let (taps, results) =
            (product(window.iter().map(|w| w.size)), product(places.iter().copied()));
        Some(Self { array, window, places, taps, results })
    }

    /// Checks whether windows overlap: `taps * results > elements`.
    fn overlap(&self) -> bool {
        let elements = self.array.num_elements().unwrap_or(0).unsigned_abs();
        self.taps.saturating_mul(self.results) > elements
    }

    /// Returns the minor dim and the second-minor dim.
    fn inner_dims(&self) -> SmallVec<[usize; 2]> {
        let layout = self.array.layout_or_default();
        layout.minor_to_major.iter().take(2).filter_map(|&dim| usize::try_from(dim).ok()).collect()
    }

    fn resized(&self, dims: &[i64]) -> ArrayShape {
        let shape = ArrayShape::new(self.array.element_type, dims.iter().copied());
        shape.with_layout(self.array.layout.clone())
    }
}

/// Checks whether a window along a dim combines vectors that span `span` elements of the dim as
/// they are, without moving elements within them.
fn keeps_vectors(w: &WindowDim, size: i64, span: u64) -> bool {
    let whole = |distance: i64| distance.unsigned_abs().is_multiple_of(span.max(1));
    let alone = w.size == 1 && w.output_size(size) == Some(size);
    let apart = w.stride == 1 && w.base_dilation == 1 && whole(w.window_dilation);
    span <= 1 || alone || apart && whole(w.padding_low)
}

/// Checks whether a window leaves its results apart from each other within vectors.
fn scatters(w: &WindowDim) -> bool {
    w.stride > 1 || w.base_dilation > 1
}

/// Returns the number of steps that combine this many taps, where each step halves them:
/// `ceil(log2(taps))`.
fn halvings(taps: u64) -> u64 {
    u64::from(u64::BITS - taps.saturating_sub(1).leading_zeros())
}

fn product(sizes: impl Iterator<Item = i64>) -> u64 {
    sizes.map(|size| size.max(0).unsigned_abs()).fold(1, u64::saturating_mul)
}
