//! Functions of complex floats, computed in `f64` parts.

use num_complex::Complex;
use tilewright_ir::{ElementType, Native};

use super::float::Real;
use super::function::{Binary, Unary};
use super::kernel::{Kernel, map1, map2};

/// A number with `f64` parts.
type Wide = Complex<f64>;

/// A complex type that is stored.
trait Parts<T: Real>: Sized {
    fn wide(self) -> Wide;
    fn narrow(wide: Wide) -> Self;
}

impl<T: Real> Parts<T> for Complex<T> {
    fn wide(self) -> Wide {
        Wide::new(self.re.to_f64(), self.im.to_f64())
    }
    fn narrow(wide: Wide) -> Self {
        Self::new(T::from_f64(wide.re), T::from_f64(wide.im))
    }
}

fn wide1<T: Real>(f: fn(Wide) -> Wide) -> Kernel
where
    Complex<T>: Native,
{
    map1(move |a: Complex<T>| Complex::narrow(f(a.wide())))
}

fn wide2<T: Real>(f: fn(Wide, Wide) -> Wide) -> Kernel
where
    Complex<T>: Native,
{
    map2(move |a: Complex<T>, b: Complex<T>| Complex::narrow(f(a.wide(), b.wide())))
}

pub(super) fn unary<T: Real>(f: Unary) -> Option<Kernel>
where
    Complex<T>: Native,
{
    Some(match f {
        Unary::Abs => map1(|a: Complex<T>| T::from_f64(libm::hypot(a.re.to_f64(), a.im.to_f64()))),
        Unary::Acos => wide1::<T>(acos),
        Unary::Acosh => wide1::<T>(acosh),
        Unary::Asin => wide1::<T>(asin),
        Unary::Asinh => wide1::<T>(|z| times_minus_i(asin(times_i(z)))),
        Unary::Atanh => wide1::<T>(atanh),
        Unary::Cos => wide1::<T>(|z| cosh(Wide::new(-z.im, z.re))),
        Unary::Cosh => wide1::<T>(cosh),
        Unary::Exp => wide1::<T>(exp),
        Unary::Expm1 => wide1::<T>(expm1),
        Unary::Log => wide1::<T>(log),
        Unary::Log1p => wide1::<T>(log1p),
        Unary::Logistic => wide1::<T>(|z| divide(ONE, ONE + exp(-z))),
        Unary::Negate => map1(|a: Complex<T>| Complex::new(a.re.negate(), a.im.negate())),
        Unary::Rsqrt => wide1::<T>(|z| divide(ONE, sqrt(z))),
        Unary::Sign => wide1::<T>(sign),
        Unary::Sin => wide1::<T>(|z| times_minus_i(sinh(times_i(z)))),
        Unary::Sinh => wide1::<T>(sinh),
        Unary::Sqrt => wide1::<T>(sqrt),
        Unary::Tan => wide1::<T>(|z| times_minus_i(tanh(times_i(z)))),
        Unary::Tanh => wide1::<T>(tanh),
        Unary::Cbrt => wide1::<T>(|z| power(z, Wide::new(1.0 / 3.0, 0.0))),
        Unary::Ceil
        | Unary::Clz
        | Unary::Erf
        | Unary::Floor
        | Unary::Not
        | Unary::PopulationCount
        | Unary::RoundNearestAfz
        | Unary::RoundNearestEven => return None,
    })
}

pub(super) fn binary<T: Real>(f: Binary) -> Option<Kernel>
where
    Complex<T>: Native,
{
    Some(match f {
        Binary::Add => {
            map2(|a: Complex<T>, b: Complex<T>| Complex::new(a.re.add(b.re), a.im.add(b.im)))
        }
        Binary::Subtract => map2(|a: Complex<T>, b: Complex<T>| {
            Complex::new(a.re.subtract(b.re), a.im.subtract(b.im))
        }),
        Binary::Multiply => wide2::<T>(|a, b| a * b),
        Binary::Divide => wide2::<T>(divide),
        Binary::Power => wide2::<T>(power),
        Binary::Atan2 => wide2::<T>(atan2),
        Binary::Maximum => map2(|a: Complex<T>, b| if exceeds(a, b) { a } else { b }),
        Binary::Minimum => map2(|a: Complex<T>, b| if exceeds(b, a) { a } else { b }),
        Binary::And
        | Binary::Mulhi
        | Binary::Or
        | Binary::Remainder
        | Binary::ShiftLeft
        | Binary::ShiftRightArithmetic
        | Binary::ShiftRightLogical
        | Binary::Xor => return None,
    })
}

