//! Arrays that a loop over blocks would never hold whole.
//!
//! Distances of all pairs of points, and what is computed from them, are larger than the points and than what they are
//! reduced to. Where every op from the points to the results goes along one dim index by index, a block of this dim is
//! made and reduced by itself: `f(x)[block] = f(x[block])`.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use tilewright_ir::{ArrayShape, DimRole, InstId, Module, Op, Relation};

/// How many times as many elements an array has as what it is made from and becomes.
const TIMES: i64 = 8;
/// The most instructions that are looked at.
const MOST_SEEN: usize = 64;

/// Returns the first dim of an array along which it is made from less, and becomes less, index by index.
pub(super) fn dim_of_blocks(module: &Module, array: InstId) -> Option<usize> {
    let shape = module.array_shape(array)?;
    let least = shape.num_elements()? / TIMES;
    let elements = |id: InstId| module.array_shape(id).and_then(ArrayShape::num_elements);
    let is_large = |id: InstId| elements(id).is_none_or(|elements| elements > least);
    let sizes = shape.dims().iter().enumerate();
    let dims = sizes.filter(|&(_, &size)| size >= TIMES).map(|(dim, _)| dim);
    let mut found = dims.filter(|&dim| Along::from(module, array, dim).reaches_less(is_large));
    found.next()
}

/// The large values that are connected with an array, each with the dim that goes along with one of the array.
struct Along<'a> {
    module: &'a Module,
    dims: FxHashMap<InstId, usize>,
    next: VecDeque<InstId>,
}

impl<'a> Along<'a> {
    fn from(module: &'a Module, array: InstId, dim: usize) -> Self {
        Self { module, dims: FxHashMap::from_iter([(array, dim)]), next: VecDeque::from([array]) }
    }

    /// Checks whether all ops between these values and smaller ones keep the dim, index by index.
    fn reaches_less(mut self, is_large: impl Fn(InstId) -> bool) -> bool {
        while let Some(value) = self.next.pop_front() {
            let is_given =
                matches!(self.module.op(value), Op::Parameter(_) | Op::GetTupleElement(_));
            let ops = std::iter::once(value).chain(self.module.users(value));
            if is_given
                || self.module.is_root(value)
                || self.dims.len() > MOST_SEEN
                || !ops.into_iter().all(|op| self.go_through(op, value, &is_large).is_some())
            {
                return false;
            }
        }
        true
    }

    /// Finds the dims of the large operands and results of an op that makes or reads a value. `None` if the op does not
    /// keep the dim index by index.
    fn go_through(
        &mut self,
        op: InstId,
        value: InstId,
        is_large: &impl Fn(InstId) -> bool,
    ) -> Option<()> {
        let module = self.module;
        if matches!(module.op(op), Op::Sort(_) | Op::Reverse(_))
            || module.opcode(op).tells_devices_apart()
        {
            return None;
        }
        let relation = Relation::of(module, op)?;
        let dim = *self.dims.get(&value)?;
        let operands = module.operands(op).iter().copied().zip(&relation.operands);
        let result = std::iter::once(op).zip(&relation.results);
        let values: Vec<(InstId, &Vec<DimRole>)> = operands.chain(result).collect();
        let (_, roles) = values.iter().find(|(id, _)| *id == value)?;
        let role = *roles.get(dim)?;
        let DimRole::Index(_) = role else { return None };
        if !relation.results.iter().all(|roles| roles.contains(&role)) {
            return None;
        }
        for (id, roles) in values.into_iter().filter(|(id, _)| is_large(*id)) {
            let place = roles.iter().position(|&one| one == role)?;
            match self.dims.insert(id, place) {
                None => self.next.push_back(id),
                Some(known) if known == place => {}
                Some(_) => return None,
            }
        }
        Some(())
    }
}
