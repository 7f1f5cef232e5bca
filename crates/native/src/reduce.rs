//! The public reductions, by element type and fold. All loops are compiled here, once for each type
//! and fold, so that the crates of callers compile none.

use std::mem::MaybeUninit;

use half::{bf16, f16};

use crate::axes::{Reduced, axes_of};
use crate::elements::{Element, Number};
use crate::error::Error;
use crate::folds::{self, Accumulate};
use crate::pages::empty;
use crate::pool::Pool;
use crate::run::write_all;
use crate::view::View;

/// How a reduction combines elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fold {
    /// The sum of numbers, in their type. Floats of 16 bits are added as `f32`; integers wrap.
    Sum,
    /// The product of numbers, in their type. Floats of 16 bits are multiplied as `f32`; integers
    /// wrap.
    Product,
    /// The greatest number; NaN if there is one.
    Max,
    /// The least number; NaN if there is one.
    Min,
    /// Whether all values are true.
    And,
    /// Whether any value is true.
    Or,
}

/// The extremum whose place is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extremum {
    /// The greatest number, or NaN if there is one.
    Max,
    /// The least number, or NaN if there is one.
    Min,
}

/// An array in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub struct Array<T> {
    /// The sizes of the dims.
    pub dims: Vec<usize>,
    /// The elements.
    pub data: Vec<T>,
}

/// Reduces an array along some of its axes; negative axes count from the last. Each element of the
/// result is the fold of all elements that differ only in their indices along these axes.
///
/// # Errors
/// If an axis is out of range or repeated, the elements have no such fold, an extremum of no
/// elements is asked for, a size overflows, or the pool caught the panic of a task.
pub fn reduce<T: Element>(
    view: &View<'_, T>,
    axes: &[i64],
    fold: Fold,
    pool: &dyn Pool,
) -> Result<Array<T>, Error> {
    let reduced = axes_of(view.dims(), view.strides(), axes)?;
    let call = Call { view, reduced: &reduced, pool };
    let data = collected(&reduced, |out| T::fold(&call, fold, out))?;
    Ok(Array { dims: reduced.dims, data })
}

/// Reduces an array as [`reduce`] does, and writes the results to `out` in row-major order.
///
/// # Errors
/// Fails as [`reduce`] does, and if the length of `out` is not the number of results. After an
/// error, `out` may have some of the results.
pub fn reduce_into<T: Element>(
    view: &View<'_, T>,
    axes: &[i64],
    fold: Fold,
    out: &mut [T],
    pool: &dyn Pool,
) -> Result<(), Error> {
    let reduced = axes_of(view.dims(), view.strides(), axes)?;
    let call = Call { view, reduced: &reduced, pool };
    T::fold(&call, fold, as_uninit(&reduced, out)?)
}

/// Finds the place of an extremum along some axes, the first place of several. The place of an
/// element is its row-major index along these axes, in the order of the array's dims.
///
/// # Errors
/// Fails as [`reduce`] does, and if more elements are reduced to one than `P` can count.
pub fn place<T: Number, P: Place>(
    view: &View<'_, T>,
    axes: &[i64],
    of: Extremum,
    pool: &dyn Pool,
) -> Result<Array<P>, Error> {
    let reduced = axes_of(view.dims(), view.strides(), axes)?;
    let call = Call { view, reduced: &reduced, pool };
    let write = |out: &mut _| P::write(reduced.count, &|to| T::place(&call, of, to), out);
    let data = collected(&reduced, write)?;
    Ok(Array { dims: reduced.dims, data })
}

/// Finds places as [`place`] does, and writes them to `out` in row-major order.
///
/// # Errors
/// Fails as [`place`] does, and if the length of `out` is not the number of results. After an
/// error, `out` may have some of the results.
pub fn place_into<T: Number, P: Place>(
    view: &View<'_, T>,
    axes: &[i64],
    of: Extremum,
    out: &mut [P],
    pool: &dyn Pool,
) -> Result<(), Error> {
    let reduced = axes_of(view.dims(), view.strides(), axes)?;
    let call = Call { view, reduced: &reduced, pool };
    let out = as_uninit(&reduced, out)?;
    P::write(reduced.count, &|to| T::place(&call, of, to), out)
}

