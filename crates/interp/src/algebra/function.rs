//! Elementwise functions over the field.
//!
//! | over the reals | here |
//! |---|---|
//! | sums, differences, products, quotients | themselves |
//! | `sqrt`, `rsqrt` | a root that keeps products, and what divides by it |
//! | `abs`, `sign` | `a * sign(a)`, whether `a` is a square |
//! | `exponential` | random, with `exp(-a) = 1 / exp(a)`; `logistic`, `tanh`, `sinh`, `cosh`, `exponential-minus-one` are made of it |
//! | `log` | random, `log(1) = 0`; `log-plus-one` is made of it |
//! | sine, cosine, arcs, `erf`, `cbrt` | random, odd or even as they are; `tan` is a quotient |
//! | `power` | products, roots and quotients for constant halves of whole numbers, else random |
//! | rounding to whole numbers, `remainder`, `atan2` | random |
//! | maxima, minima, `clamp`, comparisons | by an order that has nothing to do with sums |
//! | rounding to another type | nothing |

use tilewright_ir::ops::elementwise::Direction;
use tilewright_ir::{Data, ElementType, Op};

use super::field::{
    INFINITY, NAN, OPAQUE, P, UNSURE, add, complex, divide, hash, inverse, marks, maximum, minimum,
    multiply, negate, order, power, random, residue, root, sign, signed, subtract,
};
use crate::error::{Outcome, WRONG_STORAGE};
use crate::eval::elementwise::{Binary, Function, Kernel, Unary, convert_kernel, map1, map2, map3};

/// The type under which elements of the field are kept, by their bits.
pub(crate) const ELEMENT: ElementType = ElementType::F64;

/// Returns the kernel of an op with an operand or result in the field; `None` for other ops,
/// which are computed as usual.
pub(crate) fn kernel(
    op: &Op,
    operands: &[ElementType],
    result: ElementType,
) -> Outcome<Option<Kernel>> {
    let Some(function) = Function::of(op) else { return Ok(None) };
    if !operands.contains(&ELEMENT) && result != ELEMENT {
        return Ok(None);
    }
    Ok(match function {
        Function::Unary(function) => Some(each(unary(function))),
        Function::Binary(Binary::Divide) => Some(quotients()),
        Function::Binary(function) => binary(function).map(both),
        Function::Convert => Some(convert(operands.first().copied().unwrap_or(ELEMENT), result)?),
        Function::Compare(direction, _) => Some(compare(direction)),
        Function::Clamp => Some(map3(|low: f64, a: f64, high: f64| {
            f64::from_bits(minimum(maximum(low.to_bits(), a.to_bits()), high.to_bits()))
        })),
        Function::IsFinite => Some(map1(|a: f64| is_finite(a.to_bits()))),
        Function::ReducePrecision { .. } => Some(each(|a| a)),
        Function::Complex => Some(both(complex)),
        Function::Real => Some(each(|a| unknown(Unary::Abs as u64 + PARTS, a) | UNSURE)),
        Function::Imag => Some(each(|a| unknown(Unary::Abs as u64 + PARTS + 1, a) | UNSURE)),
        Function::Select | Function::StochasticConvert => None,
    })
}

/// Numbers of random functions: of one operand, of two, of complex numbers, of
/// conversions.
const PAIRS: u64 = 1 << 8;
const PARTS: u64 = 1 << 9;
const WHOLE: u64 = 1 << 10;

fn each(f: impl Fn(u64) -> u64 + Send + Sync + 'static) -> Kernel {
    map1(move |a: f64| f64::from_bits(f(a.to_bits())))
}

fn both(f: impl Fn(u64, u64) -> u64 + Send + Sync + 'static) -> Kernel {
    map2(move |a: f64, b: f64| f64::from_bits(f(a.to_bits(), b.to_bits())))
}

