//! Attributes of which a front end says only what it wants.

use crate::common::dims as listed;
use tilewright_ir::dims;
use tilewright_ir::ops::contract::{ConvolutionAttrs, DotAttrs};
use tilewright_ir::ops::control::{ApiVersion, CustomCallAttrs, CustomCallSchedule, PaddingType};
use tilewright_ir::ops::dims::{ConvDims, PadDim, SliceDim, WindowDim};
use tilewright_ir::ops::reduce::TopKAttrs;

/// Where XLA's proto has no value, it means this.
#[test]
fn what_is_left_out_is_what_a_text_leaves_out() {
    let dot = DotAttrs { lhs_contracting_dims: dims([1]), ..DotAttrs::default() };
    assert_eq!(dot.lhs_contracting_dims, listed(&[1]));
    assert!(dot.rhs_contracting_dims.is_empty() && dot.lhs_batch_dims.is_empty());
    let convolution = ConvolutionAttrs::default();
    assert_eq!((convolution.feature_group_count, convolution.batch_group_count), (1, 1));
    let call = CustomCallAttrs::default();
    assert_eq!((call.feature_group_count, call.batch_group_count), (1, 1));
    assert_eq!(call.schedule, CustomCallSchedule::None);
    assert_eq!(call.api_version, ApiVersion::Original);
    assert_eq!(call.padding_type, PaddingType::Invalid);
    let top_k = TopKAttrs::default();
    assert!(top_k.largest && top_k.is_stable);
}

#[test]
fn parts_of_dims() {
    assert_eq!(WindowDim::default().output_size(5), Some(5), "a window of one changes nothing");
    assert_eq!(PadDim::default(), PadDim { low: 0, high: 0, interior: 0 });
    assert_eq!(SliceDim::new(2, 5), SliceDim { start: 2, limit: 5, stride: 1 });
    assert_eq!(SliceDim::default(), SliceDim { start: 0, limit: 0, stride: 1 });
}

#[test]
fn orders_of_convolution_dims() {
    // bf01_oi01->bf01
    let nchw = ConvDims::default();
    assert_eq!(
        (nchw.input_batch, nchw.input_feature, &nchw.input_spatial[..]),
        (0, 1, &[2, 3][..])
    );
    let kernel = (nchw.kernel_output_feature, nchw.kernel_input_feature, &nchw.kernel_spatial[..]);
    assert_eq!(kernel, (0, 1, &[2, 3][..]));
    let output = (nchw.output_batch, nchw.output_feature, &nchw.output_spatial[..]);
    assert_eq!(output, (0, 1, &[2, 3][..]));
    // b012f_012io->b012f
    let nhwc = ConvDims::nhwc(3);
    let input = (nhwc.input_batch, nhwc.input_feature, &nhwc.input_spatial[..]);
    assert_eq!(input, (0, 4, &[1, 2, 3][..]));
    let kernel = (nhwc.kernel_input_feature, nhwc.kernel_output_feature, &nhwc.kernel_spatial[..]);
    assert_eq!(kernel, (3, 4, &[0, 1, 2][..]));
    let output = (nhwc.output_batch, nhwc.output_feature, &nhwc.output_spatial[..]);
    assert_eq!(output, (0, 4, &[1, 2, 3][..]));
    assert_eq!(ConvDims::nchw(usize::MAX).input_spatial.len(), ConvDims::MAX_RANK - 2);
}
