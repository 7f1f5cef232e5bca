//! The error of the export.

use smol_str::SmolStr;

/// Why a module could not be converted to StableHLO: the first instruction that StableHLO cannot say,
/// and the others.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("instruction `{instruction}`: {message}{}", listed(others))]
pub struct ExportError {
    /// The kind of the error.
    pub kind: ExportErrorKind,
    /// The name of the instruction.
    pub instruction: SmolStr,
    /// The error and what to do.
    pub message: String,
    /// The errors of other instructions.
    pub others: Vec<ExportError>,
}

/// The most errors that are written out.
const MOST_LISTED: usize = 10;

fn listed(others: &[ExportError]) -> String {
    let lines = others.iter().take(MOST_LISTED).map(|other| format!("\n{other}"));
    let more = others.len().saturating_sub(MOST_LISTED);
    let rest = (more > 0).then(|| format!("\nand {more} more"));
    lines.chain(rest).collect()
}

/// The kinds of [`ExportError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExportErrorKind {
    /// StableHLO has no such op, shape or attribute.
    Unsupported,
    /// The module breaks a rule of HLO.
    Invalid,
    /// Calls and regions are nested too deeply.
    TooDeep,
}

/// The result of a step of the export.
pub(super) type Export<T> = Result<T, ExportError>;