/// Computes quotients. The divisor is often the same for a whole row, and its inverse takes a
/// hundred products.
fn quotients() -> Kernel {
    Box::new(|operands, lanes, out| {
        let mut last = (1, 1);
        let quotients = operands.first().zip(operands.get(1)).and_then(|(a, b)| {
            let (a, b) = (a.as_slice::<f64>()?.get(..lanes)?, b.as_slice::<f64>()?.get(..lanes)?);
            let quotient = |(a, b): (&f64, &f64)| {
                if b.to_bits() != last.0 {
                    last = (b.to_bits(), inverse(b.to_bits()));
                }
                f64::from_bits(multiply(a.to_bits(), last.1))
            };
            Some(a.iter().zip(b).map(quotient).collect())
        });
        *out = Data::F64(quotients.ok_or(WRONG_STORAGE)?);
        Ok(())
    })
}

/// Returns a random function of an element.
fn unknown(function: u64, a: u64) -> u64 {
    random([function, residue(a)]) | OPAQUE | marks(a)
}

/// Returns a random function with `f(-a) = -f(a)`.
fn odd(function: u64, a: u64) -> u64 {
    match signed(a) {
        0 => a,
        1.. => unknown(function, a),
        _ => negate(unknown(function, negate(a))),
    }
}

/// Returns a random function with `f(-a) = f(a)`.
fn even(function: u64, a: u64) -> u64 {
    unknown(function, if signed(a) < 0 { negate(a) } else { a })
}

/// Returns a random function with `f(-a) = 1 / f(a)`.
fn exponential(a: u64) -> u64 {
    match signed(a) {
        0 => 1 | marks(a),
        1.. => unknown(Unary::Exp as u64, a),
        _ => inverse(unknown(Unary::Exp as u64, negate(a))),
    }
}

fn logarithm(a: u64) -> u64 {
    if residue(a) == 1 { marks(a) } else { unknown(Unary::Log as u64, a) }
}

/// `(exp(a) + s*exp(-a)) / 2`
fn half_sum(a: u64, s: u64) -> u64 {
    let (up, down) = (exponential(a), exponential(negate(a)));
    divide(add(up, multiply(s, down)), 2)
}

fn unary(function: Unary) -> fn(u64) -> u64 {
    match function {
        Unary::Abs => |a| multiply(a, sign(a)),
        Unary::Acos => |a| unknown(Unary::Acos as u64, a),
        Unary::Acosh => |a| unknown(Unary::Acosh as u64, a),
        Unary::Asin => |a| odd(Unary::Asin as u64, a),
        Unary::Asinh => |a| odd(Unary::Asinh as u64, a),
        Unary::Atanh => |a| odd(Unary::Atanh as u64, a),
        Unary::Cbrt => |a| odd(Unary::Cbrt as u64, a),
        Unary::Ceil => |a| negate(unknown(Unary::Floor as u64, negate(a))),
        Unary::Cos => |a| even(Unary::Cos as u64, a),
        Unary::Cosh => |a| half_sum(a, 1),
        Unary::Erf => |a| odd(Unary::Erf as u64, a),
        Unary::Exp => exponential,
        Unary::Expm1 => |a| subtract(exponential(a), 1),
        Unary::Floor => |a| unknown(Unary::Floor as u64, a),
        Unary::Log => logarithm,
        Unary::Log1p => |a| logarithm(add(a, 1)),
        Unary::Logistic => |a| inverse(add(1, exponential(negate(a)))),
        Unary::Negate => negate,
        Unary::RoundNearestAfz => |a| odd(Unary::RoundNearestAfz as u64, a),
        Unary::RoundNearestEven => |a| odd(Unary::RoundNearestEven as u64, a),
        Unary::Rsqrt => |a| inverse(root(a)),
        Unary::Sign => sign,
        Unary::Sin => |a| odd(Unary::Sin as u64, a),
        Unary::Sinh => |a| half_sum(a, negate(1)),
        Unary::Sqrt => root,
        Unary::Tan => |a| divide(odd(Unary::Sin as u64, a), even(Unary::Cos as u64, a)),
        Unary::Tanh => |a| divide(half_sum(a, negate(1)), half_sum(a, 1)),
        // For integers only.
        Unary::Clz | Unary::Not | Unary::PopulationCount => |a| a | UNSURE,
    }
}

