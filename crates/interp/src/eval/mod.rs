//! One function per op (or group of ops that share a rule), found through the
//! rows of the table of ops: a row's `family::rule` is the function here too.

mod asynchronous;
mod bits;
mod collective;
mod contract;
mod control;
mod custom;
pub(crate) use custom::moves_only;
pub(crate) mod elementwise;
mod fft;
pub(crate) mod fold;
mod gather;
mod indexing;
mod linalg;
mod matmul;
mod memory;
mod monoid;
mod ragged;
pub(crate) mod random;
mod random_bits;
mod reduce;
mod running;
mod scaled;
mod scan;
mod scatter;
mod shaping;
mod sort;
mod taps;
mod transfer;
mod triangular;
mod window;

use std::rc::Rc;

use smallvec::SmallVec;
use tilewright_ir::{
    ArrayShape, CompId, Data, Dims, ElementType, InstId, Native, Op, Shape, Verified,
};

use crate::error::{Fault, Outcome};
use crate::frame::Evaluator;
use crate::lanes::Callee;
use crate::limits::Charge;
use crate::value::{Array, Value, num_bytes};

/// The operands of an instruction.
pub(crate) type Operands = SmallVec<[Value; 4]>;

/// The context of an op's function: its operands, and the evaluation.
pub(crate) struct Cx<'e, 'm> {
    pub(crate) evaluator: &'e mut Evaluator<'m>,
    pub(crate) id: InstId,
    /// The shape of the result: as declared, or as known at run time.
    pub(crate) shape: &'e Shape,
    pub(crate) operands: Operands,
}

macro_rules! bind {
    ($name:ident $payload:ident) => {
        $name
    };
}

macro_rules! dispatch {
    ($($variant:ident $(($payload:ident))? $text:literal $arity:ident($count:literal)
        $family:ident::$rule:ident [$($flag:ident)*];)*) => {
        /// Evaluates an instruction that is not a parameter.
        pub(crate) fn instruction(cx: &mut Cx<'_, '_>) -> Outcome<Value> {
            match cx.module().op(cx.id) {
                $(Op::$variant $((bind!(attrs $payload)))? => {
                    $family::$rule(cx $(, bind!(attrs $payload))?)
                })*
            }
        }
    };
}

tilewright_ir::for_each_op!(dispatch);

impl<'e, 'm> Cx<'e, 'm> {
    pub(crate) fn module(&self) -> &'m Verified {
        self.evaluator.module
    }

    /// Returns an operand.
    pub(crate) fn operand(&self, index: usize) -> Outcome<&Value> {
        self.operands.get(index).ok_or(Fault::Internal("an operand is missing"))
    }

    /// Returns an operand, as an array.
    pub(crate) fn array(&self, index: usize) -> Outcome<&Array> {
        self.operand(index)?.array()
    }

    /// Returns an operand, given up by the frame: where this was its last use, it is not shared
    /// any more.
    pub(crate) fn take(&mut self, index: usize) -> Outcome<Value> {
        let slot = self.operands.get_mut(index).ok_or(Fault::Internal("an operand is missing"))?;
        Ok(std::mem::replace(slot, Value::Token))
    }

    /// Returns the result's shape.
    pub(crate) fn shape(&self) -> &'e Shape {
        self.shape
    }

    /// Returns the shape of a result that is an array of static dims.
    pub(crate) fn array_shape(&self) -> Outcome<&'e ArrayShape> {
        static_array(self.shape())
    }

    /// Returns the shape of one element of a result that may be a tuple.
    pub(crate) fn leaf_shape(&self, index: usize) -> Outcome<&'e ArrayShape> {
        match self.shape() {
            Shape::Tuple(elements) => {
                static_array(elements.get(index).ok_or(Fault::Internal("a result is missing"))?)
            }
            other => static_array(other),
        }
    }

    /// Reserves the memory of an array, before it is made.
    pub(crate) fn allocate(&self, shape: &ArrayShape) -> Outcome<Allocation> {
        let too_large = || Fault::Internal("an array has more than 2^63 elements");
        let len = shape.num_elements().ok_or_else(too_large)?;
        let len = usize::try_from(len).map_err(|_| too_large())?;
        let bytes = num_bytes(shape.element_type, len);
        let charge = self.evaluator.ledger.reserve(bytes)?;
        Ok(Allocation { element_type: shape.element_type, dims: shape.dims().into(), len, charge })
    }

    /// Reserves the memory of the declared result and counts the work of
    /// computing each of its elements once.
    pub(crate) fn allocate_result(&self) -> Outcome<Allocation> {
        let allocation = self.allocate(self.array_shape()?)?;
        self.spend(allocation.len)?;
        Ok(allocation)
    }

    /// Returns the result if it has no elements. Then there is nothing to compute, and sizes,
    /// whose product may exceed 64 bits beside a 0, are not multiplied.
    pub(crate) fn empty_result(&self) -> Outcome<Option<Value>> {
        let allocation = self.allocate(self.array_shape()?)?;
        if allocation.len > 0 {
            return Ok(None);
        }
        let nothing = Data::zeros(allocation.element_type, 0);
        allocation.with(nothing).map(Some)
    }

    /// Reserves memory for `count` elements that only this op uses.
    pub(crate) fn scratch(&self, bytes_each: usize, count: usize) -> Outcome<Charge> {
        let bytes = u64::try_from(bytes_each.saturating_mul(count)).unwrap_or(u64::MAX);
        self.evaluator.ledger.reserve(bytes)
    }

    /// Counts work: elements computed or read.
    pub(crate) fn spend(&self, elements: usize) -> Outcome<()> {
        self.evaluator.ledger.spend(u64::try_from(elements).unwrap_or(u64::MAX))
    }

    /// Runs a computation.
    pub(crate) fn call(
        &mut self,
        computation: CompId,
        arguments: SmallVec<[Value; 4]>,
    ) -> Outcome<Value> {
        self.evaluator.run(computation, arguments)
    }

    /// Returns a computation of scalars, to be run over many of them.
    pub(crate) fn callee(&mut self, computation: CompId, lanes: usize) -> Outcome<Callee> {
        Callee::new(self.evaluator, computation, lanes)
    }
}

/// Returns an array's shape whose dims are all static.
pub(crate) fn static_array(shape: &Shape) -> Outcome<&ArrayShape> {
    match shape {
        Shape::Array(array) if array.is_static() && array.num_elements().is_some() => Ok(array),
        other => Err(unsupported(format!("a result of shape {other}"))),
    }
}

/// Returns the error for an unsupported part of an op.
pub(crate) fn unsupported(what: impl Into<String>) -> Fault {
    Fault::Unsupported(what.into())
}

/// Memory reserved for an array that is about to be made.
pub(crate) struct Allocation {
    pub(crate) element_type: ElementType,
    pub(crate) dims: Dims,
    pub(crate) len: usize,
    charge: Charge,
}

impl Allocation {
    /// Returns the array.
    pub(crate) fn with(self, data: Data) -> Outcome<Value> {
        Ok(Value::Array(Array::new(self.element_type, self.dims, data, self.charge)?))
    }

    /// Returns the array, of typed elements.
    pub(crate) fn of<T: Native>(self, values: Vec<T>) -> Outcome<Value> {
        self.with(T::wrap(values))
    }
}

/// Several values as one.
pub(crate) fn tuple(values: impl IntoIterator<Item = Value>) -> Value {
    Value::Tuple(Rc::new(values.into_iter().collect()))
}
