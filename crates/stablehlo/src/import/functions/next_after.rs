//! The next number from one towards another.

use super::maker::Maker;
use crate::mlir::{Scalar, Sign, Value};

/// Floats of one sign have the order of their bits as integers, so that the next one is a step of
/// these.
pub(super) fn next_after(m: &mut Maker<'_>, x: Value, y: Value) -> Option<Value> {
    m.real(x)?;
    let element = m.tensor(x)?.element.clone();
    let width = u32::try_from(m.width(x)?).ok()?.checked_mul(8)?;
    let bits = Scalar::Integer { bits: width, sign: Sign::Signless };
    let from = m.bitcast(x, &bits)?;
    let to = m.bitcast(y, &bits)?;
    let one = m.integer(from, 1)?;
    let sign_bit = 1i64.checked_shl(width.checked_sub(1)?)?;
    let (sign, rest) = (m.integer(from, sign_bit)?, m.integer(from, !sign_bit)?);
    let (size, size_of_y) = (m.op("and", &[from, rest])?, m.op("and", &[to, rest])?);
    let (sign_of_x, sign_of_y) = (m.op("and", &[from, sign])?, m.op("and", &[to, sign])?);
    let step = step(m, (size, sign_of_x), (size_of_y, sign_of_y), one)?;
    let stepped = m.op("add", &[from, step])?;
    let zero = m.integer(from, 0)?;
    let (is_zero, y_is_zero) = (m.compare(size, "EQ", zero)?, m.compare(size_of_y, "EQ", zero)?);
    let least = m.op("or", &[sign_of_y, one])?;
    let from_zero = m.select(y_is_zero, to, least)?;
    let value = m.select(is_zero, from_zero, stepped)?;
    let is_equal = m.compare(x, "EQ", y)?;
    let value = m.select(is_equal, to, value)?;
    let nan = m.number(x, f64::NAN)?;
    let nan = m.bitcast(nan, &bits)?;
    let (x_is_nan, y_is_nan) = (m.compare(x, "NE", x)?, m.compare(y, "NE", y)?);
    let is_nan = m.op("or", &[x_is_nan, y_is_nan])?;
    let value = m.select(is_nan, nan, value)?;
    m.bitcast(value, &element)
}

/// A step towards zero if the other number is nearer to it or has the other sign, else away from it.
fn step(
    m: &mut Maker<'_>,
    (size, sign): (Value, Value),
    (other_size, other_sign): (Value, Value),
    one: Value,
) -> Option<Value> {
    let differs = m.compare(sign, "NE", other_sign)?;
    let is_larger = m.compare(size, "GT", other_size)?;
    let is_inwards = m.op("or", &[is_larger, differs])?;
    let back = m.integer(one, -1)?;
    m.select(is_inwards, back, one)
}