fn binary(function: Binary) -> Option<fn(u64, u64) -> u64> {
    Some(match function {
        Binary::Add => add,
        Binary::Atan2 => |a, b| pair(Binary::Atan2, a, b),
        Binary::Maximum => maximum,
        Binary::Minimum => minimum,
        Binary::Multiply => multiply,
        Binary::Power => to_the_power,
        Binary::Remainder => |a, b| pair(Binary::Remainder, a, b),
        Binary::Subtract => subtract,
        Binary::Divide => divide,
        Binary::And
        | Binary::Mulhi
        | Binary::Or
        | Binary::ShiftLeft
        | Binary::ShiftRightArithmetic
        | Binary::ShiftRightLogical
        | Binary::Xor => return None,
    })
}

/// Returns a random function of two elements.
fn pair(function: Binary, a: u64, b: u64) -> u64 {
    random([PAIRS + function as u64, residue(a), residue(b)]) | OPAQUE | marks(a | b)
}

/// The greatest exponent that is multiplied out.
const MOST_FACTORS: u64 = 64;

fn to_the_power(a: u64, b: u64) -> u64 {
    let halves = signed(add(b, b));
    if halves.unsigned_abs() > 2 * MOST_FACTORS {
        return pair(Binary::Power, a, b);
    }
    let size = halves.unsigned_abs();
    let mut result = power(a, size / 2);
    if size % 2 == 1 {
        result = multiply(result, root(a));
    }
    let result = if halves < 0 { inverse(result) } else { result };
    result | marks(b)
}

fn is_finite(a: u64) -> bool {
    ![INFINITY, negate(INFINITY), NAN].contains(&residue(a))
}

fn compare(direction: Direction) -> Kernel {
    fn by(test: impl Fn(i64, i64) -> bool + Send + Sync + 'static) -> Kernel {
        map2(move |a: f64, b: f64| test(order(a.to_bits()), order(b.to_bits())))
    }
    match direction {
        Direction::Eq => by(|a, b| a == b),
        Direction::Ne => by(|a, b| a != b),
        Direction::Ge => by(|a, b| a >= b),
        Direction::Gt => by(|a, b| a > b),
        Direction::Le => by(|a, b| a <= b),
        Direction::Lt => by(|a, b| a < b),
    }
}

/// Whole numbers stay the same; other elements convert to a small random integer, because it may
/// be an index.
fn convert(from: ElementType, to: ElementType) -> Outcome<Kernel> {
    if from == ELEMENT && to == ELEMENT {
        return Ok(each(|a| a));
    }
    if to == ELEMENT {
        return from_integer(from);
    }
    if to == ElementType::Pred {
        return Ok(map1(|a: f64| residue(a.to_bits()) != 0));
    }
    let narrow = convert_kernel(ElementType::S64, to)?;
    Ok(Box::new(move |operands, lanes, out| {
        let mut whole = Data::S64(Vec::new());
        map1(|a: f64| (hash([WHOLE, residue(a.to_bits())]) % 8).cast_signed())(
            operands, lanes, &mut whole,
        )?;
        narrow(&[&whole], lanes, out)
    }))
}

fn from_integer(from: ElementType) -> Outcome<Kernel> {
    if from == ElementType::U64 {
        return Ok(map1(|a: u64| f64::from_bits(a % P)));
    }
    let widen = convert_kernel(from, ElementType::S64)?;
    Ok(Box::new(move |operands, lanes, out| {
        let mut whole = Data::S64(Vec::new());
        widen(operands, lanes, &mut whole)?;
        map1(|a: i64| f64::from_bits(super::field::integer(a)))(&[&whole], lanes, out)
    }))
}
