//! Plans a reduction: which axes are the block, which lie outside of it, and how the work is
//! divided into tasks. `run/` carries the plan out.

use smallvec::SmallVec;

use crate::axes::{Axes, Axis, Role};
use crate::elements::Element;
use crate::folds::Accumulate;
use crate::kernel::{BLOCKS_PER_STEP, ROW_PART};

/// A block has at least this many elements and [`LEAST_BLOCK_BYTES`] bytes, where as many are
/// contiguous: a shorter loop takes longer to begin than to run.
const LEAST_BLOCK: usize = 64;
const LEAST_BLOCK_BYTES: usize = 256;
/// A block has at most this many elements, so that its accumulators stay in the first cache.
const MOST_BLOCK: usize = 2048;
/// A block of whole rows has about this many rows, each of which has an accumulator, but at least
/// [`ROWS_BLOCK`] elements and at most [`BY_ROWS`].
const MOST_ROWS: usize = 512;
/// See [`MOST_ROWS`].
const ROWS_BLOCK: usize = 1 << 13;
/// Contiguous rows of at least this many elements are reduced one by one before their results are
/// added along the other reduced axes, if the fold has SIMD loops.
const LEAST_ROW: usize = 128;
/// The same limit as [`LEAST_ROW`], for accumulators of 16 bits: loops over rows widen these to
/// merge them.
const LEAST_NARROW_ROW: usize = 512;
/// A block of such rows has about this many elements. Memory is read in order within a block, and
/// the CPU's prefetchers begin anew at the next block.
const BY_ROWS: usize = 1 << 16;
/// A reduced axis joins a block as a whole if the block then has at most this many elements. Kept
/// axes outside of it can then join the block, too, so that longer runs are read.
const MOST_WHOLE: usize = 512;
/// The blocks of several neighbouring results are added in turn if the cut axis of one result has
/// at most this many contiguous elements: such short runs, far apart, are read slowly.
const MOST_RUN: usize = 4096;
/// A task reads at least this many bytes of the array. To begin a task and merge its results takes
/// as long as reading some 10 KB.
const LEAST_TASK_BYTES: usize = 1 << 18;
/// A task reads about this many bytes if there are more than [`ENOUGH_TASKS`] tasks.
const TASK_BYTES: usize = 1 << 20;
/// Up to this many tasks may read as few as [`LEAST_TASK_BYTES`] each.
const ENOUGH_TASKS: usize = 8;
/// The most tasks of a reduction whose units have one piece each.
const MOST_TASKS: usize = 256;
/// The most pieces of all units together.
const MOST_PIECES: usize = 64;

/// How an array is reduced: each element of a block has an accumulator, to which the elements at
/// the same index of the blocks along all reduced axes outside are added. This is done once for
/// each index of the kept axes outside of the block, which is a *unit*.
///
/// Rows may be reduced before they are added. All fields follow from dims, strides, the type of the
/// elements and the fold alone.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The axes of a block, innermost first. The last one may be a part of a longer axis.
    pub(crate) block: Axes,
    /// Whether a block is whole rows, each of which is reduced to one accumulator before it is
    /// added.
    pub(crate) is_by_rows: bool,
    /// The axis that is too long for the block, and the length of its part in the block.
    pub(crate) cut: Option<Cut>,
    /// A kept axis outside of a cut reduced axis: the blocks at `part` neighbouring indices along
    /// it are added in turn, in one unit.
    pub(crate) group: Option<Cut>,
    /// The kept axes outside of the block, innermost first.
    pub(crate) kept: Axes,
    /// The reduced axes outside of the block, innermost first.
    pub(crate) reduced: Axes,
    /// The number of units.
    pub(crate) units: usize,
    /// The number of pieces into which the reduced axes of each unit are divided. Each piece has
    /// its own accumulators, and these are merged in order.
    pub(crate) pieces: usize,
    /// The number of tasks that the units are divided into, if each has one piece.
    pub(crate) tasks: usize,
}

/// An axis that is cut into parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    /// The whole axis.
    pub(crate) axis: Axis,
    /// The number of indices of a part; the last part may have fewer.
    pub(crate) part: usize,
}

impl Cut {
    /// The number of indices that are left after the whole parts.
    pub(crate) fn rest(&self) -> usize {
        self.axis.len % self.part
    }
}

impl Plan {
    /// Plans the reduction of an array with these axes by a fold.
    pub(crate) fn of<T: Element, F: Accumulate<T>>(axes: &Axes) -> Self {
        let least_row = match size_of::<F::First>() {
            _ if !F::IN_VECTORS => None,
            ..4 => Some(LEAST_NARROW_ROW),
            _ => Some(LEAST_ROW),
        };
        Self::with_rows(axes, size_of::<T>(), least_row)
    }

