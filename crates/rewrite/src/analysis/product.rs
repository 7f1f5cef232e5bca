//! A value as a product of factors, each of which varies along some dims only.
//!
//! A product is what a [`Law`] takes apart: of numbers under a sum, but also a sum
//! under a maximum, or a disjunction under a conjunction.
//!
//! What is broadcast varies along its own dims; a reshape on the way is read
//! through its digits, so that a scale per channel is known to be the same all over
//! an image though the image was cut into groups since. Signs come out; quotients
//! are factors below the line; a conversion that is exact is applied to the factor.

use smallvec::SmallVec;
use tilewright_ir::{ElementType, InstId, Module, Op, Opcode};

use super::monoid::Monoid;
use super::reduce::is_plain;
use super::sign::is_not_negative;
use super::span::{Span, spans};
use super::types::holds;

/// Products of more factors are left as they are.
const MOST_FACTORS: usize = 16;

/// No more instructions are looked at for one product.
const MOST_STEPS: usize = 64;

/// What comes out of a reduction, being constant along it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Law {
    /// `sum c*x = c * sum x`.
    Times,
    /// `max(x + c) = max(x) + c`, and so the minimum, of floats: rounding keeps order.
    Plus,
    /// `max(c*x) = c * max(x)`, and so the minimum, of floats, for c that is not
    /// negative. What x is the first factor, which alone may be; it cannot come out.
    Scale,
    /// `any(x and c) = any(x) and c`, and so for all.
    And,
    /// `all(x or c) = all(x) or c`, and so for any.
    Or,
}

impl Law {
    /// The laws for reductions by a monoid.
    pub fn of(monoid: Monoid) -> &'static [Self] {
        let is_float = monoid.element_type.is_float();
        match monoid.opcode {
            Opcode::Add if is_float || monoid.element_type.is_integer() => &[Self::Times],
            Opcode::Maximum | Opcode::Minimum if is_float => &[Self::Plus, Self::Scale],
            Opcode::And | Opcode::Or => &[Self::And, Self::Or],
            _ => &[],
        }
    }

    /// The operation that puts a factor to the others.
    pub fn operation(self, divides: bool) -> Op {
        match (self, divides) {
            (Self::Times | Self::Scale, false) => Op::Multiply,
            (Self::Times | Self::Scale, true) => Op::Divide,
            (Self::Plus, false) => Op::Add,
            (Self::Plus, true) => Op::Subtract,
            (Self::And, _) => Op::And,
            (Self::Or, _) => Op::Or,
        }
    }
}

/// What a product is of.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Factor {
    /// Whether it stands below the line.
    pub divides: bool,
    /// An instruction.
    pub value: InstId,
    /// Where each of its dims lies in the index of the product, major to minor.
    pub spans: SmallVec<[Span; 4]>,
    /// What it is converted to, exactly.
    pub convert: Option<ElementType>,
}

impl Factor {
    /// Whether it may differ from step to step along a span.
    pub fn varies_along(&self, span: Span) -> bool {
        self.spans.iter().any(|own| !own.apart(span))
    }

    /// The two factors whose difference it is, of which the second is constant along
    /// all of these spans.
    pub fn less_constant(&self, module: &Module, along: &[Span]) -> Option<(Self, Self)> {
        let (Op::Subtract, &[a, b]) = (module.op(self.value), module.operands(self.value)) else {
            return None;
        };
        if self.divides || self.convert.is_some() || module.extras(self.value).is_some() {
            return None;
        }
        let sole = |value: InstId| {
            let whole = Self { value, ..self.clone() };
            let mut product = Product::of_factor(module, whole, Law::Times);
            let only = product.factors.pop().filter(|factor| !factor.divides)?;
            (product.factors.is_empty() && !product.negative).then_some(only)
        };
        let (x, c) = (sole(a)?, sole(b)?);
        let constant = !along.iter().any(|&span| c.varies_along(span));
        constant.then_some((x, c))
    }
}

/// A value taken apart.
#[derive(Clone, Debug, Default)]
pub struct Product {
    /// Whether the sign is turned.
    pub negative: bool,
    /// The factors, in the order in which they are met.
    pub factors: Vec<Factor>,
}

impl Product {
    /// What an array is the product of: itself alone, if nothing else is found.
    /// `None` for what has no elements, or dims that are not known or lie
    /// otherwise than row major.
    pub fn of(module: &Module, id: InstId, law: Law) -> Option<Self> {
        let shape = module.array_shape(id).filter(|shape| is_plain(shape))?;
        let own: SmallVec<[Span; 4]> = spans(shape.dims())?.into();
        let whole = Factor { divides: false, value: id, spans: own, convert: None };
        Some(Self::of_factor(module, whole, law))
    }

