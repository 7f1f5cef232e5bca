//! Values of formulas: operators on them add instructions.

use std::cell::{Cell, RefCell};
use std::ops::{Add, Div, Mul, Neg, Rem, Sub};

use tilewright_ir::ops::attr::{AttrValue, AttrValues};
use tilewright_ir::small_float::{Format, Value as SmallFloat};
use tilewright_ir::{
    ArrayLiteral, ArrayShape, Dims, ElementType, InstId, Literal, Op, Opcode, Shape,
};

use super::super::body::Body;
use super::super::error::{Import, ImportError};
use super::super::literal;

/// The computation that a formula adds to.
trait Scope {
    fn shape(&self, id: InstId) -> ArrayShape;

    /// Adds an instruction. After an error it returns some other one.
    fn add(&self, op: Op, shape: ArrayShape, operands: &[InstId]) -> InstId;

    /// Adds a constant whose elements are all equal to a number.
    fn number(&self, number: Number, shape: ArrayShape) -> InstId;

    /// Adds a constant whose elements are those of a list, each at its index of a dim.
    fn list(&self, numbers: &[f64], dim: i64, shape: ArrayShape) -> InstId;
}

/// A number for any type of elements.
#[derive(Clone, Copy)]
enum Number {
    /// Rounded to the type.
    Real(f64),
    /// Its low bits.
    Whole(i64),
}

struct Formula<'b, 'i, 'p> {
    body: RefCell<&'b mut Body<'i, 'p>>,
    /// An operand of the formula, which stands for each instruction that could not be added.
    instead: InstId,
    failed: Cell<Option<ImportError>>,
}

impl Formula<'_, '_, '_> {
    fn or_fail(&self, added: Import<InstId>) -> InstId {
        added.unwrap_or_else(|error| {
            let first = self.failed.take();
            self.failed.set(first.or(Some(error)));
            self.instead
        })
    }
}

impl Scope for Formula<'_, '_, '_> {
    fn shape(&self, id: InstId) -> ArrayShape {
        let body = self.body.borrow();
        let shape = body.importer.module.array_shape(id);
        shape.map_or_else(|| ArrayShape::scalar(ElementType::F32), ArrayShape::without_layout)
    }

    fn add(&self, op: Op, shape: ArrayShape, operands: &[InstId]) -> InstId {
        let added = self.body.borrow_mut().emit(op, Shape::Array(shape), operands);
        self.or_fail(added)
    }

    fn number(&self, number: Number, shape: ArrayShape) -> InstId {
        let ty = shape.element_type;
        let element = match number {
            Number::Real(value) => literal::real(ty, value),
            Number::Whole(value) => literal::whole(ty, value),
        };
        let mut body = self.body.borrow_mut();
        let added = match element {
            Some(element) => body.constant(Literal::Array(element), shape),
            None => Err(body.invalid(&format!("a formula has no number of type {ty}"))),
        };
        self.or_fail(added)
    }

    fn list(&self, numbers: &[f64], dim: i64, shape: ArrayShape) -> InstId {
        let mut body = self.body.borrow_mut();
        let added = match literal::list(shape.element_type, numbers) {
            Some(list) => body.constant_along(list, dim, shape),
            None => {
                Err(body.invalid("a formula has a list of numbers that are no numbers of its type"))
            }
        };
        self.or_fail(added)
    }
}

/// A value of a formula.
#[derive(Clone, Copy)]
pub(in crate::import) struct Expr<'f> {
    scope: &'f dyn Scope,
    id: InstId,
}

/// Adds the instructions of a formula of some values; returns the last one.
pub(in crate::import) fn compute<'i, 'p>(
    body: &mut Body<'i, 'p>,
    operands: &[InstId],
    formula: impl for<'f> FnOnce(&[Expr<'f>]) -> Option<Expr<'f>>,
) -> Import<Option<InstId>> {
    let Some(&instead) = operands.first() else { return Ok(None) };
    let scope = Formula { body: RefCell::new(body), instead, failed: Cell::new(None) };
    let operands: Vec<Expr<'_>> = operands.iter().map(|&id| Expr { scope: &scope, id }).collect();
    let made = formula(&operands).map(|made| made.id);
    match scope.failed.take() {
        Some(error) => Err(error),
        None => Ok(made),
    }
}

/// A value, or a number that becomes one of the type of another value.
pub(in crate::import) trait Like<'f> {
    fn like(self, other: Expr<'f>) -> Expr<'f>;
}

