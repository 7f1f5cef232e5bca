//! Contractions: dots and convolutions.

use smallvec::SmallVec;

use super::attr::{attributes, words};
use super::dims::{ConvDims, WindowDim};
use crate::infer::{ShapeError, ShapeQuery, check_dims};
use crate::types::shape::{ArrayShape, Dims, Shape};

attributes! {
    /// Attributes of `dot` and `scaled-dot`.
    pub struct DotAttrs {
        /// Dims of the left operand that pair with `rhs_batch_dims`.
        lhs_batch_dims: Dims = "lhs_batch_dims" or Dims::new(),
        /// Dims of the left operand that are summed.
        lhs_contracting_dims: Dims = "lhs_contracting_dims" or Dims::new(),
        /// Dims of the right operand that pair with `lhs_batch_dims`.
        rhs_batch_dims: Dims = "rhs_batch_dims" or Dims::new(),
        /// Dims of the right operand that are summed.
        rhs_contracting_dims: Dims = "rhs_contracting_dims" or Dims::new(),
        /// The precision wanted for each operand.
        operand_precision: Vec<Precision> = "operand_precision",
        /// The algorithm wanted.
        algorithm: Option<DotAlgorithm> = "algorithm",
    }

    /// Attributes of `ragged-dot`.
    pub struct RaggedDotAttrs {
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
        /// The precision wanted for each operand.
        operand_precision: Vec<Precision> = "operand_precision",
    }

    /// Attributes of `convolution`.
    pub struct ConvolutionAttrs {
        /// How the kernel moves over the input.
        window: SmallVec<[WindowDim; 2]> = "window" or SmallVec::new(),
        /// Which dim is what.
        dim_labels: ConvDims = "dim_labels",
        /// Groups into which input and output features are split.
        feature_group_count: i64 = "feature_group_count" or 1,
        /// Groups into which the batch is split.
        batch_group_count: i64 = "batch_group_count" or 1,
        /// The precision wanted for each operand.
        operand_precision: Vec<Precision> = "operand_precision",
        /// What it computes in training: `fprop`, `dgrad` or `wgrad`.
        convolution_kind: ConvolutionKind = "convolution_kind" or ConvolutionKind::Unset,
        /// Structured sparsity of the operands.
        sparsity_config: Option<SparsityConfig> = "sparsity_config",
    }
}