    /// Plans the reduction of an array whose elements have `element_bytes` bytes. Contiguous rows
    /// of at least `least_row` elements may be reduced before they are added; if it is `None`, no
    /// rows are.
    fn with_rows(axes: &Axes, element_bytes: usize, least_row: Option<usize>) -> Self {
        let mut plan = Self {
            block: Axes::new(),
            is_by_rows: false,
            cut: None,
            group: None,
            kept: Axes::new(),
            reduced: Axes::new(),
            units: 1,
            pieces: 1,
            tasks: 1,
        };
        let mut outer = axes.as_slice();
        if let Some(rest) = least_row.and_then(|least| plan.take_rows(outer, least)) {
            plan.outside(rest);
            plan.divide(element_bytes);
            return plan;
        }
        while let Some((axis, rest)) = outer.split_first() {
            let width = plan.width();
            let is_rows =
                matches!(plan.block.as_slice(), [row] if !row.is_kept() && row.stride == 1);
            let least = match axis.role {
                Role::Kept(_) if is_rows && outer.iter().all(Axis::is_kept) => {
                    MOST_ROWS.saturating_mul(width).clamp(ROWS_BLOCK, BY_ROWS)
                }
                Role::Kept(_) => MOST_BLOCK,
                Role::Reduced(_) => LEAST_BLOCK.max(LEAST_BLOCK_BYTES / element_bytes.max(1)),
            };
            let is_next = plan.block.is_empty() || isize::try_from(width) == Ok(axis.stride);
            let room = least / width.max(1);
            let is_row = plan.block.is_empty()
                && axis.stride == 1
                && !axis.is_kept()
                && rest.iter().all(Axis::is_kept);
            let most = if is_row { ROW_PART } else { MOST_WHOLE / width.max(1) };
            let fits = axis.len <= room.max(most);
            if !is_next || room < 2 && !fits {
                break;
            }
            outer = rest;
            if fits {
                plan.block.push(*axis);
                // Elements at a stride are not contiguous, so no other axis joins the block.
                if axis.stride != isize::try_from(width).unwrap_or(0) {
                    break;
                }
                continue;
            }
            // A kept axis is cut into parts of almost equal length, a reduced one into parts of the
            // least length that fills the block with whole vectors.
            let part = match axis.role {
                Role::Kept(_) => equal_part(axis.len, room),
                Role::Reduced(_) => whole_vectors(width, room).min(axis.len),
            };
            plan.cut = Some(Cut { axis: *axis, part });
            plan.block.push(Axis { len: part, ..*axis });
            break;
        }
        plan.outside(outer);
        plan.divide(element_bytes);
        plan
    }

