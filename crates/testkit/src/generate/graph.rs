//! A computation under construction: its values, and ops that keep them tame.

use std::collections::BTreeMap;

use half::{bf16, f16};
use num_complex::Complex;
use tilewright_ir::element::NumberClass;
use tilewright_ir::{
    ArrayLiteral, BuildError, Builder, CompId, Data, Dims, ElementType, InstId, Literal, Op,
    Opcode, Shape,
};

use super::Options;
use super::rng::Rng;
use super::shapes::count;

/// The result of a step that makes a part of a module.
pub(super) type Made<T> = Result<T, BuildError>;

/// An array of the computation.
#[derive(Clone, Debug)]
pub(super) struct Value {
    pub(super) id: InstId,
    pub(super) element: ElementType,
    pub(super) dims: Dims,
    /// No element is larger on inputs of ordinary size.
    pub(super) bound: f64,
    /// Whether no float sum or product over many elements goes in, whose last
    /// bits depend on the order: only then may it be compared or rounded.
    pub(super) exact: bool,
}

impl Value {
    pub(super) fn class(&self) -> NumberClass {
        self.element.class()
    }

    pub(super) fn is_float(&self) -> bool {
        self.element.is_float()
    }

    pub(super) fn is_complex(&self) -> bool {
        self.element.is_complex()
    }
}

/// The state that all computations of a module share.
pub(super) struct Shared<'a> {
    pub(super) options: &'a Options,
    /// Reducers made so far.
    pub(super) reducers: BTreeMap<(Opcode, ElementType), CompId>,
    /// How many computations were made.
    pub(super) computations: usize,
    /// How deep in calls the current computation is.
    pub(super) depth: usize,
}

impl<'a> Shared<'a> {
    pub(super) fn new(options: &'a Options) -> Self {
        Self { options, reducers: BTreeMap::new(), computations: 0, depth: 0 }
    }
}

/// A computation under construction.
pub(super) struct Graph<'a, 'o> {
    pub(super) b: &'a mut Builder,
    pub(super) rng: &'a mut Rng,
    pub(super) shared: &'a mut Shared<'o>,
    pub(super) pool: Vec<Value>,
    made: usize,
}

impl<'a, 'o> Graph<'a, 'o> {
    pub(super) fn new(b: &'a mut Builder, rng: &'a mut Rng, shared: &'a mut Shared<'o>) -> Self {
        Self { b, rng, shared, pool: Vec::new(), made: 0 }
    }

