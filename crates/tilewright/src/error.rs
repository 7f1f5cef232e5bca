//! Errors, with messages that say how to fix them.

use std::io;
use std::path::PathBuf;

use tilewright_interp::npz::NpzError;
use tilewright_interp::{EvalError, InputError};
use tilewright_ir::verify::Rejected;
use tilewright_ir::{BuildError, Diagnostic};
#[cfg(any(feature = "native", feature = "simulate"))]
use tilewright_lower::LowerError;
use tilewright_proto::{ProtoError, TextProtoError};
use tilewright_rewrite::OptimizeError;
use tilewright_target::TargetError;
use tilewright_text::render::Renderer;
use tilewright_text::span::{LineIndex, line_column};
use tilewright_text::{LineColumn, PrintError, SourceMap, SyntaxError, SyntaxErrors};

use crate::caret::Caret;
use crate::module::Source;
use crate::report::ProblemSummary;

/// The error of a function of this crate.
///
/// `Display` writes plain text, one line for each problem; [`Error::render`] adds the source
/// lines with carets if there is a source.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or stdin could not be read.
    #[error("cannot read {name}: {message}")]
    Read {
        /// The file.
        name: String,
        /// The problem and its solution.
        message: String,
        /// The error of the operating system.
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
        /// The first invalid byte, from 0.
        offset: usize,
        /// Its line, from 1.
        line: usize,
    },
    /// The bytes are a module in binary form with an error.
    #[error("{name}: {error}")]
    Proto {
        /// The file.
        name: String,
        /// The error.
        error: ProtoError,
    },
    /// The text is that of a proto with an error.
    #[error("{}:{}: {error}", source_text.name, line_column(&source_text.text, error.span.start))]
    TextProto {
        /// The text.
        source_text: Source,
        /// The error.
        error: TextProtoError,
    },
    /// The bytes are a gzip file with an error.
    #[error("{name}: {problem}")]
    Gzip {
        /// The file.
        name: String,
        /// The problem and its solution.
        problem: String,
    },
    /// The bytes are MLIR's bytecode with an error, or not StableHLO.
    #[error("{name}: {message}")]
    Bytecode {
        /// The file.
        name: String,
        /// The problem and its place.
        message: String,
    },
    /// A folder or profile has no module.
    #[error("cannot read {name}: {problem}")]
    NoModule {
        /// The folder or file.
        name: String,
        /// The problem and its solution.
        problem: &'static str,
    },
    /// A folder has several modules of similar size.
    #[error(
        "cannot read {name}: it has several modules before optimisation of similar size; \
         name one of these files in it\n{modules}"
    )]
    Several {
        /// The folder.
        name: String,
        /// The modules, one a line.
        modules: String,
    },
    /// The module cannot be written in binary form.
    #[error("the module cannot be written as proto: {0}")]
    Encode(ProtoError),
    /// The module cannot be written as StableHLO.
    #[error("the module cannot be written as StableHLO: {0}")]
    Stablehlo(String),
    /// A layout has padding, which newer versions of XLA's proto do not have.
    #[error(
        "the layout of `{0}` has padding, which XLA does not read from proto any more; \
         ask to keep it for Tilewright alone, or write text without it"
    )]
    Padding(String),
    /// The output has a format that cannot be written.
    #[error("cannot write {}: {what} output comes with a later version; use a name that ends in .hlo, .txt, .pb or .mlir", path.display())]
    OutputForm {
        /// The file.
        path: PathBuf,
        /// The format that the file name implies.
        what: &'static str,
    },
    /// The text is not HLO.
    #[error("{}: {errors}", source_text.name)]
    Syntax {
        /// The text.
        source_text: Source,
        /// The errors in it.
        errors: SyntaxErrors,
    },
    /// The text is HLO, but its module is not valid.
    #[error("{}: {rejected}", source_text.name)]
    Rejected {
        /// The text.
        source_text: Source,
        /// The positions of its instructions.
        spans: Box<SourceMap>,
        /// The module with its errors.
        rejected: Box<Rejected>,
    },
    /// A module is not a program of one iteration space over row-major arrays.
    #[error("the module is no program for this CPU's kernels: it {0}")]
    NotAProgram(&'static str),
    /// A module could not be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The module cannot be written as text.
    #[error(transparent)]
    Print(#[from] PrintError),
    /// The module could not be optimised.
    #[error(transparent)]
    Optimize(#[from] OptimizeError),
    /// There is no such target.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// A target file is not valid.
    #[error("{name}: {error}")]
    TargetFile {
        /// The file.
        name: String,
        /// The error.
        error: TargetError,
    },
    /// The module could not be evaluated.
    #[error(transparent)]
    Evaluate(#[from] EvalError),
    /// Inputs could not be generated for the module.
    #[error(transparent)]
    Inputs(#[from] InputError),
    /// An `.npz` file could not be read or written.
    #[error("{name}: {error}")]
    Npz {
        /// The file.
        name: String,
        /// The error.
        error: NpzError,
    },
    /// An instruction could not be lowered.
    #[cfg(any(feature = "native", feature = "simulate"))]
    #[error(transparent)]
    Lower(#[from] LowerError),
    /// Two modules have different parameter or result shapes.
    #[error("the modules cannot be compared: {0}")]
    NotComparable(String),
    /// The predicate of a reduction does not hold for the module to reduce.
    #[error(
        "the predicate does not hold for the module itself, as Tilewright prints it; check that \
         the text which `tilewright convert` writes shows the failure"
    )]
    NotKept,
}

impl Error {
    /// Checks whether the request names something that does not exist, rather than the input
    /// being invalid.
    pub fn is_usage(&self) -> bool {
        use OptimizeError::{DuplicatePass, UnknownPass, UnknownPipeline};
        matches!(
            self,
            Self::Optimize(DuplicatePass(_) | UnknownPass(_) | UnknownPipeline(_))
                | Self::Target(TargetError::Unknown { .. })
        )
    }

    /// Checks whether a valid module could not be evaluated, because an op is not supported or
    /// a limit is exceeded.
    pub fn is_evaluation(&self) -> bool {
        match self {
            Self::Inputs(_) => true,
            Self::Evaluate(error) => {
                !matches!(error, EvalError::InputCount { .. } | EvalError::InputShape { .. })
            }
            _ => false,
        }
    }

    /// Returns the name of its kind: `usage`, `evaluation` or `input`.
    pub fn code(&self) -> &'static str {
        match self {
            _ if self.is_usage() => "usage",
            _ if self.is_evaluation() => "evaluation",
            _ => "input",
        }
    }

    /// Returns the place: an instruction, or a file with line and column; `None` if there is no
    /// place.
    pub fn place(&self) -> Option<String> {
        match self {
            Self::Evaluate(error) => error.instruction().map(str::to_owned),
            Self::Syntax { source_text, .. } | Self::Rejected { source_text, .. } => {
                let first = self.problems().into_iter().next()?;
                let (line, column) = first.line.zip(first.column)?;
                Some(format!("{}:{line}:{column}", source_text.name))
            }
            Self::TextProto { source_text, error } => {
                let at = line_column(&source_text.text, error.span.start);
                Some(format!("{}:{at}", source_text.name))
            }
            #[cfg(feature = "simulate")]
            Self::Lower(error) => error.site.instruction.clone(),
            _ => None,
        }
    }

    /// The error of a file that cannot be read.
    pub fn read(name: impl Into<String>, source: io::Error) -> Self {
        let message = match source.kind() {
            io::ErrorKind::NotFound => "there is no such file".to_owned(),
            io::ErrorKind::IsADirectory => "it is a folder; name a file in it".to_owned(),
            io::ErrorKind::PermissionDenied => "its permissions do not allow it".to_owned(),
            _ => source.to_string(),
        };
        Self::Read { name: name.into(), message, source }
    }

    /// Returns the error for people: with the relevant source lines and carets, if there is a
    /// source.
    pub fn render(&self, colours: bool) -> String {
        let renderer = Renderer::new().with_colour(colours);
        match self {
            Self::Syntax { source_text: Source { name, text }, errors } => {
                renderer.syntax_errors(name, text, errors)
            }
            Self::Rejected { source_text: Source { name, text }, spans, rejected } => {
                // A module read from proto has no text.
                let source = (!text.is_empty()).then_some((&**text, &**spans));
                renderer.rejected(name, source, rejected)
            }
            Self::TextProto { source_text: Source { name, text }, error } => {
                let TextProtoError { span, message, help } = error;
                Caret { name, text, span: span.clone(), message, help }.draw()
            }
            Self::Build(BuildError::Rejected(rejected)) => {
                renderer.rejected(&rejected.module.name, None, rejected)
            }
            _ => format!("error: {self}\n"),
        }
    }

    /// Returns all errors of a module, with line and column if they are known.
    pub fn problems(&self) -> Vec<ProblemSummary> {
        match self {
            Self::Syntax { errors, .. } => errors.errors().iter().map(syntax_problem).collect(),
            Self::Rejected { source_text, spans, rejected } => {
                let lines = LineIndex::new(&source_text.text);
                verifier_problems(rejected, |found| {
                    spans.place(found.place).map(|span| lines.at(span.range().start))
                })
            }
            Self::TextProto { source_text, error } => {
                let LineColumn { line, column } = line_column(&source_text.text, error.span.start);
                let (line, column) = (Some(line), Some(column));
                let message = format!("{}; {}", error.message, error.help);
                vec![ProblemSummary { code: None, line, column, message }]
            }
            Self::Build(BuildError::Rejected(rejected)) => verifier_problems(rejected, |_| None),
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

fn verifier_problems(
    rejected: &Rejected,
    place: impl Fn(&Diagnostic) -> Option<LineColumn>,
) -> Vec<ProblemSummary> {
    let problem = |found: &Diagnostic| {
        let at = place(found);
        ProblemSummary {
            code: Some(found.code.to_string()),
            line: at.map(|at| at.line),
            column: at.map(|at| at.column),
            message: found.message.clone(),
        }
    };
    let note = rejected.note().map(unplaced);
    rejected.diagnostics.iter().map(problem).chain(note).collect()
}
