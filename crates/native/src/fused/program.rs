//! Programs as callers build them: operands, elementwise ops, reductions and outputs over one
//! iteration space. `plan.rs` divides a program into passes, and `run.rs` runs it.

use half::{bf16, f16};

use super::output::{OutputPtr, complete, with_capacity};
use super::run::run;
use crate::error::Error;
use crate::pool::Pool;
use crate::view::View;

/// The element type of an operand or an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `f32`.
    F32,
    /// `f64`.
    F64,
    /// `bf16`.
    Bf16,
    /// `f16`.
    F16,
    /// Truth values; programs compute with 1 and 0.
    Bool,
}

impl Kind {
    /// The number of bytes of an element.
    pub(super) fn size(self) -> usize {
        match self {
            Self::F32 => size_of::<f32>(),
            Self::F64 => size_of::<f64>(),
            Self::Bf16 => size_of::<bf16>(),
            Self::F16 => size_of::<f16>(),
            Self::Bool => size_of::<bool>(),
        }
    }
}

/// An array that a program reads.
#[derive(Clone, Debug)]
pub enum Operand<'a> {
    /// Elements of type `f32`.
    F32(View<'a, f32>),
    /// Elements of type `f64`; the program then computes in `f64`.
    F64(View<'a, f64>),
    /// Elements of type `bf16`.
    Bf16(View<'a, bf16>),
    /// Elements of type `f16`.
    F16(View<'a, f16>),
    /// Truth values.
    Bool(View<'a, bool>),
}

/// Evaluates an expression with the view of an operand, whatever its element type is.
macro_rules! with_view {
    ($operand:expr, $view:ident => $body:expr) => {
        match $operand {
            $crate::fused::Operand::F32($view) => $body,
            $crate::fused::Operand::F64($view) => $body,
            $crate::fused::Operand::Bf16($view) => $body,
            $crate::fused::Operand::F16($view) => $body,
            $crate::fused::Operand::Bool($view) => $body,
        }
    };
}
pub(super) use with_view;

impl Operand<'_> {
    /// The sizes of the dims.
    pub fn dims(&self) -> &[usize] {
        with_view!(self, view => view.dims())
    }

    pub(super) fn strides(&self) -> &[isize] {
        with_view!(self, view => view.strides())
    }

    pub(super) fn is_f64(&self) -> bool {
        matches!(self, Self::F64(_))
    }
}

impl<'a> Operand<'a> {
    pub(crate) fn broadcast(&self, dims: &[usize], along: &[usize]) -> Result<Self, Error> {
        with_view!(self, view => Ok(view.broadcast(dims, along)?.into()))
    }

    pub(crate) fn split(&self, dim: usize, parts: usize) -> Result<Self, Error> {
        with_view!(self, view => Ok(view.split(dim, parts)?.into()))
    }

    /// The type of the elements.
    pub fn kind(&self) -> Kind {
        match self {
            Self::F32(_) => Kind::F32,
            Self::F64(_) => Kind::F64,
            Self::Bf16(_) => Kind::Bf16,
            Self::F16(_) => Kind::F16,
            Self::Bool(_) => Kind::Bool,
        }
    }
}

macro_rules! operand {
    ($($variant:ident $type:ty),*) => { $(
        impl<'a> From<View<'a, $type>> for Operand<'a> {
            fn from(view: View<'a, $type>) -> Self {
                Self::$variant(view)
            }
        }
    )* };
}

operand!(F32 f32, F64 f64, Bf16 bf16, F16 f16, Bool bool);

/// The elements of an array that a program wrote.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Elements of type `f32`.
    F32(Vec<f32>),
    /// Elements of type `f64`.
    F64(Vec<f64>),
    /// Elements of type `bf16`.
    Bf16(Vec<bf16>),
    /// Elements of type `f16`.
    F16(Vec<f16>),
    /// Truth values.
    Bool(Vec<bool>),
}

/// A slice for the elements of an array that a program writes, in row-major order.
#[derive(Debug)]
pub enum ValuesMut<'a> {
    /// Elements of type `f32`.
    F32(&'a mut [f32]),
    /// Elements of type `f64`.
    F64(&'a mut [f64]),
    /// Elements of type `bf16`.
    Bf16(&'a mut [bf16]),
    /// Elements of type `f16`.
    F16(&'a mut [f16]),
    /// Truth values.
    Bool(&'a mut [bool]),
}

impl ValuesMut<'_> {
    fn len(&self) -> usize {
        match self {
            Self::F32(data) => data.len(),
            Self::F64(data) => data.len(),
            Self::Bf16(data) => data.len(),
            Self::F16(data) => data.len(),
            Self::Bool(data) => data.len(),
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Self::F32(_) => Kind::F32,
            Self::F64(_) => Kind::F64,
            Self::Bf16(_) => Kind::Bf16,
            Self::F16(_) => Kind::F16,
            Self::Bool(_) => Kind::Bool,
        }
    }
}

/// An array that a program wrote, in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// The sizes of the dims.
    pub dims: Vec<usize>,
    /// The elements.
    pub values: Values,
}

/// An elementwise op of one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unary {
    /// `-x`.
    Negate,
    /// `|x|`.
    Abs,
    /// `e^x`.
    Exp,
    /// The natural logarithm.
    Log,
    /// The square root.
    Sqrt,
    /// `1 / sqrt(x)`.
    Rsqrt,
    /// The hyperbolic tangent.
    Tanh,
    /// `1 / (1 + e^-x)`.
    Logistic,
    /// 1 where `x` is 0, else 0.
    Not,
    /// `x` rounded to the nearest `f32`.
    ToF32,
    /// `x` rounded to the nearest `bf16`.
    ToBf16,
    /// `x` rounded to the nearest `f16`.
    ToF16,
}

/// An elementwise op of two values. Comparisons give 1 or 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary {
    /// `a + b`.
    Add,
    /// `a - b`.
    Subtract,
    /// `a b`.
    Multiply,
    /// `a / b`.
    Divide,
    /// The greater one; NaN if either is NaN.
    Maximum,
    /// The lesser one; NaN if either is NaN.
    Minimum,
    /// `a^b`.
    Power,
    /// `a = b`.
    Equal,
    /// `a != b`.
    NotEqual,
    /// `a < b`.
    Less,
    /// `a <= b`.
    LessEqual,
}

/// How a reduction combines elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// The sum.
    Sum,
    /// The product.
    Product,
    /// The greatest element; NaN if there is one.
    Max,
    /// The least element; NaN if there is one.
    Min,
    /// The mean, and the sum of the squared deviations from it ([`Program::deviations`]), in one
    /// reading. Blocks have their own means and sums, which are combined as by Chan, Golub and
    /// LeVeque ("Updating formulae and a pairwise algorithm for computing sample variances", 1979).
    Moments,
}

