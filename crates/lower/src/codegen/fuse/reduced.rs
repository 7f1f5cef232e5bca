//! Reduces arrays that a kernel computes from blocks. Several reductions along the same dims
//! share one pass.

use tilewright_ir::{InstId, Literal, Op};
use tilewright_target::Physical;

use super::emit::{Emitter, Home};
use super::scope::Scope;
use super::{Fusion, Homes};
use crate::codegen::reduce::blocks::{Blocks, Loop};
use crate::codegen::reduce::fused::{Ends, Pass, Task, pass};
use crate::codegen::reduce::produce::{Produced, Producer};
use crate::codegen::reduce::walk::VectorWalk;
use crate::codegen::reduce::{Elements, Neutral, ReductionSpec, Source};
use crate::error::{LowerError, TooLarge, Unsupported, internal};
use crate::kernel::build::Build;
use crate::kernel::{BufferAddress, Expr, Function, FunctionStep, Value};

/// Emits one pass over large arrays that feeds one or several reductions.
pub(super) fn passed(
    fusion: &Fusion<'_>,
    build: &mut Build,
    homes: &Homes,
    totals: &[(InstId, ReductionSpec)],
    ends: Ends,
) -> Result<Pass, LowerError> {
    let Fusion { module, target, group, .. } = fusion;
    let reduction = beside(&group.name, totals)?;
    if reduction.arrays.iter().any(|array| array.shape.dims().contains(&0)) {
        return Err(Unsupported::Empty.into());
    }
    let main = |id: &&InstId| matches!(homes.get(id), Some(Home::Main(_)));
    let element = |id: &InstId| {
        module.array_shape(*id).map_or(0, |shape| u64::from(shape.element_type.bytes()))
    };
    let bytes = group.inputs.iter().filter(main).map(element).sum();
    let produce = |build: &mut Build, walk: &VectorWalk, blocks: &Blocks| {
        produced(fusion, build, homes, (walk, blocks), (totals, &reduction))
    };
    let producer = Producer { produce: &produce, bytes };
    let task = Task { reduction: &reduction, producer: Some(&producer), selection: None, ends };
    pass(task, target, build)
}

/// Computes the elements of all arrays along a walk.
fn produced(
    fusion: &Fusion<'_>,
    build: &mut Build,
    homes: &Homes,
    (walk, blocks): (&VectorWalk, &Blocks),
    (totals, reduction): (&[(InstId, ReductionSpec)], &ReductionSpec),
) -> Result<Produced, LowerError> {
    let mut made = Produced::default();
    let kept = blocks.within.iter().filter(|l| !l.reduced);
    let loops: Vec<&Loop> = kept.chain(blocks.within.iter().filter(|l| l.reduced)).collect();
    let scope = Scope::of(walk, &blocks.grid, &loops)?;
    let dims = scope.dims();
    let mut emitter = Emitter::new(fusion, homes.clone(), scope);
    for (place, (id, _)) in totals.iter().enumerate() {
        let &[operand, init] = fusion.module.operands(*id) else {
            return Err(internal("a reduce of other operands than an array and an init"));
        };
        let neutral = reduction.neutral.as_ref().and_then(|n| n.elements.get(place));
        made.values.push(match neutral {
            Some(neutral) => {
                let element = emitter.element(build, operand, &dims, neutral)?;
                (element.register, element.is_masked)
            }
            None => (emitter.value(build, operand, &dims)?, false),
        });
        made.inits.push(first(&emitter, init)?);
    }
    let mut levels = std::mem::take(&mut emitter.levels).into_iter();
    made.block = levels.next().map(|level| level.before).unwrap_or_default();
    made.within = loops.iter().zip(levels).map(|(l, level)| (l.index, level.before)).collect();
    made.streams = emitter.regions.into_iter().map(|region| region.block).collect();
    Ok(made)
}

