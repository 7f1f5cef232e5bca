//! Linear algebra, transforms and whole norms, computed in `f64`.

use num_complex::Complex;
use tilewright_ir::ops::linalg::BatchNormAttrs;
use tilewright_ir::shape::checked_product;
use tilewright_ir::{Data, ElementType};

use super::{Cx, elementwise, tuple, unsupported};
use crate::error::{Fault, Outcome};
use crate::limits::Charge;
use crate::strides::extent;
use crate::value::{Array, Value};

pub(super) use super::fft::fft;
pub(super) use super::triangular::{cholesky, triangular_solve};

/// Elements as `f64` or, of complex arrays, `c128`.
pub(super) fn widened(array: &Array, wide: ElementType) -> Outcome<Data> {
    let mut out = Data::zeros(wide, 0);
    let convert = elementwise::convert_kernel(array.element_type(), wide)?;
    convert(&[array.data()], array.len(), &mut out)?;
    Ok(out)
}

/// Elements as complex numbers of `f64` parts.
pub(super) fn as_complex(array: &Array) -> Outcome<Vec<Complex<f64>>> {
    match widened(array, ElementType::C128)? {
        Data::C128(values) => Ok(values),
        _ => Err(crate::error::WRONG_STORAGE),
    }
}

fn as_f64(array: &Array) -> Outcome<Vec<f64>> {
    if !array.element_type().is_float() {
        return Err(unsupported(format!("it takes no {} operands", array.element_type())));
    }
    match widened(array, ElementType::F64)? {
        Data::F64(values) => Ok(values),
        _ => Err(crate::error::WRONG_STORAGE),
    }
}

/// Converts wide elements to the type of the result, or of one of the results.
pub(super) fn rounded(cx: &Cx<'_, '_>, result: usize, values: &Data) -> Outcome<Value> {
    let wide = match values {
        Data::C128(_) => ElementType::C128,
        _ => ElementType::F64,
    };
    let allocation = cx.allocate(cx.leaf_shape(result)?)?;
    let mut out = Data::zeros(allocation.element_type, 0);
    let convert = elementwise::convert_kernel(wide, allocation.element_type)?;
    convert(&[values], values.len(), &mut out)?;
    allocation.with(out)
}

/// The operand of a batch norm, one feature per element's place.
struct Norm {
    x: Vec<f64>,
    features: usize,
    /// Elements between two neighbours along the feature dim.
    stride: usize,
    /// Elements of one feature.
    count: f64,
    epsilon: f64,
    /// Held as long as the norm is computed.
    _charge: Charge,
}

/// The most arrays, in `f64`, of the operand's size and of one element for each
/// feature that are alive at one time.
const WHOLE_ARRAYS: usize = 4;
const FEATURE_ARRAYS: usize = 8;

impl Norm {
    fn new(cx: &Cx<'_, '_>, attrs: &BatchNormAttrs) -> Outcome<Self> {
        let operand = cx.array(0)?;
        cx.spend(operand.len().saturating_mul(4))?;
        let feature = extent(attrs.feature_index);
        let features = operand.dims().get(feature).map(|&d| extent(d));
        let features = features.ok_or(Fault::Internal("no such dim"))?;
        let whole = operand.len().saturating_mul(WHOLE_ARRAYS);
        let elements = features.saturating_mul(FEATURE_ARRAYS).saturating_add(whole);
        let charge = cx.scratch(size_of::<f64>(), elements)?;
        let minor = operand.dims().get(feature + 1..).unwrap_or_default();
        // The stride of an array without elements is not used.
        let stride = checked_product(minor).map_or(0, extent);
        Ok(Self {
            x: as_f64(operand)?,
            features,
            stride,
            _charge: charge,
            count: operand.len() as f64 / features as f64,
            epsilon: f64::from(attrs.epsilon.0),
        })
    }

    fn feature(&self, place: usize) -> usize {
        place / self.stride % self.features
    }