/// Checks whether `a` comes after `b` in the order of real parts, then of imaginary parts.
fn exceeds<T: Real>(a: Complex<T>, b: Complex<T>) -> bool {
    let [a_re, a_im, b_re, b_im] = [a.re, a.im, b.re, b.im].map(T::to_f64);
    if a_re == b_re { a_im > b_im } else { a_re > b_re }
}

/// Returns the real part; a real number is its own.
pub(super) fn real(element_type: ElementType) -> Option<Kernel> {
    match element_type {
        ElementType::C64 => Some(map1(|a: Complex<f32>| a.re)),
        ElementType::C128 => Some(map1(|a: Complex<f64>| a.re)),
        other => super::convert::kernel(other, other).filter(|_| other.is_float()),
    }
}

/// Returns the imaginary part; 0 for a real number.
pub(super) fn imag(element_type: ElementType) -> Option<Kernel> {
    match element_type {
        ElementType::C64 => Some(map1(|a: Complex<f32>| a.im)),
        ElementType::C128 => Some(map1(|a: Complex<f64>| a.im)),
        ElementType::F16 => Some(map1(|_: half::f16| half::f16::ZERO)),
        ElementType::BF16 => Some(map1(|_: half::bf16| half::bf16::ZERO)),
        ElementType::F32 => Some(map1(|_: f32| 0.0f32)),
        ElementType::F64 => Some(map1(|_: f64| 0.0f64)),
        _ => None,
    }
}

/// Complex numbers of their parts.
pub(super) fn make(part: ElementType) -> Option<Kernel> {
    match part {
        ElementType::F32 => Some(map2(|re: f32, im: f32| Complex::new(re, im))),
        ElementType::F64 => Some(map2(|re: f64, im: f64| Complex::new(re, im))),
        _ => None,
    }
}

const ONE: Wide = Wide::new(1.0, 0.0);

fn times_i(z: Wide) -> Wide {
    Wide::new(-z.im, z.re)
}

fn times_minus_i(z: Wide) -> Wide {
    Wide::new(z.im, -z.re)
}

/// Scaled by the divisor's larger part, so that it overflows only where the
/// quotient does.
fn divide(a: Wide, b: Wide) -> Wide {
    if b.re == 0.0 && b.im == 0.0 {
        return Wide::new(a.re / b.re.abs(), a.im / b.re.abs());
    }
    let scale = b.re.abs().max(b.im.abs());
    if scale.is_infinite() && a.re.is_finite() && a.im.is_finite() {
        let unit = |x: f64| if x.is_infinite() { 1f64.copysign(x) } else { 0f64.copysign(x) };
        let (re, im) = (unit(b.re), unit(b.im));
        return Wide::new(0.0 * (a.re * re + a.im * im), 0.0 * (a.im * re - a.re * im));
    }
    let b = Wide::new(b.re / scale, b.im / scale);
    let norm = b.re * b.re + b.im * b.im;
    let re = (a.re * b.re + a.im * b.im) / norm / scale;
    let im = (a.im * b.re - a.re * b.im) / norm / scale;
    Wide::new(re, im)
}

fn sign(z: Wide) -> Wide {
    let size = libm::hypot(z.re, z.im);
    if size == 0.0 { z } else { Wide::new(z.re / size, z.im / size) }
}

/// Computes the exponential. A real exponent stays real for any size.
fn exp(z: Wide) -> Wide {
    let size = libm::exp(z.re);
    if z.im == 0.0 {
        return Wide::new(size, z.im);
    }
    if size == 0.0 && !z.im.is_finite() {
        return Wide::new(0.0, 0.0);
    }
    Wide::new(size * libm::cos(z.im), size * libm::sin(z.im))
}

/// `exp(z) - 1` without cancellation: `expm1(x) cos y - 2 sin(y/2)^2`.
fn expm1(z: Wide) -> Wide {
    if z.im == 0.0 {
        return Wide::new(libm::expm1(z.re), z.im);
    }
    let half = libm::sin(z.im / 2.0);
    let re = libm::expm1(z.re) * libm::cos(z.im) - 2.0 * half * half;
    Wide::new(re, libm::exp(z.re) * libm::sin(z.im))
}

fn log(z: Wide) -> Wide {
    let size = libm::hypot(z.re, z.im);
    let re = if size > 0.5 && size < 2.0 {
        let (large, small) = order(z.re.abs(), z.im.abs());
        0.5 * libm::log1p((large - 1.0) * (large + 1.0) + small * small)
    } else {
        libm::log(size)
    };
    Wide::new(re, libm::atan2(z.im, z.re))
}

fn order(a: f64, b: f64) -> (f64, f64) {
    if a < b { (b, a) } else { (a, b) }
}

