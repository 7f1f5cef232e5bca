//! Kernels: typed loops over lanes, made of a function on elements.

use tilewright_ir::{Data, ElementType, Native};

use crate::error::{Fault, Outcome, WRONG_STORAGE};
use crate::value::{map_data, with_data};

/// A kernel computes the number of lanes in the second argument from the first elements of each
/// operand, and replaces the content of the result. Several threads may run it at once.
pub(crate) type Kernel = Box<dyn Fn(&[&Data], usize, &mut Data) -> Outcome<()> + Send + Sync>;

/// Returns the first `lanes` elements of an operand.
fn operand<'a, T: Native>(operands: &[&'a Data], index: usize, lanes: usize) -> Outcome<&'a [T]> {
    let values = operands.get(index).and_then(|data| T::view(data)).ok_or(WRONG_STORAGE)?;
    values.get(..lanes).ok_or(Fault::Internal("an operand has too few elements"))
}

/// Empties a result, and makes room for the elements that it will have.
fn result<T: Native>(out: &mut Data, lanes: usize) -> Outcome<&mut Vec<T>> {
    let out = T::view_mut(out).ok_or(WRONG_STORAGE)?;
    out.clear();
    out.reserve_exact(lanes);
    Ok(out)
}

/// The number of elements computed at a time. They stay in the first level of the cache from [`grow`] on
/// until they are computed.
pub(super) const BLOCK: usize = 1024;

/// Appends zeros, and returns them to be overwritten.
pub(super) fn grow<T: Native>(out: &mut Vec<T>, count: usize) -> &mut [T] {
    let first = out.len();
    out.resize(first + count, T::default());
    &mut out[first..]
}

// Loops over blocks are compiled for types, not for functions on elements: these are many more.

fn blocks1<A: Native, R: Native>(
    operands: &[&Data],
    lanes: usize,
    out: &mut Data,
    compute: &dyn Fn(&[A], &mut [R]),
) -> Outcome<()> {
    let a = operand::<A>(operands, 0, lanes)?;
    let out = result::<R>(out, lanes)?;
    for a in a.chunks(BLOCK) {
        compute(a, grow(out, a.len()));
    }
    Ok(())
}

/// Computes a block of two operands.
type Combine<'a, A, B, R> = &'a dyn Fn(&[A], &[B], &mut [R]);

fn blocks2<A: Native, B: Native, R: Native>(
    operands: &[&Data],
    lanes: usize,
    out: &mut Data,
    compute: Combine<'_, A, B, R>,
) -> Outcome<()> {
    let a = operand::<A>(operands, 0, lanes)?;
    let b = operand::<B>(operands, 1, lanes)?;
    let out = result::<R>(out, lanes)?;
    for (a, b) in a.chunks(BLOCK).zip(b.chunks(BLOCK)) {
        compute(a, b, grow(out, a.len()));
    }
    Ok(())
}

/// Returns a kernel of one operand.
pub(crate) fn map1<A: Native, R: Native>(f: impl Fn(A) -> R + Send + Sync + 'static) -> Kernel {
    Box::new(move |operands, lanes, out| {
        blocks1(operands, lanes, out, &|a: &[A], out: &mut [R]| {
            for (out, &a) in out.iter_mut().zip(a) {
                *out = f(a);
            }
        })
    })
}

/// Returns a kernel of two operands.
pub(crate) fn map2<A: Native, B: Native, R: Native>(
    f: impl Fn(A, B) -> R + Send + Sync + 'static,
) -> Kernel {
    Box::new(move |operands, lanes, out| {
        blocks2(operands, lanes, out, &|a: &[A], b: &[B], out: &mut [R]| {
            for ((out, &a), &b) in out.iter_mut().zip(a).zip(b) {
                *out = f(a, b);
            }
        })
    })
}

/// Returns a kernel of three operands.
pub(crate) fn map3<A: Native, B: Native, C: Native, R: Native>(
    f: impl Fn(A, B, C) -> R + Send + Sync + 'static,
) -> Kernel {
    Box::new(move |operands, lanes, out| {
        let a = operand::<A>(operands, 0, lanes)?;
        let b = operand::<B>(operands, 1, lanes)?;
        let c = operand::<C>(operands, 2, lanes)?;
        let out = result::<R>(out, lanes)?;
        for ((a, b), c) in a.chunks(BLOCK).zip(b.chunks(BLOCK)).zip(c.chunks(BLOCK)) {
            let out = grow(out, a.len()).iter_mut();
            for (((out, &a), &b), &c) in out.zip(a).zip(b).zip(c) {
                *out = f(a, b, c);
            }
        }
        Ok(())
    })
}

/// Chooses between two operands of a type by a third.
pub(super) fn select(element_type: ElementType) -> Kernel {
    fn of<T: Native>(_: &[T]) -> Kernel {
        map3(|condition: bool, a: T, b: T| if condition { a } else { b })
    }
    with_data!(&Data::zeros(element_type, 0), values => of(values))
}

/// Storage without elements, with room for some.
pub(crate) fn empty(element_type: ElementType, room: usize) -> Data {
    map_data!(Data::zeros(element_type, 0), values => {
        let mut values = values;
        values.reserve_exact(room);
        values
    })
}

/// Returns the first element, `count` times; no elements if there is none.
pub(crate) fn repeat(data: &Data, count: usize) -> Data {
    map_data!(data, values => {
        values.first().map_or_else(Vec::new, |&value| vec![value; count])
    })
}