    pub(super) fn options(&self) -> &'o Options {
        self.shared.options
    }

    /// Returns how many instructions were made here.
    pub(super) fn len(&self) -> usize {
        self.made
    }

    /// Makes a value known to later steps.
    pub(super) fn keep(&mut self, value: Value) {
        self.pool.push(value);
    }

    /// Returns a value of the pool that fits, the later ones more likely.
    pub(super) fn pick(&mut self, fits: impl Fn(&Value) -> bool) -> Option<Value> {
        let fitting: Vec<usize> = (0..self.pool.len()).filter(|&i| fits(&self.pool[i])).collect();
        let later = self.rng.below(fitting.len()).max(self.rng.below(fitting.len()));
        fitting.get(later).map(|&i| self.pool[i].clone())
    }

    /// Wraps the result of an instruction, with the known facts about its numbers.
    pub(super) fn value(&mut self, id: InstId, bound: f64, exact: bool) -> Made<Value> {
        self.made += 1;
        let array = self.b.array_shape(id)?;
        let (element, dims) = (array.element_type, Dims::from_slice(array.dims()));
        Ok(Value { id, element, dims, bound, exact })
    }

    pub(super) fn parameter(&mut self, element: ElementType, dims: &[i64]) -> Made<Value> {
        let shape = Shape::array(element, dims.iter().copied());
        let id = self.b.parameter("arg", shape)?;
        self.value(id, 4.0, true)
    }

    pub(super) fn constant(
        &mut self,
        element: ElementType,
        dims: &[i64],
        numbers: &[f64],
    ) -> Made<Value> {
        let data = data(element, numbers);
        let id = match ArrayLiteral::new(element, dims.iter().copied(), data) {
            Ok(array) => self.b.constant(Literal::Array(array))?,
            // Not so many numbers as elements: a scalar will do.
            Err(_) => return self.scalar(element, 1.0),
        };
        let bound = numbers.iter().fold(0.0, |most: f64, number| most.max(number.abs()));
        self.value(id, bound, true)
    }

    pub(super) fn scalar(&mut self, element: ElementType, number: f64) -> Made<Value> {
        self.constant(element, &[], &[number])
    }

    /// Returns a number in every element.
    pub(super) fn splat(&mut self, like: &Value, number: f64) -> Made<Value> {
        let scalar = self.scalar(like.element, number)?;
        self.broadcast(&scalar, &like.dims, &[])
    }

    pub(super) fn reshape(&mut self, value: &Value, dims: &[i64]) -> Made<Value> {
        let id = self.b.reshape(value.id, dims)?;
        self.value(id, value.bound, value.exact)
    }

    pub(super) fn broadcast(&mut self, value: &Value, dims: &[i64], to: &[i64]) -> Made<Value> {
        let id = self.b.broadcast(value.id, dims, to)?;
        self.value(id, value.bound, value.exact)
    }

    pub(super) fn transpose(&mut self, value: &Value, permutation: &[i64]) -> Made<Value> {
        let id = self.b.transpose(value.id, permutation)?;
        self.value(id, value.bound, value.exact)
    }

    /// Returns an op of one operand whose result is no larger, or at most 1.
    pub(super) fn unary(&mut self, opcode: Opcode, value: &Value) -> Made<Value> {
        let id = self.b.unary(opcode, value.id)?;
        self.value(id, value.bound.max(1.0), value.exact)
    }

    pub(super) fn binary(&mut self, opcode: Opcode, a: &Value, b: &Value) -> Made<Value> {
        let id = self.b.binary(opcode, a.id, b.id)?;
        let bound = match opcode {
            Opcode::Add | Opcode::Subtract => a.bound + b.bound,
            // The parts of a complex product are sums of two products each.
            Opcode::Multiply if a.is_complex() => 2.0 * a.bound * b.bound,
            Opcode::Multiply => a.bound * b.bound,
            _ => a.bound.max(b.bound),
        };
        let result = self.value(id, bound, a.exact && b.exact)?;
        self.tamed(result)
    }

    pub(super) fn clamp(&mut self, value: &Value, low: f64, high: f64) -> Made<Value> {
        let low = self.scalar(value.element, low)?;
        let high = self.scalar(value.element, high)?;
        let id = self.b.op(Op::Clamp, [low.id, value.id, high.id])?;
        self.value(id, low.bound.max(high.bound), value.exact)
    }

    pub(super) fn convert(&mut self, value: &Value, element: ElementType) -> Made<Value> {
        let real = !element.is_integer() && element != ElementType::Pred;
        let value = match value.class() {
            // Integers may be as large as they come.
            NumberClass::Signed if real => self.clamp(value, -8.0, 8.0)?,
            NumberClass::Unsigned if real => self.clamp(value, 0.0, 8.0)?,
            _ => value.clone(),
        };
        let shape = Shape::array(element, value.dims.iter().copied());
        let id = self.b.op_with_shape(Op::Convert, shape, [value.id])?;
        let result = self.value(id, value.bound, value.exact)?;
        self.tamed(result)
    }

    /// Returns the same with floats brought back to a tame size, by a power of two so that no
    /// bit is lost.
    pub(super) fn tamed(&mut self, value: Value) -> Made<Value> {
        let grows = value.is_float() || value.is_complex();
        if !grows || value.bound <= limit(value.element) {
            return Ok(value);
        }
        let (mut scale, mut bound) = (1.0, value.bound);
        while bound > 4.0 && scale > 1e-6 {
            (scale, bound) = (scale / 2.0, bound / 2.0);
        }
        let scale = self.splat(&value, scale)?;
        let id = self.b.binary(Opcode::Multiply, value.id, scale.id)?;
        self.value(id, bound, value.exact)
    }

    /// Returns the computation of a reduce, one of those there are or a new one.
    pub(super) fn reducer(&mut self, opcode: Opcode, element: ElementType) -> Made<CompId> {
        let known = self.shared.reducers.get(&(opcode, element)).copied();
        if let Some(known) = known
            && self.rng.chance(70)
        {
            return Ok(known);
        }
        let id = self.b.reducer(opcode, element)?;
        self.shared.reducers.insert((opcode, element), id);
        Ok(id)
    }

    /// Returns a reduce from this initial value.
    pub(super) fn reduce(
        &mut self,
        value: &Value,
        dims: &[i64],
        opcode: Opcode,
        init: f64,
    ) -> Made<Value> {
        let to_apply = self.reducer(opcode, value.element)?;
        let init = self.scalar(value.element, init)?;
        let id = self.b.reduce(value.id, init.id, dims, to_apply)?;
        let rounds = value.is_float() || value.is_complex();
        let exact = !rounds || !matches!(opcode, Opcode::Add | Opcode::Multiply);
        let result = self.value(id, 0.0, value.exact && exact)?;
        let terms = count(&value.dims) / count(&result.dims).max(1);
        let many = i32::try_from(terms).map_or(f64::MAX, f64::from);
        let init = if init.bound.is_finite() { init.bound } else { 0.0 };
        let bound = match opcode {
            Opcode::Add => value.bound * many + init,
            // The caller sees to it that factors are at most 1.
            Opcode::Multiply => init,
            _ => value.bound.max(init),
        };
        self.tamed(Value { bound, ..result })
    }
}

