//! Contractions: dots and convolutions.

use smallvec::SmallVec;

use super::attr::{attributes, words};
use super::dims::{ConvDims, WindowDim};
use crate::infer::{ShapeError, ShapeQuery, check_dims};
use crate::types::element::ElementType;
use crate::types::shape::{ArrayShape, Dims, Shape, UNBOUNDED, sizes_agree};

attributes! {
    /// Attributes of `dot` and `scaled-dot`.
    pub struct DotAttrs: Default {
        /// Dims of the left operand that pair with `rhs_batch_dims`.
        lhs_batch_dims: Dims = "lhs_batch_dims" or Dims::new(),
        /// Dims of the left operand that are summed.
        lhs_contracting_dims: Dims = "lhs_contracting_dims" or Dims::new(),
        /// Dims of the right operand that pair with `lhs_batch_dims`.
        rhs_batch_dims: Dims = "rhs_batch_dims" or Dims::new(),
        /// Dims of the right operand that are summed.
        rhs_contracting_dims: Dims = "rhs_contracting_dims" or Dims::new(),
        /// The requested precision of each operand.
        operand_precision: Vec<Precision> = "operand_precision",
        /// The requested algorithm.
        algorithm: Option<DotAlgorithm> = "algorithm",
    }

    /// Attributes of `ragged-dot`.
    pub struct RaggedDotAttrs: Default {
        /// Dims of the left operand that pair with `rhs_batch_dims`.
        lhs_batch_dims: Dims = "lhs_batch_dims" or Dims::new(),
        /// Dims of the left operand that are summed.
        lhs_contracting_dims: Dims = "lhs_contracting_dims" or Dims::new(),
        /// Dims of the right operand that pair with `lhs_batch_dims`.
        rhs_batch_dims: Dims = "rhs_batch_dims" or Dims::new(),
        /// Dims of the right operand that are summed.
        rhs_contracting_dims: Dims = "rhs_contracting_dims" or Dims::new(),
        /// The dim of the left operand whose groups differ in length.
        lhs_ragged_dims: Dims = "lhs_ragged_dims" or Dims::new(),
        /// The dim of the right operand that counts the groups.
        rhs_group_dims: Dims = "rhs_group_dims" or Dims::new(),
        /// The requested precision of each operand.
        operand_precision: Vec<Precision> = "operand_precision",
    }

    /// Attributes of `convolution`.
    pub struct ConvolutionAttrs: Default {
        /// The movement of the kernel over the input.
        window: SmallVec<[WindowDim; 2]> = "window" or SmallVec::new(),
        /// The role of each dim.
        dim_labels: ConvDims = "dim_labels",
        /// Groups into which input and output features are split.
        feature_group_count: i64 = "feature_group_count" or 1,
        /// Groups into which the batch is split.
        batch_group_count: i64 = "batch_group_count" or 1,
        /// The requested precision of each operand.
        operand_precision: Vec<Precision> = "operand_precision",
        /// The convolution's role in training: `fprop`, `dgrad` or `wgrad`.
        convolution_kind: ConvolutionKind = "convolution_kind" or ConvolutionKind::Unset,
        /// Structured sparsity of the operands.
        sparsity_config: Option<SparsityConfig> = "sparsity_config",
    }
}

