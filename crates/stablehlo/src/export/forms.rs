//! Attributes of HLO as attributes of StableHLO, by their kinds.

use smallvec::SmallVec;
use smol_str::SmolStr;
use tilewright_ir::Op;
use tilewright_ir::ops::attr::AttrValue;
use tilewright_ir::ops::dims::{ConvDims, WindowDim};
use tilewright_ir::ops::elementwise::ResultAccuracy;

use super::attributes::{table, word};
use crate::dialect::{self, Joined, Parameter, Structure, ValueKind};
use crate::mlir::{Attribute, Attributes, DenseArray, Scalar, Type};

/// Returns the attributes of an instruction by the row of the op that it becomes.
pub(super) fn write(row: &dialect::Op, op: &Op) -> Attributes {
    let mut values: Vec<(&'static str, AttrValue)> = Vec::new();
    op.for_each_attr(&mut |name, value| values.push((name, value)));
    let find = |name: &str| values.iter().find(|(known, _)| *known == name).map(|(_, value)| value);
    let mut written = Attributes::new();
    for attr in row.attributes() {
        let value = match (attr.kind, attr.hlo) {
            (ValueKind::Structure(structure), _) => Some(parameters(structure, find)),
            (kind, Some(hlo)) => match find(hlo) {
                Some(value) => single(kind, value),
                None => missing(kind),
            },
            (_, None) => None,
        };
        written.extend(value.map(|value| (attr.name.into(), value)));
    }
    if let Some(joined) = row.joined {
        let no_window = AttrValue::Window(SmallVec::new());
        let empty = matches!(joined, Joined::Window(..)).then_some(&no_window);
        if let Some(value) = find(joined.hlo()).or(empty) {
            self::joined(&mut written, joined, value);
        }
    }
    written
}

/// Returns a structure, without the parameters that MLIR leaves out.
fn parameters<'v>(
    structure: &Structure,
    find: impl Fn(&str) -> Option<&'v AttrValue>,
) -> Attribute {
    let parameter = |parameter: &Parameter| {
        let value = match find(parameter.hlo?)? {
            AttrValue::Dims(dims) => Attribute::i64s(dims.iter().copied()),
            AttrValue::Int(value) => Attribute::i64(*value),
            _ => return None,
        };
        let is_empty = matches!(
            &value, Attribute::DenseArray(DenseArray::I64(list)) if list.is_empty()
        );
        (!is_empty).then(|| (parameter.name.into(), value))
    };
    let parameters = structure.parameters.iter().filter_map(parameter).collect();
    Attribute::structure("stablehlo", structure.name, parameters)
}

/// Returns what StableHLO writes for an attribute that HLO leaves out.
fn missing(kind: ValueKind) -> Option<Attribute> {
    match kind {
        ValueKind::Dims => Some(Attribute::i64s([])),
        ValueKind::Bool => Some(Attribute::Bool(false)),
        ValueKind::Integer(..) => Some(Attribute::i64(1)),
        ValueKind::Groups => Some(table(&[])),
        _ => None,
    }
}

fn single(kind: ValueKind, value: &AttrValue) -> Option<Attribute> {
    Some(match (kind, value) {
        (ValueKind::Dims, AttrValue::Dims(dims)) => Attribute::i64s(dims.iter().copied()),
        (ValueKind::Integer(bits, _), AttrValue::Int(value)) => Attribute::integer(*value, bits),
        (ValueKind::OneDim, AttrValue::Dims(dims)) => Attribute::i64(*dims.first()?),
        (ValueKind::Float(_), AttrValue::Float(value)) => {
            Attribute::Float(f64::from(value.0), Type::Scalar(Scalar::Float("f32".into())))
        }
        (ValueKind::Bool, AttrValue::Bool(value)) => Attribute::Bool(*value),
        (ValueKind::Unit, AttrValue::Bool(true)) => Attribute::Unit,
        (ValueKind::Word(name), AttrValue::Word(value)) => word(name, value),
        (ValueKind::PrefixedWord(name, prefix), AttrValue::Word(value)) => {
            word(name, &value.strip_prefix(prefix).unwrap_or(value).to_uppercase())
        }
        (ValueKind::Precisions, AttrValue::Words(words)) => {
            let words = words.iter().map(|value| word("precision", &value.to_uppercase()));
            Attribute::Array(words.collect())
        }
        (ValueKind::Groups, AttrValue::ReplicaGroups(groups)) => table(&groups.lists()?),
        (ValueKind::Pairs, AttrValue::Pairs(pairs)) => {
            table(&pairs.iter().map(|&(from, to)| vec![from, to]).collect::<Vec<_>>())
        }
        (ValueKind::Channel, AttrValue::Int(handle)) => {
            // The type of a channel between devices.
            let parameters = vec![
                ("handle".into(), Attribute::i64(*handle)),
                ("type".into(), Attribute::i64(1)),
            ];
            Attribute::structure("stablehlo", "channel_handle", parameters)
        }
        (ValueKind::Accuracy, AttrValue::Accuracy(accuracy)) => self::accuracy(accuracy)?,
        (ValueKind::Algorithm, AttrValue::Word(name)) => algorithm(name)?,
        (ValueKind::Convolution, AttrValue::ConvDims(dims)) => conv(dims),
        _ => return None,
    })
}