    /// Makes the block of whole rows, if the axes begin with contiguous rows of at least `least`
    /// elements that are reduced, a kept axis follows, and another reduced axis lies outside.
    /// Returns the axes outside of the block.
    ///
    /// Without this, parts of such rows would be added at distances that no prefetcher follows, and
    /// that often map to one set of a cache.
    fn take_rows<'a>(&mut self, axes: &'a [Axis], least: usize) -> Option<&'a [Axis]> {
        let [row, rows, rest @ ..] = axes else { return None };
        let are_rows = row.stride == 1
            && row.role == Role::Reduced(1)
            && (least..=ROW_PART).contains(&row.len)
            && rows.is_kept()
            && isize::try_from(row.len) == Ok(rows.stride)
            && row.len.saturating_mul(rows.len) > MOST_BLOCK;
        if !are_rows || rest.iter().all(Axis::is_kept) {
            return None;
        }
        let part = equal_part(rows.len, BY_ROWS / row.len);
        self.block.extend([*row, Axis { len: part, ..*rows }]);
        self.is_by_rows = true;
        self.cut = (part < rows.len).then_some(Cut { axis: *rows, part });
        Some(rest)
    }

    /// Checks whether each unit is contiguous rows, each of which is reduced to one element.
    pub(crate) fn is_short_rows(&self) -> bool {
        let is_block =
            matches!(self.block.as_slice(), [row, rows] if !row.is_kept() && rows.is_kept());
        is_block && self.reduced.is_empty() && self.step() == 1
    }

    /// The number of rows of a block of rows; 1 if the block has one axis.
    pub(crate) fn rows(&self) -> usize {
        self.block.get(1).map_or(1, |rows| rows.len)
    }

    /// The number of scratch accumulators that are needed besides those of a unit.
    pub(crate) fn spare(&self) -> usize {
        match self.block.as_slice() {
            // The results of rows.
            [_, rows] if self.is_by_rows => rows.len,
            _ => self.width().saturating_mul(self.members()),
        }
    }

    /// Returns the number of elements of a row, if each unit is one contiguous row, whole or in
    /// pieces.
    pub(crate) fn row(&self) -> Option<usize> {
        let [axis] = self.block.as_slice() else { return None };
        let inner = self.cut.map_or(0, |_| 1);
        let is_row = !axis.is_kept() && axis.stride == 1 && self.reduced.len() == inner;
        let whole = self.cut.map_or(*axis, |cut| cut.axis);
        (is_row && self.group.is_none() && whole.role == Role::Reduced(1)).then_some(whole.len)
    }

    /// The number of accumulators of a unit.
    pub(crate) fn accumulators(&self) -> usize {
        if self.is_by_rows { self.rows() } else { self.width().saturating_mul(self.members()) }
    }

    /// The axes along which the accumulators of a unit vary, innermost first.
    pub(crate) fn left(&self) -> &[Axis] {
        &self.block[usize::from(self.is_by_rows)..]
    }

    /// The number of blocks that are added in turn in a unit: those of a group, or one.
    pub(crate) fn members(&self) -> usize {
        self.group.map_or(1, |group| group.part)
    }

    /// The kept axis that is cut, if there is one. Its parts are the first one of the axes `kept`.
    pub(crate) fn kept_cut(&self) -> Option<Cut> {
        self.group.or(self.cut.filter(|cut| cut.axis.is_kept()))
    }

    /// The number of elements of a block.
    pub(crate) fn width(&self) -> usize {
        self.block.iter().map(|axis| axis.len).product()
    }

    /// The stride of neighbours within a block, in elements.
    pub(crate) fn step(&self) -> isize {
        self.block.first().map_or(1, |axis| axis.stride)
    }

    /// The number of positions along the reduced axes outside of the block, without the rest of a
    /// cut axis.
    pub(crate) fn positions(&self) -> usize {
        self.reduced.iter().map(|axis| axis.len).product()
    }

    /// The number of steps that accumulators count for this number of positions. The rest of a cut
    /// reduced axis is one more step for each pass along that axis. The result of a row counts as
    /// [`BLOCKS_PER_STEP`] steps, since it is added alone.
    pub(crate) fn steps(&self, positions: usize) -> usize {
        if self.is_by_rows {
            return positions.saturating_mul(BLOCKS_PER_STEP);
        }
        let inner = self.reduced.first().map_or(1, |axis| axis.len);
        let has_rest = self.cut.is_some_and(|cut| !cut.axis.is_kept() && cut.rest() > 0);
        let rests = if has_rest { positions.div_ceil(inner) } else { 0 };
        positions.saturating_add(rests)
    }

    /// Sorts the axes outside of the block into kept and reduced ones, and chooses the group.
    fn outside(&mut self, mut outer: &[Axis]) {
        if let Some(cut) = self.cut.filter(|cut| !cut.axis.is_kept()) {
            self.reduced.push(cut.axis.part(cut.axis.len / cut.part, cut.part));
            if let Some((next, rest)) = outer.split_first()
                && next.is_kept()
                && rest.iter().any(|axis| !axis.is_kept())
                && cut.axis.len.saturating_mul(self.width() / cut.part) <= MOST_RUN
            {
                let part = equal_part(next.len, (MOST_BLOCK / self.width()).max(1));
                self.group = Some(Cut { axis: *next, part });
                self.kept.push(next.part(next.len.div_ceil(part), part));
                outer = rest;
            }
        }
        if let Some(cut) = self.cut.filter(|cut| cut.axis.is_kept()) {
            self.kept.push(cut.axis.part(cut.axis.len.div_ceil(cut.part), cut.part));
        }
        self.kept.extend(outer.iter().copied().filter(Axis::is_kept));
        self.reduced.extend(outer.iter().copied().filter(|axis| !axis.is_kept()));
        self.units = self.kept.iter().map(|axis| axis.len).product();
    }

    /// Chooses the number of pieces and of tasks.
    fn divide(&mut self, element_bytes: usize) {
        let positions = self.positions();
        let blocks = positions.saturating_mul(self.members());
        let unit = blocks.saturating_mul(self.width()).saturating_mul(element_bytes);
        let bytes = unit.saturating_mul(self.units);
        let few = (bytes / LEAST_TASK_BYTES).min(ENOUGH_TASKS);
        let tasks = few.max(bytes / TASK_BYTES);
        if self.units < MOST_PIECES {
            let units = self.units.max(1);
            let most = (MOST_PIECES / units).min(positions).max(1);
            self.pieces = tasks.div_ceil(units).clamp(1, most);
        }
        self.tasks = tasks.clamp(1, MOST_TASKS).min(self.units.max(1));
    }

    /// Returns the lengths of the kept axes among `axes` and their strides in the result, outermost
    /// first: accumulators lie in row-major order.
    pub(crate) fn places(axes: &[Axis]) -> SmallVec<[(usize, usize); 6]> {
        let kept = axes.iter().rev().filter_map(|axis| match axis.role {
            Role::Kept(stride) => Some((axis.len, stride)),
            Role::Reduced(_) => None,
        });
        kept.collect()
    }
}

/// The length of almost equal parts of at most `most` indices: `ceil(len / ceil(len / most))`.
fn equal_part(len: usize, most: usize) -> usize {
    len.div_ceil(len.div_ceil(most))
}

/// The least `n >= least` for which `n * width` elements fill whole vectors of 16 lanes.
fn whole_vectors(width: usize, least: usize) -> usize {
    least.next_multiple_of(16 >> width.trailing_zeros().min(4))
}
