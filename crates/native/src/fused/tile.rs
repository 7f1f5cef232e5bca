//! The loops of elementwise ops, loads and stores over a tile, as tasks. `compute.rs` runs them.

#![expect(
    clippy::needless_range_loop,
    clippy::manual_memcpy,
    reason = "iterators of the standard library are not always compiled for a task's level"
)]

use std::mem::MaybeUninit;

use super::program::{Binary, Unary};
use super::real::{Real, Stored, fused_in_f64, narrowed_bf16};
use super::steps::Along;
use super::walk::Loops;
use crate::elements::Number;
use crate::level::{Level, Task};

/// Computes an op of one value, for each element.
pub(super) struct Apply<'a, R> {
    pub(super) op: Unary,
    pub(super) a: &'a [R],
    pub(super) out: &'a mut [R],
    pub(super) level: Level,
}

/// Evaluates an expression with `f32::mul_add` where the level has the instruction, else with
/// `fused_in_f64`.
macro_rules! with_fused {
    ($level:expr, $fused:ident => $do:expr) => {
        if $level.is_none() {
            let $fused = fused_in_f64;
            $do
        } else {
            let $fused = f32::mul_add;
            $do
        }
    };
}

impl<R: Real> Task for Apply<'_, R> {
    #[inline(always)]
    fn run(self) {
        let Self { op, a, out, level } = self;
        match op {
            Unary::Negate => map(a, out, |x| -x),
            Unary::Abs => map(a, out, R::abs),
            Unary::Exp => with_fused!(level, fused => map(a, out, |x| x.exp(fused))),
            Unary::Log => map(a, out, R::ln),
            Unary::Sqrt => map(a, out, R::sqrt),
            Unary::Rsqrt => map(a, out, |x| R::ONE / x.sqrt()),
            Unary::Tanh => map(a, out, R::tanh),
            Unary::Logistic => with_fused!(level, fused => {
                map(a, out, |x| R::ONE / (R::ONE + (-x).exp(fused)));
            }),
            Unary::Not => map(a, out, |x| truth(x == R::ZERO)),
            Unary::ToF32 => map(a, out, |x| R::from_f32(x.to_f32())),
            Unary::ToBf16 => map(a, out, |x| R::from_f32(narrowed_bf16(x.to_odd_f32()).widen())),
            Unary::ToF16 => {
                map(a, out, |x| R::from_f32(half::f16::from_f32(x.to_odd_f32()).widen()));
            }
        }
    }
}

/// An operand of an op that goes over rows.
#[derive(Clone, Copy)]
pub(super) struct TileOperand<'a, R> {
    data: &'a [R],
    /// The distance from the first element that a row reads to the first one that the next row
    /// reads, in elements.
    row_stride: usize,
    /// Whether it has an element for each element of a row; else it has one for the whole row.
    per_element: bool,
}

impl<'a, R> TileOperand<'a, R> {
    /// An operand of one element, for all.
    pub(super) fn one(element: &'a R) -> Self {
        Self::new(std::slice::from_ref(element), Along::Scalar, 1)
    }

    pub(super) fn new(data: &'a [R], along: Along, row: usize) -> Self {
        let row_stride = match along {
            Along::Full => row,
            Along::PerRow => 1,
            Along::PerColumn | Along::Scalar => 0,
        };
        Self { data, row_stride, per_element: matches!(along, Along::Full | Along::PerColumn) }
    }

    /// The address of its first element, and the distance from row to row, in elements.
    pub(super) fn place(&self) -> (*const R, usize) {
        (self.data.as_ptr(), self.row_stride)
    }

    /// Checks whether its slice has all elements that `rows` rows of `len` elements read.
    pub(super) fn has_all(&self, rows: usize, len: usize) -> bool {
        let own = if self.per_element { len } else { 1 };
        rows.saturating_sub(1).saturating_mul(self.row_stride).saturating_add(own)
            <= self.data.len()
    }

    /// Checks whether it has one element for all rows.
    pub(super) fn is_one(&self) -> bool {
        !self.per_element && self.row_stride == 0
    }

