//! The values that XLA:CPU's library computes while it reduces them, and the rows for which it is
//! fast.
//!
//! Measured with jaxlib 0.12.0.1 on arrays of 8 and 128 MB, along all sets of dims: a copy is 1.0 to 3
//! times as fast as a stored array within these limits. Outside, it takes up to 2 times as long
//! (exponentials, roots), 3.7 times (a scalar broadcast over rows of 2 `f32`) or 17 times (over rows of
//! 2 to 4 `bf16`). Large arrays are stored in memory that the system hands out anew for each run,
//! which takes so long that even an exponential is faster.

use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use tilewright_ir::reducer::{Monoid, Reducer};
use tilewright_ir::{ArrayShape, ElementType, InstId, Module, Op, Opcode};

use super::source;
use crate::analysis::axes::axes_of;
use crate::analysis::reduce::reduced_arrays;
use crate::cost::shared::Shared;
use crate::cost::takes_minor;

/// The fewest elements of a row of any value.
const LEAST: i64 = 4;
/// The fewest if each row has the same elements of an operand.
const LEAST_SAME: i64 = 32;
/// The fewest if each element has the same scalar.
const LEAST_SCALAR: i64 = 64;
/// The fewest if a function such as an exponential follows, as in a log-sum-exp: of `abs` in rows of 24
/// it took 1.5 times as long, in rows of 12 2.4 times.
const LEAST_FUNCTION: i64 = 64;
/// The fewest if elements are computed in `bf16`; with a scalar for all, only large arrays gain.
const LEAST_NARROW: i64 = 64;
/// The most ops between a value and a reduction that are looked at.
const MOST_OPS: usize = 64;
/// The fewest elements of a result along rows, if a number for each result is subtracted from them, as in a
/// variance: 8 to 320 took 1.1 to 1.4 times as long, 336 and more 0.6 to 0.9 times.
const LEAST_CENTRED: i64 = 336;
/// The bytes that stay in a cache while the library computes and reduces them. For columns, all that lie
/// side by side count: while they stay there, a variance needs no stored array, and copies took 1.2 times as
/// long (`f32[400,16]` to `f32[128,256]`), but 0.3 to 1.1 times beyond. Copies of longer rows took 1.2 to 1.8
/// times as long: sums and sums of squares of `f32[64,65536]` 1.5 times, of `f32[128,32768]` 0.7 times.
const CACHED_BYTES: i64 = 1 << 17;
/// The most rows for which copies pay even if each row leaves the cache: 2 to 8 took 0.6 to 0.8 times as long,
/// 10 to 104 1.0 to 1.7 times.
const FEW_ROWS: i64 = 8;
/// The elements of a large array.
const LARGE: i64 = 1 << 22;
/// The elements of an operand that does not stay in the first caches while it is broadcast, and of an
/// array beyond all caches. Each copy reads the operand again, which takes as long as to load a stored
/// value: copies of sums with operands of 64 to 390 thousand elements took 1.0 to 1.6 times as long, but
/// 0.4 times in arrays of 50 MB.
const WIDE: i64 = 1 << 15;
const BEYOND_CACHES: i64 = 1 << 23;

/// Checks whether the library computes a reduction, which is a sum of one array of floats
/// (`IsReduceLikeOpSupportedByYnn` in `xla/backends/cpu/ynn_support.cc`). Extrema keep the value that others
/// read: XLA contracts and vectorises in each kernel as it likes, so that a maximum of a copy might equal no
/// element of the value.
pub(super) fn is_reduced(module: &Module, reduction: InstId) -> bool {
    let by = match module.op(reduction) {
        Op::Reduce(attrs) => attrs.to_apply,
        Op::ReduceWindow(attrs) => attrs.to_apply,
        _ => return false,
    };
    let monoid = Reducer::of(module, by).and_then(|reducer| reducer.monoid());
    monoid.is_some_and(|Monoid { opcode, element_type }| {
        opcode == Opcode::Add && is_known(element_type)
    })
}

