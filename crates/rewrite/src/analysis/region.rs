//! Elementwise regions: connected elementwise instructions on arrays of the same dims, with their
//! live-ins and live-outs. Constraints on how arrays lie over devices are such instructions, too.

use rustc_hash::FxHashSet;
use tilewright_ir::{Dims, InstId, Module, Op, Opcode};

use crate::driver::Reason;

use super::reduce::is_plain;
use super::sharding::stands_alone;

/// A connected set of elementwise instructions on arrays of one list of dims.
#[derive(Clone, Debug)]
pub struct Region {
    /// The dims of every array of the region.
    pub dims: Dims,
    /// The elementwise instructions and the reshape live-ins, in order of discovery.
    pub members: Vec<InstId>,
    /// The elementwise instructions, in the order of the computation.
    pub interior: Vec<InstId>,
    /// The arrays that the interior reads from outside, in order of discovery.
    pub live_ins: Vec<LiveIn>,
    /// The uses of interior values and of reshape live-ins by instructions outside.
    pub live_outs: Vec<LiveOut>,
    /// The members that must keep their dims.
    pub blocked: Vec<Blocked>,
    /// An array with dynamic dims, if there is one. Then nothing may be rewritten, since values
    /// computed with it have its dynamic length even if their shapes are static.
    pub dynamic: Option<InstId>,
}

/// An array that the interior of a region reads from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveIn {
    /// The instruction.
    pub id: InstId,
    /// The kind of its computation.
    pub kind: LiveInKind,
}

/// The computation of a [`LiveIn`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiveInKind {
    /// A reshape of this value.
    Reshape(InstId),
    /// A broadcast of this value.
    Broadcast(InstId),
    /// A transpose of this value.
    Transpose(InstId),
    /// An iota.
    Iota,
    /// A constant with known elements.
    Constant,
    /// Any other array of the region's dims.
    Other,
}

/// A use of a region's value outside the region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveOut {
    /// The value.
    pub value: InstId,
    /// The instruction that uses it; `None` if the value is the root.
    pub user: Option<InstId>,
    /// The kind of the user.
    pub kind: LiveOutKind,
}

/// The kind of the user of a [`LiveOut`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiveOutKind {
    /// A reshape.
    Reshape,
    /// A reduce of this value; any other arrays that it reduces are iotas and broadcasts.
    Reduce,
    /// A user that needs the value in its current dims.
    Other,
}

/// An instruction that may not be rewritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// The instruction.
    pub id: InstId,
    /// The reason.
    pub reason: Reason,
}

/// Returns the region around an elementwise instruction or a reshape. A broadcast or iota is a
/// region by itself, so that the reshapes and reduces that read it can move. `None` for any
/// other instruction.
///
/// Linear in the instructions of the region and their uses.
pub fn region_around(module: &Module, start: InstId) -> Option<Region> {
    unseen_region_around(module, start, &mut FxHashSet::default())
}

/// Like [`region_around`], for a search from many starts. Visited instructions are added to
/// `seen`, and the result is also `None` if the region contains an instruction of `seen`. The
/// whole search therefore visits each instruction once, even if regions meet.
pub fn unseen_region_around(
    module: &Module,
    start: InstId,
    seen: &mut FxHashSet<InstId>,
) -> Option<Region> {
    let dims: Dims = module.array_shape(start)?.dims().into();
    if !seen.insert(start) {
        return None;
    }
    match module.opcode(start) {
        Opcode::Broadcast | Opcode::Iota => return Some(Region::of(module, dims, &[start])),
        Opcode::Reshape => {}
        _ if module.op(start).keeps_indices() => {}
        _ => return None,
    }
    let reached = explore(module, start, &dims, seen)?;
    Some(Region::of(module, dims, &reached))
}

