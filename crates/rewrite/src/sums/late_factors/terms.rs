//! The terms of a summand.
//!
//! ```text
//! a*(p + k*q)*b  =  a*p*b + a*k*q*b
//! ```

use rustc_hash::FxHashSet;
use tilewright_ir::{InstId, Module, Op};

use crate::sums::factor::Sum;
use crate::sums::product::{Factor, Law, Product};

/// The most terms of a summand: each takes up to three sums.
const MOST_TERMS: usize = 4;

/// The most instructions visited for one summand.
const MOST_STEPS: usize = 256;

/// Finds the terms of summands, for factors that are known late.
pub(super) struct Terms<'a> {
    module: &'a Module,
    sum: &'a Sum,
    /// The values that wait for sums.
    late: &'a FxHashSet<InstId>,
    steps: usize,
}

impl<'a> Terms<'a> {
    pub(super) fn new(module: &'a Module, sum: &'a Sum, late: &'a FxHashSet<InstId>) -> Self {
        Self { module, sum, late, steps: MOST_STEPS }
    }

    /// Checks whether a factor comes out of the sum: it is constant along it, and late.
    pub(super) fn comes_out(&self, factor: &Factor) -> bool {
        !self.varies(factor) && self.late.contains(&factor.value)
    }

    fn varies(&self, factor: &Factor) -> bool {
        self.sum.summed.iter().any(|&range| factor.varies_along(range))
    }

    /// Returns the terms of the summand, but for its sign; `None` if there are too many.
    pub(super) fn found(&mut self) -> Option<Vec<Product>> {
        let mut open = vec![Product { negative: false, ..self.sum.product.clone() }];
        let mut terms = Vec::new();
        while let Some(product) = open.pop() {
            match self.two(&product) {
                Some([first, second]) => open.extend([second?, first?]),
                None => terms.push(product),
            }
            if open.len() + terms.len() > MOST_TERMS {
                return None;
            }
        }
        Some(terms)
    }

    /// Returns a product as the sum of two, if a late factor comes out of one of them.
    fn two(&mut self, product: &Product) -> Option<[Option<Product>; 2]> {
        let mut factors = product.factors.iter().enumerate();
        let (place, sides) =
            factors.find_map(|(place, factor)| Some((place, self.sides(factor)?)))?;
        Some(sides.map(|side| product.with(place, &side)))
    }

    /// Returns the terms of a factor that is the sum of two, both of which vary along the sum of the whole, if a
    /// late factor comes out of one of them.
    fn sides(&mut self, factor: &Factor) -> Option<[Product; 2]> {
        self.steps = self.steps.checked_sub(1)?;
        let module = self.module;
        let (op, &[a, b]) = (module.op(factor.value), module.operands(factor.value)) else {
            return None;
        };
        let is_sum = matches!(op, Op::Add | Op::Subtract) && !factor.divides;
        if !is_sum || factor.convert.is_some() || module.extras(factor.value).is_some() {
            return None;
        }
        let [first, mut second] = [a, b].map(|value| {
            Product::of_factor(module, Factor { value, ..factor.clone() }, Law::Times)
        });
        second.negative ^= matches!(op, Op::Subtract);
        let sides = [first, second];
        let vary = sides.iter().all(|side| side.factors.iter().any(|factor| self.varies(factor)));
        (vary && sides.iter().any(|side| self.has_late(side))).then_some(sides)
    }

    /// Checks whether a late factor comes out of a product, or of a term of one of its factors.
    fn has_late(&mut self, product: &Product) -> bool {
        product.factors.iter().any(|factor| self.comes_out(factor) || self.sides(factor).is_some())
    }
}
