//! Calls, loops, branches, tuples, tokens, and transfers in and out of a module.

mod asynchronous;

use smallvec::SmallVec;
use smol_str::SmolStr;

use super::attr::{attributes, words};
use super::contract::Precision;
use super::dims::{ConvDims, WindowDim};
use crate::entity::CompId;
use crate::infer::{ShapeError, ShapeQuery, check_dims, scalar};
use crate::types::element::ElementType;
use crate::types::literal::Literal;
use crate::types::shape::{Dims, Shape};
use crate::types::sharding::Sharding;

pub(super) use asynchronous::{async_done, async_start, async_update};

attributes! {
    /// Attributes of `call`.
    pub struct CallAttrs {
        /// The computation called.
        to_apply: CompId = "to_apply",
        /// Whether it represents a named op of a higher dialect.
        is_composite: bool = "is_composite" or false,
    }

    /// Attributes of `while`.
    pub struct WhileAttrs {
        /// Computes whether the loop continues.
        condition: CompId = "condition",
        /// Computes one iteration.
        body: CompId = "body",
    }

    /// Attributes of `conditional`, in its two-way or its indexed form.
    pub struct ConditionalAttrs: Default {
        /// Runs if the predicate is true.
        true_computation: Option<CompId> = "true_computation",
        /// Runs if the predicate is false.
        false_computation: Option<CompId> = "false_computation",
        /// Selected by index; the last one if the index is out of range.
        branch_computations: SmallVec<[CompId; 2]> = "branch_computations",
    }

    /// Attributes of `fusion`.
    pub struct FusionAttrs {
        /// The way the fused computation is emitted.
        kind: FusionKind = "kind",
        /// Results that share a buffer with an operand.
        output_to_operand_aliasing: Vec<OutputAlias> = "output_to_operand_aliasing" or Vec::new(),
        /// The fused computation.
        calls: CompId = "calls",
    }

    /// Attributes of `map`.
    pub struct MapAttrs {
        /// All dims of the operands, in order.
        dimensions: Dims = "dimensions" or Dims::new(),
        /// Computes one element.
        to_apply: CompId = "to_apply",
    }

    /// Attributes of `get-tuple-element`.
    pub struct GetTupleElementAttrs: Default {
        /// The index of the element.
        index: i64 = "index",
    }

    /// Attributes of `custom-call`.
    pub struct CustomCallAttrs: Default {
        /// A window, for calls that represent a windowed op.
        window: Option<SmallVec<[WindowDim; 2]>> = "window",
        /// Dim labels, for calls that represent a convolution.
        dim_labels: Option<ConvDims> = "dim_labels",
        /// Feature groups, for calls that represent a convolution.
        feature_group_count: i64 = "feature_group_count" or 1,
        /// Batch groups, for calls that represent a convolution.
        batch_group_count: i64 = "batch_group_count" or 1,
        /// The requested precision of each operand.
        operand_precision: Vec<Precision> = "operand_precision",
        /// The padding of a convolution.
        padding_type: PaddingType = "padding_type" or PaddingType::Invalid,
        /// The name of the called function.
        custom_call_target: SmolStr = "custom_call_target",
        /// The layouts in which operands are passed.
        operand_layout_constraints: Option<Vec<Shape>> = "operand_layout_constraints",
        /// Whether it has side effects.
        custom_call_has_side_effect: bool = "custom_call_has_side_effect" or false,
        /// A constant argument.
        literal: Option<Box<Literal>> = "literal",
        /// Results that share a buffer with an operand.
        output_to_operand_aliasing: Vec<OutputAlias> = "output_to_operand_aliasing" or Vec::new(),
        /// Its position in the schedule.
        schedule: CustomCallSchedule = "schedule" or CustomCallSchedule::None,
        /// The calling convention.
        api_version: ApiVersion = "api_version" or ApiVersion::Original,
        /// The computation it calls.
        to_apply: Option<CompId> = "to_apply",
        /// The computations it calls.
        called_computations: SmallVec<[CompId; 2]> = "called_computations",
    }

    /// Attributes of `async-start`, `async-update` and `async-done`.
    pub struct AsyncAttrs: Default {
        /// The thread that runs the computation.
        async_execution_thread: Option<SmolStr> = "async_execution_thread",
        /// Parts of a start's result that share a buffer with a parameter of the computation.
        output_to_operand_aliasing: Vec<OutputAlias> = "output_to_operand_aliasing" or Vec::new(),
        /// The computation wrapped.
        calls: Option<CompId> = "calls",
    }

    /// Attributes of `copy-start`.
    pub struct CopyStartAttrs: Default {
        /// The index of the prefetch across programs.
        cross_program_prefetch_index: Option<i64> = "cross_program_prefetch_index",
    }

    /// Attributes of `domain`.
    pub struct DomainAttrs {
        /// The metadata on its two sides.
        domain: Box<DomainMetadata> = "domain",
    }

    /// Attributes of `infeed`.
    pub struct InfeedAttrs: Default {
        /// Configuration string of the infeed.
        infeed_config: Option<SmolStr> = "infeed_config",
    }

    /// Attributes of `outfeed`.
    pub struct OutfeedAttrs: Default {
        /// The shape, with layout, of the data sent.
        outfeed_shape: Option<Shape> = "outfeed_shape",
        /// Configuration string of the outfeed.
        outfeed_config: Option<SmolStr> = "outfeed_config",
    }

    /// Attributes of `send`, `recv` and their `-done`.
    pub struct TransferAttrs: Default {
        /// The channel that pairs sender and receiver.
        channel_id: Option<i64> = "channel_id",
        /// Whether the other side is the host.
        is_host_transfer: bool = "is_host_transfer" or false,
    }
}

