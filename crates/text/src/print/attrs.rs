//! The attributes of ops, by the kind of their value; no op is named here.

use tilewright_ir::entity::CompId;
use tilewright_ir::ops::attr::AttrValue;
use tilewright_ir::ops::contract::SparsityConfig;
use tilewright_ir::ops::control::OutputAlias;
use tilewright_ir::ops::dims::{ConvDims, PadDim, SliceDim, WindowDim};
use tilewright_ir::ops::elementwise::ResultAccuracy;
use tilewright_ir::{Literal, Shape};

use super::float::{push_f32, push_f64};
use super::number::{push_i64, push_list};
use super::string::push_quoted;
use super::{devices, literal, shape, sharding};

/// Appends a value; `computation` writes the name of one.
pub(super) fn push(out: &mut String, value: &AttrValue, computation: impl Fn(&mut String, CompId)) {
    match value {
        AttrValue::Int(value) => push_i64(out, *value),
        AttrValue::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        AttrValue::Float(value) => push_f32(out, value.0),
        AttrValue::Str(text) => push_quoted(out, text),
        AttrValue::Word(word) => out.push_str(word),
        AttrValue::Dims(dims) => {
            out.push('{');
            push_list(out, dims, ',');
            out.push('}');
        }
        AttrValue::Computation(id) => computation(out, *id),
        AttrValue::Computations(ids) => {
            out.push('{');
            separated(out, ids, ", ", |out, id| computation(out, *id));
            out.push('}');
        }
        AttrValue::Slices(dims) => push_slices(out, dims),
        AttrValue::Padding(dims) => push_padding(out, dims),
        AttrValue::Window(dims) => push_window(out, dims),
        AttrValue::ConvDims(dims) => push_conv_dims(out, dims),
        AttrValue::Words(words) => {
            out.push('{');
            separated(out, words, ",", |out, word| out.push_str(word));
            out.push('}');
        }
        AttrValue::DimsLists(lists) => push_lists(out, lists),
        AttrValue::Pairs(pairs) => {
            let lists: Vec<[i64; 2]> = pairs.iter().map(|&(a, b)| [a, b]).collect();
            push_lists(out, &lists);
        }
        AttrValue::Sparsity(config) => push_sparsity(out, config),
        AttrValue::Accuracy(accuracy) => push_accuracy(out, accuracy),
        AttrValue::Shape(shape) => shape::push_display(out, shape),
        AttrValue::Shapes(shapes) => {
            out.push('{');
            separated(out, shapes, ", ", shape::push_display);
            out.push('}');
        }
        AttrValue::Literal(value) => push_shaped(out, value),
        AttrValue::Aliasing(aliases) => push_aliasing(out, aliases),
        AttrValue::ReplicaGroups(groups) => devices::push_groups(out, groups),
        AttrValue::Domain(domain) => {
            out.push_str("{kind=");
            push_quoted(out, &domain.kind);
            out.push_str(", entry=");
            sharding::push(out, &domain.entry);
            out.push_str(", exit=");
            sharding::push(out, &domain.exit);
            out.push('}');
        }
    }
}

/// Appends items with something between them.
pub(super) fn separated<T>(
    out: &mut String,
    items: &[T],
    separator: &str,
    mut push: impl FnMut(&mut String, &T),
) {
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            out.push_str(separator);
        }
        push(out, item);
    }
}

/// `{{0,1},{2,3}}`
pub(super) fn push_lists<L: AsRef<[i64]>>(out: &mut String, lists: &[L]) {
    out.push('{');
    separated(out, lists, ",", |out, list| push_index(out, list.as_ref()));
    out.push('}');
}

/// `{0,1}`
pub(super) fn push_index(out: &mut String, index: &[i64]) {
    out.push('{');
    push_list(out, index, ',');
    out.push('}');
}

/// `{{0}: (1, {})}`
fn push_aliasing(out: &mut String, aliases: &[OutputAlias]) {
    out.push('{');
    separated(out, aliases, ", ", |out, alias| {
        push_index(out, &alias.output);
        out.push_str(": (");
        push_i64(out, alias.operand);
        out.push_str(", ");
        push_index(out, &alias.operand_part);
        out.push(')');
    });
    out.push('}');
}

