//! Reductions and programs by kernels of this CPU, as [`NativeCall`] and [`NativeProgram`] say.

use tilewright_ir::reducer::Monoid;
use tilewright_ir::{Data, ElementType, NativeCall, NativeFold, NativeProgram, Opcode};

use super::check_static;
use crate::algebra::Numbers;
use crate::error::{Fault, Outcome};
use crate::eval::fold::{FoldShape, accumulator_bytes, begin_op, fold_array, reduced_levels};
use crate::eval::{Cx, elementwise, unsupported};
use crate::strides::{Level, Nest};
use crate::value::Value;

/// Returns the array reduced along the axes.
pub(super) fn evaluate(cx: &mut Cx<'_, '_>) -> Outcome<Value> {
    check_static(cx)?;
    let call = NativeCall::of(cx.module(), cx.id);
    let call = call.ok_or_else(|| unsupported("its configuration names no fold and axes"))?;
    if cx.evaluator.numbers() == Numbers::Field {
        return Err(unsupported("kernels of this CPU know no elements of a field"));
    }
    let (array, result) = (cx.array(0)?, cx.array_shape()?);
    if !call.fold.reduces(array.element_type()) {
        return Err(no_kernel(array.element_type(), call.fold));
    }
    let dims = array.dims();
    let is_axis = |&axis: &i64| usize::try_from(axis).is_ok_and(|axis| axis < dims.len());
    let is_kept = |axis: &usize| !call.axes.iter().any(|&one| usize::try_from(one) == Ok(*axis));
    let kept = (0..dims.len()).filter(is_kept).map(|axis| dims[axis]);
    if !call.axes.iter().all(is_axis) || !kept.eq(result.dims().iter().copied()) {
        return Err(unsupported(format!("its result {result} has not the dims that are kept")));
    }
    match call.fold.opcode() {
        Some(opcode) => values(cx, &call, opcode),
        None => places(cx, &call),
    }
}

/// Returns what the computation of a program does.
pub(super) fn program(cx: &mut Cx<'_, '_>) -> Outcome<Value> {
    check_static(cx)?;
    let program = NativeProgram::of(cx.module(), cx.id).ok_or_else(|| {
        unsupported("it calls no computation that takes its operands and has its result")
    })?;
    let arguments = std::mem::take(&mut cx.operands);
    cx.call(program.computation, arguments)
}

fn values(cx: &mut Cx<'_, '_>, call: &NativeCall, opcode: Opcode) -> Outcome<Value> {
    let result = cx.allocate_result()?;
    let (array, element_type) = (cx.array(0)?, result.element_type);
    cx.spend(array.len())?;
    let monoid = Monoid { opcode, element_type };
    // Sums begin with 0.0, so a sum of negative zeros is 0.0.
    let init = match (opcode, monoid.identity()) {
        (Opcode::Add, _) => Some(Data::zeros(element_type, 1)),
        (_, Some(identity)) => identity.as_array().map(|array| array.data().clone()),
        (_, None) => None,
    };
    let shape = FoldShape::new(array.dims(), &call.axes, result.len);
    let _totals = cx.scratch(accumulator_bytes(element_type), shape.totals())?;
    let fold = match (init, monoid.op()) {
        (Some(init), Some(op)) if array.element_type() == element_type => {
            begin_op(&op, element_type, &init, &shape)?
        }
        _ => None,
    };
    let mut fold = fold.ok_or_else(|| no_kernel(array.element_type(), call.fold))?;
    fold_array(&mut *fold, &shape, array.data())?;
    result.with(fold.finish())
}

fn no_kernel(element_type: ElementType, fold: NativeFold) -> Fault {
    unsupported(format!("no kernel reduces {element_type} by {}", fold.name()))
}

/// Returns the first place of each extremum along one axis; of a NaN, if there is one.
fn places(cx: &mut Cx<'_, '_>, call: &NativeCall) -> Outcome<Value> {
    let result = cx.allocate_result()?;
    let array = cx.array(0)?;
    let &[axis] = call.axes.as_slice() else {
        return Err(unsupported("places are told along one axis"));
    };
    let axis = usize::try_from(axis).map_err(|_| Fault::Internal("no such axis"))?;
    if array.len() == 0 && result.len > 0 {
        return Err(unsupported("nothing has no extremum"));
    }
    cx.spend(array.len())?;
    let _keys = cx.scratch(size_of::<f64>(), array.len())?;
    let levels = reduced_levels(array.dims(), &call.axes);
    let row = levels.get(axis).ok_or(Fault::Internal("no such axis"))?;
    let (size, step) = (row.size, row.strides[0].unsigned_abs());
    let kept = levels.iter().enumerate().filter(|&(at, _)| at != axis);
    let nest = Nest::new(kept.map(|(_, l)| Level { size: l.size, strides: [l.strides[0]] }));
    let mut starts = Vec::with_capacity(result.len);
    if result.len > 0 {
        let Level { size, strides: [stride] } = nest.inner();
        for [at] in nest.positions([0]) {
            starts.extend((0..size).map(|i| (at + stride * i.cast_signed()).cast_unsigned()));
        }
    }
    let greatest = call.fold == NativeFold::ArgMax;
    let found = match elementwise::keys(array, false) {
        Some(Data::S64(keys)) => {
            first_places(&keys, &starts, [size, step], |a, b| if greatest { a > b } else { a < b })
        }
        Some(Data::F64(keys)) => first_places(&keys, &starts, [size, step], |a, b| {
            !b.is_nan() && (a.is_nan() || if greatest { a > b } else { a < b })
        }),
        _ => return Err(no_kernel(array.element_type(), call.fold)),
    };
    match result.element_type {
        ElementType::S64 => result.of(found),
        ElementType::S32 => {
            let narrow = found.into_iter().map(i32::try_from).collect::<Result<Vec<_>, _>>();
            result.of(narrow.map_err(|_| unsupported("a place does not fit 32 bits"))?)
        }
        other => Err(unsupported(format!("places are no {other}"))),
    }
}

/// Returns for each row the first of the places that no other beats.
fn first_places<T: Copy>(
    keys: &[T],
    starts: &[usize],
    [size, step]: [usize; 2],
    beats: impl Fn(T, T) -> bool,
) -> Vec<i64> {
    let first = |&start: &usize| {
        let mut best = 0;
        for place in 1..size {
            if beats(keys[start + place * step], keys[start + best * step]) {
                best = place;
            }
        }
        i64::try_from(best).unwrap_or(i64::MAX)
    };
    starts.iter().map(first).collect()
}
