//! Accumulators: the registers, and the buffers that hold partial results in vector memory.

use smallvec::{SmallVec, smallvec};
use tilewright_ir::ops::attr::AttrValues;
use tilewright_ir::{ArrayLiteral, Data, ElementType, Literal, Op, Opcode};
use tilewright_target::{Alignment, Target};

use super::ReductionSpec;
use super::lift::lifted;
use crate::error::{LowerError, Unsupported, internal};
use crate::kernel::build::Build;
use crate::kernel::{
    BufferAddress, BufferId, Expr, FunctionId, Mask, RegisterId, Space, Statement, Value,
};

pub(crate) type Statements = Vec<Statement>;

/// One accumulator for each array and, if no identity is known, a flag that says whether the
/// accumulators hold a value.
#[derive(Debug)]
pub(crate) struct AccumulatorState {
    slots: Vec<Slot>,
    by: FunctionId,
    /// Elements of a register.
    vector: u64,
    /// Whether the last slot is the flag that says whether there is a value.
    pub(crate) is_lifted: bool,
}

#[derive(Debug)]
struct Slot {
    element_type: ElementType,
    identity: Literal,
    /// The element type in vector memory.
    stored: ElementType,
}

/// One register for each slot of a state.
pub(crate) type Registers = Vec<RegisterId>;

impl AccumulatorState {
    pub(crate) fn of(
        reduction: &ReductionSpec,
        target: &Target,
        vector: u64,
        build: &mut Build,
    ) -> Result<Self, LowerError> {
        let types: Vec<ElementType> = reduction.by.result_types().collect();
        let slot = |element_type, identity| Slot { element_type, identity, stored: element_type };
        let count = reduction.arrays.len();
        if types.len() != count || reduction.by.parameters != 2 * count {
            return Err(internal("a computation of other accumulators than there are arrays"));
        }
        if let Some(neutral) = &reduction.neutral {
            let identities = neutral.accumulated.iter().cloned();
            let slots: Vec<Slot> =
                types.into_iter().zip(identities).map(|(t, identity)| slot(t, identity)).collect();
            let by = build.function(reduction.by.clone());
            return Ok(Self { slots, by, vector, is_lifted: false });
        }
        let mut slots = Vec::with_capacity(count + 1);
        for element_type in types {
            slots.push(slot(element_type, zero(element_type)?));
        }
        let stored = flag_type(target, vector)?;
        let none = zero(ElementType::Pred)?;
        slots.push(Slot { element_type: ElementType::Pred, identity: none, stored });
        let by = build.function(lifted(&reduction.by).ok_or_else(|| {
            internal("a computation that combines no accumulators with elements")
        })?);
        Ok(Self { slots, by, vector, is_lifted: true })
    }

    /// Returns the type of an accumulator or of the flag.
    pub(crate) fn element_type(&self, slot: usize) -> Result<ElementType, LowerError> {
        self.slots
            .get(slot)
            .map(|slot| slot.element_type)
            .ok_or_else(|| internal("an accumulator that there is not"))
    }

    pub(crate) fn function(&self) -> FunctionId {
        self.by
    }

    pub(crate) fn registers(&self, build: &mut Build, name: &str) -> Registers {
        self.slots.iter().map(|s| build.register(name, s.element_type, self.vector)).collect()
    }

    pub(crate) fn buffers(&self, build: &mut Build, name: &str, len: u64) -> Vec<BufferId> {
        self.slots.iter().map(|s| build.buffer(name, Space::Vmem, s.stored, len)).collect()
    }

    pub(crate) fn identities(&self, registers: &[RegisterId]) -> Statements {
        let slots = self.slots.iter().zip(registers);
        slots.map(|(slot, &register)| set(register, Value::Splat(slot.identity.clone()))).collect()
    }

    /// Returns a register that says at every position that there is a value.
    pub(crate) fn present(&self, build: &mut Build) -> Result<(RegisterId, Statement), LowerError> {
        let there = ArrayLiteral::new(ElementType::Pred, [], Data::Pred(vec![true]));
        let there =
            Literal::Array(there.map_err(|_| internal("a truth value that is no literal"))?);
        let register = build.register("has", ElementType::Pred, self.vector);
        Ok((register, set(register, Value::Splat(there))))
    }

    /// Combines two sets of registers and assigns the result to a third.
    pub(crate) fn combine(
        &self,
        into: &[RegisterId],
        first: &[RegisterId],
        second: &[RegisterId],
    ) -> Statement {
        let operands: SmallVec<[RegisterId; 4]> = first.iter().chain(second).copied().collect();
        Statement::Set { registers: into.into(), value: Value::Call(self.by, operands) }
    }

    pub(crate) fn loads(
        &self,
        build: &mut Build,
        registers: &[RegisterId],
        from: &[BufferId],
        at: &Expr,
    ) -> Result<Statements, LowerError> {
        let mut statements = Statements::new();
        for ((slot, &register), &buffer) in self.slots.iter().zip(registers).zip(from) {
            let from = BufferAddress { buffer, at: at.clone() };
            let value = Value::Load { from, mask: Mask::new(), otherwise: None };
            if slot.stored == slot.element_type {
                statements.push(set(register, value));
            } else {
                let stored = build.register("w", slot.stored, self.vector);
                statements.push(set(stored, value));
                statements.push(set(register, convert(stored)?));
            }
        }
        Ok(statements)
    }

    pub(crate) fn stores(
        &self,
        build: &mut Build,
        registers: &[RegisterId],
        to: &[BufferId],
        at: &Expr,
    ) -> Result<Statements, LowerError> {
        let mut statements = Statements::new();
        for ((slot, &register), &buffer) in self.slots.iter().zip(registers).zip(to) {
            let mut from = register;
            if slot.stored != slot.element_type {
                from = build.register("w", slot.stored, self.vector);
                statements.push(set(from, convert(register)?));
            }
            let to = BufferAddress { buffer, at: at.clone() };
            statements.push(Statement::Store { to, from, mask: Mask::new() });
        }
        Ok(statements)
    }
}

/// Returns the type that stores flags in vector memory, such that their vectors are whole.
fn flag_type(target: &Target, vector: u64) -> Result<ElementType, LowerError> {
    use ElementType::{Pred, U16, U32, U64};
    let whole = |element_type: &ElementType| {
        target.alignment == Alignment::None
            || vector.is_multiple_of(target.vector_elements(*element_type))
    };
    [Pred, U16, U32, U64].into_iter().find(whole).ok_or_else(|| Unsupported::Tiles.into())
}

/// Returns the zero of a type, for elements that are never read.
pub(crate) fn zero(element_type: ElementType) -> Result<Literal, LowerError> {
    let zero = ArrayLiteral::new(element_type, [], Data::zeros(element_type, 1));
    zero.map(Literal::Array).map_err(|_| internal("a zero that is no literal"))
}

/// Converts a register to another type.
pub(crate) fn convert(register: RegisterId) -> Result<Value, LowerError> {
    apply(Opcode::Convert, smallvec![register])
}

/// Applies an op without attributes.
pub(crate) fn apply(
    opcode: Opcode,
    operands: SmallVec<[RegisterId; 3]>,
) -> Result<Value, LowerError> {
    let op = Op::from_attrs(opcode, &mut AttrValues::default());
    Ok(Value::Apply(op.map_err(|_| internal("an op that lacks attributes"))?, operands))
}

pub(crate) fn set(register: RegisterId, value: Value) -> Statement {
    Statement::Set { registers: smallvec![register], value }
}
