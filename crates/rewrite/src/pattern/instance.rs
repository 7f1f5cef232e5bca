//! Makes random modules that a pattern matches, to test rules on.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rustc_hash::FxHashMap;
use tilewright_ir::ops::attr::AttrValues;
use tilewright_ir::ops::shaping::ReverseAttrs;
use tilewright_ir::reducer::Monoid;
use tilewright_ir::{
    ArrayLiteral, ArrayShape, Builder, Data, Dims, ElementType, InstId, Literal, Op, Opcode, Shape,
    Verified,
};

use super::{Operands, Pattern, Rule};
use crate::analysis::whole_number::whole_number;
use crate::driver::numbers::FloatMode;

/// The most random modules that are made in search of one to which a rule applies.
const MOST_TRIES: u64 = 64;

/// The greatest size of a dim.
const MOST: usize = 5;

/// The dims among which one has no elements, on average.
const EMPTY: usize = 16;

impl Rule {
    /// Makes a small random module whose result is an expression to which the rule applies: the
    /// same for a seed on every machine. Returns `None` if none was found: the conditions of the
    /// rule are too special for random values, or its pattern has ops for which no random operands
    /// are made here (those with more attributes than a reduce has).
    ///
    /// Dims have sizes from 0 to 5. All arrays lie in row-major order, no dim is dynamic, and only
    /// the expression reads its parts. Test the rule on other modules by example.
    pub fn instance(&self, seed: u64) -> Option<Verified> {
        (0..MOST_TRIES).find_map(|turn| {
            let seed = seed.wrapping_mul(MOST_TRIES).wrapping_add(turn);
            let module = Grower::module(self.pattern(), seed)?;
            let root = module.computation(module.entry()?).root()?;
            self.patch(&module, root, FloatMode::Fast).map(|_| module)
        })
    }
}

/// Builds an expression that a pattern matches, from the shape of its result down to parameters.
struct Grower {
    builder: Builder,
    random: ChaCha8Rng,
    bound: FxHashMap<&'static str, InstId>,
}

impl Grower {
    fn module(pattern: &Pattern, seed: u64) -> Option<Verified> {
        let random = ChaCha8Rng::seed_from_u64(seed);
        let mut grower =
            Self { builder: Builder::new("instance"), random, bound: FxHashMap::default() };
        let element_type = *grower.pick(&[
            ElementType::F32,
            ElementType::F32,
            ElementType::S32,
            ElementType::Pred,
            ElementType::BF16,
        ])?;
        let rank = grower.below(4);
        let dims: Dims = (0..rank).map(|_| grower.size()).collect();
        let root = grower.grow(pattern, &ArrayShape::new(element_type, dims))?;
        grower.builder.finish(root).ok()
    }

    /// Adds a value of this shape that the pattern matches. Conditions are not considered.
    fn grow(&mut self, pattern: &Pattern, shape: &ArrayShape) -> Option<InstId> {
        if let Some(&bound) = pattern.name.and_then(|name| self.bound.get(name)) {
            return (self.builder.module().array_shape(bound) == Some(shape)).then_some(bound);
        }
        let opcode = self.pick(&pattern.opcodes).copied();
        let value = match opcode {
            None => self.parameter_or_number(shape)?,
            Some(Opcode::Constant) => self.number(shape)?,
            Some(opcode) => self.op(opcode, &pattern.operands, shape)?,
        };
        if let Some(name) = pattern.name {
            self.bound.insert(name, value);
        }
        Some(value)
    }

    /// Adds a parameter, or a constant with the same number in every element.
    fn parameter_or_number(&mut self, shape: &ArrayShape) -> Option<InstId> {
        if self.below(3) == 0 {
            return self.number(shape);
        }
        self.builder.parameter("x", shape.clone().into()).ok()
    }

