//! How an op relates the dims of its operands and results, as Einstein's notation does: each dim
//! has an index, and dims with one index run together.
//!
//! ```text
//! transpose  x[i,j]              ->  [j,i]
//! broadcast  x[j]                ->  [i,j]
//! reduce     x[i,j], init[]      ->  [i]
//! dot        x[b,i,k], y[b,j,k]  ->  [b,i,j]
//! slice      x[i]                ->  [i']      a part of i
//! ```

use crate::entity::InstId;
use crate::module::Module;
use crate::ops::Op;
use crate::ops::contract::{ConvolutionAttrs, DotAttrs};
use crate::ops::indexing::{GatherAttrs, ScatterAttrs};
use crate::types::shape::{ArrayShape, Shape};

/// How a dim of an operand or a result takes part in an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DimRole {
    /// The dim runs over the whole index of this number. All such dims of one index have one size.
    Index(usize),
    /// The dim has elements of the index of this number, and a size that the attributes of the op
    /// fix: it is sliced, padded, joined with others or gone over by a window.
    Fixed(usize),
    /// The dim is a part of the index of this number, of whatever size.
    Part(usize),
}

impl DimRole {
    /// Returns the number of the index that the dim has elements of.
    pub fn number(self) -> usize {
        match self {
            Self::Index(number) | Self::Fixed(number) | Self::Part(number) => number,
        }
    }
}

/// The roles of the dims of each operand and each array of the result. Operands that are tuples
/// count with the arrays in them, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Relation {
    /// For each array of the operands, the roles of its dims.
    pub operands: Vec<Vec<DimRole>>,
    /// For each array of the result, the roles of its dims.
    pub results: Vec<Vec<DimRole>>,
}

impl Relation {
    /// Returns the relation of an instruction. `None` if the op relates its dims in another way,
    /// such as a reshape, if it calls what computes its result, or if it is not known here.
    pub fn of(module: &Module, id: InstId) -> Option<Self> {
        let mut making = Making::new(module, id);
        making.relate()?;
        Some(Self { operands: making.operands, results: making.results })
    }
}

/// A relation under construction.
struct Making<'a> {
    module: &'a Module,
    id: InstId,
    /// The shapes of the arrays of the operands, and of the result.
    shapes: [Vec<&'a ArrayShape>; 2],
    operands: Vec<Vec<DimRole>>,
    results: Vec<Vec<DimRole>>,
    /// The number of indices so far.
    indices: usize,
}

fn arrays<'a>(shapes: impl Iterator<Item = &'a Shape>) -> Vec<&'a ArrayShape> {
    shapes.flat_map(Shape::leaves).filter_map(Shape::as_array).collect()
}

fn at(roles: &[DimRole], dim: i64) -> Option<DimRole> {
    roles.get(usize::try_from(dim).ok()?).copied()
}

/// Returns the roles of the dims that are none of `left_out`.
fn without(roles: &[DimRole], left_out: &[&[i64]]) -> Vec<DimRole> {
    let is_kept = |&(_, dim): &(&DimRole, i64)| left_out.iter().all(|dims| !dims.contains(&dim));
    roles.iter().zip(0i64..).filter(is_kept).map(|(&role, _)| role).collect()
}

impl<'a> Making<'a> {
    fn new(module: &'a Module, id: InstId) -> Self {
        let operands = module.operands(id).iter().map(|&operand| module.shape(operand));
        let shapes = [arrays(operands), arrays(std::iter::once(module.shape(id)))];
        Self { module, id, shapes, operands: Vec::new(), results: Vec::new(), indices: 0 }
    }

    /// Returns an index of its own for each dim of a shape.
    fn fresh(&mut self, shape: &ArrayShape) -> Vec<DimRole> {
        let first = self.indices;
        self.indices = first.saturating_add(shape.rank());
        (first..self.indices).map(DimRole::Index).collect()
    }