impl Region {
    /// The region of these reshapes and elementwise instructions. All instructions around them are
    /// live-ins or users.
    pub fn of(module: &Module, dims: Dims, reached: &[InstId]) -> Self {
        let mut region = Self {
            dims,
            members: reached.to_vec(),
            interior: Vec::new(),
            live_ins: Vec::new(),
            live_outs: Vec::new(),
            blocked: reached.iter().filter_map(|&id| blocked(module, id)).collect(),
            dynamic: reached.iter().copied().find(|&id| is_dynamic(module, id)),
        };
        let members: FxHashSet<InstId> = reached.iter().copied().collect();
        let mut live_ins = FxHashSet::default();
        for &id in reached {
            if is_interior(module, id, &region.dims) {
                region.interior.push(id);
                for &operand in module.operands(id) {
                    // Scalar operands (of select and clamp) fit any dims.
                    let is_interior =
                        members.contains(&operand) && is_interior(module, operand, &region.dims);
                    let is_live_in = has_dims(module, operand, &region.dims) && !is_interior;
                    if is_live_in && live_ins.insert(operand) {
                        region
                            .live_ins
                            .push(LiveIn { id: operand, kind: live_in_kind(module, operand) });
                        // A dynamic live-in may meet static ones of the same bound.
                        let dynamic = is_dynamic(module, operand).then_some(operand);
                        region.dynamic = region.dynamic.or(dynamic);
                    }
                }
            } else if live_ins.insert(id) {
                region.live_ins.push(LiveIn { id, kind: live_in_kind(module, id) });
            }
            region.live_outs.extend(live_outs_of(module, id, &members));
        }
        // Ids do not follow the order of the computation, but operands must precede users.
        region.interior = in_order(module, &region.interior);
        region
    }

    /// Returns the region of some of the members.
    pub fn part(&self, module: &Module, keep: impl Fn(InstId) -> bool) -> Self {
        let members: Vec<InstId> = self.members.iter().copied().filter(|&id| keep(id)).collect();
        Self::of(module, self.dims.clone(), &members)
    }

    /// The region without the blocked members.
    pub fn movable(&self, module: &Module) -> Self {
        let blocked: FxHashSet<InstId> = self.blocked.iter().map(|blocked| blocked.id).collect();
        self.part(module, |id| !blocked.contains(&id))
    }
}

/// Returns the members of the region around `start`, in order of discovery; `None` if one of
/// them is in `seen`.
fn explore(
    module: &Module,
    start: InstId,
    dims: &Dims,
    seen: &mut FxHashSet<InstId>,
) -> Option<Vec<InstId>> {
    let mut members = FxHashSet::default();
    members.insert(start);
    let mut reached = vec![start];
    let mut next = 0;
    while let Some(&id) = reached.get(next) {
        next += 1;
        let users = users_within(module, id, dims);
        let operands = if is_interior(module, id, dims) { module.operands(id) } else { &[] };
        // All readers of a reshape live-in belong to one region; other live-ins do not join their
        // readers, because each reader can have its own copy.
        let operands = operands.iter().copied().filter(|&o| belongs(module, o, dims));
        for neighbour in operands.chain(users) {
            if members.insert(neighbour) {
                if !seen.insert(neighbour) {
                    return None;
                }
                reached.push(neighbour);
            }
        }
    }
    Some(reached)
}

/// Returns the elementwise users of a value, on the same dims.
fn users_within<'a>(
    module: &'a Module,
    id: InstId,
    dims: &'a Dims,
) -> impl Iterator<Item = InstId> + 'a {
    module.uses(id).map(|u| u.user).filter(move |&user| is_interior(module, user, dims))
}

/// Checks whether an operand of a member is a member too: an elementwise instruction or a
/// reshape.
fn belongs(module: &Module, id: InstId, dims: &Dims) -> bool {
    is_interior(module, id, dims)
        || (module.opcode(id) == Opcode::Reshape && has_dims(module, id, dims))
}

/// Checks whether an instruction computes element by element on arrays of `dims`.
pub fn is_interior(module: &Module, id: InstId, dims: &[i64]) -> bool {
    module.op(id).keeps_indices() && has_dims(module, id, dims)
}

