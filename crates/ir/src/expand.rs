//! Ops that stand for several others, written as these.
//!
//! The batch norms become what XLA makes of them, with its formulas and in its precision
//! (`xla/service/batchnorm_expander.cc`), but for one thing: factors of a whole channel are computed
//! once for each channel and then broadcast, which gives the same bits.
//!
//! ```text
//! training   m = sum x / n,  v = max(sum x^2 / n - m^2, 0),  y = (x-m) rsqrt(v+e) s + o
//! inference  y = x f + (o - m f),  f = s rsqrt(v+e)
//! gradient   B = sum g,  C = sum g (x-m),  ds = C rsqrt(v+e),  do = B,
//!            dx = s rsqrt(v+e) / n (n g - B - C (x-m) / (v+e))
//! ```

use std::borrow::Cow;

use crate::edit::EditError;
use crate::entity::{CompId, InstId};
use crate::module::Module;
use crate::ops::linalg::BatchNormAttrs;
use crate::ops::reduce::ReduceAttrs;
use crate::ops::shaping::{BroadcastAttrs, GetDimensionSizeAttrs};
use crate::ops::{Op, Opcode};
use crate::patch::{Patch, Value};
use crate::reducer::adder;
use crate::types::element::ElementType;
use crate::types::literal::{Literal, Native};
use crate::types::shape::{ArrayShape, Dims, Shape, UNBOUNDED};
use crate::verify::{Verified, verify};

/// Checks whether an op is a batch norm.
pub fn is_batch_norm(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::BatchNormTraining | Opcode::BatchNormInference | Opcode::BatchNormGrad)
}

/// Returns a module without batch norms: itself, or a copy with the plain ops that they stand for.
pub fn plain(module: &Verified) -> Cow<'_, Verified> {
    if !has_batch_norm(module) {
        return Cow::Borrowed(module);
    }
    let mut expanded = module.clone().into_inner();
    let done = batch_norms(&mut expanded, |_, _| true).ok().and_then(|_| verify(expanded).ok());
    done.map_or(Cow::Borrowed(module), Cow::Owned)
}

/// Checks whether a module has a batch norm.
pub fn has_batch_norm(module: &Module) -> bool {
    let mut all = module.computations().iter().flat_map(|&id| module.instructions(id));
    all.any(|id| is_batch_norm(module.opcode(id)))
}

/// Writes the batch norms for which `is_wanted` holds as plain ops; returns their number.
///
/// # Errors
/// Returns an error if the module cannot be edited.
pub fn batch_norms(
    module: &mut Module,
    is_wanted: impl Fn(&Module, InstId) -> bool,
) -> Result<usize, EditError> {
    let mut changes = 0;
    for computation in module.computations().to_vec() {
        let wanted = |&id: &InstId| is_batch_norm(module.opcode(id)) && is_wanted(module, id);
        let found: Vec<InstId> = module.instructions(computation).filter(wanted).collect();
        for id in found {
            let operand = module.operands(id).first().and_then(|&x| module.array_shape(x));
            // The formulas count the elements of dims, so that each needs a size or a bound.
            let counted = operand.filter(|operand| !operand.dims().contains(&UNBOUNDED));
            let Some(element_type) = counted.map(|operand| operand.element_type) else { continue };
            let add = match module.opcode(id) {
                Opcode::BatchNormInference => None,
                _ => Some(adder(module, element_type, computation)?),
            };
            if let Some(patch) = batch_norm(module, id, add) {
                patch.apply(module)?;
                remove_unused(module, id)?;
                changes += 1;
            }
        }
    }
    Ok(changes)
}

/// Removes a replaced batch norm, and the elements that were taken of it.
fn remove_unused(module: &mut Module, id: InstId) -> Result<(), EditError> {
    let users: Vec<InstId> = module.uses(id).map(|found| found.user).collect();
    for user in users.into_iter().chain([id]) {
        if module.is_removable(user) {
            module.remove(user)?;
        }
    }
    Ok(())
}

/// Returns the edits that write a batch norm as plain ops; `add` adds in its type, if it sums
/// anything. `None` if it is no
/// batch norm of well-formed operands.
fn batch_norm(module: &Module, id: InstId, add: Option<CompId>) -> Option<Patch> {
    let (Op::BatchNormTraining(attrs) | Op::BatchNormInference(attrs) | Op::BatchNormGrad(attrs)) =
        module.op(id)
    else {
        return None;
    };
    let array = module.array_shape(*module.operands(id).first()?)?;
    let feature = usize::try_from(attrs.feature_index).ok()?;
    let channels = ArrayShape::new(array.element_type, [*array.dims().get(feature)?]);
    let patch = Patch::new();
    let mut made = Expansion { module, id, attrs, array, channels, add, patch };
    let given = made.operands()?;
    let values = match (module.op(id), given.as_slice()) {
        (Op::BatchNormTraining(_), &[x, scale, offset]) => made.training(x, scale, offset)?,
        (Op::BatchNormInference(_), &[x, scale, offset, mean, variance]) => {
            vec![made.inference(x, [scale, offset, mean, variance])?]
        }
        (Op::BatchNormGrad(_), &[x, scale, mean, variance, gradient]) => {
            made.gradient(x, [scale, mean, variance], gradient)?
        }
        _ => return None,
    };
    made.replace(&values)?;
    Some(made.patch)
}

