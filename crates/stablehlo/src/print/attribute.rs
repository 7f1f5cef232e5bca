//! Attributes as text.

use smol_str::SmolStr;

use super::{MAX_DEPTH, elements, list, location, quoted, types, word};
use crate::dialect;
use crate::mlir::{
    Attribute, Attributes, DenseArray, DialectAttribute, Scalar, Sign, Type, value_of,
};

/// Writes an attribute.
pub(super) fn push(out: &mut String, attribute: &Attribute, depth: usize) {
    if depth > MAX_DEPTH {
        out.push_str("unit");
        return;
    }
    match attribute {
        Attribute::Unit => out.push_str("unit"),
        Attribute::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Attribute::Integer(value, ty) => {
            out.push_str(&value.to_string());
            typed(out, ty, depth);
        }
        Attribute::Float(value, ty) => {
            elements::float(out, *value, ty);
            typed(out, ty, depth);
        }
        Attribute::String(bytes) => quoted(out, bytes),
        Attribute::Symbol(path) => {
            for (number, name) in path.iter().enumerate() {
                out.push_str(if number > 0 { "::@" } else { "@" });
                word(out, name);
            }
        }
        Attribute::Array(values) => {
            out.push('[');
            list(out, values, |out, value| element(out, value, depth + 1));
            out.push(']');
        }
        Attribute::DenseArray(array) => dense_array(out, array),
        Attribute::Dense(dense) => elements::dense(out, dense, depth),
        Attribute::Resource { name, bytes, ty } => {
            elements::resource(out, name, bytes.as_deref(), ty, depth);
        }
        Attribute::Dictionary(entries) => dictionary(out, entries, depth),
        Attribute::Type(ty) => types::push(out, ty, depth + 1),
        Attribute::Location(location) => location::push(out, location, depth + 1),
        Attribute::Dialect(attribute) => dialect(out, attribute, depth),
        Attribute::Opaque { dialect, text } => {
            out.push('#');
            out.push_str(dialect);
            let name = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let after = name.and_then(|end| text.get(end..)).unwrap_or_default();
            match (text.starts_with('<'), after.is_empty() || after.starts_with('<')) {
                (true, _) => out.push_str(text),
                (_, true) => out.push_str(&format!(".{text}")),
                // `#sdy<manual_axes{"x"}>`
                _ => out.push_str(&format!("<{text}>")),
            }
        }
    }
}

fn typed(out: &mut String, ty: &Type, depth: usize) {
    if *ty != Type::None {
        out.push_str(" : ");
        types::push(out, ty, depth + 1);
    }
}

/// An element of a list leaves out the type if it is `i64` or `f64`.
fn element(out: &mut String, attribute: &Attribute, depth: usize) {
    match attribute {
        Attribute::Integer(
            value,
            Type::Scalar(Scalar::Integer { bits: 64, sign: Sign::Signless }),
        ) => out.push_str(&value.to_string()),
        Attribute::Float(value, ty @ Type::Scalar(Scalar::Float(name))) if name == "f64" => {
            elements::float(out, *value, ty);
        }
        other => push(out, other, depth),
    }
}

/// Writes attributes in braces.
pub(super) fn dictionary(out: &mut String, entries: &Attributes, depth: usize) {
    // MLIR sorts them by their names.
    let mut sorted: Vec<_> = entries.iter().collect();
    sorted.sort_by(|(a, _), (b, _)| a.cmp(b));
    dictionary_of(out, &sorted, depth);
}

/// Writes attributes in braces in this order.
pub(super) fn dictionary_of(out: &mut String, entries: &[&(SmolStr, Attribute)], depth: usize) {
    out.push('{');
    list(out, entries, |out, (name, value)| {
        word(out, name);
        if *value != Attribute::Unit {
            out.push_str(" = ");
            push(out, value, depth + 1);
        }
    });
    out.push('}');
}

