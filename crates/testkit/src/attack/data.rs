//! Inputs that are hard on rounding.

use tilewright_interp::InputError;
use tilewright_ir::{ArrayLiteral, ElementType, InstId, Literal, Module, Verified};

use crate::generate::graph::data;
use crate::generate::rng::Rng;

/// Which kinds of numbers the inputs of a program are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Profile {
    /// Normal numbers and few different ones: what `--fast-math` is for.
    Tame,
    /// Images far from zero whose elements differ by little.
    Far,
    /// Halves from -2 to 2 or zeros of both signs, so that many are equal.
    Ties,
    /// Every input at a scale of its own, from `1e-30` to `1e30` (less in narrow types).
    Scales,
    /// All above 7, or all below -7.
    OneSided,
    /// Every input of any of these kinds.
    Mixed,
    /// As `Mixed`, with infinities, NaN and the limits of types.
    Special,
}

impl Profile {
    /// Every profile.
    pub const ALL: &'static [Self] = &[
        Self::Tame,
        Self::Far,
        Self::Ties,
        Self::Scales,
        Self::OneSided,
        Self::Mixed,
        Self::Special,
    ];

    /// The profile that the program of a seed is tried with.
    pub fn of_seed(seed: u64) -> Self {
        Rng::new(seed ^ 0xda7a).pick(Self::ALL).copied().unwrap_or(Self::Tame)
    }

    /// Returns the name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tame => "tame",
            Self::Far => "far",
            Self::Ties => "ties",
            Self::Scales => "scales",
            Self::OneSided => "one-sided",
            Self::Mixed => "mixed",
            Self::Special => "special",
        }
    }
}

/// The distribution of one input.
#[derive(Clone, Copy, Debug)]
enum DataDistribution {
    Normal,
    Ties,
    /// Around a number, with a deviation.
    Around(f64, f64),
    /// Normal numbers times a power of ten.
    Scaled(f64),
    /// Numbers of any size between limits, of both signs.
    AnySize,
    Subnormal,
    /// Zeros of both signs, and -1.
    Zeros,
    Above7,
    Below7,
    /// One number.
    Same,
    /// With infinities, NaN or the limits of the type.
    Special,
}

/// The common properties of one program's inputs.
#[derive(Clone, Copy)]
struct DataPlan {
    profile: Profile,
    /// Whether scales are so far apart that products of two inputs overflow.
    extreme: bool,
}

/// Returns the inputs of a module's entry for a profile and a seed: the same on every machine,
/// each with a stream of random numbers of its own.
///
/// # Errors
/// Returns an error if a parameter is no static array.
pub fn inputs(module: &Verified, profile: Profile, seed: u64) -> Result<Vec<Literal>, InputError> {
    let parameters = module.entry().map(|c| module.computation(c).parameters()).unwrap_or_default();
    let plan = DataPlan { profile, extreme: Rng::new(seed ^ 0x5ca1e).chance(60) };
    let made = parameters.iter().enumerate().map(|(number, &id)| {
        let mut rng = Rng::new(seed.wrapping_mul(1000).wrapping_add(number as u64));
        let shape = || module.shape(id).to_string();
        array(module, id, number, plan, &mut rng)
            .ok_or_else(|| InputError::Shape { parameter: number, shape: shape() })
    });
    made.collect()
}

fn array(
    module: &Module,
    id: InstId,
    number: usize,
    plan: DataPlan,
    rng: &mut Rng,
) -> Option<Literal> {
    let shape = module.array_shape(id)?;
    let element = shape.element_type;
    let kind = kind(plan, number, element, rng);
    let count = usize::try_from(shape.num_elements()?).ok()?;
    let numbers: Vec<f64> = (0..count).map(|_| number_of(kind, element, rng)).collect();
    let numbers = match kind {
        DataDistribution::Same => vec![numbers.first().copied().unwrap_or(1.0); count],
        _ => numbers,
    };
    let array = ArrayLiteral::new(element, shape.dims().iter().copied(), data(element, &numbers));
    array.ok().map(Literal::Array)
}

