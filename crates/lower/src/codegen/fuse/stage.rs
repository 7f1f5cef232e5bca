//! Reduces small arrays in vector memory.

use tilewright_ir::{ArrayShape, InstId, Module, Op};
use tilewright_target::{Alignment, Target};

use super::emit::{Emitter, Home};
use super::scope::{DimExpr, Scope};
use super::total::Total;
use super::{Fusion, Homes, array, stays};
use crate::codegen::reduce::ReductionSpec;
use crate::codegen::reduce::blocks::{Blocks, Loop, signed};
use crate::codegen::reduce::chain;
use crate::codegen::reduce::fused::copied_at_once;
use crate::codegen::reduce::state::Statements;
use crate::codegen::reduce::walk::{Outer, VectorWalk};
use crate::error::{LowerError, internal};
use crate::kernel::build::Build;
use crate::kernel::{Block, BufferAddress, Mask, Space, Statement};

/// Largest number of vectors that a stage reads. A larger reduction is a kernel of its own.
const MOST_VECTORS: u64 = 4096;

/// Checks whether a reduction can be computed in vector memory, result by result, with gathers.
pub(super) fn is_small(target: &Target, reduction: &ReductionSpec) -> bool {
    let ([source], [result]) = (reduction.arrays.as_slice(), reduction.results.as_slice()) else {
        return false;
    };
    let dims = source.shape.dims();
    let sizes = reduction.axes.iter().map(|&axis| dims.get(axis).copied().unwrap_or(0));
    let each = sizes.fold(1u64, |product, size| {
        product.saturating_mul(u64::try_from(size).unwrap_or(u64::MAX))
    });
    let vectors = target.footprint(result).vectors.saturating_mul(each);
    vectors <= MOST_VECTORS && stays(target, &source.shape)
}

/// Checks whether gathers are cheaper than a walk over the array: true if the array is a
/// reshape of one that takes fewer vectors.
pub(super) fn is_gathered(
    module: &Module,
    target: &Target,
    id: InstId,
    reduction: &ReductionSpec,
) -> bool {
    let Some(&operand) = module.operands(id).first() else { return false };
    let vectors = |id: InstId| module.array_shape(id).map(|s| target.footprint(s).vectors);
    let denser = match (module.op(operand), module.operands(operand)) {
        (Op::Reshape(_), &[source]) => vectors(source) < vectors(operand),
        _ => false,
    };
    denser && is_small(target, reduction)
}

/// Reduces one array into vector memory.
pub(super) fn reduced(
    fusion: &Fusion<'_>,
    build: &mut Build,
    homes: &mut Homes,
    id: InstId,
    reduction: &ReductionSpec,
) -> Result<Statements, LowerError> {
    let Fusion { module, target, .. } = fusion;
    let shape = array(module, id)?;
    let &[operand, _] = module.operands(id) else {
        return Err(internal("a reduce of other operands than an array and an init"));
    };
    let source = array(module, operand)?;
    if shape.dims().contains(&0) {
        return Ok(Statements::new());
    }
    let walk = VectorWalk::in_vectors(target, shape)?;
    let kept: Vec<Loop> =
        walk.outer.iter().map(|&outer| step(build, outer)).collect::<Result<_, _>>()?;
    let mut scope = Scope::of(&walk, &[], &kept.iter().collect::<Vec<_>>())?;
    let (reduced, index) = loops_within(build, &mut scope, source, reduction)?;
    let reduced: Vec<&Loop> = reduced.iter().collect();
    let depth = kept.len();
    let mut emitter = Emitter::new(fusion, homes.clone(), scope);
    let total = Total::begin(&mut emitter, build, reduction, depth)?;
    // An empty operand leaves only the init.
    if !source.dims().contains(&0) {
        let levels = [depth, depth + reduced.len()];
        total.combine(&mut emitter, build, reduction, (operand, &index), levels)?;
        let within = emitter.nest(&reduced, depth);
        emitter.levels[depth].before.extend(within);
        emitter.leave(depth);
    }
    let done = total.end(&mut emitter, build, reduction, id, depth)?;
    let here = build.buffer(
        module.name_of(id),
        Space::Vmem,
        shape.element_type,
        walk.len.max(walk.vector),
    );
    let to = BufferAddress { buffer: here, at: Blocks::address(kept.iter())? };
    let mask = match target.alignment {
        Alignment::Tiles => Mask::new(),
        Alignment::None => walk.mask(&|dim| Blocks::index(kept.iter(), dim))?,
    };
    emitter.levels[depth].before.push(Statement::Store { to, from: done, mask });
    let kept: Vec<&Loop> = kept.iter().collect();
    let inner = emitter.nest(&kept, 0);
    let body = emitter.take(0, inner);
    homes.insert(id, Home::Resident(here));
    let copied: Vec<Block> = emitter.regions.iter().map(|r| r.block.clone()).collect();
    let mut statements = copied_at_once(&copied);
    statements.extend(body);
    Ok(statements)
}

/// Returns the loops over the reduced elements of each result, inside the loops over results,
/// and the index in the source that they represent.
fn loops_within(
    build: &mut Build,
    scope: &mut Scope,
    source: &ArrayShape,
    reduction: &ReductionSpec,
) -> Result<(Vec<Loop>, Vec<DimExpr>), LowerError> {
    let (mut reduced, mut index) = (Vec::new(), Vec::new());
    let (mut kept, mut along) = (0, scope.walk.dims.len());
    for (dim, &size) in source.dims().iter().enumerate() {
        if !reduction.axes.contains(&dim) {
            index.push(scope.dim(kept));
            kept += 1;
            continue;
        }
        let size = u64::try_from(size).map_err(|_| internal("a dim that is negative"))?;
        let outer = Outer { dim: along, unit: 1, count: size, stride: 1 };
        let mut own = vec![step(build, outer)?];
        if reduction.rounds {
            own = chain::cut(own.remove(0), chain::LONGEST, |outer| {
                build.index(&format!("k{}", outer.dim))
            })?;
        }
        scope.push_dim(size, &own.iter().collect::<Vec<_>>())?;
        index.push(scope.dim(along));
        reduced.extend(own);
        along += 1;
    }
    Ok((reduced, index))
}

fn step(build: &mut Build, outer: Outer) -> Result<Loop, LowerError> {
    let index = build.index(&format!("k{}", outer.dim));
    Ok(Loop { outer, reduced: false, count: signed(outer.count)?.into(), index })
}
