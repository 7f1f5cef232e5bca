//! Measures the distance of two values and decides whether it is small enough.

use half::{bf16, f16};
use num_complex::Complex;
use tilewright_ir::small_float::{Format, Value};
use tilewright_ir::{
    ArrayLiteral, Data, Dims, ElementType, InstId, Literal, Module, Opcode, Shape,
};

use crate::rounding::{Inexact, unit};
use crate::value::with_data;

/// The distance up to which two elements count as equal.
///
/// Elements are equal if they are within `ulps` of each other, or differ by no
/// more than `absolute` and `of_element` times the expected one, or no more than `relative` times the larger of `floor` and the largest finite
/// magnitude among the expected elements of the array. NaN equals NaN and an
/// infinity itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// Allowed difference as a fraction of the array's largest magnitude.
    pub relative: f64,
    /// The least magnitude that relative differences refer to: a result that cancels to almost
    /// nothing is as inexact as its operands.
    pub floor: f64,
    /// Allowed difference in units in the last place of the element itself;
    /// for integers, in ones.
    pub ulps: u64,
    /// Allowed difference as a fraction of the expected element itself.
    pub of_element: f64,
    /// The allowed difference for all elements; it is added to the last.
    pub absolute: f64,
    /// Whether zeros of different signs differ.
    pub signed_zeros: bool,
}

impl Tolerance {
    /// Only equal values, where zeros of both signs are equal.
    pub const EXACT: Self = Self {
        relative: 0.0,
        floor: 0.0,
        ulps: 0,
        of_element: 0.0,
        absolute: 0.0,
        signed_zeros: false,
    };

    /// The tolerance for two correct programs, which may differ by rounding and by the order
    /// of sums. Everything but floats must be equal.
    ///
    /// | type | relative | ulps |
    /// |---|---|---|
    /// | `f64`, `c128` | 1e-11 | 8 |
    /// | `f32`, `c64` | 3e-5 | 8 |
    /// | `f16` | 4e-3 | 4 |
    /// | `bf16` | 2e-2 | 2 |
    ///
    /// The floor is 1, so that results that are zero but for rounding pass.
    pub fn of(element_type: ElementType) -> Self {
        let (relative, ulps) = match element_type {
            ElementType::F64 | ElementType::C128 => (1e-11, 8),
            ElementType::F32 | ElementType::C64 => (3e-5, 8),
            ElementType::F16 => (4e-3, 4),
            ElementType::BF16 => (2e-2, 2),
            _ => return Self::EXACT,
        };
        Self { relative, floor: 1.0, ulps, ..Self::EXACT }
    }

    /// The tolerance for two correct programs after the roundings on the way to a result: 6
    /// times the combined error of the roundings, or two units in the last place of the coarsest
    /// type. Everything but floats must be equal.
    pub fn after(element_type: ElementType, inexact: Inexact) -> Self {
        let usual = Self::of(element_type);
        if usual == Self::EXACT {
            return usual;
        }
        let unit = unit(element_type);
        let relative = (SPREAD * inexact.variance.sqrt().max(unit)).min(MOST);
        // A unit in the last place is twice the largest rounding error.
        let coarse = (2.0 * inexact.coarsest.min(MOST / 4.0) / unit) as u64;
        let ulps = if inexact.coarsest > unit { usual.ulps.max(coarse) } else { usual.ulps };
        Self { relative, ulps, ..usual }
    }
}

/// The factor by which two programs may be further apart than random roundings usually leave
/// them: the largest of ten million deviates that far.
const SPREAD: f64 = 6.0;

/// The most that may be put down to rounding, as a fraction.
const MOST: f64 = 1.0 / 16.0;

/// The [`Tolerance`]s for a module: no float result is more exact than the narrowest float that
/// its computation rounded to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerances {
    /// The largest relative tolerance of the float types that the module
    /// rounds to.
    relative: f64,
}

impl Tolerances {
    /// The tolerances for results of a module.
    pub fn of_module(module: &Module) -> Self {
        let mut relative: f64 = 0.0;
        for &computation in module.computations() {
            for id in module.instructions(computation).filter(|&id| rounds(module, id)) {
                let arrays = module.shape(id).leaves().into_iter().filter_map(Shape::as_array);
                let types = arrays.map(|array| Tolerance::of(array.element_type).relative);
                relative = types.fold(relative, f64::max);
            }
        }
        Self { relative }
    }

