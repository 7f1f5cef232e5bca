//! Addresses and counts as functions of loop indices.

use std::ops::{Add, Mul, RangeInclusive};

use super::IndexId;

/// An integer expression of indices. In a kernel these are the indices of the enclosing loops.
///
/// `24576*h + 3072*w` or `(n + 8)/8%16`, in the syntax of kernels; division
/// rounds down and the remainder is not negative.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Expr<I = IndexId> {
    /// A constant.
    Constant(i64),
    /// An index.
    Index(I),
    /// The position in a vector, in expressions that are evaluated per position.
    Position,
    /// A sum.
    Sum(Box<[Self; 2]>),
    /// A multiple.
    Times(Box<Self>, i64),
    /// The quotient by a positive number, rounded down.
    Over(Box<Self>, i64),
    /// The remainder of that division.
    Modulo(Box<Self>, i64),
    /// The lesser of two expressions.
    Least(Box<[Self; 2]>),
}

impl<I: Copy + PartialEq> Expr<I> {
    /// The constant 0.
    pub const ZERO: Self = Self::Constant(0);

    /// Returns the value for given values of the indices; `None` if it does not fit in 64 bits
    /// or depends on the position.
    pub fn value(&self, index: &impl Fn(I) -> Option<i64>) -> Option<i64> {
        self.value_at(None, index)
    }

    /// Returns the value at a position.
    pub fn value_at(
        &self,
        position: Option<i64>,
        index: &impl Fn(I) -> Option<i64>,
    ) -> Option<i64> {
        let value = |of: &Self| of.value_at(position, index);
        match self {
            Self::Constant(value) => Some(*value),
            Self::Index(id) => index(*id),
            Self::Position => position,
            Self::Sum(both) => value(&both[0])?.checked_add(value(&both[1])?),
            Self::Times(of, by) => value(of)?.checked_mul(*by),
            Self::Over(of, by) => value(of)?.checked_div_euclid(*by),
            Self::Modulo(of, by) => value(of)?.checked_rem_euclid(*by),
            Self::Least(both) => Some(value(&both[0])?.min(value(&both[1])?)),
        }
    }

    /// Returns the range of the value for given ranges of the indices; `None` if it does not
    /// fit in 64 bits or depends on the position.
    pub fn range(
        &self,
        index: &impl Fn(I) -> Option<RangeInclusive<i64>>,
    ) -> Option<RangeInclusive<i64>> {
        self.range_at(None, index)
    }

    /// Returns the range of the value for positions in the given range.
    pub fn range_at(
        &self,
        position: Option<RangeInclusive<i64>>,
        index: &impl Fn(I) -> Option<RangeInclusive<i64>>,
    ) -> Option<RangeInclusive<i64>> {
        let range = |of: &Self| of.range_at(position.clone(), index);
        match self {
            Self::Constant(value) => Some(*value..=*value),
            Self::Index(id) => index(*id),
            Self::Position => position,
            Self::Sum(both) => {
                let (a, b) = (range(&both[0])?, range(&both[1])?);
                Some(a.start().checked_add(*b.start())?..=a.end().checked_add(*b.end())?)
            }
            Self::Times(of, by) => {
                let of = range(of)?;
                let ends = (of.start().checked_mul(*by)?, of.end().checked_mul(*by)?);
                Some(ends.0.min(ends.1)..=ends.0.max(ends.1))
            }
            Self::Over(of, by) => {
                let of = range(of)?;
                let ends = (of.start().checked_div_euclid(*by)?, of.end().checked_div_euclid(*by)?);
                Some(ends.0.min(ends.1)..=ends.0.max(ends.1))
            }
            Self::Modulo(of, by) => {
                let of = range(of)?;
                let stays =
                    of.start().checked_div_euclid(*by)? == of.end().checked_div_euclid(*by)?;
                let (from, to) =
                    (of.start().checked_rem_euclid(*by)?, of.end().checked_rem_euclid(*by)?);
                Some(if stays { from..=to } else { 0..=by.checked_sub(1)? })
            }
            Self::Least(both) => {
                let (a, b) = (range(&both[0])?, range(&both[1])?);
                Some(*a.start().min(b.start())..=*a.end().min(b.end()))
            }
        }
    }

    /// Checks whether it is certainly a multiple of a number.
    pub fn is_multiple_of(&self, number: i64) -> bool {
        let divides = |value: i64| value.checked_rem_euclid(number) == Some(0);
        match self {
            Self::Constant(value) => divides(*value),
            Self::Index(_) | Self::Position => divides(1),
            Self::Sum(both) | Self::Least(both) => both.iter().all(|e| e.is_multiple_of(number)),
            Self::Times(of, by) => divides(*by) || of.is_multiple_of(number),
            Self::Over(..) => divides(1),
            Self::Modulo(of, by) => divides(1) || (divides(*by) && of.is_multiple_of(number)),
        }
    }

