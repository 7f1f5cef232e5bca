//! Combines the vectors of a block with the accumulators.

use smallvec::smallvec;
use tilewright_ir::{ElementType, Opcode};

use super::blocks::{Blocks, Loop, signed};
use super::fused::{Array, Fused, MOST_IN_CHAINS, Stored};
use super::state::{Registers, Statements, apply, convert, set, zero};
use super::walk::Inner;
use crate::error::{LowerError, TooLarge, internal};
use crate::kernel::build::Build;
use crate::kernel::{BufferAddress, Expr, Mask, RegisterId, Value};

impl Fused<'_> {
    /// Combines the elements of the loops with the accumulators. Each level of loops has its own
    /// accumulator if that is more exact.
    pub(super) fn accumulate(
        &self,
        loops: &[&Loop],
        into: &Registers,
        build: &mut Build,
    ) -> Result<Statements, LowerError> {
        let Some((outermost, rest)) = loops.split_first() else {
            return self.element(into, build);
        };
        if rest.is_empty() || !self.reduction.rounds || self.longest >= MOST_IN_CHAINS {
            let body = self.accumulate(rest, into, build)?;
            return Ok(self.nest(&[outermost], body));
        }
        let own = self.state.registers(build, "a");
        let mut body = self.state.identities(&own);
        body.extend(self.accumulate(rest, &own, build)?);
        body.push(self.state.combine(into, into, &own));
        Ok(self.nest(&[outermost], body))
    }

    /// Combines the accumulators with one vector of each array.
    fn element(&self, into: &Registers, build: &mut Build) -> Result<Statements, LowerError> {
        let mask = self.walk.mask(&|dim| self.outer_index(dim))?;
        let mut statements = Statements::new();
        let is_read = |array: &Array<'_>| matches!(array.source, Stored::Memory { .. });
        // Padding must be masked although no load has a mask. A selection needs no mask for the
        // indices: elements in padding are the last in order, with indices past the end.
        let is_masked = |(place, array): (usize, &Array<'_>)| {
            let value = self.produced.as_ref().and_then(|produced| produced.values.get(place));
            is_read(array) || value.is_some_and(|&(_, masked)| masked)
        };
        let counts = self.selected.is_none() && !self.arrays.iter().enumerate().all(is_masked);
        let marks = self.state.is_lifted || counts;
        let under = if marks && !mask.is_empty() {
            let under = build.register("in", ElementType::Pred, self.walk.vector);
            statements.push(set(under, Value::Under(mask.clone())));
            Some(under)
        } else {
            None
        };
        let mut elements = Registers::new();
        for (place, array) in self.arrays.iter().enumerate() {
            let vector = self.vector((place, array), &mask, under, build, &mut statements)?;
            let accumulated = self.state.element_type(place)?;
            let types = [array.element_type, accumulated];
            elements.push(self.converted(build, vector, types, &mut statements)?);
        }
        if self.state.is_lifted {
            elements.push(match under {
                Some(under) => under,
                None => {
                    let (register, there) = self.state.present(build)?;
                    statements.push(there);
                    register
                }
            });
        }
        statements.push(match &self.selected {
            Some(selected) => selected.next(into, &elements),
            None => self.state.combine(into, into, &elements),
        });
        Ok(statements)
    }

    /// One vector of an array. Padding holds the identity if the identity is known.
    fn vector(
        &self,
        (place, array): (usize, &Array<'_>),
        mask: &Mask,
        under: Option<RegisterId>,
        build: &mut Build,
        statements: &mut Statements,
    ) -> Result<RegisterId, LowerError> {
        let element_type = array.element_type;
        let mut register = |name| build.register(name, element_type, self.walk.vector);
        let vector = match array.source {
            Stored::Indices(factors) => {
                let vector = register("i");
                statements.push(set(vector, self.positions(factors)?));
                vector
            }
            Stored::Computed => {
                let values = self.produced.as_ref().map(|produced| &produced.values);
                let &(value, masked) = values
                    .and_then(|v| v.get(place))
                    .ok_or_else(|| internal("elements that nothing computes"))?;
                if masked {
                    return Ok(value);
                }
                value
            }
            Stored::Memory { block, .. } => {
                let at = Blocks::address(self.blocks.within.iter())?;
                let vector = register("v");
                let otherwise = match (mask.is_empty(), array.padding) {
                    (true, _) => None,
                    (false, Some(padding)) => Some(padding.clone()),
                    (false, None) => Some(zero(element_type)?),
                };
                let from = BufferAddress { buffer: block, at };
                statements.push(set(vector, Value::Load { from, mask: mask.clone(), otherwise }));
                return Ok(vector);
            }
        };
        let (Some(under), Some(padding)) = (under, array.padding) else { return Ok(vector) };
        let neutral = register("n");
        statements.push(set(neutral, Value::Splat(padding.clone())));
        let select = apply(Opcode::Select, smallvec![under, vector, neutral])?;
        // A computed register must not be changed, because it can have other users.
        let counts = matches!(array.source, Stored::Indices(_));
        let chosen = if counts { vector } else { register("v") };
        statements.push(set(chosen, select));
        Ok(chosen)
    }

    /// Returns the sum of each index along a dim times its factor.
    fn positions(&self, factors: &[i64]) -> Result<Value, LowerError> {
        let factor = |dim: usize| factors.get(dim).copied().unwrap_or(0);
        let mut value = Expr::ZERO;
        for inner in &self.walk.inner {
            let along = inner.dim.map_or(0, factor);
            let digit = inner.digit.expr().ok_or(TooLarge::Elements)?;
            value = value + digit * signed(inner.unit)? * along;
        }
        for dim in 0..self.walk.dims.len() {
            value = value + self.outer_index(dim)? * factor(dim);
        }
        Ok(Value::Positions(value))
    }

    /// Converts a register to another type; the same register if it already has the type.
    pub(super) fn converted(
        &self,
        build: &mut Build,
        register: RegisterId,
        [from, to]: [ElementType; 2],
        statements: &mut Statements,
    ) -> Result<RegisterId, LowerError> {
        if from == to {
            return Ok(register);
        }
        let converted = build.register("w", to, self.walk.vector);
        statements.push(set(converted, convert(register)?));
        Ok(converted)
    }

    /// Returns the number of valid values of a digit in the current vector.
    pub(super) fn values(&self, inner: &Inner) -> Result<Expr, LowerError> {
        self.walk.values(inner, &|dim| self.outer_index(dim))
    }

    /// Returns the index along a dim of the first element of the current vector.
    pub(super) fn outer_index(&self, dim: usize) -> Result<Expr, LowerError> {
        Blocks::index(self.blocks.grid.iter().chain(&self.blocks.within), dim)
    }
}
