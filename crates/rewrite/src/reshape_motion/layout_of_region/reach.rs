//! Finds the instructions that can be computed with their arrays laid out along one dim.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tilewright_ir::{ArrayShape, InstId, Module, Op, Use};

use super::Kept;
use crate::analysis::digits::Digits;
use crate::analysis::reduce::{MonoidReduce, is_plain};
use crate::analysis::region::in_order;
use crate::driver::numbers::FloatMode;

/// The most instructions of one region, since a minimum cut takes more than linear time.
const MOST_MEMBERS: usize = 1024;

/// An instruction that can be computed with its arrays laid out along one dim.
#[derive(Clone, Debug)]
pub(super) struct Member {
    /// The instruction.
    pub(super) id: InstId,
    /// For each operand the dim that becomes minor; `None` for operands that stay as they are.
    pub(super) operands: SmallVec<[Option<usize>; 3]>,
    /// The dim of the result that becomes minor; `None` if the result stays as it is.
    pub(super) result: Option<usize>,
}

impl Member {
    /// Checks whether it reads no value in another layout and costs nothing to make on each side.
    pub(super) fn is_leaf(&self, module: &Module) -> bool {
        let spreads = matches!(module.op(self.id), Op::Broadcast(_) | Op::Iota(_));
        spreads && self.operands.iter().all(Option::is_none)
    }
}

/// Returns the instructions around a reshape that can be computed along a dim that it keeps, each
/// after its operands.
///
/// Linear in the instructions and their uses.
pub(super) fn members_around(
    module: &Module,
    reshape: InstId,
    kept: Kept,
    float_mode: FloatMode,
) -> Vec<Member> {
    let (members, along) = (FxHashMap::default(), FxHashMap::default());
    let mut reach = Reach { module, float_mode, members, along, next: VecDeque::new() };
    reach.meet(reshape, kept.to);
    if let Some(&operand) = module.operands(reshape).first() {
        reach.meet(operand, kept.from);
    }
    while let Some((value, dim)) = reach.next.pop_front() {
        if reach.members.len() >= MOST_MEMBERS {
            break;
        }
        reach.make(value, dim);
        reach.read(value, dim);
    }
    let mut ids: Vec<InstId> = reach.members.keys().copied().collect();
    // The order of a hash map must not reach the module.
    ids.sort_unstable();
    in_order(module, &ids).iter().filter_map(|id| reach.members.remove(id)).collect()
}

/// A search from value to value.
struct Reach<'a> {
    module: &'a Module,
    float_mode: FloatMode,
    members: FxHashMap<InstId, Member>,
    /// The dim along which each value lies.
    along: FxHashMap<InstId, usize>,
    next: VecDeque<(InstId, usize)>,
}