    fn number(&mut self, shape: &ArrayShape) -> Option<InstId> {
        let element_type = shape.element_type;
        let identity = Monoid { opcode: *self.pick(&MONOIDS)?, element_type }.identity();
        let data = match self.below(3) {
            0 => whole_number(element_type, 1)?,
            1 => whole_number(element_type, 2)?,
            _ => Data::zeros(element_type, 1),
        };
        let plain = Literal::Array(ArrayLiteral::new(element_type, [], data).ok()?);
        let number = if self.below(2) == 0 { identity.unwrap_or(plain) } else { plain };
        let number = self.builder.constant(number).ok()?;
        if shape.rank() == 0 {
            return Some(number);
        }
        self.builder.broadcast(number, shape.dims(), []).ok()
    }

    /// Adds an op with a result of this shape, and its operands.
    fn op(&mut self, opcode: Opcode, operands: &Operands, shape: &ArrayShape) -> Option<InstId> {
        let patterns: &[Pattern] = match operands {
            Operands::Any => &[],
            Operands::InOrder(patterns) => patterns,
            Operands::EitherOrder(pair) => &**pair,
        };
        let result = Shape::from(shape.clone());
        match (opcode, patterns) {
            (Opcode::Iota, []) => {
                let dim = i64::try_from(self.below(shape.rank())).ok()?;
                self.builder.iota(result, dim).ok()
            }
            (Opcode::Reshape, [of]) => {
                let dims = self.regrouped(shape.dims())?;
                let of = self.grow(of, &ArrayShape::new(shape.element_type, dims))?;
                self.builder.reshape(of, shape.dims()).ok()
            }
            (Opcode::Slice, [of]) => {
                let more: Vec<i64> = shape.dims().iter().map(|_| self.size() % 2).collect();
                let whole = shape.dims().iter().zip(more).map(|(&size, more)| size + more);
                let of = self.grow(of, &ArrayShape::new(shape.element_type, whole))?;
                let ends = shape.dims();
                self.builder.slice(of, vec![0; ends.len()], ends, vec![1; ends.len()]).ok()
            }
            (Opcode::Transpose, [of]) => self.transpose(of, shape),
            (Opcode::Broadcast, [of]) => self.broadcast(of, shape),
            (Opcode::Reduce, [of, init]) => self.reduce([of, init], shape),
            (Opcode::Reverse, [of]) => {
                let of = self.grow(of, shape)?;
                let last = i64::try_from(shape.rank()).ok()?.checked_sub(1)?;
                let op =
                    Op::Reverse(Box::new(ReverseAttrs { dimensions: [last].as_slice().into() }));
                self.builder.op(op, [of]).ok()
            }
            (Opcode::Convert, [of]) => {
                let types =
                    [ElementType::F32, ElementType::BF16, ElementType::S32, ElementType::F64];
                let from = *self.pick(&types)?;
                let of = self.grow(of, &ArrayShape::new(from, shape.dims().iter().copied()))?;
                self.builder.op_with_shape(Op::Convert, result, [of]).ok()
            }
            (Opcode::Select, [which, a, b]) => {
                let truth = ArrayShape::new(ElementType::Pred, shape.dims().iter().copied());
                let which = self.grow(which, &truth)?;
                let operands = [which, self.grow(a, shape)?, self.grow(b, shape)?];
                self.builder.op(Op::Select, operands).ok()
            }
            (_, []) if matches!(operands, Operands::Any) => {
                let op = Op::from_attrs(opcode, &mut AttrValues::default()).ok()?;
                let count = opcode.arity().min;
                let operands: Option<Vec<InstId>> =
                    (0..count).map(|_| self.parameter_or_number(shape)).collect();
                self.builder.op_with_shape(op, result, &operands?).ok()
            }
            (_, patterns) if !patterns.is_empty() => {
                // Elementwise ops; the builder refuses all others.
                let op = Op::from_attrs(opcode, &mut AttrValues::default()).ok()?;
                let operands: Option<Vec<InstId>> =
                    patterns.iter().map(|pattern| self.grow(pattern, shape)).collect();
                self.builder.op_with_shape(op, result, &operands?).ok()
            }
            _ => None,
        }
    }

