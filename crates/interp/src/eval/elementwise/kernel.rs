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

fn result<T: Native>(out: &mut Data) -> Outcome<&mut Vec<T>> {
    let out = T::view_mut(out).ok_or(WRONG_STORAGE)?;
    out.clear();
    Ok(out)
}

/// Returns a kernel of one operand.
pub(crate) fn map1<A: Native, R: Native>(f: impl Fn(A) -> R + Send + Sync + 'static) -> Kernel {
    Box::new(move |operands, lanes, out| {
        let a = operand::<A>(operands, 0, lanes)?;
        result::<R>(out)?.extend(a.iter().map(|&a| f(a)));
        Ok(())
    })
}

/// Returns a kernel of two operands.
pub(crate) fn map2<A: Native, B: Native, R: Native>(
    f: impl Fn(A, B) -> R + Send + Sync + 'static,
) -> Kernel {
    Box::new(move |operands, lanes, out| {
        let a = operand::<A>(operands, 0, lanes)?;
        let b = operand::<B>(operands, 1, lanes)?;
        result::<R>(out)?.extend(a.iter().zip(b).map(|(&a, &b)| f(a, b)));
        Ok(())
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
        let abc = a.iter().zip(b).zip(c);
        result::<R>(out)?.extend(abc.map(|((&a, &b), &c)| f(a, b, c)));
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