fn has_dims(module: &Module, id: InstId, dims: &[i64]) -> bool {
    module.array_shape(id).is_some_and(|shape| shape.dims() == dims)
}

/// Returns the kind of a live-in's computation.
fn live_in_kind(module: &Module, id: InstId) -> LiveInKind {
    match (module.op(id), module.operands(id)) {
        // A live-in with something attached has to stay unchanged.
        _ if module.extras(id).is_some() => LiveInKind::Other,
        (Op::Reshape(_), [source]) => LiveInKind::Reshape(*source),
        (Op::Broadcast(_), [source]) => LiveInKind::Broadcast(*source),
        (Op::Transpose(_), [source]) => LiveInKind::Transpose(*source),
        (Op::Iota(_), []) => LiveInKind::Iota,
        (Op::Constant(value), []) if value.as_array().is_some() => LiveInKind::Constant,
        _ => LiveInKind::Other,
    }
}

/// Returns the uses of a member's value outside the region; `members` are all members.
fn live_outs_of<'a>(
    module: &'a Module,
    value: InstId,
    members: &'a FxHashSet<InstId>,
) -> impl Iterator<Item = LiveOut> + 'a {
    let outside = module.users(value).into_iter().filter(|user| !members.contains(user));
    let used = outside.map(move |user| {
        let kind = match module.op(user) {
            Op::Reshape(_) => LiveOutKind::Reshape,
            Op::Reduce(_) if is_reduced_alone(module, user, value) => LiveOutKind::Reduce,
            _ => LiveOutKind::Other,
        };
        LiveOut { value, user: Some(user), kind }
    });
    let root =
        module.is_root(value).then_some(LiveOut { value, user: None, kind: LiveOutKind::Other });
    used.chain(root)
}

/// Checks whether a reduce reduces a value, and otherwise only iotas and broadcasts.
fn is_reduced_alone(module: &Module, reduce: InstId, value: InstId) -> bool {
    let operands = module.operands(reduce);
    let (arrays, inits) = operands.split_at(operands.len() / 2);
    let anywhere = |&id: &InstId| {
        matches!(live_in_kind(module, id), LiveInKind::Iota | LiveInKind::Broadcast(_))
            && module.array_shape(id).is_some_and(is_plain)
    };
    arrays.contains(&value)
        && !inits.contains(&value)
        && arrays.iter().filter(|&&id| id != value).all(anywhere)
}

/// Returns the member as a blocked one, if it must keep its dims.
fn blocked(module: &Module, id: InstId) -> Option<Blocked> {
    let reason = if !module.array_shape(id).is_some_and(is_plain) {
        Reason::Layout
    } else if module.extras(id).is_some() && !stands_alone(module, id) {
        Reason::Attached
    } else {
        return None;
    };
    Some(Blocked { id, reason })
}

fn is_dynamic(module: &Module, id: InstId) -> bool {
    module.array_shape(id).is_some_and(|shape| !shape.is_static())
}

/// Returns a set of instructions with operands before users.
pub(crate) fn in_order(module: &Module, ids: &[InstId]) -> Vec<InstId> {
    let members: FxHashSet<InstId> = ids.iter().copied().collect();
    let mut placed = FxHashSet::default();
    let mut ordered = Vec::with_capacity(ids.len());
    for &id in ids {
        // Depth first without recursion: a member is placed when it is popped for the second time,
        // after its operands.
        let mut stack = vec![(id, false)];
        while let Some((id, operands_done)) = stack.pop() {
            if operands_done {
                if placed.insert(id) {
                    ordered.push(id);
                }
                continue;
            }
            if placed.contains(&id) {
                continue;
            }
            stack.push((id, true));
            let operands = module.operands(id).iter();
            stack.extend(operands.filter(|o| members.contains(o)).map(|&o| (o, false)));
        }
    }
    ordered
}