    /// Checks whether it is a sum of multiples of indices, so that its range is exact.
    pub fn is_linear(&self) -> bool {
        match self {
            Self::Constant(_) | Self::Index(_) | Self::Position => true,
            Self::Sum(both) => both.iter().all(Self::is_linear),
            Self::Times(of, _) => of.is_linear(),
            Self::Over(..) | Self::Modulo(..) | Self::Least(_) => false,
        }
    }

    /// Returns the indices in the expression, each as often as it occurs.
    pub fn indices(&self) -> Vec<I> {
        match self {
            Self::Constant(_) | Self::Position => Vec::new(),
            Self::Index(id) => vec![*id],
            Self::Sum(both) | Self::Least(both) => both.iter().flat_map(Self::indices).collect(),
            Self::Times(of, _) | Self::Over(of, _) | Self::Modulo(of, _) => of.indices(),
        }
    }

    /// Returns the number of additions, multiplications and divisions that compute it at each
    /// position.
    pub fn operations(&self) -> u64 {
        match self {
            _ if !self.has_position() => 1,
            Self::Constant(_) | Self::Index(_) | Self::Position => 1,
            Self::Sum(both) | Self::Least(both) => {
                both.iter().map(Self::operations).fold(1, u64::saturating_add)
            }
            Self::Times(of, _) | Self::Over(of, _) | Self::Modulo(of, _) => {
                of.operations().saturating_add(1)
            }
        }
    }

    /// Returns the number of constants, indices and operations that it consists of.
    pub fn nodes(&self) -> usize {
        match self {
            Self::Constant(_) | Self::Index(_) | Self::Position => 1,
            Self::Sum(both) | Self::Least(both) => {
                both.iter().map(Self::nodes).fold(1, usize::saturating_add)
            }
            Self::Times(of, _) | Self::Over(of, _) | Self::Modulo(of, _) => {
                of.nodes().saturating_add(1)
            }
        }
    }

    /// Checks whether it depends on the position.
    pub fn has_position(&self) -> bool {
        match self {
            Self::Constant(_) | Self::Index(_) => false,
            Self::Position => true,
            Self::Sum(both) | Self::Least(both) => both.iter().any(Self::has_position),
            Self::Times(of, _) | Self::Over(of, _) | Self::Modulo(of, _) => of.has_position(),
        }
    }

    /// The quotient by a positive number, rounded down and simplified.
    #[must_use]
    pub fn quotient(self, by: i64) -> Self {
        match self {
            this if by == 1 => this,
            Self::Constant(value) => Self::Constant(value.checked_div_euclid(by).unwrap_or(0)),
            Self::Times(of, times) if times % by == 0 => *of * (times / by),
            Self::Modulo(_, below) if below <= by => Self::ZERO,
            Self::Over(of, first) => match first.checked_mul(by) {
                Some(both) => of.quotient(both),
                None => Self::Over(Box::new(Self::Over(of, first)), by),
            },
            Self::Sum(both) => match Self::Sum(both).apart(by) {
                (None, rest) => Self::Over(Box::new(rest), by),
                (Some(multiple), rest) => multiple.divided(by) + rest.quotient(by),
            },
            this => Self::Over(Box::new(this), by),
        }
    }

    /// The remainder by a positive number, simplified.
    #[must_use]
    pub fn remainder(self, by: i64) -> Self {
        match self {
            Self::Constant(value) => Self::Constant(value.checked_rem_euclid(by).unwrap_or(0)),
            this if this.is_multiple_of(by) => Self::ZERO,
            Self::Modulo(of, below) if below <= by => Self::Modulo(of, below),
            Self::Modulo(of, below) if below % by == 0 => of.remainder(by),
            Self::Sum(both) => match Self::Sum(both).apart(by) {
                (None, rest) => Self::Modulo(Box::new(rest), by),
                (Some(_), rest) => rest.remainder(by),
            },
            this => Self::Modulo(Box::new(this), by),
        }
    }

    /// Splits a sum into the terms that are multiples of a number, if there are any, and the
    /// rest.
    fn apart(self, number: i64) -> (Option<Self>, Self) {
        let mut terms = Vec::new();
        self.terms(&mut terms);
        let (multiples, rest): (Vec<Self>, Vec<Self>) =
            terms.into_iter().partition(|term| term.is_multiple_of(number));
        let sum = |terms: Vec<Self>| terms.into_iter().fold(Self::ZERO, Self::add);
        ((!multiples.is_empty()).then(|| sum(multiples)), sum(rest))
    }

    fn terms(self, into: &mut Vec<Self>) {
        match self {
            Self::Sum(both) => both.into_iter().for_each(|part| part.terms(into)),
            term => into.push(term),
        }
    }

