//! The usual reducers as typed folds, for reductions and windows.
//!
//! Sums and products of floats of all types accumulate in `f64` and are rounded once at the
//! end. Types that are computed in wider ones are folded in those: [`Folded`] converts the
//! operands and the results.

use std::borrow::Cow;

use half::{bf16, f16};
use num_complex::Complex;
use tilewright_ir::{CompId, Data, ElementType, Native, Op, Verified};

use super::Cx;
use super::elementwise::{Binary, Float, Function, Int, Real, convert_kernel, round_to, wide};
use crate::algebra::function::ELEMENT;
use crate::algebra::{Numbers, field};
use crate::error::{Outcome, WRONG_STORAGE};
use crate::lanes::single_op;
use crate::limits::Charge;

/// An associative op with an identity, over elements stored as `T`.
pub(super) trait Monoid<T: Native>: 'static {
    /// The accumulator.
    type Accumulator: Copy + Send + Sync;
    /// The element that changes nothing when it is joined.
    const IDENTITY: Self::Accumulator;
    fn lift(element: T) -> Self::Accumulator;
    fn join(a: Self::Accumulator, b: Self::Accumulator) -> Self::Accumulator;
    fn lower(accumulator: Self::Accumulator) -> T;
}

/// Code that is the same for every monoid.
pub(super) trait Visitor {
    /// The result.
    type Output;
    fn visit<T: Native, M: Monoid<T>>(self) -> Self::Output;
}

/// Runs code for the monoid of a reducer; `None` for other reducers.
pub(super) fn visit<V: Visitor>(
    module: &Verified,
    numbers: Numbers,
    reducer: CompId,
    element_type: ElementType,
    visitor: V,
) -> Option<V::Output> {
    let function = function(module, numbers, reducer, element_type)?;
    if numbers == Numbers::Field && element_type == ELEMENT {
        return of_field(function, visitor);
    }
    of_function(function, element_type, visitor)
}

/// Runs code for the monoid of an op on floats as they are; `None` for other ops.
pub(super) fn visit_op<V: Visitor>(
    op: &Op,
    element_type: ElementType,
    visitor: V,
) -> Option<V::Output> {
    of_function(binary(op)?, element_type, visitor)
}

fn of_function<V: Visitor>(
    function: Binary,
    element_type: ElementType,
    visitor: V,
) -> Option<V::Output> {
    match wide(element_type) {
        ElementType::S8 => of_int::<i8, V>(function, visitor),
        ElementType::S16 => of_int::<i16, V>(function, visitor),
        ElementType::S64 => of_int::<i64, V>(function, visitor),
        ElementType::U8 => of_int::<u8, V>(function, visitor),
        ElementType::U16 => of_int::<u16, V>(function, visitor),
        ElementType::U32 => of_int::<u32, V>(function, visitor),
        ElementType::U64 => of_int::<u64, V>(function, visitor),
        ElementType::C64 => of_complex::<f32, V>(function, visitor),
        ElementType::C128 => of_complex::<f64, V>(function, visitor),
        ElementType::Pred
        | ElementType::S32
        | ElementType::F16
        | ElementType::BF16
        | ElementType::F32
        | ElementType::F64 => of_common(function, element_type, visitor),
        _ => None,
    }
}

/// Checks whether a reducer is one of these monoids.
pub(super) fn is_one(module: &Verified, reducer: CompId, element_type: ElementType) -> bool {
    struct Known;
    impl Visitor for Known {
        type Output = ();
        fn visit<T: Native, M: Monoid<T>>(self) {}
    }
    visit(module, Numbers::Floats, reducer, element_type, Known).is_some()
}

/// Like [`visit`], for the common types only: floats, `s32` and `pred`. The others would add
/// much code and little speed.
pub(super) fn visit_common<V: Visitor>(
    module: &Verified,
    numbers: Numbers,
    reducer: CompId,
    element_type: ElementType,
    visitor: V,
) -> Option<V::Output> {
    let function = function(module, numbers, reducer, element_type)?;
    if numbers == Numbers::Field && element_type == ELEMENT {
        return of_field(function, visitor);
    }
    of_common(function, element_type, visitor)
}

/// Arrays in the types in which they are folded: narrow types are widened.
pub(super) struct Folded<'a> {
    pub(super) data: Cow<'a, Data>,
    _charge: Option<Charge>,
}

impl<'a> Folded<'a> {
    /// Returns an operand.
    pub(super) fn operand(cx: &'a Cx<'_, '_>, index: usize) -> Outcome<Self> {
        let array = cx.array(index)?;
        let element_type = array.element_type();
        if wide(element_type) == element_type {
            return Ok(Self { data: Cow::Borrowed(array.data()), _charge: None });
        }
        let charge = cx.scratch(wide(element_type).bytes() as usize, array.len())?;
        let data = convert(array.data(), element_type, wide(element_type))?;
        Ok(Self { data: Cow::Owned(data), _charge: Some(charge) })
    }

    /// Returns the result of a fold, in the type of the elements.
    pub(super) fn result(data: Data, element_type: ElementType) -> Outcome<Data> {
        if wide(element_type) == element_type {
            return Ok(data);
        }
        convert(&data, wide(element_type), element_type)
    }

