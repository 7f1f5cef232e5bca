//! StableHLO programs as modules, and modules as StableHLO programs.

use std::sync::Arc;

use tilewright_ir::Module;
use tilewright_stablehlo::mlir::Span;
use tilewright_text::{SourceMap, SyntaxErrors};

use crate::error::Error;
use crate::module::{Loaded, Source};

/// Checks whether a text is MLIR's: it begins with an operation, an alias or an attribute of one, not
/// with `HloModule`.
pub(crate) fn looks_like_mlir(text: &str) -> bool {
    let mut rest = text.trim_start();
    while let Some(comment) = rest.strip_prefix("//") {
        rest = comment.split_once('\n').map_or("", |(_, after)| after).trim_start();
    }
    let word = rest.split(|c: char| !(c.is_alphanumeric() || "._".contains(c))).next();
    match word.unwrap_or_default() {
        "" => {
            let quoted = rest.strip_prefix('"').and_then(|rest| rest.split_once('.'));
            let of_dialect = quoted.is_some_and(|(dialect, _)| DIALECTS.contains(&dialect));
            // `#loc = loc(unknown)`, `!t = tensor<2xf32>`
            of_dialect || rest.starts_with(['#', '!'])
        }
        "module" => !rest.contains("HloModule") || rest.starts_with("module @"),
        word => word.split_once('.').is_some_and(|(dialect, _)| DIALECTS.contains(&dialect)),
    }
}

const DIALECTS: [&str; 7] = ["builtin", "func", "stablehlo", "chlo", "sdy", "mhlo", "vhlo"];

/// Reads the module in a StableHLO program in MLIR's text. `name` is used in messages.
///
/// # Errors
/// Returns an error with its place if the text is not MLIR, or HLO has no equivalent of a part of
/// the program.
pub fn load_mlir(name: &str, text: impl Into<Arc<str>>) -> Result<Loaded, Error> {
    let source_text = Source { name: name.to_owned(), text: text.into() };
    let failed = |source_text: Source, span: Span, message: String, hints: [Option<String>; 2]| {
        let (start, end) = (span.start as usize, span.end as usize);
        let errors = SyntaxErrors::one(&source_text.text, start..end, message, hints);
        Error::Syntax { source_text, errors }
    };
    let program = match tilewright_stablehlo::text::parse(&source_text.text) {
        Ok(program) => program,
        Err(error) => {
            return Err(failed(source_text, error.span, error.message, [error.expected, error.help]));
        }
    };
    match tilewright_stablehlo::import(&program) {
        Ok(module) => {
            // The text has no instructions of HLO.
            let source = Source { name: source_text.name, text: Arc::from("") };
            Ok(Loaded { module, source, spans: SourceMap::default(), recording: None })
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
