//! Finds the instructions that go over one iteration space, which can be computed together: a norm
//! with its elementwise ops, reductions and broadcasts. The programs of the crate `native` are such.
//!
//! The space has the dims of an array that is reduced. Every other value is known by the dims of
//! the space along which it lies, row major: reductions and broadcasts leave dims out and add them,
//! a reshape keeps them.

use std::collections::VecDeque;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use tilewright_ir::ops::elementwise::CompareOrder;
use tilewright_ir::reducer::Monoid;
use tilewright_ir::{CompId, ElementType, InstId, Module, Op, Opcode};

/// The dims of the space along which a value lies, outermost first.
pub type Along = SmallVec<[usize; 6]>;

/// The most values that are looked at for one region, and the most instructions of it.
const MOST_SEEN: usize = 2000;
const MOST_MEMBERS: usize = 200;
/// The most reductions of a region.
const MOST_REDUCTIONS: usize = 48;

/// Instructions that go over one iteration space, in order.
#[derive(Debug)]
pub struct IterationRegion {
    /// The instructions.
    pub members: Vec<InstId>,
    /// The values that these read and do not compute.
    pub inputs: Vec<InstId>,
    /// The members that others read.
    pub outputs: Vec<InstId>,
    /// The sizes of the space's dims.
    pub space: Vec<usize>,
    /// How members and inputs lie in the space.
    pub along: FxHashMap<InstId, Along>,
}

/// The places of a computation's instructions, which hold until it is changed.
#[derive(Debug)]
pub struct Order(FxHashMap<InstId, usize>);

impl Order {
    /// The places in a computation.
    pub fn of(module: &Module, computation: CompId) -> Self {
        let all = module.instructions(computation).enumerate();
        Self(all.map(|(place, id)| (id, place)).collect())
    }

    /// The place of an instruction; beyond all others if it is in another computation.
    fn place(&self, id: InstId) -> usize {
        self.0.get(&id).copied().unwrap_or(usize::MAX)
    }
}

impl IterationRegion {
    /// Returns the region of a reduce, if programs can compute it.
    pub fn of(module: &Module, order: &Order, seed: InstId) -> Option<Self> {
        let array = *module.operands(seed).first()?;
        let dims = dims(module, array)?;
        let space: Vec<usize> = dims.into_iter().filter(|&dim| dim != 1).collect();
        if space.contains(&0) || !is_known(module, seed) {
            return None;
        }
        let mut search = RegionSearch { module, order, space, along: FxHashMap::default() };
        search.spread(array);
        let members = search.without_moves(search.members());
        members.contains(&seed).then(|| search.region(members))
    }

    /// Returns the region of all instructions of a computation but its parameters and a tuple of
    /// results, if they are one.
    pub fn whole(module: &Module, computation: CompId) -> Option<Self> {
        let is_outside = |id: InstId| match module.op(id) {
            Op::Parameter(_) => true,
            Op::Tuple => module.is_root(id),
            _ => false,
        };
        let order = &Order::of(module, computation);
        // Only some of the arrays that are reduced have all dims of the space apart.
        let is_reduce = |id: &InstId| matches!(module.op(*id), Op::Reduce(_));
        module.instructions(computation).filter(is_reduce).find_map(|seed| {
            let array = *module.operands(seed).first()?;
            let space = dims(module, array)?.into_iter().filter(|&dim| dim != 1).collect();
            let mut search = RegionSearch { module, order, space, along: FxHashMap::default() };
            search.spread(array);
            let members = search.members();
            let mut all = module.instructions(computation);
            let is_whole = all.all(|id| members.contains(&id) || is_outside(id));
            is_whole.then(|| search.region(members))
        })
    }
}

/// Returns the sizes of an array's dims, if they are known.
pub fn dims(module: &Module, id: InstId) -> Option<Vec<usize>> {
    let shape = module.array_shape(id).filter(|shape| shape.is_static())?;
    shape.dims().iter().map(|&dim| usize::try_from(dim).ok()).collect()
}