/// The number of results.
fn count_of(reduced: &Reduced) -> Result<usize, Error> {
    let results = reduced.dims.iter().try_fold(1usize, |all, &dim| all.checked_mul(dim));
    results.ok_or(Error::TooLarge)
}

/// Returns the results that `write` writes. Unless it returns an error, it must write all of them.
fn collected<R>(
    reduced: &Reduced,
    write: impl FnOnce(&mut [MaybeUninit<R>]) -> Result<(), Error>,
) -> Result<Vec<R>, Error> {
    let results = count_of(reduced)?;
    let mut data: Vec<R> = empty(results)?;
    write(&mut data.spare_capacity_mut()[..results])?;
    // SAFETY: `write` returned no error, so it wrote all `results` elements of the vector's
    // capacity.
    unsafe { data.set_len(results) };
    Ok(data)
}

/// Returns `out` as uninitialised results, if its length is their number. Only values are written
/// there.
fn as_uninit<'a, R>(
    reduced: &Reduced,
    out: &'a mut [R],
) -> Result<&'a mut [MaybeUninit<R>], Error> {
    let results = count_of(reduced)?;
    if out.len() != results {
        return Err(Error::OutputOfOtherLength { given: out.len(), results });
    }
    // SAFETY: the slice goes to `write_all` or `Counts::write`, which write nothing but initialised
    // values.
    Ok(unsafe { crate::tasks::as_uninit(out) })
}

/// The operands of one reduction.
pub struct Call<'a, T> {
    view: &'a View<'a, T>,
    reduced: &'a Reduced,
    pool: &'a dyn Pool,
}

/// The folds of an element type.
pub trait Folds: Sized {
    /// Writes all results to `out`, whose length is their number.
    fn fold(call: &Call<'_, Self>, fold: Fold, out: &mut [MaybeUninit<Self>]) -> Result<(), Error>;
}

/// The places of extrema of an element type.
pub trait Places: Sized {
    /// Writes all places to `out`, whose length is their number, each as the bits of a `u32`.
    fn place(
        call: &Call<'_, Self>,
        of: Extremum,
        out: &mut [MaybeUninit<i32>],
    ) -> Result<(), Error>;
}

macro_rules! places {
    ($($type:ident)*) => { $(
        impl Places for $type {
            fn place(
                call: &Call<'_, Self>,
                of: Extremum,
                out: &mut [MaybeUninit<i32>],
            ) -> Result<(), Error> {
                match of {
                    Extremum::Max => call.run(folds::ArgMax, out),
                    Extremum::Min => call.run(folds::ArgMin, out),
                }
            }
        }
    )* };
}

places!(f16 bf16 f32 f64 i8 i16 i32 i64 u8 u16 u32 u64);

macro_rules! folds {
    ($($type:ident)*) => { $(
        impl Folds for $type {
            fn fold(
                call: &Call<'_, Self>,
                fold: Fold,
                out: &mut [MaybeUninit<Self>],
            ) -> Result<(), Error> {
                match fold {
                    Fold::Sum => call.run(folds::Sum, out),
                    Fold::Product => call.run(folds::Product, out),
                    Fold::Max | Fold::Min | Fold::And | Fold::Or => call.extremum(fold, out),
                }
            }
        }
    )* };
}

folds!(f16 bf16 f32 f64 i8 i16 i32 i64 u8);

/// Implements the folds of an unsigned type: wrapping sums and products have the bits of the signed
/// type's.
macro_rules! folds_by_signed {
    ($($type:ident $signed:ident)*) => { $(
        impl Folds for $type {
            fn fold(
                call: &Call<'_, Self>,
                fold: Fold,
                out: &mut [MaybeUninit<Self>],
            ) -> Result<(), Error> {
                match fold {
                    // SAFETY: both types are integers of one size, so they have one layout, and all
                    // bits are a value of both.
                    Fold::Sum | Fold::Product => unsafe { call.fold_as::<$signed>(fold, out) },
                    Fold::Max | Fold::Min | Fold::And | Fold::Or => call.extremum(fold, out),
                }
            }
        }
    )* };
}

folds_by_signed!(u16 i16 u32 i32 u64 i64);

/// All values are true if the least byte is 1; any value is true if the greatest byte is 1.
impl Folds for bool {
    fn fold(call: &Call<'_, Self>, fold: Fold, out: &mut [MaybeUninit<Self>]) -> Result<(), Error> {
        let (extremum, of_none) = match fold {
            Fold::And => (Fold::Min, true),
            Fold::Or => (Fold::Max, false),
            Fold::Sum | Fold::Product | Fold::Max | Fold::Min => {
                return Err(Error::NoSuchFold(fold));
            }
        };
        if call.reduced.count == 0 {
            out.fill(MaybeUninit::new(of_none));
            return Ok(());
        }
        // SAFETY: a `bool` is a byte, 0 or 1, and the extremum of one or more elements is one of
        // them.
        unsafe { call.fold_as::<u8>(extremum, out) }
    }
}

impl<T: Number> Call<'_, T> {
    /// Writes the maxima or the minima.
    fn extremum(&self, fold: Fold, out: &mut [MaybeUninit<T>]) -> Result<(), Error> {
        match fold {
            Fold::Max => self.run(folds::Max, out),
            Fold::Min => self.run(folds::Min, out),
            Fold::Sum | Fold::Product | Fold::And | Fold::Or => Err(Error::NoSuchFold(fold)),
        }
    }
}