words! {
    /// The precision of an operand (`PrecisionConfig.Precision`).
    pub enum Precision {
        /// The fastest that the device has.
        Default = "default",
        /// In between.
        High = "high",
        /// The highest that the type allows.
        Highest = "highest",
    }

    /// The types in which `dot` multiplies and adds: left, right, sum.
    pub enum DotAlgorithm {
        /// Any 8-bit floats, summed as f32.
        AnyF8AnyF8F32 = "dot_any_f8_any_f8_f32",
        /// The same, with fewer steps of accumulation.
        AnyF8AnyF8F32FastAccum = "dot_any_f8_any_f8_f32_fast_accum",
        /// All f16.
        F16F16F16 = "dot_f16_f16_f16",
        /// f16, summed as f32.
        F16F16F32 = "dot_f16_f16_f32",
        /// All bf16.
        Bf16Bf16Bf16 = "dot_bf16_bf16_bf16",
        /// bf16, summed as f32.
        Bf16Bf16F32 = "dot_bf16_bf16_f32",
        /// Each operand as a sum of bf16: three products.
        Bf16Bf16F32X3 = "dot_bf16_bf16_f32_x3",
        /// Six products.
        Bf16Bf16F32X6 = "dot_bf16_bf16_f32_x6",
        /// Nine products.
        Bf16Bf16F32X9 = "dot_bf16_bf16_f32_x9",
        /// tf32, summed as f32.
        Tf32Tf32F32 = "dot_tf32_tf32_f32",
        /// Each operand as a sum of tf32: three products.
        Tf32Tf32F32X3 = "dot_tf32_tf32_f32_x3",
        /// All f32.
        F32F32F32 = "dot_f32_f32_f32",
        /// All f64.
        F64F64F64 = "dot_f64_f64_f64",
    }

    /// The role of a convolution in training.
    pub enum ConvolutionKind {
        /// Not specified.
        Unset = "unset",
        /// The activations.
        Fprop = "fprop",
        /// The gradient of the input.
        Dgrad = "dgrad",
        /// The gradient of the kernel.
        Wgrad = "wgrad",
    }
}

/// Structured sparsity of the operands of a convolution.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SparsityConfig {
    /// The sparsity of the input.
    pub lhs: Option<Sparsity>,
    /// The sparsity of the kernel.
    pub rhs: Option<Sparsity>,
}

/// The number of nonzero elements in each block: `sparsity=2x4`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sparsity {
    /// Number of nonzero elements of a block.
    pub non_zero: i64,
    /// Elements of a block.
    pub block_size: i64,
    /// The dim along which blocks extend.
    pub dimension: i64,
    /// Distance between the elements of a block.
    pub stride: i64,
}

/// The result has the batch dims, then the free dims of the left and of the right operand.
pub(super) fn dot(q: &ShapeQuery<'_>, attrs: &DotAttrs) -> Result<Shape, ShapeError> {
    dot_of(q, attrs, q.array(0)?, q.array(1)?)
}

/// Operands: left, right, the scales of left, the scales of right.
pub(super) fn scaled_dot(q: &ShapeQuery<'_>, attrs: &DotAttrs) -> Result<Shape, ShapeError> {
    let result = dot_of(q, attrs, q.array(0)?, q.array(1)?)?;
    check_scales(q, 0, &attrs.lhs_contracting_dims)?;
    check_scales(q, 1, &attrs.rhs_contracting_dims)?;
    if q.array(2)?.rank() == 0 && q.array(3)?.rank() == 0 {
        return Err(ShapeError::operand(
            "`scaled-dot` scales one of its operands at least; without scales it is a `dot`",
        ));
    }
    Ok(result)
}

/// Checks that each scale belongs to one block of its operand, and that equal blocks fill it.
fn check_scales(q: &ShapeQuery<'_>, of: usize, summed: &[i64]) -> Result<(), ShapeError> {
    let (operand, scales) = (q.array(of)?, q.array(of + 2)?);
    if scales_nothing(operand, scales) {
        return Ok(());
    }
    if summed.len() != 1 {
        return Err(ShapeError::attribute(format!(
            "`scaled-dot` sums over one dim of a scaled operand, not {}",
            summed.len()
        )));
    }
    let is_multiple = |(&size, &count): (&i64, &i64)| {
        size == UNBOUNDED || count == UNBOUNDED || size.checked_rem(count) == Some(0)
    };
    if operand.rank() == scales.rank() && operand.dims().iter().zip(scales.dims()).all(is_multiple)
    {
        return Ok(());
    }
    Err(ShapeError::operand(format!(
        "operand {of} of `scaled-dot`, {operand}, cannot be scaled by {scales}: they have one \
         rank, and the sizes of the scales divide those of the operand"
    )))
}

/// Checks whether an operand has a single scale of type bf16 and is bf16 itself, which means
/// that it is not scaled.
fn scales_nothing(operand: &ArrayShape, scales: &ArrayShape) -> bool {
    let all_one = |shape: &ArrayShape| shape.dims().iter().all(|&size| size == 1);
    operand.element_type == ElementType::BF16
        && scales.element_type == ElementType::BF16
        && all_one(scales)
        && !all_one(operand)
}

