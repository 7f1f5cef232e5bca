//! Inputs for a module's entry parameters, made from a seed.
//!
//! The same seed makes the same inputs on every machine. Every kind, parameter and
//! device has random numbers of its own, so that elements do not depend on the
//! parameters before them, nor those of one kind on those of another.
//!
//! If the uses of a parameter determine its range (an index, the operand of a root), its values
//! are in this range.

use half::{bf16, f16};
use num_complex::Complex;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use tilewright_ir::expand::plain;
use tilewright_ir::{
    ArrayLiteral, ArrayShape, Data, Dims, ElementType, Literal, Native, Shape, Verified,
};

use tilewright_ir::shape::checked_product;

use crate::devices::takes_parts;
use crate::limits::Limits;
use crate::ranges::{self, MOST_TURNS, Range};
use crate::value::num_bytes;

/// The kind of numbers that inputs are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InputKind {
    /// Floats: normally distributed. Integers: -100 to 100.
    Normal,
    /// Floats: normally distributed around 3, so that a mean is something.
    /// Integers: 100 to 120.
    Offset,
    /// Floats: evenly from -1 to 1. Integers: 0 to 7.
    Uniform,
    /// Few different numbers, so that many are equal: halves from -2 to 2.
    Ties,
    /// Floats: normally distributed with a deviation of 1/1024, so that small
    /// addends are something. Integers: 0 to 3.
    Small,
    /// Floats: normally distributed around a mean that is much larger than the
    /// deviation, another for each parameter: 1e4 to 1e6, 64 to 512 for those of 16
    /// bits. Integers: 1000 to 1020.
    Far,
    /// Floats: above 0, their logarithms normally distributed. Integers: 1 to 9.
    Positive,
    /// Zeros of both signs, denormals, numbers next to 1, small and large
    /// ones of both signs; the least and greatest integers.
    Edges,
    /// Like `Edges`, with infinities, NaN and the greatest finite numbers. Correct programs with
    /// sums in different order may differ on these.
    NonFinite,
}

impl InputKind {
    /// Returns what the numbers are, in words.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Normal => "normally distributed",
            Self::Offset => "normally distributed around 3",
            Self::Uniform => "from -1 to 1",
            Self::Ties => "few different numbers, so that many are equal",
            Self::Small => "next to 0",
            Self::Far => "around a mean that is much larger than the deviation",
            Self::Positive => "above 0, from small to large",
            Self::Edges => "zeros, denormals, small and large numbers of both signs",
            Self::NonFinite => "with infinities and NaN",
        }
    }

    /// Every kind.
    pub const ALL: &'static [Self] = &[
        Self::Normal,
        Self::Offset,
        Self::Uniform,
        Self::Ties,
        Self::Small,
        Self::Far,
        Self::Positive,
        Self::Edges,
        Self::NonFinite,
    ];

    /// Returns the name used in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Offset => "offset",
            Self::Uniform => "uniform",
            Self::Ties => "ties",
            Self::Small => "small",
            Self::Far => "far",
            Self::Positive => "positive",
            Self::Edges => "edges",
            Self::NonFinite => "non-finite",
        }
    }
}

/// Why inputs could not be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InputError {
    /// Values of this shape cannot be made.
    #[error("parameter {parameter} is {shape}, of which no input can be made")]
    Shape {
        /// The parameter's number.
        parameter: usize,
        /// Its shape.
        shape: String,
    },
    /// The inputs would take too much memory.
    #[error(
        "the inputs would need {needed} bytes; the limit is {limit} (raise `max_bytes`, on the command line `--max-bytes`)"
    )]
    Memory {
        /// Bytes of all inputs together.
        needed: u64,
        /// The limit.
        limit: u64,
    },
}

/// Inputs for the entry computation, within the default [`Limits`].
///
/// # Errors
/// Returns an error if a parameter has a shape without values (unbounded dims, opaque), or the
/// inputs are too large.
pub fn inputs_for(
    module: &Verified,
    seed: u64,
    kind: InputKind,
) -> Result<Vec<Literal>, InputError> {
    let mut all = RandomInputs::new(seed, kind).generate(module)?;
    Ok(all.pop().unwrap_or_default())
}

/// Random inputs for one or several devices. [`inputs_for`] is the common case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RandomInputs {
    seed: u64,
    kind: InputKind,
    limits: Limits,
    devices: usize,
}

impl RandomInputs {
    /// Inputs of a kind from a seed, for one device, within the default [`Limits`].
    pub fn new(seed: u64, kind: InputKind) -> Self {
        Self { seed, kind, limits: Limits::default(), devices: 1 }
    }

