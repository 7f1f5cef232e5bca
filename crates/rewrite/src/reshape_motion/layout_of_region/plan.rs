//! Plans instructions in another layout.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tilewright_ir::{ArrayShape, InstId, Layout, Module, Op, Patch, Shape, Use, Value};

use super::reach::Member;

/// Instructions in another layout, with the copies around them.
pub(super) struct LayoutPlan {
    pub(super) patch: Patch,
    /// The index of each member among the planned instructions.
    pub(super) planned: Vec<usize>,
}

impl LayoutPlan {
    /// Plans these members, which come after their operands.
    pub(super) fn of(module: &Module, members: &[Member]) -> Self {
        let results = members.iter().map(|member| (member.id, member)).collect();
        let mut planner = LayoutPlanner {
            module,
            members: results,
            patch: Patch::new(),
            laid: FxHashMap::default(),
        };
        let planned = members.iter().map(|member| planner.member(member)).collect();
        Self { patch: planner.patch, planned }
    }
}

/// The shape of a value whose vectors lie along a dim: that dim is minor, the others stay in order.
/// Dims of size 1 are major, since rows of one element would be padded. A value whose vectors lie
/// along that dim already keeps its shape.
pub(super) fn laid_along(module: &Module, id: InstId, dim: usize) -> Shape {
    let Some(shape) = module.array_shape(id) else { return module.shape(id).clone() };
    let is_one = |of: &usize| shape.dims().get(*of) == Some(&1);
    if (dim + 1..shape.rank()).all(|of| is_one(&of)) {
        return module.shape(id).clone();
    }
    let others = (0..shape.rank()).rev().filter(|&of| of != dim);
    let (ones, others): (Dims, Dims) = others.partition(is_one);
    let order = [dim].into_iter().chain(others).chain(ones);
    let layout = Layout::new(order.filter_map(|of| u32::try_from(of).ok()));
    shape.clone().with_layout(Some(layout)).into()
}

/// Checks whether a copy of a value into the layout along a dim turns tiles, row by row: the dim is
/// the one before the minor one. Along any other dim, each element of a vector would come from
/// another vector.
pub(super) fn turns_tiles(module: &Module, id: InstId, dim: usize) -> bool {
    let dims = module.array_shape(id).map(ArrayShape::dims);
    let after = dims.and_then(|dims| dims.get(dim + 1..));
    after.is_some_and(|after| after.iter().filter(|&&size| size != 1).count() <= 1)
}

/// Numbers of dims.
type Dims = SmallVec<[usize; 6]>;

/// Checks whether all users of a value are members and read it along the dim along which it is made.
pub(super) fn is_read_within(
    module: &Module,
    value: InstId,
    along: Option<usize>,
    members: &FxHashMap<InstId, &Member>,
) -> bool {
    let reads = |Use { user, operand }| {
        let dims = members.get(&user).map(|member| &member.operands);
        dims.is_some_and(|dims| dims.get(operand).copied().flatten() == along)
    };
    along.is_some() && !module.is_root(value) && module.uses(value).all(reads)
}

struct LayoutPlanner<'a> {
    module: &'a Module,
    members: FxHashMap<InstId, &'a Member>,
    patch: Patch,
    /// The values that lie along a dim.
    laid: FxHashMap<(InstId, usize), Value>,
}

impl LayoutPlanner<'_> {
    /// Plans a member; returns its index.
    fn member(&mut self, member: &Member) -> usize {
        let (module, id) = (self.module, member.id);
        let operands: SmallVec<[Value; 3]> = module
            .operands(id)
            .iter()
            .zip(&member.operands)
            .map(|(&operand, dim)| match *dim {
                Some(dim) => self.along(operand, dim, id),
                None => Value::Old(operand),
            })
            .collect();
        let shape = match member.result {
            Some(dim) => laid_along(module, id, dim),
            None => module.shape(id).clone(),
        };
        let index = self.patch.planned().len();
        let value = self.patch.add(id, module.op(id).clone(), shape, operands);
        let Some(dim) = member.result else {
            self.patch.replace(id, value);
            return index;
        };
        self.laid.insert((id, dim), value);
        if module.shape(id) == self.patch.shape(module, value) {
            self.patch.replace(id, value);
        } else if !member.is_leaf(module)
            && !is_read_within(module, id, member.result, &self.members)
        {
            let back = self.patch.add(id, Op::Copy, module.shape(id).clone(), [value]);
            self.patch.replace(id, back);
        }
        index
    }

    /// Returns a value as it lies along a dim: copied, if no member makes it so. The copy stands
    /// directly after the value, before all that read it.
    fn along(&mut self, value: InstId, dim: usize, reader: InstId) -> Value {
        let (module, patch) = (self.module, &mut self.patch);
        let shape = laid_along(module, value, dim);
        if shape == *module.shape(value) {
            return Value::Old(value);
        }
        let before = module.next_instruction(value).unwrap_or(reader);
        *self
            .laid
            .entry((value, dim))
            .or_insert_with(|| patch.add_like(reader, before, Op::Copy, shape, [Value::Old(value)]))
    }
}