    /// Returns the tolerance for results of a type.
    pub fn of(&self, element_type: ElementType) -> Tolerance {
        let tolerance = Tolerance::of(element_type);
        if tolerance == Tolerance::EXACT {
            return tolerance;
        }
        Tolerance { relative: tolerance.relative.max(self.relative), ..tolerance }
    }
}

/// Checks whether an instruction computes elements anew, rather than moving them.
fn rounds(module: &Module, id: InstId) -> bool {
    let opcode = module.opcode(id);
    !opcode.family().moves_elements_only() && opcode != Opcode::Select
}

/// An element that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The index in its array.
    pub index: Dims,
    /// The expected value, as text.
    pub expected: String,
    /// The actual value, as text.
    pub actual: String,
}

/// The outcome of comparing one array of a value.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The array: its number among the value's leaves, depth first.
    pub index: usize,
    /// Whether all elements are close enough.
    pub equal: bool,
    /// The largest difference between finite elements; infinite where one is
    /// finite and the other is not.
    pub max_abs: f64,
    /// The largest difference in units in the last place (for integers: in
    /// ones; `u64::MAX` where one is NaN and the other is not).
    pub max_ulp: u64,
    /// The largest finite magnitude among the expected elements.
    pub largest: f64,
    /// The first element that is not close enough.
    pub at: Option<Difference>,
}

/// Why two values cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompareError {
    /// One has more arrays than the other.
    #[error("{expected} arrays were expected, but there are {actual}")]
    Count {
        /// Leaves of the expected value.
        expected: usize,
        /// Leaves of the other.
        actual: usize,
    },
    /// Two arrays differ in shape.
    #[error("array {index} was expected to be {expected}, but is {actual}")]
    Shape {
        /// The number of the leaf.
        index: usize,
        /// The shape expected.
        expected: String,
        /// The shape found.
        actual: String,
    },
    /// A constant whose value the text left out.
    #[error("array {index} has no value to compare: it was left out (`{{...}}`)")]
    Elided {
        /// The number of the leaf.
        index: usize,
    },
}

/// Compares two values leaf by leaf, with the [`Tolerance`] for each type.
///
/// # Errors
/// Returns an error if their shapes differ, or one of them has no value.
pub fn compare(
    expected: &Literal,
    actual: &Literal,
    tolerance: impl Fn(ElementType) -> Tolerance,
) -> Result<Vec<Comparison>, CompareError> {
    Slack::default().compare(expected, actual, |_, element_type| tolerance(element_type))
}

fn compare_arrays(
    index: usize,
    expected: &ArrayLiteral,
    actual: &ArrayLiteral,
    tolerance: Tolerance,
    slack: &[f64],
) -> Comparison {
    if let Some(format) = Format::of(expected.element_type())
        && let (Data::U8(expected), Data::U8(bits)) = (expected.data(), actual.data())
    {
        let small = |&bits: &u8| Small { format, bits };
        let expected: Vec<Small> = expected.iter().map(small).collect();
        let found: Vec<Small> = bits.iter().map(small).collect();
        return comparison(index, actual, Worst::of(&expected, &found, tolerance, slack));
    }
    let worst = with_data!(expected.data(), expected => match actual.data().as_slice() {
        Some(actual) => Worst::of(expected, actual, tolerance, slack),
        None => Worst { max_abs: f64::INFINITY, max_ulp: u64::MAX, largest: 0.0, at: None },
    });
    comparison(index, actual, worst)
}

fn comparison(index: usize, actual: &ArrayLiteral, worst: Worst) -> Comparison {
    Comparison {
        index,
        equal: worst.at.is_none(),
        max_abs: worst.max_abs,
        max_ulp: worst.max_ulp,
        largest: worst.largest,
        at: worst.at.map(|(place, expected, actual_element)| Difference {
            index: position(place, actual.dims()),
            expected,
            actual: actual_element,
        }),
    }
}