fn kind(plan: DataPlan, number: usize, element: ElementType, rng: &mut Rng) -> DataDistribution {
    let far = match element {
        ElementType::F16 | ElementType::BF16 => [20.0, 60.0, 100.0][rng.below(3)],
        _ => [100.0, 1e3, 1e4, 1e6][rng.below(4)],
    };
    match plan.profile {
        Profile::Tame if rng.chance(80) => DataDistribution::Normal,
        Profile::Ties if rng.chance(25) => DataDistribution::Zeros,
        Profile::Tame | Profile::Ties => DataDistribution::Ties,
        // The first two are images.
        Profile::Far if number < 2 || rng.chance(15) => DataDistribution::Around(far, 1.0),
        Profile::Far => DataDistribution::Normal,
        Profile::Scales => DataDistribution::Scaled(scale(element, plan.extreme, rng)),
        Profile::OneSided if rng.chance(50) => DataDistribution::Above7,
        Profile::OneSided => DataDistribution::Below7,
        Profile::Special if rng.chance(40) => DataDistribution::Special,
        Profile::Mixed | Profile::Special => match rng.below(10) {
            0..=2 => DataDistribution::Normal,
            3 => DataDistribution::Ties,
            4 => DataDistribution::Around(far, [1.0, 1e-2][rng.below(2)]),
            5 => DataDistribution::Scaled(scale(element, plan.extreme, rng)),
            6 => DataDistribution::AnySize,
            7 => DataDistribution::Subnormal,
            8 if rng.chance(50) => DataDistribution::Zeros,
            8 => DataDistribution::Same,
            _ => DataDistribution::Above7,
        },
    }
}

/// Returns a power of ten within the range of a type.
fn scale(element: ElementType, extreme: bool, rng: &mut Rng) -> f64 {
    let exponents: &[i32] = match element {
        ElementType::F16 => &[-4, -3, -2, 0, 1, 2, 3],
        // Products of two of these overflow, unless a third is among the small ones.
        _ if extreme => &[-25, -20, 18, 20, 20],
        _ => &[-30, -18, -8, 0, 0, 6, 12, 15],
    };
    10f64.powi(rng.pick(exponents).copied().unwrap_or(0))
}

fn number_of(kind: DataDistribution, element: ElementType, rng: &mut Rng) -> f64 {
    if element.is_integer() {
        return integer(kind, element, rng);
    }
    match kind {
        DataDistribution::Normal | DataDistribution::Same => normal(rng),
        DataDistribution::Ties => half(rng),
        DataDistribution::Around(centre, deviation) => centre + deviation * normal(rng),
        DataDistribution::Scaled(scale) => scale * normal(rng),
        DataDistribution::AnySize => {
            let widest = if element == ElementType::F16 { 6.0 } else { 30.0 };
            let size = 2f64.powf(widest * (2.0 * unit(rng) - 1.0));
            if rng.chance(50) { size } else { -size }
        }
        DataDistribution::Subnormal => {
            let least = if element == ElementType::F16 { 6e-8 } else { 1e-40 };
            if rng.chance(70) { least * (1.0 + 10.0 * unit(rng)) } else { normal(rng) }
        }
        DataDistribution::Zeros => [0.0, -0.0, -0.0, -1.0][rng.below(4)],
        DataDistribution::Above7 => 7.0 + normal(rng).abs(),
        DataDistribution::Below7 => -7.0 - normal(rng).abs(),
        DataDistribution::Special => match rng.below(60) {
            0 => f64::INFINITY,
            1 => f64::NEG_INFINITY,
            2 => f64::NAN,
            3 => -0.0,
            4 => 0.0,
            _ => normal(rng),
        },
    }
}

fn integer(kind: DataDistribution, element: ElementType, rng: &mut Rng) -> f64 {
    let greatest = 2f64.powi(i32::try_from(element.bits()).unwrap_or(31) - 1) - 1.0;
    match kind {
        DataDistribution::Special | DataDistribution::Scaled(_) | DataDistribution::AnySize => {
            [greatest, -greatest - 1.0, greatest - 1.0, 0.0, 1.0, -1.0][rng.below(6)]
        }
        DataDistribution::Ties | DataDistribution::Same | DataDistribution::Zeros => {
            half(rng) * 2.0
        }
        DataDistribution::Above7 => 7.0 + (10.0 * unit(rng)).floor(),
        DataDistribution::Below7 => -7.0 - (10.0 * unit(rng)).floor(),
        DataDistribution::Normal | DataDistribution::Around(..) | DataDistribution::Subnormal => {
            ((2.0 * unit(rng) - 1.0) * greatest.min(100.0)).floor()
        }
    }
}

fn half(rng: &mut Rng) -> f64 {
    f64::from(u8::try_from(rng.below(9)).unwrap_or(0)) / 2.0 - 2.0
}

/// From 0 to 1, without 0.
fn unit(rng: &mut Rng) -> f64 {
    let steps = 1 << 24;
    f64::from(u32::try_from(rng.below(steps) + 1).unwrap_or(1)) / f64::from(1u32 << 24)
}

/// Box and Muller's method.
fn normal(rng: &mut Rng) -> f64 {
    let (radius, angle) = ((-2.0 * unit(rng).ln()).sqrt(), std::f64::consts::TAU * unit(rng));
    radius * angle.cos()
}
