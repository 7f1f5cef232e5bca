//! Optimisation: passes, targets and their cost model, and the report.

use std::borrow::Cow;
use std::path::Path;

use tilewright_interp::Limits;
use tilewright_ir::{Literal, Module, Verified};
use tilewright_target::Target;

use crate::at_hand;
use crate::error::Error;

pub use tilewright_rewrite::numbers::FloatMode;
pub use tilewright_rewrite::{
    Evaluate, Note, Optimized, Options, PIPELINES, Pass, PassReport, PassSelection, Pipeline,
    Report, StopReason, pipeline,
};

/// The interpreter, for constants.
#[derive(Debug)]
struct Interpreter;

/// The limits for the constants of a module, such that they take seconds, not minutes.
const CONSTANTS: Limits = Limits { max_steps: 4_000_000, max_bytes: 1 << 30 };

impl Evaluate for Interpreter {
    fn evaluate(&self, module: &Verified) -> Option<Literal> {
        tilewright_interp::evaluate(module, &[], &CONSTANTS).ok()
    }
}

/// Optimises a module. The interpreter computes constants unless the options contain another
/// evaluator.
///
/// A module without a rewrite that pays on the target is returned unchanged.
///
/// # Errors
/// Returns an error if a pass or pipeline of that name does not exist, or a pass has a bug.
pub fn optimize(module: Verified, options: &Options) -> Result<Optimized, Error> {
    let mut options = options.clone();
    options.evaluator = options.evaluator.or(Some(&Interpreter));
    Ok(tilewright_rewrite::optimize(module, &options)?)
}

/// Returns the simplest forms of a module before and after its optimisation with these options.
///
/// # Errors
/// If a pass has a bug.
pub fn simplest_forms<'a>(
    before: &Verified,
    optimized: &'a Optimized,
    options: &Options,
) -> Result<[Cow<'a, Module>; 2], Error> {
    let of = |module| Ok::<_, Error>(Cow::Owned(simplest(module, options)?.into_inner()));
    let known = optimized.simplest.as_ref();
    let before = known.map_or_else(|| of(before), |forms| Ok(Cow::Borrowed(&forms.before)))?;
    let after = match known {
        _ if optimized.report.unchanged => before.clone(),
        Some(forms) => Cow::Borrowed(forms.after.as_ref().unwrap_or(&optimized.module)),
        None => of(&optimized.module)?,
    };
    Ok([before, after])
}

/// Returns a module in its simplest form, which a backend finds by itself.
///
/// # Errors
/// If a pass has a bug.
pub fn simplest(module: &Verified, options: &Options) -> Result<Verified, Error> {
    let mut options = options.clone();
    options.passes = PassSelection::Pipeline("cleanup".to_owned());
    (options.observer, options.stop_after) = (None, None);
    Ok(optimize(module.clone(), &options)?.module)
}

/// Returns every pass, in alphabetical order of its name.
pub fn passes() -> impl ExactSizeIterator<Item = &'static dyn Pass> {
    tilewright_rewrite::registry::passes()
}

/// Returns the target of this name: a built-in one, `auto` for the one that the variable `TILEWRIGHT_TARGET` names or
/// else the engine of this machine's devices, or a TOML file.
///
/// ```
/// # fn main() -> Result<(), tilewright::Error> {
/// assert_eq!(tilewright::target("tpu-like")?.lanes, 128);
/// assert!(tilewright::target("abacus").is_err());
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns an error if there is neither, or the file is not a valid target; the message lists
/// the targets, or all errors of the file.
pub fn target(name_or_path: &str) -> Result<Target, Error> {
    if name_or_path == at_hand::AUTO {
        return at_hand::target();
    }
    if Target::builtin_names().any(|name| name == name_or_path) {
        return Ok(Target::builtin(name_or_path)?);
    }
    let path = Path::new(name_or_path);
    let names_a_file = path.exists()
        || path.extension().is_some_and(|extension| extension == "toml")
        || path.components().count() > 1;
    if !names_a_file {
        return Ok(Target::builtin(name_or_path)?);
    }
    let text = std::fs::read_to_string(path).map_err(|error| Error::read(name_or_path, error))?;
    let mut target = Target::from_toml(&text)
        .map_err(|error| Error::TargetFile { name: name_or_path.to_owned(), error })?;
    if Target::builtin_names().any(|name| name == target.name) {
        // Reports name the target, and this one may differ from the built-in one.
        target.name = format!("{} ({name_or_path})", target.name);
    }
    Ok(target)
}

/// Returns a target file that inherits every key from the built-in target of this name, with each
/// key in a comment: its meaning, the values that it takes and the one that it has.
///
/// # Errors
/// If no built-in target has this name; the message lists their names.
pub fn target_template(name: &str) -> Result<String, Error> {
    Ok(Target::template(name)?)
}