fn log1p(z: Wide) -> Wide {
    let (x, y) = (z.re, z.im);
    let size = libm::hypot(x, y);
    let re = if size < 0.5 {
        0.5 * libm::log1p(x * (2.0 + x) + y * y)
    } else {
        log(Wide::new(1.0 + x, y)).re
    };
    Wide::new(re, libm::atan2(y, 1.0 + x))
}

fn sqrt(z: Wide) -> Wide {
    if z.im.is_infinite() {
        return Wide::new(f64::INFINITY, z.im);
    }
    if z.re == 0.0 && z.im == 0.0 {
        return Wide::new(0.0, z.im);
    }
    // Halved, so that the size of the largest numbers does not overflow.
    let size = libm::hypot(z.re / 4.0, z.im / 4.0);
    let half = 2.0 * (0.5 * (size + z.re.abs() / 4.0)).sqrt();
    let other = z.im.abs() / (2.0 * half);
    if z.re >= 0.0 {
        Wide::new(half, other.copysign(z.im))
    } else {
        Wide::new(other, half.copysign(z.im))
    }
}

fn cosh(z: Wide) -> Wide {
    let (re, im) = (libm::cosh(z.re) * libm::cos(z.im), libm::sinh(z.re) * libm::sin(z.im));
    Wide::new(re, if z.im == 0.0 || z.re == 0.0 { z.im * z.re } else { im })
}

fn sinh(z: Wide) -> Wide {
    let (re, im) = (libm::sinh(z.re) * libm::cos(z.im), libm::cosh(z.re) * libm::sin(z.im));
    Wide::new(re, if z.im == 0.0 { z.im } else { im })
}

/// `(sinh 2x + i sin 2y) / (cosh 2x + cos 2y)`, without overflow.
fn tanh(z: Wide) -> Wide {
    if z.re.abs() > 22.0 {
        let decay = 4.0 * libm::exp(-2.0 * z.re.abs());
        let im = if z.im.is_finite() { libm::sin(z.im) * libm::cos(z.im) * decay } else { 0.0 };
        return Wide::new(1f64.copysign(z.re), im);
    }
    let (tan, sinh) = (libm::tan(z.im), libm::sinh(z.re));
    let secant2 = 1.0 + tan * tan;
    let cosh = (1.0 + sinh * sinh).sqrt();
    let down = 1.0 + secant2 * sinh * sinh;
    Wide::new(secant2 * cosh * sinh / down, tan / down)
}

/// Kahan's forms: right on both sides of the branch cuts, by the signs of
/// zeros, and without cancellation.
fn acos(z: Wide) -> Wide {
    let (minus, plus) = (sqrt(Wide::new(1.0 - z.re, -z.im)), sqrt(Wide::new(1.0 + z.re, z.im)));
    let im = libm::asinh((plus.conj() * minus).im);
    Wide::new(2.0 * libm::atan2(minus.re, plus.re), im)
}

fn asin(z: Wide) -> Wide {
    let (minus, plus) = (sqrt(Wide::new(1.0 - z.re, -z.im)), sqrt(Wide::new(1.0 + z.re, z.im)));
    let im = libm::asinh((minus.conj() * plus).im);
    Wide::new(libm::atan2(z.re, (minus * plus).re), im)
}

fn acosh(z: Wide) -> Wide {
    let (minus, plus) = (sqrt(Wide::new(z.re - 1.0, z.im)), sqrt(Wide::new(z.re + 1.0, z.im)));
    let re = libm::asinh((minus.conj() * plus).re);
    Wide::new(re, 2.0 * libm::atan2(minus.im, plus.re))
}

fn atanh(z: Wide) -> Wide {
    let (x, y) = (z.re, z.im);
    let distance = (1.0 - x) * (1.0 - x) + y * y;
    let re = 0.25 * libm::log1p(4.0 * x / distance);
    Wide::new(re, 0.5 * libm::atan2(2.0 * y, (1.0 - x) * (1.0 + x) - y * y))
}

/// `exp(w log z)`; 0 to a positive real power is 0, anything to the power 0 is
/// 1.
fn power(z: Wide, w: Wide) -> Wide {
    if w.re == 0.0 && w.im == 0.0 {
        return ONE;
    }
    if z.re == 0.0 && z.im == 0.0 {
        return match w.re {
            _ if w.im != 0.0 => Wide::new(f64::NAN, f64::NAN),
            0.0.. => Wide::new(0.0, 0.0),
            _ => Wide::new(f64::INFINITY, 0.0),
        };
    }
    exp(w * log(z))
}

/// `-i log((x + iy) / sqrt(x^2 + y^2))`.
fn atan2(y: Wide, x: Wide) -> Wide {
    times_minus_i(log(divide(x + times_i(y), sqrt(x * x + y * y))))
}