    /// Checks whether it has an element for each element of a row.
    pub(super) fn per_element(&self) -> bool {
        self.per_element
    }

    /// Returns the operand's element for an element of a row.
    pub(super) fn at(&self, row: usize, index: usize) -> R
    where
        R: Copy,
    {
        self.data[row * self.row_stride + if self.per_element { index } else { 0 }]
    }

    /// Returns the `len` elements that a row reads, where `len` is 1 or the number of elements of
    /// the row.
    #[inline(always)]
    pub(super) fn part(&self, row: usize, len: usize) -> &'a [R] {
        &self.data[row * self.row_stride..][..len]
    }
}

/// Computes an op of two values, for each element of rows.
pub(super) struct Combine<'a, R> {
    pub(super) op: Binary,
    pub(super) a: TileOperand<'a, R>,
    pub(super) b: TileOperand<'a, R>,
    /// The number of elements of a row.
    pub(super) row: usize,
    pub(super) out: &'a mut [R],
}

impl<R: Real> Task for Combine<'_, R> {
    #[inline(always)]
    fn run(self) {
        let Self { op, a, b, row, out } = self;
        let out = (out, row);
        match op {
            Binary::Add => zip(a, b, out, |x, y| x + y),
            Binary::Subtract => zip(a, b, out, |x, y| x - y),
            Binary::Multiply => zip(a, b, out, |x, y| x * y),
            Binary::Divide => zip(a, b, out, |x, y| x / y),
            Binary::Maximum => zip(a, b, out, |x, y| if y.exceeds(x) { y } else { x }),
            Binary::Minimum => zip(a, b, out, |x, y| if y.falls_below(x) { y } else { x }),
            Binary::Power => zip(a, b, out, R::powf),
            Binary::Equal => zip(a, b, out, |x, y| truth(x == y)),
            Binary::NotEqual => zip(a, b, out, |x, y| truth(x != y)),
            Binary::Less => zip(a, b, out, |x, y| truth(x < y)),
            Binary::LessEqual => zip(a, b, out, |x, y| truth(x <= y)),
        }
    }
}

/// Chooses one of two values, for each element.
pub(super) struct Choose<'a, R> {
    pub(super) condition: &'a [R],
    pub(super) on_true: &'a [R],
    pub(super) on_false: &'a [R],
    pub(super) out: &'a mut [R],
}

impl<R: Real> Task for Choose<'_, R> {
    #[inline(always)]
    fn run(self) {
        let n = self.out.len();
        let (condition, out) = (&self.condition[..n], &mut self.out[..n]);
        let (on_true, on_false) = (&self.on_true[..n], &self.on_false[..n]);
        for i in 0..n {
            out[i] = if condition[i] == R::ZERO { on_false[i] } else { on_true[i] };
        }
    }
}

#[inline(always)]
fn truth<R: Real>(is: bool) -> R {
    if is { R::ONE } else { R::ZERO }
}

#[inline(always)]
fn map<R: Real>(a: &[R], out: &mut [R], f: impl Fn(R) -> R) {
    let n = out.len();
    let (a, out) = (&a[..n], &mut out[..n]);
    for i in 0..n {
        out[i] = f(a[i]);
    }
}

#[inline(always)]
fn zip<R: Real>(
    a: TileOperand<'_, R>,
    b: TileOperand<'_, R>,
    (out, len): (&mut [R], usize),
    f: impl Fn(R, R) -> R,
) {
    for row in 0..out.len() / len {
        let out = &mut out[row * len..][..len];
        match (a.per_element, b.per_element) {
            (true, true) => {
                let (a, b) = (a.part(row, len), b.part(row, len));
                for i in 0..len {
                    out[i] = f(a[i], b[i]);
                }
            }
            (true, false) => {
                let (a, y) = (a.part(row, len), b.part(row, 1)[0]);
                for i in 0..len {
                    out[i] = f(a[i], y);
                }
            }
            (false, true) => {
                let (x, b) = (a.part(row, 1)[0], b.part(row, len));
                for i in 0..len {
                    out[i] = f(x, b[i]);
                }
            }
            (false, false) => {
                let both = f(a.part(row, 1)[0], b.part(row, 1)[0]);
                for i in 0..len {
                    out[i] = both;
                }
            }
        }
    }
}

