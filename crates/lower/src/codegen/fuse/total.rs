//! Accumulates reductions vector by vector, inside the loops over the reduced dims.

use smallvec::smallvec;
use tilewright_ir::{InstId, Literal, Opcode};

use super::emit::Emitter;
use super::scope::DimExpr;
use crate::codegen::reduce::ReductionSpec;
use crate::codegen::reduce::state::{AccumulatorState, Registers, apply, convert, set};
use crate::error::{LowerError, Unsupported, internal};
use crate::kernel::build::Build;
use crate::kernel::{RegisterId, Value};

/// The registers of one reduction.
pub(super) struct Total {
    state: AccumulatorState,
    registers: Registers,
}

impl Total {
    /// Sets the accumulators to the identity, outside all loops over reduced dims.
    pub(super) fn begin(
        emitter: &mut Emitter<'_>,
        build: &mut Build,
        reduction: &ReductionSpec,
        depth: usize,
    ) -> Result<Self, LowerError> {
        let state =
            AccumulatorState::of(reduction, emitter.target, emitter.scope.walk.vector, build)?;
        let registers = state.registers(build, "a");
        if let Some(level) = emitter.levels.get_mut(depth) {
            level.before.extend(state.identities(&registers));
        }
        Ok(Self { state, registers })
    }

    /// Combines one element of every vector with the accumulators. Each loop has its own
    /// accumulator, so that a value is rounded at most as often as the sum of the loops'
    /// lengths.
    pub(super) fn combine(
        &self,
        emitter: &mut Emitter<'_>,
        build: &mut Build,
        reduction: &ReductionSpec,
        of: (InstId, &[DimExpr]),
        [from, to]: [usize; 2],
    ) -> Result<(), LowerError> {
        let mut into = self.registers.clone();
        for depth in from + 1..to {
            let own = self.state.registers(build, "a");
            if let Some(level) = emitter.levels.get_mut(depth) {
                level.before.extend(self.state.identities(&own));
                level.after.push(self.state.combine(&into, &into, &own));
            }
            into = own;
        }
        let neutral = reduction.neutral.as_ref().and_then(|neutral| neutral.elements.first());
        let neutral = neutral.ok_or(Unsupported::NoIdentity)?;
        let element = emitter.element(build, of.0, of.1, neutral)?;
        let value = if element.is_masked {
            element.register
        } else {
            self.masked(emitter, build, neutral, of.0, element.register)?
        };
        let value = self.widened(emitter, build, of.0, value)?;
        if let Some(level) = emitter.levels.get_mut(to) {
            level.before.push(self.state.combine(&into, &into, &[value]));
        }
        Ok(())
    }

    /// Returns the elements, with the identity in padding.
    fn masked(
        &self,
        emitter: &mut Emitter<'_>,
        build: &mut Build,
        neutral: &Literal,
        id: InstId,
        value: RegisterId,
    ) -> Result<RegisterId, LowerError> {
        let mask = emitter.scope.whole_mask()?;
        let bounds = mask.iter().flat_map(|bound| [&bound.from, &bound.to]);
        let depth = bounds.map(|expr| emitter.scope.level(expr)).max().unwrap_or(0);
        let element_type = emitter.element_type(id)?;
        let pred = tilewright_ir::ElementType::Pred;
        let under = emitter.set_at(build, "in", pred, Value::Under(mask), depth);
        let neutral = emitter.set(build, "n", element_type, Value::Splat(neutral.clone()));
        let select = apply(Opcode::Select, smallvec![under, value, neutral])?;
        Ok(emitter.set(build, "v", element_type, select))
    }

    fn widened(
        &self,
        emitter: &mut Emitter<'_>,
        build: &mut Build,
        id: InstId,
        value: RegisterId,
    ) -> Result<RegisterId, LowerError> {
        let accumulated = self.state.element_type(0)?;
        if emitter.element_type(id)? == accumulated {
            return Ok(value);
        }
        Ok(emitter.set(build, "w", accumulated, convert(value)?))
    }

    /// Combines the elements within vectors and the init after all loops, and returns the
    /// result.
    pub(super) fn end(
        self,
        emitter: &mut Emitter<'_>,
        build: &mut Build,
        reduction: &ReductionSpec,
        id: InstId,
        depth: usize,
    ) -> Result<RegisterId, LowerError> {
        let &[_, init] = emitter.module.operands(id) else {
            return Err(internal("a reduce of other operands than an array and an init"));
        };
        let walk = emitter.scope.walk.clone();
        let total = self.registers;
        let reduced = |dim: Option<usize>| dim.is_some_and(|dim| reduction.axes.contains(&dim));
        let same = emitter.scope.walk.dims.len() == reduction.arrays[0].shape.rank();
        let digits = walk.inner.iter().filter(|inner| same && reduced(inner.dim));
        let mut folds = Vec::new();
        for inner in digits {
            let of = total.iter().copied().collect();
            let value = Value::Fold { by: self.state.function(), along: inner.digit, of };
            folds.push(set(total[0], value));
        }
        if let Some(level) = emitter.levels.get_mut(depth) {
            level.before.extend(folds);
        }
        let init_value = emitter.value(build, init, &[])?;
        let accumulated = self.state.element_type(0)?;
        let result_type = emitter.element_type(id)?;
        let init_value = if emitter.element_type(init)? == accumulated {
            init_value
        } else {
            emitter.set(build, "w", accumulated, convert(init_value)?)
        };
        let by = Value::Call(self.state.function(), smallvec![init_value, total[0]]);
        let done = emitter.set_at(build, "total", accumulated, by, depth);
        if result_type == accumulated {
            return Ok(done);
        }
        Ok(emitter.set_at(build, "total", result_type, convert(done)?, depth))
    }
}