    fn transpose(&mut self, of: &Pattern, shape: &ArrayShape) -> Option<InstId> {
        let order = self.shuffled(shape.rank());
        let mut dims = Dims::from_slice(shape.dims());
        for (&to, &size) in order.iter().zip(shape.dims()) {
            *dims.get_mut(usize::try_from(to).ok()?)? = size;
        }
        let of = self.grow(of, &ArrayShape::new(shape.element_type, dims))?;
        self.builder.transpose(of, &order).ok()
    }

    fn broadcast(&mut self, of: &Pattern, shape: &ArrayShape) -> Option<InstId> {
        let (mut dims, mut places) = (Dims::new(), Dims::new());
        for (place, &size) in (0i64..).zip(shape.dims()) {
            if self.below(2) == 0 {
                dims.push(size);
                places.push(place);
            }
        }
        let of = self.grow(of, &ArrayShape::new(shape.element_type, dims))?;
        self.builder.broadcast(of, shape.dims(), &places).ok()
    }

    fn reduce(&mut self, [of, init]: [&Pattern; 2], shape: &ArrayShape) -> Option<InstId> {
        let (mut dims, mut reduced) = (Dims::new(), Dims::new());
        for place in 0..=shape.rank() {
            if self.below(2) == 0 {
                reduced.push(i64::try_from(dims.len()).ok()?);
                dims.push(self.size());
            }
            dims.extend(shape.dims().get(place).copied());
        }
        let of = self.grow(of, &ArrayShape::new(shape.element_type, dims))?;
        let init = self.grow(init, &ArrayShape::new(shape.element_type, []))?;
        let opcode = *self.pick(&MONOIDS)?;
        let by = self.builder.reducer(opcode, shape.element_type).ok()?;
        self.builder.reduce(of, init, &reduced, by).ok()
    }

    /// Dims with the same number of elements: the same dims, with two neighbours merged, with one dim
    /// split, or with a dim of size 1 added.
    fn regrouped(&mut self, dims: &[i64]) -> Option<Dims> {
        let mut dims = Dims::from_slice(dims);
        match self.below(4) {
            0 => {}
            1 if dims.len() > 1 => {
                let at = self.below(dims.len() - 1);
                let next = dims.remove(at + 1);
                *dims.get_mut(at)? = dims.get(at)?.checked_mul(next)?;
            }
            2 if !dims.is_empty() => {
                let at = self.below(dims.len());
                let size = *dims.get(at)?;
                let part = (2..size).find(|part| size % part == 0).unwrap_or(1);
                *dims.get_mut(at)? = size / part;
                dims.insert(at + 1, part);
            }
            _ => {
                let at = self.below(dims.len() + 1);
                dims.insert(at, 1);
            }
        }
        Some(dims)
    }

    fn shuffled(&mut self, rank: usize) -> Dims {
        let mut order: Dims = (0i64..).take(rank).collect();
        for end in (2..=rank).rev() {
            let other = self.below(end);
            order.swap(end - 1, other);
        }
        order
    }

    fn size(&mut self) -> i64 {
        let size = if self.below(EMPTY) == 0 { 0 } else { 1 + self.below(MOST) };
        i64::try_from(size).unwrap_or(1)
    }

    fn below(&mut self, end: usize) -> usize {
        self.random.next_u32() as usize % end.max(1)
    }

    fn pick<'t, T>(&mut self, of: &'t [T]) -> Option<&'t T> {
        of.get(self.below(of.len()))
    }
}

const MONOIDS: [Opcode; 6] =
    [Opcode::Add, Opcode::Add, Opcode::Maximum, Opcode::Minimum, Opcode::Multiply, Opcode::And];