    /// What a factor that has the dims of a whole array is the product of.
    pub fn of_factor(module: &Module, whole: Factor, law: Law) -> Self {
        let mut walk = Walk { module, law, product: Self::default(), steps: 0 };
        walk.take_apart(whole.clone());
        if walk.product.factors.len() > MOST_FACTORS {
            return Self { negative: false, factors: vec![whole] };
        }
        walk.product
    }
}

struct Walk<'a> {
    module: &'a Module,
    law: Law,
    product: Product,
    steps: usize,
}

impl Walk<'_> {
    /// Adds the factors of a factor that has the dims of a whole array.
    fn take_apart(&mut self, factor: Factor) {
        self.steps += 1;
        let module = self.module;
        let id = factor.value;
        let attached = module.extras(id).is_some() || self.steps > MOST_STEPS;
        if attached || !module.operands(id).iter().all(|&id| self.is_plain(id)) {
            self.product.factors.push(factor);
            return;
        }
        // A product that is rounded before it is made wider is none of wide ones.
        let is_float = module.array_shape(id).is_some_and(|shape| shape.element_type.is_float());
        // Nor is it negative where its type has no signs.
        let has_signs = module
            .array_shape(id)
            .is_some_and(|shape| shape.element_type != ElementType::F8E8M0FNU);
        let rounds_once = factor.convert.is_none();
        match (self.law, module.op(id), module.operands(id)) {
            (Law::Times, Op::Multiply, &[a, b])
            | (Law::Plus, Op::Add, &[a, b])
            | (Law::And, Op::And, &[a, b])
            | (Law::Or, Op::Or, &[a, b])
                if rounds_once =>
            {
                self.take_apart(Factor { value: a, ..factor.clone() });
                self.take_apart(Factor { value: b, ..factor });
            }
            (Law::Times, Op::Divide, &[a, b]) | (Law::Plus, Op::Subtract, &[a, b])
                if rounds_once && is_float =>
            {
                self.take_apart(Factor { value: a, ..factor.clone() });
                self.take_apart(Factor { value: b, divides: !factor.divides, ..factor });
            }
            (Law::Scale, Op::Multiply, &[a, b]) if rounds_once => {
                let (x, c) = if is_not_negative(module, b) { (a, b) } else { (b, a) };
                self.scaled(factor, x, c, false);
            }
            (Law::Scale, Op::Divide, &[a, b]) if rounds_once => self.scaled(factor, a, b, true),
            (Law::Times, Op::Negate, &[a]) if has_signs => {
                self.product.negative = !self.product.negative;
                self.take_apart(Factor { value: a, ..factor });
            }
            (_, Op::Convert, &[a]) if self.is_exact(a, id) => {
                let to = module.array_shape(id).map(|shape| shape.element_type);
                self.take_apart(Factor { value: a, convert: factor.convert.or(to), ..factor });
            }
            (_, Op::Reshape(_), &[a]) => {
                match module.array_shape(a).and_then(|a| spans(a.dims())) {
                    Some(spans) => {
                        self.take_apart(Factor { value: a, spans: spans.into(), ..factor });
                    }
                    None => self.product.factors.push(factor),
                }
            }
            _ => self.push_source(factor),
        }
    }

    /// Adds x, and then c, by which it is scaled.
    fn scaled(&mut self, factor: Factor, x: InstId, c: InstId, divides: bool) {
        // What stands below the line turns the order of what is above it.
        if factor.divides || !is_not_negative(self.module, c) {
            self.product.factors.push(factor);
            return;
        }
        self.take_apart(Factor { value: x, ..factor.clone() });
        self.push_source(Factor { value: c, divides, ..factor });
    }

    /// Adds what a factor is a broadcast of, or the factor itself.
    fn push_source(&mut self, factor: Factor) {
        let module = self.module;
        let source = match (module.op(factor.value), module.operands(factor.value)) {
            (Op::Broadcast(attrs), &[source]) if module.extras(factor.value).is_none() => {
                let place = |&dim: &i64| factor.spans.get(usize::try_from(dim).ok()?).copied();
                let places = attrs.dimensions.iter().map(place).collect::<Option<_>>();
                let ascending = attrs.dimensions.windows(2).all(|pair| pair[0] < pair[1]);
                places.filter(|_| ascending && self.is_plain(source)).map(|spans| (source, spans))
            }
            _ => None,
        };
        self.product.factors.push(match source {
            Some((value, spans)) => Factor { value, spans, ..factor },
            None => factor,
        });
    }

    fn is_plain(&self, id: InstId) -> bool {
        self.module.array_shape(id).is_some_and(is_plain)
    }

    /// Whether a conversion changes no value of a float.
    fn is_exact(&self, from: InstId, to: InstId) -> bool {
        let element_type = |id| self.module.array_shape(id).map(|shape| shape.element_type);
        match (element_type(from), element_type(to)) {
            (Some(from), Some(to)) => from.is_float() && to.is_float() && holds(to, from),
            _ => false,
        }
    }
}
