//! The words of a picture: titles, shapes, sizes.

use std::fmt::Write as _;

use tilewright::ir::ops::attr::AttrValue;
use tilewright::ir::reducer::Reducer;
use tilewright::ir::{ArrayShape, CompId, InstId, Module, Op, Opcode, Shape};

/// The longest title, shape or line in characters.
const LONGEST: usize = 56;

/// Attributes that a title leaves out: they say little about what is computed.
const LEFT_OUT: [&str; 12] = [
    "operand_precision",
    "use_global_device_ids",
    "channel_id",
    "indices_are_sorted",
    "unique_indices",
    "is_stable",
    "algorithm",
    "api_version",
    "custom_call_has_side_effect",
    "operand_layout_constraints",
    "async_execution_thread",
    "number",
];

/// Cuts a text that does not fit a line.
pub(crate) fn cut(text: &str) -> String {
    cut_at(text, LONGEST)
}

/// Cuts a text after a number of characters.
pub(crate) fn cut_at(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or(text)),
    }
}

/// Returns a number of cycles, in thousands or millions if it is large.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "less than 10,000")]
pub(crate) fn cycles(cycles: f64) -> String {
    let (scaled, unit) = match cycles {
        c if c >= 1e9 => (c / 1e9, "G"),
        c if c >= 1e6 => (c / 1e6, "M"),
        c if c >= 1e4 => (c / 1e3, "k"),
        c => return tilewright::report::counted(c.round() as usize, "cycle"),
    };
    format!("{scaled:.1}{unit} cycles")
}

/// Returns a time in milliseconds, or in microseconds if it is short.
pub(crate) fn milliseconds(ms: f64) -> String {
    match ms {
        ms if ms >= 100.0 => format!("{ms:.0} ms"),
        ms if ms >= 0.1 => format!("{ms:.2} ms"),
        ms => format!("{:.1} µs", ms * 1000.0),
    }
}

/// Returns a shape, with a layout where that is not row major; tuples are cut.
pub(crate) fn shape(shape: &Shape) -> String {
    match shape {
        Shape::Array(array) => cut(&plain(array).to_string()),
        Shape::Tuple(elements) => tuple(elements),
        other => cut(&other.to_string()),
    }
}

/// Returns an array shape without a layout that says nothing.
fn plain(array: &ArrayShape) -> ArrayShape {
    match &array.layout {
        Some(layout) if layout.is_default() => array.without_layout(),
        Some(_) | None => array.clone(),
    }
}

fn tuple(elements: &[Shape]) -> String {
    let mut text = String::from("(");
    for (index, element) in elements.iter().enumerate() {
        let element = match element {
            Shape::Array(array) => plain(array).to_string(),
            other => cut_at(&other.to_string(), 20),
        };
        if index > 0 && text.chars().count() + element.chars().count() > LONGEST - 16 {
            let _ = write!(text, ", … {} in all)", elements.len());
            return text;
        }
        text += if index > 0 { ", " } else { "" };
        text += &element;
    }
    text.push(')');
    cut(&text)
}

/// Returns the value of a constant, as in HLO text.
pub(crate) fn constant(module: &Module, id: InstId) -> String {
    let text = tilewright::text::print_instruction(module, id);
    let value = text.split_once("constant(").map_or("", |(_, rest)| rest);
    let value = value.rsplit_once(')').map_or(value, |(value, _)| value);
    cut_at(&value.split_whitespace().collect::<Vec<_>>().join(" "), 24)
}

/// Returns the name of what a computation computes, if it is a known reducer or a single op of its
/// parameters, such as the comparison of a sort.
pub(crate) fn reducer(module: &Module, computation: CompId) -> Option<String> {
    match Reducer::of(module, computation) {
        Some(Reducer::Each(monoids)) => {
            let names: Vec<&str> = monoids.iter().map(|monoid| monoid.opcode.name()).collect();
            Some(names.join(", "))
        }
        Some(Reducer::ArgExtremum(extremum)) => {
            Some(if extremum.greatest { "argmax" } else { "argmin" }.to_owned())
        }
        None => {
            let root = module.computation(computation).root()?;
            let is_parameter = |&id: &InstId| module.opcode(id) == Opcode::Parameter;
            let is_one = module.opcode(root).is_elementwise()
                && module.called(root).is_empty()
                && module.operands(root).iter().all(is_parameter);
            is_one.then(|| title(module, root))
        }
    }
}

/// Returns the op with what it combines elements with and its most important attributes:
/// `reduce add {1,2}`.
pub(crate) fn title(module: &Module, id: InstId) -> String {
    let op = module.op(id);
    let mut title = op.opcode().name().to_owned();
    if let Op::CustomCall(attrs) = op {
        let _ = write!(title, " {}", attrs.custom_call_target);
    }
    op.for_each_computation(&mut |computation| {
        if !crate::build::is_boxed(module, op.opcode(), computation)
            && let Some(name) = reducer(module, computation)
        {
            let _ = write!(title, " {name}");
        }
    });
    op.for_each_attr(&mut |name, value| push_attribute(&mut title, module, name, &value));
    cut(&title)
}

fn push_attribute(title: &mut String, module: &Module, name: &str, value: &AttrValue) {
    let is_computation = matches!(value, AttrValue::Computation(_) | AttrValue::Computations(_));
    if is_computation || LEFT_OUT.contains(&name) || name == "custom_call_target" {
        return;
    }
    let text = cut_at(&tilewright::text::print_attribute(module, value), 36);
    if text == "{}" && name != "dimensions" {
        return;
    }
    let known = ["dimensions", "direction", "kind", "index", "dim_labels", "slice"];
    if known.contains(&name) {
        let _ = write!(title, " {text}");
    } else {
        let short = name.replace("_dims", "").replace("contracting", "contract");
        let _ = write!(title, " {short}={text}");
    }
}

#[cfg(test)]
mod tests {
    use super::{cut_at, cycles, milliseconds};

    #[test]
    fn large_counts_have_a_unit() {
        let counts = [0.0, 1.0, 9_999.0, 10_000.0, 2_345_678.0, 3e9];
        let shown =
            ["0 cycles", "1 cycle", "9999 cycles", "10.0k cycles", "2.3M cycles", "3.0G cycles"];
        assert_eq!(counts.map(cycles), shown);
        assert_eq!([0.0123, 0.5, 123.4].map(milliseconds), ["12.3 µs", "0.50 ms", "123 ms"]);
    }

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!((cut_at("äöü", 3), cut_at("äöü", 2)), ("äöü".to_owned(), "äö…".to_owned()));
    }
}
