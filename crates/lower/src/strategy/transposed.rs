//! Reduces rows: `reduce over a of x = reduce over the last dim of rows(x)`, where `rows(x)[k..,
//! row-major(a..)] = x[k.., a..]`.
//!
//! The first kernels write every array as rows: the kept dims in order, then all reduced dims
//! merged into one. The last kernel reduces along the rows. An array whose reduced dims are
//! minor-most and in order already has rows and is reduced in one pass.

use tilewright_ir::shape::{ArrayShape, Shape};
use tilewright_ir::{BuildError, Builder, InstId};
use tilewright_target::Target;

use super::{Input, Sequence, Stage};
use crate::codegen::fuse::{self, Group};
use crate::codegen::reduce::{Elements, ReductionSpec};
use crate::error::{LowerError, TooLarge, Unsupported, internal};
use crate::kernel::Kernel;

/// One kernel per array that writes it as rows, then one that reduces.
pub(super) fn lowered(reduction: &ReductionSpec, target: &Target) -> Result<Sequence, LowerError> {
    let array =
        reduction.walked().next().ok_or_else(|| internal("a reduction of no array in memory"))?;
    if !array.is_static() || reduction.walked().all(|array| lies_in_rows(array, &reduction.axes)) {
        return reduction.in_one_stage(target);
    }
    let rows = Rows::of(array, &reduction.axes)?;
    let mut last = ReductionSpec { axes: vec![rows.kept.len()], ..reduction.clone() };
    let mut inputs: Vec<Input> = reduction.inputs().into_iter().map(Input::Operand).collect();
    let mut stages = Vec::new();
    for (place, source) in last.arrays.iter_mut().enumerate() {
        let shape = ArrayShape::new(source.shape.element_type, rows.dims.iter().copied());
        let from = std::mem::replace(&mut source.shape, shape.clone());
        match &mut source.elements {
            Elements::Memory => {
                let name = format!("{}.{}", reduction.name, stages.len() + 1);
                let kernel = rows.kernel(&name, from, target)?;
                // Arrays come before inits, so this is the next input.
                let input = inputs
                    .get_mut(stages.len())
                    .ok_or_else(|| internal("an array that no kernel reads"))?;
                *input = Input::Result { stage: stages.len(), result: 0 };
                let inputs = vec![Input::Operand(place)];
                stages.push(Stage { kernel, inputs, results: vec![shape] });
            }
            Elements::Indices(factors) => *factors = rows.factors(&from, factors)?,
            Elements::Computed => {
                return Err(internal("elements that are computed by another kernel"));
            }
        }
    }
    last.name = format!("{}.{}", reduction.name, stages.len() + 1);
    let kernel = last.fused(target)?;
    stages.push(Stage { kernel, inputs, results: last.results });
    Ok(Sequence { stages })
}

/// Checks whether the reduced dims are minor-most in memory and in order, without regard to
/// dims of size
/// 1. True for arrays without elements, because nothing is moved.
fn lies_in_rows(array: &ArrayShape, reduced: &[usize]) -> bool {
    let is_long = |dim: &usize| array.dims().get(*dim) != Some(&1);
    let mut reduced: Vec<usize> = reduced.iter().copied().filter(is_long).collect();
    reduced.sort_unstable_by_key(|&dim| std::cmp::Reverse(dim));
    let order = array.layout_or_default().minor_to_major;
    let order = order.into_iter().map(|dim| dim as usize).filter(is_long);
    order.take(reduced.len()).eq(reduced) || array.dims().contains(&0)
}

/// The dims of rows.
struct Rows {
    /// The kept dims, in order.
    kept: Vec<usize>,
    /// The merged dims, in order.
    reduced: Vec<usize>,
    /// The sizes of the rows' dims.
    dims: Vec<i64>,
}

impl Rows {
    fn of(array: &ArrayShape, axes: &[usize]) -> Result<Self, LowerError> {
        let dims = array.dims();
        let (reduced, kept): (Vec<usize>, Vec<usize>) =
            (0..dims.len()).partition(|dim| axes.contains(dim));
        let row = reduced.iter().try_fold(1i64, |row, &dim| row.checked_mul(dims[dim]));
        let sizes = kept.iter().map(|&dim| dims[dim]);
        let sizes = sizes.chain([row.ok_or(TooLarge::Elements)?]).collect();
        Ok(Self { kept, reduced, dims: sizes })
    }

    /// Returns the kernel that writes an array as rows.
    fn kernel(&self, name: &str, from: ArrayShape, target: &Target) -> Result<Kernel, LowerError> {
        let mut builder = Builder::new(name);
        let (array, rows) =
            self.made(&mut builder, from).map_err(|_| internal("rows that cannot be built"))?;
        let group = Group { name: name.into(), inputs: vec![array], outputs: vec![rows] };
        fuse::fused(builder.module(), &group, &fuse::Reductions::default(), target)
    }

    fn made(
        &self,
        builder: &mut Builder,
        from: ArrayShape,
    ) -> Result<(InstId, InstId), BuildError> {
        let array = builder.parameter("x", Shape::Array(from))?;
        let order = self.kept.iter().chain(&self.reduced);
        let order: Vec<i64> = order.map(|&dim| i64::try_from(dim).unwrap_or(i64::MAX)).collect();
        let turned = builder.transpose(array, &order)?;
        Ok((array, builder.reshape(turned, &self.dims)?))
    }

    /// Returns the factors of indices (see [`Elements::Indices`]) in rows.
    fn factors(&self, array: &ArrayShape, factors: &[i64]) -> Result<Vec<i64>, LowerError> {
        let factor = |dim: usize| {
            factors.get(dim).copied().ok_or_else(|| internal("a dim without a factor"))
        };
        let size = |dim: usize| {
            array.dims().get(dim).copied().ok_or_else(|| internal("a dim without a size"))
        };
        // A row advances by the factor of its minor-most dim.
        let (mut by, mut low) = (None, 1i64);
        for &dim in self.reduced.iter().rev() {
            if size(dim)? == 1 {
                continue;
            }
            let by = *by.get_or_insert(factor(dim)?);
            if low.checked_mul(by) != Some(factor(dim)?) {
                return Err(Unsupported::Uneven.into());
            }
            low = low.checked_mul(size(dim)?).ok_or(TooLarge::Elements)?;
        }
        let kept = self.kept.iter().map(|&dim| factor(dim));
        kept.chain([Ok(by.unwrap_or(0))]).collect()
    }
}
