//! The next number from one towards another.

use tilewright_ir::ElementType;

use super::expr::Expr;

/// Floats of one sign have the order of their bits as integers, so that the next one is a step of
/// these.
pub(super) fn next_after<'f>(x: Expr<'f>, y: Expr<'f>) -> Expr<'f> {
    let bits = match x.ty().storage_bits() {
        8 => ElementType::S8,
        16 => ElementType::S16,
        32 => ElementType::S32,
        _ => ElementType::S64,
    };
    let (from, to) = (x.bitcast(bits), y.bitcast(bits));
    let sign_bit = 1i64.checked_shl(bits.bits() - 1).unwrap_or(i64::MIN);
    let (sign, rest) = (from.integer(sign_bit), from.integer(!sign_bit));
    let (size, size_of_y) = (from.and(rest), to.and(rest));
    let (sign_of_x, sign_of_y) = (from.and(sign), to.and(sign));
    // A step towards zero if the other number is nearer to it or has the other sign, else away from it.
    let is_inwards = size.is_greater(size_of_y).or(sign_of_x.differs(sign_of_y));
    let (zero, one) = (from.integer(0), from.integer(1));
    let stepped = from + is_inwards.select(from.integer(-1), one);
    let from_zero = sign_of_y.or(one).but(size_of_y.is_equal(zero), to);
    let value = stepped.but(size.is_equal(zero), from_zero).but(x.is_equal(y), to);
    let is_nan = x.differs(x).or(y.differs(y));
    value.but(is_nan, x.number(f64::NAN).bitcast(bits)).bitcast(x.ty())
}