fn dense_array(out: &mut String, array: &DenseArray) {
    let start = |out: &mut String, ty: &str, is_empty: bool| {
        out.push_str("array<");
        out.push_str(ty);
        if !is_empty {
            out.push_str(": ");
        }
    };
    match array {
        DenseArray::Bool(values) => {
            start(out, "i1", values.is_empty());
            list(out, values, |out, value| out.push_str(if *value { "true" } else { "false" }));
        }
        DenseArray::Integer(bits, values) => {
            start(out, &format!("i{bits}"), values.is_empty());
            list(out, values, |out, value| out.push_str(&value.to_string()));
        }
        DenseArray::I64(values) => {
            start(out, "i64", values.is_empty());
            list(out, values, |out, value| out.push_str(&value.to_string()));
        }
        DenseArray::F32(values) => {
            start(out, "f32", values.is_empty());
            let ty = Type::Scalar(Scalar::Float("f32".into()));
            list(out, values, |out, value| elements::float(out, f64::from(*value), &ty));
        }
        DenseArray::F64(values) => {
            start(out, "f64", values.is_empty());
            let ty = Type::Scalar(Scalar::Float("f64".into()));
            list(out, values, |out, value| elements::float(out, *value, &ty));
        }
    }
    out.push('>');
}

/// Writes an attribute of a dialect with its parameters.
fn dialect(out: &mut String, attribute: &DialectAttribute, depth: usize) {
    let DialectAttribute { dialect, name, parameters } = attribute;
    match (name.as_str(), parameters.as_slice()) {
        ("bounds", [(_, Attribute::DenseArray(DenseArray::I64(bounds)))]) => {
            out.push_str(&format!("#{dialect}.bounds<"));
            list(out, bounds, |out, &bound| match bound {
                i64::MIN => out.push('?'),
                bound => out.push_str(&bound.to_string()),
            });
        }
        ("conv", _) => {
            out.push_str(&format!("#{dialect}.conv<"));
            super::elements::convolution(out, parameters);
        }
        (_, [(value, Attribute::String(bytes))]) if value == "value" => {
            out.push_str(&format!("#{dialect}<{name} {}", String::from_utf8_lossy(bytes)));
        }
        _ => {
            out.push_str(&format!("#{dialect}.{name}<"));
            let said = parameters.iter().filter(|(key, value)| !is_default(name, key, value));
            list(out, said, |out, (name, value)| {
                out.push_str(name);
                out.push_str(" = ");
                parameter(out, value, depth + 1);
            });
        }
    }
    out.push('>');
}

/// Checks whether MLIR leaves a parameter of an attribute out.
fn is_default(attribute: &str, name: &str, value: &Attribute) -> bool {
    let structure = dialect::structure(|known| known.name == attribute);
    let mut parameters = structure.iter().flat_map(|structure| structure.parameters);
    parameters.any(|parameter| parameter.name == name && parameter.field.leaves_out(value))
}

/// A parameter is written without its type.
fn parameter(out: &mut String, value: &Attribute, depth: usize) {
    match value {
        Attribute::Integer(value, _) => out.push_str(&value.to_string()),
        Attribute::Float(value, ty) => elements::float(out, *value, ty),
        Attribute::DenseArray(DenseArray::I64(values)) => {
            out.push('[');
            list(out, values, |out, value| out.push_str(&value.to_string()));
            out.push(']');
        }
        // An enumeration within another attribute: `#stablehlo.result_accuracy_mode<HIGHEST>`.
        Attribute::Dialect(inner) if inner.name == "result_accuracy_mode" => {
            let value = value_of(&inner.parameters, "value");
            let Some(Attribute::String(bytes)) = value else { return };
            out.push_str(&format!("#{}.{}<", inner.dialect, inner.name));
            out.push_str(&String::from_utf8_lossy(bytes));
            out.push('>');
        }
        other => push(out, other, depth),
    }
}
