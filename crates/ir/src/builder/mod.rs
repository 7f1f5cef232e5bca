//! Builds modules for front ends: the builder infers shapes, makes up names, and verifies the
//! finished module.
//!
//! Each family of ops has a file with the methods that add them; `annotate.rs` has the methods
//! that set the source of instructions and the sharding of their values.

mod annotate;
mod collective;
mod contract;
mod control;
mod elementwise;
mod error;
mod indexing;
mod reduce;
mod shaping;

use rustc_hash::{FxHashMap, FxHashSet};
use smol_str::SmolStr;

use crate::edit::Position;
use crate::entity::{CompId, Entity as _, InstId};
use crate::infer::infer_shape;
use crate::metadata::Header;
use crate::module::Module;
use crate::ops::Op;
use crate::ops::shaping::ParameterAttrs;
use crate::types::shape::{ArrayShape, Shape};
use crate::verify::{Verified, verify};
use annotate::Scope;
use error::misfit;
pub use error::{BuildError, OperandList};

/// Builds a module instruction by instruction.
///
/// A method adds one instruction and has the name of its op, as in XLA's `XlaBuilder`. It takes
/// values by the ids that other methods returned, and dims as `[0, 2]`, a slice or a
/// [`Dims`](crate::Dims); dims are counted from 0. The shape of the result is inferred. If the
/// operands do not fit, nothing is added, and the error names the method and its operands.
///
/// A dense layer with a rectifier, `max(x * w + bias, 0)`:
///
/// ```
/// use tilewright_ir::{Builder, ElementType, Literal, Opcode, Shape};
///
/// # fn main() -> Result<(), tilewright_ir::BuildError> {
/// let f32 = ElementType::F32;
/// let mut b = Builder::new("dense");
/// let x = b.parameter("x", Shape::array(f32, [8, 16]))?;
/// let w = b.parameter("w", Shape::array(f32, [16, 4]))?;
/// let bias = b.parameter("bias", Shape::array(f32, [4]))?;
///
/// let product = b.dot(x, w)?;
/// let bias = b.broadcast(bias, [8, 4], [1])?;
/// let sum = b.binary(Opcode::Add, product, bias)?;
/// let zero = b.constant(Literal::scalar(f32, 0.0_f32)?)?;
/// let zero = b.broadcast(zero, [8, 4], [])?;
/// let result = b.binary(Opcode::Maximum, sum, zero)?;
///
/// let module = b.finish(result)?;
/// assert_eq!(module.shape(result).to_string(), "f32[8,4]");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Builder {
    module: Module,
    current: CompId,
    entry: CompId,
    /// The number of computations with a root. They stand first in the order, callees before
    /// callers; the unfinished ones follow, callers first.
    finished: usize,
    /// The next number to try for computations of a name.
    next_number: FxHashMap<SmolStr, u64>,
    computation_names: FxHashSet<SmolStr>,
    /// The annotations of the added instructions.
    scope: Scope,
}