    /// Returns the sum of `f` of each element and its feature, for every feature.
    fn sums(&self, f: impl Fn(usize, usize) -> f64) -> Vec<f64> {
        let mut sums = vec![0.0; self.features];
        for place in 0..self.x.len() {
            let feature = self.feature(place);
            sums[feature] += f(place, feature);
        }
        sums
    }

    fn means(&self, sums: Vec<f64>) -> Vec<f64> {
        sums.into_iter().map(|sum| sum / self.count).collect()
    }

    fn map(&self, f: impl Fn(usize, usize) -> f64) -> Data {
        Data::F64((0..self.x.len()).map(|place| f(place, self.feature(place))).collect())
    }
}

fn batch_norm_training(cx: &mut Cx<'_, '_>, attrs: &BatchNormAttrs) -> Outcome<Value> {
    let norm = Norm::new(cx, attrs)?;
    let (scale, offset) = (as_f64(cx.array(1)?)?, as_f64(cx.array(2)?)?);
    let mean = norm.means(norm.sums(|i, _| norm.x[i]));
    let variance = norm.means(norm.sums(|i, c| (norm.x[i] - mean[c]).powi(2)));
    let factor: Vec<f64> =
        variance.iter().zip(&scale).map(|(v, s)| s / (v + norm.epsilon).sqrt()).collect();
    let out = norm.map(|i, c| (norm.x[i] - mean[c]) * factor[c] + offset[c]);
    Ok(tuple([
        rounded(cx, 0, &out)?,
        rounded(cx, 1, &Data::F64(mean))?,
        rounded(cx, 2, &Data::F64(variance))?,
    ]))
}

/// Operands: x, scale, offset, mean, variance.
fn batch_norm_inference(cx: &mut Cx<'_, '_>, attrs: &BatchNormAttrs) -> Outcome<Value> {
    let norm = Norm::new(cx, attrs)?;
    let (scale, offset) = (as_f64(cx.array(1)?)?, as_f64(cx.array(2)?)?);
    let (mean, variance) = (as_f64(cx.array(3)?)?, as_f64(cx.array(4)?)?);
    let out = norm.map(|i, c| {
        (norm.x[i] - mean[c]) * scale[c] / (variance[c] + norm.epsilon).sqrt() + offset[c]
    });
    rounded(cx, 0, &out)
}

/// Operands: x, scale, mean, variance, gradient of the result.
fn batch_norm_grad(cx: &mut Cx<'_, '_>, attrs: &BatchNormAttrs) -> Outcome<Value> {
    let norm = Norm::new(cx, attrs)?;
    let (scale, mean) = (as_f64(cx.array(1)?)?, as_f64(cx.array(2)?)?);
    let (variance, gradient) = (as_f64(cx.array(3)?)?, as_f64(cx.array(4)?)?);
    let inverse: Vec<f64> = variance.iter().map(|v| 1.0 / (v + norm.epsilon).sqrt()).collect();
    let centred = |i: usize, c: usize| (norm.x[i] - mean[c]) * inverse[c];
    let grad_offset = norm.sums(|i, _| gradient[i]);
    let grad_scale = norm.sums(|i, c| gradient[i] * centred(i, c));
    let out = norm.map(|i, c| {
        let rest = grad_offset[c] + centred(i, c) * grad_scale[c];
        scale[c] * inverse[c] * (gradient[i] - rest / norm.count)
    });
    Ok(tuple([
        rounded(cx, 0, &out)?,
        rounded(cx, 1, &Data::F64(grad_scale))?,
        rounded(cx, 2, &Data::F64(grad_offset))?,
    ]))
}

/// The batch norms share a row's rule.
pub(super) fn batch_norm(cx: &mut Cx<'_, '_>, attrs: &BatchNormAttrs) -> Outcome<Value> {
    match (cx.operands.len(), cx.shape().as_tuple().is_some()) {
        (3, _) => batch_norm_training(cx, attrs),
        (_, true) => batch_norm_grad(cx, attrs),
        (_, false) => batch_norm_inference(cx, attrs),
    }
}