words! {
    /// The way a fused computation is emitted.
    pub enum FusionKind {
        /// As one loop over the result.
        Loop = "kLoop",
        /// With a reduction of its input.
        Input = "kInput",
        /// With a library op and its epilogue.
        Output = "kOutput",
        /// As specified by its backend config.
        Custom = "kCustom",
    }

    /// The padding of a custom call that represents a convolution.
    pub enum PaddingType {
        /// Not specified.
        Invalid = "PADDING_INVALID",
        /// No padding.
        Valid = "PADDING_VALID",
        /// Padding such that the result has the size of the input.
        Same = "PADDING_SAME",
    }

    /// The position of a custom call in the schedule.
    pub enum CustomCallSchedule {
        /// Anywhere.
        None = "SCHEDULE_NONE",
        /// As late as its users allow.
        Latest = "SCHEDULE_LATEST",
        /// As early as its operands allow.
        Earliest = "SCHEDULE_EARLIEST",
    }

    /// The calling convention of a custom call.
    pub enum ApiVersion {
        /// Not specified.
        Unspecified = "API_VERSION_UNSPECIFIED",
        /// `void f(void* out, const void** in)`
        Original = "API_VERSION_ORIGINAL",
        /// With a status on failure.
        StatusReturning = "API_VERSION_STATUS_RETURNING",
        /// With an opaque string and a status on all platforms.
        StatusReturningUnified = "API_VERSION_STATUS_RETURNING_UNIFIED",
        /// XLA's foreign function interface.
        TypedFfi = "API_VERSION_TYPED_FFI",
    }
}

/// A result, or a part of it, that shares the buffer of an operand: `{0}: (1, {})`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OutputAlias {
    /// The index of the part in the result; empty for the whole result.
    pub output: Dims,
    /// The number of the operand.
    pub operand: i64,
    /// The index of the part in the operand.
    pub operand_part: Dims,
}

/// The metadata of a `domain` on its two sides.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DomainMetadata {
    /// The kind of metadata: `sharding`.
    pub kind: SmolStr,
    /// The metadata on the side of the users.
    pub entry: Sharding,
    /// The metadata on the side of the operand.
    pub exit: Sharding,
}

pub(super) fn call(q: &ShapeQuery<'_>, attrs: &CallAttrs) -> Result<Shape, ShapeError> {
    Ok(q.check_callee(attrs.to_apply, q.operands)?.clone())
}

/// More operands than parameters are allowed, because XLA's passes leave such fusions.
pub(super) fn fusion(q: &ShapeQuery<'_>, attrs: &FusionAttrs) -> Result<Shape, ShapeError> {
    let taken = q.module.computation(attrs.calls).parameters().len();
    let given = q.operands.get(..taken).unwrap_or(q.operands);
    Ok(q.check_callee(attrs.calls, given)?.clone())
}