impl<'f> Like<'f> for Expr<'f> {
    fn like(self, _: Self) -> Self {
        self
    }
}

impl<'f> Like<'f> for f64 {
    fn like(self, other: Expr<'f>) -> Expr<'f> {
        other.with(Number::Real(self))
    }
}

impl<'f> Expr<'f> {
    fn shape(self) -> ArrayShape {
        self.scope.shape(self.id)
    }

    fn with(self, number: Number) -> Self {
        Self { id: self.scope.number(number, self.shape()), ..self }
    }

    fn op(self, op: Op, ty: ElementType, others: &[Self]) -> Self {
        let operands: Vec<InstId> = [self].iter().chain(others).map(|value| value.id).collect();
        let shape = self.shape().with_element_type(ty);
        Self { id: self.scope.add(op, shape, &operands), ..self }
    }

    /// An op without attributes, whose result has the type of its first operand.
    fn plain(self, opcode: Opcode, others: &[Self]) -> Self {
        // Attributes that must be given are those of other ops.
        let op = Op::from_attrs(opcode, &mut AttrValues::default()).unwrap_or(Op::Copy);
        self.op(op, self.ty(), others)
    }

    /// The type of the elements.
    pub(in crate::import) fn ty(self) -> ElementType {
        self.shape().element_type
    }

    /// A number of this type.
    pub(in crate::import) fn number(self, value: f64) -> Self {
        self.with(Number::Real(value))
    }

    /// An integer of this type, by its low bits.
    pub(in crate::import) fn integer(self, value: i64) -> Self {
        self.with(Number::Whole(value))
    }

    /// One number of this type, or one for each index of a dim.
    pub(in crate::import) fn along(self, dim: Option<i64>, numbers: &[f64]) -> Self {
        match (dim, numbers) {
            #[allow(clippy::cast_possible_truncation, reason = "a number of integers is one")]
            (None, &[one]) if self.ty().is_integer() => self.integer(one as i64),
            (None, &[one]) => self.number(one),
            _ => {
                Self { id: self.scope.list(numbers, dim.unwrap_or_default(), self.shape()), ..self }
            }
        }
    }

    /// The nearest number that is not below the one and not above the other.
    pub(in crate::import) fn clamp(self, least: Self, greatest: Self) -> Self {
        least.op(Op::Clamp, self.ty(), &[self, greatest])
    }

    /// The nearest integer, of two the even one.
    pub(in crate::import) fn round(self) -> Self {
        self.plain(Opcode::RoundNearestEven, &[])
    }

    /// The greatest finite number of this type of floats.
    pub(super) fn greatest(self) -> f64 {
        match self.ty() {
            ElementType::F64 => f64::MAX,
            ElementType::F32 => f32::MAX.into(),
            ElementType::F16 => half::f16::MAX.into(),
            ElementType::BF16 => half::bf16::MAX.into(),
            other => greatest_of(other).unwrap_or(f64::MAX),
        }
    }

    /// The least positive number of this type, which has 32 or 64 bits.
    pub(super) fn least(self) -> f64 {
        if self.ty() == ElementType::F64 { f64::from_bits(1) } else { f32::from_bits(1).into() }
    }

    pub(in crate::import) fn convert(self, ty: ElementType) -> Self {
        self.op(Op::Convert, ty, &[])
    }

    /// Reads the bits as another type.
    pub(super) fn bitcast(self, ty: ElementType) -> Self {
        self.op(Op::BitcastConvert, ty, &[])
    }

    fn compare(self, direction: &'static str, other: impl Like<'f>) -> Self {
        let mut attributes = AttrValues::default();
        attributes.insert("direction", AttrValue::Word(direction.into()));
        let op = Op::from_attrs(Opcode::Compare, &mut attributes).unwrap_or(Op::Copy);
        self.op(op, ElementType::Pred, &[other.like(self)])
    }

    pub(super) fn is_less(self, other: impl Like<'f>) -> Self {
        self.compare("LT", other)
    }

    pub(super) fn is_at_most(self, other: impl Like<'f>) -> Self {
        self.compare("LE", other)
    }

    pub(super) fn is_greater(self, other: impl Like<'f>) -> Self {
        self.compare("GT", other)
    }

    pub(super) fn is_at_least(self, other: impl Like<'f>) -> Self {
        self.compare("GE", other)
    }