/// Returns the index of the element at a place of a row-major array.
fn position(mut place: usize, dims: &[i64]) -> Dims {
    let mut index: Dims = dims.into();
    for (slot, &size) in index.iter_mut().zip(dims).rev() {
        let size = usize::try_from(size).unwrap_or(1).max(1);
        *slot = i64::try_from(place % size).unwrap_or(0);
        place /= size;
    }
    index
}

/// The additional difference allowed for each element: the effect of rounding on it in the same
/// program.
#[derive(Clone, Debug, Default)]
pub struct Slack {
    /// For each array of a value, for each element.
    leaves: Vec<Vec<f64>>,
}

impl Slack {
    /// Like [`compare()`], with the tolerance for each array by its number and type, plus this
    /// slack for each element.
    ///
    /// # Errors
    /// Returns an error if their shapes differ, or one of them has no value.
    pub fn compare(
        &self,
        expected: &Literal,
        actual: &Literal,
        tolerance: impl Fn(usize, ElementType) -> Tolerance,
    ) -> Result<Vec<Comparison>, CompareError> {
        let (expected, actual) = (expected.leaves(), actual.leaves());
        if expected.len() != actual.len() {
            return Err(CompareError::Count { expected: expected.len(), actual: actual.len() });
        }
        let mut comparisons = Vec::with_capacity(expected.len());
        for (index, (expected, actual)) in expected.into_iter().zip(actual).enumerate() {
            let mismatch = || {
                let (expected, actual) = (expected.shape().to_string(), actual.shape().to_string());
                CompareError::Shape { index, expected, actual }
            };
            if !expected.shape().compatible(&actual.shape()) {
                return Err(mismatch());
            }
            comparisons.push(match (expected, actual) {
                (Literal::Array(expected), Literal::Array(actual)) => {
                    let tolerance = tolerance(index, expected.element_type());
                    compare_arrays(index, expected, actual, tolerance, self.of(index))
                }
                (Literal::Token, Literal::Token) => Comparison {
                    index,
                    equal: true,
                    max_abs: 0.0,
                    max_ulp: 0,
                    largest: 0.0,
                    at: None,
                },
                (Literal::Elided(_), _) | (_, Literal::Elided(_)) => {
                    return Err(CompareError::Elided { index });
                }
                // Leaves are no tuples, and a token has no array's shape.
                (Literal::Array(_) | Literal::Token | Literal::Tuple(_), _) => {
                    return Err(mismatch());
                }
            });
        }
        Ok(comparisons)
    }

    /// Widens it to `factor` times the distance between two results of one
    /// program. A float that stayed where it was by luck, such as a zero that is the difference of equal numbers,
    /// gets `least` times what half of those that moved have, if these are no exceptions in their array.
    pub fn widen(&mut self, expected: &Literal, moved: &Literal, factor: f64, least: f64) {
        let (expected, moved) = (expected.leaves(), moved.leaves());
        self.leaves.resize_with(expected.len(), Vec::new);
        let pairs = expected.into_iter().zip(moved);
        for (slack, (expected, moved)) in self.leaves.iter_mut().zip(pairs) {
            if let (Literal::Array(expected), Literal::Array(moved)) = (expected, moved) {
                let gaps = gaps(expected, moved);
                slack.resize(gaps.len(), 0.0);
                for (slack, gap) in slack.iter_mut().zip(gaps) {
                    *slack = slack.max(factor * gap);
                }
                if expected.element_type().is_float() {
                    raise(slack, least);
                }
            }
        }
    }

    /// Excuses the differences of elements for which `pardoned` returns true. Its arguments are
    /// the numbers of the array and the element, and whether both are finite.
    pub fn pardon(
        &mut self,
        expected: &Literal,
        actual: &Literal,
        pardoned: impl Fn(usize, usize, bool) -> bool,
    ) {
        let (expected, actual) = (expected.leaves(), actual.leaves());
        self.leaves.resize_with(expected.len(), Vec::new);
        let pairs = expected.into_iter().zip(actual);
        for (leaf, (slack, (expected, actual))) in self.leaves.iter_mut().zip(pairs).enumerate() {
            if let (Literal::Array(expected), Literal::Array(actual)) = (expected, actual) {
                let gaps = gaps(expected, actual);
                slack.resize(gaps.len(), 0.0);
                for (place, (slack, gap)) in slack.iter_mut().zip(gaps).enumerate() {
                    if gap > *slack && pardoned(leaf, place, gap.is_finite()) {
                        *slack = gap;
                    }
                }
            }
        }
    }

