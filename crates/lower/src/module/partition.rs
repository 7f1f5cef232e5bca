//! Chooses the instructions that become one kernel.
//!
//! Elementwise ops, broadcasts, small arrays, and reshapes and transposes that do not realign
//! are computed in each kernel that uses them, possibly several times. Large arrays that are
//! reduced, transposed, padded or moved in other ways are stored, and so are arrays that the
//! host reads. Each stored array becomes a kernel with all its operands down to other stored
//! arrays. Two kernels of the same dims that read the same array are merged, and so are two
//! kernels of small arrays only.

use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::{CompId, InstId, Module, Op, Verified};
use tilewright_target::{MoveKind, Target};

use super::host;
use super::members::members;
use super::reduction;
use crate::codegen::fuse::{Group, MOST_FUSED, Reductions, fused, stays};
use crate::codegen::reduce::Elements;
use crate::error::{ErrorKind, LowerError, TooLarge, check, internal};
use crate::kernel::Kernel;

/// A group with its kernel.
type Made = (Group, Kernel);

/// A computation, partitioned into kernels.
pub(super) struct Partitioned {
    /// The groups with their kernels; a group comes after the groups that it reads.
    pub(super) groups: Vec<Made>,
    /// Values that must be stored and whose kernels are refused, so the host computes them.
    pub(super) refused: Vec<(InstId, LowerError)>,
}

/// Partitions a computation. The host runs every instruction that is in no kernel. `reduces` is
/// false if reductions become kernels elsewhere and must not be included.
///
/// # Errors
/// Returns an error if another thread sets `cancel`.
pub(super) fn partition(
    module: &Verified,
    computation: CompId,
    (target, cancel): (&Target, &AtomicBool),
    reduces: bool,
) -> Result<Partitioned, LowerError> {
    let reduced = module.instructions(computation);
    let reductions: Reductions =
        reduced.filter_map(|id| Some((id, reduction(module, id)?))).collect();
    let mut places = FxHashMap::default();
    let order: Vec<InstId> = module.instructions(computation).collect();
    for (place, &id) in order.iter().enumerate() {
        places.insert(id, place);
    }
    let wanted = FxHashSet::default();
    let mut partition =
        Partition { module, reductions: &reductions, target, cancel, reduces, places, wanted };
    for &id in &order {
        if !partition.is_computed(id) {
            partition.want_operands(id);
        } else if module.is_root(id) {
            partition.wanted.insert(id);
        }
    }
    let (mut made, mut refused): (Vec<Made>, Vec<(InstId, LowerError)>) = (Vec::new(), Vec::new());
    for &id in order.iter().rev() {
        if !partition.wanted.contains(&id) {
            continue;
        }
        check(cancel)?;
        match partition.kernel_of(id) {
            Ok(lowered) => {
                let inputs = lowered.0.inputs.iter().copied();
                let computed = inputs.filter(|&input| partition.is_computed(input));
                partition.wanted.extend(computed.collect::<Vec<_>>());
                made.push(lowered);
            }
            // The host computes it.
            Err(error) => {
                refused.push((id, error));
                partition.want_operands(id);
            }
        }
    }
    made.reverse();
    Ok(Partitioned { groups: partition.merged(made)?, refused })
}

struct Partition<'a> {
    module: &'a Module,
    reductions: &'a Reductions,
    target: &'a Target,
    /// Whether another thread cancelled the lowering.
    cancel: &'a AtomicBool,
    /// Whether kernels include reductions.
    reduces: bool,
    /// The position of each instruction in the computation.
    places: FxHashMap<InstId, usize>,
    /// The values that must be stored.
    wanted: FxHashSet<InstId>,
}

/// The distance that a group extends from a stored value to its operands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum GroupReach {
    /// Includes reductions of large arrays with other dims than the stored value, if their
    /// results are small and have no other users.
    Passes,
    /// Includes reductions along rows of arrays with the dims of the stored value.
    Rows,
    /// Stops at large values that are not computed at each use.
    Stored,
    /// Includes the instruction alone.
    Alone,
}

/// The limits of a group.
#[derive(Clone, Copy)]
struct GroupLimits {
    /// Largest number of instructions.
    instructions: usize,
    /// Largest number of indices at which one instruction may be wanted, if there is one.
    indices: Option<usize>,
}