impl Reach<'_> {
    /// Lets a value lie along a dim, unless it lies along another.
    fn meet(&mut self, value: InstId, dim: usize) {
        self.along.entry(value).or_insert_with(|| {
            self.next.push_back((value, dim));
            dim
        });
    }

    /// Adds the instruction that makes a value, if it can be computed along this dim.
    fn make(&mut self, value: InstId, dim: usize) {
        if !self.is_free(value) {
            return;
        }
        if let Some(operands) = self.operands_of(value, dim) {
            for (&operand, dim) in self.module.operands(value).iter().zip(&operands) {
                if let Some(dim) = *dim {
                    self.meet(operand, dim);
                }
            }
            let new = || Member { id: value, operands, result: None };
            self.members.entry(value).or_insert_with(new).result = Some(dim);
        }
    }

    /// Goes on to the instructions that read a value and can be computed with it along this dim.
    fn read(&mut self, value: InstId, dim: usize) {
        for Use { user, operand } in self.module.uses(value) {
            if !self.is_free(user) {
                continue;
            }
            match self.result_of(user, operand, dim) {
                Some(Some(result)) => self.meet(user, result),
                Some(None) => self.take(user, operand, dim),
                None => {}
            }
        }
    }

    /// Adds an instruction that reads an operand along a dim and makes what it made before.
    fn take(&mut self, id: InstId, operand: usize, dim: usize) {
        let operands = || self.module.operands(id).iter().map(|_| None).collect();
        let new = || Member { id, operands: operands(), result: None };
        let member = self.members.entry(id).or_insert_with(new);
        if let Some(along) = member.operands.get_mut(operand) {
            along.get_or_insert(dim);
        }
    }

    /// Checks whether an instruction may get another layout.
    fn is_free(&self, id: InstId) -> bool {
        let module = self.module;
        let plain = |id: InstId| module.array_shape(id).is_some_and(is_plain);
        module.extras(id).is_none() && plain(id) && module.operands(id).iter().all(|&id| plain(id))
    }

    fn rank(&self, id: InstId) -> usize {
        self.module.array_shape(id).map_or(0, ArrayShape::rank)
    }

    /// Returns the dims along which the operands of an instruction lie if its result lies along
    /// `dim`; `None` if it cannot.
    fn operands_of(&self, id: InstId, dim: usize) -> Option<SmallVec<[Option<usize>; 3]>> {
        let module = self.module;
        let operands = module.operands(id);
        let rank = self.rank(id);
        Some(match module.op(id) {
            Op::Iota(_) => SmallVec::new(),
            // A matrix unit writes its result in either order.
            Op::Dot(_) => SmallVec::from_slice(&[None, None]),
            Op::Reshape(_) => SmallVec::from_slice(&[Some(self.digits(id)?.from_dim_of_to(dim)?)]),
            Op::Transpose(attrs) => {
                SmallVec::from_slice(&[Some(usize::try_from(*attrs.dimensions.get(dim)?).ok()?)])
            }
            Op::Broadcast(attrs) => {
                let place = |&of: &i64| usize::try_from(of) == Ok(dim);
                SmallVec::from_slice(&[attrs.dimensions.iter().position(place)])
            }
            Op::Reduce(attrs) => {
                MonoidReduce::of(module, id, self.float_mode)?;
                let kept =
                    |of: &usize| !attrs.dimensions.iter().any(|&d| usize::try_from(d) == Ok(*of));
                let [array, _] = operands else { return None };
                SmallVec::from_slice(&[(0..self.rank(*array)).filter(kept).nth(dim), None])
            }
            op if op.keeps_indices() && !op.is_sharding_constraint() => {
                // Scalar operands (of select and clamp) fit any dims.
                let along = |&operand: &InstId| (self.rank(operand) == rank).then_some(dim);
                operands.iter().map(along).collect()
            }
            _ => return None,
        })
    }

    /// Returns the dim along which the result of an instruction lies if one of its operands lies
    /// along `dim`: `Some(None)` if the result is as it was, `None` if it cannot be computed so.
    fn result_of(&self, id: InstId, operand: usize, dim: usize) -> Option<Option<usize>> {
        let module = self.module;
        let position = |dims: &[i64]| dims.iter().position(|&of| usize::try_from(of) == Ok(dim));
        Some(match module.op(id) {
            Op::Reshape(_) => {
                let digits = self.digits(id)?;
                let is_same = |to: &usize| digits.from_dim_of_to(*to) == Some(dim);
                Some((0..self.rank(id)).find(is_same)?)
            }
            Op::Transpose(attrs) => Some(position(&attrs.dimensions)?),
            // A matrix unit reads its operands in either order.
            Op::Dot(_) => None,
            Op::Broadcast(attrs) => Some(usize::try_from(*attrs.dimensions.get(dim)?).ok()?),
            Op::Reduce(attrs) => {
                MonoidReduce::of(module, id, self.float_mode)?;
                if operand != 0 || module.operands(id).len() != 2 {
                    return None;
                }
                let before = |&&of: &&i64| usize::try_from(of).is_ok_and(|of| of < dim);
                match position(&attrs.dimensions) {
                    Some(_) => None,
                    None => dim.checked_sub(attrs.dimensions.iter().filter(before).count()),
                }
            }
            op if op.keeps_indices() && !op.is_sharding_constraint() => Some(dim),
            _ => return None,
        })
    }

    fn digits(&self, reshape: InstId) -> Option<Digits> {
        let from = self.module.array_shape(*self.module.operands(reshape).first()?)?;
        Digits::of_reshape(from.dims(), self.module.array_shape(reshape)?.dims())
    }
}