    fn of(&self, leaf: usize) -> &[f64] {
        self.leaves.get(leaf).map_or(&[], Vec::as_slice)
    }
}

/// If at least one element in so many moves, the other elements of its array might have moved, too.
const MOVING: usize = 8;

/// Raises each entry to at least `least` times the median of the entries above zero, if one in [`MOVING`] is.
fn raise(slack: &mut [f64], least: f64) {
    let mut moved: Vec<f64> = slack.iter().copied().filter(|&slack| slack > 0.0).collect();
    let middle = moved.len() / 2;
    if slack.len() < 2 || moved.len() * MOVING < slack.len() || moved.is_empty() {
        return;
    }
    let (_, median, _) = moved.select_nth_unstable_by(middle, f64::total_cmp);
    let least = *median * least;
    if least.is_finite() {
        slack.iter_mut().for_each(|slack| *slack = slack.max(least));
    }
}

/// Whether each element is a finite number; of types that have no others, all are.
pub(crate) fn is_finite(array: &ArrayLiteral) -> Vec<bool> {
    are_finite(array.data(), array.element_type())
}

/// Returns for each element of a type whether it is finite.
pub(crate) fn are_finite(data: &Data, element_type: ElementType) -> Vec<bool> {
    if let Some(format) = Format::of(element_type)
        && let Data::U8(bits) = data
    {
        return bits.iter().map(|&bits| Small { format, bits }.magnitude().is_finite()).collect();
    }
    with_data!(data, values => values.iter().map(|v| v.magnitude().is_finite()).collect())
}

/// Returns the distance between each two elements.
fn gaps(a: &ArrayLiteral, b: &ArrayLiteral) -> Vec<f64> {
    with_data!(a.data(), a => match b.data().as_slice() {
        Some(b) => a.iter().zip(b).map(|(&a, &b)| Distance::gap(a, b).abs).collect(),
        None => Vec::new(),
    })
}

struct Worst {
    max_abs: f64,
    max_ulp: u64,
    largest: f64,
    at: Option<(usize, String, String)>,
}

impl Worst {
    fn of<T: Distance>(expected: &[T], actual: &[T], tolerance: Tolerance, slack: &[f64]) -> Self {
        let magnitudes = expected.iter().map(|e| e.magnitude());
        let largest = magnitudes.filter(|m| m.is_finite()).fold(0.0, f64::max);
        let allowed = tolerance.relative * largest.max(tolerance.floor);
        let mut worst = Self { max_abs: 0.0, max_ulp: 0, largest, at: None };
        for (place, (&e, &a)) in expected.iter().zip(actual).enumerate() {
            let gap = e.gap(a);
            worst.max_abs = worst.max_abs.max(gap.abs);
            worst.max_ulp = worst.max_ulp.max(gap.ulp);
            let close = gap.abs <= allowed
                || gap.abs <= tolerance.absolute + tolerance.of_element * e.magnitude()
                || gap.ulp <= tolerance.ulps
                || slack.get(place).is_some_and(|&slack| gap.abs <= slack);
            let close = close && !(tolerance.signed_zeros && gap.zero_signs);
            if !close && worst.at.is_none() {
                worst.at = Some((place, e.text(), a.text()));
            }
        }
        worst
    }
}

/// The distance of two elements.
#[derive(Clone, Copy)]
struct Gap {
    abs: f64,
    ulp: u64,
    /// They are zeros of different signs.
    zero_signs: bool,
}

impl Gap {
    const NONE: Self = Self { abs: 0.0, ulp: 0, zero_signs: false };
    const WIDEST: Self = Self { abs: f64::INFINITY, ulp: u64::MAX, zero_signs: false };

    fn and(self, other: Self) -> Self {
        Self {
            abs: self.abs.max(other.abs),
            ulp: self.ulp.max(other.ulp),
            zero_signs: self.zero_signs || other.zero_signs,
        }
    }
}