/// The state has the same shape in operand, condition and body.
pub(super) fn while_loop(q: &ShapeQuery<'_>, attrs: &WhileAttrs) -> Result<Shape, ShapeError> {
    let state = q.operand(0)?;
    let condition = q.check_callee(attrs.condition, &[state])?;
    if !condition.compatible(&scalar(ElementType::Pred)) {
        return Err(ShapeError::callee(format!(
            "the condition of `while` yields pred[], not {condition}"
        )));
    }
    let body = q.check_callee(attrs.body, &[state])?;
    if !body.compatible(state) {
        return Err(ShapeError::callee(format!(
            "the body of `while` turns {state} into {body}; it must keep the shape"
        )));
    }
    Ok(state.clone())
}

/// The operands after the predicate or index are one argument for each branch.
pub(super) fn conditional(
    q: &ShapeQuery<'_>,
    attrs: &ConditionalAttrs,
) -> Result<Shape, ShapeError> {
    let selector = q.operand(0)?;
    let two_way = [attrs.true_computation, attrs.false_computation];
    let (branches, expected): (SmallVec<[CompId; 2]>, ElementType) = match two_way {
        [Some(a), Some(b)] if attrs.branch_computations.is_empty() => {
            (SmallVec::from_slice(&[a, b]), ElementType::Pred)
        }
        [None, None] => (attrs.branch_computations.clone(), ElementType::S32),
        _ => {
            return Err(ShapeError::attribute(
                "`conditional` needs either true_computation and false_computation, or branch_computations",
            ));
        }
    };
    // A predicate with two branch_computations is the two-way form again.
    let is_pred = selector.compatible(&scalar(ElementType::Pred)) && branches.len() == 2;
    if !is_pred && !selector.compatible(&scalar(expected)) {
        return Err(ShapeError::operand(format!(
            "`conditional` chooses by {expected}[], not {selector}"
        )));
    }
    if branches.is_empty() || q.operands.len() != branches.len() + 1 {
        return Err(ShapeError::operand(format!(
            "`conditional` with {} branches takes as many arguments after its index",
            branches.len()
        )));
    }
    let mut result: Option<&Shape> = None;
    for (i, &branch) in branches.iter().enumerate() {
        let shape = q.check_callee(branch, &[q.operand(i + 1)?])?;
        if result.is_some_and(|first| !first.compatible(shape)) {
            return Err(ShapeError::callee(format!(
                "branch {i} of `conditional` yields {shape}, unlike the first"
            )));
        }
        result = result.or(Some(shape));
    }
    result.cloned().ok_or_else(|| ShapeError::attribute("`conditional` has no branches"))
}

/// The computation takes and yields scalars.
pub(super) fn map(q: &ShapeQuery<'_>, attrs: &MapAttrs) -> Result<Shape, ShapeError> {
    let first = q.array(0)?;
    check_dims("`map` dimensions", &attrs.dimensions, first.rank())?;
    let mut elements = Vec::with_capacity(q.operands.len());
    for index in 0..q.operands.len() {
        let array = q.array(index)?;
        if !array.dims_agree(first) {
            return Err(ShapeError::operand(format!(
                "the operands of `map` differ in dims: {first} and {array}"
            )));
        }
        elements.push(scalar(array.element_type));
    }
    let elements: SmallVec<[&Shape; 4]> = elements.iter().collect();
    match q.check_callee(attrs.to_apply, &elements)? {
        Shape::Array(result) if result.rank() == 0 => {
            Ok(first.clone().with_layout(None).with_element_type(result.element_type).into())
        }
        other => Err(ShapeError::callee(format!(
            "the computation of `map` yields a scalar, not {other}"
        ))),
    }
}

pub(super) fn tuple(q: &ShapeQuery<'_>) -> Result<Shape, ShapeError> {
    Ok(Shape::Tuple(q.operands.iter().map(|&s| s.clone()).collect()))
}

pub(super) fn get_tuple_element(
    q: &ShapeQuery<'_>,
    attrs: &GetTupleElementAttrs,
) -> Result<Shape, ShapeError> {
    let operand = q.operand(0)?;
    let Some(elements) = operand.as_tuple() else {
        return Err(ShapeError::operand(format!(
            "`get-tuple-element` takes a tuple, not {operand}"
        )));
    };
    let element = usize::try_from(attrs.index).ok().and_then(|i| elements.get(i));
    element.cloned().ok_or_else(|| {
        ShapeError::attribute(format!(
            "`get-tuple-element` index {} does not fit a tuple of {}",
            attrs.index,
            elements.len()
        ))
    })
}