words! {
    /// How exactly an operand is to be taken (`PrecisionConfig.Precision`).
    pub enum Precision {
        /// As fast as the device can.
        Default = "default",
        /// In between.
        High = "high",
        /// As exactly as the type allows.
        Highest = "highest",
    }

    /// The types in which `dot` multiplies and adds: left, right, sum.
    pub enum DotAlgorithm {
        /// Any 8-bit floats, summed as f32.
        AnyF8AnyF8F32 = "dot_any_f8_any_f8_f32",
        /// The same, in fewer steps of accumulation.
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

    /// What a convolution computes in training.
    pub enum ConvolutionKind {
        /// It does not say.
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
    /// Of the input.
    pub lhs: Option<Sparsity>,
    /// Of the kernel.
    pub rhs: Option<Sparsity>,
}

/// So many elements of each block are not zero: `sparsity=2x4`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sparsity {
    /// How many of a block are not zero.
    pub non_zero: i64,
    /// Elements of a block.
    pub block_size: i64,
    /// The dim along which blocks lie.
    pub dimension: i64,
    /// Distance between the elements of a block.
    pub stride: i64,
}

pub(super) fn declared(q: &ShapeQuery<'_>, _attrs: &RaggedDotAttrs) -> Result<Shape, ShapeError> {
    q.declared().cloned()
}

/// Batch dims, then the left operand's free dims, then the right's.
pub(super) fn dot(q: &ShapeQuery<'_>, attrs: &DotAttrs) -> Result<Shape, ShapeError> {
    dot_of(q, attrs, q.array(0)?, q.array(1)?)
}

/// Operands: left, its scales, right, its scales.
pub(super) fn scaled_dot(q: &ShapeQuery<'_>, attrs: &DotAttrs) -> Result<Shape, ShapeError> {
    dot_of(q, attrs, q.array(0)?, q.array(2)?)
}

fn dot_of(
    q: &ShapeQuery<'_>,
    attrs: &DotAttrs,
    lhs: &ArrayShape,
    rhs: &ArrayShape,
) -> Result<Shape, ShapeError> {
    let lhs_dims = all_of(&attrs.lhs_batch_dims, &attrs.lhs_contracting_dims);
    let rhs_dims = all_of(&attrs.rhs_batch_dims, &attrs.rhs_contracting_dims);
    check_dims("the left dims of `dot`", &lhs_dims, lhs.rank())?;
    check_dims("the right dims of `dot`", &rhs_dims, rhs.rank())?;
    let paired = attrs.lhs_batch_dims.len() == attrs.rhs_batch_dims.len()
        && attrs.lhs_contracting_dims.len() == attrs.rhs_contracting_dims.len()
        && lhs_dims.iter().zip(&rhs_dims).all(|(&l, &r)| size(lhs, l) == size(rhs, r));
    if !paired {
        return Err(ShapeError::attribute(format!(
            "batch and contracting dims of `dot` must pair dims of equal size in {lhs} and {rhs}"
        )));
    }
    let free = |shape: &ArrayShape, used: &[i64]| -> Dims {
        let unused = |dim: &usize| !used.iter().any(|&u| usize::try_from(u) == Ok(*dim));
        (0..shape.rank()).filter(unused).map(|d| shape.dims()[d]).collect()
    };
    let mut dims: Dims = attrs.lhs_batch_dims.iter().map(|&d| size(lhs, d)).collect();
    dims.extend(free(lhs, &lhs_dims));
    dims.extend(free(rhs, &rhs_dims));
    // The result's type may be wider than the operands' (preferred type).
    let element_type = match q.declared {
        Some(_) => q.declared_array()?.element_type,
        None => lhs.element_type,
    };
    let dynamic: SmallVec<[bool; 6]> = match q.declared {
        Some(Shape::Array(to)) => (0..to.rank()).map(|d| to.dim_is_dynamic(d)).collect(),
        _ => SmallVec::new(),
    };
    Ok(ArrayShape::new(element_type, dims).with_dynamic(&dynamic).into())
}

fn all_of(a: &[i64], b: &[i64]) -> Dims {
    a.iter().chain(b).copied().collect()
}

fn size(shape: &ArrayShape, dim: i64) -> i64 {
    usize::try_from(dim).ok().and_then(|d| shape.dims().get(d).copied()).unwrap_or(-1)
}

pub(super) fn convolution(
    q: &ShapeQuery<'_>,
    attrs: &ConvolutionAttrs,
) -> Result<Shape, ShapeError> {
    let (input, kernel) = (q.array(0)?, q.array(1)?);
    let labels = &attrs.dim_labels;
    check_labels(labels, attrs.window.len(), input, kernel)?;
    if attrs.feature_group_count < 1 || attrs.batch_group_count < 1 {
        return Err(ShapeError::attribute("group counts of `convolution` must be 1 or more"));
    }
    let features = size(input, labels.input_feature);
    let per_group = size(kernel, labels.kernel_input_feature);
    if per_group.checked_mul(attrs.feature_group_count) != Some(features) {
        return Err(ShapeError::operand(format!(
            "`convolution` of {input} with {kernel}: {features} input features are not {} groups of {per_group}",
            attrs.feature_group_count
        )));
    }
    let batch = size(input, labels.input_batch);
    let out_features = size(kernel, labels.kernel_output_feature);
    if batch % attrs.batch_group_count != 0
        || out_features % attrs.feature_group_count != 0
        || out_features % attrs.batch_group_count != 0
    {
        return Err(ShapeError::attribute(
            "group counts of `convolution` do not divide batch and output features",
        ));
    }
    let mut dims: Dims = std::iter::repeat_n(0, input.rank()).collect();
    let mut set = |dim: i64, size: i64| {
        if let Some(slot) = usize::try_from(dim).ok().and_then(|d| dims.get_mut(d)) {
            *slot = size;
        }
    };
    set(labels.output_batch, batch / attrs.batch_group_count);
    set(labels.output_feature, out_features);
    for (i, window) in attrs.window.iter().enumerate() {
        if window.size != size(kernel, labels.kernel_spatial[i]) {
            return Err(ShapeError::attribute(format!(
                "the window of `convolution` has size {} in spatial dim {i}, but the kernel is {kernel}",
                window.size
            )));
        }
        let base = size(input, labels.input_spatial[i]);
        let extent = window.output_size(base).ok_or_else(|| {
            ShapeError::attribute(format!(
                "the window of `convolution` is malformed in spatial dim {i}"
            ))
        })?;
        set(labels.output_spatial[i], extent);
    }
    let element_type = match q.declared {
        Some(_) => q.declared_array()?.element_type,
        None => input.element_type,
    };
    let dynamic: SmallVec<[bool; 6]> = match q.declared {
        Some(Shape::Array(to)) => (0..to.rank()).map(|d| to.dim_is_dynamic(d)).collect(),
        _ => SmallVec::new(),
    };
    Ok(ArrayShape::new(element_type, dims).with_dynamic(&dynamic).into())
}

/// Each label list names every dim of its array once.
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
