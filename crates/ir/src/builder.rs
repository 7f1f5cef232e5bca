//! How front ends make modules: shapes are inferred, names are made up, and
//! what comes out is verified.

use rustc_hash::{FxHashMap, FxHashSet};
use smol_str::SmolStr;

use crate::edit::{EditError, Position};
use crate::entity::{CompId, InstId};
use crate::infer::{ShapeError, infer_shape};
use crate::module::Module;
use crate::ops::elementwise::{CompareAttrs, Direction};
use crate::ops::reduce::ReduceAttrs;
use crate::ops::shaping::{
    BroadcastAttrs, IotaAttrs, ParameterAttrs, ReshapeAttrs, TransposeAttrs,
};
use crate::ops::{Op, Opcode};
use crate::types::element::ElementType;
use crate::types::literal::{Literal, LiteralError};
use crate::types::shape::{ArrayShape, Shape};
use crate::verify::{Rejected, Verified, verify};

/// Why a front end's program could not be built.
#[derive(Clone, Debug, thiserror::Error)]
pub enum BuildError {
    /// Operands, attributes and result do not fit.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// An operand belongs to another computation.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// The finished module does not verify.
    #[error(transparent)]
    Rejected(#[from] Box<Rejected>),
    /// An op with attributes was asked for without them.
    #[error("`{0}` needs attributes; make it with `Builder::op`")]
    NeedsAttributes(Opcode),
    /// An array was expected.
    #[error("`{0}` is not an array")]
    NotAnArray(String),
    /// What expands to several ops was asked for with arguments that do not fit.
    #[error("`{what}`: {why}")]
    Argument {
        /// What was asked for.
        what: &'static str,
        /// What is wrong, and what would be right.
        why: String,
    },
    /// A constant could not be made.
    #[error(transparent)]
    Literal(#[from] LiteralError),
}

/// Builds a module instruction by instruction.
///
/// ```
/// use tilewright_ir::{Builder, ElementType, Opcode, Shape};
///
/// # fn main() -> Result<(), tilewright_ir::BuildError> {
/// let mut b = Builder::new("double");
/// let x = b.parameter("x", Shape::array(ElementType::F32, [2, 3]))?;
/// let y = b.binary(Opcode::Add, x, x)?;
/// let module = b.finish(y)?;
/// assert_eq!(module.instruction_count(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Builder {
    module: Module,
    current: CompId,
    entry: CompId,
    /// How many computations have their root. They stand first in the order,
    /// callees before callers; after them those that are still being filled,
    /// callers first.
    finished: usize,
    /// The next number to try for computations of a name.
    next_number: FxHashMap<SmolStr, u64>,
    computation_names: FxHashSet<SmolStr>,
}

impl Builder {
    /// A builder of a module whose entry computation is `main`.
    pub fn new(name: &str) -> Self {
        let mut module = Module::new(name);
        let entry = module.add_computation("main");
        module.set_entry(entry);
        Self {
            module,
            current: entry,
            entry,
            finished: 0,
            next_number: FxHashMap::default(),
            computation_names: ["main".into()].into_iter().collect(),
        }
    }

    /// The module so far.
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// Adds a computation that `body` fills and whose root it returns; back
    /// in the calling computation, it can be called.
    ///
    /// # Errors
    /// What `body` returns, or if the root lies in another computation; the
    /// computation is not in the module then.
    pub fn computation(
        &mut self,
        name: &str,
        body: impl FnOnce(&mut Self) -> Result<InstId, BuildError>,
    ) -> Result<CompId, BuildError> {
        let id = self.module.add_computation(name);
        self.computation_names.insert(name.into());
        let caller = std::mem::replace(&mut self.current, id);
        let root = body(self);
        self.current = caller;
        // It is the last in the order: those it contains have left.
        self.module.order.pop();
        self.set_root(id, root?)?;
        self.module.order.insert(self.finished, id);
        self.finished += 1;
        Ok(id)
    }

    /// A name that no computation of this builder has and that was not told
    /// before: `stem`, or `stem.1`, `stem.2` ...
    pub fn free_computation_name(&mut self, stem: &str) -> String {
        let next = self.next_number.entry(stem.into()).or_default();
        loop {
            let name = match *next {
                0 => stem.to_owned(),
                number => format!("{stem}.{number}"),
            };
            *next += 1;
            if !self.computation_names.contains(name.as_str()) {
                return name;
            }
        }
    }

    /// Adds the next parameter of the current computation.
    ///
    /// # Errors
    /// If ids have run out.
    pub fn parameter(&mut self, name: &str, shape: Shape) -> Result<InstId, BuildError> {
        let number = self.module.computation(self.current).parameters().len();
        let number = i64::try_from(number).unwrap_or(i64::MAX);
        let op = Op::Parameter(Box::new(ParameterAttrs { number }));
        self.add(op, shape, &[], name)
    }

    /// Adds an op whose shape can be inferred.
    ///
    /// # Errors
    /// If operands and attributes do not fit, or the shape must be declared.
    pub fn op(&mut self, op: Op, operands: &[InstId]) -> Result<InstId, BuildError> {
        let shape = self.infer(&op, operands, None)?;
        let name = op.opcode().name();
        self.add(op, shape, operands, name)
    }

    /// Adds an op with a declared shape, which is checked.
    ///
    /// # Errors
    /// If operands, attributes and shape do not fit.
    pub fn op_with_shape(
        &mut self,
        op: Op,
        shape: Shape,
        operands: &[InstId],
    ) -> Result<InstId, BuildError> {
        self.infer(&op, operands, Some(&shape))?;
        let name = op.opcode().name();
        self.add(op, shape, operands, name)
    }

