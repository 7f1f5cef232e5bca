//! Derives the range of a parameter's values from its uses: an index is within the indexed
//! array, and the operand of a root is not negative.
//!
//! A counter that a loop compares before each turn is small, so that the loop ends.
//!
//! The search follows a parameter through ops that move its elements, and into and out of called
//! computations. A root also determines the sign through sums with values that are not negative
//! and through scales: `sqrt(b*p + c*g*g)` is a typical use of a second moment.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use tilewright_ir::ops::elementwise::{CompareAttrs, Direction};
use tilewright_ir::{CompId, Dims, InstId, Module, Op, Shape};

use crate::strides::extent;

/// The range of an array's elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Range {
    /// Unknown.
    #[default]
    Any,
    /// They are not negative.
    NotNegative,
    /// They are whole numbers from 0 to one less than this.
    Below(u64),
    /// They are sizes of a dynamic dim, from 0 to this bound, for all kinds of inputs: no run has another one.
    Sizes(u64),
    /// They count the turns of a loop: integers below [`MOST_TURNS`] for all kinds of inputs,
    /// so that the loop ends.
    Turns,
}

impl Range {
    /// The range if both hold; an index is more precise than a sign.
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Turns, _) | (_, Self::Turns) => Self::Turns,
            (Self::Sizes(a), Self::Sizes(b)) => Self::Sizes(a.min(b)),
            (Self::Sizes(a), _) | (_, Self::Sizes(a)) => Self::Sizes(a),
            (Self::Below(a), Self::Below(b)) => Self::Below(a.min(b)),
            (Self::Below(a), _) | (_, Self::Below(a)) => Self::Below(a),
            (Self::NotNegative, _) | (_, Self::NotNegative) => Self::NotNegative,
            (Self::Any, Self::Any) => Self::Any,
        }
    }
}

/// For each parameter of the entry, the range of each array in it, depth first.
pub(crate) fn of_parameters(module: &Module) -> Vec<Vec<Range>> {
    let Some(entry) = module.entry() else { return Vec::new() };
    let callers = callers(module);
    let of = |&parameter: &InstId| {
        let mut paths = Vec::new();
        leaf_paths(module.shape(parameter), &mut Path::new(), &mut paths);
        let leaves = module.shape(parameter).leaves().into_iter().zip(paths);
        let range = |(leaf, path)| RangeSearch::new(module, &callers, leaf).range(parameter, path);
        leaves.map(range).collect()
    };
    module.computation(entry).parameters().iter().map(of).collect()
}

/// The path to an array in nested tuples: the index at each level.
type Path = SmallVec<[usize; 2]>;

fn leaf_paths(shape: &Shape, path: &mut Path, paths: &mut Vec<Path>) {
    let Shape::Tuple(elements) = shape else { return paths.push(path.clone()) };
    for (index, element) in elements.iter().enumerate() {
        path.push(index);
        leaf_paths(element, path, paths);
        path.pop();
    }
}

type Callers = FxHashMap<CompId, SmallVec<[InstId; 1]>>;

fn callers(module: &Module) -> Callers {
    let mut callers = Callers::default();
    for &computation in module.computations() {
        for id in module.instructions(computation) {
            for callee in module.called(id) {
                callers.entry(callee).or_default().push(id);
            }
        }
    }
    callers
}

/// The changes of the elements between the parameter and a use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Form {
    /// They were only moved.
    Moved,
    /// They were scaled or added to, so that the meaning of a sign is unchanged.
    Scaled,
}

/// A value that holds the elements, where in it, and how.
type Holder = (InstId, Path, Form);

/// Largest number of values visited for one array; uses further away are ignored.
const MOST_SEEN: usize = 4096;

/// The bound of the counters with which loops begin, and of their limits.
pub(crate) const MOST_TURNS: u64 = 8;

struct RangeSearch<'m> {
    module: &'m Module,
    callers: &'m Callers,
    seen: FxHashSet<Holder>,
    work: Vec<Holder>,
    range: Range,
    /// Whether the array has integers.
    is_integer: bool,
}

