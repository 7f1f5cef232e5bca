//! The original of a guarded sum: the instructions that compute it from arrays in memory, which a branch runs again.

use rustc_hash::FxHashMap;
use tilewright_ir::ops::control::GetTupleElementAttrs;
use tilewright_ir::{CompId, EditError, InstId, Module, Op, Opcode, Position, Shape};
use tilewright_target::Target;

use super::Site;
use crate::analysis::reduce::shape_like;
use crate::analysis::sharding::{DeviceMesh, Spread};
use crate::cost::contraction::moves_space;
use crate::guards::calls_guard;

/// The most instructions of the original that a branch computes again.
const MOST_COPIED: usize = 64;

/// The instructions by which the original computes a sum from arrays in memory.
pub(in crate::sums) struct Original {
    sum: InstId,
    /// The arrays.
    pub(in crate::sums) leaves: Vec<InstId>,
    /// The instructions, operands first; the sum is the last one.
    order: Vec<InstId>,
    /// Where each device computes its own results: the spreads of all these values, and the shapes of their parts.
    parts: FxHashMap<InstId, (Spread, Shape)>,
}

impl Original {
    /// Finds the instructions of a sum; `None` if they are too many, or an array is moved where they
    /// read it: a branch would have it stored first. With the spread of the array that is summed, each device
    /// computes its own results; `None` if it needs parts of others for that.
    pub(super) fn of(
        module: &Module,
        sum: InstId,
        target: &Target,
        parts: Option<(&Spread, &DeviceMesh)>,
    ) -> Option<Self> {
        let (mut leaves, mut order) = (Vec::new(), Vec::new());
        let mut is_there: FxHashMap<InstId, bool> = FxHashMap::default();
        let mut next = vec![sum];
        while let Some(&id) = next.last() {
            let waits = is_there.insert(id, true).is_none() && (id == sum || is_copied(module, id));
            if waits {
                let new = |operand: &InstId| !is_there.contains_key(operand);
                next.extend(module.operands(id).iter().copied().filter(new));
                continue;
            }
            next.pop();
            if leaves.contains(&id) || order.contains(&id) {
                continue;
            }
            if id == sum || is_copied(module, id) {
                order.push(id);
            } else if is_stored(module, id, target) {
                leaves.push(id);
            } else {
                return None;
            }
            let is_plain = module.extras(id).is_none() || leaves.last() == Some(&id);
            if !is_plain || order.len() > MOST_COPIED {
                return None;
            }
        }
        let mut original = Self { sum, leaves, order, parts: FxHashMap::default() };
        if let Some((array, mesh)) = parts {
            original.parts = original.divided(module, array, mesh)?;
        }
        Some(original)
    }

    /// Checks whether each device computes its own results.
    pub(super) fn is_apart(&self) -> bool {
        !self.parts.is_empty()
    }

    /// Returns how a value lies over devices that compute their own results.
    pub(super) fn spread(&self, id: InstId) -> Option<&Spread> {
        self.parts.get(&id).map(|(spread, _)| spread)
    }

    /// Returns the shape of a value, or of its part where each device computes its own results.
    pub(super) fn shape(&self, module: &Module, id: InstId) -> Shape {
        self.parts.get(&id).map_or_else(|| module.shape(id).clone(), |(_, shape)| shape.clone())
    }

    /// Finds how all values lie if the summed array lies like this, with the shapes of their parts. `None` if a dim
    /// that is summed is divided, values would have to lie in different ways for different users, or parts are not
    /// equal. Each device has the parts that it needs: an array is as far divided as those that it is computed from.
    fn divided(
        &self,
        module: &Module,
        array: &Spread,
        mesh: &DeviceMesh,
    ) -> Option<FxHashMap<InstId, (Spread, Shape)>> {
        let Op::Reduce(attrs) = module.op(self.sum) else { return None };
        let is_summed =
            |dim: &usize| attrs.dimensions.iter().any(|&d| usize::try_from(d) == Ok(*dim));
        let (summed, kept): (Vec<usize>, Vec<usize>) = (0..array.iter().len()).partition(is_summed);
        array.pick(summed)?.is_whole().then_some(())?;
        let mut spreads = FxHashMap::from_iter([(self.sum, array.pick(kept)?)]);
        for &user in self.order.iter().rev() {
            for &operand in module.operands(user) {
                let needed = match module.array_shape(operand)?.rank() {
                    0 => Spread::whole(0),
                    _ if user == self.sum => array.clone(),
                    _ => operand_spread(module, user, spreads.get(&user)?, mesh)?,
                };
                if spreads.entry(operand).or_insert_with(|| needed.clone()) != &needed {
                    return None;
                }
            }
        }
        let with_shape = |(id, spread): (InstId, Spread)| {
            let shape = module.array_shape(id)?;
            let is_same_everywhere = match module.op(id) {
                Op::Iota(attrs) => spread[usize::try_from(attrs.dimension).ok()?].is_empty(),
                Op::Constant(_) => spread.is_whole(),
                _ => true,
            };
            is_same_everywhere.then_some(())?;
            let dims = mesh.part_of(shape.dims(), &spread)?;
            Some((id, (spread, shape_like(shape, &dims))))
        };
        spreads.into_iter().map(with_shape).collect()
    }