/// A computation of a [`Builder`] that was begun and has not ended.
#[derive(Debug)]
#[must_use = "the builder adds to this computation until it ends"]
pub struct BegunComputation {
    id: CompId,
    /// The computation that was open before.
    caller: CompId,
    scope: Scope,
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
            scope: Scope::default(),
        }
    }

    /// Returns the module so far.
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// Returns the computation that instructions are added to.
    pub fn current_computation(&self) -> CompId {
        self.current
    }

    /// Returns the header of the module, for example to set how many replicas run the program.
    pub fn header_mut(&mut self) -> &mut Header {
        &mut self.module.header
    }

    /// Calls `f` with the module so far and the computation that instructions are added to, and then
    /// undoes what `f` changed, but for the module's name and header. An op can be read from text in
    /// this way, since reading adds it to a module. The time depends on the number of changes and of
    /// computations, while a copy of the module would take time for all its instructions.
    ///
    /// ```
    /// use tilewright_ir::{Builder, ElementType, Shape};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut b = Builder::new("tried");
    /// let x = b.parameter("x", Shape::array(ElementType::F32, [8]))?;
    /// b.trial(|module, computation| {
    ///     module.add_computation("reducer");
    ///     module.set_root(x)
    /// })?;
    /// assert_eq!(b.module().computations().len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn trial<T>(&mut self, f: impl FnOnce(&mut Module, CompId) -> T) -> T {
        self.module.begin_trial();
        let done = f(&mut self.module, self.current);
        self.module.roll_back();
        done
    }

    /// Returns the shape of a value that is an array.
    ///
    /// # Errors
    /// Returns an error if the value is not an array.
    pub fn array_shape(&self, id: InstId) -> Result<&ArrayShape, BuildError> {
        let method = "array_shape";
        self.check_ids(method, &[id])?;
        let none = || BuildError::NotAnArray { method, name: self.module.name_of(id).into() };
        self.module.array_shape(id).ok_or_else(none)
    }

    /// Adds a computation: `body` adds its instructions and returns its root. The calling
    /// computation can then call it. The instructions have the metadata of
    /// [`Builder::with_metadata`], but neither sharding nor frontend attributes of their
    /// caller.
    ///
    /// # Errors
    /// Returns an error if a computation has the name, if `body` returns one, or if the root
    /// lies in another computation; the module then lacks the computation.
    /// [`Builder::free_computation_name`] makes free names.
    pub fn computation(
        &mut self,
        name: &str,
        body: impl FnOnce(&mut Self) -> Result<InstId, BuildError>,
    ) -> Result<CompId, BuildError> {
        let begun = self.begin_computation(name)?;
        match body(self) {
            Ok(root) => self.end_computation(begun, root),
            Err(error) => {
                self.abandon_computation(begun)?;
                Err(error)
            }
        }
    }

    /// Begins a computation: what is added belongs to it until [`Builder::end_computation`]. This is
    /// [`Builder::computation`] for callers that cannot pass a closure, such as bindings for other
    /// languages.
    ///
    /// # Errors
    /// Returns an error if a computation has the name.
    pub fn begin_computation(&mut self, name: &str) -> Result<BegunComputation, BuildError> {
        if !self.computation_names.insert(name.into()) {
            let why = format!("there is a computation `{name}`; take a name that none has");
            return Err(misfit("computation", "name", why));
        }
        let id = self.module.add_computation(name);
        let caller = std::mem::replace(&mut self.current, id);
        Ok(BegunComputation { id, caller, scope: self.enter_computation() })
    }

    /// Ends the computation that was begun last.
    ///
    /// # Errors
    /// Returns an error if another computation was begun later and has not ended, or if the root
    /// lies in another computation; the module then lacks the computation.
    pub fn end_computation(
        &mut self,
        begun: BegunComputation,
        root: InstId,
    ) -> Result<CompId, BuildError> {
        let method = "computation";
        let id = self.leave(begun)?;
        let ended = self.check_ids(method, &[root]).and_then(|()| self.set_root(method, id, root));
        if let Err(error) = ended {
            self.computation_names.remove(self.module.computation(id).name());
            return Err(error);
        }
        self.module.order.insert(self.finished, id);
        self.finished += 1;
        Ok(id)
    }

    /// Leaves out the computation that was begun last.
    ///
    /// # Errors
    /// Returns an error if another computation was begun later and has not ended.
    pub fn abandon_computation(&mut self, begun: BegunComputation) -> Result<(), BuildError> {
        let id = self.leave(begun)?;
        self.computation_names.remove(self.module.computation(id).name());
        Ok(())
    }

    /// Goes back to the computation in which this one was begun.
    fn leave(&mut self, begun: BegunComputation) -> Result<CompId, BuildError> {
        let BegunComputation { id, caller, scope } = begun;
        if self.current != id {
            let open = self.module.computation(self.current).name();
            let why = format!("the computation `{open}` was begun later and has not ended");
            return Err(misfit("computation", "body", why));
        }
        self.scope = scope;
        self.current = caller;
        // It is the last in the order: those it contains have left.
        self.module.order.pop();
        Ok(id)
    }

    /// Returns a name that no computation of this builder has and that was not returned before:
    /// `stem`, or `stem.1`, `stem.2` ...
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
    /// Returns an error if ids have run out.
    pub fn parameter(&mut self, name: &str, shape: Shape) -> Result<InstId, BuildError> {
        let number = self.module.computation(self.current).parameters().len();
        let number = i64::try_from(number).unwrap_or(i64::MAX);
        let op = Op::Parameter(Box::new(ParameterAttrs { number }));
        self.add("parameter", op, shape, &[], name)
    }

    /// Adds any op whose shape can be inferred.
    ///
    /// # Errors
    /// Returns an error if operands and attributes do not fit, or the shape must be declared.
    pub fn op(&mut self, op: Op, operands: impl AsRef<[InstId]>) -> Result<InstId, BuildError> {
        self.made("op", op, None, operands.as_ref())
    }

    /// Adds any op with a declared shape, which is checked.
    ///
    /// # Errors
    /// Returns an error if operands, attributes and shape do not fit.
    pub fn op_with_shape(
        &mut self,
        op: Op,
        shape: Shape,
        operands: impl AsRef<[InstId]>,
    ) -> Result<InstId, BuildError> {
        self.made("op_with_shape", op, Some(shape), operands.as_ref())
    }

    /// Ends the entry computation with its root and verifies the module.
    ///
    /// # Errors
    /// Returns an error if the root lies in another computation, or the module breaks a rule of
    /// the verifier.
    pub fn finish(mut self, root: InstId) -> Result<Verified, BuildError> {
        self.check_ids("finish", &[root])?;
        self.set_root("finish", self.entry, root)?;
        Ok(verify(self.module)?)
    }

    /// Adds the op of a called method; its shape is inferred, or checked if it is declared.
    fn made(
        &mut self,
        method: &'static str,
        op: Op,
        declared: Option<Shape>,
        operands: &[InstId],
    ) -> Result<InstId, BuildError> {
        let inferred = self.inferred(method, &op, declared.as_ref(), operands)?;
        let name = op.opcode().name();
        self.add(method, op, declared.unwrap_or(inferred), operands, name)
    }

    fn inferred(
        &self,
        method: &'static str,
        op: &Op,
        declared: Option<&Shape>,
        operands: &[InstId],
    ) -> Result<Shape, BuildError> {
        self.check_ids(method, operands)?;
        let mut unknown = None;
        op.for_each_computation(&mut |c| {
            if c.index() >= self.module.computations.len() {
                unknown = Some(c);
            }
        });
        if let Some(unknown) = unknown {
            let why = format!("computation {} was not made by this builder", unknown.index());
            return Err(misfit(method, "computation", why));
        }
        let shapes: Vec<&Shape> = operands.iter().map(|&o| self.module.shape(o)).collect();
        infer_shape(&self.module, op, &shapes, declared).map_err(|error| BuildError::Shape {
            method,
            operands: OperandList::of(&self.module, operands),
            error,
        })
    }

    fn add(
        &mut self,
        method: &'static str,
        op: Op,
        shape: Shape,
        operands: &[InstId],
        name: &str,
    ) -> Result<InstId, BuildError> {
        let name = self.module.fresh_name(name);
        let inserted = self.module.insert(Position::End(self.current), op, shape, operands, name);
        let id = inserted.map_err(|error| BuildError::Edit { method, error })?;
        self.annotate(id);
        Ok(id)
    }

    /// Checks that ids can be ids of this builder's values.
    fn check_ids(&self, method: &'static str, ids: &[InstId]) -> Result<(), BuildError> {
        let bound = self.module.instruction_bound();
        match ids.iter().find(|id| id.index() >= bound) {
            None => Ok(()),
            Some(id) => {
                let why = format!("instruction {} was not made by this builder", id.index());
                Err(misfit(method, "operand", why))
            }
        }
    }

    /// Returns the shape of an operand that a method takes as an array.
    fn array(&self, method: &'static str, id: InstId) -> Result<&ArrayShape, BuildError> {
        self.check_ids(method, &[id])?;
        self.module.array_shape(id).ok_or_else(|| {
            let (name, shape) = (self.module.name_of(id), self.module.shape(id));
            misfit(method, "operand", format!("operand `{name}` is {shape}, not an array"))
        })
    }

    fn set_root(
        &mut self,
        method: &'static str,
        computation: CompId,
        root: InstId,
    ) -> Result<(), BuildError> {
        let checked = self.module.check_operands(computation, &[root]);
        let set = checked.and_then(|()| self.module.set_root(root));
        set.map_err(|error| BuildError::Edit { method, error })
    }
}