    /// Adds an elementwise op of one operand, without attributes.
    ///
    /// # Errors
    /// If the op does not take this operand or has attributes.
    pub fn unary(&mut self, opcode: Opcode, operand: InstId) -> Result<InstId, BuildError> {
        self.op(plain(opcode)?, &[operand])
    }

    /// Adds an elementwise op of two operands of the same dims, without
    /// attributes.
    ///
    /// # Errors
    /// If the op does not take these operands or has attributes.
    pub fn binary(
        &mut self,
        opcode: Opcode,
        lhs: InstId,
        rhs: InstId,
    ) -> Result<InstId, BuildError> {
        self.op(plain(opcode)?, &[lhs, rhs])
    }

    /// Adds a comparison.
    ///
    /// # Errors
    /// If the operands differ in shape.
    pub fn compare(
        &mut self,
        direction: Direction,
        lhs: InstId,
        rhs: InstId,
    ) -> Result<InstId, BuildError> {
        self.op(Op::Compare(Box::new(CompareAttrs { direction, order: None })), &[lhs, rhs])
    }

    /// Adds a constant.
    ///
    /// # Errors
    /// If ids have run out.
    pub fn constant(&mut self, value: Literal) -> Result<InstId, BuildError> {
        self.op(Op::Constant(Box::new(value)), &[])
    }

    /// Adds `0, 1, 2 ...` along a dim of an array.
    ///
    /// # Errors
    /// If there is no such dim.
    pub fn iota(&mut self, shape: Shape, dimension: i64) -> Result<InstId, BuildError> {
        self.op_with_shape(Op::Iota(Box::new(IotaAttrs { dimension })), shape, &[])
    }

    /// Adds a reshape to `dims`.
    ///
    /// # Errors
    /// If the number of elements would change.
    pub fn reshape(&mut self, operand: InstId, dims: &[i64]) -> Result<InstId, BuildError> {
        let shape = Shape::array(self.array(operand)?.element_type, dims.iter().copied());
        let op = Op::Reshape(Box::new(ReshapeAttrs { inferred_dimension: None }));
        self.op_with_shape(op, shape, &[operand])
    }

    /// Adds a broadcast to `dims`; operand dim `i` becomes `dimensions[i]`.
    ///
    /// # Errors
    /// If sizes do not fit.
    pub fn broadcast(
        &mut self,
        operand: InstId,
        dims: &[i64],
        dimensions: &[i64],
    ) -> Result<InstId, BuildError> {
        let shape = Shape::array(self.array(operand)?.element_type, dims.iter().copied());
        let op = Op::Broadcast(Box::new(BroadcastAttrs { dimensions: dimensions.into() }));
        self.op_with_shape(op, shape, &[operand])
    }

    /// Adds a transpose; result dim `i` is operand dim `permutation[i]`.
    ///
    /// # Errors
    /// If it is not a permutation.
    pub fn transpose(
        &mut self,
        operand: InstId,
        permutation: &[i64],
    ) -> Result<InstId, BuildError> {
        let op = Op::Transpose(Box::new(TransposeAttrs { dimensions: permutation.into() }));
        self.op(op, &[operand])
    }

    /// Adds a computation that combines two scalars, for [`Builder::reduce`].
    ///
    /// # Errors
    /// If the op is not one of two operands without attributes.
    pub fn reducer(
        &mut self,
        opcode: Opcode,
        element_type: ElementType,
    ) -> Result<CompId, BuildError> {
        let name = self.free_computation_name(opcode.name());
        self.computation(&name, |b| {
            let lhs = b.parameter("lhs", Shape::scalar(element_type))?;
            let rhs = b.parameter("rhs", Shape::scalar(element_type))?;
            b.binary(opcode, lhs, rhs)
        })
    }

    /// Adds a reduction over `dimensions`.
    ///
    /// # Errors
    /// If the computation does not take the element type.
    pub fn reduce(
        &mut self,
        operand: InstId,
        init: InstId,
        dimensions: &[i64],
        to_apply: CompId,
    ) -> Result<InstId, BuildError> {
        let attrs = ReduceAttrs { dimensions: dimensions.into(), to_apply };
        self.op(Op::Reduce(Box::new(attrs)), &[operand, init])
    }

    /// Ends the entry computation with its root and verifies the module.
    ///
    /// # Errors
    /// If the root lies in another computation, or the module breaks a rule of
    /// the verifier.
    pub fn finish(mut self, root: InstId) -> Result<Verified, BuildError> {
        self.set_root(self.entry, root)?;
        Ok(verify(self.module)?)
    }

    fn infer(
        &self,
        op: &Op,
        operands: &[InstId],
        declared: Option<&Shape>,
    ) -> Result<Shape, ShapeError> {
        let shapes: Vec<&Shape> = operands.iter().map(|&o| self.module.shape(o)).collect();
        infer_shape(&self.module, op, &shapes, declared)
    }

    fn add(
        &mut self,
        op: Op,
        shape: Shape,
        operands: &[InstId],
        name: &str,
    ) -> Result<InstId, BuildError> {
        let name = self.module.fresh_name(name);
        Ok(self.module.insert(Position::End(self.current), op, shape, operands, name)?)
    }

    fn array(&self, id: InstId) -> Result<&ArrayShape, BuildError> {
        self.module
            .array_shape(id)
            .ok_or_else(|| BuildError::NotAnArray(self.module.name_of(id).into()))
    }

    fn set_root(&mut self, computation: CompId, root: InstId) -> Result<(), EditError> {
        self.module.check_operands(computation, &[root])?;
        self.module.set_root(root)
    }
}

/// The op of an opcode without attributes, or with those it has by default.
fn plain(opcode: Opcode) -> Result<Op, BuildError> {
    Op::from_attrs(opcode, &mut Default::default()).map_err(|_| BuildError::NeedsAttributes(opcode))
}