    /// Returns the shapes of the arrays of the operands.
    fn given(&self) -> Vec<&'a ArrayShape> {
        self.shapes[0].clone()
    }

    /// Gives each array of the operands indices of its own.
    fn fresh_operands(&mut self) {
        self.operands = self.given().into_iter().map(|shape| self.fresh(shape)).collect();
    }

    /// Gives all arrays of the operands but scalars the indices of the first result.
    fn alike(&mut self) -> Option<()> {
        let result = *self.shapes[1].first()?;
        let roles = self.fresh(result);
        self.operands = self
            .given()
            .into_iter()
            .map(|shape| match shape.rank() {
                0 => Some(Vec::new()),
                rank => (rank == roles.len()).then(|| roles.clone()),
            })
            .collect::<Option<_>>()?;
        self.results = vec![roles; self.shapes[1].len()];
        Some(())
    }

    /// Gives each array of the result the indices of the operands' array of its number.
    fn side_by_side(&mut self) -> Option<()> {
        self.fresh_operands();
        self.results = self.operands.get(..self.shapes[1].len())?.to_vec();
        Some(())
    }

    /// Gives the result the indices of the first operand, where `is_whole` holds of a dim.
    fn as_first(&mut self, is_whole: impl Fn(usize) -> bool) -> Option<()> {
        self.fresh_operands();
        let first = self.operands.first_mut()?;
        for (dim, role) in first.iter_mut().enumerate() {
            if !is_whole(dim) {
                *role = DimRole::Fixed(role.number());
            }
        }
        self.results = vec![first.clone()];
        Some(())
    }

    /// Fixes the dims of the first `arrays` operands, which share their indices with each result.
    /// The other operands are scalars.
    fn windowed(&mut self, arrays: usize) -> Option<()> {
        let first = self.fresh(self.shapes[0].first()?);
        let roles: Vec<DimRole> = first.iter().map(|role| DimRole::Fixed(role.number())).collect();
        self.operands = vec![roles.clone(); arrays];
        self.operands.resize(self.shapes[0].len(), Vec::new());
        self.results = vec![roles; self.shapes[1].len()];
        Some(())
    }

    /// Returns the roles of parts of these dims: a part of the same size is all of the dim.
    fn parts(roles: &[DimRole], of: &[i64], part: &[i64]) -> Option<Vec<DimRole>> {
        let role = |((&role, of), part): ((&DimRole, &i64), &i64)| {
            if of == part { role } else { DimRole::Part(role.number()) }
        };
        (roles.len() == part.len()).then(|| roles.iter().zip(of).zip(part).map(role).collect())
    }

    /// Fills in the roles.
    fn relate(&mut self) -> Option<()> {
        let module = self.module;
        match module.op(self.id) {
            op if op.opcode().is_elementwise() => self.alike(),
            Op::Sort(_) => self.alike(),
            Op::Parameter(_) | Op::Constant(_) | Op::Iota(_) | Op::Rng(_) => {
                self.fresh_operands();
                self.results = self.shapes[1].clone().into_iter().map(|s| self.fresh(s)).collect();
                Some(())
            }
            Op::Copy
            | Op::Reverse(_)
            | Op::OptimizationBarrier
            | Op::AddDependency
            | Op::CollectivePermute(_)
            | Op::Domain(_)
            | Op::AllReduce(_) => self.side_by_side(),
            op if op.is_sharding_constraint() => self.side_by_side(),
            Op::Transpose(attrs) => {
                self.fresh_operands();
                let from = self.operands.first()?;
                let to = attrs.dimensions.iter().map(|&dim| at(from, dim));
                self.results = vec![to.collect::<Option<_>>()?];
                Some(())
            }
            Op::Broadcast(attrs) => {
                let to = self.fresh(self.shapes[1].first()?);
                let from = attrs.dimensions.iter().map(|&dim| at(&to, dim));
                self.operands = vec![from.collect::<Option<_>>()?];
                self.results = vec![to];
                Some(())
            }
            Op::Reduce(attrs) => {
                let first = self.fresh(self.shapes[0].first()?);
                let count = self.shapes[1].len();
                self.operands = vec![first; count];
                self.operands.resize(self.shapes[0].len(), Vec::new());
                let kept = without(self.operands.first()?, &[&attrs.dimensions]);
                self.results = vec![kept; count];
                Some(())
            }
            Op::Concatenate(attrs) => {
                let result = self.fresh(self.shapes[1].first()?);
                let is_alone = self.shapes[0].len() == 1;
                let joined = |(&role, dim): (&DimRole, i64)| {
                    let is_joined = attrs.dimensions.contains(&dim) && !is_alone;
                    if is_joined { DimRole::Fixed(role.number()) } else { role }
                };
                let roles: Vec<DimRole> = result.iter().zip(0i64..).map(joined).collect();
                self.operands = vec![roles.clone(); self.shapes[0].len()];
                self.results = vec![roles];
                Some(())
            }
            Op::Slice(attrs) => {
                let sizes = self.shapes[0].first()?.dims();
                let is_whole = |dim: usize| {
                    let part = attrs.slice.get(dim).zip(sizes.get(dim));
                    part.is_some_and(|(s, &size)| (s.start, s.stride, s.limit) == (0, 1, size))
                };
                self.as_first(is_whole)
            }
            Op::Pad(attrs) => {
                let is_whole = |dim: usize| attrs.padding.get(dim) == Some(&Default::default());
                self.as_first(is_whole)
            }
            Op::ReduceWindow(_) => self.windowed(self.shapes[1].len()),
            // The array whose elements are selected, and the source of what is added to them.
            Op::SelectAndScatter(_) => self.windowed(2),
            Op::DynamicSlice(_) => {
                self.fresh_operands();
                let (of, part) = (self.shapes[0].first()?.dims(), self.shapes[1].first()?.dims());
                self.results = vec![Self::parts(self.operands.first()?, of, part)?];
                Some(())
            }
            Op::DynamicUpdateSlice => {
                self.fresh_operands();
                let (of, part) = (self.shapes[0].first()?.dims(), self.shapes[0].get(1)?.dims());
                let whole = self.operands.first()?.clone();
                *self.operands.get_mut(1)? = Self::parts(&whole, of, part)?;
                self.results = vec![whole];
                Some(())
            }
            Op::Dot(attrs) => self.dot(attrs),
            Op::Convolution(attrs) => self.convolution(attrs),
            Op::Gather(attrs) => self.gather(attrs),
            Op::Scatter(attrs) => self.scatter(attrs),
            _ => None,
        }
    }

    fn dot(&mut self, attrs: &DotAttrs) -> Option<()> {
        self.fresh_operands();
        let [lhs, rhs, ..] = self.operands.as_mut_slice() else { return None };
        let pairs = attrs.lhs_batch_dims.iter().zip(&attrs.rhs_batch_dims);
        let pairs = pairs.chain(attrs.lhs_contracting_dims.iter().zip(&attrs.rhs_contracting_dims));
        for (&a, &b) in pairs {
            *rhs.get_mut(usize::try_from(b).ok()?)? = at(lhs, a)?;
        }
        let batch = attrs.lhs_batch_dims.iter().map(|&dim| at(lhs, dim));
        let mut result = batch.collect::<Option<Vec<_>>>()?;
        result.extend(without(lhs, &[&attrs.lhs_batch_dims, &attrs.lhs_contracting_dims]));
        result.extend(without(rhs, &[&attrs.rhs_batch_dims, &attrs.rhs_contracting_dims]));
        self.results = vec![result];
        Some(())
    }

    /// The spatial dims of the result have the elements of the input's.
    fn convolution(&mut self, attrs: &ConvolutionAttrs) -> Option<()> {
        let labels = &attrs.dim_labels;
        let is_plain = attrs.feature_group_count == 1 && attrs.batch_group_count == 1;
        if !is_plain || attrs.sparsity_config.is_some() {
            return None;
        }
        self.fresh_operands();
        let [input, kernel, ..] = self.operands.as_mut_slice() else { return None };
        for (roles, dims) in
            [(&mut *input, &labels.input_spatial), (kernel, &labels.kernel_spatial)]
        {
            for &dim in dims {
                let role = roles.get_mut(usize::try_from(dim).ok()?)?;
                *role = DimRole::Fixed(role.number());
            }
        }
        let [input, kernel, ..] = self.operands.as_mut_slice() else { return None };
        let feature = usize::try_from(labels.kernel_input_feature).ok()?;
        *kernel.get_mut(feature)? = at(input, labels.input_feature)?;
        let mut result = vec![None; self.shapes[1].first()?.rank()];
        let spatial = labels.output_spatial.iter().zip(&labels.input_spatial);
        let pairs = spatial.map(|(&to, &from)| (to, at(input, from))).chain([
            (labels.output_batch, at(input, labels.input_batch)),
            (labels.output_feature, at(kernel, labels.kernel_output_feature)),
        ]);
        for (to, role) in pairs {
            *result.get_mut(usize::try_from(to).ok()?)? = role;
        }
        self.results = vec![result.into_iter().collect::<Option<_>>()?];
        Some(())
    }

    /// Fixes the dim of indices that holds the entries of an index, and returns the others.
    fn counted(&mut self, indices: usize, vector_dim: i64) -> Option<Vec<DimRole>> {
        let roles = self.operands.get_mut(indices)?;
        if let Some(role) = usize::try_from(vector_dim).ok().and_then(|dim| roles.get_mut(dim)) {
            *role = DimRole::Fixed(role.number());
        }
        Some(without(roles, &[&[vector_dim]]))
    }

    /// Gives dims of indices the indices of the array's dims that they go along with.
    fn along(&mut self, indices: usize, array_dims: &[i64], index_dims: &[i64]) -> Option<()> {
        let array = self.operands.first()?.clone();
        let roles = self.operands.get_mut(indices)?;
        for (&a, &b) in array_dims.iter().zip(index_dims) {
            *roles.get_mut(usize::try_from(b).ok()?)? = at(&array, a)?;
        }
        Some(())
    }

    /// Returns the roles of an array of windows of `of` side by side: `in_window` are its dims
    /// within a window, and the others are `batch`.
    fn windows(
        (shape, of): (&ArrayShape, &ArrayShape),
        (window, gone): (&[DimRole], &[&[i64]]),
        in_window: &[i64],
        batch: Vec<DimRole>,
    ) -> Option<Vec<DimRole>> {
        let sizes = of.dims().iter().zip(0i64..);
        let is_kept = |dim: i64| gone.iter().all(|dims| !dims.contains(&dim));
        let sizes: Vec<i64> = sizes.filter(|&(_, d)| is_kept(d)).map(|(&size, _)| size).collect();
        let own =
            in_window.iter().map(|&dim| shape.dims().get(usize::try_from(dim).ok()?).copied());
        let parts = Self::parts(window, &sizes, &own.collect::<Option<Vec<_>>>()?)?;
        let mut result = vec![None; shape.rank()];
        for (&dim, role) in in_window.iter().zip(parts) {
            *result.get_mut(usize::try_from(dim).ok()?)? = Some(role);
        }
        let mut batch = batch.into_iter();
        result.into_iter().map(|role| role.or_else(|| batch.next())).collect()
    }

    fn gather(&mut self, attrs: &GatherAttrs) -> Option<()> {
        self.fresh_operands();
        self.along(1, &attrs.operand_batching_dims, &attrs.start_indices_batching_dims)?;
        let batch = self.counted(1, attrs.index_vector_dim)?;
        let gone: [&[i64]; 2] = [&attrs.collapsed_slice_dims, &attrs.operand_batching_dims];
        let window = without(self.operands.first()?, &gone);
        let shapes = (*self.shapes[1].first()?, *self.shapes[0].first()?);
        let result = Self::windows(shapes, (&window, &gone), &attrs.offset_dims, batch)?;
        self.results = vec![result];
        Some(())
    }

    fn scatter(&mut self, attrs: &ScatterAttrs) -> Option<()> {
        let count = self.shapes[0].len() / 2;
        let first = self.fresh(self.shapes[0].first()?);
        let indices = self.fresh(self.shapes[0].get(count)?);
        self.operands = vec![first.clone(); count];
        self.operands.push(indices);
        self.along(count, &attrs.input_batching_dims, &attrs.scatter_indices_batching_dims)?;
        let batch = self.counted(count, attrs.index_vector_dim)?;
        let gone: [&[i64]; 2] = [&attrs.inserted_window_dims, &attrs.input_batching_dims];
        let window = without(&first, &gone);
        let given = self.given();
        let array = *given.first()?;
        for update in given.get(count.checked_add(1)?..)? {
            let (of, batch) = ((*update, array), batch.clone());
            let in_window = &attrs.update_window_dims;
            self.operands.push(Self::windows(of, (&window, &gone), in_window, batch)?);
        }
        self.results = vec![first; count];
        Some(())
    }
}
