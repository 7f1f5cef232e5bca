//! Ops that make, move or repeat elements and compute none.

use super::error::{check_dims, check_sizes, misfit};
use super::{BuildError, Builder};
use crate::entity::InstId;
use crate::ops::Op;
use crate::ops::dims::{PadDim, SliceDim};
use crate::ops::shaping::{
    BroadcastAttrs, ConcatenateAttrs, IotaAttrs, PadAttrs, ReverseAttrs, SliceAttrs, TransposeAttrs,
};
use crate::types::element::ElementType;
use crate::types::literal::Literal;
use crate::types::shape::{ArrayShape, Dims, Shape};

impl Builder {
    /// Adds a constant.
    ///
    /// # Errors
    /// Returns an error if ids have run out.
    pub fn constant(&mut self, value: Literal) -> Result<InstId, BuildError> {
        self.made("constant", Op::Constant(Box::new(value)), None, &[])
    }

    /// Adds `0, 1, 2 ...` along a dim of an array.
    ///
    /// # Errors
    /// Returns an error if there is no such dim, or the shape is not an array of numbers.
    pub fn iota(&mut self, shape: Shape, dimension: i64) -> Result<InstId, BuildError> {
        if let Some(array) = shape.as_array() {
            check_dims("iota", "dimension", &[dimension], array)?;
        }
        self.made("iota", Op::Iota(Box::new(IotaAttrs { dimension })), Some(shape), &[])
    }

    /// Adds a reshape to `dims`: the same elements in row-major order.
    ///
    /// # Errors
    /// Returns an error if a size is negative or the number of elements would change.
    pub fn reshape(
        &mut self,
        operand: InstId,
        dims: impl AsRef<[i64]>,
    ) -> Result<InstId, BuildError> {
        let dims = dims.as_ref();
        check_sizes("reshape", "dims", dims)?;
        let shape = Shape::array(self.element_type("reshape", operand)?, dims.iter().copied());
        let op = Op::Reshape(Box::default());
        self.made("reshape", op, Some(shape), &[operand])
    }

    /// Adds a broadcast to `dims` (XLA's `BroadcastInDim`): operand dim `i` becomes
    /// result dim `dimensions[i]`, and elements repeat along the others. A scalar
    /// has no dims to place:
    ///
    /// ```
    /// # use tilewright_ir::{BuildError, Builder, ElementType, Shape};
    /// # fn main() -> Result<(), BuildError> {
    /// # let mut b = Builder::new("m");
    /// let scalar = b.parameter("scalar", Shape::scalar(ElementType::F32))?;
    /// let row = b.broadcast(scalar, [4], [])?; // f32[4]
    /// let rows = b.broadcast(row, [3, 4], [1])?; // f32[3,4], equal rows
    /// # assert_eq!(b.module().shape(rows).to_string(), "f32[3,4]");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns an error if a size is negative, `dimensions` does not name a result dim for each
    /// operand dim, or a dim would change its size.
    pub fn broadcast(
        &mut self,
        operand: InstId,
        dims: impl AsRef<[i64]>,
        dimensions: impl AsRef<[i64]>,
    ) -> Result<InstId, BuildError> {
        let (dims, dimensions) = (dims.as_ref(), dimensions.as_ref());
        check_sizes("broadcast", "dims", dims)?;
        let shape = Shape::array(self.element_type("broadcast", operand)?, dims.iter().copied());
        if let Some(result) = shape.as_array() {
            check_dims("broadcast", "dimensions", dimensions, result)?;
        }
        let op = Op::Broadcast(Box::new(BroadcastAttrs { dimensions: dimensions.into() }));
        self.made("broadcast", op, Some(shape), &[operand])
    }

    /// Adds a transpose; result dim `i` is operand dim `permutation[i]`.
    ///
    /// # Errors
    /// Returns an error if `permutation` does not name each dim of the operand once.
    pub fn transpose(
        &mut self,
        operand: InstId,
        permutation: impl AsRef<[i64]>,
    ) -> Result<InstId, BuildError> {
        let permutation = permutation.as_ref();
        check_dims("transpose", "permutation", permutation, self.array("transpose", operand)?)?;
        let op = Op::Transpose(Box::new(TransposeAttrs { dimensions: permutation.into() }));
        self.made("transpose", op, None, &[operand])
    }

    /// Adds a reversal of the order of elements along `dimensions` (XLA's `Rev`).
    ///
    /// # Errors
    /// Returns an error if there are no such dims or one is named twice.
    pub fn reverse(
        &mut self,
        operand: InstId,
        dimensions: impl AsRef<[i64]>,
    ) -> Result<InstId, BuildError> {
        let dimensions = dimensions.as_ref();
        check_dims("reverse", "dimensions", dimensions, self.array("reverse", operand)?)?;
        let op = Op::Reverse(Box::new(ReverseAttrs { dimensions: dimensions.into() }));
        self.made("reverse", op, None, &[operand])
    }

