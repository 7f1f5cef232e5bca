//! **Reduce by kernels of this CPU.**
//!
//! ```text
//! reduce(x, init, D, f)  =  custom-call(x; f, D)          init the identity of f
//! narrow(reduce(wide(x), 0, D, add))  =  custom-call(x; add, D)     x in bf16 or f16, wide in f32
//! ```
//!
//! The kernels are those of the crate `native`, which the Python package hands to XLA as a custom
//! call ([`NativeCall`]). For some shapes they are faster than the code that the engine compiles,
//! for others slower, and a custom call cannot be fused. The pass therefore runs on request alone,
//! and makes a call only where even the worst measured kernel ([`tilewright_target::reductions`])
//! is faster than every other form of the reduction.
//!
//! `programs.rs` makes calls of whole norms and their gradients, of which reductions are parts.
//!
//! Preconditions of a reduction:
//! - It reduces one static row-major array of a type that kernels exist for, and the array lies in
//!   memory anyway, such as a parameter.
//! - It is a sum, product, extremum, `and` or `or` whose init changes nothing, or the first index
//!   of an extremum along one dim, where nothing uses the extremum itself.
//! - No extra attributes are attached, and the module is for one device.
//! - Under `--exact`, only integers and truth values are reduced.
//!
//! The second equation is the form in which `jnp.sum` adds floats of 16 bits. Nothing else may use
//! the converted array, which is not stored any more, nor the sum in `f32`. Both sides add in `f32`
//! and round once, so only the order of the sum changes.
//!
//! Floats: the order of a sum changes, and floats of 16 bits are added in `f32`, as in
//! `reduce-form`. The greatest of several zeros is any of them. A maximum is NaN if an element is,
//! and the index of the maximum is then that of the first NaN.

mod program_times;
mod programs;

use smallvec::SmallVec;
use tilewright_ir::ops::attr::Verbatim;
use tilewright_ir::ops::control::{ApiVersion, CustomCallAttrs};
use tilewright_ir::reducer::{ArgExtremum, Monoid, Reducer};
use tilewright_ir::{
    ArrayShape, EditError, ElementType, Extras, InstId, Layout, Literal, Module, NativeCall,
    NativeFold, Op, Opcode, Patch, Shape, Value, dims,
};
use tilewright_target::Target;
use tilewright_target::reductions::Source;

use crate::analysis::reduce::{MonoidReduce, is_plain};
use crate::cost::reductions::reduction;
use crate::driver::Place;
use crate::driver::numbers::{Class, FloatMode};
use crate::driver::{Context, Pass};

/// See the module.
pub struct NativeCalls;

impl Pass for NativeCalls {
    fn name(&self) -> &'static str {
        "native-calls"
    }

    fn summary(&self) -> &'static str {
        "reduce by kernels of this CPU, where they are faster than what is compiled (on request alone)"
    }

    fn class(&self) -> Class {
        Class::Bounded
    }

    fn is_cost_gated(&self) -> bool {
        true
    }

    fn run(&self, module: &mut Module, cx: &mut Context<'_>) -> Result<usize, EditError> {
        let mut changes = 0;
        if module.header.num_partitions.is_some_and(|count| count > 1) {
            return Ok(changes);
        }
        let programs = programs::computations(module);
        let others = module.computations().iter().filter(|id| !programs.contains(id));
        for computation in others.copied().collect::<Vec<_>>() {
            changes += programs::call_programs(module, computation, cx)?;
            let reduces: Vec<InstId> = module
                .instructions(computation)
                .filter(|&id| matches!(module.op(id), Op::Reduce(_)) && module.is_live(id))
                .collect();
            for id in reduces {
                let Some(found) = KernelReduce::at(module, id, cx.float_mode) else { continue };
                changes += usize::from(found.attempt(module, cx)?);
            }
        }
        Ok(changes)
    }
}

/// The modelled times of a reduction or a program, in microseconds.
#[derive(Clone, Copy, Debug)]
struct Times {
    /// The time of the code that the engine compiles.
    compiled: f64,
    /// The time of the call.
    native: f64,
}

impl Times {
    /// Returns both times in the words of a note.
    fn in_words(self) -> String {
        format!("{:.0} us instead of {:.0} as compiled", self.native, self.compiled)
    }
}

/// A reduce that a kernel can compute.
struct KernelReduce {
    id: InstId,
    reducer: Reducer,
    array: InstId,
    call: NativeCall,
    /// The values that the call replaces: the reduce itself, its parts with the indices, or the
    /// rounded sums.
    results: SmallVec<[InstId; 1]>,
    shape: ArrayShape,
}