impl<T: Element> Call<'_, T> {
    fn run<F: Accumulate<T>>(
        &self,
        fold: F,
        out: &mut [MaybeUninit<F::Output>],
    ) -> Result<(), Error> {
        write_all(self.view, self.reduced, fold, out, self.pool)
    }

    /// Folds the elements as elements of `U`.
    ///
    /// # Safety
    /// `T` and `U` must have the same size and alignment, each element of the view must be a valid
    /// `U`, and each result of the fold must be a valid `T`.
    unsafe fn fold_as<U: Element>(
        &self,
        fold: Fold,
        out: &mut [MaybeUninit<T>],
    ) -> Result<(), Error> {
        // SAFETY: the caller guarantees that the layouts are the same and that each element is a
        // valid `U`.
        let view = unsafe { self.view.elements_as::<U>() };
        let call = Call { view: &view, reduced: self.reduced, pool: self.pool };
        // SAFETY: the layouts are the same, and only results of the fold are written, which the
        // caller guarantees to be valid `T`s.
        let out = unsafe { std::slice::from_raw_parts_mut(out.as_mut_ptr().cast(), out.len()) };
        U::fold(&call, fold, out)
    }
}

/// An integer type for places: `i32` or `i64`.
pub trait Place: Counts {}

impl Place for i32 {}
impl Place for i64 {}

/// Writes places to a slice of their number, each as the bits of a `u32`.
pub(crate) type Write<'a> = &'a dyn Fn(&mut [MaybeUninit<i32>]) -> Result<(), Error>;

/// A type that places are converted to.
pub trait Counts: Sized {
    /// Has `places` write the bits of places, each below `count`, and writes them to `out`.
    fn write(count: usize, places: Write<'_>, out: &mut [MaybeUninit<Self>]) -> Result<(), Error>;
}

impl Counts for i32 {
    fn write(count: usize, places: Write<'_>, out: &mut [MaybeUninit<Self>]) -> Result<(), Error> {
        // Places are below `count`, so they have the same bits as an `i32`.
        if i32::try_from(count).is_err() {
            return Err(Error::TooManyPlaces { count, most: MOST_32 });
        }
        places(out)
    }
}

/// The most elements whose places an `i32` counts.
const MOST_32: usize = i32::MAX as usize;

impl Counts for i64 {
    fn write(_: usize, places: Write<'_>, out: &mut [MaybeUninit<Self>]) -> Result<(), Error> {
        let mut short: Vec<i32> = empty(out.len())?;
        places(&mut short.spare_capacity_mut()[..out.len()])?;
        // SAFETY: `places` returned no error, so it wrote all `out.len()` elements of the vector's
        // capacity.
        unsafe { short.set_len(out.len()) };
        for (to, place) in out.iter_mut().zip(short) {
            to.write(place.cast_unsigned().into());
        }
        Ok(())
    }
}