/// Checks whether the library computes an instruction's value for a reduction. It does not know selects,
/// comparisons and `f16` (`GetYnnUnaryOpMap` and `IsElementwiseOpSupportedByYnn` in
/// `xla/backends/cpu/ynn_support.cc`), so that XLA:CPU stores each copy of them. Roots and similar
/// functions take longer than loading a stored value; exponentials take longer unless the value is
/// large. Squares of 8-bit integers that overflow had another value in a copy than in the stored array,
/// so nothing is copied in these types.
pub(super) fn is_computed(module: &Module, id: InstId) -> bool {
    let opcode = module.opcode(id);
    match opcode {
        Opcode::Broadcast
        | Opcode::Reshape
        | Opcode::Bitcast
        | Opcode::Transpose
        | Opcode::OptimizationBarrier => true,
        Opcode::Exp | Opcode::Log => is_large(module, id) && operates_on_known(module, id),
        Opcode::Abs
        | Opcode::Ceil
        | Opcode::Convert
        | Opcode::Floor
        | Opcode::Negate
        | Opcode::RoundNearestEven
        | Opcode::Sign
        | Opcode::Add
        | Opcode::Divide
        | Opcode::Maximum
        | Opcode::Minimum
        | Opcode::Multiply
        | Opcode::Subtract => operates_on_known(module, id),
        _ => false,
    }
}

fn operates_on_known(module: &Module, id: InstId) -> bool {
    let values = module.operands(id).iter().chain([&id]);
    values.filter_map(|&of| element_type(module, of)).all(is_known)
}

fn is_large(module: &Module, id: InstId) -> bool {
    size(module, id).is_some_and(|size| size >= LARGE)
}

fn size(module: &Module, id: InstId) -> Option<i64> {
    module.array_shape(id).and_then(ArrayShape::num_elements)
}

fn is_known(element_type: ElementType) -> bool {
    matches!(element_type, ElementType::F64 | ElementType::F32 | ElementType::BF16)
}

fn element_type(module: &Module, id: InstId) -> Option<ElementType> {
    module.array_shape(id).map(|array| array.element_type)
}

/// Checks whether an instruction computes in `bf16`.
pub(super) fn computes_narrow(module: &Module, id: InstId) -> bool {
    let opcode = module.opcode(id);
    let is_computed = opcode.is_elementwise() && opcode != Opcode::Convert;
    is_computed && element_type(module, id) == Some(ElementType::BF16)
}

/// Returns the bytes of so many elements of an array while the library computes with them, in 32 bits at
/// least.
fn computed_bytes(array: &ArrayShape, elements: i64) -> i64 {
    elements.saturating_mul(i64::from(array.element_type.bits().max(32)) / 8)
}

/// Checks whether a reader of a value computes with a number for each result of the reduction, such as the
/// mean that a variance subtracts, and each result has so few elements that copies do not pay.
pub(super) fn centres_few(module: &Module, shared: &Shared) -> bool {
    let Op::Reduce(reduce) = module.op(shared.reduction) else { return false };
    let Some(array) = module.array_shape(shared.value) else { return false };
    let Some(axes) = axes_of(array, &reduce.dimensions) else { return false };
    let has_one = |dim: i64| {
        let len = usize::try_from(dim).ok().and_then(|dim| array.dims().get(dim));
        len == Some(&1)
    };
    let is_spread = |&id: &InstId| match module.op(id) {
        Op::Broadcast(spread) => {
            let mut dims = spread.dimensions.iter();
            !spread.dimensions.is_empty()
                && dims.all(|&dim| has_one(dim) || !reduce.dimensions.contains(&dim))
        }
        _ => false,
    };
    let reduced = axes.iter().filter(|axis| axis.reduced);
    let count = reduced.fold(1i64, |count, axis| count.saturating_mul(axis.len));
    let are_few = match axes.last() {
        Some(axis) if !axis.reduced => {
            computed_bytes(array, count.saturating_mul(axis.len)) <= CACHED_BYTES
        }
        _ => count < LEAST_CENTRED,
    };
    let mut operands = shared.readers.iter().flat_map(|&reader| module.operands(reader));
    are_few && operands.any(is_spread)
}