/// The rule is known only for XLA's own calls; other results are taken as declared.
pub(super) fn custom_call(
    q: &ShapeQuery<'_>,
    attrs: &CustomCallAttrs,
) -> Result<Shape, ShapeError> {
    let declared = q.declared()?;
    let target = attrs.custom_call_target.as_str();
    if target == "GetRngSeed" && !q.operands.is_empty() {
        return Err(ShapeError::operand("`GetRngSeed` takes nothing"));
    }
    if target == "GetRngSeed" && !declared.compatible(&scalar(ElementType::U64)) {
        return Err(ShapeError::result(format!("`GetRngSeed` yields u64[], not {declared}")));
    }
    match &attrs.operand_layout_constraints {
        Some(shapes) if !matches!(target, "LayoutConstraint" | "control_dep") => {
            check_constraints(q, shapes)?;
        }
        _ => {}
    }
    Ok(declared.clone())
}

impl CustomCallAttrs {
    /// The target of a call that states how its operand lies over devices, and returns it.
    pub const SHARDING: &str = "Sharding";
    /// The targets of Shardy's calls between whole arrays and the parts that devices have.
    pub const TO_SHARDS: &str = "xla.sdy.GlobalToLocalShape";
    /// See [`Self::TO_SHARDS`].
    pub const TO_WHOLES: &str = "xla.sdy.LocalToGlobalShape";

    /// Returns which way a call goes between whole arrays and the parts that devices have, if it is one of these
    /// calls, Shardy's or GSPMD's.
    pub fn crossing(&self) -> Option<Crossing> {
        match &*self.custom_call_target {
            Self::TO_SHARDS | "SPMDFullToShardShape" => Some(Crossing::ToShards),
            Self::TO_WHOLES | "SPMDShardToFullShape" => Some(Crossing::ToWholes),
            _ => None,
        }
    }
}

/// The direction of a call between whole arrays and the parts that devices have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crossing {
    /// From whole arrays to the part of a device.
    ToShards,
    /// From the parts of all devices to whole arrays.
    ToWholes,
}

impl super::Op {
    /// Checks whether it is a custom call that states how its only operand lies over devices, and
    /// returns it. Once XLA has divided a module, nothing is left of it.
    pub fn is_sharding_constraint(&self) -> bool {
        matches!(self, Self::CustomCall(attrs)
            if attrs.custom_call_target == CustomCallAttrs::SHARDING)
    }

    /// Checks whether each element of the result is computed from the elements of the operands at
    /// the same index, or is one of them.
    pub fn keeps_indices(&self) -> bool {
        self.opcode().is_elementwise() || self.is_sharding_constraint()
    }
}

/// Checks that each operand has a shape with its required layout.
fn check_constraints(q: &ShapeQuery<'_>, shapes: &[Shape]) -> Result<(), ShapeError> {
    if shapes.len() != q.operands.len() {
        return Err(ShapeError::attribute(format!(
            "operand_layout_constraints has {} shapes for {} operands; write one for each",
            shapes.len(),
            q.operands.len()
        )));
    }
    let mut pairs = q.operands.iter().zip(shapes).enumerate();
    match pairs.find(|(_, (operand, shape))| !operand.compatible(shape)) {
        None => Ok(()),
        Some((number, (operand, shape))) => Err(ShapeError::attribute(format!(
            "operand_layout_constraints says {shape} of operand {number}, which is {operand}"
        ))),
    }
}

pub(super) fn copy_start(q: &ShapeQuery<'_>, _attrs: &CopyStartAttrs) -> Result<Shape, ShapeError> {
    let operand = q.operand(0)?.without_layout();
    Ok(Shape::Tuple(vec![operand.clone(), operand, scalar(ElementType::U32)]))
}

/// The operand is the result of `copy-start`: target, source and context.
pub(super) fn copy_done(q: &ShapeQuery<'_>) -> Result<Shape, ShapeError> {
    let operand = q.operand(0)?;
    match operand.as_tuple() {
        Some([to, from, _]) if to.compatible(from) => Ok(to.without_layout()),
        _ => Err(ShapeError::operand(format!(
            "`copy-done` takes what `copy-start` yields, two values of one shape and a context, not {operand}"
        ))),
    }
}