    /// Merges multiples of the same term; the constant comes last.
    fn collected(self) -> Self {
        let mut terms = Vec::new();
        self.clone().terms(&mut terms);
        let mut parts: Vec<(Self, i64)> = Vec::new();
        let mut constant = 0i64;
        for term in terms {
            let (of, by) = match term {
                Self::Constant(value) => match constant.checked_add(value) {
                    Some(sum) => {
                        constant = sum;
                        continue;
                    }
                    None => return self,
                },
                Self::Times(of, by) => (*of, by),
                other => (other, 1),
            };
            match parts.iter_mut().find(|(known, _)| *known == of) {
                None => parts.push((of, by)),
                Some((_, times)) => match times.checked_add(by) {
                    Some(sum) => *times = sum,
                    None => return self,
                },
            }
        }
        let sum = parts.into_iter().fold(Self::ZERO, |sum, (of, by)| sum + of * by);
        sum + Self::Constant(constant)
    }

    /// Divides a multiple of a number by it.
    fn divided(self, by: i64) -> Self {
        match self {
            Self::Sum(both) => {
                let [a, b] = *both;
                a.divided(by) + b.divided(by)
            }
            other => other.quotient(by),
        }
    }

    /// Replaces the indices by other expressions.
    #[must_use]
    pub fn with<J: Copy + PartialEq>(&self, index: &impl Fn(I) -> Expr<J>) -> Expr<J> {
        match self {
            Self::Index(id) => index(*id),
            Self::Constant(value) => Expr::Constant(*value),
            Self::Position => Expr::Position,
            Self::Sum(both) => both[0].with(index) + both[1].with(index),
            Self::Times(of, by) => of.with(index) * *by,
            Self::Over(of, by) => of.with(index).quotient(*by),
            Self::Modulo(of, by) => of.with(index).remainder(*by),
            Self::Least(both) => both[0].with(index).least(both[1].with(index)),
        }
    }

    /// Simplifies the expression as far as the ranges of indices and positions allow.
    #[must_use]
    pub fn simplified(
        self,
        position: Option<RangeInclusive<i64>>,
        index: &impl Fn(I) -> Option<RangeInclusive<i64>>,
    ) -> Self {
        let within = |of: &Self, by: i64| {
            let range = of.range_at(position.clone(), index);
            range.is_some_and(|range| *range.start() >= 0 && *range.end() < by)
        };
        let simple = |of: Self| of.simplified(position.clone(), index);
        match self {
            Self::Constant(_) | Self::Index(_) | Self::Position => self,
            Self::Sum(both) => {
                let [a, b] = *both;
                (simple(a) + simple(b)).collected()
            }
            Self::Times(of, by) => simple(*of) * by,
            Self::Over(of, by) => {
                let (multiple, rest) = simple(*of).apart(by);
                let multiple = multiple.map_or(Self::ZERO, |multiple| multiple.divided(by));
                if within(&rest, by) { multiple } else { multiple + rest.quotient(by) }
            }
            Self::Modulo(of, by) => {
                let (_, rest) = simple(*of).apart(by);
                if within(&rest, by) { rest } else { rest.remainder(by) }
            }
            Self::Least(both) => {
                let [a, b] = both.map(simple);
                let ranges = [&a, &b].map(|of| of.range_at(position.clone(), index));
                match &ranges {
                    [Some(first), Some(second)] if first.end() <= second.start() => a,
                    [Some(first), Some(second)] if second.end() <= first.start() => b,
                    _ => a.least(b),
                }
            }
        }
    }

    /// The lesser of two expressions.
    #[must_use]
    pub fn least(self, other: Self) -> Self {
        match (&self, &other) {
            (Self::Constant(a), Self::Constant(b)) => Self::Constant(*a.min(b)),
            (a, b) if a == b => self,
            _ => Self::Least(Box::new([self, other])),
        }
    }
}

impl<I> From<i64> for Expr<I> {
    fn from(value: i64) -> Self {
        Self::Constant(value)
    }
}

impl From<IndexId> for Expr {
    fn from(index: IndexId) -> Self {
        Self::Index(index)
    }
}

impl<I: Copy + PartialEq> Add for Expr<I> {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        match (self, other) {
            (Self::Constant(0), other) => other,
            (this, Self::Constant(0)) => this,
            (this, other) => Self::Sum(Box::new([this, other])),
        }
    }
}

impl<I: Copy + PartialEq> Mul<i64> for Expr<I> {
    type Output = Self;

    fn mul(self, by: i64) -> Self {
        match (self, by) {
            (_, 0) => Self::ZERO,
            (this, 1) => this,
            (Self::Constant(value), by) => match value.checked_mul(by) {
                Some(product) => Self::Constant(product),
                None => Self::Times(Box::new(Self::Constant(value)), by),
            },
            (Self::Sum(both), by) => {
                let [a, b] = *both;
                a * by + b * by
            }
            (Self::Times(of, times), by) => match times.checked_mul(by) {
                Some(product) => *of * product,
                None => Self::Times(Box::new(Self::Times(of, times)), by),
            },
            (this, by) => Self::Times(Box::new(this), by),
        }
    }
}
