//! Reductions of arrays, by type and fold. The loops are compiled here, once for each type and fold: a caller
//! names both, and compiles none of them.

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
    /// The sum of numbers, in their type; floats of 16 bits are added as `f32`, whole numbers wrap.
    Sum,
    /// The product of numbers, as [`Fold::Sum`].
    Product,
    /// The greatest number; NaN if there is one.
    Max,
    /// The least number; NaN if there is one.
    Min,
    /// Whether all truth values are true.
    And,
    /// Whether any truth value is true.
    Or,
}

/// The element that a place is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extremum {
    /// The greatest number, or NaN if there is one.
    Max,
    /// The least number, or NaN if there is one.
    Min,
}

/// An array, row major.
#[derive(Clone, Debug, PartialEq)]
pub struct Array<T> {
    /// The sizes of the dims.
    pub dims: Vec<usize>,
    /// The elements.
    pub data: Vec<T>,
}

/// Reduces an array along some of its axes; negative ones count from the last. Each element of the
/// result is what `fold` makes of all elements that differ only in these axes.
///
/// # Errors
/// If an axis is out of range or repeated, the elements have no such fold, an extremum of no elements is
/// asked for, a size overflows, or the pool caught the panic of a task.
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

/// Reduces an array as [`reduce`] does, and writes the results to `out`, row major.
///
/// # Errors
/// As [`reduce`], and if `out` has another length than there are results. After an error, `out` may
/// have some of the results.
pub fn reduce_into<T: Element>(
    view: &View<'_, T>,
    axes: &[i64],
    fold: Fold,
    out: &mut [T],
    pool: &dyn Pool,
) -> Result<(), Error> {
    let reduced = axes_of(view.dims(), view.strides(), axes)?;
    let call = Call { view, reduced: &reduced, pool };
    T::fold(&call, fold, as_room(&reduced, out)?)
}

/// Finds the place of an extremum, the first of several, along some axes. Places are counted row by row through
/// these axes, in the order of the array's dims.
///
/// # Errors
/// As [`reduce`]; also if more elements are reduced to one than `P` counts.
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

/// Finds places as [`place`] does, and writes them to `out`, row major.
///
/// # Errors
/// As [`place`], and if `out` has another length than there are results. After an error, `out` may
/// have some of the results.
pub fn place_into<T: Number, P: Place>(
    view: &View<'_, T>,
    axes: &[i64],
    of: Extremum,
    out: &mut [P],
    pool: &dyn Pool,
) -> Result<(), Error> {
    let reduced = axes_of(view.dims(), view.strides(), axes)?;
    let call = Call { view, reduced: &reduced, pool };
    let out = as_room(&reduced, out)?;
    P::write(reduced.count, &|to| T::place(&call, of, to), out)
}

/// The number of results.
fn count_of(reduced: &Reduced) -> Result<usize, Error> {
    let results = reduced.dims.iter().try_fold(1usize, |all, &dim| all.checked_mul(dim));
    results.ok_or(Error::TooLarge)
}

/// Returns what `write` writes, which must be all results unless it is an error.
fn collected<R>(
    reduced: &Reduced,
    write: impl FnOnce(&mut [MaybeUninit<R>]) -> Result<(), Error>,
) -> Result<Vec<R>, Error> {
    let results = count_of(reduced)?;
    let mut data: Vec<R> = empty(results)?;
    write(&mut data.spare_capacity_mut()[..results])?;
    // SAFETY: the results were written.
    unsafe { data.set_len(results) };
    Ok(data)
}

/// Results that are there as room for others, of which nothing but values is put there.
fn as_room<'a, R>(reduced: &Reduced, out: &'a mut [R]) -> Result<&'a mut [MaybeUninit<R>], Error> {
    let results = count_of(reduced)?;
    if out.len() != results {
        return Err(Error::OutputOfOtherLength { given: out.len(), results });
    }
    // SAFETY: both lie alike; reductions write values alone.
    Ok(unsafe { crate::tasks::as_room(out) })
}

/// A reduction that is asked for.
pub struct Call<'a, T> {
    view: &'a View<'a, T>,
    reduced: &'a Reduced,
    pool: &'a dyn Pool,
}

/// The folds of a type of elements.
pub trait Folds: Sized {
    /// Writes all results to `out`, which has room for them.
    fn fold(call: &Call<'_, Self>, fold: Fold, out: &mut [MaybeUninit<Self>]) -> Result<(), Error>;
}

/// The places of extrema of a type of elements.
pub trait Places: Sized {
    /// Writes all places to `out`, which has room for them, each as the bits of a `u32`.
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

/// Sums and products that wrap have the same bits with a sign and without.
macro_rules! folds_by_signed {
    ($($type:ident $signed:ident)*) => { $(
        impl Folds for $type {
            fn fold(
                call: &Call<'_, Self>,
                fold: Fold,
                out: &mut [MaybeUninit<Self>],
            ) -> Result<(), Error> {
                match fold {
                    // SAFETY: all bits are a number of both types, which lie alike.
                    Fold::Sum | Fold::Product => unsafe { call.fold_as::<$signed>(fold, out) },
                    Fold::Max | Fold::Min | Fold::And | Fold::Or => call.extremum(fold, out),
                }
            }
        }
    )* };
}

folds_by_signed!(u16 i16 u32 i32 u64 i64);

/// All are true if the least byte is 1, any is if the greatest is.
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
        // SAFETY: truth values are bytes, 0 or 1, and an extremum is one of the elements.
        unsafe { call.fold_as::<u8>(extremum, out) }
    }
}

impl<T: Number> Call<'_, T> {
    /// Writes the greatest or least elements.
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

    /// Folds elements as those of another type.
    ///
    /// # Safety
    /// Both types must lie alike, each element of `T` must be one of `U`, and each result one of `T`.
    unsafe fn fold_as<U: Element>(
        &self,
        fold: Fold,
        out: &mut [MaybeUninit<T>],
    ) -> Result<(), Error> {
        // SAFETY: the caller promises it.
        let view = unsafe { self.view.elements_as::<U>() };
        let call = Call { view: &view, reduced: self.reduced, pool: self.pool };
        // SAFETY: as above.
        let out = unsafe { std::slice::from_raw_parts_mut(out.as_mut_ptr().cast(), out.len()) };
        U::fold(&call, fold, out)
    }
}

/// A type that counts places: `i32` or `i64`.
pub trait Place: Counts {}

impl Place for i32 {}
impl Place for i64 {}

/// Writes the bits of places to room for them.
pub(crate) type Write<'a> = &'a dyn Fn(&mut [MaybeUninit<i32>]) -> Result<(), Error>;

/// Places as they are written.
pub trait Counts: Sized {
    /// Has `places` write the bits of places of at most `count` elements, and writes them to `out`.
    fn write(count: usize, places: Write<'_>, out: &mut [MaybeUninit<Self>]) -> Result<(), Error>;
}

impl Counts for i32 {
    fn write(count: usize, places: Write<'_>, out: &mut [MaybeUninit<Self>]) -> Result<(), Error> {
        // Places are below the count, so that their bits are those of an `i32`.
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
        // SAFETY: all places were written.
        unsafe { short.set_len(out.len()) };
        for (to, place) in out.iter_mut().zip(short) {
            to.write(place.cast_unsigned().into());
        }
        Ok(())
    }
}