impl KernelReduce {
    /// Returns the reduce `id`, if a kernel can compute it.
    fn at(module: &Module, id: InstId, float_mode: FloatMode) -> Option<Self> {
        let reduce = MonoidReduce::of(module, id, float_mode)?;
        let axes = dims(reduce.dims(module));
        let operands = module.operands(id);
        let mut array = *operands.first()?;
        let (fold, mut results) = match &reduce.reducer {
            Reducer::Each(each) => match (each.as_slice(), operands) {
                ([monoid], &[_, init]) => {
                    (fold_of(*monoid, module.constant(init)?)?, SmallVec::from_elem(id, 1))
                }
                _ => return None,
            },
            Reducer::ArgExtremum(extremum) => {
                (arg_fold(module, id, extremum, &axes)?, parts_with_indices(module, id)?)
            }
        };
        if fold == NativeFold::Sum
            && let Some(sum) = narrow_sum(module, id, array)
        {
            (array, results) = sum;
        }
        if !is_stored(module, array) {
            return None;
        }
        let shape = module.array_shape(*results.first()?)?.clone();
        let call = NativeCall { fold, axes };
        Some(Self { id, reducer: reduce.reducer.clone(), array, call, results, shape })
    }

    /// Makes the call if it pays. Returns whether it did.
    fn attempt(&self, module: &mut Module, cx: &mut Context<'_>) -> Result<bool, EditError> {
        let Some(array) = module.array_shape(self.array) else { return Ok(false) };
        let Some(times) = self.times(array, cx.target) else { return Ok(false) };
        let (place, shape) = (Place::of(module, self.id), array.without_layout());
        let text = format!("reduced {shape} by a kernel of this CPU: {}", times.in_words());
        if !cx.make(NativeCalls.name(), place, text) {
            return Ok(false);
        }
        self.patch(array).apply(module)?;
        Ok(true)
    }

    /// Returns the times of the call and of the compiled code. `None` unless the call is faster,
    /// even with the cost of storing its results: a call is not fused with the ops that use them.
    #[expect(clippy::cast_precision_loss, reason = "times are estimates")]
    fn times(&self, array: &ArrayShape, target: &Target) -> Option<Times> {
        let found = reduction(&self.reducer, array, &self.call.axes, Source::Stored)?;
        let [worst, compiled] = target.reductions.kernel(&found)?;
        let result_bytes = self.shape.num_bytes()?;
        let bytes_per_ns = target.hbm_bytes_per_cycle * target.cycles_per_ns;
        let stored = 2.0 * result_bytes as f64 / bytes_per_ns;
        let elements = found.elements as f64;
        let (native, compiled) =
            (worst * elements + stored + target.reductions.kernel_call_ns, compiled * elements);
        (native < compiled).then_some(Times { compiled: compiled / 1e3, native: native / 1e3 })
    }

    fn patch(&self, array: &ArrayShape) -> Patch {
        // Without explicit layouts, XLA might choose others than the kernels read and write.
        let row_major = |shape: &ArrayShape| {
            Shape::from(shape.clone().with_layout(Some(Layout::descending(shape.rank()))))
        };
        let op = Op::CustomCall(Box::new(CustomCallAttrs {
            custom_call_target: NativeCall::TARGET.into(),
            operand_layout_constraints: Some(vec![row_major(array)]),
            api_version: ApiVersion::TypedFfi,
            ..CustomCallAttrs::default()
        }));
        let config = Verbatim(self.call.to_string().into());
        let mut patch = Patch::new();
        let call = patch.add(self.id, op, row_major(&self.shape), [Value::Old(self.array)]);
        let mut extras = Extras::default();
        extras.backend_config = Some(config);
        patch.set_extras(call, extras);
        for &result in &self.results {
            patch.replace(result, call);
        }
        patch
    }
}

/// Returns the fold of a monoid, if the init changes nothing. The kernel begins a sum with `0.0`; a
/// sum that begins with `-0.0` may itself be `-0.0`, so it has no fold.
fn fold_of(monoid: Monoid, init: &Literal) -> Option<NativeFold> {
    let fold = NativeFold::ALL.iter().find(|(fold, _)| fold.opcode() == Some(monoid.opcode))?.0;
    if !fold.reduces(monoid.element_type) {
        return None;
    }
    let is_negative_zero = monoid.opcode == Opcode::Add
        && monoid.element_type.is_float()
        && monoid.identity().as_ref() == Some(init);
    (monoid.is_neutral(init) && !is_negative_zero).then_some(fold)
}

/// Returns the kernel that computes the second result of a reduce of pairs: the first indices of
/// extrema along one dim. The first result has the elements at these indices.
pub fn arg_kernel(module: &Module, id: InstId) -> Option<NativeCall> {
    let reduce = MonoidReduce::of(module, id, FloatMode::Guarded)?;
    let Reducer::ArgExtremum(extremum) = &reduce.reducer else { return None };
    let axes = dims(reduce.dims(module));
    let fold = arg_fold(module, id, extremum, &axes)?;
    Some(NativeCall { fold, axes })
}

