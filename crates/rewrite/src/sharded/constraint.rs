//! **A constraint that says how its operand lies anyway is left out.**
//!
//! `Sharding(x) = x`
//!
//! JAX writes a constraint after each op of a program whose mesh has explicit axes. Most say what
//! follows from the op's operands, and each keeps expressions on both sides of it apart, so that no
//! other pass sees a norm.
//!
//! Preconditions: the constraint states the spread that its operand has without it; or its operand
//! is a broadcast, a constant or an iota, of which each device makes its own part, and all users are
//! elementwise and lie as they do without the constraint, by their other operands. A constraint
//! beside another custom call stays, and so does the last one before values are divided in another
//! way: XLA carries shardings from users to operands, too, up to the nearest constraint.
//!
//! The pass runs before all others: those of this folder make constraints that must stay.

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::{CompId, EditError, InstId, Module, Op, Opcode};

use crate::analysis::sharding::{DeviceMesh, Flow, Spread, stands_alone};
use crate::driver::numbers::Class;
use crate::driver::{Context, Pass};

/// See the module.
pub struct Constraints;

impl Pass for Constraints {
    fn name(&self) -> &'static str {
        "constraint"
    }

    fn summary(&self) -> &'static str {
        "leave out constraints that say how their operands lie anyway"
    }

    fn class(&self) -> Class {
        Class::Exact
    }

    fn run(&self, module: &mut Module, _: &mut Context<'_>) -> Result<usize, EditError> {
        let Some(mesh) = DeviceMesh::of(module) else { return Ok(0) };
        let needless = needless(module, &mesh);
        for &id in &needless {
            let Some(&operand) = module.operands(id).first() else { continue };
            module.replace_uses(id, operand)?;
            if module.is_removable(id) {
                module.remove(id)?;
            }
        }
        Ok(needless.len())
    }
}

/// Returns the constraints that can be left out, each after those that it depends on.
fn needless(module: &Module, mesh: &DeviceMesh) -> Vec<InstId> {
    let flow = Flow::of(module, mesh);
    let entered = module.computations().iter().filter(|&&one| flow.has_entered(one));
    let constraints = entered.flat_map(|&one| constraints(module, mesh, one));
    // Constraints that follow from their operands, and constraints of free operands, with the
    // spreads that these operands have by themselves.
    let mut found = Vec::new();
    let mut free: FxHashMap<InstId, &Spread> = FxHashMap::default();
    for (id, operand, stated) in constraints {
        let Some(own) = flow.spread(operand) else { continue };
        if *own == stated {
            found.push(id);
        } else if is_free(module, operand) && own.joined(&stated).as_ref() == Some(&stated) {
            found.push(id);
            free.insert(id, own);
        }
    }
    let mut kept: FxHashSet<InstId> = FxHashSet::default();
    for &id in free.keys() {
        let mut users = module.uses(id).map(|found| found.user);
        if module.is_root(id) || !users.all(|user| is_carried(module, &flow, &free, user)) {
            kept.insert(id);
        }
    }
    found.retain(|id| !kept.contains(id));
    let needed = fences(module, &flow, &found.iter().copied().collect());
    found.retain(|id| !needed.contains(id));
    found
}

/// Returns those of some constraints that hold back spreads which come from users: the nearest above
/// each contested instruction. Without them, XLA may divide what is computed before as it is wanted
/// after, and exchange more for that.
fn fences(module: &Module, flow: &Flow<'_>, among: &FxHashSet<InstId>) -> FxHashSet<InstId> {
    let entered = || module.computations().iter().filter(|&&one| flow.has_entered(one));
    let all = || entered().flat_map(|&one| module.instructions(one));
    let mut callers: FxHashMap<CompId, InstId> = FxHashMap::default();
    for id in all() {
        callers.extend(module.called(id).into_iter().map(|called| (called, id)));
    }
    let mut open: Vec<InstId> = all().filter(|&id| flow.is_contested(id)).collect();
    let (mut seen, mut found) = (FxHashSet::default(), FxHashSet::default());
    while let Some(id) = open.pop() {
        let mut above: Vec<InstId> = module.operands(id).to_vec();
        above.extend(module.called(id).iter().filter_map(|&one| module.computation(one).root()));
        if module.opcode(id) == Opcode::Parameter {
            let caller = module.instruction(id).parent().and_then(|parent| callers.get(&parent));
            above.extend(caller.iter().flat_map(|&&caller| module.operands(caller)));
        }
        for one in above.into_iter().filter(|&one| seen.insert(one)) {
            if among.contains(&one) {
                found.insert(one);
            } else if !module.op(one).is_sharding_constraint() {
                open.push(one);
            }
        }
    }
    found
}

/// Returns the constraints of a computation that state a spread of a whole array, with their operands.
fn constraints<'a>(
    module: &'a Module,
    mesh: &'a DeviceMesh,
    computation: CompId,
) -> impl Iterator<Item = (InstId, InstId, Spread)> + 'a {
    module.instructions(computation).filter_map(|id| {
        let &operand = module.operands(id).first().filter(|_| stands_alone(module, id))?;
        let rank = module.array_shape(id)?.rank();
        Some((id, operand, mesh.stated(module.extras(id)?, rank)?))
    })
}

fn is_free(module: &Module, id: InstId) -> bool {
    matches!(module.op(id), Op::Broadcast(_) | Op::Constant(_) | Op::Iota(_))
}

/// Checks whether an elementwise op lies as it does, with these operands as they are by themselves.
fn is_carried(
    module: &Module,
    flow: &Flow<'_>,
    free: &FxHashMap<InstId, &Spread>,
    id: InstId,
) -> bool {
    let (Some(lies), Some(array)) = (flow.spread(id), module.array_shape(id)) else { return false };
    let mut joined = Spread::whole(array.rank());
    for operand in module.operands(id) {
        let own = free.get(operand).copied().or_else(|| flow.spread(*operand));
        match own.and_then(|own| joined.joined(own)) {
            Some(both) => joined = both,
            None => return false,
        }
    }
    module.opcode(id).is_elementwise() && joined == *lies
}