fn dot_of(
    q: &ShapeQuery<'_>,
    attrs: &DotAttrs,
    lhs: &ArrayShape,
    rhs: &ArrayShape,
) -> Result<Shape, ShapeError> {
    let sides = Sides {
        batch: [&attrs.lhs_batch_dims, &attrs.rhs_batch_dims],
        summed: [&attrs.lhs_contracting_dims, &attrs.rhs_contracting_dims],
        group: &[],
    };
    let dims = sides.dims(q, lhs, rhs)?;
    Ok(with_sizes(sum_type(q, lhs, rhs)?, dims))
}

/// Operands: left, right, and the lengths of the groups of the ragged dim.
///
/// A ragged free dim has its own right matrix for each group; a ragged contracting dim makes a
/// result matrix for each group.
pub(super) fn ragged_dot(q: &ShapeQuery<'_>, attrs: &RaggedDotAttrs) -> Result<Shape, ShapeError> {
    let (lhs, rhs) = (q.array(0)?, q.array(1)?);
    let &[ragged] = attrs.lhs_ragged_dims.as_slice() else {
        return Err(ShapeError::attribute("`ragged-dot` has one of lhs_ragged_dims"));
    };
    check_dims("lhs_ragged_dims of `ragged-dot`", &attrs.lhs_ragged_dims, lhs.rank())?;
    let is_batch = attrs.lhs_batch_dims.contains(&ragged);
    let is_summed = attrs.lhs_contracting_dims.contains(&ragged);
    if attrs.rhs_group_dims.len() != usize::from(!is_batch && !is_summed) {
        return Err(ShapeError::attribute(
            "`ragged-dot` has one of rhs_group_dims where the ragged dim is free, and none where it is not",
        ));
    }
    let sides = Sides {
        batch: [&attrs.lhs_batch_dims, &attrs.rhs_batch_dims],
        summed: [&attrs.lhs_contracting_dims, &attrs.rhs_contracting_dims],
        group: &attrs.rhs_group_dims,
    };
    let mut dims = sides.dims(q, lhs, rhs)?;
    let groups = group_count(q)?;
    if let Some(&group) = attrs.rhs_group_dims.first()
        && !sizes_agree(size(rhs, group), groups.0)
    {
        return Err(ShapeError::operand(format!(
            "`ragged-dot` has {} groups, but dim {group} of {rhs} counts others",
            groups.0
        )));
    }
    if is_summed {
        dims.insert(0, groups);
    }
    Ok(with_sizes(sum_type(q, lhs, rhs)?, dims))
}

/// Returns the number of groups: the minor dim of the last operand.
fn group_count(q: &ShapeQuery<'_>) -> Result<(i64, bool), ShapeError> {
    let sizes = q.array(2)?;
    let Some(minor) = sizes.rank().checked_sub(1) else {
        return Err(ShapeError::operand(format!(
            "`ragged-dot` takes the lengths of groups as an array, not {sizes}"
        )));
    };
    if !sizes.element_type.is_integer() {
        return Err(ShapeError::operand(format!(
            "`ragged-dot` takes the lengths of groups as integers, not {sizes}"
        )));
    }
    Ok((sizes.dims()[minor], sizes.dim_is_dynamic(minor)))
}

