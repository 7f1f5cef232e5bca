//! Addresses and counts as functions of the indices of loops.

use std::ops::{Add, Mul, RangeInclusive};

use super::IndexId;

/// A whole number that depends on the indices of the loops around it.
///
/// `24576*h + 3072*w` or `(n + 8)/8%16`, in the syntax of kernels; division
/// rounds down and the remainder is not negative.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Expr {
    /// The same everywhere.
    Constant(i64),
    /// An index.
    Index(IndexId),
    /// A sum.
    Sum(Box<[Expr; 2]>),
    /// A multiple.
    Times(Box<Expr>, i64),
    /// How many times a positive number goes into it.
    Over(Box<Expr>, i64),
    /// What is left of it then.
    Modulo(Box<Expr>, i64),
    /// The lesser of two.
    Least(Box<[Expr; 2]>),
}

impl Expr {
    /// Nothing.
    pub const ZERO: Self = Self::Constant(0);

    /// Its value, given those of the indices; `None` if it has none within 64
    /// bits.
    pub fn value(&self, index: &impl Fn(IndexId) -> Option<i64>) -> Option<i64> {
        match self {
            Self::Constant(value) => Some(*value),
            Self::Index(id) => index(*id),
            Self::Sum(both) => both[0].value(index)?.checked_add(both[1].value(index)?),
            Self::Times(of, by) => of.value(index)?.checked_mul(*by),
            Self::Over(of, by) => of.value(index)?.checked_div_euclid(*by),
            Self::Modulo(of, by) => of.value(index)?.checked_rem_euclid(*by),
            Self::Least(both) => Some(both[0].value(index)?.min(both[1].value(index)?)),
        }
    }

    /// Between which values it is, given the same of the indices; `None` where
    /// 64 bits do not hold them.
    pub fn range(
        &self,
        index: &impl Fn(IndexId) -> Option<RangeInclusive<i64>>,
    ) -> Option<RangeInclusive<i64>> {
        match self {
            Self::Constant(value) => Some(*value..=*value),
            Self::Index(id) => index(*id),
            Self::Sum(both) => {
                let (a, b) = (both[0].range(index)?, both[1].range(index)?);
                Some(a.start().checked_add(*b.start())?..=a.end().checked_add(*b.end())?)
            }
            Self::Times(of, by) => {
                let of = of.range(index)?;
                let ends = (of.start().checked_mul(*by)?, of.end().checked_mul(*by)?);
                Some(ends.0.min(ends.1)..=ends.0.max(ends.1))
            }
            Self::Over(of, by) => {
                let of = of.range(index)?;
                let ends = (of.start().checked_div_euclid(*by)?, of.end().checked_div_euclid(*by)?);
                Some(ends.0.min(ends.1)..=ends.0.max(ends.1))
            }
            Self::Modulo(of, by) => {
                let of = of.range(index)?;
                let stays =
                    of.start().checked_div_euclid(*by)? == of.end().checked_div_euclid(*by)?;
                let (from, to) =
                    (of.start().checked_rem_euclid(*by)?, of.end().checked_rem_euclid(*by)?);
                Some(if stays { from..=to } else { 0..=by.checked_sub(1)? })
            }
            Self::Least(both) => {
                let (a, b) = (both[0].range(index)?, both[1].range(index)?);
                Some(*a.start().min(b.start())..=*a.end().min(b.end()))
            }
        }
    }

    /// Whether it is certainly a multiple of a number.
    pub fn is_multiple_of(&self, number: i64) -> bool {
        let divides = |value: i64| value.checked_rem_euclid(number) == Some(0);
        match self {
            Self::Constant(value) => divides(*value),
            Self::Index(_) => divides(1),
            Self::Sum(both) | Self::Least(both) => both.iter().all(|e| e.is_multiple_of(number)),
            Self::Times(of, by) => divides(*by) || of.is_multiple_of(number),
            Self::Over(..) => divides(1),
            Self::Modulo(of, by) => divides(1) || (divides(*by) && of.is_multiple_of(number)),
        }
    }

    /// Whether it is a sum of multiples of indices, so that its range is exact.
    pub fn is_linear(&self) -> bool {
        match self {
            Self::Constant(_) | Self::Index(_) => true,
            Self::Sum(both) => both.iter().all(Self::is_linear),
            Self::Times(of, _) => of.is_linear(),
            Self::Over(..) | Self::Modulo(..) | Self::Least(_) => false,
        }
    }

    /// The indices that it depends on, each as often as it is named.
    pub fn indices(&self) -> Vec<IndexId> {
        match self {
            Self::Constant(_) => Vec::new(),
            Self::Index(id) => vec![*id],
            Self::Sum(both) | Self::Least(both) => both.iter().flat_map(Self::indices).collect(),
            Self::Times(of, _) | Self::Over(of, _) | Self::Modulo(of, _) => of.indices(),
        }
    }

    /// How many times a positive number goes into it, rounded down, in a simple
    /// form.
    #[must_use]
    pub fn quotient(self, by: i64) -> Self {
        match self {
            this if by == 1 => this,
            Self::Constant(value) => Self::Constant(value.checked_div_euclid(by).unwrap_or(0)),
            Self::Times(of, times) if times % by == 0 => *of * (times / by),
            Self::Sum(both) if both.iter().any(|part| part.is_multiple_of(by)) => {
                let [a, b] = *both;
                a.quotient(by) + b.quotient(by)
            }
            this => Self::Over(Box::new(this), by),
        }
    }

    /// What is left when a positive number is taken from it as often as it goes,
    /// in a simple form.
    #[must_use]
    pub fn remainder(self, by: i64) -> Self {
        match self {
            Self::Constant(value) => Self::Constant(value.checked_rem_euclid(by).unwrap_or(0)),
            this if this.is_multiple_of(by) => Self::ZERO,
            Self::Sum(both) if both.iter().any(|part| part.is_multiple_of(by)) => {
                let [a, b] = *both;
                let left = if a.is_multiple_of(by) { b } else { a };
                left.remainder(by)
            }
            this => Self::Modulo(Box::new(this), by),
        }
    }

    /// The lesser of two.
    #[must_use]
    pub fn least(self, other: Self) -> Self {
        match (&self, &other) {
            (Self::Constant(a), Self::Constant(b)) => Self::Constant(*a.min(b)),
            (a, b) if a == b => self,
            _ => Self::Least(Box::new([self, other])),
        }
    }
}

impl From<i64> for Expr {
    fn from(value: i64) -> Self {
        Self::Constant(value)
    }
}

impl From<IndexId> for Expr {
    fn from(index: IndexId) -> Self {
        Self::Index(index)
    }
}

impl Add for Expr {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        match (self, other) {
            (Self::Constant(0), other) => other,
            (this, Self::Constant(0)) => this,
            (this, other) => Self::Sum(Box::new([this, other])),
        }
    }
}

impl Mul<i64> for Expr {
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
