//! Numbers modulo the prime 2^61 - 1, with marks.
//!
//! A word holds a residue in its low 61 bits and three marks above them. A result has the marks
//! of all its operands together. [`UNSURE`]: the residue tells nothing about the program over
//! the reals (it passed a comparison, a quotient by zero, an infinity). [`OPAQUE`]: it passed a
//! function that has no meaning here and is replaced by a random one. [`ROUNDED`]: it depends
//! on a constant that is no simple number.

/// The prime.
pub(crate) const P: u64 = (1 << 61) - 1;
/// The residue tells nothing about reals.
pub(crate) const UNSURE: u64 = 1 << 63;
/// The residue passed a random function in place of a real one.
pub(crate) const OPAQUE: u64 = 1 << 62;
/// The residue depends on a constant that may represent a number near it.
pub(crate) const ROUNDED: u64 = 1 << 61;

const MARKS: u64 = UNSURE | OPAQUE | ROUNDED;
/// Stands for the infinity; minus the infinity is its negative.
pub(crate) const INFINITY: u64 = 0x0d1b_54a3_2d19_2ed0;
/// Represents NaN.
pub(crate) const NAN: u64 = 0x0e58_476d_1ce4_e5b9;
/// Stands for the quotient of one by zero.
const POLE: u64 = 0x14d0_49bb_1331_11eb;
/// Represents the imaginary unit, whose square is not -1 here: products of complex numbers are
/// marked.
const UNIT: u64 = 0x0bf5_8476_d1ce_4e5b;

/// Returns the residue without its marks.
pub(crate) const fn residue(a: u64) -> u64 {
    a & P
}

/// Returns the marks.
pub(crate) const fn marks(a: u64) -> u64 {
    a & MARKS
}

const fn reduced(a: u64) -> u64 {
    if a >= P { a - P } else { a }
}

const fn product(a: u64, b: u64) -> u64 {
    let product = (residue(a) as u128) * (residue(b) as u128);
    let (low, high) = ((product as u64) & P, (product >> 61) as u64);
    reduced(low + high)
}

pub(crate) const fn add(a: u64, b: u64) -> u64 {
    reduced(residue(a) + residue(b)) | marks(a | b)
}

pub(crate) const fn negate(a: u64) -> u64 {
    reduced(P - residue(a)) | marks(a)
}

pub(crate) const fn subtract(a: u64, b: u64) -> u64 {
    add(a, negate(b))
}

pub(crate) const fn multiply(a: u64, b: u64) -> u64 {
    product(a, b) | marks(a | b)
}

/// `a` to a whole power.
pub(crate) const fn power(a: u64, exponent: u64) -> u64 {
    let (mut base, mut left, mut result) = (residue(a), exponent, 1);
    while left > 0 {
        if left & 1 == 1 {
            result = product(result, base);
        }
        base = product(base, base);
        left >>= 1;
    }
    result | marks(a)
}

/// One through `a`; of zero, some element that is unsure.
pub(crate) const fn inverse(a: u64) -> u64 {
    if residue(a) == 0 { POLE | UNSURE | marks(a) } else { power(a, P - 2) }
}

pub(crate) const fn divide(a: u64, b: u64) -> u64 {
    multiply(a, inverse(b))
}

/// `a + i*b`.
pub(crate) const fn complex(a: u64, b: u64) -> u64 {
    add(a, multiply(UNIT, b))
}

/// Checks whether it is a square: half of all elements are, as half of the reals are.
const fn is_square(a: u64) -> bool {
    residue(power(a, (P - 1) / 2)) <= 1
}

/// Returns the root of a square; for other elements, the marked root of the negative. It keeps
/// products: `sqrt(a*b) = sqrt(a)*sqrt(b)`.
pub(crate) const fn root(a: u64) -> u64 {
    power(a, 1 << 59) | if is_square(a) { 0 } else { OPAQUE }
}

/// 1 for squares, -1 for others, 0 for zero: it keeps products as the sign does.
pub(crate) const fn sign(a: u64) -> u64 {
    power(a, (P - 1) / 2) | OPAQUE | marks(a)
}

/// Returns a whole number.
pub(crate) const fn integer(value: i64) -> u64 {
    let size = reduced((value.unsigned_abs() & P) + (value.unsigned_abs() >> 61));
    if value < 0 { negate(size) } else { size }
}

/// Returns a whole number without sign.
pub(crate) const fn unsigned(value: u64) -> u64 {
    reduced((value & P) + (value >> 61))
}

/// Returns the integer nearest to zero with this residue.
pub(crate) const fn signed(a: u64) -> i64 {
    let residue = residue(a);
    if residue > P / 2 { (residue as i64) - (P as i64) } else { residue as i64 }
}

