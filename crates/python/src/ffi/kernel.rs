//! The reduction that a call asks for.
//!
//! There are the kernels that the pass `native-calls` has prices for: each takes its time to compile.

use half::{bf16, f16};
use tilewright::ir::NativeFold::{self, And, ArgMax, ArgMin, Max, Min, Or, Sum};
use tilewright_native::{self as native, Pool, View, reduce_into};

use super::Refusal;
use super::abi::data_type::{BF16, F16, F32, F64, PRED, S32, S64, U8};
use super::frame::{Call, Element, unknown_type};

/// Reduces the array of a call.
///
/// # Errors
/// If there is no kernel for the fold of the array's elements, buffers lie where they cannot, an
/// extremum of no elements is asked for, or a task panicked.
pub(crate) fn run(call: Call<'_>, pool: &dyn Pool) -> Result<(), Refusal> {
    match (call.array.data_type, call.fold) {
        (F32, Sum) => values::<f32>(call, native::Sum, pool),
        (F32, Max) => values::<f32>(call, native::Max, pool),
        (F32, Min) => values::<f32>(call, native::Min, pool),
        (F32, ArgMax) => places::<f32>(call, native::ArgMax, native::ArgMax32, pool),
        (F32, ArgMin) => places::<f32>(call, native::ArgMin, native::ArgMin32, pool),
        (F64, Sum) => values::<f64>(call, native::Sum, pool),
        (F16, Sum) => values::<f16>(call, native::Sum, pool),
        (BF16, Sum) => values::<bf16>(call, native::Sum, pool),
        (BF16, Max) => values::<bf16>(call, native::Max, pool),
        (BF16, Min) => values::<bf16>(call, native::Min, pool),
        (S32, Sum) => values::<i32>(call, native::Sum, pool),
        (S32, Max) => values::<i32>(call, native::Max, pool),
        (S32, Min) => values::<i32>(call, native::Min, pool),
        (S32, ArgMax) => places::<i32>(call, native::ArgMax, native::ArgMax32, pool),
        (S32, ArgMin) => places::<i32>(call, native::ArgMin, native::ArgMin32, pool),
        (U8, Max) => values::<u8>(call, native::Max, pool),
        (U8, Min) => values::<u8>(call, native::Min, pool),
        (PRED, And | Or) => truths(call, pool),
        (PRED | F32 | F64 | F16 | BF16 | S32 | U8, fold) => {
            Err(no_kernel(call.array.data_type, fold))
        }
        (other, _) => Err(unknown_type(other)),
    }
}

fn no_kernel(data_type: i32, fold: NativeFold) -> Refusal {
    let name = fold.name();
    Refusal::invalid(format!("elements of type {data_type} of XLA are not reduced by `{name}`"))
}

/// Writes the reduced values.
fn values<T: native::Element + Element>(
    mut call: Call<'_>,
    fold: impl native::Fold<T, Output = T>,
    pool: &dyn Pool,
) -> Result<(), Refusal> {
    let view = View::row_major(call.array::<T>()?, &call.array.dims)?;
    Ok(reduce_into(&view, call.axes, fold, call.result()?, pool)?)
}

/// Writes places, in 32 or 64 bits.
fn places<T: native::Element + Element>(
    mut call: Call<'_>,
    fold: impl native::Fold<T, Output = i64>,
    fold_32: impl native::Fold<T, Output = i32>,
    pool: &dyn Pool,
) -> Result<(), Refusal> {
    let view = View::row_major(call.array::<T>()?, &call.array.dims)?;
    if call.result.data_type == S64 {
        return Ok(reduce_into(&view, call.axes, fold, call.result()?, pool)?);
    }
    Ok(reduce_into(&view, call.axes, fold_32, call.result()?, pool)?)
}

/// Reduces truth values as bytes: not every byte is a `bool`, and XLA's are 0 and 1.
fn truths(mut call: Call<'_>, pool: &dyn Pool) -> Result<(), Refusal> {
    let is_and = call.fold == And;
    if call.array::<u8>()?.is_empty() {
        // `and` of no elements is true, `or` of none is false.
        call.result::<u8>()?.fill(u8::from(is_and));
        Ok(())
    } else if is_and {
        values::<u8>(call, native::Min, pool)
    } else {
        values::<u8>(call, native::Max, pool)
    }
}
