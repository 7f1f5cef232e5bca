//! Folds by the usual reducers, of arrays and of lanes while a region computes
//! them.
//!
//! The order in which a total takes its elements follows from the dims alone. The operand is
//! cut along its outermost dim into chunks; within a chunk each total takes its elements in
//! row-major order, and a reduced row in runs ([`fold_row`]). If the outermost dim is reduced,
//! every chunk has its own totals, and they are joined in the order of the chunks.

use std::ops::Range;

use smallvec::SmallVec;
use tilewright_ir::ops::reduce::ReduceAttrs;
use tilewright_ir::{Data, ElementType, InstId, Native, Op, Verified};

use super::elementwise::wide;
use super::monoid::{self, Monoid, RUN, Visitor, fold_row};
use crate::algebra::Numbers;
use crate::error::{Fault, Outcome, WRONG_STORAGE};
use crate::jobs::{Job, run_all};
use crate::strides::{Level, Nest, dim_numbers, extent, row_major};

/// The least number of lanes for a chunk with totals of its own.
const LANES_OF_A_CHUNK: usize = 1 << 16;
/// Lanes for each total of a chunk, at least: totals take memory.
const LANES_OF_A_TOTAL: usize = 8;
/// Lanes worth a thread of their own.
const LANES_OF_A_TASK: usize = 1 << 15;
/// Totals that a part has at least: shorter runs cost more than they save.
const LEAST_PART: usize = 64;

/// Returns the dims of a reduction's operand, with strides in the operand and, 0 where they are
/// reduced, in the result.
pub(super) fn reduced_levels(dims: &[i64], reduced: &[i64]) -> SmallVec<[Level<2>; 6]> {
    let reduced = dim_numbers(reduced);
    let is_kept = |dim: &usize| !reduced.contains(dim);
    let kept: SmallVec<[i64; 6]> = (0..dims.len()).filter(is_kept).map(|dim| dims[dim]).collect();
    let mut to = row_major(&kept).into_iter();
    let from = row_major(dims);
    let levels = (0..dims.len()).map(|dim| {
        let stride = if is_kept(&dim) { to.next().unwrap_or(0) } else { 0 };
        Level { size: extent(dims[dim]), strides: [from[dim], stride] }
    });
    levels.collect()
}

/// The dims of a fold, and its chunks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FoldShape {
    /// The levels of [`reduced_levels`] without dims of size 1; levels that continue each other
    /// are joined.
    levels: SmallVec<[Level<2>; 6]>,
    /// Elements of the operand.
    lanes: usize,
    /// Elements of the result.
    len: usize,
    /// Elements of the operand in a chunk; the last may have fewer.
    chunk: usize,
}

impl FoldShape {
    /// Plans a reduction of an array with these dims to `len` elements.
    pub(super) fn new(dims: &[i64], reduced: &[i64], len: usize) -> Self {
        let levels = Nest::new(reduced_levels(dims, reduced)).levels();
        // The array exists, so the product fits.
        let lanes = levels.iter().fold(1usize, |lanes, level| lanes.saturating_mul(level.size));
        let Level { size, strides: [step, to] } = levels[0];
        let least = match to {
            0 => LANES_OF_A_CHUNK.max(len.saturating_mul(LANES_OF_A_TOTAL)),
            _ => LANES_OF_A_TASK,
        };
        let step = step.unsigned_abs().max(1);
        let chunk = least.div_ceil(step).min(size.max(1)) * step;
        Self { levels, lanes, len, chunk }
    }

    /// Returns the fold of an instruction that reduces an array by one of the usual reducers,
    /// if chunks of its operand give work to several threads.
    pub(crate) fn of(module: &Verified, id: InstId) -> Option<Self> {
        let Op::Reduce(attrs) = module.op(id) else { return None };
        let [operand, init] = *module.operands(id) else { return None };
        let shape_of = |id| module.array_shape(id).filter(|shape| shape.is_static());
        let (from, to) = (shape_of(operand)?, shape_of(id)?);
        let element_type = to.element_type;
        let same = from.element_type == element_type
            && shape_of(init)?.element_type == element_type
            && wide(element_type) == element_type;
        let len = usize::try_from(to.num_elements()?).ok()?;
        if !same || !monoid::is_one(module, attrs.to_apply, element_type) {
            return None;
        }
        let shape = Self::new(from.dims(), &attrs.dimensions, len);
        (len > 0 && shape.lanes > len && !shape.is_lopsided()).then_some(shape)
    }

    /// Elements of the operand.
    pub(crate) fn lanes(&self) -> usize {
        self.lanes
    }

    /// Elements of the result.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Elements of the operand in each chunk but the last.
    pub(crate) fn chunk(&self) -> usize {
        self.chunk
    }

    fn chunks(&self) -> usize {
        self.lanes.div_ceil(self.chunk)
    }

    /// Returns the number of totals that exist during the fold.
    pub(crate) fn totals(&self) -> usize {
        match self.levels[0].strides {
            [_, 0] => self.len.saturating_mul(self.chunks().max(1)),
            _ => self.len,
        }
    }