/// Checks whether a reduction takes rows that leave the cache while the library computes and reduces them.
pub(super) fn leaves_cache(module: &Module, shared: &Shared) -> bool {
    let Op::Reduce(reduce) = module.op(shared.reduction) else { return false };
    let reduced = reduced_arrays(module, shared.reduction).first();
    let Some(array) = reduced.and_then(|&array| module.array_shape(array)) else { return false };
    let Some(axes) = axes_of(array, &reduce.dimensions) else { return false };
    let elements = axes.iter().fold(1i64, |all, axis| all.saturating_mul(axis.len));
    axes.last().is_some_and(|row| {
        row.reduced
            && computed_bytes(array, row.len) > CACHED_BYTES
            && elements / row.len > FEW_ROWS
            && elements < BEYOND_CACHES
    })
}

/// Checks whether a function such as an exponential is computed between a value and a reduction.
fn computes_function(module: &Module, shared: &Shared) -> bool {
    let mut next: SmallVec<[InstId; 4]> = module.operands(shared.reduction).into();
    let mut met: FxHashSet<InstId> = FxHashSet::default();
    while let Some(id) = next.pop().filter(|_| met.len() < MOST_OPS) {
        if id == shared.value || !module.opcode(id).is_elementwise() || !met.insert(id) {
            continue;
        }
        if module.opcode(id).is_transcendental() {
            return true;
        }
        if !shared.readers.contains(&id) {
            next.extend_from_slice(module.operands(id));
        }
    }
    false
}

/// Checks whether the rows of instructions are long enough to compute them so: what the library does for
/// each row takes as long as dozens of elements.
pub(super) fn has_long_rows(module: &Module, all: &[InstId], by: &[Shared]) -> bool {
    let has_function = by.iter().any(|one| computes_function(module, one));
    let (mut least, mut has_scalar) = (if has_function { LEAST_FUNCTION } else { LEAST }, false);
    for &id in all {
        let array = module.array_shape(id);
        match module.op(id) {
            Op::Broadcast(spread) if spread.dimensions.is_empty() => {
                (least, has_scalar) = (least.max(LEAST_SCALAR), true);
            }
            Op::Broadcast(spread)
                if array.is_some_and(|to| takes_minor(to, &spread.dimensions)) =>
            {
                least = least.max(LEAST_SAME);
            }
            _ if computes_narrow(module, id) => least = least.max(LEAST_NARROW),
            _ => {}
        }
    }
    let is_read_again = |&id: &InstId| match module.op(id) {
        Op::Broadcast(spread) => {
            let has_rows =
                module.array_shape(id).is_some_and(|to| takes_minor(to, &spread.dimensions));
            let operand = module.operands(id).first().and_then(|&of| size(module, of));
            has_rows
                && operand.is_none_or(|operand| operand >= WIDE)
                && size(module, id).is_none_or(|size| size < BEYOND_CACHES)
        }
        _ => false,
    };
    if all.iter().any(is_read_again) {
        return false;
    }
    let is_slow = |&id: &InstId| computes_narrow(module, id) && !is_large(module, id);
    if has_scalar && all.iter().any(is_slow) {
        return false;
    }
    let is_long = |id: InstId| {
        let minor = module.array_shape(id).and_then(|array| array.dims().last());
        minor.is_none_or(|&len| len >= least)
    };
    // XLA computes with the dims that were before a reshape if those are reduced as well.
    let has_long = |id: InstId| {
        let reshaped = module.operands(id).iter().map(|&of| source(module, of));
        is_long(id) && reshaped.filter(|&of| size(module, of) == size(module, id)).all(is_long)
    };
    all.iter().copied().all(has_long)
}
