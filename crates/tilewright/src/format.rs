//! The formats in which modules are read, and how each is told by its content.

use std::sync::Arc;

use crate::error::Error;
use crate::mlir::{exported, load_exported, load_mlir, load_mlir_bytecode};
use crate::module::{Loaded, load_hlo, load_proto, load_text_proto};
use crate::{gzip, xspace};

/// How a format is told from those below it, and what reads it.
struct Format {
    is: fn(&[u8]) -> bool,
    reader: Reader,
}

/// Reads the module in a content; the first argument is the name of the content in messages.
#[derive(Clone, Copy)]
enum Reader {
    Binary(fn(&str, &[u8]) -> Result<Loaded, Error>),
    Text(fn(&str, Arc<str>) -> Result<Loaded, Error>),
}

/// Every format but HLO text, which is what has none of these marks.
///
/// | format | how it is told |
/// |---|---|
/// | gzip | its magic number; the content is told again |
/// | MLIR bytecode | its magic number |
/// | a file of `jax.export` | a FlatBuffer with MLIR bytecode in it |
/// | `XSpace` profile | a plane of metadata |
/// | `HloModuleProto`, `HloProto`, `HloSnapshot`, `HloUnoptimizedSnapshot` | the first field |
/// | MLIR text | an op, alias or attribute at its beginning |
/// | the text format of those protos | the name of the first field |
const FORMATS: [Format; 7] = [
    Format { is: gzip::is_gzip, reader: Reader::Binary(gzip::load) },
    Format { is: is_mlir_bytecode, reader: Reader::Binary(load_mlir_bytecode) },
    Format { is: is_exported, reader: Reader::Binary(load_exported) },
    Format { is: tilewright_proto::looks_like_profile, reader: Reader::Binary(xspace::load) },
    Format { is: tilewright_proto::looks_like_proto, reader: Reader::Binary(load_proto) },
    Format { is: is_mlir_text, reader: Reader::Text(load_mlir) },
    Format { is: is_text_proto, reader: Reader::Text(load_text_proto) },
];

/// Returns what reads a content.
fn reader_of(content: &[u8]) -> Reader {
    let format = FORMATS.iter().find(|format| (format.is)(content));
    format.map_or(Reader::Text(load_hlo), |format| format.reader)
}

/// Reads the module in bytes of any format.
pub(crate) fn read(name: &str, bytes: Vec<u8>) -> Result<Loaded, Error> {
    match reader_of(&bytes) {
        Reader::Binary(load) => load(name, &bytes),
        Reader::Text(load) => load(name, utf8(name, bytes)?.into()),
    }
}

/// Reads the module in a text of any format.
pub(crate) fn read_text(name: &str, text: Arc<str>) -> Result<Loaded, Error> {
    match reader_of(text.as_bytes()) {
        Reader::Text(load) => load(name, text),
        // A text that looks like bytes is damaged HLO.
        Reader::Binary(_) => load_hlo(name, text),
    }
}

fn utf8(name: &str, bytes: Vec<u8>) -> Result<String, Error> {
    String::from_utf8(bytes).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        let before = error.as_bytes().get(..offset).unwrap_or_default();
        let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count();
        Error::NotText { name: name.to_owned(), offset, line }
    })
}

// --- MLIR: its readers belong here

fn is_mlir_bytecode(content: &[u8]) -> bool {
    content.starts_with(b"ML\xefR")
}

/// A FlatBuffer begins with the offset of its root table, which is short here.
fn is_exported(content: &[u8]) -> bool {
    const FARTHEST: u32 = 1 << 12;
    let root = content.first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
    root.is_some_and(|root| (4..FARTHEST).contains(&root)) && exported(content).is_some()
}

/// The names of the ops that a text of MLIR begins with.
const MLIR_OPS: [&[u8]; 7] =
    [b"module", b"builtin.module", b"func.func", b"func", b"sdy.mesh", b"vhlo.func", b"ml_program"];

fn is_mlir_text(content: &[u8]) -> bool {
    let text = past_comments(content);
    let (mark, rest) = match text.split_first() {
        // `#loc = ..`, `!type = ..` and a dictionary of resources. A comment of a text proto
        // has `#`, too.
        Some((b'#' | b'!', rest)) => return is_alias(rest),
        Some((b'{', rest)) => return rest.starts_with(b"-#"),
        Some((b'"', rest)) => (Some(b'"'), rest),
        _ => (None, text),
    };
    MLIR_OPS.iter().filter_map(|op| rest.strip_prefix(*op)).any(|rest| match (mark, rest.first()) {
        (Some(mark), next) => next == Some(&mark),
        (None, next) => next.is_some_and(|byte| byte.is_ascii_whitespace() || b"@{".contains(byte)),
    })
}

/// Checks whether a text goes on as the name of an alias and an equals sign.
fn is_alias(text: &[u8]) -> bool {
    let is_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.$-".contains(byte);
    let length = text.iter().position(|byte| !is_of_name(byte)).unwrap_or(text.len());
    length > 0 && text.get(length..).is_some_and(|rest| rest.trim_ascii_start().starts_with(b"="))
}

/// Returns a text without the comments of MLIR that it begins with.
fn past_comments(text: &[u8]) -> &[u8] {
    let mut text = text.trim_ascii_start();
    while text.starts_with(b"//") {
        let length = text.iter().position(|&byte| byte == b'\n').unwrap_or(text.len());
        text = text.get(length..).unwrap_or_default().trim_ascii_start();
    }
    text
}

fn is_text_proto(content: &[u8]) -> bool {
    // A comment may stand before the first field.
    const LOOKED_AT: usize = 1 << 16;
    let head = content.get(..LOOKED_AT).unwrap_or(content);
    let valid = head.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    tilewright_proto::looks_like_text_proto(valid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mlir_is_told_from_hlo_and_from_text_protos() {
        let mlir = [
            "module @jit_f {\n}",
            "module {",
            "// a comment\n\nmodule attributes {} {",
            "#loc = loc(unknown)\nmodule",
            "#map0 = affine_map<(d0) -> (d0)>",
            "!t = tensor<2xf32>",
            "\"builtin.module\"() ({",
            "func.func @main() {",
            "func.func\n@main() {",
            "{-# dialect_resources: {} #-}",
        ];
        for text in mlir {
            assert!(is_mlir_text(text.as_bytes()), "{text}");
        }
        let others = [
            "HloModule module\n",
            "module_0 {\n  ROOT x = f32[] parameter(0)\n}",
            "# name = 3\nname: \"f\"",
            "#\nname: \"f\"",
            "// module\nHloModule f",
            "// module",
            "functor (x: f32[]) -> f32[] {",
            "\"module",
            "#",
            "",
        ];
        for text in others {
            assert!(!is_mlir_text(text.as_bytes()), "{text}");
        }
    }
}