    /// Checks whether a large operand is one chunk because it has many totals.
    fn is_lopsided(&self) -> bool {
        self.levels[0].strides[1] == 0 && self.chunk == self.lanes && self.lanes > LANES_OF_A_CHUNK
    }

    /// Returns how many lanes from a place in a chunk on may be folded at one time, so that
    /// runs are whole, if they are to be at most `most`, a multiple of [`RUN`], and the chunk
    /// has `left`.
    pub(crate) fn block(&self, at: usize, left: usize, most: usize) -> usize {
        let Level { size: row, strides: [_, to] } = self.row();
        let whole = match to {
            0 if row <= most => most / row.max(1) * row,
            0 => most.min(row - at % row),
            _ => most,
        };
        whole.min(left)
    }

    /// Returns the innermost dim of a chunk.
    fn row(&self) -> Level<2> {
        match self.levels.as_slice() {
            [only] => Level { size: only.size.min(self.chunk), ..*only },
            levels => levels[levels.len() - 1],
        }
    }
}

/// Totals of one chunk, which take its lanes in order.
pub(crate) trait Totals: Send {
    /// Folds the next lanes: these of `lanes`.
    fn take(&mut self, lanes: &Data, range: Range<usize>) -> Outcome<()>;
}

/// A reduction on its way.
pub(crate) trait Fold: Send {
    /// Returns the totals of each chunk, in order.
    fn chunks(&mut self) -> Vec<Box<dyn Totals + '_>>;
    /// Returns the totals of parts of the outermost kept dim, if all is one chunk. Each part
    /// takes the lanes of its range at every index of the outermost dim.
    fn parts(&mut self) -> Vec<(Box<dyn Totals + '_>, Range<usize>)>;
    /// Returns the result, once everything is folded.
    fn finish(self: Box<Self>) -> Data;
}

/// Begins a reduction by one of the usual reducers; `None` for another reducer.
pub(crate) fn begin(
    module: &Verified,
    numbers: Numbers,
    attrs: &ReduceAttrs,
    element_type: ElementType,
    init: &Data,
    shape: &FoldShape,
) -> Outcome<Option<Box<dyn Fold>>> {
    monoid::visit(module, numbers, attrs.to_apply, element_type, Begin { init, shape }).transpose()
}

/// Begins a reduction by an op on floats as they are; `None` for an op that is no usual reducer.
pub(super) fn begin_op(
    op: &Op,
    element_type: ElementType,
    init: &Data,
    shape: &FoldShape,
) -> Outcome<Option<Box<dyn Fold>>> {
    monoid::visit_op(op, element_type, Begin { init, shape }).transpose()
}

/// Returns the bytes of a total, at most.
pub(crate) fn accumulator_bytes(element_type: ElementType) -> usize {
    if element_type.is_complex() { 2 * size_of::<f64>() } else { size_of::<f64>() }
}

struct Begin<'a> {
    init: &'a Data,
    shape: &'a FoldShape,
}

impl Visitor for Begin<'_> {
    type Output = Outcome<Box<dyn Fold>>;

    fn visit<T: Native, M: Monoid<T>>(self) -> Self::Output {
        let init: &[T] = self.init.as_slice().ok_or(WRONG_STORAGE)?;
        let init = *init.first().ok_or(Fault::Internal("an initial value is missing"))?;
        let mut totals = vec![M::lift(init); self.shape.len];
        totals.resize(self.shape.totals(), M::IDENTITY);
        Ok(Box::new(Typed::<T, M> { shape: self.shape.clone(), totals }))
    }
}

struct Typed<T: Native, M: Monoid<T>> {
    shape: FoldShape,
    totals: Vec<M::Accumulator>,
}

impl FoldShape {
    /// Returns where a chunk begins, and how many totals it has.
    fn chunk_of(&self) -> (Cursor, usize) {
        let Level { strides: [step, to], .. } = self.levels[0];
        let totals = match to {
            0 => self.len,
            to => self.chunk / step.unsigned_abs().max(1) * to.unsigned_abs(),
        };
        (Cursor::new(&self.levels, self.row()), totals.max(1))
    }

    /// Returns the parts of the outermost kept dim: where each begins, its lanes at the first index of the
    /// outermost dim, and how many totals it has.
    fn parts(&self) -> Vec<(Cursor, Range<usize>, usize)> {
        let [_, kept, ..] = self.levels.as_slice() else { return Vec::new() };
        let Level { size, strides: [step, to] } = *kept;
        let (step, to) = (step.unsigned_abs(), to.unsigned_abs().max(1));
        let count = size.div_ceil(2 * rayon::current_num_threads()).max(LEAST_PART.div_ceil(to));
        let part = |first: usize| {
            let mut levels = self.levels.clone();
            levels[1].size = count.min(size - first);
            let range = first * step..(first + levels[1].size) * step;
            let row = levels[levels.len() - 1];
            (Cursor::new(&levels, row), range, levels[1].size * to)
        };
        (0..size).step_by(count).map(part).collect()
    }
}

