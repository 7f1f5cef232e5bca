//! The reduction that a call asks for.

use half::{bf16, f16};
use tilewright::ir::NativeFold as Fold;
use tilewright_native::{
    ArgMax, ArgMin, Max, Min, Number, Pool, Product, Sum, View, reduce, reduce_into,
};

use super::Refusal;
use super::abi::data_type;
use super::frame::{Call, Element, unknown_type};

/// Reduces the array of a call.
///
/// # Errors
/// If the fold is none of the array's elements, buffers lie where they cannot, an extremum of no
/// elements is asked for, or a task panicked.
pub(crate) fn run(call: Call<'_>, pool: &dyn Pool) -> Result<(), Refusal> {
    match call.array.data_type {
        data_type::PRED => truths(call, pool),
        data_type::S8 => numbers::<i8>(call, pool),
        data_type::S16 => numbers::<i16>(call, pool),
        data_type::S32 => numbers::<i32>(call, pool),
        data_type::S64 => numbers::<i64>(call, pool),
        data_type::U8 => numbers::<u8>(call, pool),
        data_type::U16 => numbers::<u16>(call, pool),
        data_type::U32 => numbers::<u32>(call, pool),
        data_type::U64 => numbers::<u64>(call, pool),
        data_type::F16 => numbers::<f16>(call, pool),
        data_type::BF16 => numbers::<bf16>(call, pool),
        data_type::F32 => numbers::<f32>(call, pool),
        data_type::F64 => numbers::<f64>(call, pool),
        other => Err(unknown_type(other)),
    }
}

fn numbers<T: Number + Element>(mut call: Call<'_>, pool: &dyn Pool) -> Result<(), Refusal> {
    let view = View::row_major(call.array::<T>()?, &call.array.dims)?;
    let axes = call.axes;
    match call.fold {
        Fold::Sum => reduce_into(&view, axes, Sum, call.result()?, pool)?,
        Fold::Product => reduce_into(&view, axes, Product, call.result()?, pool)?,
        Fold::Max => reduce_into(&view, axes, Max, call.result()?, pool)?,
        Fold::Min => reduce_into(&view, axes, Min, call.result()?, pool)?,
        Fold::ArgMax if call.result.data_type == data_type::S64 => {
            reduce_into(&view, axes, ArgMax, call.result()?, pool)?;
        }
        Fold::ArgMin if call.result.data_type == data_type::S64 => {
            reduce_into(&view, axes, ArgMin, call.result()?, pool)?;
        }
        Fold::ArgMax => narrow(&reduce(&view, axes, ArgMax, pool)?.data, call.result()?)?,
        Fold::ArgMin => narrow(&reduce(&view, axes, ArgMin, pool)?.data, call.result()?)?,
        Fold::And | Fold::Or => {
            let fold = call.fold;
            return Err(Refusal::invalid(format!("numbers are not reduced by {fold:?}")));
        }
    }
    Ok(())
}

/// Writes places in 32 bits.
fn narrow(places: &[i64], result: &mut [i32]) -> Result<(), Refusal> {
    for (to, &place) in result.iter_mut().zip(places) {
        *to = i32::try_from(place)
            .map_err(|_| Refusal::invalid(format!("place {place} does not fit 32 bits")))?;
    }
    Ok(())
}

/// Reduces truth values as bytes: not every byte is a `bool`, and XLA's are 0 and 1.
fn truths(mut call: Call<'_>, pool: &dyn Pool) -> Result<(), Refusal> {
    let array = call.array::<u8>()?;
    let view = View::row_major(array, &call.array.dims)?;
    let (axes, fold) = (call.axes, call.fold);
    let result = call.result::<u8>()?;
    match fold {
        // `and` of no elements is true, `or` of none is false.
        Fold::And | Fold::Or if array.is_empty() => result.fill(u8::from(fold == Fold::And)),
        Fold::And => reduce_into(&view, axes, Min, result, pool)?,
        Fold::Or => reduce_into(&view, axes, Max, result, pool)?,
        other => {
            return Err(Refusal::invalid(format!("truth values are not reduced by {other:?}")));
        }
    }
    Ok(())
}