/// Returns the init of a reduction: a constant, or a scalar in vector memory.
fn first(emitter: &Emitter<'_>, init: InstId) -> Result<Value, LowerError> {
    match (emitter.module.op(init), emitter.homes.get(&init)) {
        (Op::Constant(literal), _) => Ok(Value::Splat((**literal).clone())),
        (_, Some(&Home::Resident(buffer))) => {
            let shape = emitter.module.array_shape(init).filter(|shape| shape.rank() == 0);
            let shape = shape.ok_or_else(|| internal("an init that is no scalar"))?;
            Physical::of(emitter.target, shape).places().ok_or(TooLarge::Elements)?;
            Ok(Value::Scalar(BufferAddress { buffer, at: Expr::ZERO }))
        }
        _ => Err(Unsupported::Init.into()),
    }
}

/// Joins several reductions into one, with all accumulators before all elements.
fn beside(name: &str, totals: &[(InstId, ReductionSpec)]) -> Result<ReductionSpec, LowerError> {
    let totals: Vec<&ReductionSpec> = totals.iter().map(|(_, total)| total).collect();
    let &first = totals.first().ok_or_else(|| internal("a pass that reduces nothing"))?;
    let computed = |total: &ReductionSpec| -> Vec<Source> {
        let shapes = total.arrays.iter().map(|array| array.shape.clone());
        shapes.map(|shape| Source { shape, elements: Elements::Computed }).collect()
    };
    if let &[only] = totals.as_slice() {
        return Ok(ReductionSpec { name: name.into(), arrays: computed(only), ..only.clone() });
    }
    let mut neutral = Neutral { accumulated: Vec::new(), elements: Vec::new() };
    for total in &totals {
        if total.axes != first.axes {
            return Err(Unsupported::Unlike.into());
        }
        let own = total.neutral.clone().ok_or(Unsupported::NoIdentity)?;
        neutral.accumulated.extend::<Vec<Literal>>(own.accumulated);
        neutral.elements.extend::<Vec<Literal>>(own.elements);
    }
    Ok(ReductionSpec {
        name: name.into(),
        arrays: totals.iter().copied().flat_map(computed).collect(),
        axes: first.axes.clone(),
        inits: totals.iter().flat_map(|total| total.inits.iter().copied()).collect(),
        results: totals.iter().flat_map(|total| total.results.iter().cloned()).collect(),
        by: side_by_side(totals.iter().map(|total| &total.by).collect())?,
        neutral: Some(neutral),
        rounds: totals.iter().any(|total| total.rounds),
    })
}

/// Joins functions of accumulators and elements into one function of all accumulators and all
/// elements.
fn side_by_side(functions: Vec<&Function>) -> Result<Function, LowerError> {
    let mut both = Function { name: "combine".into(), ..Function::default() };
    // For each function, the positions of its values in the joined function.
    let mut places: Vec<Vec<usize>> = vec![Vec::new(); functions.len()];
    let named = |value: &crate::kernel::FunctionValue, values: &mut Vec<_>| {
        let place = values.len();
        let name = format!("{}{place}", value.name.trim_end_matches(|c: char| c.is_ascii_digit()));
        let value = crate::kernel::FunctionValue { name: name.into(), ..value.clone() };
        values.push(value);
        place
    };
    for half in 0..2 {
        for (function, places) in functions.iter().zip(&mut places) {
            let count = function.parameters / 2;
            for value in function.values.iter().skip(half * count).take(count) {
                places.push(named(value, &mut both.values));
            }
        }
    }
    both.parameters = both.values.len();
    for (function, places) in functions.iter().zip(&mut places) {
        let values = function.values.iter().skip(function.parameters);
        for (step, value) in function.steps.iter().zip(values) {
            places.push(named(value, &mut both.values));
            both.steps.push(match step {
                FunctionStep::Constant(literal) => FunctionStep::Constant(literal.clone()),
                FunctionStep::Apply(op, operands) => {
                    let operands = operands.iter().map(|&o| places.get(o).copied());
                    let operands = operands
                        .collect::<Option<_>>()
                        .ok_or_else(|| internal("a function of a value that it does not have"))?;
                    FunctionStep::Apply(op.clone(), operands)
                }
            });
        }
    }
    for (function, places) in functions.iter().zip(&places) {
        for &result in &function.results {
            both.results.push(*places.get(result).ok_or_else(|| {
                internal("a function that returns a value that it does not have")
            })?);
        }
    }
    Ok(both)
}
