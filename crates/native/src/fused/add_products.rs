//! Adds up products of two factors of a tile, by SIMD loops, or by tiles that are stored.
//! `compute.rs` calls it.

use super::aligned_buffer::AlignedBuffer;
use super::chain::{self, Elements, FusedChain};
use super::fold::{FoldScratch, FoldShape, FoldTile, USED};
use super::products::OPERANDS;
use super::program::Reduction;
use super::real::Real;
use super::tile::TileOperand;
use super::total::Total;
use super::walk::Loops;
use crate::level::{Level, Vectors, on_level};
#[cfg(doc)]
use crate::vectors::Form;
use crate::vectors::{self, Factors, Prefetch};

/// The index of the operand that multiplies the first factor for its own sum.
const FACTOR_SUM_OPERAND: usize = 6;

/// Where the sums of a tile go.
pub(super) struct To<'a, R> {
    /// The index of the first result in the total, and the loops over all results.
    pub(super) at: isize,
    pub(super) loops: &'a Loops,
    pub(super) total: Total<'a, R>,
    /// Where the sums of the first factor go, at the same indices.
    pub(super) factor_sum: Option<Total<'a, R>>,
}

/// Adds up products of factors of a tile: see [`Factors`].
pub(super) struct ProductsTile<'a, R> {
    pub(super) x: &'a [R],
    pub(super) y: &'a [R],
    pub(super) operands: [TileOperand<'a, R>; OPERANDS],
    /// Bits for the operands that are there.
    pub(super) present: u8,
    /// The number of elements of a row.
    pub(super) row: usize,
    pub(super) shape: &'a FoldShape,
    pub(super) to: To<'a, R>,
    pub(super) spare: &'a mut FoldScratch<R>,
    pub(super) level: Level,
    /// The memory that is prefetched meanwhile.
    pub(super) prefetch: [Prefetch; 2],
}

impl<R: Real> ProductsTile<'_, R> {
    pub(super) fn run(self) {
        let few = self.shape.few_rows(self.to.loops).map(|(_, len)| len);
        let few = few.filter(|_| matches!(self.to.total, Total::Accumulators(..)));
        let vectors = self.level.zip(vectors::products_of::<R>());
        let factors = |len| self.factors(len);
        match (vectors, few.and_then(factors), self.shape.whole_row().and_then(factors)) {
            (Some((vectors, add)), Some(factors), _) => {
                self.add_blocks((vectors, add.blocks), &factors);
            }
            (Some((vectors, add)), _, Some(factors)) => {
                self.add_rows((vectors, add.rows), &factors);
            }
            _ => self.add_stored(),
        }
    }

    /// Returns the factors in rows of `len` elements, if all operands have what these rows read.
    fn factors(&self, len: usize) -> Option<Factors<R>> {
        let rows = self.x.len() / len;
        let fits = self.row == len || self.operands.iter().all(TileOperand::is_one);
        let has_all = self.operands.iter().all(|operand| operand.has_all(rows, len));
        let is_there = self.x.len() == rows * len && self.y.len() == self.x.len();
        let bit = |set: u8, (n, operand): (usize, &TileOperand<'_, R>)| {
            set | u8::from(operand.per_element()) << n
        };
        (fits && has_all && is_there).then(|| Factors {
            x: self.x.as_ptr(),
            y: self.y.as_ptr(),
            operands: self.operands.each_ref().map(TileOperand::place),
            present: self.present,
            per_element: self.operands.iter().enumerate().fold(0, bit),
            rows,
            len,
            prefetch: self.prefetch,
        })
    }

    /// Adds rows, element by element, to sums that wait.
    fn add_blocks(
        self,
        (vectors, add): (Vectors, vectors::AddProductsFn<R>),
        factors: &Factors<R>,
    ) {
        let To { at, total, factor_sum, .. } = self.to;
        let (rows, at) = ((factors.rows, factors.len), at.cast_unsigned());
        let Total::Accumulators(to, pending) = total else { return };
        pending.add(rows, at, to, |sums| match factor_sum {
            Some(Total::Accumulators(to, pending)) => pending.add(rows, at, to, |others| {
                // SAFETY: `Self::factors` checked that `x`, `y` and the operands have all that
                // `rows` rows read, and both slices have `len` sums.
                unsafe { add(vectors, factors, sums, Some(others)) };
            }),
            // SAFETY: `Self::factors` checked that `x`, `y` and the operands have all that `rows`
            // rows read, and `sums` has `len` sums.
            _ => unsafe { add(vectors, factors, sums, None) },
        });
    }

    /// Reduces contiguous rows, each to one sum.
    fn add_rows(self, (vectors, add): (Vectors, vectors::AddProductsFn<R>), factors: &Factors<R>) {
        let To { at, loops, total, factor_sum } = self.to;
        let results = self.shape.results;
        let [first, second, ..] = self.spare.buffers.each_mut();
        let (sums, others) = (first.first_mut(results), second.first_mut(results));
        // SAFETY: `Self::factors` checked that `x`, `y` and the operands have all that `rows` rows
        // read, and both slices have a sum for each row.
        unsafe { add(vectors, factors, sums, factor_sum.is_some().then_some(&mut *others)) };
        total.add(Reduction::Sum, (at, loops), sums, None, 0.0);
        if let Some(factor_sum) = factor_sum {
            factor_sum.add(Reduction::Sum, (at, loops), others, None, 0.0);
        }
    }

    /// Stores the factors and their products, and reduces these, where no SIMD loop fits the tile.
    fn add_stored(self) {
        let Self { x, y, operands, present, row, shape, to, spare, level, .. } = self;
        let To { at, loops, total, factor_sum } = to;
        let mut buffers: [AlignedBuffer<R>; 3] = std::array::from_fn(|n| {
            std::mem::replace(&mut spare.buffers[USED + n], AlignedBuffer::EMPTY)
        });
        let [for_x, for_y, products] = buffers.each_mut().map(|buffer| buffer.first_mut(x.len()));
        let (mut x, mut y) = (x, y);
        for (factor, buffer, n) in [(&mut x, for_x, 0), (&mut y, for_y, 3)] {
            // A factor without operands is a value that is there.
            if present >> n & 7 != 0 {
                let own = [(0, operands[n]), (2, operands[n + 1]), (3, operands[n + 2])];
                compute(level, (*factor, row), &own, buffer);
                *factor = buffer;
            }
        }
        for ((product, x), y) in products.iter_mut().zip(x).zip(y) {
            *product = *x * *y;
        }
        let mut sum = |a: &[R], to| {
            let kind = Reduction::Sum;
            on_level(level, FoldTile { a, shape, kind, at, loops, to, spare: &mut *spare, level });
        };
        sum(products, total);
        if let Some(factor_sum) = factor_sum {
            compute(level, (x, row), &[(2, operands[FACTOR_SUM_OPERAND])], products);
            sum(products, factor_sum);
        }
        for (n, buffer) in buffers.into_iter().enumerate() {
            spare.buffers[USED + n] = buffer;
        }
    }
}

/// Computes a chain that has operands at some places of [`Form::Product`].
fn compute<R: Real>(
    level: Level,
    (x, row): (&[R], usize),
    operands: &[(usize, TileOperand<'_, R>)],
    out: &mut [R],
) {
    let mut chain = FusedChain::default();
    for (number, (place, _)) in (1..).zip(operands) {
        chain.operands[*place] = number;
    }
    let operand = |n: usize| operands[n - 1].1;
    chain::run(level, &chain, Elements { x, row, out }, operand, (false, [Prefetch::NONE; 2]));
}