/// The id of a value of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Id(pub(super) usize);

/// How a value of a program is computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ProgramNode {
    /// The operand of this index.
    Input(usize),
    Constant(f64),
    Unary(Unary, Id),
    Binary(Binary, Id, Id),
    /// The second value where the first is not 0, else the third.
    Select(Id, Id, Id),
    /// A reduction of a value along a set of dims, in which bit `i` stands for dim `i`.
    Reduce(Reduction, Id, u64),
    /// The sum of squared deviations that a reduction by moments found.
    Deviations(Id),
}

/// An output: the value that is written, and its array.
#[derive(Clone, Copy, Debug)]
pub(super) struct OutputSpec {
    pub(super) of: Id,
    /// The set of dims that the array does not have.
    pub(super) dropped: u64,
    pub(super) kind: Kind,
}

/// A computation over one iteration space, such as a norm: elementwise ops and reductions of
/// arrays. Reduced values are used together with whole ones, as if they were broadcast back.
///
/// ```
/// use tilewright_native::fused::{Binary, Kind, Program, Reduction};
/// use tilewright_native::{Serial, View};
///
/// // Each row divided by its sum.
/// let mut program = Program::new(&[2, 3])?;
/// let x = program.input();
/// let sum = program.reduce(Reduction::Sum, x, &[1])?;
/// let share = program.binary(Binary::Divide, x, sum)?;
/// program.output(share, &[], Kind::F32)?;
/// let x = [1.0f32, 2.0, 1.0, 5.0, 0.0, 5.0];
/// let outputs = program.run(&[View::row_major(&x, &[2, 3])?.into()], &Serial)?;
/// let expected = [0.25f32, 0.5, 0.25, 0.5, 0.0, 0.5];
/// assert_eq!(outputs[0].values, tilewright_native::fused::Values::F32(expected.into()));
/// # Ok::<(), tilewright_native::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Program {
    pub(super) dims: Vec<usize>,
    pub(super) inputs: usize,
    pub(super) nodes: Vec<ProgramNode>,
    pub(super) outputs: Vec<OutputSpec>,
    /// Whether values are `f64` even if no operand and no output is.
    pub(super) is_wide: bool,
}

