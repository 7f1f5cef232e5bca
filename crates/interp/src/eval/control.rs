//! Calls, loops, branches, tuples and tokens.

use rustc_hash::FxHashSet;
use smallvec::{SmallVec, smallvec};
use tilewright_ir::ops::control::{
    CallAttrs, ConditionalAttrs, DomainAttrs, FusionAttrs, GetTupleElementAttrs, MapAttrs,
    WhileAttrs,
};
use tilewright_ir::{CompId, Data, Family, Module, Op};

use super::{Allocation, Cx, bits, elementwise, unsupported};
use crate::algebra::mark;
use crate::error::{Fault, Outcome};
use crate::lanes::append;
use crate::value::{Array, Value, with_data};

pub(super) fn call(cx: &mut Cx<'_, '_>, attrs: &CallAttrs) -> Outcome<Value> {
    let arguments = std::mem::take(&mut cx.operands);
    cx.call(attrs.to_apply, arguments)
}

pub(super) fn fusion(cx: &mut Cx<'_, '_>, attrs: &FusionAttrs) -> Outcome<Value> {
    let arguments = std::mem::take(&mut cx.operands);
    cx.call(attrs.calls, arguments)
}

pub(super) fn while_loop(cx: &mut Cx<'_, '_>, attrs: &WhileAttrs) -> Outcome<Value> {
    let mut state = cx.take(0)?;
    let mut unsure = false;
    let mut repeats = Repeats::default();
    loop {
        let go_on = cx.call(attrs.condition, smallvec![state.clone()])?;
        unsure |= go_on.array()?.is_unsure();
        if go_on.array()?.slice::<bool>()? != [true] {
            return if unsure { mark(state, &cx.evaluator.ledger) } else { Ok(state) };
        }
        cx.spend(0)?;
        if repeats.again(&state) {
            if depends_on_state(cx.module(), attrs) {
                return Err(Fault::Endless);
            }
            repeats.is_vain = true;
        }
        state = cx.call(attrs.body, smallvec![state])?;
    }
}

/// The turns after which a loop looks whether its state was there before.
const USUAL_TURNS: u64 = 1024;

/// The most bytes of a state that is looked at.
const MOST_STATE: usize = 1 << 14;

/// Finds a state that was there before, by Brent's method: one state is kept, the one of the last turn whose
/// number is a power of two.
#[derive(Default)]
struct Repeats {
    turn: u64,
    kept: Option<Vec<u8>>,
    /// Whether the loop depends on more than its state, so that a state may come back.
    is_vain: bool,
}

impl Repeats {
    /// Checks whether the state of the next turn is the one that is kept.
    fn again(&mut self, state: &Value) -> bool {
        self.turn = self.turn.saturating_add(1);
        if self.turn < USUAL_TURNS || self.is_vain {
            return false;
        }
        let mut bytes = Vec::new();
        if !append_bytes(state, &mut bytes) {
            return false;
        }
        let again = self.kept.as_ref() == Some(&bytes);
        if self.turn.is_power_of_two() {
            self.kept = Some(bytes);
        }
        again
    }
}

/// Adds the bytes of a value; `false` if they are too many.
fn append_bytes(value: &Value, bytes: &mut Vec<u8>) -> bool {
    match value {
        Value::Array(array) => {
            let size = array.data().len().saturating_mul(16).saturating_add(bytes.len());
            if size > MOST_STATE {
                return false;
            }
            bytes.extend(bits::to_bytes(array.data()));
            true
        }
        Value::Tuple(parts) => parts.iter().all(|part| append_bytes(part, bytes)),
        Value::Token => true,
    }
}

/// Checks whether the turns of a loop depend on its state alone: they draw nothing, and neither hear from the host
/// nor from other devices.
fn depends_on_state(module: &Module, attrs: &WhileAttrs) -> bool {
    let effectful = module.effectful_computations();
    let mut rest = vec![attrs.condition, attrs.body];
    let mut seen = FxHashSet::default();
    while let Some(computation) = rest.pop() {
        if !seen.insert(computation) {
            continue;
        }
        for id in module.instructions(computation) {
            let op = module.op(id);
            let is_outside = matches!(op, Op::Rng(_) | Op::RngGetAndUpdateState(_))
                || op.opcode().family() == Family::Collective;
            if is_outside || module.has_side_effect(id, &effectful) {
                return false;
            }
            op.for_each_computation(&mut |callee| rest.push(callee));
        }
    }
    true
}