/// The paired dims of the two operands of a dot.
struct Sides<'a> {
    batch: [&'a [i64]; 2],
    summed: [&'a [i64]; 2],
    /// Further dims of the right operand that the result does not have.
    group: &'a [i64],
}

impl Sides<'_> {
    /// Returns the sizes of the result's dims, and which are dynamic.
    fn dims(
        &self,
        q: &ShapeQuery<'_>,
        lhs: &ArrayShape,
        rhs: &ArrayShape,
    ) -> Result<Vec<(i64, bool)>, ShapeError> {
        let opcode = q.op.opcode();
        let lhs_dims = all_of(self.batch[0], self.summed[0]);
        let rhs_dims = all_of(self.batch[1], self.summed[1]);
        let gone = all_of(&rhs_dims, self.group);
        check_dims(&format!("the left dims of `{opcode}`"), &lhs_dims, lhs.rank())?;
        check_dims(&format!("the right dims of `{opcode}`"), &gone, rhs.rank())?;
        let pairs = |&(&l, &r): &(&i64, &i64)| sizes_agree(size(lhs, l), size(rhs, r));
        let paired = self.batch[0].len() == self.batch[1].len()
            && self.summed[0].len() == self.summed[1].len()
            && lhs_dims.iter().zip(&rhs_dims).all(|pair| pairs(&pair));
        if !paired {
            return Err(ShapeError::attribute(format!(
                "batch and contracting dims of `{opcode}` must pair dims of equal size in {lhs} and {rhs}"
            )));
        }
        let at = |shape: &ArrayShape, dim: usize| (shape.dims()[dim], shape.dim_is_dynamic(dim));
        let free = |shape: &ArrayShape, used: &[i64]| -> Vec<(i64, bool)> {
            let unused = |dim: &usize| !used.iter().any(|&u| usize::try_from(u) == Ok(*dim));
            (0..shape.rank()).filter(unused).map(|dim| at(shape, dim)).collect()
        };
        let batch = self.batch[0].iter().filter_map(|&dim| usize::try_from(dim).ok());
        let batch: Vec<(i64, bool)> = batch.map(|dim| at(lhs, dim)).collect();
        Ok([batch, free(lhs, &lhs_dims), free(rhs, &gone)].concat())
    }
}

fn with_sizes(element_type: ElementType, dims: Vec<(i64, bool)>) -> Shape {
    let (sizes, dynamic): (Dims, SmallVec<[bool; 6]>) = dims.into_iter().unzip();
    ArrayShape::new(element_type, sizes).with_dynamic(&dynamic).into()
}

/// Returns the type of sums of products: the declared type, or the more precise type of the
/// operands. Operands may differ in type, and any type may be declared.
fn sum_type(
    q: &ShapeQuery<'_>,
    lhs: &ArrayShape,
    rhs: &ArrayShape,
) -> Result<ElementType, ShapeError> {
    match q.declared {
        Some(_) => Ok(q.declared_array()?.element_type),
        None => Ok(lhs.element_type.more_precise(rhs.element_type)),
    }
}

fn all_of(a: &[i64], b: &[i64]) -> Dims {
    a.iter().chain(b).copied().collect()
}

fn size(shape: &ArrayShape, dim: i64) -> i64 {
    sized(shape, dim).0
}

/// Returns the size of a dim, and whether it is dynamic.
fn sized(shape: &ArrayShape, dim: i64) -> (i64, bool) {
    let dim = usize::try_from(dim).unwrap_or(usize::MAX);
    (shape.dims().get(dim).copied().unwrap_or(-1), shape.dim_is_dynamic(dim))
}

pub(super) fn convolution(
    q: &ShapeQuery<'_>,
    attrs: &ConvolutionAttrs,
) -> Result<Shape, ShapeError> {
    let (input, kernel) = (q.array(0)?, kernel_of(q)?);
    let labels = &attrs.dim_labels;
    check_labels(labels, attrs.window.len(), input, kernel)?;
    check_groups(attrs, input, kernel)?;
    let mut dims: Vec<(i64, bool)> = vec![(0, false); input.rank()];
    let mut set = |dim: i64, size: (i64, bool)| {
        if let Some(slot) = usize::try_from(dim).ok().and_then(|d| dims.get_mut(d)) {
            *slot = size;
        }
    };
    let (batch, dynamic) = sized(input, labels.input_batch);
    let batch = if batch == UNBOUNDED { batch } else { batch / attrs.batch_group_count };
    set(labels.output_batch, (batch, dynamic));
    set(labels.output_feature, (size(kernel, labels.kernel_output_feature), false));
    for (i, window) in attrs.window.iter().enumerate() {
        let (kernel_size, kernel_dynamic) = sized(kernel, labels.kernel_spatial[i]);
        if window.size != kernel_size {
            return Err(ShapeError::attribute(format!(
                "the window of `convolution` has size {} in spatial dim {i}, but the kernel is {kernel}",
                window.size
            )));
        }
        let (base, dynamic) = sized(input, labels.input_spatial[i]);
        let extent = window.output_size(base).ok_or_else(|| {
            ShapeError::attribute(format!(
                "the window of `convolution` is malformed in spatial dim {i}"
            ))
        })?;
        set(labels.output_spatial[i], (extent, dynamic || kernel_dynamic));
    }
    Ok(with_sizes(sum_type(q, input, kernel)?, dims))
}