/// Returns the fold of a reduce of pairs, each a value and its index along the one reduced dim,
/// that finds the first index of the extremum.
fn arg_fold(
    module: &Module,
    id: InstId,
    extremum: &ArgExtremum,
    axes: &[i64],
) -> Option<NativeFold> {
    let [value, index] = extremum.element_types;
    let &[_, indices, first_value, first_index] = module.operands(id) else { return None };
    let &[axis] = axes else { return None };
    let is_index = counts_along(module, indices, axis);
    let is_known = NativeFold::ArgMax.reduces(value)
        && matches!(index, ElementType::S32 | ElementType::S64)
        && extremum.first_index
        && (extremum.nan_wins || !value.is_float());
    let (opcode, fold) = if extremum.greatest {
        (Opcode::Maximum, NativeFold::ArgMax)
    } else {
        (Opcode::Minimum, NativeFold::ArgMin)
    };
    let least = Monoid { opcode, element_type: value };
    // An element that equals the initial value has an index of at least 0, the initial index.
    let begins_with_nothing = module.constant(first_value)? == &least.identity()?
        && module.constant(first_index)?.as_array()?.scalar_as_f64() == Some(0.0);
    (is_index && is_known && begins_with_nothing).then_some(fold)
}

/// Checks whether each element of an array is its own index along an axis. The array is an iota, as
/// JAX writes it, or an iota of one dim that is broadcast along the other axes, as XLA writes it
/// when it reads the program.
fn counts_along(module: &Module, id: InstId, axis: i64) -> bool {
    match (module.op(id), module.operands(id)) {
        (Op::Iota(attrs), _) => attrs.dimension == axis,
        (Op::Broadcast(attrs), &[row]) => {
            let is_row = module.array_shape(row).is_some_and(|shape| shape.rank() == 1);
            let is_along = attrs.dimensions.as_slice() == [axis];
            is_row && is_along && matches!(module.op(row), Op::Iota(_))
        }
        _ => false,
    }
}

/// Returns the `get-tuple-element`s of a reduce of pairs that have the indices, if nothing uses the
/// values.
fn parts_with_indices(module: &Module, id: InstId) -> Option<SmallVec<[InstId; 1]>> {
    let mut parts = SmallVec::new();
    if module.is_root(id) {
        return None;
    }
    for user in module.users(id) {
        match module.op(user) {
            Op::GetTupleElement(attrs) if attrs.index == 1 => parts.push(user),
            _ if module.is_live(user) => return None,
            _ => {}
        }
    }
    let has_extras = parts.iter().any(|&part| module.extras(part).is_some());
    (!has_extras && parts.iter().any(|&part| module.is_live(part))).then_some(parts)
}

/// Returns the array of 16-bit floats that a reduce adds in `f32`, and the rounded sums. `None` if
/// anything else uses the converted array or the sum in `f32`.
fn narrow_sum(
    module: &Module,
    id: InstId,
    wide: InstId,
) -> Option<(InstId, SmallVec<[InstId; 1]>)> {
    let (Op::Convert, &[narrow]) = (module.op(wide), module.operands(wide)) else { return None };
    let array = module.array_shape(narrow).filter(|&shape| is_plain(shape))?;
    let element_type = array.element_type;
    let is_known = matches!(element_type, ElementType::BF16 | ElementType::F16)
        && module.array_shape(wide)?.element_type == ElementType::F32;
    let live_users = |id| module.users(id).into_iter().filter(|&user| module.is_live(user));
    let rounds = |&user: &InstId| {
        let shape = module.array_shape(user);
        matches!(module.op(user), Op::Convert)
            && module.extras(user).is_none()
            && shape.is_some_and(|shape| shape.element_type == element_type && is_plain(shape))
    };
    let is_alone = live_users(wide).all(|user| user == id)
        && live_users(id).all(|user| rounds(&user))
        && ![id, wide].into_iter().any(|id| module.is_root(id));
    let sums: SmallVec<[InstId; 1]> = live_users(id).collect();
    (is_known && is_alone && !sums.is_empty()).then_some((narrow, sums))
}

/// Checks whether an array lies in memory whatever reads it: it is passed to its computation, or an
/// op that is fused with no user makes it. An elementwise result would be fused with the reduce.
fn is_stored(module: &Module, id: InstId) -> bool {
    let mut id = id;
    // Row-major reshapes move nothing.
    while let (Op::Reshape(_), &[operand]) = (module.op(id), module.operands(id)) {
        if !module.array_shape(operand).is_some_and(is_plain) {
            return false;
        }
        id = operand;
    }
    if let (Op::GetTupleElement(_), &[tuple]) = (module.op(id), module.operands(id)) {
        id = tuple;
    }
    matches!(
        module.op(id),
        Op::Parameter(_)
            | Op::While(_)
            | Op::Conditional(_)
            | Op::CustomCall(_)
            | Op::Dot(_)
            | Op::Convolution(_)
            | Op::Sort(_)
            | Op::Fft(_)
            | Op::Cholesky(_)
            | Op::TriangularSolve(_)
    )
}