/// Returns the largest number that is still tame.
fn limit(element: ElementType) -> f64 {
    if element.bits() < 32 { 64.0 } else { 1024.0 }
}

/// Numbers as elements of a type, the nearest there is.
#[expect(clippy::cast_possible_truncation, reason = "the numbers are small, or saturate")]
#[expect(clippy::cast_sign_loss, reason = "negative numbers saturate to 0")]
pub(crate) fn data(element: ElementType, numbers: &[f64]) -> Data {
    let n = numbers.iter().copied();
    match element {
        ElementType::Pred => Data::Pred(n.map(|x| x != 0.0).collect()),
        ElementType::S8 => Data::S8(n.map(|x| x as i8).collect()),
        ElementType::S16 => Data::S16(n.map(|x| x as i16).collect()),
        ElementType::S32 => Data::S32(n.map(|x| x as i32).collect()),
        ElementType::S64 => Data::S64(n.map(|x| x as i64).collect()),
        ElementType::U8 => Data::U8(n.map(|x| x as u8).collect()),
        ElementType::U16 => Data::U16(n.map(|x| x as u16).collect()),
        ElementType::U32 => Data::U32(n.map(|x| x as u32).collect()),
        ElementType::U64 => Data::U64(n.map(|x| x as u64).collect()),
        ElementType::F16 => Data::F16(n.map(f16::from_f64).collect()),
        ElementType::BF16 => Data::BF16(n.map(bf16::from_f64).collect()),
        ElementType::F32 => Data::F32(n.map(|x| x as f32).collect()),
        ElementType::F64 => Data::F64(n.collect()),
        ElementType::C64 => Data::C64(n.map(|x| Complex::new(x as f32, -x as f32 / 2.0)).collect()),
        ElementType::C128 => Data::C128(n.map(|x| Complex::new(x, -x / 2.0)).collect()),
        other => Data::zeros(other, numbers.len()),
    }
}
