//! Decides which factors may be pulled out of a sum of products without new overflow.
//!
//! `sum p*q = p * sum q` holds to within rounding on all data, since the errors of both sides are
//! bounded by the same multiple of `sum |p*q|`. The exception is data on which `q`, or a partial sum
//! of `q`, overflows or underflows while `p*q` does not. Two kinds of factors `p` cause neither:
//!
//! - Constants near 1: they change the magnitude at which overflow begins by a few binary orders.
//! - The scale of a normalisation, which is computed from the summed values themselves:
//!   `r = 1/sqrt(mean(d*d) + eps)` and a factor `d`. The program computes the mean of the squares,
//!   so where `d` itself is too large, that mean overflows; and `r` is at most `eps^(-1/2)`.
//!
//! [`super::factor`] adds two more cases: any factor may be pulled out if only one factor stays and
//! that is bounded by [`super::bound`], or if the program already sums the factors that stay.

use rustc_hash::FxHashSet;
use tilewright_ir::reducer::Monoid;
use tilewright_ir::{ArrayLiteral, ArrayShape, CompId, InstId, Module, Op, Opcode};

use super::product::{Factor, Law, Product};

/// Constants from `2^-8` to `2^8` are near 1.
const MOST_BINARY_ORDERS: f64 = 8.0;

/// The most instructions followed to find out how a scale is computed.
const MOST_STEPS: usize = 48;

/// For each factor of a product, whether it may be pulled out of the sum by itself.
pub fn tame(module: &Module, factors: &[Factor]) -> Vec<bool> {
    let is_tame = |factor: &Factor| {
        is_near_one(module, factor.value)
            || normalised(module, factor.value).is_some_and(|squares| {
                let of = sources(module, squares);
                let shares = |other: &Factor| !sources(module, other.value).is_disjoint(&of);
                factors.iter().filter(|other| *other != factor).any(shares)
            })
    };
    factors.iter().map(is_tame).collect()
}

/// Checks whether all elements of a value equal one constant near 1, of either sign.
fn is_near_one(module: &Module, id: InstId) -> bool {
    let orders = number(module, id).map(|number| number.abs().log2().abs());
    orders.is_some_and(|orders| orders <= MOST_BINARY_ORDERS)
}

/// Returns the number that all elements of a value equal.
pub fn number(module: &Module, mut id: InstId) -> Option<f64> {
    for _ in 0..MOST_STEPS {
        match (module.op(id), module.operands(id)) {
            (Op::Reshape(_) | Op::Broadcast(_) | Op::Convert, &[a]) => id = a,
            (Op::Constant(value), _) => {
                return value.as_array().and_then(ArrayLiteral::splat)?.scalar_as_f64();
            }
            _ => return None,
        }
    }
    None
}

/// Returns the array whose normalisation scale a value is: a multiple or quotient of an
/// `rsqrt`, a `sqrt` or a power of ±1/2 of the sum of that array, in one stage or in several.
fn normalised(module: &Module, mut id: InstId) -> Option<InstId> {
    let mut is_root = false;
    for _ in 0..MOST_STEPS {
        let constant = |id| number(module, id).is_some();
        id = match (module.op(id), module.operands(id)) {
            (Op::Reshape(_) | Op::Broadcast(_) | Op::Transpose(_) | Op::Convert, &[a]) => a,
            (Op::Rsqrt(_) | Op::Sqrt(_), &[a]) if !is_root => {
                is_root = true;
                a
            }
            (Op::Power, &[a, b]) if !is_root && number(module, b)?.abs() == 0.5 => {
                is_root = true;
                a
            }
            (Op::Divide, &[a, b]) if constant(a) && !is_root => b,
            (Op::Multiply | Op::Divide | Op::Add | Op::Maximum, &[a, b]) if constant(b) => a,
            (Op::Multiply | Op::Add | Op::Maximum, &[a, b]) if constant(a) => b,
            // The mean of the squares minus the square of the mean.
            (Op::Subtract, &[a, _]) if is_root => a,
            (Op::Reduce(_), _) if is_root => {
                return summed(module, id).filter(|&array| is_squared(module, array));
            }
            _ => return None,
        };
    }
    None
}

/// Returns the array that a sum adds up, in one stage or in several with reshapes between them:
/// the sum over groups of the sums of their channels is the sum over both.
fn summed(module: &Module, mut id: InstId) -> Option<InstId> {
    let mut array = None;
    for _ in 0..MOST_STEPS {
        match (module.op(id), module.operands(id)) {
            (Op::Reduce(attrs), &[operand, _]) if adds(module, attrs.to_apply) => {
                array = Some(operand);
                id = operand;
            }
            (Op::Reshape(_), &[operand]) if array.is_some() => id = operand,
            _ => break,
        }
    }
    array
}

/// Checks whether an array, or the one that it is a moved or rounded copy of, is a product with a
/// factor that occurs twice.
fn is_squared(module: &Module, mut array: InstId) -> bool {
    for _ in 0..MOST_STEPS {
        match (module.op(array), module.operands(array)) {
            (Op::Reshape(_) | Op::Transpose(_) | Op::Convert, &[operand]) => array = operand,
            _ => break,
        }
    }
    let Some(product) = Product::of(module, array, Law::Times) else { return false };
    let mut above = product.factors.iter().filter(|factor| !factor.divides);
    let mut seen: FxHashSet<&Factor> = FxHashSet::default();
    above.any(|factor| !seen.insert(factor))
}

/// Checks whether a reducer adds.
fn adds(module: &Module, reducer: CompId) -> bool {
    Monoid::of(module, reducer).is_some_and(|monoid| monoid.opcode == Opcode::Add)
}

/// Returns the arrays that an array is computed from element by element and that have as many
/// elements; the array itself, if it is computed otherwise.
fn sources(module: &Module, id: InstId) -> FxHashSet<InstId> {
    let elements = |id| module.array_shape(id).and_then(ArrayShape::num_elements);
    let (mut found, mut seen, mut open) = (FxHashSet::default(), FxHashSet::default(), vec![id]);
    while let Some(next) = open.pop() {
        if !seen.insert(next) {
            continue;
        }
        let passes = module.op(next).keeps_indices() || module.opcode(next) == Opcode::Reshape;
        let operands = module.operands(next).iter().copied();
        let from: Vec<InstId> = operands.filter(|&o| elements(o) == elements(id)).collect();
        let is_repeated = |&o: &InstId| module.opcode(o) == Opcode::Broadcast;
        if passes && seen.len() < MOST_STEPS && !from.iter().all(is_repeated) {
            open.extend(from.into_iter().filter(|o| !is_repeated(o)));
        } else {
            found.insert(next);
        }
    }
    found
}