    /// Adds a slice: of dim `i` every `strides[i]`th index from `start_indices[i]`
    /// up to, but not including, `limit_indices[i]`. Of `f32[8,6]`, starts `[2, 0]`,
    /// limits `[8, 6]` and strides `[3, 1]` leave `f32[2,6]`.
    ///
    /// # Errors
    /// Returns an error if there is not one number for each dim in each list, or a range leaves
    /// the array.
    pub fn slice(
        &mut self,
        operand: InstId,
        start_indices: impl AsRef<[i64]>,
        limit_indices: impl AsRef<[i64]>,
        strides: impl AsRef<[i64]>,
    ) -> Result<InstId, BuildError> {
        let (starts, limits) = (start_indices.as_ref(), limit_indices.as_ref());
        let strides = strides.as_ref();
        let array = self.array("slice", operand)?;
        let lists = [("start_indices", starts), ("limit_indices", limits), ("strides", strides)];
        for (argument, list) in lists {
            if list.len() != array.rank() {
                let (rank, found) = (array.rank(), list.len());
                let array = array.without_layout();
                let why = format!("{argument}: {array} has {rank} dims, not {found}");
                return Err(misfit("slice", argument, why));
            }
        }
        let ranges = starts.iter().zip(limits).zip(strides);
        let ranges = ranges.map(|((&start, &limit), &stride)| SliceDim { start, limit, stride });
        let op = Op::Slice(Box::new(SliceAttrs { slice: ranges.collect() }));
        self.made("slice", op, None, &[operand])
    }

    /// Adds padding with a scalar around and between the elements of each dim.
    ///
    /// ```
    /// # use tilewright_ir::{BuildError, Builder, ElementType, Shape};
    /// use tilewright_ir::ops::dims::PadDim;
    ///
    /// # fn main() -> Result<(), BuildError> {
    /// # let mut b = Builder::new("m");
    /// let x = b.parameter("x", Shape::array(ElementType::F32, [2, 3]))?;
    /// let zero = b.parameter("zero", Shape::scalar(ElementType::F32))?;
    /// let one_before = PadDim { low: 1, ..PadDim::default() };
    /// let padded = b.pad(x, zero, [one_before, PadDim::default()])?; // f32[3,3]
    /// # assert_eq!(b.module().shape(padded).to_string(), "f32[3,3]");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns an error if there is not one entry for each dim, the value is not a scalar of
    /// the array's type, or a dim would have a negative size.
    pub fn pad(
        &mut self,
        operand: InstId,
        padding_value: InstId,
        padding: impl AsRef<[PadDim]>,
    ) -> Result<InstId, BuildError> {
        let op = Op::Pad(Box::new(PadAttrs { padding: padding.as_ref().into() }));
        self.made("pad", op, None, &[operand, padding_value])
    }

    /// Adds a concatenation along one dim (XLA's `ConcatInDim`), in which the
    /// operands may differ in size: `f32[2,3]` and `f32[2,5]` along dim 1 are
    /// `f32[2,8]`.
    ///
    /// # Errors
    /// Returns an error if there are no operands, there is no such dim, or the operands differ
    /// in type or in another dim.
    pub fn concatenate(
        &mut self,
        operands: impl AsRef<[InstId]>,
        dimension: i64,
    ) -> Result<InstId, BuildError> {
        let operands = operands.as_ref();
        for &operand in operands {
            check_dims(
                "concatenate",
                "dimension",
                &[dimension],
                self.array("concatenate", operand)?,
            )?;
        }
        let attrs = ConcatenateAttrs { dimensions: Dims::from_slice(&[dimension]) };
        self.made("concatenate", Op::Concatenate(Box::new(attrs)), None, operands)
    }

    /// Adds a view of the operand's bits as elements of another type. A narrower type adds a
    /// minor dim that counts the parts of an element; for a wider type, the minor dim must hold
    /// the parts, and it vanishes: `f32[3]` as `u8` is `u8[3,4]`, and back.
    ///
    /// # Errors
    /// Returns an error if the operand is not an array, its minor dim does not hold the parts
    /// of one element, or one type is complex and the other is not.
    pub fn bitcast_convert(
        &mut self,
        operand: InstId,
        element_type: ElementType,
    ) -> Result<InstId, BuildError> {
        let from = self.array("bitcast_convert", operand)?;
        let mut dims = Dims::from(from.dims());
        let mut dynamic: Vec<bool> = (0..from.rank()).map(|d| from.dim_is_dynamic(d)).collect();
        let (old, new) = (from.element_type.storage_bits(), element_type.storage_bits());
        if old > new {
            dims.push(i64::from(old / new.max(1)));
            dynamic.push(false);
        } else if old < new {
            dims.pop();
            dynamic.pop();
        }
        let shape = ArrayShape::new(element_type, dims).with_dynamic(&dynamic).into();
        self.made("bitcast_convert", Op::BitcastConvert, Some(shape), &[operand])
    }

    fn element_type(&self, method: &'static str, id: InstId) -> Result<ElementType, BuildError> {
        Ok(self.array(method, id)?.element_type)
    }
}
