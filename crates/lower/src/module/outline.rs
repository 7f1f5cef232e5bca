//! Makes each kernel a `fusion` of the module.

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::ops::control::{FusionAttrs, FusionKind, GetTupleElementAttrs};
use tilewright_ir::ops::shaping::ParameterAttrs;
use tilewright_ir::{CompId, EditError, InstId, Module, Op, Position, Shape};

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
        let fused = fused_computation(module, computation, group, &members, names.next())?;
        let inputs = group.inputs.iter().map(|id| now.get(id).copied().unwrap_or(*id));
        let (fusion, parts) = insert(module, computation, group, inputs.collect(), fused)?;
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

/// Returns the computation of a group, with its inputs as parameters.
fn fused_computation(
    module: &mut Module,
    parent: CompId,
    group: &Group,
    members: &[InstId],
    name: String,
) -> Result<CompId, EditError> {
    let computation = module.add_computation_before(name, parent);
    let thread = module.computation(parent).execution_thread().map(Into::into);
    module.set_execution_thread(computation, thread);
    let end = Position::End(computation);
    let mut copies: FxHashMap<InstId, InstId> = FxHashMap::default();
    for (place, &input) in group.inputs.iter().enumerate() {
        let shape = module.shape(input).clone();
        let number = i64::try_from(place).unwrap_or(i64::MAX);
        let name = module.fresh_name("param");
        let op = Op::Parameter(Box::new(ParameterAttrs { number }));
        let parameter = module.insert(end, op, shape, &[], name)?;
        copies.insert(input, parameter);
    }
    for &member in members {
        let copy = module.copy_instruction(member, end, |id| copies.get(&id).copied())?;
        copies.insert(member, copy);
    }
    let results = group.outputs.iter().filter_map(|id| copies.get(id).copied());
    let results: Vec<InstId> = results.collect();
    let root = match results.as_slice() {
        &[result] => result,
        _ => {
            let name = module.fresh_name("tuple");
            let shape = shape(module, group);
            module.insert(end, Op::Tuple, shape, &results, name)?
        }
    };
    module.set_root(root)?;
    Ok(computation)
}

/// Inserts the fusion and returns the replacement of each output.
fn insert(
    module: &mut Module,
    parent: CompId,
    group: &Group,
    inputs: Vec<InstId>,
    calls: CompId,
) -> Result<(InstId, Vec<InstId>), EditError> {
    let kind = FusionKind::Loop;
    let attrs = FusionAttrs { kind, output_to_operand_aliasing: Vec::new(), calls };
    let op = Op::Fusion(Box::new(attrs));
    let at = after(module, parent, &inputs);
    let name = module.fresh_name("fusion");
    let shape = shape(module, group);
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

/// Returns the result shape of a fusion: a tuple if it has several outputs.
fn shape(module: &Module, group: &Group) -> Shape {
    let mut shapes: Vec<Shape> = group.outputs.iter().map(|&id| module.shape(id).clone()).collect();
    if shapes.len() == 1 { shapes.remove(0) } else { Shape::Tuple(shapes) }
}

/// Returns the position after the last of some instructions.
fn after(module: &Module, parent: CompId, inputs: &[InstId]) -> Position {
    let inputs: FxHashSet<InstId> = inputs.iter().copied().collect();
    let mut next = module.instructions(parent).next();
    let mut rest = module.instructions(parent).peekable();
    while let Some(id) = rest.next() {
        if inputs.contains(&id) {
            next = rest.peek().copied();
        }
    }
    next.map_or(Position::End(parent), Position::Before)
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