/// The most dims, and the most reductions, of a program: a set of them is the bits of a `u64`.
pub(super) const MOST: usize = 64;

impl Program {
    /// Makes a program over all indices of these dims.
    ///
    /// # Errors
    /// If there are more than 64 dims, or the number of indices overflows.
    pub fn new(dims: &[usize]) -> Result<Self, Error> {
        let indices = dims.iter().try_fold(1usize, |all, &dim| all.checked_mul(dim.max(1)));
        if dims.len() > MOST || indices.is_none_or(|all| isize::try_from(all).is_err()) {
            return Err(Error::TooLarge);
        }
        Ok(Self {
            dims: dims.to_vec(),
            inputs: 0,
            nodes: Vec::new(),
            outputs: Vec::new(),
            is_wide: false,
        })
    }

    /// Computes in `f64`, even if no operand and no output is `f64`.
    pub fn compute_in_f64(&mut self) {
        self.is_wide = true;
    }

    /// Returns the number of elements along a set of dims: the product of their sizes.
    #[expect(clippy::cast_precision_loss, reason = "numbers that are rounded are not compared")]
    pub(super) fn count(&self, axes: u64) -> f64 {
        let dims = self.dims.iter().enumerate().filter(|(dim, _)| axes >> dim & 1 == 1);
        dims.map(|(_, &dim)| dim as f64).product()
    }

    pub(super) fn push(&mut self, node: ProgramNode) -> Id {
        self.nodes.push(node);
        Id(self.nodes.len() - 1)
    }

    /// Adds an operand: a view with the program's dims, whose stride is 0 along each dim where it
    /// does not vary.
    pub fn input(&mut self) -> Id {
        self.inputs += 1;
        self.push(ProgramNode::Input(self.inputs - 1))
    }

    /// Adds a constant.
    pub fn constant(&mut self, value: f64) -> Id {
        self.push(ProgramNode::Constant(value))
    }

    /// Adds an op of one value.
    ///
    /// # Errors
    /// If the program has no value of this id.
    pub fn unary(&mut self, op: Unary, of: Id) -> Result<Id, Error> {
        self.known(&[of])?;
        Ok(self.push(ProgramNode::Unary(op, of)))
    }

    /// Adds an op of two values.
    ///
    /// # Errors
    /// If the program has no value of one of these ids.
    pub fn binary(&mut self, op: Binary, a: Id, b: Id) -> Result<Id, Error> {
        self.known(&[a, b])?;
        Ok(self.push(ProgramNode::Binary(op, a, b)))
    }

    /// Adds the value that is `on_true` where `condition` is not 0, else `on_false`.
    ///
    /// # Errors
    /// If the program has no value of one of these ids.
    pub fn select(&mut self, condition: Id, on_true: Id, on_false: Id) -> Result<Id, Error> {
        self.known(&[condition, on_true, on_false])?;
        Ok(self.push(ProgramNode::Select(condition, on_true, on_false)))
    }

    /// Adds a reduction along some dims. Ops use the result as if it were broadcast along these
    /// dims.
    ///
    /// # Errors
    /// If the program has no value of this id, an axis is out of range or repeated, an extremum or
    /// moments of no elements are asked for, or the program already has 64 reductions.
    pub fn reduce(&mut self, reduction: Reduction, of: Id, axes: &[i64]) -> Result<Id, Error> {
        self.known(&[of])?;
        let axes = self.set(axes)?;
        let is_empty = self.dims.iter().enumerate().any(|(i, &d)| d == 0 && axes >> i & 1 == 1);
        if is_empty && !matches!(reduction, Reduction::Sum | Reduction::Product) {
            return Err(Error::Empty);
        }
        let reductions = self.nodes.iter().filter(|node| matches!(node, ProgramNode::Reduce(..)));
        if reductions.count() >= MOST {
            return Err(Error::TooLarge);
        }
        Ok(self.push(ProgramNode::Reduce(reduction, of, axes)))
    }

    /// Adds the sum of the squared deviations from the mean, which a [`Reduction::Moments`] finds.
    ///
    /// # Errors
    /// If `moments` is no such reduction of this program.
    pub fn deviations(&mut self, moments: Id) -> Result<Id, Error> {
        match self.nodes.get(moments.0) {
            Some(ProgramNode::Reduce(Reduction::Moments, ..)) => {
                Ok(self.push(ProgramNode::Deviations(moments)))
            }
            _ => Err(Error::OfAnotherProgram),
        }
    }

