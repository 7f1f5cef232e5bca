//! CHLO's functions as StableHLO, by the formulas that XLA uses.
//!
//! HLO has ops for some of them (`erf`, `asin`, `topk`), which stay as they are. Complex
//! arguments are left to HLO's ops, where there are any.

mod approximate;
mod bessel;
mod broadcast;
mod erf_double;
mod gamma;
mod maker;
mod next_after;
mod zeta;

use crate::mlir::{
    Attribute, Attributes, DialectAttribute, Operation, Program, Scalar, Type, Value,
};
use maker::Maker;

/// Computes a function.
#[derive(Clone, Copy)]
enum Function {
    /// A function of one value.
    Of(fn(&mut Maker<'_>, Value) -> Option<Value>),
    /// A function of two values.
    OfTwo(fn(&mut Maker<'_>, Value, Value) -> Option<Value>),
    /// A function of any values, and of attributes.
    OfAll(fn(&mut Maker<'_>, &[Value]) -> Option<Value>),
}

use Function::{Of, OfAll, OfTwo};

/// The functions, and whether floats of fewer than 32 bits are widened first.
const FUNCTIONS: &[(&str, Function, bool)] = &[
    ("chlo.acos", Of(acos), false),
    ("chlo.acosh", Of(acosh), false),
    ("chlo.asinh", Of(asinh), false),
    ("chlo.atan", Of(atan), false),
    ("chlo.atanh", Of(atanh), false),
    ("chlo.bessel_i1e", Of(bessel::bessel_i1e), true),
    ("chlo.broadcast_add", OfAll(broadcast::elementwise), false),
    ("chlo.broadcast_and", OfAll(broadcast::elementwise), false),
    ("chlo.broadcast_atan2", OfAll(broadcast::elementwise), false),
    ("chlo.broadcast_compare", OfAll(broadcast::elementwise), false),
    ("chlo.broadcast_complex", OfAll(broadcast::elementwise), false),
    ("chlo.broadcast_divide", OfAll(broadcast::elementwise), false),
    ("chlo.broadcast_maximum", OfAll(broadcast::elementwise), false),
    ("chlo.broadcast_minimum", OfAll(broadcast::elementwise), false),
    ("chlo.broadcast_multiply", OfAll(broadcast::elementwise), false),
    ("chlo.broadcast_next_after", OfAll(broadcast::elementwise), false),
    ("chlo.broadcast_or", OfAll(broadcast::elementwise), false),
    ("chlo.broadcast_polygamma", OfAll(broadcast::elementwise), false),
    ("chlo.broadcast_power", OfAll(broadcast::elementwise), false),
    ("chlo.broadcast_remainder", OfAll(broadcast::elementwise), false),
    ("chlo.broadcast_select", OfAll(broadcast::elementwise), false),
    ("chlo.broadcast_shift_left", OfAll(broadcast::elementwise), false),
    ("chlo.broadcast_shift_right_arithmetic", OfAll(broadcast::elementwise), false),
    ("chlo.broadcast_shift_right_logical", OfAll(broadcast::elementwise), false),
    ("chlo.broadcast_subtract", OfAll(broadcast::elementwise), false),
    ("chlo.broadcast_xor", OfAll(broadcast::elementwise), false),
    ("chlo.broadcast_zeta", OfAll(broadcast::elementwise), false),
    ("chlo.conj", Of(broadcast::conjugate), false),
    ("chlo.constant_like", OfAll(broadcast::constant_like), false),
    ("chlo.cosh", Of(cosh), true),
    ("chlo.digamma", Of(gamma::digamma), true),
    ("chlo.erf_inv", Of(approximate::erf_inv), true),
    ("chlo.erfc", Of(approximate::erfc), true),
    ("chlo.is_inf", Of(is_infinite), false),
    ("chlo.is_neg_inf", Of(is_negative_infinite), false),
    ("chlo.is_pos_inf", Of(is_positive_infinite), false),
    ("chlo.lgamma", Of(gamma::lgamma), true),
    ("chlo.next_after", OfTwo(next_after::next_after), false),
    ("chlo.polygamma", OfTwo(zeta::polygamma), true),
    ("chlo.sinh", Of(sinh), true),
    ("chlo.square", Of(square), false),
    ("chlo.zeta", OfTwo(zeta::zeta), true),
    ("stablehlo.broadcast", OfAll(broadcast::broadcast), false),
    ("stablehlo.cross-replica-sum", OfAll(broadcast::cross_replica_sum), false),
    ("stablehlo.torch_index_select", OfAll(broadcast::index_select), false),
];

/// Checks whether a function of this name is expanded.
pub(super) fn has(name: &str) -> bool {
    FUNCTIONS.iter().any(|(known, ..)| *known == name)
}

/// Expands the functions in a program.
pub(super) fn expand(mut program: Program) -> Program {
    let mut values = std::mem::take(&mut program.values);
    for block in program.module.regions.iter_mut().flat_map(|region| &mut region.blocks) {
        for function in &mut block.operations {
            in_regions(function, &mut values, 0);
        }
    }
    program.values = values;
    program
}

fn in_regions(operation: &mut Operation, values: &mut Vec<Type>, depth: usize) {
    if depth > super::MAX_DEPTH {
        return;
    }
    for block in operation.regions.iter_mut().flat_map(|region| &mut region.blocks) {
        let mut out = Vec::with_capacity(block.operations.len());
        for mut operation in std::mem::take(&mut block.operations) {
            in_regions(&mut operation, values, depth + 1);
            match expanded(&operation, values) {
                Some(operations) => out.extend(operations),
                None => out.push(operation),
            }
        }
        block.operations = out;
    }
}

/// Returns the operations that compute what an operation of CHLO does.
fn expanded(operation: &Operation, values: &mut Vec<Type>) -> Option<Vec<Operation>> {
    let (_, function, widens) = FUNCTIONS.iter().find(|(name, ..)| operation.name == *name)?;
    let bound = values.len();
    let mut maker = Maker::new(operation, values);
    let made = widened(&mut maker, &operation.operands, *function, *widens);
    let mut operations = std::mem::take(&mut maker.operations);
    match (made, operations.last_mut(), &operation.results[..]) {
        (Some(made), Some(last), &[result]) if last.results[..] == [made] => {
            last.results = std::iter::once(result).collect();
            Some(operations)
        }
        _ => {
            values.truncate(bound);
            None
        }
    }
}

/// Computes a function, of wider floats if it widens narrow ones.
fn widened(
    maker: &mut Maker<'_>,
    operands: &[Value],
    function: Function,
    widens: bool,
) -> Option<Value> {
    let narrow = match maker.tensor(*operands.first()?)?.element.clone() {
        Scalar::Float(name) if widens && name != "f32" && name != "f64" => Scalar::Float(name),
        _ => return apply(maker, operands, function),
    };
    let single = Scalar::Float("f32".into());
    let wide = operands.iter().map(|&operand| maker.convert(operand, &single));
    let wide = wide.collect::<Option<Vec<_>>>()?;
    let made = apply(maker, &wide, function)?;
    maker.convert(made, &narrow)
}

fn apply(maker: &mut Maker<'_>, operands: &[Value], function: Function) -> Option<Value> {
    match (function, operands) {
        (Of(function), &[x]) => function(maker, x),
        (OfTwo(function), &[x, y]) => function(maker, x, y),
        (OfAll(function), operands) => function(maker, operands),
        _ => None,
    }
}

fn atan(m: &mut Maker<'_>, x: Value) -> Option<Value> {
    m.real(x)?;
    let one = m.number(x, 1.0)?;
    m.op("atan2", &[x, one])
}

/// `x * x`; the real part of a complex square is computed as `(x - y)(x + y)`.
fn square(m: &mut Maker<'_>, x: Value) -> Option<Value> {
    if !matches!(m.tensor(x)?.element, Scalar::Complex(_)) {
        return m.op("multiply", &[x, x]);
    }
    let z = x;
    let (x, y) = (m.part("real", z)?, m.part("imag", z)?);
    let finite = m.predicate("is_finite", &[x], None)?;
    let (size_x, size_y) = (m.op("abs", &[x])?, m.op("abs", &[y])?);
    let equal = m.predicate("compare", &[size_x, size_y], Some("EQ"))?;
    let vanishes = m.op("and", &[finite, equal])?;
    let zero = m.number(x, 0.0)?;
    let (less, more) = (m.op("subtract", &[x, y])?, m.op("add", &[x, y])?);
    let product = m.op("multiply", &[less, more])?;
    let real = m.select(vanishes, zero, product)?;
    let two = m.number(x, 2.0)?;
    let product = m.op("multiply", &[x, y])?;
    let imaginary = m.op("multiply", &[two, product])?;
    m.complex(real, imaginary, z)
}

/// `atan2(sqrt((1 - x)(1 + x)), x)`
fn acos(m: &mut Maker<'_>, x: Value) -> Option<Value> {
    m.real(x)?;
    let one = m.number(x, 1.0)?;
    let (less, more) = (m.op("subtract", &[one, x])?, m.op("add", &[one, x])?);
    let product = m.op("multiply", &[less, more])?;
    let root = m.op("sqrt", &[product])?;
    m.op("atan2", &[root, x])
}

/// `log(2) + log(x)` if `x` is large, and else `log1p(sqrt(x - 1) (sqrt(x + 1) + sqrt(x - 1)))`.
fn acosh(m: &mut Maker<'_>, x: Value) -> Option<Value> {
    m.real(x)?;
    let (most, two) = (m.greatest(x)?, m.number(x, 2.0)?);
    let half = m.op("divide", &[most, two])?;
    let is_large = m.predicate("compare", &[x, half], Some("GE"))?;
    let (log_two, log_x) = (m.op("log", &[two])?, m.op("log", &[x])?);
    let large = m.op("add", &[log_two, log_x])?;
    let one = m.number(x, 1.0)?;
    let less = m.op("subtract", &[x, one])?;
    let root = m.op("sqrt", &[less])?;
    let more = m.op("add", &[x, one])?;
    let other = m.op("sqrt", &[more])?;
    let sum = m.op("add", &[other, root])?;
    let product = m.op("multiply", &[root, sum])?;
    let small = m.op("log_plus_one", &[product])?;
    m.select(is_large, large, small)
}

/// With `a = |x|`, the sign of `x` times `log(2) + log(a)` if `a` is large, and else
/// `log1p(a + a^2 / (1 + sqrt(1 + a^2)))`.
fn asinh(m: &mut Maker<'_>, x: Value) -> Option<Value> {
    m.real(x)?;
    let (sign, a) = (m.op("sign", &[x])?, m.op("abs", &[x])?);
    let most = m.greatest(x)?;
    let limit = m.op("sqrt", &[most])?;
    let is_large = m.predicate("compare", &[a, limit], Some("GE"))?;
    let two = m.number(x, 2.0)?;
    let (log_two, log_a) = (m.op("log", &[two])?, m.op("log", &[a])?);
    let large = m.op("add", &[log_two, log_a])?;
    let squared = m.op("multiply", &[a, a])?;
    let one = m.number(x, 1.0)?;
    let sum = m.op("add", &[one, squared])?;
    let root = m.op("sqrt", &[sum])?;
    let divisor = m.op("add", &[one, root])?;
    let ratio = m.op("divide", &[squared, divisor])?;
    let sum = m.op("add", &[a, ratio])?;
    let small = m.op("log_plus_one", &[sum])?;
    let size = m.select(is_large, large, small)?;
    m.op("multiply", &[sign, size])
}

/// `(log1p(x) - log1p(-x)) / 2`, and not a number beyond 1.
fn atanh(m: &mut Maker<'_>, x: Value) -> Option<Value> {
    m.real(x)?;
    let (size, one) = (m.op("abs", &[x])?, m.number(x, 1.0)?);
    let is_beyond = m.predicate("compare", &[size, one], Some("GT"))?;
    let nan = m.number(x, f64::NAN)?;
    let first = m.op("log_plus_one", &[x])?;
    let negative = m.op("negate", &[x])?;
    let second = m.op("log_plus_one", &[negative])?;
    let difference = m.op("subtract", &[first, second])?;
    let half = m.number(x, 0.5)?;
    let inside = m.op("multiply", &[difference, half])?;
    m.select(is_beyond, nan, inside)
}

/// Returns `exp(x + log(1/2))` and `exp(log(1/2) - x)`, which do not overflow early.
fn halves(m: &mut Maker<'_>, x: Value) -> Option<(Value, Value)> {
    m.real(x)?;
    let half = m.number(x, 0.5)?;
    let log_half = m.op("log", &[half])?;
    let more = m.op("add", &[x, log_half])?;
    let first = m.op("exponential", &[more])?;
    let less = m.op("subtract", &[log_half, x])?;
    Some((first, m.op("exponential", &[less])?))
}

fn cosh(m: &mut Maker<'_>, x: Value) -> Option<Value> {
    let (first, second) = halves(m, x)?;
    m.op("add", &[first, second])
}

/// With `e = expm1(x)`, `(e + e / (e + 1)) / 2` if `|x| < 1`.
fn sinh(m: &mut Maker<'_>, x: Value) -> Option<Value> {
    let (first, second) = halves(m, x)?;
    let large = m.op("subtract", &[first, second])?;
    let e = m.op("exponential_minus_one", &[x])?;
    let (one, half) = (m.number(x, 1.0)?, m.number(x, 0.5)?);
    let divisor = m.op("add", &[e, one])?;
    let ratio = m.op("divide", &[e, divisor])?;
    let sum = m.op("add", &[e, ratio])?;
    let small = m.op("multiply", &[half, sum])?;
    let size = m.op("abs", &[x])?;
    let is_small = m.predicate("compare", &[size, one], Some("LT"))?;
    m.select(is_small, small, large)
}

fn is_infinite(m: &mut Maker<'_>, x: Value) -> Option<Value> {
    m.real(x)?;
    let size = m.op("abs", &[x])?;
    is_positive_infinite(m, size)
}

fn is_positive_infinite(m: &mut Maker<'_>, x: Value) -> Option<Value> {
    m.real(x)?;
    let infinity = m.number(x, f64::INFINITY)?;
    m.predicate("compare", &[x, infinity], Some("EQ"))
}

fn is_negative_infinite(m: &mut Maker<'_>, x: Value) -> Option<Value> {
    m.real(x)?;
    let infinity = m.number(x, f64::NEG_INFINITY)?;
    m.predicate("compare", &[x, infinity], Some("EQ"))
}

/// A word of an enumeration of StableHLO.
pub(super) fn word(name: &str, value: &str) -> Attribute {
    structure(name, vec![("value".into(), Attribute::String(value.as_bytes().into()))])
}

/// An attribute of StableHLO with these parameters.
fn structure(name: &str, parameters: Attributes) -> Attribute {
    let (dialect, name) = ("stablehlo".into(), name.into());
    Attribute::Dialect(Box::new(DialectAttribute { dialect, name, parameters }))
}