impl Partition<'_> {
    /// Checks whether kernels can compute an instruction.
    fn is_computed(&self, id: InstId) -> bool {
        host::computed(self.module, id, self.reduces).is_ok()
    }

    /// Marks the operands of an instruction outside of kernels as stored, except for arrays
    /// whose elements follow from their indices.
    fn want_operands(&mut self, id: InstId) {
        let module = self.module;
        let counted: Vec<bool> = match (module.op(id), self.reductions.get(&id)) {
            (Op::Reduce(_), Some(reduction)) => {
                let arrays = reduction.arrays.iter();
                arrays.map(|array| matches!(array.elements, Elements::Indices(_))).collect()
            }
            _ => Vec::new(),
        };
        for (place, &operand) in module.operands(id).iter().enumerate() {
            if self.is_computed(operand) && !counted.get(place).copied().unwrap_or(false) {
                self.wanted.insert(operand);
            }
        }
    }

    fn is_scalar_constant(&self, id: InstId) -> bool {
        matches!(self.module.op(id), Op::Constant(_))
            && self.module.array_shape(id).is_some_and(|shape| shape.rank() == 0)
    }

    /// Checks whether the kernel of a stored value with these dims computes another value at
    /// each use, if it extends as far as `reach`. The cost model's `Residency` answers another
    /// question, once for each value: this answer depends on the kernel, and a value that one
    /// kernel computes may be stored for another.
    /// `docs/decisions/0018-residency-and-inlining.md` compares the two.
    fn is_inlined(&self, id: InstId, dims: &[i64], reach: GroupReach) -> bool {
        if reach == GroupReach::Alone || !self.is_computed(id) {
            return false;
        }
        let module = self.module;
        let Some(shape) = module.array_shape(id) else { return false };
        let source = module.operands(id).first().and_then(|&operand| module.array_shape(operand));
        match module.op(id) {
            Op::Reduce(_) => {
                let Some(source) = source else { return false };
                let Some(reduction) = self.reductions.get(&id) else { return false };
                let known = reduction.neutral.is_some() && reduction.arrays.len() == 1;
                let rows = matches!(reach, GroupReach::Rows | GroupReach::Passes);
                let pass = reach == GroupReach::Passes && stays(self.target, shape);
                let small = stays(self.target, source);
                known && (small || pass || (rows && source.dims() == dims))
            }
            Op::Broadcast(_) | Op::Iota(_) => true,
            op if op.opcode().is_elementwise() => true,
            _ if stays(self.target, shape) => module
                .operands(id)
                .iter()
                .all(|&o| module.array_shape(o).is_some_and(|s| stays(self.target, s))),
            Op::Reshape(_) => source.is_some_and(|source| {
                self.target.reshape_cost(source, shape).kind != MoveKind::Realigns
            }),
            Op::Transpose(attrs) => source.is_some_and(|source| {
                let cost = self.target.transpose_cost(source, shape, &attrs.dimensions);
                cost.kind != MoveKind::Realigns
            }),
            _ => false,
        }
    }

    /// Returns a stored value with the operands that are computed for it, and how many
    /// instructions these are.
    fn group(&self, id: InstId, reach: GroupReach, limits: GroupLimits) -> Option<(Group, usize)> {
        let module = self.module;
        let dims = module.array_shape(id)?.dims();
        let mut candidates = FxHashSet::default();
        let mut open = VecDeque::from([id]);
        // Visits the nearest operands first, so that the farthest are stored if the limit is
        // reached.
        while let Some(next) = open.pop_front() {
            let fits = candidates.len() < limits.instructions && self.is_inlined(next, dims, reach);
            if (next == id || fits) && candidates.insert(next) {
                open.extend(module.operands(next).iter().copied());
            }
        }
        let (computed, read) = members(module, id, &candidates, &self.places, limits.indices);
        let mut inputs: Vec<InstId> =
            read.into_iter().filter(|&id| !self.is_scalar_constant(id)).collect();
        let alone = |&member: &InstId| {
            let source = module.operands(member).first().and_then(|&o| module.array_shape(o));
            let large = source.is_some_and(|source| !stays(self.target, source));
            let pass = matches!(module.op(member), Op::Reduce(_)) && large && member != id;
            !pass || module.users(member).iter().all(|user| computed.contains(user))
        };
        if reach == GroupReach::Passes && !computed.iter().all(alone) {
            return None;
        }
        inputs.sort_by_key(|input| self.places.get(input));
        let group = Group { name: module.name_of(id).to_owned(), inputs, outputs: vec![id] };
        Some((group, computed.len()))
    }

    /// Returns the kernel of a stored value with the longest reach that works. If its values
    /// are wanted at too many indices, those that are wanted at several are stored, then half
    /// of them. If none works, the error of the instruction alone.
    fn kernel_of(&self, id: InstId) -> Result<Made, LowerError> {
        let mut why = internal("a stored value that is no array").at(self.module.name_of(id));
        for reach in [GroupReach::Passes, GroupReach::Rows, GroupReach::Stored, GroupReach::Alone] {
            let mut limits = GroupLimits { instructions: MOST_FUSED / 2, indices: None };
            while let Some((group, count)) = self.group(id, reach, limits) {
                match fused(self.module, &group, self.reductions, self.target) {
                    Ok(kernel) => return Ok((group, kernel)),
                    Err(error) => why = error,
                }
                if count < 2 || !matches!(why.kind, ErrorKind::TooLarge(TooLarge::Indices)) {
                    break;
                }
                if limits.indices.is_some() {
                    limits.instructions = count / 2;
                }
                limits.indices = Some(MOST_INDICES);
            }
        }
        Err(why)
    }

    /// Merges groups that write the same dims and read the same array if neither needs the
    /// other. Each group comes after the groups that it reads.
    fn merged(&self, mut made: Vec<Made>) -> Result<Vec<Made>, LowerError> {
        // A merged group may share reads with yet another group.
        loop {
            let before = made.len();
            made = self.paired(made)?;
            if made.len() == before {
                return Ok(in_order(self.module, made));
            }
        }
    }

    /// Merges each group with the last earlier group that allows it.
    fn paired(&self, made: Vec<Made>) -> Result<Vec<Made>, LowerError> {
        let mut merged: Vec<Made> = Vec::new();
        let groups: Vec<Group> = made.iter().map(|(group, _)| group.clone()).collect();
        for (place, lowered) in made.into_iter().enumerate() {
            check(self.cancel)?;
            match self.partner(&merged, &lowered.0, &groups[place + 1..]) {
                Some((at, both)) => merged[at] = both,
                None => merged.push(lowered),
            }
        }
        Ok(merged)
    }

    /// Returns the last group that can be merged with `group`, and the merged group. `rest` are
    /// all other groups.
    fn partner(&self, merged: &[Made], group: &Group, rest: &[Group]) -> Option<(usize, Made)> {
        merged.iter().enumerate().rev().take(MOST_TRIED).find_map(|(at, one)| {
            let both = self.both(&one.0, group)?;
            let others = merged.iter().enumerate().filter(|(other, _)| *other != at);
            let others = others.map(|(_, (group, _))| group);
            let mut all: Vec<&Group> = others.chain(rest).collect();
            if depends(self.module, &both, &all) {
                return None;
            }
            all.push(&both);
            if !self.stands(&all) {
                return None;
            }
            let kernel = fused(self.module, &both, self.reductions, self.target).ok()?;
            Some((at, (both, kernel)))
        })
    }

    /// Checks whether an order exists in which host calls come after the kernels that they
    /// read, and each kernel runs as soon as its inputs are available.
    fn stands(&self, groups: &[&Group]) -> bool {
        let module = self.module;
        let mut made_by: FxHashMap<InstId, usize> = FxHashMap::default();
        for (number, group) in groups.iter().enumerate() {
            made_by.extend(group.outputs.iter().map(|&output| (output, number)));
        }
        let mut ready: Vec<Option<usize>> = vec![None; groups.len()];
        // Each group is visited twice: before the groups that it reads and after them.
        let mut open: Vec<(usize, bool)> =
            (0..groups.len()).map(|number| (number, false)).collect();
        while let Some((number, done)) = open.pop() {
            if ready[number].is_some() {
                continue;
            }
            let inputs = groups[number].inputs.iter();
            if done {
                let place = |input: &InstId| match made_by.get(input) {
                    Some(&of) => ready[of],
                    None => self.places.get(input).copied(),
                };
                ready[number] = Some(inputs.filter_map(place).max().unwrap_or(0));
                continue;
            }
            open.push((number, true));
            let needed = inputs.filter_map(|input| made_by.get(input));
            open.extend(needed.filter(|&&of| ready[of].is_none()).map(|&of| (of, false)));
        }
        let is_host = |id: &InstId| {
            !self.is_computed(*id) || (self.wanted.contains(id) && !made_by.contains_key(id))
        };
        made_by.iter().all(|(&output, &number)| {
            let users = module.users(output);
            let mut places = users.iter().filter(|user| is_host(user));
            places.all(|user| self.places.get(user).copied() > ready[number])
        })
    }

    /// Returns the union of two groups.
    fn both(&self, first: &Group, second: &Group) -> Option<Group> {
        let module = self.module;
        let dims = |group: &Group| {
            let shape = group.outputs.first().and_then(|&id| module.array_shape(id));
            shape.map(|shape| shape.dims().to_vec())
        };
        let large =
            |id: &&InstId| module.array_shape(**id).is_some_and(|shape| !stays(self.target, shape));
        let shared = first.inputs.iter().filter(large).any(|id| second.inputs.contains(id));
        let all = |group: &Group| group.inputs.iter().chain(&group.outputs).copied().collect();
        let small = |ids: Vec<InstId>| !ids.iter().any(|id| large(&id));
        let alike = shared && dims(first) == dims(second);
        if !(alike || small(all(first)) && small(all(second))) {
            return None;
        }
        let mut inputs: Vec<InstId> = first.inputs.iter().chain(&second.inputs).copied().collect();
        inputs.sort_by_key(|input| self.places.get(input));
        inputs.dedup();
        let outputs: Vec<InstId> = first.outputs.iter().chain(&second.outputs).copied().collect();
        Some(Group { name: first.name.clone(), inputs, outputs })
    }
}

