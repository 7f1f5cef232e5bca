//! Finds computations of a module that are equal except for names.

use std::hash::{Hash as _, Hasher as _};

use rustc_hash::{FxHashMap, FxHasher};
use smallvec::SmallVec;
use tilewright_ir::{CompId, InstId, Module, Op, ShapeId};

/// The most instructions of a computation that is compared with others. Larger computations are
/// not compared: those that occur several times are reducers and comparators, which are small.
const LARGEST: usize = 64;

/// The content of a computation without names. Operands and the root are numbered by their
/// positions in the computation.
#[derive(PartialEq, Eq, Hash)]
struct Body {
    instructions: Vec<(Op, ShapeId, SmallVec<[usize; 2]>)>,
    root: usize,
}

/// For each computation, the first computation of the module that is equal except for names.
pub fn representatives(module: &Module) -> FxHashMap<CompId, CompId> {
    let mut representatives: FxHashMap<CompId, CompId> = FxHashMap::default();
    let mut bodies: FxHashMap<u64, Vec<(Body, CompId)>> = FxHashMap::default();
    for &id in module.computations() {
        let same = body_of(module, id, &representatives).map_or(id, |body| {
            let mut hasher = FxHasher::default();
            body.hash(&mut hasher);
            let bucket = bodies.entry(hasher.finish()).or_default();
            match bucket.iter().find(|(other, _)| *other == body) {
                Some((_, first)) => *first,
                None => {
                    bucket.push((body, id));
                    id
                }
            }
        });
        representatives.insert(id, same);
    }
    representatives
}

/// Returns the content of a computation; `None` if it must not be compared with others.
fn body_of(
    module: &Module,
    id: CompId,
    representatives: &FxHashMap<CompId, CompId>,
) -> Option<Body> {
    let computation = module.computation(id);
    if computation.len() > LARGEST || computation.execution_thread().is_some() {
        return None;
    }
    let mut numbers: FxHashMap<InstId, usize> = FxHashMap::default();
    let mut instructions = Vec::with_capacity(computation.len());
    for (number, inst) in module.instructions(id).enumerate() {
        // Two instructions with attributes such as shardings are not compared, and the elements of
        // an elided constant are not known.
        let elided = matches!(module.op(inst), Op::Constant(value) if value.is_elided());
        if elided || module.extras(inst).is_some() {
            return None;
        }
        let operands = module.operands(inst).iter();
        let operands = operands.filter_map(|operand| numbers.get(operand).copied()).collect();
        let mut op = module.op(inst).clone();
        op.map_computations(&mut |c| representatives.get(&c).copied().unwrap_or(c));
        instructions.push((op, module.instruction(inst).shape_id(), operands));
        numbers.insert(inst, number);
    }
    let root = computation.root().and_then(|root| numbers.get(&root).copied())?;
    Some(Body { instructions, root })
}
