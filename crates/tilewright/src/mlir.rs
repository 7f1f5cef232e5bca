//! StableHLO programs as modules, and modules as StableHLO programs.

use std::sync::Arc;

use tilewright_ir::{Module, Verified};
use tilewright_stablehlo::bytecode::{self, Format};
use tilewright_stablehlo::export;
use tilewright_stablehlo::mlir::Span;
pub use tilewright_stablehlo::print::Style as MlirStyle;
use tilewright_text::{SourceMap, SyntaxErrors};

use crate::error::Error;
use crate::module::{Loaded, Source};

/// Reads the module in a StableHLO program in MLIR's text. `name` is used in messages.
///
/// # Errors
/// Returns an error with its place if the text is not MLIR, or HLO has no equivalent of a part of
/// the program.
pub fn load_mlir(name: &str, text: Arc<str>) -> Result<Loaded, Error> {
    let failed = |span: Span, message: String, hints: [Option<String>; 2]| {
        let source_text = Source { name: name.to_owned(), text: Arc::clone(&text) };
        let (start, end) = (span.start as usize, span.end as usize);
        let errors = SyntaxErrors::one(&text, start..end, message, hints);
        Error::Syntax { source_text, errors }
    };
    let program = tilewright_stablehlo::text::parse(&text)
        .map_err(|error| failed(error.span, error.message, [error.expected, error.help]))?;
    let module = tilewright_stablehlo::import(&program)
        .map_err(|error| failed(error.span, error.message, [None, None]))?;
    Ok(loaded(name, module))
}

/// Reads the module in a StableHLO program in MLIR's bytecode, such as a portable artifact. `name`
/// is used in messages.
///
/// # Errors
/// Returns an error if the bytes are not MLIR's bytecode, or HLO has no equivalent of a part of the
/// program.
pub fn load_mlir_bytecode(name: &str, bytes: &[u8]) -> Result<Loaded, Error> {
    let failed = |message| Error::Bytecode { name: name.to_owned(), message };
    let program = bytecode::read(bytes).map_err(|error| failed(error.to_string()))?;
    let module = tilewright_stablehlo::import(&program).map_err(|error| {
        failed(format!("{error} (the operation is at byte {})", error.span.start))
    })?;
    Ok(loaded(name, module))
}

/// A module without the text of its instructions.
fn loaded(name: &str, module: Verified) -> Loaded {
    let source = Source { name: name.to_owned(), text: Arc::from("") };
    let (spans, notes) = (SourceMap::default(), Vec::new());
    Loaded { module, source, spans, recording: None, notes, verify_time: None }
}

/// The first bytes of MLIR's bytecode.
const MAGIC: &[u8] = b"ML\xefR";

/// Returns the program in a file that `jax.export` wrote: a vector of bytes of a FlatBuffer, after
/// its length (`jax/_src/export/serialization.fbs`).
pub(crate) fn exported(content: &[u8]) -> Option<&[u8]> {
    let start = content.windows(MAGIC.len()).position(|bytes| bytes == MAGIC)?;
    let length = content.get(start.checked_sub(4)?..start)?;
    let length = u32::from_le_bytes(length.try_into().ok()?);
    content.get(start..start.checked_add(usize::try_from(length).ok()?)?)
}

/// Reads the module in a file that `jax.export` wrote.
pub(crate) fn load_exported(name: &str, content: &[u8]) -> Result<Loaded, Error> {
    load_mlir_bytecode(name, exported(content).unwrap_or_default())
}

/// Writes a module as a StableHLO program in MLIR's text, as MLIR's own printer writes it.
///
/// # Errors
/// Returns an error if StableHLO has no equivalent of a part of the module.
pub fn print_stablehlo(module: &Module, style: MlirStyle) -> Result<String, Error> {
    let program = export(module).map_err(|error| Error::Stablehlo(error.to_string()))?;
    Ok(tilewright_stablehlo::print::print_as(&program, style))
}

/// Writes a module as a portable artifact of StableHLO in MLIR's bytecode, which jaxlib reads from
/// 0.4.35 on.
///
/// # Errors
/// Returns an error if StableHLO has no equivalent of a part of the module.
pub fn encode_stablehlo(module: &Module) -> Result<Vec<u8>, Error> {
    encode_as(module, Format::default())
}

/// Writes a module as StableHLO in MLIR's bytecode with the dialects as they are: for a jaxlib of
/// about the same age as this crate, and with the operations of CHLO, which artifacts lack.
///
/// # Errors
/// Returns an error if StableHLO has no equivalent of a part of the module.
pub fn encode_stablehlo_dialects(module: &Module) -> Result<Vec<u8>, Error> {
    encode_as(module, Format::Plain)
}

fn encode_as(module: &Module, format: Format) -> Result<Vec<u8>, Error> {
    let program = export(module).map_err(|error| Error::Stablehlo(error.to_string()))?;
    let written = bytecode::write(&program, format);
    written.map_err(|error| Error::Stablehlo(error.to_string()))
}