fn accuracy(accuracy: &ResultAccuracy) -> Option<Attribute> {
    let f64 = |value: f64| Attribute::Float(value, Type::Scalar(Scalar::Float("f64".into())));
    let (atol, rtol, ulps, mode) = match accuracy {
        ResultAccuracy::Default => return None,
        ResultAccuracy::Highest => (0.0, 0.0, 0, "HIGHEST"),
        ResultAccuracy::Tolerance { atol, rtol, ulps } => (atol.0, rtol.0, *ulps, "TOLERANCE"),
    };
    let parameters = vec![
        ("atol".into(), f64(atol)),
        ("rtol".into(), f64(rtol)),
        ("ulps".into(), Attribute::i64(ulps)),
        ("mode".into(), word("result_accuracy_mode", mode)),
    ];
    Some(Attribute::structure("stablehlo", "result_accuracy", parameters))
}

fn algorithm(name: &str) -> Option<Attribute> {
    let known = crate::import::forms::ALGORITHMS.iter().find(|(.., known)| *known == name)?;
    let (left, right, sum, products, fast, _) = known;
    let ty = |name: &str| {
        let name: SmolStr = if name == "f8" { "f8E5M2".into() } else { name.into() };
        Attribute::Type(Box::new(Type::Scalar(Scalar::Float(name))))
    };
    let parameters = vec![
        ("lhs_precision_type".into(), ty(left)),
        ("rhs_precision_type".into(), ty(right)),
        ("accumulation_type".into(), ty(sum)),
        ("lhs_component_count".into(), Attribute::i64(1)),
        ("rhs_component_count".into(), Attribute::i64(1)),
        ("num_primitive_operations".into(), Attribute::i64(*products)),
        ("allow_imprecise_accumulation".into(), Attribute::Bool(*fast)),
    ];
    Some(Attribute::structure("stablehlo", "dot_algorithm", parameters))
}

fn conv(dims: &ConvDims) -> Attribute {
    let (list, int) = (|dims: &[i64]| Attribute::i64s(dims.iter().copied()), Attribute::i64);
    let parameters = vec![
        ("input_batch_dimension".into(), int(dims.input_batch)),
        ("input_feature_dimension".into(), int(dims.input_feature)),
        ("input_spatial_dimensions".into(), list(&dims.input_spatial)),
        ("kernel_input_feature_dimension".into(), int(dims.kernel_input_feature)),
        ("kernel_output_feature_dimension".into(), int(dims.kernel_output_feature)),
        ("kernel_spatial_dimensions".into(), list(&dims.kernel_spatial)),
        ("output_batch_dimension".into(), int(dims.output_batch)),
        ("output_feature_dimension".into(), int(dims.output_feature)),
        ("output_spatial_dimensions".into(), list(&dims.output_spatial)),
    ];
    Attribute::structure("stablehlo", "conv", parameters)
}

/// Adds the attributes that are one in HLO.
fn joined(written: &mut Attributes, joined: Joined, value: &AttrValue) {
    let mut add = |name: &str, values: Vec<i64>| {
        written.push((name.into(), Attribute::i64s(values)));
    };
    match (joined, value) {
        (Joined::Slices, AttrValue::Slices(slices)) => {
            add("limit_indices", slices.iter().map(|dim| dim.limit).collect());
            add("start_indices", slices.iter().map(|dim| dim.start).collect());
            add("strides", slices.iter().map(|dim| dim.stride).collect());
        }
        (Joined::Padding, AttrValue::Padding(dims)) => {
            add("edge_padding_high", dims.iter().map(|dim| dim.high).collect());
            add("edge_padding_low", dims.iter().map(|dim| dim.low).collect());
            add("interior_padding", dims.iter().map(|dim| dim.interior).collect());
        }
        (Joined::Window(base, dilation), AttrValue::Window(dims)) => {
            add("window_dimensions", dims.iter().map(|dim| dim.size).collect());
            window(written, dims, base, dilation);
        }
        (Joined::ConvolutionWindow, AttrValue::Window(dims)) => {
            window(written, dims, "lhs_dilation", "rhs_dilation");
            let reversal = dims.iter().map(|dim| dim.reversal).collect();
            let reversal = Attribute::DenseArray(DenseArray::Bool(reversal));
            written.push(("window_reversal".into(), reversal));
        }
        _ => {}
    }
}

fn window(written: &mut Attributes, dims: &[WindowDim], base: &str, dilation: &str) {
    let mut add = |name: &str, values: Vec<i64>| {
        if !name.is_empty() {
            written.push((name.into(), Attribute::i64s(values)));
        }
    };
    add("window_strides", dims.iter().map(|dim| dim.stride).collect());
    add(base, dims.iter().map(|dim| dim.base_dilation).collect());
    add(dilation, dims.iter().map(|dim| dim.window_dilation).collect());
    let padding: Vec<_> = dims.iter().map(|dim| vec![dim.padding_low, dim.padding_high]).collect();
    let padding = if padding.is_empty() {
        super::attributes::dense(super::types::i64_tensor(&[0, 2]), Vec::new())
    } else {
        table(&padding)
    };
    written.push(("padding".into(), padding));
}

/// A string among attributes.
pub(super) fn text(name: &str, value: &str) -> (SmolStr, Attribute) {
    (name.into(), Attribute::text(value))
}
