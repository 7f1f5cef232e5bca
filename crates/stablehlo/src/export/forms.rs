//! Attributes of HLO as attributes of StableHLO, by the forms of their rows.

use smallvec::SmallVec;
use smol_str::SmolStr;
use tilewright_ir::Op;
use tilewright_ir::ops::attr::AttrValue;
use tilewright_ir::ops::dims::{ConvDims, WindowDim};
use tilewright_ir::ops::elementwise::ResultAccuracy;

use super::attributes::{dialect, i64s, int, sized_int, string, table, word};
use crate::mlir::{Attribute, Attributes, DenseArray, Scalar, Type, value_of};
use crate::rows::{Form, Row};

/// Returns the attributes of an op by its row.
pub(super) fn write(row: &Row, op: &Op) -> Attributes {
    let mut values: Vec<(&'static str, AttrValue)> = Vec::new();
    op.for_each_attr(&mut |name, value| values.push((name, value)));
    let mut written = Attributes::new();
    for (name, from, form) in row.attributes {
        let value = values.iter().find(|(known, _)| known == from).map(|(_, value)| value);
        match (form, value) {
            (Form::Slices | Form::Padding | Form::Window(..) | Form::ConvWindow, Some(value)) => {
                grouped(&mut written, *form, value);
            }
            (Form::Window(..), None) => {
                grouped(&mut written, *form, &AttrValue::Window(SmallVec::new()));
            }
            _ => {
                if let Some(attribute) = value.map_or_else(|| missing(*form), |v| single(*form, v))
                {
                    insert(&mut written, name, attribute);
                }
            }
        }
    }
    written
}

/// Adds an attribute; `a.b` is the parameter `b` of the attribute `a`.
fn insert(written: &mut Attributes, name: &str, attribute: Attribute) {
    let Some((outer, inner)) = name.split_once('.') else {
        written.push((name.into(), attribute));
        return;
    };
    // MLIR leaves empty lists out, but not all of them.
    let is_empty =
        matches!(&attribute, Attribute::DenseArray(DenseArray::I64(list)) if list.is_empty());
    if value_of(written, outer).is_none() {
        let name = match outer {
            "dot_dimension_numbers" => "dot",
            "scatter_dimension_numbers" => "scatter",
            _ => "gather",
        };
        written.push((outer.into(), dialect(name, Vec::new())));
    }
    let parent = written.iter_mut().find(|(name, _)| name == outer);
    if let (Some((_, Attribute::Dialect(parent))), false) = (parent, is_empty) {
        parent.parameters.push((inner.into(), attribute));
    }
}

/// Returns what StableHLO writes for an attribute that HLO leaves out.
fn missing(form: Form) -> Option<Attribute> {
    match form {
        // It is written if it is a parameter of an attribute that must be there.
        Form::Dims => Some(i64s([])),
        Form::PlainBool => Some(Attribute::Bool(false)),
        Form::Int => Some(int(1)),
        Form::Groups => Some(table(&[])),
        _ => None,
    }
}

fn single(form: Form, value: &AttrValue) -> Option<Attribute> {
    Some(match (form, value) {
        (Form::Dims, AttrValue::Dims(dims)) => i64s(dims.iter().copied()),
        (Form::Int, AttrValue::Int(value)) => int(*value),
        (Form::Int32, AttrValue::Int(value)) => sized_int(*value, 32),
        (Form::OneDim, AttrValue::Dims(dims)) => int(*dims.first()?),
        (Form::Float, AttrValue::Float(value)) => {
            Attribute::Float(f64::from(value.0), Type::Scalar(Scalar::Float("f32".into())))
        }
        (Form::PlainBool | Form::OptionalBool, AttrValue::Bool(value)) => Attribute::Bool(*value),
        (Form::Unit, AttrValue::Bool(true)) => Attribute::Unit,
        (Form::Word(name), AttrValue::Word(value)) => word(name, value),
        (Form::PrefixedWord(name, prefix), AttrValue::Word(value)) => {
            word(name, &value.strip_prefix(prefix).unwrap_or(value).to_uppercase())
        }
        (Form::Precisions, AttrValue::Words(words)) => {
            let words = words.iter().map(|value| word("precision", &value.to_uppercase()));
            Attribute::Array(words.collect())
        }
        (Form::Groups, AttrValue::ReplicaGroups(groups)) => table(&groups.lists()?),
        (Form::Pairs, AttrValue::Pairs(pairs)) => {
            table(&pairs.iter().map(|&(from, to)| vec![from, to]).collect::<Vec<_>>())
        }
        (Form::Channel, AttrValue::Int(handle)) => {
            // The type of a channel between devices.
            let parameters = vec![("handle".into(), int(*handle)), ("type".into(), int(1))];
            dialect("channel_handle", parameters)
        }
        (Form::Accuracy, AttrValue::Accuracy(accuracy)) => self::accuracy(accuracy)?,
        (Form::Algorithm, AttrValue::Word(name)) => algorithm(name)?,
        (Form::Conv, AttrValue::ConvDims(dims)) => conv(dims),
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
        ("ulps".into(), int(ulps)),
        ("mode".into(), word("result_accuracy_mode", mode)),
    ];
    Some(dialect("result_accuracy", parameters))
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
        ("lhs_component_count".into(), int(1)),
        ("rhs_component_count".into(), int(1)),
        ("num_primitive_operations".into(), int(*products)),
        ("allow_imprecise_accumulation".into(), Attribute::Bool(*fast)),
    ];
    Some(dialect("dot_algorithm", parameters))
}

fn conv(dims: &ConvDims) -> Attribute {
    let list = |dims: &[i64]| i64s(dims.iter().copied());
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
    dialect("conv", parameters)
}

/// Attributes that are several in StableHLO.
fn grouped(written: &mut Attributes, form: Form, value: &AttrValue) {
    let mut add = |name: &str, values: Vec<i64>| written.push((name.into(), i64s(values)));
    match (form, value) {
        (Form::Slices, AttrValue::Slices(slices)) => {
            add("limit_indices", slices.iter().map(|dim| dim.limit).collect());
            add("start_indices", slices.iter().map(|dim| dim.start).collect());
            add("strides", slices.iter().map(|dim| dim.stride).collect());
        }
        (Form::Padding, AttrValue::Padding(dims)) => {
            add("edge_padding_high", dims.iter().map(|dim| dim.high).collect());
            add("edge_padding_low", dims.iter().map(|dim| dim.low).collect());
            add("interior_padding", dims.iter().map(|dim| dim.interior).collect());
        }
        (Form::Window(base, dilation), AttrValue::Window(dims)) => {
            add("window_dimensions", dims.iter().map(|dim| dim.size).collect());
            window(written, dims, base, dilation);
        }
        (Form::ConvWindow, AttrValue::Window(dims)) => {
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
            written.push((name.into(), i64s(values)));
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
    (name.into(), string(value))
}