    pub(super) fn is_equal(self, other: impl Like<'f>) -> Self {
        self.compare("EQ", other)
    }

    pub(super) fn differs(self, other: impl Like<'f>) -> Self {
        self.compare("NE", other)
    }

    pub(super) fn is_finite(self) -> Self {
        self.op(Op::IsFinite, ElementType::Pred, &[])
    }

    /// One value where this condition holds, and the other elsewhere.
    pub(super) fn select(self, yes: Self, no: Self) -> Self {
        self.op(Op::Select, yes.ty(), &[yes, no])
    }

    /// This value, but another one where a condition holds.
    pub(super) fn but(self, condition: Self, other: impl Like<'f>) -> Self {
        condition.select(other.like(self), self)
    }

    fn part(self, op: Op) -> Self {
        self.op(op, self.ty().complex_part().unwrap_or(ElementType::F32), &[])
    }

    /// The real and the imaginary part.
    pub(super) fn parts(self) -> (Self, Self) {
        (self.part(Op::Real), self.part(Op::Imag))
    }

    /// The complex number with this real part.
    pub(super) fn complex(self, imaginary: Self) -> Self {
        let is_double = self.ty() == ElementType::F64;
        let ty = if is_double { ElementType::C128 } else { ElementType::C64 };
        self.op(Op::Complex, ty, &[imaginary])
    }
}

/// Methods that add an op of this opcode.
macro_rules! ops {
    ($($name:ident($($other:ident)?) $opcode:ident;)*) => {
        impl<'f> Expr<'f> {
            $(pub(super) fn $name(self $(, $other: impl Like<'f>)?) -> Self {
                self.plain(Opcode::$opcode, &[$($other.like(self))?])
            })*
        }
    };
}

ops! {
    abs() Abs;
    and(other) And;
    atan2(other) Atan2;
    atanh() Atanh;
    cos() Cos;
    exp() Exp;
    expm1() Expm1;
    floor() Floor;
    log() Log;
    log1p() Log1p;
    or(other) Or;
    power(other) Power;
    sign() Sign;
    sin() Sin;
    sqrt() Sqrt;
}

/// Operators that add an op of this opcode.
macro_rules! operators {
    ($($trait:ident $method:ident $opcode:ident;)*) => {
        $(impl<'f, T: Like<'f>> $trait<T> for Expr<'f> {
            type Output = Self;

            fn $method(self, other: T) -> Self {
                self.plain(Opcode::$opcode, &[other.like(self)])
            }
        }

        impl<'f> $trait<Expr<'f>> for f64 {
            type Output = Expr<'f>;

            fn $method(self, other: Expr<'f>) -> Expr<'f> {
                self.like(other).plain(Opcode::$opcode, &[other])
            }
        })*
    };
}

operators! {
    Add add Add;
    Sub sub Subtract;
    Mul mul Multiply;
    Div div Divide;
    Rem rem Remainder;
}

impl Neg for Expr<'_> {
    type Output = Self;

    fn neg(self) -> Self {
        self.plain(Opcode::Negate, &[])
    }
}

/// Returns the greatest finite number of a type of at most 8 bits.
fn greatest_of(ty: ElementType) -> Option<f64> {
    let format = Format::of(ty)?;
    let values = (0..=u16::from(u8::MAX)).filter_map(|bits| match format.decode(bits) {
        SmallFloat::Real(value) if value.is_finite() => Some(value),
        _ => None,
    });
    values.reduce(f64::max)
}

impl Body<'_, '_> {
    /// Adds a list of numbers, each at its index of a dim.
    fn constant_along(
        &mut self,
        list: ArrayLiteral,
        dim: i64,
        shape: ArrayShape,
    ) -> Import<InstId> {
        let of_list = Shape::Array(list.shape().clone());
        let list = self.emit(Op::Constant(Box::new(Literal::Array(list))), of_list, &[])?;
        self.broadcast(list, shape, [dim].into_iter().collect())
    }

    /// Adds a constant whose elements are all equal to a scalar.
    pub(in crate::import) fn constant(
        &mut self,
        one: Literal,
        shape: ArrayShape,
    ) -> Import<InstId> {
        let scalar = Shape::scalar(shape.element_type);
        let one = self.emit(Op::Constant(Box::new(one)), scalar, &[])?;
        if shape.rank() == 0 { Ok(one) } else { self.broadcast(one, shape, Dims::new()) }
    }
}
