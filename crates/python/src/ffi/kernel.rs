//! The reduction that a call asks for.

use half::{bf16, f16};
use tilewright::ir::NativeFold;
use tilewright_native::{self as native, Extremum, Fold, Pool, View, place_into, reduce_into};

use super::Refusal;
use super::abi::data_type::{BF16, F16, F32, F64, PRED, S32, S64, U8};
use super::frame::{Call, Element, unknown_type};

/// Reduces the array of a call.
///
/// # Errors
/// If elements of the array's type have no such fold, buffers lie where they cannot, an extremum of no
/// elements is asked for, or a task panicked.
pub(crate) fn run(call: Call<'_>, pool: &dyn Pool) -> Result<(), Refusal> {
    match call.array.data_type {
        F32 => of_numbers::<f32>(call, pool),
        F64 => of_numbers::<f64>(call, pool),
        F16 => of_numbers::<f16>(call, pool),
        BF16 => of_numbers::<bf16>(call, pool),
        S32 => of_numbers::<i32>(call, pool),
        U8 => of_numbers::<u8>(call, pool),
        PRED => truths(call, pool),
        other => Err(unknown_type(other)),
    }
}

fn no_kernel(call: &Call<'_>) -> Refusal {
    let (name, of) = (call.fold.name(), call.array.data_type);
    Refusal::invalid(format!("elements of type {of} of XLA are not reduced by `{name}`"))
}

/// Reduces numbers.
fn of_numbers<T: native::Number + Element>(call: Call<'_>, pool: &dyn Pool) -> Result<(), Refusal> {
    match call.fold {
        NativeFold::Sum => values::<T>(call, Fold::Sum, pool),
        NativeFold::Product => values::<T>(call, Fold::Product, pool),
        NativeFold::Max => values::<T>(call, Fold::Max, pool),
        NativeFold::Min => values::<T>(call, Fold::Min, pool),
        NativeFold::ArgMax => places::<T>(call, Extremum::Max, pool),
        NativeFold::ArgMin => places::<T>(call, Extremum::Min, pool),
        NativeFold::And | NativeFold::Or => Err(no_kernel(&call)),
    }
}

/// Writes the reduced values.
fn values<T: native::Element + Element>(
    mut call: Call<'_>,
    fold: Fold,
    pool: &dyn Pool,
) -> Result<(), Refusal> {
    let view = View::row_major(call.array::<T>()?, &call.array.dims)?;
    Ok(reduce_into(&view, call.axes, fold, call.result()?, pool)?)
}

/// Writes places, in 32 or 64 bits.
fn places<T: native::Number + Element>(
    mut call: Call<'_>,
    of: Extremum,
    pool: &dyn Pool,
) -> Result<(), Refusal> {
    let view = View::row_major(call.array::<T>()?, &call.array.dims)?;
    if call.result.data_type == S64 {
        return Ok(place_into::<T, i64>(&view, call.axes, of, call.result()?, pool)?);
    }
    Ok(place_into::<T, i32>(&view, call.axes, of, call.result()?, pool)?)
}

/// Reduces truth values as bytes: not every byte is a `bool`, and XLA's are 0 and 1.
fn truths(mut call: Call<'_>, pool: &dyn Pool) -> Result<(), Refusal> {
    let fold = match call.fold {
        NativeFold::And => Fold::Min,
        NativeFold::Or => Fold::Max,
        _ => return Err(no_kernel(&call)),
    };
    if call.array::<u8>()?.is_empty() {
        // `and` of no elements is true, `or` of none is false.
        call.result::<u8>()?.fill(u8::from(fold == Fold::Min));
        return Ok(());
    }
    values::<u8>(call, fold, pool)
}
