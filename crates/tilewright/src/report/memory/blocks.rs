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
/// The most values that are looked at.
const MOST_SEEN: usize = 256;

/// A loop in whose turns a block of an array is made and reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Blocks {
    /// A value of which each turn takes a block, and the dim along which it does.
    pub(super) source: (InstId, usize),
    /// The dim of the array that goes along with it.
    pub(super) dim: usize,
}

/// Returns the blocks in which an array can be made and reduced: along the first dim along which it is made from less,
/// and becomes less, index by index. `None` if there is no such dim, or within a called computation.
pub(super) fn blocks_of(module: &Module, array: InstId) -> Option<Blocks> {
    let shape = module.array_shape(array).filter(|shape| shape.is_static())?;
    let least = shape.num_elements()? / TIMES;
    let is_in_entry = module.instruction(array).parent() == module.entry();
    let sizes = shape.dims().iter().enumerate().filter(|_| is_in_entry);
    let mut dims = sizes.filter(|&(_, &size)| size >= TIMES).map(|(dim, _)| dim);
    dims.find_map(|dim| {
        let source = Connected::of(module, array, dim, least).source_of_blocks()?;
        Some(Blocks { source, dim })
    })
}

/// The large values that are connected with an array by ops that make or read them, and what is computed from these.
struct Connected<'a> {
    module: &'a Module,
    /// For each value the dim that goes along with one of the array; `None` for what is computed from several of its
    /// indices.
    dims: FxHashMap<InstId, Option<usize>>,
    next: VecDeque<InstId>,
    /// The ops that make or read large values, each with such a value.
    ops: FxHashMap<InstId, InstId>,
    /// The number of elements above which a value is large: no block of it is kept.
    least: i64,
    source: Option<(InstId, usize)>,
}

impl<'a> Connected<'a> {
    fn of(module: &'a Module, array: InstId, dim: usize, least: i64) -> Self {
        let dims = FxHashMap::from_iter([(array, Some(dim))]);
        let (next, ops) = (VecDeque::from([array]), FxHashMap::default());
        Self { module, dims, next, ops, least, source: None }
    }

    /// Returns a smaller value that the large ones are made from, with the dim that goes along with the array's. `None`
    /// unless all ops that make or read large values keep the dim, index by index.
    fn source_of_blocks(mut self) -> Option<(InstId, usize)> {
        while let Some(value) = self.next.pop_front() {
            let is_given = matches!(
                self.module.op(value),
                Op::Parameter(_) | Op::GetTupleElement(_) | Op::Constant(_)
            );
            if is_given || self.module.is_root(value) || self.dims.len() > MOST_SEEN {
                return None;
            }
            for op in std::iter::once(value).chain(self.module.users(value)) {
                self.go_through(op, value)?;
                self.ops.insert(op, value);
            }
        }
        self.follow_results();
        let is_kept =
            |(&op, &value): (&InstId, &InstId)| self.keeps_operands(op, value) == Some(true);
        self.ops.iter().all(is_kept).then_some(self.source)?
    }

    /// Finds the dims of what is computed from the results of these ops, as far as it may come back to one of them.
    fn follow_results(&mut self) {
        let module = self.module;
        let parent = self.ops.keys().next().and_then(|&op| module.instruction(op).parent());
        let mut left = self.ops.len();
        for op in parent.into_iter().flat_map(|parent| module.instructions(parent)) {
            if self.ops.contains_key(&op) {
                left = left.saturating_sub(1);
            } else if left == 0 {
                return;
            } else {
                let known = module.operands(op).iter().filter(|of| self.dims.contains_key(*of));
                let mut dims = known.map(|&operand| {
                    let (relation, role) = self.role(op, operand)?;
                    place(relation.results.first()?, role)
                });
                let Some(first) = dims.next() else { continue };
                let dim = if dims.all(|dim| dim == first) { first } else { None };
                self.dims.insert(op, dim);
            }
        }
    }

    fn is_large(&self, id: InstId) -> bool {
        let leaves = self.module.shape(id).leaves();
        let arrays = leaves.into_iter().filter_map(|leaf| leaf.as_array());
        arrays.map(ArrayShape::num_elements).any(|elements| elements.is_none_or(|n| n > self.least))
    }

    /// Returns the relation of an op that makes or reads a value, and the role of the value's known dim in it. `None`
    /// if the op does not go along the dim index by index.
    fn role(&self, op: InstId, value: InstId) -> Option<(Relation, DimRole)> {
        let module = self.module;
        let is_mixed = matches!(
            module.op(op),
            Op::Sort(_)
                | Op::Reverse(_)
                | Op::Gather(_)
                | Op::Scatter(_)
                | Op::DynamicSlice(_)
                | Op::DynamicUpdateSlice
        );
        if is_mixed || module.opcode(op).tells_devices_apart() {
            return None;
        }
        let relation = Relation::of(module, op)?;
        let dim = (*self.dims.get(&value)?)?;
        let place = module.operands(op).iter().position(|&operand| operand == value);
        let roles =
            if op == value { relation.results.first() } else { relation.operands.get(place?) };
        let role = *roles?.get(dim)?;
        let is_kept = relation.results.iter().all(|roles| roles.contains(&role));
        (matches!(role, DimRole::Index(_)) && is_kept).then_some((relation, role))
    }

    /// Records the dims of the result and of the large operands of an op that makes or reads a large value. `None` if
    /// the op does not keep the dim index by index.
    fn go_through(&mut self, op: InstId, value: InstId) -> Option<()> {
        let (relation, role) = self.role(op, value)?;
        let operands = self.module.operands(op).iter().copied().zip(&relation.operands);
        let result = std::iter::once(op).zip(relation.results.first());
        for (id, roles) in operands.chain(result) {
            let dim = place(roles, role);
            if self.is_large(id) {
                self.record(id, dim?)?;
            } else if id == op {
                self.dims.insert(id, dim);
            } else if let (None, Some(dim)) = (self.source, dim) {
                self.source = Some((id, dim));
            }
        }
        Some(())
    }

    /// Records the dim of a large value. `None` if another one is known.
    fn record(&mut self, id: InstId, dim: usize) -> Option<()> {
        match self.dims.insert(id, Some(dim)) {
            None => self.next.push_back(id),
            Some(known) if known == Some(dim) => {}
            Some(_) => return None,
        }
        Some(())
    }

    /// Checks whether the operands of an op that makes or reads a large value go along with it, as far as they are
    /// computed from the array.
    fn keeps_operands(&self, op: InstId, value: InstId) -> Option<bool> {
        let (relation, role) = self.role(op, value)?;
        let operands = self.module.operands(op).iter().zip(&relation.operands);
        let mut known = operands.filter_map(|(id, roles)| Some((*self.dims.get(id)?, roles)));
        Some(known.all(|(dim, roles)| dim.is_some() && dim == place(roles, role)))
    }
}

fn place(roles: &[DimRole], role: DimRole) -> Option<usize> {
    roles.iter().position(|&one| one == role)
}
