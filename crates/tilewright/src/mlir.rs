//! StableHLO programs as modules, and modules as StableHLO programs.

use std::sync::Arc;

use tilewright_ir::Module;
use tilewright_stablehlo::mlir::Span;
use tilewright_text::{SourceMap, SyntaxErrors};

use crate::error::Error;
use crate::module::{Loaded, Source};

/// Reads the module in a StableHLO program in MLIR's text. `name` is used in messages.
///
/// # Errors
/// Returns an error with its place if the text is not MLIR, or HLO has no equivalent of a part of
/// the program.
pub fn load_mlir(name: &str, text: Arc<str>) -> Result<Loaded, Error> {
    let source_text = Source { name: name.to_owned(), text };
    let failed = |source_text: Source, span: Span, message: String, hints: [Option<String>; 2]| {
        let (start, end) = (span.start as usize, span.end as usize);
        let errors = SyntaxErrors::one(&source_text.text, start..end, message, hints);
        Error::Syntax { source_text, errors }
    };
    let program = match tilewright_stablehlo::text::parse(&source_text.text) {
        Ok(program) => program,
        Err(error) => {
            return Err(failed(
                source_text,
                error.span,
                error.message,
                [error.expected, error.help],
            ));
        }
    };
    match tilewright_stablehlo::import(&program) {
        Ok(module) => {
            // The text has no instructions of HLO.
            let source = Source { name: source_text.name, text: Arc::from("") };
            Ok(Loaded {
                module,
                source,
                spans: SourceMap::default(),
                recording: None,
                notes: Vec::new(),
            })
        }
        Err(error) => Err(failed(source_text, error.span, error.message, [None, None])),
    }
}

/// Writes a module as a StableHLO program in MLIR's text, which jaxlib reads.
///
/// # Errors
/// Returns an error if StableHLO has no equivalent of a part of the module.
pub fn print_stablehlo(module: &Module) -> Result<String, Error> {
    let program = tilewright_stablehlo::export(module).map_err(Error::Stablehlo)?;
    Ok(tilewright_stablehlo::print(&program))
}