pub(super) fn domain(q: &ShapeQuery<'_>, _attrs: &DomainAttrs) -> Result<Shape, ShapeError> {
    same_as_operand(q)
}

pub(super) fn same_as_operand(q: &ShapeQuery<'_>) -> Result<Shape, ShapeError> {
    Ok(q.operand(0)?.without_layout())
}

/// Operands are tokens, or values that must be computed first.
pub(super) fn after_all(_q: &ShapeQuery<'_>) -> Result<Shape, ShapeError> {
    Ok(Shape::Token)
}

pub(super) fn add_dependency(q: &ShapeQuery<'_>) -> Result<Shape, ShapeError> {
    check_token(q, 1)?;
    same_as_operand(q)
}

pub(super) fn infeed(q: &ShapeQuery<'_>, _attrs: &InfeedAttrs) -> Result<Shape, ShapeError> {
    check_token(q, 0)?;
    let shape = q.declared()?;
    match shape.as_tuple() {
        Some([_, Shape::Token]) => Ok(shape.clone()),
        _ => Err(ShapeError::result(format!(
            "`infeed` yields a pair of data and token[], not {shape}"
        ))),
    }
}

pub(super) fn outfeed(q: &ShapeQuery<'_>, attrs: &OutfeedAttrs) -> Result<Shape, ShapeError> {
    check_token(q, 1)?;
    let sent = q.operand(0)?;
    match attrs.outfeed_shape.as_ref().filter(|shape| !shape.compatible(sent)) {
        None => Ok(Shape::Token),
        Some(shape) => Err(ShapeError::attribute(format!(
            "outfeed_shape says {shape} of what is sent, which is {sent}"
        ))),
    }
}

/// Returns the result of a transfer while it runs: data, a number, a token.
fn transfer_of(data: Shape) -> Shape {
    Shape::Tuple(vec![data, scalar(ElementType::U32), Shape::Token])
}

/// Returns the data in the result of a transfer while it runs.
fn transferred(state: &Shape) -> Option<&Shape> {
    let is_number = |shape: &Shape| shape.without_layout() == scalar(ElementType::U32);
    match state.as_tuple() {
        Some([data, number, Shape::Token]) if is_number(number) => Some(data),
        _ => None,
    }
}

fn check_token(q: &ShapeQuery<'_>, index: usize) -> Result<(), ShapeError> {
    match q.operand(index)? {
        Shape::Token => Ok(()),
        other => Err(ShapeError::operand(format!(
            "operand {index} of `{}` is a token, not {other}",
            q.op.opcode()
        ))),
    }
}

pub(super) fn send(q: &ShapeQuery<'_>, _attrs: &TransferAttrs) -> Result<Shape, ShapeError> {
    check_token(q, 1)?;
    Ok(transfer_of(q.operand(0)?.without_layout()))
}

pub(super) fn recv(q: &ShapeQuery<'_>, _attrs: &TransferAttrs) -> Result<Shape, ShapeError> {
    check_token(q, 0)?;
    let shape = q.declared()?;
    match transferred(shape) {
        Some(_) => Ok(shape.clone()),
        None => {
            Err(ShapeError::result(format!("`recv` yields data, u32[] and token[], not {shape}")))
        }
    }
}

pub(super) fn send_done(q: &ShapeQuery<'_>, _attrs: &TransferAttrs) -> Result<Shape, ShapeError> {
    awaited(q).map(|_| Shape::Token)
}

pub(super) fn recv_done(q: &ShapeQuery<'_>, _attrs: &TransferAttrs) -> Result<Shape, ShapeError> {
    let data = awaited(q)?;
    Ok(Shape::Tuple(vec![data.without_layout(), Shape::Token]))
}

/// Returns the data of the transfer that a `-done` finishes.
fn awaited<'a>(q: &ShapeQuery<'a>) -> Result<&'a Shape, ShapeError> {
    let state = q.operand(0)?;
    transferred(state).ok_or_else(|| {
        ShapeError::operand(format!(
            "`{}` takes what its transfer yields, data with u32[] and token[], not {state}",
            q.op.opcode()
        ))
    })
}