/// Returns the kernel. A sparse kernel is in a tuple with the indices of its elements.
fn kernel_of<'a>(q: &ShapeQuery<'a>) -> Result<&'a ArrayShape, ShapeError> {
    match q.operand(1)?.as_tuple() {
        Some([Shape::Array(kernel), _]) => Ok(kernel),
        _ => q.array(1),
    }
}

/// Returns the number of input features that an element of the kernel represents: the block
/// size if the kernel is sparse.
fn features_per_element(attrs: &ConvolutionAttrs) -> Result<i64, ShapeError> {
    match attrs.sparsity_config.as_ref().and_then(|config| config.rhs) {
        None => Ok(1),
        Some(Sparsity { non_zero: 1, block_size, .. }) => Ok(block_size),
        Some(sparsity) => Err(ShapeError::attribute(format!(
            "sparsity_config of `convolution` keeps {} elements of each block of the kernel; it \
             can keep 1",
            sparsity.non_zero
        ))),
    }
}

/// Checks that the group counts divide the features and the batch.
fn check_groups(
    attrs: &ConvolutionAttrs,
    input: &ArrayShape,
    kernel: &ArrayShape,
) -> Result<(), ShapeError> {
    let labels = &attrs.dim_labels;
    let (features, batches) = (attrs.feature_group_count, attrs.batch_group_count);
    if features < 1 || batches < 1 {
        return Err(ShapeError::attribute("group counts of `convolution` must be 1 or more"));
    }
    if features > 1 && batches > 1 {
        return Err(ShapeError::attribute(format!(
            "`convolution` splits features or batch into groups, not both: \
             feature_group_count is {features}, batch_group_count {batches}"
        )));
    }
    let of_input = size(input, labels.input_feature);
    let per_group = size(kernel, labels.kernel_input_feature);
    let known = of_input != UNBOUNDED && per_group != UNBOUNDED;
    let per_element = features_per_element(attrs)?;
    let per_group = per_group.checked_mul(per_element).unwrap_or(UNBOUNDED);
    if known && per_group.checked_mul(features) != Some(of_input) {
        return Err(ShapeError::operand(format!(
            "`convolution` of {input} with {kernel}: {of_input} input features are not {features} groups of {per_group}"
        )));
    }
    let (out_features, dynamic) = sized(kernel, labels.kernel_output_feature);
    if dynamic {
        return Err(ShapeError::operand(format!(
            "`convolution` takes a kernel of so many output features, not {kernel}"
        )));
    }
    let batch = size(input, labels.input_batch);
    let divides = |count: i64, size: i64| size == UNBOUNDED || size % count == 0;
    if divides(batches, batch) && divides(features, out_features) && divides(batches, out_features)
    {
        return Ok(());
    }
    Err(ShapeError::attribute(
        "group counts of `convolution` do not divide batch and output features",
    ))
}

/// Checks that each list of labels names every dim of its array once.
fn check_labels(
    labels: &ConvDims,
    spatial: usize,
    input: &ArrayShape,
    kernel: &ArrayShape,
) -> Result<(), ShapeError> {
    let rank = spatial + 2;
    let lists = [
        (labels.input_batch, labels.input_feature, &labels.input_spatial),
        (labels.kernel_input_feature, labels.kernel_output_feature, &labels.kernel_spatial),
        (labels.output_batch, labels.output_feature, &labels.output_spatial),
    ];
    for (a, b, list) in lists {
        let all: Dims = [a, b].into_iter().chain(list.iter().copied()).collect();
        check_dims("dim_labels of `convolution`", &all, rank)?;
        if list.len() != spatial {
            return Err(ShapeError::attribute(format!(
                "dim_labels and window of `convolution` differ in spatial dims: {} and {spatial}",
                list.len()
            )));
        }
    }
    if input.rank() != rank || kernel.rank() != rank {
        return Err(ShapeError::operand(format!(
            "`convolution` with {spatial} spatial dims takes arrays of rank {rank}, not {input} and {kernel}"
        )));
    }
    Ok(())
}
