//! The reasons for which an optimisation fails.

use tilewright_ir::verify::Rejected;
use tilewright_ir::{EditError, similar};

use super::pipelines::PIPELINES;
use super::registry;

/// The reason for which a module could not be optimised.
#[derive(Clone, Debug, thiserror::Error)]
pub enum OptimizeError {
    /// There is no pass of this name.
    #[error("there is no pass `{0}`{hint}; `tilewright passes` lists them", hint = pass_hint(.0))]
    UnknownPass(String),
    /// There is no pipeline of this name.
    #[error("there is no pipeline `{0}`; there are: {names}", names = pipeline_names())]
    UnknownPipeline(String),
    /// A pass was added under the name of another.
    #[error(
        "there are two passes `{0}`; give the added one another name (`Options::without` leaves a \
         built-in pass out)"
    )]
    DuplicatePass(&'static str),
    /// Another thread cancelled the optimisation.
    #[error("the optimisation was cancelled")]
    Cancelled,
    /// A pass asked for an edit that cannot be made.
    #[error("pass `{pass}` failed, which is a bug of it: {error}")]
    Edit {
        /// The pass.
        pass: &'static str,
        /// The edit.
        error: EditError,
    },
    /// A pass made an instruction with operands of different float precision.
    #[error("pass `{pass}` mixed precisions in `{instruction}`, which is a bug of it")]
    Mixed {
        /// The pass.
        pass: &'static str,
        /// The instruction.
        instruction: String,
    },
    /// A pass left a module that does not verify.
    #[error("pass `{pass}` broke the module, which is a bug of it: {rejected}")]
    Broken {
        /// The module with its errors.
        pass: &'static str,
        /// The module with what is wrong.
        rejected: Box<Rejected>,
    },
}

/// Returns the name of the pass that was meant, as a part of a sentence.
fn pass_hint(name: &str) -> String {
    let known = similar(name, registry::passes().map(super::pass::Pass::name));
    known.map(|known| format!(" (did you mean `{known}`?)")).unwrap_or_default()
}

fn pipeline_names() -> String {
    PIPELINES.iter().map(|pipeline| pipeline.name).collect::<Vec<_>>().join(", ")
}