    /// The limits of the memory of all inputs together.
    #[must_use]
    pub fn limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Sets the number of devices, each with inputs of its own; the first has the inputs of a
    /// single device. A module before partitioning, whose calls take each device's part of
    /// whole arrays, has the same inputs on all devices.
    #[must_use]
    pub fn devices(self, devices: usize) -> Self {
        Self { devices, ..self }
    }

    /// Returns the inputs for the entry computation of a module, one list for each device.
    ///
    /// # Errors
    /// Returns the errors of [`inputs_for`].
    pub fn generate(self, module: &Verified) -> Result<Vec<Vec<Literal>>, InputError> {
        let Self { seed, kind, limits, devices } = self;
        let parameters =
            module.entry().map(|c| module.computation(c).parameters()).unwrap_or_default();
        let shapes: Vec<&Shape> = parameters.iter().map(|&p| module.shape(p)).collect();
        check_size(&shapes, &limits, devices)?;
        // The variance of a batch norm is not negative.
        let ranges = ranges::of_parameters(&plain(module));
        if takes_parts(module) {
            let same = inputs_from(&shapes, &ranges, Maker { seed, kind, stream: 0 })?;
            return Ok(vec![same; devices]);
        }
        let first_streams = (0..devices).zip((0u64..).step_by(1 << 32));
        let inputs = |(_, stream)| inputs_from(&shapes, &ranges, Maker { seed, kind, stream });
        first_streams.map(inputs).collect()
    }
}

/// Returns the inputs of one device, from its streams of random numbers.
fn inputs_from(
    shapes: &[&Shape],
    ranges: &[Vec<Range>],
    mut maker: Maker,
) -> Result<Vec<Literal>, InputError> {
    let values = shapes.iter().enumerate().map(|(parameter, shape)| {
        let bad_shape = || InputError::Shape { parameter, shape: shape.to_string() };
        let mut ranges = ranges.get(parameter).into_iter().flatten().copied();
        maker.make(shape, &mut ranges).ok_or_else(bad_shape)
    });
    values.collect()
}

fn check_size(shapes: &[&Shape], limits: &Limits, devices: usize) -> Result<(), InputError> {
    let leaves = shapes.iter().flat_map(|shape| shape.leaves()).filter_map(Shape::as_array);
    let bytes = leaves.map(|array| {
        let count = array.num_elements().and_then(|count| usize::try_from(count).ok());
        count.map_or(u64::MAX, |count| num_bytes(array.element_type, count))
    });
    let each = bytes.fold(0, u64::saturating_add);
    let needed = each.saturating_mul(u64::try_from(devices).unwrap_or(u64::MAX));
    if needed > limits.max_bytes {
        return Err(InputError::Memory { needed, limit: limits.max_bytes });
    }
    Ok(())
}

/// Makes values, one array after the other.
struct Maker {
    seed: u64,
    kind: InputKind,
    /// The random stream of the next array.
    stream: u64,
}

impl Maker {
    fn make(&mut self, shape: &Shape, ranges: &mut dyn Iterator<Item = Range>) -> Option<Literal> {
        match shape {
            Shape::Array(array) => {
                let range = ranges.next().unwrap_or_default();
                let mut source = Source::new(self.seed, self.kind, self.stream, range);
                self.stream += 1;
                make_array(array, &mut source).map(Literal::Array)
            }
            Shape::Tuple(elements) => {
                let elements = elements.iter().map(|element| self.make(element, ranges));
                elements.collect::<Option<_>>().map(Literal::Tuple)
            }
            Shape::Token => {
                ranges.next();
                Some(Literal::Token)
            }
            Shape::Buffer(_) | Shape::Opaque => None,
        }
    }
}

/// Makes an array. Each dim known only at run time has some size up to its bound, the same for
/// all dims with one bound, so that arrays that belong together fit.
fn make_array(shape: &ArrayShape, source: &mut Source) -> Option<ArrayLiteral> {
    let size = |(dim, &bound): (usize, &i64)| {
        if shape.dim_is_dynamic(dim) { source.size_up_to(bound) } else { Some(bound) }
    };
    let dims = shape.dims().iter().enumerate().map(size).collect::<Option<Dims>>()?;
    let count = usize::try_from(checked_product(&dims)?).ok()?;
    let data = source.elements(shape.element_type, count);
    ArrayLiteral::new(shape.element_type, dims, data).ok()
}

