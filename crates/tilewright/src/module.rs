//! Reading and writing modules.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use tilewright_ir::{Module, Verified, verify};
use tilewright_text::SourceMap;
pub use tilewright_text::{Form, LayoutPadding, PrintOptions};

use crate::error::Error;

/// A text and where it comes from.
#[derive(Clone, Debug)]
pub struct Source {
    /// What to call it in messages: the file's name, `<stdin>`.
    pub name: String,
    /// All of it.
    pub text: Arc<str>,
}

/// A module as it was read.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The module.
    pub module: Verified,
    /// The text it was read from.
    pub source: Source,
    /// Where its instructions stand in the text.
    pub spans: SourceMap,
}

/// Reads the module in a file.
///
/// # Errors
/// If the file cannot be read, is not HLO text, or the module does not verify.
pub fn load(path: impl AsRef<Path>) -> Result<Verified, Error> {
    Ok(load_file(path.as_ref())?.module)
}

/// Reads the module in a text.
///
/// ```
/// # fn main() -> Result<(), tilewright::Error> {
/// let module = tilewright::parse(
///     "HloModule double
///      ENTRY main {
///        x = f32[2,3] parameter(0)
///        ROOT y = f32[2,3] add(x, x)
///      }",
/// )?;
/// assert_eq!(module.instruction_count(), 2);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// If it is not HLO text, or the module does not verify.
pub fn parse(text: &str) -> Result<Verified, Error> {
    Ok(load_text("<text>", text)?.module)
}

/// Reads the module in a file, and keeps its text for messages.
///
/// # Errors
/// If the file cannot be read, is not HLO text, or the module does not verify.
pub fn load_file(path: &Path) -> Result<Loaded, Error> {
    let name = path.display().to_string();
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|mut file| file.read_to_end(&mut bytes));
    read.map_err(|error| Error::read(&*name, error))?;
    load_bytes(&name, bytes)
}

/// Reads the module in bytes that came from somewhere; what they are is told
/// by what they hold.
///
/// # Errors
/// If they are not HLO text, or the module does not verify.
pub fn load_bytes(name: &str, bytes: Vec<u8>) -> Result<Loaded, Error> {
    if looks_like_proto(&bytes) {
        return Err(Error::Proto { name: name.to_owned() });
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        let before = error.as_bytes().get(..offset).unwrap_or_default();
        let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count();
        Error::NotText { name: name.to_owned(), offset, line }
    })?;
    load_text(name, text)
}

/// Reads the module in a text that came from somewhere.
///
/// # Errors
/// If it is not HLO text, or the module does not verify.
pub fn load_text(name: &str, text: impl Into<Arc<str>>) -> Result<Loaded, Error> {
    let source = Source { name: name.to_owned(), text: text.into() };
    let parsed = match tilewright_text::parse(&source.text) {
        Ok(parsed) => parsed,
        Err(errors) => return Err(Error::Syntax { source_text: source, errors }),
    };
    let spans = parsed.spans;
    match verify(parsed.module) {
        Ok(module) => Ok(Loaded { module, source, spans }),
        Err(rejected) => {
            Err(Error::Rejected { source_text: source, spans: Box::new(spans), rejected })
        }
    }
}

/// Whether the bytes are a message that begins with a string, as
/// `HloModuleProto` does with the name, and `HloProto` with the module. Text
/// may begin with the same byte, an empty line, but has no control characters.
fn looks_like_proto(bytes: &[u8]) -> bool {
    const LOOKED_AT: usize = 4096;
    let head = &bytes[..bytes.len().min(LOOKED_AT)];
    let is_control = |byte: &u8| byte.is_ascii_control() && !byte.is_ascii_whitespace();
    head.first() == Some(&0x0a) && head.iter().any(is_control)
}

/// Writes a module as HLO text, which XLA's parser takes back.
///
/// # Errors
/// If something in the module cannot be said in text.
pub fn print(module: &Module) -> Result<String, Error> {
    print_with(module, &PrintOptions::default())
}

/// Writes a module as HLO text of some form.
///
/// # Errors
/// If something in the module cannot be said in that form.
pub fn print_with(module: &Module, options: &PrintOptions) -> Result<String, Error> {
    Ok(tilewright_text::print(module, options)?)
}
