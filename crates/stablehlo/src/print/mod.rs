//! Programs as MLIR text, as MLIR's own printer writes it.

mod aliases;
mod attribute;
mod elements;
mod float;
mod location;
mod names;
mod operation;
mod pretty;
mod types;

use crate::mlir::{Attribute, Program, Type};

/// The deepest nesting of attributes, types, locations and regions that is written; what is
/// deeper is left out.
const MAX_DEPTH: usize = 512;

/// How a program is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// In the generic form: `"stablehlo.add"(%0, %1) : (..) -> ..`. Otherwise operations have the
    /// pretty forms that MLIR gives them, `stablehlo.add %0, %1 : ..`.
    pub is_generic: bool,
    /// With the origins of operations in the user's program, as far as they are known.
    pub has_locations: bool,
}

impl Default for Style {
    /// The pretty forms with locations.
    fn default() -> Self {
        Self { is_generic: false, has_locations: true }
    }
}

/// Returns a program as text, which MLIR reads back.
pub fn print(program: &Program) -> String {
    print_as(program, Style::default())
}

/// Returns a program as text in a style.
pub fn print_as(program: &Program, style: Style) -> String {
    match style.is_generic {
        true => operation::generic(program, style.has_locations),
        false => pretty::print(program, style.has_locations),
    }
}

/// Returns an attribute as MLIR prints it.
pub fn attribute(attribute: &Attribute) -> String {
    let mut out = String::new();
    attribute::push(&mut out, attribute, 0);
    out
}

/// Returns a type as MLIR prints it.
pub fn ty(ty: &Type) -> String {
    let mut out = String::new();
    types::push(&mut out, ty, 0);
    out
}

/// Writes a list with commas.
fn list<T>(
    out: &mut String,
    items: impl IntoIterator<Item = T>,
    mut each: impl FnMut(&mut String, T),
) {
    for (number, item) in items.into_iter().enumerate() {
        if number > 0 {
            out.push_str(", ");
        }
        each(out, item);
    }
}

/// Writes bytes in quotes.
fn quoted(out: &mut String, bytes: &[u8]) {
    out.push('"');
    for &byte in bytes {
        match byte {
            b'\\' => out.push_str("\\\\"),
            b' '..=b'~' if byte != b'"' => out.push(char::from(byte)),
            _ => out.push_str(&format!("\\{byte:02X}")),
        }
    }
    out.push('"');
}

/// Writes a name, in quotes if it is no plain word.
pub(crate) fn word(out: &mut String, name: &str) {
    let is_plain = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '.'));
    if is_plain { out.push_str(name) } else { quoted(out, name.as_bytes()) }
}