/// For each dim of an array the dims of the space that it is, if it is some of these as a whole.
pub fn located(dims: &[usize], along: &[usize], space: &[usize]) -> Vec<Option<Along>> {
    let mut places = Vec::with_capacity(dims.len());
    let mut left = along.iter().copied().peekable();
    // The elements of the array's dims and of the space's since both last began together.
    let (mut ours, mut theirs) = (1usize, 1usize);
    for &dim in dims {
        let begins = ours == theirs;
        if begins {
            (ours, theirs) = (1, 1);
        }
        ours = ours.saturating_mul(dim);
        let mut place = Along::new();
        while theirs < ours
            && let Some(next) = left.next_if(|&next| theirs.saturating_mul(space[next]) <= ours)
        {
            theirs *= space[next];
            place.push(next);
        }
        // A dim of the space that goes beyond this one is taken with those that follow.
        if theirs < ours
            && let Some(next) = left.next()
        {
            theirs = theirs.saturating_mul(space[next]);
        }
        places.push((begins && ours == theirs).then_some(place));
    }
    places
}

/// Checks whether programs compute an instruction.
fn is_known(module: &Module, id: InstId) -> bool {
    let is_float = |id: InstId| module.array_shape(id).is_some_and(|s| is_float(s.element_type));
    let operands = module.operands(id);
    let floats = || operands.iter().all(|&id| is_float(id)) && is_float(id);
    let is_pred = |id: InstId| {
        module.array_shape(id).is_some_and(|shape| shape.element_type == ElementType::Pred)
    };
    let any = |id: InstId| is_float(id) || is_pred(id);
    if dims(module, id).is_none() || operands.iter().any(|&id| dims(module, id).is_none()) {
        return false;
    }
    match module.op(id) {
        Op::Constant(literal) => {
            any(id) && literal.as_array().is_some_and(|array| array.len() == 1)
        }
        Op::Reduce(attrs) => {
            let known = [Opcode::Add, Opcode::Multiply, Opcode::Maximum, Opcode::Minimum];
            let monoid = Monoid::of(module, attrs.to_apply);
            let extremum = [Opcode::Maximum, Opcode::Minimum];
            // The sum without a large init may overflow where that with it does not.
            let is_kept = |monoid: Monoid| {
                let init = operands.get(1).map(|&init| module.op(init));
                extremum.contains(&monoid.opcode)
                    || matches!(init, Some(Op::Constant(init)) if monoid.is_neutral(init))
            };
            floats() && monoid.is_some_and(|m| known.contains(&m.opcode) && is_kept(m))
        }
        Op::Compare(attrs) => {
            let default = matches!(attrs.order, None | Some(CompareOrder::Float));
            default && operands.iter().all(|&id| is_float(id))
        }
        Op::Convert => is_float(id) && operands.iter().all(|&id| any(id)),
        Op::Broadcast(_) | Op::Reshape(_) | Op::Select => {
            any(id) && operands.iter().all(|&id| any(id))
        }
        Op::And | Op::Or | Op::Not => is_pred(id),
        Op::Add
        | Op::Subtract
        | Op::Multiply
        | Op::Divide
        | Op::Maximum
        | Op::Minimum
        | Op::Power
        | Op::Clamp
        | Op::Negate
        | Op::Abs
        | Op::Exp(_)
        | Op::Log(_)
        | Op::Sqrt(_)
        | Op::Rsqrt(_)
        | Op::Tanh(_)
        | Op::Logistic(_) => floats(),
        _ => false,
    }
}

/// Checks whether an instruction is a constant, broadcast or not.
fn is_constant(module: &Module, mut id: InstId) -> bool {
    while let (Op::Broadcast(_) | Op::Reshape(_), &[operand]) = (module.op(id), module.operands(id))
    {
        id = operand;
    }
    matches!(module.op(id), Op::Constant(_))
}

/// Checks whether programs compute with elements of a type as numbers.
pub fn is_float(element_type: ElementType) -> bool {
    let floats = [ElementType::F16, ElementType::BF16, ElementType::F32, ElementType::F64];
    floats.contains(&element_type)
}

