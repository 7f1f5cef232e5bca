//! CHLO's functions by the formulas that XLA uses.
//!
//! Of the functions that HLO has as ops, jaxlib keeps some (`erf`, `asin`, `topk`) and writes formulas for
//! others (`acos`, `sinh`), as is done here. Complex arguments are left to HLO's ops, where there are any.

mod approximate;
mod bessel;
pub(crate) mod broadcast;
mod erf_double;
pub(in crate::import) mod expr;
mod gamma;
mod next_after;
mod zeta;

use tilewright_ir::{ElementType, InstId};

use super::body::Body;
use super::error::Import;
use Formula::{Of, OfTwo};
use Numbers::{Any, Real, Wide};
use expr::Expr;

/// A function of one value or of two.
#[derive(Clone, Copy)]
enum Formula {
    Of(for<'f> fn(Expr<'f>) -> Expr<'f>),
    OfTwo(for<'f> fn(Expr<'f>, Expr<'f>) -> Expr<'f>),
}

/// The numbers of which a function is computed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Numbers {
    /// All of them.
    Any,
    /// Floats.
    Real,
    /// Floats; those of fewer than 32 bits are widened first.
    Wide,
}

/// A function of CHLO.
#[derive(Clone, Copy)]
pub(crate) struct Function {
    formula: Formula,
    numbers: Numbers,
}

const fn of(numbers: Numbers, formula: for<'f> fn(Expr<'f>) -> Expr<'f>) -> Function {
    Function { formula: Of(formula), numbers }
}

const fn of_two(numbers: Numbers, formula: for<'f> fn(Expr<'f>, Expr<'f>) -> Expr<'f>) -> Function {
    Function { formula: OfTwo(formula), numbers }
}

pub(crate) const ACOS: Function = of(Real, |x| ((1.0 - x) * (x + 1.0)).sqrt().atan2(x));
pub(crate) const ACOSH: Function = of(Real, acosh);
pub(crate) const ASINH: Function = of(Real, asinh);
pub(crate) const ATAN: Function = of(Any, atan);
pub(crate) const ATANH: Function = of(Real, atanh);
pub(crate) const BESSEL_I1E: Function = of(Wide, bessel::bessel_i1e);
pub(crate) const CONJ: Function = of(Any, conjugate);
pub(crate) const COSH: Function = of(Wide, cosh);
pub(crate) const DIGAMMA: Function = of(Wide, gamma::digamma);
pub(crate) const ERF_INV: Function = of(Wide, approximate::erf_inv);
pub(crate) const ERFC: Function = of(Wide, approximate::erfc);
pub(crate) const IS_INF: Function = of(Real, is_infinite);
pub(crate) const IS_NEG_INF: Function = of(Real, |x| x.is_equal(f64::NEG_INFINITY));
pub(crate) const IS_POS_INF: Function = of(Real, |x| x.is_equal(f64::INFINITY));
pub(crate) const LGAMMA: Function = of(Wide, gamma::lgamma);
pub(crate) const NEXT_AFTER: Function = of_two(Real, next_after::next_after);
pub(crate) const POLYGAMMA: Function = of_two(Wide, zeta::polygamma);
pub(crate) const SINH: Function = of(Wide, sinh);
pub(crate) const SQUARE: Function = of(Any, square);
pub(crate) const ZETA: Function = of_two(Wide, zeta::zeta);