/// Random numbers of a kind.
struct Source {
    rng: ChaCha8Rng,
    kind: InputKind,
    /// The range of the elements.
    range: Range,
    /// The mean of floats far from zero, as a fraction of its maximum.
    far: f64,
    /// The difference between bounded dims and their bounds, modulo the possible differences.
    short: u64,
}

/// An odd number whose multiples are spread evenly, to tell kinds apart.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

impl Source {
    fn new(seed: u64, kind: InputKind, stream: u64, range: Range) -> Self {
        let of_kind = seed.wrapping_add((kind as u64).wrapping_mul(GOLDEN));
        let mut rng = ChaCha8Rng::seed_from_u64(of_kind);
        rng.set_stream(stream);
        // The first inputs of a kind are as large as can be.
        let short = seed.wrapping_mul(InputKind::ALL.len() as u64).wrapping_add(kind as u64);
        let mut source = Self { rng, kind, range, far: 0.0, short };
        if kind == InputKind::Far {
            source.far = source.unit();
        }
        source
    }

    /// Returns the size of a dim with this bound; `None` if it is not known.
    fn size_up_to(&self, bound: i64) -> Option<i64> {
        let sizes = u64::try_from(bound).ok()?.checked_add(1)?;
        bound.checked_sub(i64::try_from(self.short.checked_rem(sizes)?).ok()?)
    }

    fn many<T: Native>(&mut self, count: usize, mut one: impl FnMut(&mut Self) -> T) -> Data {
        T::wrap((0..count).map(|_| one(self)).collect())
    }

    fn elements(&mut self, element_type: ElementType, count: usize) -> Data {
        let bits = element_type.bits();
        match Data::zeros(element_type, 0) {
            Data::Pred(_) => self.many(count, |s| s.rng.next_u32() & 1 == 1),
            Data::S8(_) => self.many(count, |s| s.integer(bits, true) as i8),
            Data::S16(_) => self.many(count, |s| s.integer(bits, true) as i16),
            Data::S32(_) => self.many(count, |s| s.integer(bits, true) as i32),
            Data::S64(_) => self.many(count, |s| s.integer(bits, true) as i64),
            // Small floats are any bits that are theirs.
            Data::U8(_) if element_type.is_float() => {
                self.many(count, |s| s.below(1 << bits) as u8)
            }
            Data::U8(_) => self.many(count, |s| s.integer(bits, false) as u8),
            Data::U16(_) => self.many(count, |s| s.integer(bits, false) as u16),
            Data::U32(_) => self.many(count, |s| s.integer(bits, false) as u32),
            Data::U64(_) => self.many(count, |s| s.integer(bits, false) as u64),
            Data::F16(_) => self.many(count, |s| f16::from_f64(s.float(&F16))),
            Data::BF16(_) => self.many(count, |s| bf16::from_f64(s.float(&BF16))),
            Data::F32(_) => self.many(count, |s| s.float(&F32) as f32),
            Data::F64(_) => self.many(count, |s| s.float(&F64)),
            Data::C64(_) => {
                self.many(count, |s| Complex::new(s.float(&F32) as f32, s.float(&F32) as f32))
            }
            Data::C128(_) => self.many(count, |s| Complex::new(s.float(&F64), s.float(&F64))),
        }
    }

