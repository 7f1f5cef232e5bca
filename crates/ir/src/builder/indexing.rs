//! Indexing by run-time values.

use super::error::{check_dims, check_sizes, misfit};
use super::{BuildError, Builder};
use crate::entity::InstId;
use crate::ops::Op;
use crate::ops::indexing::{DynamicSliceAttrs, GatherAttrs, ScatterAttrs};

impl Builder {
    /// Adds a slice that starts where scalars say, one for each dim: an array of
    /// dims `slice_sizes`. A start that would let the slice leave the array is
    /// moved so that it does not.
    ///
    /// # Errors
    /// Returns an error if there is not one integer scalar and one size for each dim, or a size
    /// is negative or more than that of its dim.
    pub fn dynamic_slice(
        &mut self,
        operand: InstId,
        start_indices: impl AsRef<[InstId]>,
        slice_sizes: impl AsRef<[i64]>,
    ) -> Result<InstId, BuildError> {
        let slice_sizes = slice_sizes.as_ref();
        check_sizes("dynamic_slice", "slice_sizes", slice_sizes)?;
        let attrs = DynamicSliceAttrs { dynamic_slice_sizes: slice_sizes.into() };
        let operands = [&[operand], start_indices.as_ref()].concat();
        self.made("dynamic_slice", Op::DynamicSlice(Box::new(attrs)), None, &operands)
    }

    /// Adds the operand with `update` in place of its elements from where scalars
    /// say, one for each dim. A start that would let the update leave the array is
    /// moved so that it does not. The result has the operand's shape.
    ///
    /// # Errors
    /// Returns an error if there is not one integer scalar for each dim, or the update differs
    /// from the operand in type or rank or is larger in some dim.
    pub fn dynamic_update_slice(
        &mut self,
        operand: InstId,
        update: InstId,
        start_indices: impl AsRef<[InstId]>,
    ) -> Result<InstId, BuildError> {
        let operands = [&[operand, update], start_indices.as_ref()].concat();
        self.made("dynamic_update_slice", Op::DynamicUpdateSlice, None, &operands)
    }

    /// Adds a gather: slices of the operand from where the indices say. Rows of a
    /// table by their numbers, `f32[V,D]` and `s32[N]` to `f32[N,D]`:
    ///
    /// ```
    /// # use tilewright_ir::{BuildError, Builder, ElementType, Shape};
    /// use tilewright_ir::{dims, ops::indexing::GatherAttrs};
    ///
    /// # fn main() -> Result<(), BuildError> {
    /// # let mut b = Builder::new("m");
    /// # let table = b.parameter("table", Shape::array(ElementType::F32, [100, 8]))?;
    /// # let numbers = b.parameter("numbers", Shape::array(ElementType::S32, [5]))?;
    /// let attrs = GatherAttrs {
    ///     offset_dims: dims([1]),
    ///     collapsed_slice_dims: dims([0]),
    ///     start_index_map: dims([0]),
    ///     index_vector_dim: 1, // one past the last: each element is an index
    ///     slice_sizes: dims([1, 8]),
    ///     ..GatherAttrs::default()
    /// };
    /// let rows = b.gather(table, numbers, attrs)?;
    /// # assert_eq!(b.module().shape(rows).to_string(), "f32[5,8]");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns an error if dims and sizes do not fit the operands or each other, or the indices
    /// are not integers.
    pub fn gather(
        &mut self,
        operand: InstId,
        start_indices: InstId,
        attrs: GatherAttrs,
    ) -> Result<InstId, BuildError> {
        let method = "gather";
        let lists = [
            ("collapsed_slice_dims", &attrs.collapsed_slice_dims, operand),
            ("start_index_map", &attrs.start_index_map, operand),
            ("operand_batching_dims", &attrs.operand_batching_dims, operand),
            ("start_indices_batching_dims", &attrs.start_indices_batching_dims, start_indices),
        ];
        for (argument, dims, of) in lists {
            check_dims(method, argument, dims, self.array(method, of)?)?;
        }
        check_sizes(method, "slice_sizes", &attrs.slice_sizes)?;
        self.made(method, Op::Gather(Box::new(attrs)), None, &[operand, start_indices])
    }

    /// Adds a scatter: the computation of `attrs` combines each window of an update with the
    /// elements at its index. The result has the shape of the operand. With several operands,
    /// as many updates, and one computation for as many pairs, it is a tuple.
    ///
    /// # Errors
    /// Returns an error if dims do not fit the operands or each other, there are not as many
    /// updates as operands, the indices are not integers, or the computation does not combine
    /// elements of these types.
    pub fn scatter(
        &mut self,
        operands: impl AsRef<[InstId]>,
        scatter_indices: InstId,
        updates: impl AsRef<[InstId]>,
        attrs: ScatterAttrs,
    ) -> Result<InstId, BuildError> {
        let (method, operands, updates) = ("scatter", operands.as_ref(), updates.as_ref());
        if operands.len() != updates.len() {
            let (arrays, given) = (operands.len(), updates.len());
            let why = format!("it takes an update for each operand, and has {given} for {arrays}");
            return Err(misfit(method, "updates", why));
        }
        if let Some(&first) = operands.first() {
            let lists = [
                ("inserted_window_dims", &attrs.inserted_window_dims, first),
                ("scatter_dims_to_operand_dims", &attrs.scatter_dims_to_operand_dims, first),
                ("input_batching_dims", &attrs.input_batching_dims, first),
                (
                    "scatter_indices_batching_dims",
                    &attrs.scatter_indices_batching_dims,
                    scatter_indices,
                ),
            ];
            for (argument, dims, of) in lists {
                check_dims(method, argument, dims, self.array(method, of)?)?;
            }
        }
        let all = [operands, &[scatter_indices], updates].concat();
        self.made(method, Op::Scatter(Box::new(attrs)), None, &all)
    }
}