impl<'m> RangeSearch<'m> {
    fn new(module: &'m Module, callers: &'m Callers, leaf: &Shape) -> Self {
        let (seen, work) = (FxHashSet::default(), Vec::new());
        let is_integer = leaf.as_array().is_some_and(|array| array.element_type.is_integer());
        Self { module, callers, seen, work, range: Range::Any, is_integer }
    }

    fn range(mut self, parameter: InstId, path: Path) -> Range {
        self.reach(parameter, path, Form::Moved);
        while let Some((id, path, form)) = self.work.pop() {
            for used in self.module.uses(id) {
                self.follow(used.user, used.operand, &path, form);
            }
            if self.module.is_root(id) {
                self.leave(id, &path, form);
            }
        }
        self.range
    }

    fn reach(&mut self, id: InstId, path: Path, form: Form) {
        let place = (id, path, form);
        if self.seen.len() < MOST_SEEN && self.seen.insert(place.clone()) {
            self.work.push(place);
        }
    }

    fn learn(&mut self, range: Range) {
        self.range = self.range.and(range);
    }

    /// To the callers of the computation whose result this is.
    fn leave(&mut self, root: InstId, path: &Path, form: Form) {
        let (module, callers) = (self.module, self.callers);
        let is_result = |&(&computation, _): &(&CompId, _)| {
            module.computation(computation).root() == Some(root)
        };
        // A root belongs to one computation, so the order of the map does not matter.
        let Some((_, calls)) = callers.iter().find(is_result) else { return };
        for &call in calls {
            match module.op(call) {
                Op::Call(_) | Op::Fusion(_) | Op::While(_) | Op::Conditional(_) => {
                    self.reach(call, path.clone(), form);
                }
                _ => {}
            }
        }
    }

    /// Into a use.
    fn follow(&mut self, user: InstId, operand: usize, path: &Path, form: Form) {
        match (self.module.op(user), operand) {
            (Op::Tuple, _) => {
                let mut within = Path::from_slice(&[operand]);
                within.extend_from_slice(path);
                self.reach(user, within, form);
            }
            (Op::GetTupleElement(attrs), _) => {
                if let Some((first, rest)) = path.split_first()
                    && i64::try_from(*first) == Ok(attrs.index)
                {
                    self.reach(user, rest.into(), form);
                }
            }
            (Op::Call(_) | Op::Fusion(_), _) => self.enter(user, 0, operand, path, form),
            (Op::While(_), _) => {
                self.enter(user, 0, 0, path, form);
                self.enter(user, 1, 0, path, form);
                self.reach(user, path.clone(), form);
            }
            (Op::Conditional(_), 1..) => self.enter(user, operand - 1, 0, path, form),
            _ if moves(self.module.op(user), operand) => self.reach(user, path.clone(), form),
            _ if form == Form::Moved => {
                let found = self.as_index(user, operand);
                self.learn(found);
                self.compute(user, operand, path);
            }
            _ => self.compute(user, operand, path),
        }
    }

    fn enter(&mut self, call: InstId, callee: usize, number: usize, path: &Path, form: Form) {
        let called = self.module.called(call).get(callee).copied();
        let parameters = called.map(|called| self.module.computation(called).parameters());
        if let Some(&parameter) = parameters.and_then(|parameters| parameters.get(number)) {
            self.reach(parameter, path.clone(), form);
        }
    }