struct RegionSearch<'a> {
    module: &'a Module,
    order: &'a Order,
    space: Vec<usize>,
    along: FxHashMap<InstId, Along>,
}

impl RegionSearch<'_> {
    /// Finds how values lie that are connected with an array of the whole space.
    fn spread(&mut self, array: InstId) {
        let whole: Along = (0..self.space.len()).collect();
        self.along.insert(array, whole);
        let mut open = VecDeque::from([array]);
        while let Some(id) = open.pop_front() {
            let mut found: Vec<(InstId, Along)> = Vec::new();
            if is_known(self.module, id) {
                let operands = self.module.operands(id).iter().copied();
                let along = operands.zip(self.operands(id).into_iter().flatten());
                found.extend(along.filter_map(|(operand, along)| Some((operand, along?))));
            }
            // A constant has users everywhere.
            if !is_constant(self.module, id) {
                let users = self.module.users(id).into_iter();
                let known = users.filter(|&user| is_known(self.module, user));
                found.extend(known.filter_map(|user| Some((user, self.result(user, id)?))));
            }
            for (id, along) in found {
                if self.along.len() < MOST_SEEN && !self.along.contains_key(&id) {
                    self.along.insert(id, along);
                    open.push_back(id);
                }
            }
        }
    }

    fn located(&self, id: InstId, along: &Along) -> Option<Vec<Option<Along>>> {
        Some(located(&dims(self.module, id)?, along, &self.space))
    }

    /// How the operands of an instruction lie, from how it lies itself; an operand of a reduction
    /// may lie in several ways.
    fn operands(&self, id: InstId) -> Option<Vec<Option<Along>>> {
        let module = self.module;
        let own = self.along.get(&id)?;
        let operands = module.operands(id);
        match module.op(id) {
            Op::Reduce(_) => Some(vec![None, Some(Along::new())]),
            Op::Broadcast(attrs) => {
                let places = self.located(id, own)?;
                let mut along = Along::new();
                for &dim in &attrs.dimensions {
                    along.extend(places.get(usize::try_from(dim).ok()?)?.clone()?);
                }
                Some(vec![along.is_sorted().then_some(along)])
            }
            _ => {
                // Bounds of a clamp and the condition of a select may be one number.
                let one = |id: InstId| module.array_shape(id).is_some_and(|s| s.dims().is_empty());
                let along = |&id: &InstId| Some(if one(id) { Along::new() } else { own.clone() });
                Some(operands.iter().map(along).collect())
            }
        }
    }

    /// How an instruction lies, from how one of its operands lies.
    fn result(&self, id: InstId, operand: InstId) -> Option<Along> {
        let module = self.module;
        let along = self.along.get(&operand)?;
        match module.op(id) {
            Op::Reduce(attrs) => {
                if module.operands(id).first() != Some(&operand) {
                    return None;
                }
                let mut left = along.clone();
                let places = self.located(operand, along)?;
                for &dim in &attrs.dimensions {
                    let reduced = places.get(usize::try_from(dim).ok()?)?.clone()?;
                    left.retain(|dim| !reduced.contains(dim));
                }
                Some(left)
            }
            Op::Broadcast(attrs) => {
                let whole: Along = (0..self.space.len()).collect();
                if dims(module, id)?.iter().product::<usize>() != self.space.iter().product() {
                    return None;
                }
                let places = self.located(id, &whole)?;
                let mut needed = Along::new();
                for &dim in &attrs.dimensions {
                    needed.extend(places.get(usize::try_from(dim).ok()?)?.clone()?);
                }
                (needed == *along).then_some(whole)
            }
            _ => {
                let same = dims(module, id)?.iter().product::<usize>()
                    == dims(module, operand)?.iter().product();
                same.then(|| along.clone())
            }
        }
    }

    /// Checks whether all operands of an instruction lie as it needs them.
    fn fits(&self, id: InstId) -> bool {
        let Some(own) = self.along.get(&id) else { return false };
        // An instruction with control edges stays where it is.
        let is_bound = self.module.extras(id).is_some_and(|extras| {
            !extras.control_predecessors.is_empty() || !extras.control_successors().is_empty()
        });
        if is_bound || !is_known(self.module, id) {
            return false;
        }
        if let (Op::Reduce(_), Some(&array)) =
            (self.module.op(id), self.module.operands(id).first())
        {
            return self.along.contains_key(&array) && self.result(id, array).as_ref() == Some(own);
        }
        let Some(wanted) = self.operands(id) else { return false };
        let mut operands = self.module.operands(id).iter().zip(&wanted);
        operands.all(|(id, along)| along.is_some() && self.along.get(id) == along.as_ref())
    }

    /// Sorts instructions by their places.
    fn sorted(&self, ids: impl Iterator<Item = InstId>) -> Vec<InstId> {
        let mut sorted: Vec<InstId> = ids.collect();
        sorted.sort_by_cached_key(|&id| self.order.place(id));
        sorted
    }

    /// The instructions that can be one: none of the others uses one and is used by one.
    fn members(&self) -> FxHashSet<InstId> {
        let module = self.module;
        let place = |id: &InstId| self.order.place(*id);
        let known = self.sorted(self.along.keys().copied());
        let fits: FxHashSet<InstId> = known.iter().copied().filter(|&id| self.fits(id)).collect();
        let mut members = FxHashSet::default();
        // Where the first of the others stands that uses a member: the program runs before it.
        let mut end = usize::MAX;
        let mut reductions = 0;
        for &id in &known {
            let operands = module.operands(id);
            let reads = operands.iter().filter(|id| !members.contains(*id));
            let is_reduce = matches!(module.op(id), Op::Reduce(_));
            if fits.contains(&id)
                && reads.map(place).all(|place| place < end)
                && members.len() < MOST_MEMBERS
                && (!is_reduce || reductions < MOST_REDUCTIONS)
            {
                members.insert(id);
                reductions += usize::from(is_reduce);
                let users = module.users(id).into_iter().filter(|user| !fits.contains(user));
                end = users.map(|user| place(&user)).fold(end, usize::min);
            } else if operands.iter().any(|id| members.contains(id)) {
                end = end.min(place(&id));
            }
        }
        members
    }

    /// Leaves instructions out that only move elements, which other instructions use, if they stand
    /// after all that the program reads.
    fn without_moves(&self, mut members: FxHashSet<InstId>) -> FxHashSet<InstId> {
        let module = self.module;
        let place = |id: &InstId| self.order.place(*id);
        let reads = members.iter().flat_map(|&id| module.operands(id));
        let last = reads.filter(|id| !members.contains(*id)).map(place).max();
        let later = self.sorted(members.iter().copied());
        for id in later.iter().rev().filter(|id| last.is_none_or(|last| place(id) > last)) {
            let moves =
                matches!(module.op(*id), Op::Broadcast(_) | Op::Reshape(_) | Op::Constant(_));
            let is_used = module.users(*id).iter().any(|user| members.contains(user));
            if moves && !is_used {
                members.remove(id);
            }
        }
        members
    }

    fn region(self, members: FxHashSet<InstId>) -> IterationRegion {
        let module = self.module;
        let ordered = self.sorted(members.iter().copied());
        let mut inputs: Vec<InstId> = Vec::new();
        for &operand in ordered.iter().flat_map(|&id| module.operands(id)) {
            if !members.contains(&operand) && !inputs.contains(&operand) {
                inputs.push(operand);
            }
        }
        let is_read = |id: &InstId| {
            module.is_root(*id) || module.users(*id).iter().any(|user| !members.contains(user))
        };
        // Each computation that needs a constant has its own.
        let is_literal = |id: &InstId| matches!(module.op(*id), Op::Constant(_));
        let outputs =
            ordered.iter().copied().filter(is_read).filter(|id| !is_literal(id)).collect();
        IterationRegion { members: ordered, inputs, outputs, space: self.space, along: self.along }
    }
}