/// Returns a whole power of two.
pub(crate) const fn power_of_two(exponent: i64) -> u64 {
    // 2^61 is 1.
    1 << exponent.rem_euclid(61)
}

/// Returns the key that orders elements, infinities at the ends. No order of a field agrees
/// with its sums, so results of comparisons are unsure.
pub(crate) const fn order(a: u64) -> i64 {
    match residue(a) {
        INFINITY => i64::MAX,
        b if b == negate(INFINITY) => i64::MIN,
        _ => signed(a),
    }
}

/// Returns the greater element: unsure, unless both are equal or one is the identity of a
/// maximum, minus infinity without a mark.
pub(crate) const fn maximum(a: u64, b: u64) -> u64 {
    extremum(a, b, order(a) >= order(b), negate(INFINITY))
}

/// Returns the smaller element: unsure, unless both are equal or one is the identity of a
/// minimum, infinity without a mark.
pub(crate) const fn minimum(a: u64, b: u64) -> u64 {
    extremum(a, b, order(a) <= order(b), INFINITY)
}

const fn extremum(a: u64, b: u64, first: bool, neutral: u64) -> u64 {
    if a == neutral {
        return b;
    }
    if b == neutral {
        return a;
    }
    // Two signs that are random here may agree by chance.
    let is_same = residue(a) == residue(b) && marks(a | b) & OPAQUE == 0;
    let order_decides = if is_same { 0 } else { UNSURE };
    (if first { a } else { b }) | marks(a | b) | order_decides
}

/// Mixes words into one (the finaliser of SplitMix64, word by word).
pub(crate) fn hash(words: impl IntoIterator<Item = u64>) -> u64 {
    words.into_iter().fold(0x9e37_79b9_7f4a_7c15, |state, word| {
        let mut z = (state ^ word).wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    })
}

/// Returns a random element, the same for the same words.
pub(crate) fn random(words: impl IntoIterator<Item = u64>) -> u64 {
    reduced(hash(words) >> 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> impl Iterator<Item = u64> {
        (0..50).map(|i| random([7, i]))
    }

    #[test]
    fn the_laws_of_a_field_hold() {
        for (a, (b, c)) in some().zip(some().skip(1).zip(some().skip(2))) {
            assert_eq!(add(a, negate(a)), 0);
            assert_eq!(multiply(a, inverse(a)), 1);
            assert_eq!(multiply(a, add(b, c)), add(multiply(a, b), multiply(a, c)));
            assert_eq!(add(add(a, b), c), add(a, add(b, c)));
            assert_eq!(divide(multiply(a, b), b), a);
        }
    }

    #[test]
    fn products_are_those_of_whole_numbers() {
        for (a, b) in some().zip(some().skip(3)) {
            let exact = u128::from(a) * u128::from(b) % u128::from(P);
            assert_eq!(u128::from(multiply(a, b)), exact);
        }
        assert_eq!(integer(-5), P - 5);
        assert_eq!(signed(integer(i64::from(i32::MIN))), i64::from(i32::MIN));
        assert_eq!(multiply(power_of_two(-3), 8), 1);
    }

    #[test]
    fn roots_keep_products_and_square_to_what_they_are_of() {
        for (a, b) in some().zip(some().skip(1)) {
            let product = residue(multiply(root(a), root(b)));
            assert_eq!(residue(root(multiply(a, b))), product);
            let square = multiply(root(a), root(a));
            assert_eq!(square == a, marks(root(a)) == 0);
            assert!(square == a || residue(square) == negate(a));
        }
        assert_eq!(root(0), 0);
    }

    #[test]
    fn marks_are_those_of_all_operands() {
        assert_eq!(add(1 | UNSURE, 2 | OPAQUE), 3 | UNSURE | OPAQUE);
        assert_eq!(marks(inverse(0)), UNSURE);
        assert_eq!(maximum(3, 5), 5 | UNSURE);
        assert_eq!(maximum(integer(-3), 0), UNSURE);
        assert_eq!(maximum(5, 5 | ROUNDED), 5 | ROUNDED);
        assert_eq!(maximum(5, 5 | OPAQUE), 5 | OPAQUE | UNSURE);
        assert_eq!(maximum(negate(INFINITY), 7), 7);
        assert_eq!(maximum(negate(INFINITY) | UNSURE, 7), 7 | UNSURE);
        assert_eq!(minimum(7, INFINITY), 7);
        assert_eq!(residue(maximum(negate(INFINITY), 7)), 7);
        assert_eq!(residue(minimum(INFINITY, 7)), 7);
    }
}