    /// Returns the elements, in the type of the fold.
    pub(super) fn slice<T: Native>(&self) -> Outcome<&[T]> {
        self.data.as_slice().ok_or(WRONG_STORAGE)
    }
}

fn convert(data: &Data, from: ElementType, to: ElementType) -> Outcome<Data> {
    let mut converted = Data::zeros(to, 0);
    convert_kernel(from, to)?(&[data], data.len(), &mut converted)?;
    Ok(converted)
}

fn of_common<V: Visitor>(
    function: Binary,
    element_type: ElementType,
    visitor: V,
) -> Option<V::Output> {
    match wide(element_type) {
        ElementType::Pred => of_pred(function, visitor),
        ElementType::S32 => of_int::<i32, V>(function, visitor),
        ElementType::F16 => of_float::<f16, V>(function, visitor),
        ElementType::BF16 => of_float::<bf16, V>(function, visitor),
        ElementType::F32 => of_float::<f32, V>(function, visitor),
        ElementType::F64 => of_float::<f64, V>(function, visitor),
        _ => None,
    }
}

/// Returns the function of a reducer with a single op, if all its values are of this type.
fn function(
    module: &Verified,
    numbers: Numbers,
    reducer: CompId,
    element_type: ElementType,
) -> Option<Binary> {
    let root = single_op(module, reducer)?;
    let parameters = module.computation(reducer).parameters();
    let kept = |id| module.array_shape(id).map(|s| numbers.kept(s.element_type));
    let same_type = |&id: &_| kept(id) == Some(element_type);
    if !parameters.iter().chain([&root]).all(same_type) {
        return None;
    }
    binary(module.op(root))
}

fn binary(op: &Op) -> Option<Binary> {
    match Function::of(op)? {
        Function::Binary(function) => Some(function),
        _ => None,
    }
}

fn of_int<T: Int, V: Visitor>(function: Binary, visitor: V) -> Option<V::Output> {
    match function {
        Binary::Add => Some(visitor.visit::<T, Sum>()),
        Binary::Multiply => Some(visitor.visit::<T, Product>()),
        Binary::Maximum => Some(visitor.visit::<T, Greatest>()),
        Binary::Minimum => Some(visitor.visit::<T, Least>()),
        Binary::And => Some(visitor.visit::<T, All>()),
        Binary::Or => Some(visitor.visit::<T, Any>()),
        Binary::Xor => Some(visitor.visit::<T, Odd>()),
        _ => None,
    }
}

fn of_pred<V: Visitor>(function: Binary, visitor: V) -> Option<V::Output> {
    match function {
        Binary::And | Binary::Minimum | Binary::Multiply => Some(visitor.visit::<bool, All>()),
        Binary::Or | Binary::Maximum | Binary::Add => Some(visitor.visit::<bool, Any>()),
        Binary::Xor => Some(visitor.visit::<bool, Odd>()),
        _ => None,
    }
}

fn of_float<T: Float, V: Visitor>(function: Binary, visitor: V) -> Option<V::Output> {
    match function {
        Binary::Add => Some(visitor.visit::<T, FloatSum>()),
        Binary::Multiply => Some(visitor.visit::<T, FloatProduct>()),
        Binary::Maximum => Some(visitor.visit::<T, FloatGreatest>()),
        Binary::Minimum => Some(visitor.visit::<T, FloatLeast>()),
        _ => None,
    }
}

fn of_field<V: Visitor>(function: Binary, visitor: V) -> Option<V::Output> {
    match function {
        Binary::Add => Some(visitor.visit::<f64, FieldSum>()),
        Binary::Multiply => Some(visitor.visit::<f64, FieldProduct>()),
        Binary::Maximum => Some(visitor.visit::<f64, FieldGreatest>()),
        Binary::Minimum => Some(visitor.visit::<f64, FieldLeast>()),
        _ => None,
    }
}

fn of_complex<T: Real, V: Visitor>(function: Binary, visitor: V) -> Option<V::Output>
where
    Complex<T>: Native,
{
    match function {
        Binary::Add => Some(visitor.visit::<Complex<T>, ComplexSum>()),
        Binary::Multiply => Some(visitor.visit::<Complex<T>, ComplexProduct>()),
        _ => None,
    }
}

/// A monoid of integers that accumulates in their own type.
macro_rules! int_monoid {
    ($($name:ident $identity:ident $join:ident;)*) => {$(
        struct $name;

        impl<T: Int> Monoid<T> for $name {
            type Accumulator = T;
            const IDENTITY: T = T::$identity;
            fn lift(element: T) -> T {
                element
            }
            fn join(a: T, b: T) -> T {
                T::$join(a, b)
            }
            fn lower(accumulator: T) -> T {
                accumulator
            }
        }
    )*};
}

int_monoid! {
    Sum ZERO add;
    Product ONE multiply;
    Greatest LEAST max;
    Least GREATEST min;
    All ALL_BITS and;
    Any ZERO or;
    Odd ZERO xor;
}

