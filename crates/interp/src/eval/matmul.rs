//! Sums of products, as matrices.

use ndarray::linalg::general_mat_mul;
use ndarray::{ArrayView2, ArrayViewMut2, ShapeBuilder as _};
use num_complex::Complex;
use tilewright_ir::{Data, ElementType, Native};

use crate::algebra::field;
use crate::error::{Fault, Outcome, WRONG_STORAGE};

/// A type in which products are summed.
pub(super) trait Product: Native {
    const ZERO: Self;
    fn multiply_add(self, x: Self, y: Self) -> Self;
    /// Adds `x` (rows of `inner`) times `y` (`inner` rows of `columns`) to `sums`.
    fn add_product(
        x: &[Self],
        y: &[Self],
        sums: &mut [Self],
        rows: Rows,
        inner: usize,
        columns: usize,
    ) {
        add_product_in_order(x, y, sums, rows, inner, columns);
    }
}

impl Product for f64 {
    const ZERO: Self = 0.0;
    fn multiply_add(self, x: Self, y: Self) -> Self {
        self + x * y
    }
    fn add_product(
        x: &[Self],
        y: &[Self],
        sums: &mut [Self],
        rows: Rows,
        inner: usize,
        columns: usize,
    ) {
        if rows.count * inner * columns < WORTH_A_LIBRARY {
            return add_product_in_order(x, y, sums, rows, inner, columns);
        }
        let left = ArrayView2::from_shape((rows.count, inner).strides((rows.x_stride, 1)), x);
        let right = ArrayView2::from_shape((inner, columns).strides((rows.y_stride, 1)), y);
        let shape = (rows.count, columns).strides((rows.sum_stride, 1));
        match (left, right, ArrayViewMut2::from_shape(shape, sums)) {
            (Ok(left), Ok(right), Ok(mut sums)) => {
                general_mat_mul(1.0, &left, &right, 1.0, &mut sums);
            }
            // Rows that overlap are no matrix.
            _ => add_product_in_order(x, y, sums, rows, inner, columns),
        }
    }
}

impl Product for i64 {
    const ZERO: Self = 0;
    fn multiply_add(self, x: Self, y: Self) -> Self {
        self.wrapping_add(x.wrapping_mul(y))
    }
}

/// Elements of a field; see [`crate::algebra`].
impl Product for u64 {
    const ZERO: Self = 0;
    fn multiply_add(self, x: Self, y: Self) -> Self {
        field::add(self, field::multiply(x, y))
    }
}

impl Product for Complex<f64> {
    const ZERO: Self = Self::new(0.0, 0.0);
    fn multiply_add(self, x: Self, y: Self) -> Self {
        self + x * y
    }
}

/// Code that is the same for every type in which products are summed.
pub(super) trait Visitor {
    fn visit<T: Product>(self) -> Outcome<Data>;
}

/// Runs code for one of `f64`, `c128`, `s64` and, for elements of a field, `u64`.
pub(super) fn visit(element_type: ElementType, visitor: impl Visitor) -> Outcome<Data> {
    match element_type {
        ElementType::F64 => visitor.visit::<f64>(),
        ElementType::C128 => visitor.visit::<Complex<f64>>(),
        ElementType::S64 => visitor.visit::<i64>(),
        ElementType::U64 => visitor.visit::<u64>(),
        _ => Err(Fault::Internal("products are not summed in this type")),
    }
}

pub(super) fn view<T: Product>(data: &Data) -> Outcome<&[T]> {
    data.as_slice().ok_or(WRONG_STORAGE)
}

/// The layout of rows in their arrays.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    /// The number of rows of `x` and of the sums.
    pub(super) count: usize,
    pub(super) x_stride: usize,
    pub(super) sum_stride: usize,
    /// From one row of `y` to the next.
    pub(super) y_stride: usize,
}

/// Rows of `x` whose products with a row of `y` are added together.
const ROWS: usize = 4;
/// Columns of the sums that stay in the fastest memory.
const COLUMNS: usize = 256;

/// The least number of products for which rearranging the factors for a library pays.
const WORTH_A_LIBRARY: usize = 1 << 12;
/// Rows that are multiplied at one time.
pub(super) const ROWS_OF_A_TASK: usize = 64;
/// Products that are worth a thread.
pub(super) const PRODUCTS_OF_A_THREAD: usize = 1 << 18;

/// Adds `x` (rows of `inner`) times `y` (`inner` rows of `columns`) to `sums`.
/// Every sum adds its products one after the other, in the order of `inner`.
fn add_product_in_order<T: Product>(
    x: &[T],
    y: &[T],
    sums: &mut [T],
    rows: Rows,
    inner: usize,
    columns: usize,
) {
    for first in (0..columns).step_by(COLUMNS) {
        let width = COLUMNS.min(columns - first);
        let mut row = 0;
        while row < rows.count {
            let count = ROWS.min(rows.count - row);
            let x = &x[row * rows.x_stride..];
            let sums = &mut sums[row * rows.sum_stride + first..];
            if count == ROWS && rows.sum_stride >= width {
                add_rows(x, &y[first..], sums, rows, inner, width);
            } else {
                for i in 0..count {
                    let sums = &mut sums[i * rows.sum_stride..][..width];
                    add_row(&x[i * rows.x_stride..][..inner], &y[first..], rows.y_stride, sums);
                }
            }
            row += count;
        }
    }
}

fn add_row<T: Product>(x: &[T], y: &[T], y_stride: usize, sums: &mut [T]) {
    for (k, &factor) in x.iter().enumerate() {
        let y = &y[k * y_stride..][..sums.len()];
        for (sum, &y) in sums.iter_mut().zip(y) {
            *sum = sum.multiply_add(factor, y);
        }
    }
}

/// Adds four rows at once, so that every row of `y` is read once for all of them.
fn add_rows<T: Product>(x: &[T], y: &[T], sums: &mut [T], rows: Rows, inner: usize, width: usize) {
    let stride = rows.sum_stride;
    let (a, rest) = sums.split_at_mut(stride);
    let (b, rest) = rest.split_at_mut(stride);
    let (c, d) = rest.split_at_mut(stride);
    let (a, b, c, d) = (&mut a[..width], &mut b[..width], &mut c[..width], &mut d[..width]);
    for k in 0..inner {
        let y = &y[k * rows.y_stride..][..width];
        let factor = |row: usize| x[row * rows.x_stride + k];
        let (fa, fb, fc, fd) = (factor(0), factor(1), factor(2), factor(3));
        for ((((y, a), b), c), d) in
            y.iter().zip(a.iter_mut()).zip(b.iter_mut()).zip(c.iter_mut()).zip(d.iter_mut())
        {
            *a = a.multiply_add(fa, *y);
            *b = b.multiply_add(fb, *y);
            *c = c.multiply_add(fc, *y);
            *d = d.multiply_add(fd, *y);
        }
    }
}
