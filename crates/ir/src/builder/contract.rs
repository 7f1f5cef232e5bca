//! Dots and convolutions.

use super::error::{check_dims, misfit};
use super::{BuildError, Builder};
use crate::entity::InstId;
use crate::ops::Op;
use crate::ops::contract::{ConvolutionAttrs, DotAttrs};
use crate::ops::dims::WindowDim;
use crate::types::element::ElementType;
use crate::types::shape::{Dims, Shape};

impl Builder {
    /// Adds a product of matrices or vectors: the last dim of `lhs` is summed with
    /// the first of `rhs`. `f32[8,16]` with `f32[16,4]` is `f32[8,4]`, with
    /// `f32[16]` it is `f32[8]`, and two vectors are a scalar.
    ///
    /// [`Builder::dot_general`] has batches, and sums along any dims.
    ///
    /// # Errors
    /// Returns an error if an operand is not an array of rank 1 or 2, or the summed dims differ
    /// in size.
    pub fn dot(&mut self, lhs: InstId, rhs: InstId) -> Result<InstId, BuildError> {
        for (argument, id) in [("lhs", lhs), ("rhs", rhs)] {
            let array = self.array("dot", id)?;
            if !matches!(array.rank(), 1 | 2) {
                let array = array.without_layout();
                let why =
                    format!("{argument}: {array} is neither vector nor matrix; call `dot_general`");
                return Err(misfit("dot", argument, why));
            }
        }
        let last = if self.array("dot", lhs)?.rank() == 1 { 0 } else { 1 };
        let attrs = DotAttrs {
            lhs_contracting_dims: Dims::from_slice(&[last]),
            rhs_contracting_dims: Dims::from_slice(&[0]),
            ..DotAttrs::default()
        };
        self.made("dot", Op::Dot(Box::new(attrs)), None, &[lhs, rhs])
    }

    /// Adds a product that is summed along pairs of contracting dims, for each index of the
    /// pairs of batch dims. The result has the batch dims, then the other dims of `lhs`, then
    /// those of `rhs`; its type is `preferred_element_type`, or else the more precise type of
    /// the operands.
    ///
    /// Queries times keys, `f32[B,H,Q,D]` and `f32[B,H,K,D]` to `f32[B,H,Q,K]`:
    ///
    /// ```
    /// # use tilewright_ir::{BuildError, Builder, ElementType, Shape};
    /// use tilewright_ir::{dims, ops::contract::DotAttrs};
    ///
    /// # fn main() -> Result<(), BuildError> {
    /// # let mut b = Builder::new("m");
    /// # let queries = b.parameter("q", Shape::array(ElementType::F32, [2, 4, 8, 16]))?;
    /// # let keys = b.parameter("k", Shape::array(ElementType::F32, [2, 4, 9, 16]))?;
    /// let attrs = DotAttrs {
    ///     lhs_batch_dims: dims([0, 1]),
    ///     rhs_batch_dims: dims([0, 1]),
    ///     lhs_contracting_dims: dims([3]),
    ///     rhs_contracting_dims: dims([3]),
    ///     ..DotAttrs::default()
    /// };
    /// let scores = b.dot_general(queries, keys, attrs, None)?;
    /// # assert_eq!(b.module().shape(scores).to_string(), "f32[2,4,8,9]");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns an error if dims do not exist, one is named twice, or paired dims differ in
    /// size.
    pub fn dot_general(
        &mut self,
        lhs: InstId,
        rhs: InstId,
        attrs: DotAttrs,
        preferred_element_type: Option<ElementType>,
    ) -> Result<InstId, BuildError> {
        let method = "dot_general";
        let lists = [
            ("lhs_batch_dims", &attrs.lhs_batch_dims, lhs),
            ("lhs_contracting_dims", &attrs.lhs_contracting_dims, lhs),
            ("rhs_batch_dims", &attrs.rhs_batch_dims, rhs),
            ("rhs_contracting_dims", &attrs.rhs_contracting_dims, rhs),
        ];
        for (argument, dims, of) in lists {
            check_dims(method, argument, dims, self.array(method, of)?)?;
        }
        let op = Op::Dot(Box::new(attrs));
        self.summed(method, op, [lhs, rhs], preferred_element_type)
    }

    /// Adds a convolution of the input `lhs` with the kernel `rhs` (XLA's
    /// `ConvGeneralDilated`). `dim_labels` gives the meaning of each dim; an empty window moves
    /// by one element, without padding. The type of the result is chosen as by
    /// [`Builder::dot_general`].
    ///
    /// ```
    /// # use tilewright_ir::{BuildError, Builder, ElementType, Shape};
    /// use tilewright_ir::ops::contract::ConvolutionAttrs;
    /// use tilewright_ir::ops::dims::{ConvDims, WindowDim};
    ///
    /// # fn main() -> Result<(), BuildError> {
    /// # let mut b = Builder::new("m");
    /// # let image = b.parameter("image", Shape::array(ElementType::F32, [1, 8, 8, 3]))?;
    /// # let kernel = b.parameter("kernel", Shape::array(ElementType::F32, [3, 3, 3, 16]))?;
    /// let by_two = WindowDim { stride: 2, padding_low: 1, padding_high: 1, ..WindowDim::new(3) };
    /// let attrs = ConvolutionAttrs {
    ///     window: [by_two, by_two].into(),
    ///     dim_labels: ConvDims::nhwc(2),
    ///     ..ConvolutionAttrs::default()
    /// };
    /// // f32[1,8,8,3] with f32[3,3,3,16] is f32[1,4,4,16].
    /// let result = b.convolution(image, kernel, attrs, None)?;
    /// # assert_eq!(b.module().shape(result).to_string(), "f32[1,4,4,16]");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns an error if labels, window, groups and operands do not fit each other.
    pub fn convolution(
        &mut self,
        lhs: InstId,
        rhs: InstId,
        mut attrs: ConvolutionAttrs,
        preferred_element_type: Option<ElementType>,
    ) -> Result<InstId, BuildError> {
        let method = "convolution";
        let (input, kernel) = (self.array(method, lhs)?, self.array(method, rhs)?);
        let labels = &attrs.dim_labels;
        let input_dims = [&[labels.input_batch, labels.input_feature], &labels.input_spatial[..]];
        let kernel_dims = [
            &[labels.kernel_input_feature, labels.kernel_output_feature],
            &labels.kernel_spatial[..],
        ];
        check_dims(method, "dim_labels of the input", &input_dims.concat(), input)?;
        check_dims(method, "dim_labels of the kernel", &kernel_dims.concat(), kernel)?;
        if attrs.window.is_empty() {
            let size = |&dim: &i64| usize::try_from(dim).ok().and_then(|d| kernel.dims().get(d));
            let sizes = labels.kernel_spatial.iter().filter_map(size);
            attrs.window = sizes.map(|&size| WindowDim::new(size)).collect();
        }
        let op = Op::Convolution(Box::new(attrs));
        self.summed(method, op, [lhs, rhs], preferred_element_type)
    }

    /// Adds a sum of products, of the type wanted.
    fn summed(
        &mut self,
        method: &'static str,
        op: Op,
        operands: [InstId; 2],
        element_type: Option<ElementType>,
    ) -> Result<InstId, BuildError> {
        let inferred = self.inferred(method, &op, None, &operands)?;
        let shape = match (inferred, element_type) {
            (Shape::Array(array), Some(wanted)) => array.with_element_type(wanted).into(),
            (inferred, _) => inferred,
        };
        self.made(method, op, Some(shape), &operands)
    }
}
