//! A value as a product of factors, each of which varies along some dims only.
//!
//! What is broadcast varies along its own dims; a reshape on the way is read
//! through its digits, so that a scale per channel is known to be the same all over
//! an image though the image was cut into groups since. Signs come out; quotients
//! are factors below the line; a conversion that is exact is applied to the factor.

use smallvec::SmallVec;
use tilewright_ir::{ElementType, InstId, Module, Op};

use super::reduce::is_plain;
use super::span::{Span, spans};
use super::types::holds;

/// Products of more factors are left as they are.
const MOST_FACTORS: usize = 16;

/// No more instructions are looked at for one product.
const MOST_STEPS: usize = 64;

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
    pub fn of(module: &Module, id: InstId) -> Option<Self> {
        let shape = module.array_shape(id).filter(|shape| is_plain(shape))?;
        let own: SmallVec<[Span; 4]> = spans(shape.dims())?.into();
        Some(Self::of_factor(
            module,
            Factor { divides: false, value: id, spans: own, convert: None },
        ))
    }

    /// What a factor that has the dims of a whole array is the product of.
    pub fn of_factor(module: &Module, whole: Factor) -> Self {
        let mut walk = Walk { module, product: Self::default(), steps: 0 };
        walk.take_apart(whole.clone());
        if walk.product.factors.len() > MOST_FACTORS {
            return Self { negative: false, factors: vec![whole] };
        }
        walk.product
    }
}

struct Walk<'a> {
    module: &'a Module,
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
        match (module.op(id), module.operands(id)) {
            (Op::Multiply, &[a, b]) if factor.convert.is_none() => {
                self.take_apart(Factor { value: a, ..factor.clone() });
                self.take_apart(Factor { value: b, ..factor });
            }
            (Op::Divide, &[a, b]) if factor.convert.is_none() && is_float => {
                self.take_apart(Factor { value: a, ..factor.clone() });
                self.take_apart(Factor { value: b, divides: !factor.divides, ..factor });
            }
            (Op::Negate, &[a]) if has_signs => {
                self.product.negative = !self.product.negative;
                self.take_apart(Factor { value: a, ..factor });
            }
            (Op::Convert, &[a]) if self.is_exact(a, id) => {
                let to = module.array_shape(id).map(|shape| shape.element_type);
                self.take_apart(Factor { value: a, convert: factor.convert.or(to), ..factor });
            }
            (Op::Reshape(_), &[a]) => match module.array_shape(a).and_then(|a| spans(a.dims())) {
                Some(spans) => self.take_apart(Factor { value: a, spans: spans.into(), ..factor }),
                None => self.product.factors.push(factor),
            },
            (Op::Broadcast(attrs), &[a]) => {
                let place = |&dim: &i64| factor.spans.get(usize::try_from(dim).ok()?).copied();
                let places = attrs.dimensions.iter().map(place).collect::<Option<_>>();
                let ascending = attrs.dimensions.windows(2).all(|pair| pair[0] < pair[1]);
                self.product.factors.push(match places.filter(|_| ascending) {
                    Some(spans) => Factor { value: a, spans, ..factor },
                    None => factor,
                });
            }
            _ => self.product.factors.push(factor),
        }
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