/// An index out of range chooses the last branch; of a predicate, true is the
/// first.
pub(super) fn conditional(cx: &mut Cx<'_, '_>, attrs: &ConditionalAttrs) -> Outcome<Value> {
    let branches: SmallVec<[CompId; 2]> = match (attrs.true_computation, attrs.false_computation) {
        (Some(on_true), Some(on_false)) => smallvec![on_true, on_false],
        _ => attrs.branch_computations.clone(),
    };
    let last = branches.len().checked_sub(1).ok_or(Fault::Internal("it has no branches"))?;
    let branch = match cx.array(0)?.data() {
        Data::Pred(values) => usize::from(values.first() == Some(&false)),
        Data::S32(values) => {
            let index = values.first().and_then(|&index| usize::try_from(index).ok());
            index.map_or(last, |index| index.min(last))
        }
        _ => return Err(unsupported("it chooses by pred or s32")),
    };
    cx.evaluator.watch.takes(cx.id, branch);
    let argument = cx.take(branch + 1)?;
    cx.call(branches[branch], smallvec![argument])
}

/// The number of elements for which a mapped computation runs at once.
const MAP_LANES: usize = 1024;

pub(super) fn map(cx: &mut Cx<'_, '_>, attrs: &MapAttrs) -> Outcome<Value> {
    let allocation = cx.allocate_result()?;
    let operands = std::mem::take(&mut cx.operands);
    let arrays = operands.iter().map(Value::array).collect::<Outcome<Vec<_>>>()?;
    map_arrays(cx, attrs.to_apply, &arrays, allocation)
}

/// A computation of scalars, applied to the elements at each place.
pub(super) fn map_arrays(
    cx: &mut Cx<'_, '_>,
    computation: CompId,
    arrays: &[&Array],
    allocation: Allocation,
) -> Outcome<Value> {
    let mut callee = cx.callee(computation, MAP_LANES.min(allocation.len))?;
    let mut out = elementwise::empty(allocation.element_type, allocation.len);
    for first in (0..allocation.len).step_by(MAP_LANES) {
        let lanes = MAP_LANES.min(allocation.len - first);
        for (index, array) in arrays.iter().enumerate() {
            let lane = callee.parameter(index)?;
            with_data!(lane, values => values.clear());
            append(lane, array.data(), first, lanes)?;
        }
        callee.run(cx.evaluator, lanes)?;
        append(&mut out, callee.result(0)?, 0, lanes)?;
    }
    allocation.with(out)
}

pub(super) fn tuple(cx: &mut Cx<'_, '_>) -> Outcome<Value> {
    Ok(super::tuple(std::mem::take(&mut cx.operands)))
}

pub(super) fn get_tuple_element(
    cx: &mut Cx<'_, '_>,
    attrs: &GetTupleElementAttrs,
) -> Outcome<Value> {
    let Value::Tuple(elements) = cx.operand(0)? else {
        return Err(Fault::Internal("its operand is not a tuple"));
    };
    let element = usize::try_from(attrs.index).ok().and_then(|index| elements.get(index));
    element.cloned().ok_or(Fault::Internal("the tuple has no such element"))
}

pub(super) fn same_as_operand(cx: &mut Cx<'_, '_>) -> Outcome<Value> {
    cx.take(0)
}

pub(super) fn domain(cx: &mut Cx<'_, '_>, _attrs: &DomainAttrs) -> Outcome<Value> {
    cx.take(0)
}

pub(super) fn add_dependency(cx: &mut Cx<'_, '_>) -> Outcome<Value> {
    cx.take(0)
}

pub(super) fn after_all(_cx: &mut Cx<'_, '_>) -> Outcome<Value> {
    Ok(Value::Token)
}

pub(super) use super::asynchronous::{
    async_done, async_start, async_update, copy_done, copy_start,
};
pub(super) use super::custom::custom_call;
pub(super) use super::transfer::{infeed, outfeed, recv, recv_done, send, send_done};