/// A literal with its shape before it, and each element of a tuple with its own.
fn push_shaped(out: &mut String, value: &Literal) {
    if let Literal::Tuple(elements) = value {
        out.push_str("( ");
        separated(out, elements, ", ", push_shaped);
        out.push_str(" )");
        return;
    }
    // Without a layout XLA would take the values for one.
    let shape = match value.shape() {
        Shape::Array(array) if array.rank() > 0 => {
            let layout = array.layout_or_default();
            Shape::from(array.with_layout(Some(layout)))
        }
        other => other,
    };
    shape::push_display(out, &shape);
    out.push(' ');
    // A value with a token was not parsed as a literal.
    let _ = literal::push(out, value, false);
}

fn push_sparsity(out: &mut String, config: &SparsityConfig) {
    out.push('{');
    for (name, sparsity) in [("lhs", &config.lhs), ("rhs", &config.rhs)] {
        let Some(sparsity) = sparsity else { continue };
        if !out.ends_with('{') {
            out.push(' ');
        }
        out.push_str(name);
        out.push_str("={sparsity=");
        push_list(out, &[sparsity.non_zero, sparsity.block_size], 'x');
        out.push_str(" dimension=");
        push_i64(out, sparsity.dimension);
        out.push_str(" stride=");
        push_i64(out, sparsity.stride);
        out.push('}');
    }
    out.push('}');
}

fn push_accuracy(out: &mut String, accuracy: &ResultAccuracy) {
    match accuracy {
        ResultAccuracy::Default => out.push_str("{mode=default}"),
        ResultAccuracy::Highest => out.push_str("{mode=highest}"),
        ResultAccuracy::Tolerance { atol, rtol, ulps } => {
            out.push_str("{tolerance={atol=");
            push_f64(out, atol.0);
            out.push_str(",rtol=");
            push_f64(out, rtol.0);
            out.push_str(",ulps=");
            push_i64(out, *ulps);
            out.push_str("}}");
        }
    }
}

/// XLA writes the strides of all dims or, if all are 1, of none.
fn push_slices(out: &mut String, dims: &[SliceDim]) {
    let strided = dims.iter().any(|dim| dim.stride != 1);
    out.push('{');
    separated(out, dims, ", ", |out, dim| {
        out.push('[');
        push_list(out, &[dim.start, dim.limit], ':');
        if strided {
            out.push(':');
            push_i64(out, dim.stride);
        }
        out.push(']');
    });
    out.push('}');
}

/// XLA writes the interior padding of all dims or, if all are 0, of none.
fn push_padding(out: &mut String, dims: &[PadDim]) {
    let interior = dims.iter().any(|dim| dim.interior != 0);
    separated(out, dims, "x", |out, dim| {
        push_list(out, &[dim.low, dim.high], '_');
        if interior {
            out.push('_');
            push_i64(out, dim.interior);
        }
    });
}

fn push_window(out: &mut String, dims: &[WindowDim]) {
    out.push('{');
    if !dims.is_empty() {
        out.push_str("size=");
        separated(out, dims, "x", |out, dim| push_i64(out, dim.size));
    }
    let mut part = |name: &str, is_default: fn(&WindowDim) -> bool, value: WindowPart| {
        if !dims.iter().all(is_default) {
            out.push_str(name);
            separated(out, dims, "x", value);
        }
    };
    part(" stride=", |dim| dim.stride == 1, |out, dim| push_i64(out, dim.stride));
    part(
        " pad=",
        |dim| dim.padding_low == 0 && dim.padding_high == 0,
        |out, dim| push_list(out, &[dim.padding_low, dim.padding_high], '_'),
    );
    part(" lhs_dilate=", |dim| dim.base_dilation == 1, |out, dim| push_i64(out, dim.base_dilation));
    part(
        " rhs_dilate=",
        |dim| dim.window_dilation == 1,
        |out, dim| push_i64(out, dim.window_dilation),
    );
    part(
        " rhs_reversal=",
        |dim| !dim.reversal,
        |out, dim| out.push(if dim.reversal { '1' } else { '0' }),
    );
    out.push('}');
}

type WindowPart = fn(&mut String, &WindowDim);

/// `b01f_01io->b01f`: the label of each dim, in dim order.
fn push_conv_dims(out: &mut String, dims: &ConvDims) {
    push_labels(out, ('b', dims.input_batch), ('f', dims.input_feature), &dims.input_spatial);
    out.push('_');
    push_labels(
        out,
        ('i', dims.kernel_input_feature),
        ('o', dims.kernel_output_feature),
        &dims.kernel_spatial,
    );
    out.push_str("->");
    push_labels(out, ('b', dims.output_batch), ('f', dims.output_feature), &dims.output_spatial);
}

