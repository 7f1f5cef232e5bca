//! The exceptions. Their classes are in `python/tilewright/_errors.py`.

use std::fmt::Display;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use tilewright::Error;
use tilewright::EvalError;
use tilewright::OptimizeError;
use tilewright::ir::{BuildError, EditError};
use tilewright::report::ProblemSummary;

use crate::state::{Gone, Unkept};

/// The classes of exceptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExceptionKind {
    /// Any other error.
    Other,
    /// Text or bytes are not HLO.
    Parse,
    /// A module is not valid.
    Verify,
    /// A valid module could not be evaluated.
    Evaluation,
    /// A request does not fit.
    Usage,
    /// A file could not be read or written.
    File,
    /// An object stands for something that is gone.
    Removed,
    /// A rule does not apply.
    Unfit,
}

impl ExceptionKind {
    const fn class(self) -> &'static str {
        match self {
            Self::Other => "TilewrightError",
            Self::Parse => "ParseError",
            Self::Verify => "VerifyError",
            Self::Evaluation => "EvaluationError",
            Self::Usage => "UsageError",
            Self::File => "FileError",
            Self::Removed => "RemovedError",
            Self::Unfit => "DoesNotApply",
        }
    }

    fn of(error: &Error) -> Self {
        match error {
            Error::Syntax { .. }
            | Error::NotText { .. }
            | Error::Proto { .. }
            | Error::TextProto { .. }
            | Error::Gzip { .. }
            | Error::Bytecode { .. } => Self::Parse,
            Error::Rejected { .. }
            | Error::Build(BuildError::Rejected(_))
            | Error::Optimize(OptimizeError::Broken { .. }) => Self::Verify,
            Error::Read { .. } | Error::NoModule { .. } | Error::Several { .. } => Self::File,
            Error::Build(_)
            | Error::NotComparable(_)
            | Error::OutputForm { .. }
            | Error::TargetFile { .. }
            | Error::Evaluate(EvalError::InputCount { .. } | EvalError::InputShape { .. }) => {
                Self::Usage
            }
            _ if error.is_usage() => Self::Usage,
            _ if error.is_evaluation() => Self::Evaluation,
            _ => Self::Other,
        }
    }
}

/// Turns an error of the library into an exception, with its message as the command shows it.
pub(crate) fn raised(error: &Error) -> PyErr {
    let message = error.render(false);
    let problems = match error {
        Error::Optimize(OptimizeError::Broken { rejected, .. }) => {
            Error::Build(BuildError::Rejected(rejected.clone())).problems()
        }
        _ => error.problems(),
    };
    let errno = match error {
        Error::Read { source, .. } => source.raw_os_error(),
        _ => None,
    };
    Python::attach(|py| {
        made(py, ExceptionKind::of(error), message.trim_end(), error.code(), &problems, errno)
            .unwrap_or_else(|failed| failed)
    })
}

/// An exception without a place.
pub(crate) fn plain(kind: ExceptionKind, message: impl Display) -> PyErr {
    let code = match kind {
        ExceptionKind::Usage => "usage",
        ExceptionKind::Evaluation => "evaluation",
        ExceptionKind::Removed => "removed",
        ExceptionKind::Unfit => "unfit",
        ExceptionKind::Other
        | ExceptionKind::Parse
        | ExceptionKind::Verify
        | ExceptionKind::File => "input",
    };
    let message = message.to_string();
    Python::attach(|py| made(py, kind, &message, code, &[], None).unwrap_or_else(|failed| failed))
}

/// The exception of arguments that do not fit.
pub(crate) fn usage(message: impl Display) -> PyErr {
    plain(ExceptionKind::Usage, message)
}

/// The exception of an edit that was refused.
pub(crate) fn refused(error: &EditError) -> PyErr {
    match error {
        EditError::Removed(_) => plain(ExceptionKind::Removed, "the instruction was removed"),
        other => usage(other),
    }
}

/// The exception of a call of the builder that does not fit.
pub(crate) fn unbuilt(error: BuildError) -> PyErr {
    raised(&Error::Build(error))
}

impl From<Gone> for PyErr {
    fn from(gone: Gone) -> Self {
        match gone {
            Gone::Module => plain(
                ExceptionKind::Removed,
                "the module was lent for the call of a rule or pass, which has ended",
            ),
            Gone::Instruction => {
                plain(ExceptionKind::Removed, "the instruction was removed from its module")
            }
            Gone::Computation => {
                plain(ExceptionKind::Removed, "the computation was removed from its module")
            }
            Gone::NotEditing => usage("edit a module within `with module.edit() as e:`"),
            Gone::Editing => usage("the module is being edited; end that edit first"),
        }
    }
}

impl From<Unkept> for PyErr {
    fn from(unkept: Unkept) -> Self {
        match unkept {
            Unkept::Gone(gone) => gone.into(),
            Unkept::Rejected(rejected) => unbuilt(BuildError::Rejected(rejected)),
        }
    }
}

fn made(
    py: Python<'_>,
    kind: ExceptionKind,
    message: &str,
    code: &str,
    problems: &[ProblemSummary],
    errno: Option<i32>,
) -> PyResult<PyErr> {
    let errors = py.import("tilewright._errors")?;
    let diagnostic = errors.getattr("Diagnostic")?;
    let known = problems.iter().filter(|problem| problem.code.is_some() || problem.line.is_some());
    let known = known.map(|ProblemSummary { code, line, column, message }| {
        diagnostic.call1((code.as_deref(), message, *line, *column))
    });
    let known = PyTuple::new(py, known.collect::<PyResult<Vec<_>>>()?)?;
    let first = problems.first();
    let details = PyDict::new(py);
    details.set_item("code", first.and_then(|first| first.code.as_deref()).unwrap_or(code))?;
    details.set_item("line", first.and_then(|first| first.line))?;
    details.set_item("column", first.and_then(|first| first.column))?;
    details.set_item("diagnostics", known)?;
    let exception = errors.getattr(kind.class())?.call((message,), Some(&details))?;
    if kind == ExceptionKind::File {
        exception.setattr("errno", errno)?;
    }
    Ok(PyErr::from_value(exception))
}
