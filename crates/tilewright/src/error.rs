//! What can go wrong, said so that somebody can put it right.

use std::io;
use std::path::PathBuf;

use tilewright_interp::npz::NpzError;
use tilewright_interp::{EvalError, InputError};
use tilewright_ir::Diagnostic;
use tilewright_ir::verify::Rejected;
use tilewright_lower::LowerError;
use tilewright_proto::ProtoError;
use tilewright_rewrite::OptimizeError;
use tilewright_target::TargetError;
use tilewright_text::render::Renderer;
use tilewright_text::span::LineIndex;
use tilewright_text::{LineColumn, PrintError, SourceMap, SyntaxError, SyntaxErrors};

use crate::module::Source;
use crate::report::ProblemSummary;

/// Why something could not be done.
///
/// `Display` gives plain text, one line for each thing that is wrong;
/// [`Error::render`] draws the source with carets where there is one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or stdin could not be read.
    #[error("cannot read {name}: {message}")]
    Read {
        /// The file.
        name: String,
        /// What is wrong and what to do.
        message: String,
        /// What the system said.
        source: io::Error,
    },
    /// The bytes are neither text nor a module in binary form.
    #[error(
        "{name}: byte {offset} (line {line}) is not UTF-8, so this is no HLO text; \
         the file may be damaged or of another kind"
    )]
    NotText {
        /// The file.
        name: String,
        /// The first byte that is wrong, from 0.
        offset: usize,
        /// Its line, from 1.
        line: usize,
    },
    /// The bytes are a module in binary form, and something is wrong with it.
    #[error("{name}: {error}")]
    Proto {
        /// The file.
        name: String,
        /// What is wrong.
        error: ProtoError,
    },
    /// The module cannot be written in binary form.
    #[error("the module cannot be written as proto: {0}")]
    Encode(ProtoError),
    /// A layout has padding, which XLA's proto had once.
    #[error(
        "the layout of `{0}` has padding, which XLA does not read from proto any more; \
         ask to keep it for Tilewright alone, or write text without it"
    )]
    Padding(String),
    /// Output in a form that cannot be written yet.
    #[error("cannot write {}: {what} output comes with a later version; use a name that ends in .hlo, .txt or .pb", path.display())]
    OutputForm {
        /// The file.
        path: PathBuf,
        /// The form that its name asks for.
        what: &'static str,
    },
    /// The text is not HLO.
    #[error("{}: {errors}", source_text.name)]
    Syntax {
        /// The text.
        source_text: Source,
        /// What is wrong with it.
        errors: SyntaxErrors,
    },
    /// The text is HLO, but not of a module that makes sense.
    #[error("{}: {rejected}", source_text.name)]
    Rejected {
        /// The text.
        source_text: Source,
        /// Where its instructions stand.
        spans: Box<SourceMap>,
        /// The module, with what is wrong.
        rejected: Box<Rejected>,
    },
    /// The module cannot be written as text.
    #[error(transparent)]
    Print(#[from] PrintError),
    /// The module could not be optimised.
    #[error(transparent)]
    Optimize(#[from] OptimizeError),
    /// There is no such target.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// A target file is wrong.
    #[error("{name}: {error}")]
    TargetFile {
        /// The file.
        name: String,
        /// What is wrong.
        error: TargetError,
    },
    /// The module could not be evaluated.
    #[error(transparent)]
    Evaluate(#[from] EvalError),
    /// No inputs could be made for the module.
    #[error(transparent)]
    Inputs(#[from] InputError),
    /// An `.npz` file could not be read or written.
    #[error("{name}: {error}")]
    Npz {
        /// The file.
        name: String,
        /// What is wrong.
        error: NpzError,
    },
    /// An instruction that cannot be lowered.
    #[error(transparent)]
    Lower(#[from] LowerError),
    /// Two modules that do not take or give the same values.
    #[error("the modules cannot be compared: {0}")]
    NotComparable(String),
}

impl Error {
    /// Whether what was asked for does not exist, rather than that the input
    /// is bad.
    pub fn is_usage(&self) -> bool {
        use OptimizeError::{UnknownPass, UnknownPipeline};
        matches!(
            self,
            Self::Optimize(UnknownPass(_) | UnknownPipeline(_))
                | Self::Target(TargetError::Unknown { .. })
        )
    }

    /// Whether a module is in order and could not be evaluated all the same: it has
    /// something that has no evaluation here, or does not fit the limits.
    pub fn is_evaluation(&self) -> bool {
        match self {
            Self::Inputs(_) => true,
            Self::Evaluate(error) => {
                !matches!(error, EvalError::InputCount { .. } | EvalError::InputShape { .. })
            }
            _ => false,
        }
    }

    /// The word for its kind: `usage`, `evaluation`, or else `input`.
    pub fn code(&self) -> &'static str {
        match self {
            _ if self.is_usage() => "usage",
            _ if self.is_evaluation() => "evaluation",
            _ => "input",
        }
    }

    /// Where it is: an instruction, or a file with line and column; `None` where that
    /// is nowhere.
    pub fn place(&self) -> Option<String> {
        match self {
            Self::Evaluate(error) => error.instruction().map(str::to_owned),
            Self::Syntax { source_text, .. } | Self::Rejected { source_text, .. } => {
                let first = self.problems().into_iter().next()?;
                let (line, column) = first.line.zip(first.column)?;
                Some(format!("{}:{line}:{column}", source_text.name))
            }
            Self::Lower(error) => error.site.instruction.clone(),
            _ => None,
        }
    }

    /// A file that cannot be read.
    pub fn read(name: impl Into<String>, source: io::Error) -> Self {
        let message = match source.kind() {
            io::ErrorKind::NotFound => "there is no such file".to_owned(),
            io::ErrorKind::IsADirectory => "it is a folder; name a file in it".to_owned(),
            io::ErrorKind::PermissionDenied => "its permissions do not allow it".to_owned(),
            _ => source.to_string(),
        };
        Self::Read { name: name.into(), message, source }
    }

    /// The error as people read it: with the lines of the source that are
    /// meant and carets under them, where there are any.
    pub fn render(&self, colours: bool) -> String {
        let renderer = Renderer::new().with_colour(colours);
        match self {
            Self::Syntax { source_text: Source { name, text }, errors } => {
                renderer.syntax_errors(name, text, errors)
            }
            Self::Rejected { source_text: Source { name, text }, spans, rejected } => {
                // What was read from proto has no text.
                let source = (!text.is_empty()).then_some((&**text, &**spans));
                renderer.rejected(name, source, rejected)
            }
            _ => format!("error: {self}\n"),
        }
    }

    /// Everything that is wrong with a module, with line and column where they
    /// are known.
    pub fn problems(&self) -> Vec<ProblemSummary> {
        match self {
            Self::Syntax { errors, .. } => errors.errors().iter().map(syntax_problem).collect(),
            Self::Rejected { source_text, spans, rejected } => {
                let lines = LineIndex::new(&source_text.text);
                let problem = |found| verifier_problem(found, &lines, spans);
                let note = rejected.note().map(unplaced);
                rejected.diagnostics.iter().map(problem).chain(note).collect()
            }
            _ => vec![unplaced(self.to_string())],
        }
    }
}

fn syntax_problem(error: &SyntaxError) -> ProblemSummary {
    let LineColumn { line, column } = error.at;
    let mut message = error.message.clone();
    if let Some(expected) = &error.expected {
        message += "; expected ";
        message += expected;
    }
    ProblemSummary { code: None, line: Some(line), column: Some(column), message }
}

fn unplaced(message: String) -> ProblemSummary {
    ProblemSummary { code: None, line: None, column: None, message }
}

fn verifier_problem(
    found: &Diagnostic,
    lines: &LineIndex<'_>,
    spans: &SourceMap,
) -> ProblemSummary {
    let at = spans.place(found.place).map(|span| lines.at(span.range().start));
    ProblemSummary {
        code: Some(found.code.to_string()),
        line: at.map(|at| at.line),
        column: at.map(|at| at.column),
        message: found.message.clone(),
    }
}
