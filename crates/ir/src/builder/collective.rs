//! Ops between devices. Which devices work together, `replica_groups` and
//! `channel_id` of the attributes say: by default all replicas do.

use super::error::{check_dims, misfit};
use super::{BuildError, Builder};
use crate::entity::InstId;
use crate::ops::Op;
use crate::ops::collective::{
    AllGatherAttrs, AllReduceAttrs, AllToAllAttrs, PermuteAttrs, ReduceScatterAttrs,
};
use crate::types::shape::Shape;

impl Builder {
    /// Adds the operand, combined element by element over the devices of a group by
    /// the computation of `attrs`. The result has the operand's shape on each.
    ///
    /// ```
    /// # use tilewright_ir::{BuildError, Builder, ElementType, Opcode, Shape};
    /// use tilewright_ir::ops::collective::AllReduceAttrs;
    ///
    /// # fn main() -> Result<(), BuildError> {
    /// let mut b = Builder::new("mean_gradient");
    /// b.header_mut().replica_count = Some(8);
    /// let gradient = b.parameter("gradient", Shape::array(ElementType::F32, [1024]))?;
    /// let add = b.reducer(Opcode::Add, ElementType::F32)?;
    /// let sum = b.all_reduce(gradient, AllReduceAttrs::new(add))?;
    /// # b.finish(sum)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns an error if the operand lies in another computation. The verifier checks the
    /// parameters of `to_apply`.
    pub fn all_reduce(
        &mut self,
        operand: InstId,
        attrs: AllReduceAttrs,
    ) -> Result<InstId, BuildError> {
        self.made("all_reduce", Op::AllReduce(Box::new(attrs)), None, &[operand])
    }

    /// Adds the operands of the `shard_count` devices of a group, one after the
    /// other along the dim of `attrs`: `f32[8,4]` of 4 devices along dim 0 is
    /// `f32[32,4]`.
    ///
    /// # Errors
    /// Returns an error if `attrs` does not name one dim of the operand, or `shard_count` is
    /// less than 1 or makes the dim too large.
    pub fn all_gather(
        &mut self,
        operand: InstId,
        shard_count: i64,
        attrs: AllGatherAttrs,
    ) -> Result<InstId, BuildError> {
        let times = |size: i64| size.checked_mul(shard_count);
        let shape = self.resized("all_gather", operand, &attrs.dimensions, shard_count, times)?;
        self.made("all_gather", Op::AllGather(Box::new(attrs)), Some(shape), &[operand])
    }

    /// Adds a part of the operand, combined over the `shard_count` devices of a
    /// group by the computation of `attrs`: each device has another part along the
    /// dim of `attrs`. `f32[32,4]` on 4 devices along dim 0 is `f32[8,4]`.
    ///
    /// # Errors
    /// Returns an error if `attrs` does not name one dim of the operand, or `shard_count` is
    /// less than 1 or does not divide its size.
    pub fn reduce_scatter(
        &mut self,
        operand: InstId,
        shard_count: i64,
        attrs: ReduceScatterAttrs,
    ) -> Result<InstId, BuildError> {
        let part = |size: i64| {
            (size.checked_rem(shard_count) == Some(0)).then(|| size.checked_div(shard_count))?
        };
        let shape =
            self.resized("reduce_scatter", operand, &attrs.dimensions, shard_count, part)?;
        self.made("reduce_scatter", Op::ReduceScatter(Box::new(attrs)), Some(shape), &[operand])
    }

    /// Adds an exchange: each device of a group sends a part of its data to each other device.
    /// With a dim in `attrs`, the single operand is cut along it and the received parts are
    /// joined along it, so that it keeps its shape. Without a dim, operand `i` goes to device
    /// `i`, and the result is a tuple of the received operands.
    ///
    /// # Errors
    /// Returns an error if the dim does not exist, if there is a dim and not exactly one
    /// operand, or if the operands differ in shape.
    pub fn all_to_all(
        &mut self,
        operands: impl AsRef<[InstId]>,
        attrs: AllToAllAttrs,
    ) -> Result<InstId, BuildError> {
        let operands = operands.as_ref();
        if let Some(dimensions) = &attrs.dimensions {
            for &operand in operands {
                let array = self.array("all_to_all", operand)?;
                check_dims("all_to_all", "dimensions", dimensions, array)?;
            }
        }
        self.made("all_to_all", Op::AllToAll(Box::new(attrs)), None, operands)
    }

    /// Adds the operand of another device: `source_target_pairs` lists which device sends to
    /// which. A device that receives nothing has zeros.
    ///
    /// # Errors
    /// Returns an error if `attrs` has slice sizes, for which [`Builder::op`] takes more
    /// operands.
    pub fn collective_permute(
        &mut self,
        operand: InstId,
        attrs: PermuteAttrs,
    ) -> Result<InstId, BuildError> {
        let op = Op::CollectivePermute(Box::new(attrs));
        self.made("collective_permute", op, None, &[operand])
    }

    /// Adds the number of the partition that runs the program: `u32[]`.
    ///
    /// # Errors
    /// Returns an error if ids have run out.
    pub fn partition_id(&mut self) -> Result<InstId, BuildError> {
        self.made("partition_id", Op::PartitionId, None, &[])
    }

    /// Adds the number of the replica that runs the program: `u32[]`.
    ///
    /// # Errors
    /// Returns an error if ids have run out.
    pub fn replica_id(&mut self) -> Result<InstId, BuildError> {
        self.made("replica_id", Op::ReplicaId, None, &[])
    }

    /// Returns the shape of an array with another size in one dim.
    fn resized(
        &self,
        method: &'static str,
        operand: InstId,
        dimensions: &[i64],
        shard_count: i64,
        size: impl Fn(i64) -> Option<i64>,
    ) -> Result<Shape, BuildError> {
        let array = self.array(method, operand)?.without_layout();
        let &[dimension] = dimensions else {
            let why = format!("dimensions: it takes one dim, not {}", dimensions.len());
            return Err(misfit(method, "dimensions", why));
        };
        check_dims(method, "dimensions", dimensions, &array)?;
        let dim = usize::try_from(dimension).unwrap_or(usize::MAX);
        let resized = array.dims().get(dim).filter(|_| shard_count >= 1);
        let Some(resized) = resized.and_then(|&found| size(found)) else {
            let why = format!(
                "shard_count: dim {dimension} of {array} cannot be shared by {shard_count} devices"
            );
            return Err(misfit(method, "shard_count", why));
        };
        let dynamic = array.dim_is_dynamic(dim);
        Ok(array.with_dim(dim, resized, dynamic).into())
    }
}