impl<T: Native, M: Monoid<T>> Fold for Typed<T, M> {
    fn chunks(&mut self) -> Vec<Box<dyn Totals + '_>> {
        let mut chunks: Vec<Box<dyn Totals + '_>> = Vec::new();
        if self.shape.lanes > 0 {
            let (cursor, count) = self.shape.chunk_of();
            for totals in self.totals.chunks_mut(count) {
                chunks.push(Box::new(ChunkTotals::<T, M> { totals, cursor: cursor.clone() }));
            }
        }
        chunks
    }

    fn parts(&mut self) -> Vec<(Box<dyn Totals + '_>, Range<usize>)> {
        let mut parts: Vec<(Box<dyn Totals + '_>, Range<usize>)> = Vec::new();
        let mut left = self.totals.as_mut_slice();
        for (cursor, range, count) in self.shape.parts() {
            let Some((totals, others)) = left.split_at_mut_checked(count) else { break };
            left = others;
            parts.push((Box::new(ChunkTotals::<T, M> { totals, cursor }), range));
        }
        parts
    }

    fn finish(mut self: Box<Self>) -> Data {
        let len = self.shape.len;
        let (totals, others) = self.totals.split_at_mut(len);
        for other in others.chunks(len.max(1)) {
            for (total, &other) in totals.iter_mut().zip(other) {
                *total = M::join(*total, other);
            }
        }
        monoid::lowered::<T, M>(totals)
    }
}

/// The place to which a chunk's next lane belongs.
#[derive(Clone, Debug)]
struct Cursor {
    /// Sizes and steps of the outer dims, with how often they were taken.
    outer: SmallVec<[(Level<2>, usize); 5]>,
    row: Level<2>,
    column: usize,
    to: isize,
}

impl Cursor {
    fn new(levels: &[Level<2>], row: Level<2>) -> Self {
        let outer = levels[..levels.len() - 1].iter().map(|&level| (level, 0)).collect();
        Self { outer, row, column: 0, to: 0 }
    }

    /// Returns how many of the next lanes are of this row, at most `most`, and the total of the first.
    fn run(&self, most: usize) -> (usize, usize) {
        (most.min(self.row.size - self.column), self.to.cast_unsigned())
    }

    /// Moves on by lanes of this row.
    fn advance(&mut self, lanes: usize) {
        self.column += lanes;
        if self.column < self.row.size {
            return;
        }
        self.column = 0;
        for (level, count) in self.outer.iter_mut().rev() {
            *count += 1;
            self.to += level.strides[1];
            if *count < level.size {
                break;
            }
            self.to -= level.strides[1] * level.size.cast_signed();
            *count = 0;
        }
    }
}

/// The totals of a chunk, and the place of its next lane.
struct ChunkTotals<'a, T: Native, M: Monoid<T>> {
    totals: &'a mut [M::Accumulator],
    cursor: Cursor,
}

impl<T: Native, M: Monoid<T>> Totals for ChunkTotals<'_, T, M> {
    fn take(&mut self, lanes: &Data, range: Range<usize>) -> Outcome<()> {
        let lanes: &[T] = lanes.as_slice().ok_or(WRONG_STORAGE)?;
        let missing = Fault::Internal("a fold has too few lanes");
        let mut lanes = lanes.get(range).ok_or(missing)?;
        while !lanes.is_empty() {
            let (count, to) = self.cursor.run(lanes.len());
            let (row, rest) = lanes.split_at(count);
            if self.cursor.row.strides[1] == 0 {
                let total = &mut self.totals[to];
                for run in row.chunks(RUN) {
                    *total = fold_row::<T, M>(*total, run);
                }
            } else {
                let totals = &mut self.totals[to + self.cursor.column..][..row.len()];
                for (total, &element) in totals.iter_mut().zip(row) {
                    *total = M::join(*total, M::lift(element));
                }
            }
            self.cursor.advance(count);
            lanes = rest;
        }
        Ok(())
    }
}

/// Folds an array.
pub(super) fn fold_array(fold: &mut dyn Fold, shape: &FoldShape, values: &Data) -> Outcome<()> {
    let mut jobs: Vec<Job<'_>> = Vec::new();
    if shape.is_lopsided() {
        let (count, step) = (shape.levels[0].size, shape.levels[0].strides[0].unsigned_abs());
        for (mut totals, range) in fold.parts() {
            let at = move |i| i * step + range.start..i * step + range.end;
            jobs.push(Box::new(move || (0..count).try_for_each(|i| totals.take(values, at(i)))));
        }
        return run_all(jobs);
    }
    for (number, mut totals) in fold.chunks().into_iter().enumerate() {
        let first = number * shape.chunk;
        let range = first..first.saturating_add(shape.chunk).min(shape.lanes);
        jobs.push(Box::new(move || totals.take(values, range)));
    }
    run_all(jobs)
}