/// Reads a tile's elements of an array.
pub(super) struct Load<'a, E, R> {
    /// The address of the tile's first element. Whoever makes a `Load` guarantees that all elements
    /// that `loops` reach from there are readable.
    pub(super) start: *const E,
    pub(super) loops: &'a Loops,
    pub(super) out: &'a mut [R],
}

impl<E: Stored, R: Real> Task for Load<'_, E, R> {
    #[inline(always)]
    fn run(self) {
        let Self { start, loops, out } = self;
        let len = loops.len;
        for (at, offset) in loops.runs() {
            let mut from = start.wrapping_offset(offset);
            let out = &mut out[at..at + len];
            match loops.stride {
                0 => {
                    // SAFETY: the loops reach this element, so whoever made the `Load` guaranteed
                    // that it is readable.
                    let element = unsafe { *from }.read();
                    for i in 0..len {
                        out[i] = element;
                    }
                }
                1 => {
                    // SAFETY: the stride is 1, so the loops reach these `len` contiguous elements,
                    // which are readable.
                    let elements = unsafe { std::slice::from_raw_parts(from, len) };
                    for i in 0..len {
                        out[i] = elements[i].read();
                    }
                }
                stride => {
                    for i in 0..len {
                        // SAFETY: the loops reach this element, so it is readable.
                        out[i] = unsafe { *from }.read();
                        from = from.wrapping_offset(stride);
                    }
                }
            }
        }
    }
}

/// Writes a tile's elements to an array.
pub(super) struct Store<'a, E, R> {
    /// The address of the tile's first element. Whoever makes a `Store` guarantees that all
    /// elements that `loops` reach from there are writable and used by this task alone; they may be
    /// uninitialised.
    pub(super) start: *mut E,
    pub(super) loops: &'a Loops,
    pub(super) a: &'a [R],
}

impl<E: Stored, R: Real> Task for Store<'_, E, R> {
    #[inline(always)]
    fn run(self) {
        let Self { start, loops, a } = self;
        let len = loops.len;
        for (at, offset) in loops.runs() {
            let mut to = start.wrapping_offset(offset);
            let a = &a[at..at + len];
            if loops.stride == 1 {
                // SAFETY: the stride is 1, so the loops reach these `len` contiguous elements,
                // which this task alone uses. A `MaybeUninit` may be uninitialised.
                let elements =
                    unsafe { std::slice::from_raw_parts_mut(to.cast::<MaybeUninit<E>>(), len) };
                for i in 0..len {
                    elements[i].write(E::written(a[i]));
                }
                continue;
            }
            for i in 0..len {
                // SAFETY: the loops reach this element, so this task alone may write it.
                unsafe { to.write(E::written(a[i])) };
                to = to.wrapping_offset(loops.stride);
            }
        }
    }
}

/// Repeats the elements of a value along the axes that it lacks: along these, `loops` go over `a`
/// with a stride of 0.
pub(super) struct Expand<'a, R> {
    pub(super) a: &'a [R],
    pub(super) loops: &'a Loops,
    pub(super) out: &'a mut [R],
}

impl<R: Real> Task for Expand<'_, R> {
    #[inline(always)]
    fn run(self) {
        let Self { a, loops, out } = self;
        let len = loops.len;
        for (at, offset) in loops.runs() {
            let mut from = offset.cast_unsigned();
            let out = &mut out[at..at + len];
            match loops.stride {
                0 => {
                    let x = a[from];
                    for i in 0..len {
                        out[i] = x;
                    }
                }
                1 => {
                    let a = &a[from..from + len];
                    for i in 0..len {
                        out[i] = a[i];
                    }
                }
                stride => {
                    for i in 0..len {
                        out[i] = a[from];
                        from += stride.unsigned_abs();
                    }
                }
            }
        }
    }
}
