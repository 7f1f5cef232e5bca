//! Per-dim attribute parts that several ops share.

use smallvec::SmallVec;

use crate::types::shape::UNBOUNDED;

/// The part of a dim that `slice` keeps: `[start:limit:stride]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SliceDim {
    /// First index kept.
    pub start: i64,
    /// First index past the end.
    pub limit: i64,
    /// Distance between indices kept.
    pub stride: i64,
}

impl SliceDim {
    /// Keeps the indices from `start` up to, but not including, `limit`.
    pub const fn new(start: i64, limit: i64) -> Self {
        Self { start, limit, stride: 1 }
    }
}

impl Default for SliceDim {
    /// Keeps no index: `[0:0:1]`.
    fn default() -> Self {
        Self::new(0, 0)
    }
}

/// Padding of one dim by `pad`; `low` and `high` may be negative. The default
/// adds nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PadDim {
    /// Elements before the first.
    pub low: i64,
    /// Elements after the last.
    pub high: i64,
    /// Elements between neighbours; not negative.
    pub interior: i64,
}

/// One dim of a window that moves over an array (XLA's `WindowDimension`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WindowDim {
    /// Elements of the window.
    pub size: i64,
    /// Distance between window positions.
    pub stride: i64,
    /// Padding before the base.
    pub padding_low: i64,
    /// Padding after the base.
    pub padding_high: i64,
    /// Factor by which the base is dilated (`lhs_dilate`).
    pub base_dilation: i64,
    /// Factor by which the window is dilated (`rhs_dilate`).
    pub window_dilation: i64,
    /// Whether the window is walked backwards (`rhs_reversal`).
    pub reversal: bool,
}

impl Default for WindowDim {
    /// A window of one element with stride 1.
    fn default() -> Self {
        Self::new(1)
    }
}

impl WindowDim {
    /// A window of this size with stride 1 and nothing else.
    pub const fn new(size: i64) -> Self {
        Self {
            size,
            stride: 1,
            padding_low: 0,
            padding_high: 0,
            base_dilation: 1,
            window_dilation: 1,
            reversal: false,
        }
    }

    /// Returns the size of the result after the window has moved over a base of `base`
    /// elements; unbounded if the base is. `None` if a parameter is out of range or the
    /// arithmetic overflows.
    pub fn output_size(&self, base: i64) -> Option<i64> {
        if self.size < 1
            || self.stride < 1
            || self.base_dilation < 1
            || self.window_dilation < 1
            || (base < 0 && base != UNBOUNDED)
        {
            return None;
        }
        if base == UNBOUNDED {
            return Some(UNBOUNDED);
        }
        let padded = dilated(base, self.base_dilation)?
            .checked_add(self.padding_low)?
            .checked_add(self.padding_high)?;
        let window = dilated(self.size, self.window_dilation)?;
        if padded < 0 {
            return None;
        }
        if padded == 0 || window > padded {
            return Some(0);
        }
        (padded.checked_sub(window)? / self.stride).checked_add(1)
    }
}

/// `size` elements with `dilation - 1` holes between neighbours; the total length.
fn dilated(size: i64, dilation: i64) -> Option<i64> {
    if size == 0 { Some(0) } else { (size - 1).checked_mul(dilation)?.checked_add(1) }
}

/// The batch, feature and spatial dims of a convolution's operands and result
/// (`b01f_01io->b01f`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ConvDims {
    /// Batch dim of the input.
    pub input_batch: i64,
    /// Feature dim of the input.
    pub input_feature: i64,
    /// Spatial dims of the input.
    pub input_spatial: SmallVec<[i64; 3]>,
    /// Input-feature dim of the kernel.
    pub kernel_input_feature: i64,
    /// Output-feature dim of the kernel.
    pub kernel_output_feature: i64,
    /// Spatial dims of the kernel.
    pub kernel_spatial: SmallVec<[i64; 3]>,
    /// Batch dim of the result.
    pub output_batch: i64,
    /// Feature dim of the result.
    pub output_feature: i64,
    /// Spatial dims of the result.
    pub output_spatial: SmallVec<[i64; 3]>,
}

impl ConvDims {
    /// Largest rank of an array that labels support.
    pub const MAX_RANK: usize = 64;

    /// XLA's default order: batch, feature, spatial dims in input and result;
    /// output feature, input feature, spatial dims in the kernel
    /// (`bf01_oi01->bf01` for two spatial dims). No more than
    /// [`Self::MAX_RANK`] dims in all.
    pub fn nchw(spatial: usize) -> Self {
        let count = Self::count(spatial);
        let spatial: SmallVec<[i64; 3]> = (2..count + 2).collect();
        Self {
            input_batch: 0,
            input_feature: 1,
            input_spatial: spatial.clone(),
            kernel_output_feature: 0,
            kernel_input_feature: 1,
            kernel_spatial: spatial.clone(),
            output_batch: 0,
            output_feature: 1,
            output_spatial: spatial,
        }
    }

    /// The order of TensorFlow and Flax: batch, spatial dims, feature in input
    /// and result; spatial dims, input feature, output feature in the kernel
    /// (`b01f_01io->b01f` for two spatial dims). No more than
    /// [`Self::MAX_RANK`] dims in all.
    pub fn nhwc(spatial: usize) -> Self {
        let count = Self::count(spatial);
        let spatial: SmallVec<[i64; 3]> = (1..count + 1).collect();
        Self {
            input_batch: 0,
            input_feature: count + 1,
            input_spatial: spatial.clone(),
            kernel_input_feature: count,
            kernel_output_feature: count + 1,
            kernel_spatial: (0..count).collect(),
            output_batch: 0,
            output_feature: count + 1,
            output_spatial: spatial,
        }
    }

    fn count(spatial: usize) -> i64 {
        i64::try_from(spatial.min(Self::MAX_RANK - 2)).unwrap_or(0)
    }
}

impl Default for ConvDims {
    /// [`ConvDims::nchw`] with two spatial dims, as in XLA.
    fn default() -> Self {
        Self::nchw(2)
    }
}