    /// Returns the range of an operand that an instruction uses as an index.
    fn as_index(&self, user: InstId, operand: usize) -> Range {
        let module = self.module;
        if self.ends_loop(user) {
            return Range::Turns;
        }
        if let Some(bound) = self.as_size(user, operand) {
            return Range::Sizes(bound);
        }
        let dims_of = |operand: usize| {
            let id = module.operands(user).get(operand).copied()?;
            Some(module.array_shape(id)?.dims())
        };
        let bound = match module.op(user) {
            Op::DynamicSlice(attrs) if operand > 0 => {
                let sizes = attrs.dynamic_slice_sizes.as_slice();
                dims_of(0).and_then(|dims| starts(dims, operand - 1, sizes))
            }
            Op::DynamicUpdateSlice if operand > 1 => dims_of(0)
                .zip(dims_of(1))
                .and_then(|(dims, sizes)| starts(dims, operand - 2, sizes)),
            Op::Gather(attrs) if operand == 1 => {
                let map = &attrs.start_index_map;
                dims_of(0)
                    .and_then(|dims| least_of(map, |dim| starts(dims, dim, &attrs.slice_sizes)))
            }
            Op::Scatter(attrs) if operand == module.operands(user).len() / 2 => {
                let map = &attrs.scatter_dims_to_operand_dims;
                dims_of(0).and_then(|dims| least_of(map, |dim| dims.get(dim).map(|&d| size(d))))
            }
            Op::Compare(attrs) => self.compared(user, operand, attrs),
            _ => None,
        };
        bound.map_or(Range::Any, |bound| Range::Below(bound.max(1)))
    }

    /// Returns the bound of an operand that is the size of a dim.
    fn as_size(&self, user: InstId, operand: usize) -> Option<u64> {
        let module = self.module;
        let (dims, dim) = match module.op(user) {
            Op::SetDimensionSize(attrs) if operand == 1 => {
                let of = module.array_shape(*module.operands(user).first()?)?;
                (of.dims(), extent(*attrs.dimensions.first()?))
            }
            Op::DynamicReshape if operand > 0 => (module.array_shape(user)?.dims(), operand - 1),
            _ => return None,
        };
        dims.get(dim).map(|&bound| size(bound))
    }

    /// Compared with an iota, an array holds places along its dim; in another order
    /// than equality, counts up to its size.
    fn compared(&self, user: InstId, operand: usize, attrs: &CompareAttrs) -> Option<u64> {
        let other = *self.module.operands(user).get(1 - operand.min(1))?;
        let size = iota_size(self.module, other, DEPTH)?;
        match attrs.direction {
            Direction::Eq | Direction::Ne => Some(size),
            _ => Some(size + 1),
        }
    }

    /// Checks whether an instruction is the condition of a loop.
    fn ends_loop(&self, id: InstId) -> bool {
        let Some(parent) = self.module.instruction(id).parent() else { return false };
        let calls = self.callers.get(&parent).into_iter().flatten();
        let mut loops = calls.filter_map(|&call| match self.module.op(call) {
            Op::While(attrs) => Some(attrs),
            _ => None,
        });
        self.is_integer && self.module.is_root(id) && loops.any(|attrs| attrs.condition == parent)
    }

    /// Follows the elements into an op that computes with them, if their sign matters there.
    fn compute(&mut self, user: InstId, operand: usize, path: &Path) {
        let module = self.module;
        let other = module.operands(user).get(1 - operand.min(1)).copied();
        let Some(other) = other.or(module.operands(user).first().copied()) else { return };
        let goes_on = match module.op(user) {
            Op::Sqrt(_) | Op::Rsqrt(_) | Op::Log(_) => return self.learn(Range::NotNegative),
            Op::Power => {
                let exponent = scalar(module, other, DEPTH).map(f64::fract);
                let counts = operand == 1 && self.is_integer;
                if counts || (operand == 0 && exponent.is_some_and(|part| part != 0.0)) {
                    self.learn(Range::NotNegative);
                }
                return;
            }
            Op::Add | Op::Maximum => not_negative(module, other, DEPTH),
            Op::Multiply => scale(module, other),
            Op::Divide => operand == 0 && scale(module, other),
            _ => false,
        };
        if goes_on {
            self.reach(user, path.clone(), Form::Scaled);
        }
    }
}

/// The most operands that are followed back.
const DEPTH: usize = 16;

fn size(dim: i64) -> u64 {
    u64::try_from(dim).unwrap_or(0)
}

/// Returns how many places a slice may start at along a dim.
fn starts(dims: &[i64], dim: usize, sizes: &[i64]) -> Option<u64> {
    let room = dims.get(dim)?.checked_sub(*sizes.get(dim)?)?;
    size(room).checked_add(1)
}