    /// Adds a branch that computes the sum, or a device's part of it, from a tuple of the arrays.
    pub(super) fn branch(&self, module: &mut Module, caller: CompId) -> Result<CompId, EditError> {
        let name = module.fresh_computation_name("again");
        let branch = module.add_computation_before(name, caller);
        let shapes = self.leaves.iter().map(|&leaf| self.shape(module, leaf)).collect();
        let argument = super::parameter(module, branch, 0, Shape::Tuple(shapes))?;
        let within = Site { computation: branch, position: Position::End(branch), like: self.sum };
        let mut copies: FxHashMap<InstId, InstId> = FxHashMap::default();
        for (index, &leaf) in (0i64..).zip(&self.leaves) {
            let op = Op::GetTupleElement(Box::new(GetTupleElementAttrs { index }));
            let shape = self.shape(module, leaf);
            copies.insert(leaf, within.add(module, op, shape, &[argument])?);
        }
        for &id in &self.order {
            let operands = module.operands(id).iter();
            let operands: Vec<InstId> =
                operands.filter_map(|operand| copies.get(operand).copied()).collect();
            let (op, shape) = (module.op(id).clone(), self.shape(module, id));
            let (at, name) = (Site { like: id, ..within }, module.name_of(id).to_owned());
            copies.insert(id, at.add_named(module, &name, op, shape, &operands)?);
        }
        if let Some(&root) = copies.get(&self.sum) {
            module.set_root(root)?;
        }
        Ok(branch)
    }
}

/// Returns how an operand lies, which is no scalar, if each device computes its part of the result from it.
fn operand_spread(
    module: &Module,
    user: InstId,
    result: &Spread,
    mesh: &DeviceMesh,
) -> Option<Spread> {
    let &operand = module.operands(user).first()?;
    match module.op(user) {
        Op::Broadcast(attrs) => {
            result.pick(attrs.dimensions.iter().filter_map(|&dim| usize::try_from(dim).ok()))
        }
        Op::Reshape(_) => {
            let dims = |id| module.array_shape(id).map(tilewright_ir::ArrayShape::dims);
            result.reshaped(dims(user)?, dims(operand)?, mesh)
        }
        op if op.opcode().is_elementwise() => Some(result.clone()),
        _ => None,
    }
}

/// Checks whether a branch computes a value again.
fn is_copied(module: &Module, id: InstId) -> bool {
    let opcode = module.opcode(id);
    opcode.is_elementwise()
        || matches!(
            opcode,
            Opcode::Broadcast | Opcode::Iota | Opcode::Constant | Opcode::Reshape | Opcode::Bitcast
        )
}

/// Checks whether a value lies in memory anyway, so that a branch can read it at no cost.
///
/// The kernels of convolutions and products also compute sums of their results, for which a guard would read the
/// results again. This does not hold for convolutions with space in their batch: they get a barrier. The state of a
/// loop is made by the iteration before, where a compiler computes its sum for the mean, too: a guard would save
/// nothing.
fn is_stored(module: &Module, id: InstId, target: &Target) -> bool {
    match module.opcode(id) {
        // The result of a guard of parts.
        Opcode::CustomCall => module.operands(id).iter().any(|&part| calls_guard(module, part)),
        Opcode::GetTupleElement => {
            let of = module.operands(id).first();
            let is_state = |&of: &InstId| module.opcode(of) == Opcode::Parameter;
            module.instruction(id).parent() == module.entry() || !of.is_some_and(is_state)
        }
        Opcode::Parameter
        | Opcode::Reduce
        | Opcode::AllReduce
        | Opcode::OptimizationBarrier
        | Opcode::Conditional => true,
        Opcode::Convolution => moves_space(module, id, target),
        _ => false,
    }
}
