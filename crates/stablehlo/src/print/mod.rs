//! Programs as MLIR text, in the generic form: `"stablehlo.add"(%0, %1) : (..) -> ..`.

mod attribute;
mod elements;
mod location;
mod operation;
mod types;

use crate::mlir::{Attribute, Program, Type};

/// The deepest nesting of attributes, types, locations and regions that is written; what is
/// deeper is left out.
const MAX_DEPTH: usize = 512;

/// Returns a program as text, which MLIR reads back.
pub fn print(program: &Program) -> String {
    let mut printer = Printer { out: String::new(), program };
    printer.operation(&program.module, 0);
    printer.out
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

/// The text so far.
struct Printer<'p> {
    out: String,
    program: &'p Program,
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
            b'"' | b'\\' => {
                out.push('\\');
                out.push(char::from(byte));
            }
            b' '..=b'~' => out.push(char::from(byte)),
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