    /// Returns a number from 0 to `limit - 1`; the slight bias does not matter here.
    fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.rng.next_u64()) * u128::from(limit)) >> 64) as u64
    }

    /// Returns a number from 0 to 1, without 0.
    fn unit(&mut self) -> f64 {
        ((self.rng.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    fn integer(&mut self, bits: u32, signed: bool) -> i128 {
        let greatest = (1i128 << (bits - u32::from(signed))) - 1;
        let least = if signed { -greatest - 1 } else { 0 };
        let drawn = match self.kind {
            InputKind::Normal => i128::from(self.below(201)) - if signed { 100 } else { 0 },
            InputKind::Offset => i128::from(self.below(21)) + 100,
            InputKind::Uniform => i128::from(self.below(8)),
            InputKind::Ties => i128::from(self.below(3)) - i128::from(signed),
            InputKind::Small => i128::from(self.below(4)),
            InputKind::Far => i128::from(self.below(21)) + 1000,
            InputKind::Positive => i128::from(self.below(9)) + 1,
            InputKind::Edges | InputKind::NonFinite => {
                let choices = [0, 1, -1, 2, greatest, greatest - 1, least, least + 1];
                choices[self.below(8) as usize]
            }
        };
        self.in_range(drawn).clamp(least, greatest)
    }

    /// Returns an integer in the range that is known; of indices that are next to each other a
    /// few lie outside, and of those at the limits of their type all may.
    fn in_range(&mut self, drawn: i128) -> i128 {
        match (self.range, self.kind) {
            (Range::Turns, _) => i128::from(self.below(MOST_TURNS)),
            (Range::Sizes(bound), _) => i128::from(self.below(bound.saturating_add(1))),
            (Range::Any, _) | (_, InputKind::NonFinite) => drawn,
            (Range::NotNegative, _) => drawn.abs(),
            (Range::Below(_), InputKind::Edges) => drawn,
            (Range::Below(bound), InputKind::Ties) => {
                i128::from(self.below(bound.saturating_add(2))) - 1
            }
            (Range::Below(bound), _) => i128::from(self.below(bound)),
        }
    }

    fn float(&mut self, limits: &FloatLimits) -> f64 {
        let drawn = match self.kind {
            InputKind::Normal => self.normal(),
            InputKind::Offset => 3.0 + self.normal(),
            InputKind::Uniform => 2.0 * self.unit() - 1.0,
            InputKind::Ties => self.below(9) as f64 / 2.0 - 2.0,
            InputKind::Small => self.normal() / 1024.0,
            InputKind::Far => limits.mean(self.far) + self.normal(),
            InputKind::Positive => libm::exp(self.normal()),
            InputKind::Edges => self.edge(limits, 8),
            InputKind::NonFinite => return self.edge(limits, 11),
        };
        match self.range {
            Range::Any | Range::Turns | Range::Sizes(_) => drawn,
            Range::NotNegative => drawn.abs(),
            Range::Below(_) if self.kind == InputKind::Edges => drawn,
            Range::Below(bound) => self.below(bound) as f64,
        }
    }

    /// Box and Muller's method.
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * libm::log(self.unit())).sqrt();
        radius * libm::cos(std::f64::consts::TAU * self.unit())
    }

    fn edge(&mut self, limits: &FloatLimits, choices: u64) -> f64 {
        let size = match self.below(choices) {
            0 => 0.0,
            1 => 1.0,
            2 => 1.0 + limits.step,
            3 => limits.least,
            4 => limits.least * (1u32 << limits.denormal_bits) as f64 / 2.0,
            5 => limits.least * (1u32 << limits.denormal_bits) as f64,
            6 => limits.large,
            7 => return 2.0 * self.unit() - 1.0,
            8 => limits.greatest,
            9 => f64::INFINITY,
            _ => f64::NAN,
        };
        if self.rng.next_u32() & 1 == 1 { -size } else { size }
    }
}

/// Notable numbers of a float type.
struct FloatLimits {
    /// From 1 to the next number.
    step: f64,
    /// The least positive number.
    least: f64,
    /// The number of doublings by which it is below the least normal number.
    denormal_bits: u32,
    /// A number whose square, summed a thousand times, is still finite.
    large: f64,
    greatest: f64,
    /// The least and the greatest mean of numbers far from zero.
    far: [f64; 2],
}

impl FloatLimits {
    /// Returns a mean far from zero; `at` runs from 0 to 1.
    fn mean(&self, at: f64) -> f64 {
        let [least, greatest] = self.far;
        least * libm::pow(greatest / least, at)
    }
}

const FAR: [f64; 2] = [1e4, 1e6];
const FAR_NARROW: [f64; 2] = [64.0, 512.0];

const F16: FloatLimits = FloatLimits {
    step: 1.0 / 1024.0,
    least: 5.960_464_477_539_063e-8,
    denormal_bits: 10,
    large: 7.0,
    greatest: 65504.0,
    far: FAR_NARROW,
};
const BF16: FloatLimits = FloatLimits {
    step: 1.0 / 128.0,
    least: 9.183_549_615_799_121e-41,
    denormal_bits: 7,
    large: 1e8,
    greatest: 3.389_531_389_251_535_5e38,
    far: FAR_NARROW,
};
const F32: FloatLimits = FloatLimits {
    step: f32::EPSILON as f64,
    least: 1.401_298_464_324_817e-45,
    denormal_bits: 23,
    large: 1e8,
    greatest: f32::MAX as f64,
    far: FAR,
};
const F64: FloatLimits = FloatLimits {
    step: f64::EPSILON,
    least: 5e-324,
    // 2^52 does not fit its use, so a smaller denormal is taken.
    denormal_bits: 30,
    large: 1e100,
    greatest: f64::MAX,
    far: FAR,
};