/// Returns the least bound of several dims, by their numbers.
fn least_of(dims: &Dims, bound: impl Fn(usize) -> Option<u64>) -> Option<u64> {
    dims.iter().filter_map(|&dim| bound(extent(dim))).min()
}

/// Checks whether elements of this operand are unchanged in the instruction's result.
fn moves(op: &Op, operand: usize) -> bool {
    match op {
        Op::Bitcast
        | Op::Broadcast(_)
        | Op::Convert
        | Op::Copy
        | Op::OptimizationBarrier
        | Op::Reshape(_)
        | Op::Reverse(_)
        | Op::Slice(_)
        | Op::Transpose(_)
        | Op::Concatenate(_) => true,
        Op::Pad(_) | Op::DynamicSlice(_) | Op::Gather(_) => operand == 0,
        Op::DynamicUpdateSlice => operand < 2,
        Op::Select => operand > 0,
        Op::Clamp => operand == 1,
        _ => false,
    }
}

/// Returns the first operand, where an instruction only moves its elements.
fn moved(module: &Module, id: InstId) -> Option<InstId> {
    let op = module.op(id);
    let one = module.operands(id).len() == 1 && moves(op, 0) || matches!(op, Op::DynamicSlice(_));
    module.operands(id).first().copied().filter(|_| one)
}

/// Returns the size of the dim that an iota counts along, if a value is one.
fn iota_size(module: &Module, id: InstId, depth: usize) -> Option<u64> {
    match module.op(id) {
        Op::Iota(attrs) => {
            let dims = module.array_shape(id)?.dims();
            dims.get(extent(attrs.dimension)).map(|&dim| size(dim))
        }
        _ => iota_size(module, moved(module, id)?, depth.checked_sub(1)?),
    }
}

/// Returns the number that all elements of a value are, if it is written in the module.
fn scalar(module: &Module, id: InstId, depth: usize) -> Option<f64> {
    match module.op(id) {
        Op::Constant(_) => module.constant(id)?.as_array()?.splat()?.scalar_as_f64(),
        _ => scalar(module, moved(module, id)?, depth.checked_sub(1)?),
    }
}

/// Checks whether a factor is a scale for all elements that is not known to be negative.
fn scale(module: &Module, id: InstId) -> bool {
    match scalar(module, id, DEPTH) {
        Some(number) => number >= 0.0,
        None => is_scalar(module, id, DEPTH) || not_negative(module, id, DEPTH),
    }
}

fn is_scalar(module: &Module, id: InstId, depth: usize) -> bool {
    let one = module.array_shape(id).is_some_and(|shape| shape.num_elements() == Some(1));
    let before = moved(module, id).zip(depth.checked_sub(1));
    one || before.is_some_and(|(before, depth)| is_scalar(module, before, depth))
}

/// Checks whether a value can be seen not to be negative.
fn not_negative(module: &Module, id: InstId, depth: usize) -> bool {
    let Some(depth) = depth.checked_sub(1) else { return false };
    let operands = module.operands(id);
    let of = |&operand: &InstId| not_negative(module, operand, depth);
    match module.op(id) {
        Op::Constant(_) => scalar(module, id, 1).is_some_and(|number| number >= 0.0),
        Op::Abs | Op::Exp(_) | Op::Sqrt(_) | Op::Rsqrt(_) | Op::Logistic(_) => true,
        Op::Multiply if operands.first() == operands.get(1) => true,
        Op::Add | Op::Multiply | Op::Divide | Op::Minimum => operands.iter().all(of),
        Op::Maximum => operands.iter().any(of),
        Op::Reduce(_) => {
            let root = module.called(id).first().and_then(|&c| module.computation(c).root());
            let sums = root.is_some_and(|root| matches!(module.op(root), Op::Add));
            sums && operands.iter().all(of)
        }
        _ => moved(module, id).is_some_and(|before| not_negative(module, before, depth)),
    }
}
