//! The computation that keeps one of two pairs, whatever their order.

use super::ArgExtremum;
use super::scalar_computation::{parameters, scalar_computation};
use crate::edit::{EditError, Position};
use crate::entity::{CompId, InstId};
use crate::module::Module;
use crate::ops::Op;
use crate::ops::elementwise::{CompareAttrs, Direction};
use crate::types::element::ElementType;
use crate::types::shape::Shape;

impl ArgExtremum {
    /// Adds a computation before the computation `caller` that keeps the pair that this extremum
    /// keeps, and of two pairs whose values are NaN the one with the least index (or the
    /// greatest, if equal values keep that). The index that a reduce by it returns does not depend
    /// on the order of the pairs. `None` if this extremum keeps a number rather than NaN, for then
    /// the computation would be another.
    ///
    /// # Errors
    /// Returns an error if the module cannot be edited.
    pub fn total(self, module: &mut Module, caller: CompId) -> Option<Result<CompId, EditError>> {
        self.nan_wins.then(|| self.computation(module, caller))
    }

    fn computation(self, module: &mut Module, caller: CompId) -> Result<CompId, EditError> {
        let [value_type, index_type] = self.element_types;
        let stem = if self.greatest { "first_greatest" } else { "first_least" };
        let id = scalar_computation(module, stem, caller);
        let pairs = [value_type, index_type, value_type, index_type];
        let operands = parameters(module, id, &pairs)?;
        let &[value, index, other, other_index] = operands.as_slice() else { return Ok(id) };
        let mut body = Body { module, id };
        let beyond = if self.greatest { Direction::Gt } else { Direction::Lt };
        let nearer = if self.first_index { Direction::Lt } else { Direction::Gt };
        let is_beyond = body.compare(value, other, beyond)?;
        let is_nan = body.compare(value, value, Direction::Ne)?;
        let is_kept = body.add(Op::Or, ElementType::Pred, &[is_beyond, is_nan])?;
        let is_equal = body.compare(value, other, Direction::Eq)?;
        let other_is_nan = body.compare(other, other, Direction::Ne)?;
        let both_nan = body.add(Op::And, ElementType::Pred, &[is_nan, other_is_nan])?;
        let ties = body.add(Op::Or, ElementType::Pred, &[is_equal, both_nan])?;
        let is_nearer = body.compare(index, other_index, nearer)?;
        let by_index = [ties, is_nearer, is_kept];
        let index_is_kept = body.add(Op::Select, ElementType::Pred, &by_index)?;
        let kept = body.add(Op::Select, value_type, &[is_kept, value, other])?;
        let kept_index = body.add(Op::Select, index_type, &[index_is_kept, index, other_index])?;
        let pair = Shape::Tuple(vec![Shape::scalar(value_type), Shape::scalar(index_type)]);
        let root = body.insert(Op::Tuple, pair, &[kept, kept_index])?;
        module.set_root(root)?;
        Ok(id)
    }
}

/// A computation under construction.
struct Body<'a> {
    module: &'a mut Module,
    id: CompId,
}

impl Body<'_> {
    fn compare(
        &mut self,
        one: InstId,
        other: InstId,
        direction: Direction,
    ) -> Result<InstId, EditError> {
        let op = Op::Compare(Box::new(CompareAttrs { direction, order: None }));
        self.add(op, ElementType::Pred, &[one, other])
    }

    fn add(
        &mut self,
        op: Op,
        element_type: ElementType,
        operands: &[InstId],
    ) -> Result<InstId, EditError> {
        self.insert(op, Shape::scalar(element_type), operands)
    }

    fn insert(&mut self, op: Op, shape: Shape, operands: &[InstId]) -> Result<InstId, EditError> {
        let name = self.module.fresh_name(op.opcode().name());
        self.module.insert(Position::End(self.id), op, shape, operands, name)
    }
}