fn push_labels(out: &mut String, first: (char, i64), second: (char, i64), spatial: &[i64]) {
    let named = spatial.iter().copied().chain([first.1, second.1]);
    let last = named.filter_map(|dim| usize::try_from(dim).ok()).max().unwrap_or(0);
    for dim in 0..=last.max(spatial.len() + 1).min(ConvDims::MAX_RANK - 1) {
        let is_here = |at: i64| usize::try_from(at) == Ok(dim);
        if is_here(first.1) {
            out.push(first.0);
        } else if is_here(second.1) {
            out.push(second.0);
        } else if let Some(number) = spatial.iter().position(|&at| is_here(at)) {
            push_i64(out, number as i64);
        } else {
            // XLA writes a dim without a name this way.
            out.push('?');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smallvec::smallvec;
    use tilewright_ir::ops::attr::Real;

    fn text(value: &AttrValue) -> String {
        let mut out = String::new();
        push(&mut out, value, |out, _| out.push_str("%f"));
        out
    }

    /// The right-hand sides were printed by XLA.
    #[test]
    fn slices_and_padding_write_all_parts_or_none() {
        let slice = |start, limit, stride| SliceDim { start, limit, stride };
        let dense = AttrValue::Slices(smallvec![slice(0, 2, 1), slice(2, 4, 1)]);
        assert_eq!(text(&dense), "{[0:2], [2:4]}");
        let strided = AttrValue::Slices(smallvec![slice(0, 4, 2), slice(2, 4, 1)]);
        assert_eq!(text(&strided), "{[0:4:2], [2:4:1]}");
        let pad = |low, high, interior| PadDim { low, high, interior };
        assert_eq!(text(&AttrValue::Padding(smallvec![pad(1, 0, 0), pad(-1, 0, 0)])), "1_0x-1_0");
        let interior = AttrValue::Padding(smallvec![pad(1, 0, 1), pad(1, 0, 0)]);
        assert_eq!(text(&interior), "1_0_1x1_0_0");
    }

    #[test]
    fn windows_leave_defaults_out() {
        assert_eq!(text(&AttrValue::Window(smallvec![])), "{}");
        let plain = WindowDim::new(3);
        assert_eq!(text(&AttrValue::Window(smallvec![plain, plain])), "{size=3x3}");
        let other = WindowDim {
            size: 2,
            stride: 2,
            padding_low: -1,
            padding_high: 1,
            base_dilation: 2,
            window_dilation: 3,
            reversal: true,
        };
        assert_eq!(
            text(&AttrValue::Window(smallvec![plain, other])),
            "{size=3x2 stride=1x2 pad=0_0x-1_1 lhs_dilate=1x2 rhs_dilate=1x3 rhs_reversal=0x1}"
        );
    }

    #[test]
    fn convolution_labels() {
        let dims = ConvDims {
            input_batch: 0,
            input_feature: 3,
            input_spatial: smallvec![1, 2],
            kernel_input_feature: 2,
            kernel_output_feature: 3,
            kernel_spatial: smallvec![0, 1],
            output_batch: 0,
            output_feature: 1,
            output_spatial: smallvec![3, 2],
        };
        assert_eq!(text(&AttrValue::ConvDims(dims.clone())), "b01f_01io->bf10");
        let sparse = ConvDims {
            input_batch: 5,
            kernel_input_feature: 4,
            output_spatial: smallvec![3, i64::MAX],
            ..dims
        };
        let dots = "?".repeat(ConvDims::MAX_RANK - 4);
        let expected = format!("?01f?b_01?oi->bf?0{dots}");
        assert_eq!(text(&AttrValue::ConvDims(sparse)), expected);
    }

    #[test]
    fn plain_kinds() {
        assert_eq!(text(&AttrValue::Int(-3)), "-3");
        assert_eq!(text(&AttrValue::Bool(true)), "true");
        assert_eq!(text(&AttrValue::Float(Real(0.001))), "0.001");
        assert_eq!(text(&AttrValue::Str("a\"b".into())), r#""a\"b""#);
        assert_eq!(text(&AttrValue::Word("LT".into())), "LT");
        assert_eq!(text(&AttrValue::Dims(smallvec![0, 2])), "{0,2}");
    }
}