    /// Makes a value an output: an array of the program's dims without those in `dropped`, along
    /// which the value must not vary. Outputs have the order of these calls.
    ///
    /// # Errors
    /// If the program has no value of this id, or an axis is out of range or repeated.
    pub fn output(&mut self, of: Id, dropped: &[i64], kind: Kind) -> Result<(), Error> {
        self.known(&[of])?;
        let dropped = self.set(dropped)?;
        self.outputs.push(OutputSpec { of, dropped, kind });
        Ok(())
    }

    /// Computes the outputs. The bits are the same with any pool.
    ///
    /// # Errors
    /// If there is not one operand with the program's dims for each input, an output varies along a
    /// dim that its array does not have, the outputs do not fit in memory, or the pool caught the
    /// panic of a task.
    pub fn run(&self, operands: &[Operand<'_>], pool: &dyn Pool) -> Result<Vec<Output>, Error> {
        self.check(operands)?;
        let mut outputs = Vec::with_capacity(self.outputs.len());
        for number in 0..self.outputs.len() {
            let dims = self.dims_of(number);
            let len = dims.iter().try_fold(1usize, |all, &dim| all.checked_mul(dim));
            let values = with_capacity(self.outputs[number].kind, len.ok_or(Error::TooLarge)?)?;
            outputs.push(Output { dims, values });
        }
        let starts = outputs.iter_mut().map(|output| OutputPtr::of(&mut output.values));
        let starts: Vec<OutputPtr> = starts.collect();
        // SAFETY: `check` found an operand of the program's dims for each input. `with_capacity`
        // reserved all elements of each output, in vectors that only this call can reach, and
        // unless `run` returns an error, it wrote all of them.
        unsafe {
            run(self, operands, &starts, pool)?;
            outputs.iter_mut().for_each(|output| complete(output));
        }
        Ok(outputs)
    }

    /// Computes the outputs, and writes each to the slice for it, in row-major order.
    ///
    /// # Errors
    /// Fails as [`Program::run`] does, and if there is not one slice for each output, of its type
    /// and with its number of elements.
    pub fn run_into(
        &self,
        operands: &[Operand<'_>],
        slices: &mut [ValuesMut<'_>],
        pool: &dyn Pool,
    ) -> Result<(), Error> {
        self.check(operands)?;
        if slices.len() != self.outputs.len() {
            return Err(Error::Rooms { given: slices.len(), wanted: self.outputs.len() });
        }
        for (number, slice) in slices.iter().enumerate() {
            let wanted = self.dims_of(number).iter().product();
            if slice.len() != wanted {
                return Err(Error::OutputOfOtherLength { given: slice.len(), results: wanted });
            }
            if slice.kind() != self.outputs[number].kind {
                return Err(Error::OtherKind { output: number });
            }
        }
        let starts: Vec<OutputPtr> = slices.iter_mut().map(OutputPtr::of_slice).collect();
        // SAFETY: `check` found an operand of the program's dims for each input. Each slice is
        // borrowed mutably, and was checked to have the type and the number of elements of its
        // output.
        unsafe { run(self, operands, &starts, pool) }
    }

    /// Returns the dims of the output of this index; none if there is no such output.
    pub fn dims_of(&self, output: usize) -> Vec<usize> {
        let dropped = self.outputs.get(output).map_or(u64::MAX, |output| output.dropped);
        let dims = self.dims.iter().enumerate().filter(|(dim, _)| dropped >> dim & 1 == 0);
        dims.map(|(_, &dim)| dim).collect()
    }

    fn check(&self, operands: &[Operand<'_>]) -> Result<(), Error> {
        if operands.len() != self.inputs {
            return Err(Error::Operands { given: operands.len(), wanted: self.inputs });
        }
        match operands.iter().find(|operand| operand.dims() != self.dims) {
            Some(other) => {
                Err(Error::OtherDims { given: other.dims().to_vec(), wanted: self.dims.clone() })
            }
            None => Ok(()),
        }
    }

    fn known(&self, ids: &[Id]) -> Result<(), Error> {
        let known = ids.iter().all(|id| id.0 < self.nodes.len());
        if known { Ok(()) } else { Err(Error::OfAnotherProgram) }
    }

    fn set(&self, axes: &[i64]) -> Result<u64, Error> {
        let named = crate::axes::named(self.dims.len(), axes)?;
        Ok(named.iter().enumerate().fold(0, |set, (i, &named)| set | u64::from(named) << i))
    }
}