/// A batch norm that is written as plain ops.
struct Expansion<'a> {
    module: &'a Module,
    id: InstId,
    attrs: &'a BatchNormAttrs,
    /// The shape of the operand.
    array: &'a ArrayShape,
    /// The shape of what there is one of for each channel.
    channels: ArrayShape,
    add: Option<CompId>,
    patch: Patch,
}

impl Expansion<'_> {
    /// Returns the operands in the type of the first one.
    fn operands(&mut self) -> Option<Vec<Value>> {
        let module = self.module;
        let operand = |(place, &operand): (usize, &InstId)| {
            let shape = module.array_shape(operand)?;
            if shape.element_type == self.array.element_type {
                return Some(Value::Old(operand));
            }
            let is_gradient = place == 4 && matches!(module.op(self.id), Op::BatchNormGrad(_));
            let to = if is_gradient { self.array.clone() } else { self.channels.clone() };
            Some(self.patch.add(self.id, Op::Convert, to.into(), [Value::Old(operand)]))
        };
        module.operands(self.id).iter().enumerate().map(operand).collect()
    }

    /// Replaces the batch norm by values, converted to the types of its results. Elements that are
    /// taken of its tuple become the values themselves.
    fn replace(&mut self, values: &[Value]) -> Option<()> {
        let module = self.module;
        let wanted = module.shape(self.id);
        let Some(shapes) = wanted.as_tuple() else {
            let value = self.of_shape(*values.first()?, wanted)?;
            self.patch.replace(self.id, value);
            return Some(());
        };
        let values: Option<Vec<Value>> =
            values.iter().zip(shapes).map(|(&value, shape)| self.of_shape(value, shape)).collect();
        let values = values?;
        let mut is_whole = module.is_root(self.id);
        for user in module.uses(self.id).map(|found| found.user) {
            let element = match module.op(user) {
                Op::GetTupleElement(attrs) if module.extras(user).is_none() => {
                    usize::try_from(attrs.index).ok().and_then(|index| values.get(index))
                }
                _ => None,
            };
            match element {
                Some(&value) => self.patch.replace(user, value),
                None => is_whole = true,
            }
        }
        if is_whole {
            let tuple = self.patch.add(self.id, Op::Tuple, wanted.clone(), values);
            self.patch.replace(self.id, tuple);
        }
        Some(())
    }

    fn of_shape(&mut self, value: Value, wanted: &Shape) -> Option<Value> {
        let own = self.patch.shape(self.module, value).as_array()?.element_type;
        if own == wanted.as_array()?.element_type {
            return Some(value);
        }
        Some(self.patch.add(self.id, Op::Convert, wanted.clone(), [value]))
    }

    /// Plans an op on whole arrays.
    fn whole<const N: usize>(&mut self, op: Op, operands: [Value; N]) -> Value {
        self.patch.add(self.id, op, self.array.clone().into(), operands)
    }

    /// Plans an op on what there is one of for each channel.
    fn each<const N: usize>(&mut self, op: Op, operands: [Value; N]) -> Value {
        self.patch.add(self.id, op, self.channels.clone().into(), operands)
    }

    /// Broadcasts what there is one of for each channel.
    fn spread(&mut self, value: Value) -> Value {
        let dimensions = Dims::from_iter([self.attrs.feature_index]);
        self.whole(Op::Broadcast(Box::new(BroadcastAttrs { dimensions })), [value])
    }

    /// Plans a number, one for each channel, in the type of the operand.
    fn number<T: Native>(&mut self, from: ElementType, number: T) -> Option<Value> {
        let constant = Op::Constant(Box::new(Literal::scalar(from, number).ok()?));
        let scalar = self.patch.add(self.id, constant, Shape::scalar(from), []);
        Some(self.of_scalar(scalar, from))
    }

    fn of_scalar(&mut self, mut scalar: Value, from: ElementType) -> Value {
        let to = self.array.element_type;
        if from != to {
            scalar = self.patch.add(self.id, Op::Convert, Shape::scalar(to), [scalar]);
        }
        let op = Op::Broadcast(Box::new(BroadcastAttrs { dimensions: Dims::new() }));
        self.each(op, [scalar])
    }

    /// Plans the number of elements of a channel. XLA counts them in s32.
    fn count(&mut self) -> Option<Value> {
        let own = |&(dim, _): &(i64, &i64)| dim != self.attrs.feature_index;
        let others: Vec<(i64, &i64)> = (0i64..).zip(self.array.dims()).filter(own).collect();
        let is_static = |&(dim, _): &(i64, &i64)| {
            usize::try_from(dim).is_ok_and(|dim| !self.array.dim_is_dynamic(dim))
        };
        if others.iter().all(is_static) {
            let count = others.iter().try_fold(1i64, |count, (_, size)| count.checked_mul(**size));
            return self.number(ElementType::S32, i32::try_from(count?).ok()?);
        }
        let s32 = Shape::scalar(ElementType::S32);
        let one = Op::Constant(Box::new(Literal::scalar(ElementType::S32, 1i32).ok()?));
        let mut count = self.patch.add(self.id, one, s32.clone(), []);
        let array = Value::Old(*self.module.operands(self.id).first()?);
        for (dim, _) in others {
            let attrs = GetDimensionSizeAttrs { dimensions: Dims::from_iter([dim]) };
            let op = Op::GetDimensionSize(Box::new(attrs));
            let size = self.patch.add(self.id, op, s32.clone(), [array]);
            count = self.patch.add(self.id, Op::Multiply, s32.clone(), [size, count]);
        }
        Some(self.of_scalar(count, ElementType::S32))
    }

    /// Plans the sum of each channel.
    fn sum(&mut self, value: Value) -> Option<Value> {
        let zero = Op::Constant(Box::new(Literal::scalar(ElementType::F32, 0f32).ok()?));
        let f32 = ElementType::F32;
        let mut init = self.patch.add(self.id, zero, Shape::scalar(f32), []);
        if self.array.element_type != f32 {
            let to = Shape::scalar(self.array.element_type);
            init = self.patch.add(self.id, Op::Convert, to, [init]);
        }
        let all = (0i64..).take(self.array.rank());
        let dimensions = all.filter(|&dim| dim != self.attrs.feature_index).collect();
        let op = Op::Reduce(Box::new(ReduceAttrs { dimensions, to_apply: self.add? }));
        Some(self.each(op, [value, init]))
    }

    /// Plans `v + e`, and `rsqrt(v + e)`.
    fn inverse(&mut self, variance: Value) -> Option<[Value; 2]> {
        let epsilon = self.number(ElementType::F32, self.attrs.epsilon.0)?;
        let sum = self.each(Op::Add, [variance, epsilon]);
        let rsqrt = self.each(Op::Rsqrt(Box::default()), [sum]);
        Some([sum, rsqrt])
    }

    fn training(&mut self, x: Value, scale: Value, offset: Value) -> Option<Vec<Value>> {
        let count = self.count()?;
        let total = self.sum(x)?;
        let squared = self.whole(Op::Multiply, [x, x]);
        let squares = self.sum(squared)?;
        let mean = self.each(Op::Divide, [total, count]);
        let mean_of_squares = self.each(Op::Divide, [squares, count]);
        let square_of_mean = self.each(Op::Multiply, [mean, mean]);
        let difference = self.each(Op::Subtract, [mean_of_squares, square_of_mean]);
        let zero = self.number(ElementType::F32, 0f32)?;
        let variance = self.each(Op::Maximum, [difference, zero]);
        let [_, factor] = self.inverse(variance)?;
        let [means, factors, scales, offsets] =
            [mean, factor, scale, offset].map(|value| self.spread(value));
        let centred = self.whole(Op::Subtract, [x, means]);
        let normal = self.whole(Op::Multiply, [centred, factors]);
        let scaled = self.whole(Op::Multiply, [normal, scales]);
        let y = self.whole(Op::Add, [scaled, offsets]);
        Some(vec![y, mean, variance])
    }

    fn inference(&mut self, x: Value, per_channel: [Value; 4]) -> Option<Value> {
        let [scale, offset, mean, variance] = per_channel;
        let [_, inverse] = self.inverse(variance)?;
        let factor = self.each(Op::Multiply, [scale, inverse]);
        let moved = self.each(Op::Multiply, [mean, factor]);
        let rest = self.each(Op::Subtract, [offset, moved]);
        let [factors, rests] = [factor, rest].map(|value| self.spread(value));
        let scaled = self.whole(Op::Multiply, [x, factors]);
        Some(self.whole(Op::Add, [scaled, rests]))
    }

    fn gradient(
        &mut self,
        x: Value,
        per_channel: [Value; 3],
        gradient: Value,
    ) -> Option<Vec<Value>> {
        let [scale, mean, variance] = per_channel;
        let count = self.count()?;
        let [sum, inverse] = self.inverse(variance)?;
        let means = self.spread(mean);
        let centred = self.whole(Op::Subtract, [x, means]);
        let product = self.whole(Op::Multiply, [gradient, centred]);
        let with_centred = self.sum(product)?;
        let total = self.sum(gradient)?;
        let of_scale = self.each(Op::Multiply, [with_centred, inverse]);
        let scaled = self.each(Op::Multiply, [scale, inverse]);
        let factor = self.each(Op::Divide, [scaled, count]);
        let [counts, totals, products, sums, factors] =
            [count, total, with_centred, sum, factor].map(|value| self.spread(value));
        let own = self.whole(Op::Multiply, [gradient, counts]);
        let less_total = self.whole(Op::Subtract, [own, totals]);
        let along = self.whole(Op::Multiply, [products, centred]);
        let along = self.whole(Op::Divide, [along, sums]);
        let rest = self.whole(Op::Subtract, [less_total, along]);
        let of_x = self.whole(Op::Multiply, [factors, rest]);
        Some(vec![of_x, of_scale, total])
    }
}