impl Body<'_, '_> {
    /// Adds the instructions of a function. `None`: it is not computed for numbers of this type.
    pub(super) fn compute(
        &mut self,
        function: &Function,
        operands: &[InstId],
    ) -> Import<Option<InstId>> {
        let shapes = operands.iter().map(|&id| self.importer.module.array_shape(id));
        let Some(shapes) = shapes.collect::<Option<Vec<_>>>() else { return Ok(None) };
        let is_known = shapes.iter().all(|shape| shape.is_static());
        let Some(ty) = shapes.first().map(|shape| shape.element_type) else { return Ok(None) };
        let is_wide = matches!(ty, ElementType::F32 | ElementType::F64);
        if !is_known || (function.numbers != Any && !ty.is_float()) {
            return Ok(None);
        }
        expr::compute(self, operands, |values| {
            let widens = function.numbers == Wide && !is_wide;
            let wide = values.iter().map(|x| if widens { x.convert(ElementType::F32) } else { *x });
            let made = match (function.formula, wide.collect::<Vec<_>>().as_slice()) {
                (Of(formula), &[x]) => formula(x),
                (OfTwo(formula), &[x, y]) => formula(x, y),
                _ => return None,
            };
            Some(if widens { made.convert(ty) } else { made })
        })
    }
}

/// A real number is its own conjugate.
fn conjugate(z: Expr<'_>) -> Expr<'_> {
    if !z.ty().is_complex() {
        return z;
    }
    let (real, imaginary) = z.parts();
    real.complex(-imaginary)
}

/// `atan2(x, 1)`; of complex numbers `-i atanh(i z)`.
fn atan(z: Expr<'_>) -> Expr<'_> {
    if !z.ty().is_complex() {
        return z.atan2(1.0);
    }
    let (x, y) = z.parts();
    let (u, v) = (-y).complex(x).atanh().parts();
    v.complex(-u)
}

/// `x * x`; the real part of a complex square is computed as `(x - y)(x + y)`.
fn square(z: Expr<'_>) -> Expr<'_> {
    if !z.ty().is_complex() {
        return z * z;
    }
    let (x, y) = z.parts();
    let vanishes = x.is_finite().and(x.abs().is_equal(y.abs()));
    let real = ((x - y) * (x + y)).but(vanishes, 0.0);
    real.complex(x * y * 2.0)
}

/// `log(2) + log(x)` if `x` is large, and else `log1p(sqrt(x - 1) (sqrt(x + 1) + sqrt(x - 1)))`.
fn acosh(x: Expr<'_>) -> Expr<'_> {
    let root = (x - 1.0).sqrt();
    let small = (root * ((x + 1.0).sqrt() + root)).log1p();
    small.but(x.is_at_least(x.greatest() / 2.0), x.log() + 2.0f64.ln())
}

/// With `a = |x|`, the sign of `x` times `log(2) + log(a)` if `a` is large, and else
/// `log1p(a + a^2 / (1 + sqrt(1 + a^2)))`.
fn asinh(x: Expr<'_>) -> Expr<'_> {
    let a = x.abs();
    let squared = a * a;
    let small = (a + squared / ((squared + 1.0).sqrt() + 1.0)).log1p();
    x.sign() * small.but(a.is_at_least(x.greatest().sqrt()), a.log() + 2.0f64.ln())
}

/// `(log1p(x) - log1p(-x)) / 2`, and not a number beyond 1.
fn atanh(x: Expr<'_>) -> Expr<'_> {
    let inside = (x.log1p() - (-x).log1p()) * 0.5;
    inside.but(x.abs().is_greater(1.0), f64::NAN)
}

/// Returns `exp(x + log(1/2))` and `exp(log(1/2) - x)`, which do not overflow early.
fn halves(x: Expr<'_>) -> (Expr<'_>, Expr<'_>) {
    let log_half = 0.5f64.ln();
    ((x + log_half).exp(), (log_half - x).exp())
}

fn cosh(x: Expr<'_>) -> Expr<'_> {
    let (first, second) = halves(x);
    first + second
}

/// With `e = expm1(x)`, `(e + e / (e + 1)) / 2` if `|x| < 1`.
fn sinh(x: Expr<'_>) -> Expr<'_> {
    let (first, second) = halves(x);
    let e = x.expm1();
    let small = (e + e / (e + 1.0)) * 0.5;
    x.abs().is_less(1.0).select(small, first - second)
}

fn is_infinite(x: Expr<'_>) -> Expr<'_> {
    x.abs().is_equal(f64::INFINITY)
}