/// An element type with a distance.
trait Distance: Copy {
    fn gap(self, other: Self) -> Gap;
    fn magnitude(self) -> f64;
    fn text(self) -> String;
}

macro_rules! integers {
    ($($type:ident)*) => {$(
        impl Distance for $type {
            fn gap(self, other: Self) -> Gap {
                let difference = self.abs_diff(other);
                Gap { abs: difference as f64, ulp: u64::from(difference), zero_signs: false }
            }
            fn magnitude(self) -> f64 {
                (self as f64).abs()
            }
            fn text(self) -> String {
                self.to_string()
            }
        }
    )*};
}

integers!(i8 i16 i32 i64 u8 u16 u32 u64);

impl Distance for bool {
    fn gap(self, other: Self) -> Gap {
        if self == other { Gap::NONE } else { Gap { abs: 1.0, ulp: 1, zero_signs: false } }
    }
    fn magnitude(self) -> f64 {
        f64::from(u8::from(self))
    }
    fn text(self) -> String {
        self.to_string()
    }
}

macro_rules! floats {
    ($($type:ident $sign:literal;)*) => {$(
        impl Distance for $type {
            fn gap(self, other: Self) -> Gap {
                if self.is_nan() || other.is_nan() {
                    return if self.is_nan() == other.is_nan() { Gap::NONE } else { Gap::WIDEST };
                }
                if self == other {
                    let zero_signs = self.is_sign_negative() != other.is_sign_negative();
                    return Gap { zero_signs, ..Gap::NONE };
                }
                // Numbers in order; negative ones count down from zero.
                let rank = |x: Self| {
                    let size = i128::from(x.to_bits() & !$sign);
                    if x.is_sign_negative() { -size } else { size }
                };
                let ulp = u64::try_from(rank(self).abs_diff(rank(other))).unwrap_or(u64::MAX);
                let abs = (f64::from(self) - f64::from(other)).abs();
                Gap { abs, ulp, zero_signs: false }
            }
            fn magnitude(self) -> f64 {
                f64::from(self).abs()
            }
            fn text(self) -> String {
                format!("{self:?}")
            }
        }
    )*};
}

floats! {
    f16 0x8000;
    bf16 0x8000;
    f32 0x8000_0000;
    f64 0x8000_0000_0000_0000;
}

/// A float of 8 bits and fewer.
#[derive(Clone, Copy)]
struct Small {
    format: Format,
    bits: u8,
}

impl Small {
    /// `None` for NaN.
    fn value(self) -> Option<f64> {
        match self.format.decode(u16::from(self.bits)) {
            Value::Real(value) => Some(value),
            Value::Nan { .. } => None,
        }
    }

    /// Numbers in order; both zeros have the same place.
    fn rank(self) -> i32 {
        let key = self.format.total_key(u16::from(self.bits));
        if key < 0 { key + 1 } else { key }
    }
}

impl Distance for Small {
    fn gap(self, other: Self) -> Gap {
        let (Some(a), Some(b)) = (self.value(), other.value()) else {
            let same = self.value().is_none() && other.value().is_none();
            return if same { Gap::NONE } else { Gap::WIDEST };
        };
        if a == b {
            return Gap { zero_signs: a.is_sign_negative() != b.is_sign_negative(), ..Gap::NONE };
        }
        let ulp = u64::from(self.rank().abs_diff(other.rank()));
        Gap { abs: (a - b).abs(), ulp, zero_signs: false }
    }
    fn magnitude(self) -> f64 {
        self.value().map_or(f64::NAN, f64::abs)
    }
    fn text(self) -> String {
        self.value().map_or_else(|| "NaN".to_owned(), |value| format!("{value:?}"))
    }
}

impl<T: Distance> Distance for Complex<T> {
    fn gap(self, other: Self) -> Gap {
        self.re.gap(other.re).and(self.im.gap(other.im))
    }
    fn magnitude(self) -> f64 {
        let (re, im) = (self.re.magnitude(), self.im.magnitude());
        if re.is_finite() && im.is_finite() { re.max(im) } else { f64::INFINITY }
    }
    fn text(self) -> String {
        format!("({}, {})", self.re.text(), self.im.text())
    }
}