/// Checks whether a group reads its own outputs through other instructions.
fn depends(module: &Module, group: &Group, others: &[&Group]) -> bool {
    let mut made_by: FxHashMap<InstId, &Group> = FxHashMap::default();
    for other in others {
        made_by.extend(other.outputs.iter().map(|&output| (output, *other)));
    }
    let mut seen = FxHashSet::default();
    let mut open = group.inputs.clone();
    while let Some(id) = open.pop() {
        if group.outputs.contains(&id) {
            return true;
        }
        if !seen.insert(id) {
            continue;
        }
        match made_by.get(&id) {
            Some(other) => open.extend(other.inputs.iter().copied()),
            None => open.extend(module.operands(id).iter().copied()),
        }
    }
    false
}

/// Sorts groups so that each comes after the groups that it reads.
fn in_order(module: &Module, made: Vec<Made>) -> Vec<Made> {
    let mut made_by: FxHashMap<InstId, usize> = FxHashMap::default();
    for (place, (group, _)) in made.iter().enumerate() {
        made_by.extend(group.outputs.iter().map(|&output| (output, place)));
    }
    let mut order = Vec::with_capacity(made.len());
    let mut seen = FxHashSet::default();
    // Each instruction is visited twice: before its operands and after them.
    let roots = made.iter().rev().flat_map(|(group, _)| group.outputs.first());
    let mut open: Vec<(InstId, bool)> = roots.map(|&id| (id, false)).collect();
    while let Some((id, done)) = open.pop() {
        let group = made_by.get(&id).copied();
        if done {
            order.extend(group);
            continue;
        }
        let fresh = match group {
            Some(place) => made[place].0.outputs.first().is_some_and(|&first| seen.insert(first)),
            None => seen.insert(id),
        };
        if !fresh {
            continue;
        }
        open.push((id, true));
        match group {
            Some(place) => open.extend(made[place].0.inputs.iter().map(|&input| (input, false))),
            None => open.extend(module.operands(id).iter().map(|&operand| (operand, false))),
        }
    }
    let mut made: Vec<Option<Made>> = made.into_iter().map(Some).collect();
    order.into_iter().filter_map(|place| made.get_mut(place)?.take()).collect()
}

/// Largest number of indices at which a kernel computes one instruction, where it would compute too
/// many values otherwise.
const MOST_INDICES: usize = 4;

/// Largest number of groups that are tried as a partner for a merge.
const MOST_TRIED: usize = 4;