/// A monoid of truth values.
macro_rules! pred_monoid {
    ($($name:ident $identity:literal $op:tt;)*) => {$(
        impl Monoid<bool> for $name {
            type Accumulator = bool;
            const IDENTITY: bool = $identity;
            fn lift(element: bool) -> bool {
                element
            }
            fn join(a: bool, b: bool) -> bool {
                a $op b
            }
            fn lower(accumulator: bool) -> bool {
                accumulator
            }
        }
    )*};
}

pred_monoid! {
    All true &;
    Any false |;
    Odd false ^;
}

/// A monoid of floats that accumulates in `f64`.
macro_rules! wide_monoid {
    ($($name:ident $identity:literal $op:tt;)*) => {$(
        struct $name;

        impl<T: Float> Monoid<T> for $name {
            type Accumulator = f64;
            const IDENTITY: f64 = $identity;
            fn lift(element: T) -> f64 {
                element.wide().to_f64()
            }
            fn join(a: f64, b: f64) -> f64 {
                a $op b
            }
            fn lower(accumulator: f64) -> T {
                round_to(accumulator)
            }
        }
    )*};
}

// Not +0.0, which would lose the sign of a sum of negative zeros.
wide_monoid! {
    FloatSum -0.0 +;
    FloatProduct 1.0 *;
}

/// A choice between floats.
macro_rules! choice_monoid {
    ($($name:ident $identity:ident $join:ident;)*) => {$(
        struct $name;

        impl<T: Float> Monoid<T> for $name {
            type Accumulator = T::Wide;
            const IDENTITY: T::Wide = <T::Wide as Real>::$identity;
            fn lift(element: T) -> T::Wide {
                element.wide()
            }
            fn join(a: T::Wide, b: T::Wide) -> T::Wide {
                a.$join(b)
            }
            fn lower(accumulator: T::Wide) -> T {
                T::narrow(accumulator)
            }
        }
    )*};
}

choice_monoid! {
    FloatGreatest MINUS_INFINITY maximum;
    FloatLeast INFINITY minimum;
}

/// A monoid of complex numbers that accumulates in `f64` parts.
macro_rules! complex_monoid {
    ($($name:ident $re:literal $im:literal $op:tt;)*) => {$(
        struct $name;

        impl<T: Real> Monoid<Complex<T>> for $name
        where
            Complex<T>: Native,
        {
            type Accumulator = Complex<f64>;
            const IDENTITY: Complex<f64> = Complex::new($re, $im);
            fn lift(element: Complex<T>) -> Complex<f64> {
                Complex::new(element.re.to_f64(), element.im.to_f64())
            }
            fn join(a: Complex<f64>, b: Complex<f64>) -> Complex<f64> {
                a $op b
            }
            fn lower(accumulator: Complex<f64>) -> Complex<T> {
                Complex::new(T::from_f64(accumulator.re), T::from_f64(accumulator.im))
            }
        }
    )*};
}

complex_monoid! {
    ComplexSum -0.0 -0.0 +;
    ComplexProduct 1.0 0.0 *;
}

/// A monoid over the field, whose elements are bits of floats.
macro_rules! field_monoid {
    ($($name:ident $identity:expr, $join:ident;)*) => {$(
        struct $name;

        impl Monoid<f64> for $name {
            type Accumulator = u64;
            const IDENTITY: u64 = $identity;
            fn lift(element: f64) -> u64 {
                element.to_bits()
            }
            fn join(a: u64, b: u64) -> u64 {
                field::$join(a, b)
            }
            fn lower(accumulator: u64) -> f64 {
                f64::from_bits(accumulator)
            }
        }
    )*};
}

field_monoid! {
    FieldSum 0, add;
    FieldProduct 1, multiply;
    FieldGreatest field::negate(field::INFINITY), maximum;
    FieldLeast field::INFINITY, minimum;
}

/// Returns the results of totals.
pub(super) fn lowered<T: Native, M: Monoid<T>>(totals: &[M::Accumulator]) -> Data {
    let mut results = vec![T::default(); totals.len()];
    for (result, &total) in results.iter_mut().zip(totals) {
        *result = M::lower(total);
    }
    T::wrap(results)
}

/// The number of partial results into which a long row is folded, so that the machine can work
/// on several at once. It is part of the fixed order of float sums.
const PARTS: usize = 8;

/// The longest row that is folded at one time; a longer row is folded in runs of this length.
/// It is part of the fixed order too.
pub(super) const RUN: usize = 2048;

/// Folds a row: element `i` into part `i % 8`, then the parts in order.
pub(super) fn fold_row<T: Native, M: Monoid<T>>(
    accumulator: M::Accumulator,
    row: &[T],
) -> M::Accumulator {
    let (blocks, rest) = row.as_chunks::<PARTS>();
    let mut total = accumulator;
    if !blocks.is_empty() {
        let mut parts = [M::IDENTITY; PARTS];
        for block in blocks {
            for (part, &element) in parts.iter_mut().zip(block) {
                *part = M::join(*part, M::lift(element));
            }
        }
        total = parts.into_iter().fold(total, M::join);
    }
    rest.iter().fold(total, |total, &element| M::join(total, M::lift(element)))
}
