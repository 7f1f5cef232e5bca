//! Computes whole norms, gradients and other programs by one call each. The pass `native-calls`
//! runs this before it makes calls of single reductions.
//!
//! ```text
//! y, s = norm(x, ...)  =  custom-call(x, ...; norm)
//! ```
//!
//! `norm` consists of instructions over one iteration space (`analysis::iteration`): reductions,
//! and the elementwise ops and broadcasts that use their results. The call computes it slab by slab
//! and so reads an array from memory once or twice, whatever the engine would fuse.

use rustc_hash::FxHashSet;
use tilewright_ir::ops::control::{ApiVersion, CustomCallAttrs, GetTupleElementAttrs};
use tilewright_ir::{
    CompId, EditError, ElementType, Extras, InstId, Layout, Module, NativeProgram, Op, Outline,
    Shape,
};

use super::{NativeCalls, is_stored, program_times};
use crate::analysis::iteration::{IterationRegion, Order};
use crate::analysis::reduce::is_plain;
use crate::driver::numbers::Class;
use crate::driver::{Context, Pass, Place};

/// Returns the computations that earlier calls of programs compute.
pub(super) fn computations(module: &Module) -> FxHashSet<CompId> {
    let all = module.computations().iter().flat_map(|&id| module.instructions(id));
    all.filter_map(|id| NativeProgram::of(module, id)).map(|program| program.computation).collect()
}

/// Makes calls of the programs of a computation. Returns the number of calls.
pub(super) fn call_programs(
    module: &mut Module,
    computation: CompId,
    cx: &mut Context<'_>,
) -> Result<usize, EditError> {
    let mut calls = 0;
    if !cx.float_mode.allow(Class::Bounded) {
        return Ok(calls);
    }
    let is_reduce = |id: &InstId| matches!(module.op(*id), Op::Reduce(_));
    let seeds: Vec<InstId> = module.instructions(computation).filter(is_reduce).collect();
    let mut order = Order::of(module, computation);
    let mut tried: FxHashSet<InstId> = FxHashSet::default();
    for seed in seeds {
        if !tried.insert(seed)
            || !module.is_live(seed)
            || !program_times::may_pay(module, seed, &cx.target.programs)
        {
            continue;
        }
        let Some(region) = IterationRegion::of(module, &order, seed) else { continue };
        tried.extend(&region.members);
        if fits(module, &region) && attempt(module, computation, &region, cx)? {
            calls += 1;
            order = Order::of(module, computation);
        }
    }
    Ok(calls)
}

/// Checks whether a call can compute a region: its arrays are row-major, its members are `f32` or
/// truth values without extra attributes, and none is a function that kernels compute element by
/// element. Its inputs and outputs are `f32`, and those that span the whole space lie in memory
/// anyway.
fn fits(module: &Module, region: &IterationRegion) -> bool {
    let is_of = |id: InstId, element_types: &[ElementType]| {
        let shape = module.array_shape(id).filter(|&shape| is_plain(shape));
        shape.is_some_and(|shape| element_types.contains(&shape.element_type))
    };
    let is_float = |id: InstId| is_of(id, &[ElementType::F32]);
    let is_small =
        |id: InstId| region.along.get(&id).is_some_and(|along| along.len() < region.space.len());
    let is_known = |&id: &InstId| {
        is_of(id, &[ElementType::F32, ElementType::Pred])
            && module.extras(id).is_none_or(Extras::is_empty)
            && !matches!(module.op(id), Op::Log(_) | Op::Tanh(_) | Op::Logistic(_) | Op::Power)
    };
    region.members.iter().all(is_known)
        && region.inputs.iter().all(|&id| is_float(id) && (is_small(id) || is_stored(module, id)))
        && region.outputs.iter().all(|&id| is_float(id) && (is_small(id) || is_written(module, id)))
}

/// Checks whether all users of an array read it from memory. Engines fuse elementwise users with
/// the ops that compute the array.
fn is_written(module: &Module, id: InstId) -> bool {
    module.users(id).into_iter().filter(|&user| module.is_live(user)).all(|user| {
        matches!(
            module.op(user),
            Op::Tuple
                | Op::While(_)
                | Op::Conditional(_)
                | Op::CustomCall(_)
                | Op::Dot(_)
                | Op::Convolution(_)
                | Op::Sort(_)
        ) || (matches!(module.op(user), Op::Reshape(_)) && is_written(module, user))
    })
}

/// Makes a call if it pays, and notes it. Returns whether it did.
fn attempt(
    module: &mut Module,
    computation: CompId,
    region: &IterationRegion,
    cx: &mut Context<'_>,
) -> Result<bool, EditError> {
    let Some(&seed) = region.outputs.first() else { return Ok(false) };
    let Some(times) = program_times::times_of(module, region, &cx.target.programs) else {
        return Ok(false);
    };
    let (place, count) = (Place::of(module, seed), region.members.len());
    let words = times.in_words();
    let text = format!("computed {count} instructions by one call of this CPU's kernels: {words}");
    if !cx.make(NativeCalls.name(), place, text) {
        return Ok(false);
    }
    call(module, computation, region)?;
    Ok(true)
}

/// Replaces a region by a call.
fn call(module: &mut Module, parent: CompId, region: &IterationRegion) -> Result<(), EditError> {
    let part =
        Outline { inputs: &region.inputs, members: &region.members, outputs: &region.outputs };
    let name = module.fresh_computation_name("native_program");
    let at = module.after_all(parent, &region.inputs);
    let called = module.outline(parent, name, &part)?;
    let row_major = |id: &InstId| {
        let shape = module.array_shape(*id).cloned();
        let shape = shape.map(|shape| {
            let layout = Layout::descending(shape.rank());
            Shape::from(shape.with_layout(Some(layout)))
        });
        shape.unwrap_or_else(|| module.shape(*id).clone())
    };
    // Without explicit layouts, XLA might choose others than the kernels read and write.
    let attrs = CustomCallAttrs {
        custom_call_target: NativeProgram::TARGET.into(),
        operand_layout_constraints: Some(region.inputs.iter().map(row_major).collect()),
        api_version: ApiVersion::TypedFfi,
        called_computations: std::iter::once(called).collect(),
        ..CustomCallAttrs::default()
    };
    let shapes: Vec<Shape> = region.outputs.iter().map(row_major).collect();
    let shape = match shapes.as_slice() {
        [one] => one.clone(),
        _ => Shape::Tuple(shapes.clone()),
    };
    let op = Op::CustomCall(Box::new(attrs));
    let name = module.fresh_name("native-program");
    let call = module.insert(at, op, shape, &region.inputs, name)?;
    if let &[output] = region.outputs.as_slice() {
        module.copy_metadata(output, call);
        module.replace_uses(output, call)?;
    } else {
        for ((index, &output), shape) in (0i64..).zip(&region.outputs).zip(shapes) {
            let op = Op::GetTupleElement(Box::new(GetTupleElementAttrs { index }));
            let name = module.fresh_name("part");
            let part = module.insert(at, op, shape, &[call], name)?;
            module.replace_uses(output, part)?;
        }
    }
    for &id in region.members.iter().rev() {
        if module.is_removable(id) {
            module.remove(id)?;
        }
    }
    Ok(())
}
