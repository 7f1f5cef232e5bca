//! Makes each kernel a `fusion` of the module.

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::ops::control::{FusionAttrs, FusionKind, GetTupleElementAttrs};
use tilewright_ir::{CompId, EditError, InstId, Module, Op, Outline, Shape};

use crate::codegen::fuse::{Group, members};

/// Replaces each group of a computation by a `fusion` after the fusions that it reads, and
/// removes instructions that are no longer needed. Returns the fusions.
///
/// # Errors
/// Returns an error if the module cannot be edited in this way: groups belong to other
/// computations, or a group reads results of a later one.
pub(super) fn outline(
    module: &mut Module,
    computation: CompId,
    groups: &[&Group],
) -> Result<Vec<InstId>, EditError> {
    let mut fusions = Vec::with_capacity(groups.len());
    let mut now: FxHashMap<InstId, InstId> = FxHashMap::default();
    let mut replaced: Vec<(InstId, InstId)> = Vec::new();
    let mut old: FxHashSet<InstId> = FxHashSet::default();
    let mut names = Names::of(module);
    for group in groups {
        let members = members(module, group).unwrap_or_default();
        let (inputs, outputs) = (&group.inputs, &group.outputs);
        let part = Outline { inputs, members: &members, outputs };
        let fused = module.outline(computation, names.next(), &part)?;
        let shape = part.shape(module);
        let inputs = group.inputs.iter().map(|id| now.get(id).copied().unwrap_or(*id));
        let (fusion, parts) = insert(module, (computation, group), inputs.collect(), shape, fused)?;
        now.extend(group.outputs.iter().copied().zip(parts.iter().copied()));
        replaced.extend(group.outputs.iter().copied().zip(parts));
        old.extend(members);
        fusions.push(fusion);
    }
    for (before, after) in replaced {
        module.replace_uses(before, after)?;
    }
    let order: Vec<InstId> = module.instructions(computation).collect();
    for id in order.into_iter().rev().filter(|id| old.contains(id)) {
        if module.is_removable(id) {
            module.remove(id)?;
        }
    }
    Ok(fusions)
}

/// Inserts the fusion and returns the replacement of each output.
fn insert(
    module: &mut Module,
    (parent, group): (CompId, &Group),
    inputs: Vec<InstId>,
    shape: Shape,
    calls: CompId,
) -> Result<(InstId, Vec<InstId>), EditError> {
    let kind = FusionKind::Loop;
    let attrs = FusionAttrs { kind, output_to_operand_aliasing: Vec::new(), calls };
    let op = Op::Fusion(Box::new(attrs));
    let at = module.after_all(parent, &inputs);
    let name = module.fresh_name("fusion");
    let fusion = module.insert(at, op, shape, &inputs, name)?;
    if let &[output] = group.outputs.as_slice() {
        module.copy_metadata(output, fusion);
        return Ok((fusion, vec![fusion]));
    }
    let mut parts = Vec::with_capacity(group.outputs.len());
    for (place, &output) in group.outputs.iter().enumerate() {
        let index = i64::try_from(place).unwrap_or(i64::MAX);
        let name = module.fresh_name("part");
        let op = Op::GetTupleElement(Box::new(GetTupleElementAttrs { index }));
        let shape = module.shape(output).clone();
        parts.push(module.insert(at, op, shape, &[fusion], name)?);
    }
    Ok((fusion, parts))
}

/// Generates names that no computation has.
struct Names {
    taken: FxHashSet<String>,
    number: u64,
}

impl Names {
    fn of(module: &Module) -> Self {
        let computations = module.computations().iter();
        let taken = computations.map(|&id| module.computation(id).name().to_owned()).collect();
        Self { taken, number: 0 }
    }

    fn next(&mut self) -> String {
        loop {
            let name = match self.number {
                0 => "fused_computation".to_owned(),
                number => format!("fused_computation.{number}"),
            };
            self.number = self.number.saturating_add(1);
            if !self.taken.contains(&name) {
                return name;
            }
        }
    }
}
