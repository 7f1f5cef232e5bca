//! The forms of a module that are worth measuring.

use rustc_hash::FxHashSet;
use tilewright::ir::Verified;
use tilewright::{Error, FloatMode, Form, LayoutPadding, Optimized, Options, Pass, PrintOptions};

/// The most candidates that are measured beside the original.
pub const MOST_CANDIDATES: usize = 7;

/// A form of a module.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// `default` if the options of the caller made it, `eager`, the name of a stricter numeric mode, or
    /// `without` a pass.
    pub name: String,
    /// How far floats may change in it.
    pub float_mode: FloatMode,
    /// The cost-gated passes that changed it.
    pub passes: Vec<&'static str>,
    /// The modelled cycles of the original in its simplest form, and of this.
    pub cycles: [f64; 2],
    /// The rewritten module.
    pub module: Verified,
}

impl Candidate {
    /// Returns how many times fewer cycles it takes than the original by the model.
    pub fn modelled(&self) -> f64 {
        self.cycles[0] / self.cycles[1]
    }
}

/// The name of what the options make.
const DEFAULT: &str = "default";
/// The name of what they make if every gain counts that the model sees.
const EAGER: &str = "eager";
/// How the name of a form begins that is made without a pass.
const WITHOUT: &str = "without ";

/// Makes the forms of a module to measure beside it: what the options make of it, what they make if the least
/// gain of the target is none, what each stricter numeric mode makes, and what is made without each cost-gated
/// pass that had a part. Forms that are equal are returned once. The first is that of the options, the others
/// follow by their modelled cycles; there are at most [`MOST_CANDIDATES`].
///
/// # Errors
/// Returns an error as [`tilewright::optimize`] does.
pub fn candidates(module: &Verified, options: &Options) -> Result<Vec<Candidate>, Error> {
    let default = candidate(module, options, DEFAULT)?;
    let mut others = Vec::from_iter(candidate(module, options, EAGER)?);
    for mode in FloatMode::ALL.into_iter().filter(|mode| mode.most() < options.float_mode.most()) {
        others.extend(candidate(module, options, mode.most().name())?);
    }
    for pass in default.iter().flat_map(|default| &default.passes) {
        others.extend(candidate(module, options, &format!("{WITHOUT}{pass}"))?);
    }
    others.sort_by(|a, b| b.modelled().total_cmp(&a.modelled()));
    let mut texts = FxHashSet::from_iter([canonical_text(module)?]);
    let mut distinct = Vec::new();
    for candidate in default.into_iter().chain(others) {
        if texts.insert(canonical_text(&candidate.module)?) {
            distinct.push(candidate);
        }
    }
    distinct.truncate(MOST_CANDIDATES);
    Ok(distinct)
}

/// Makes the form of this name; `None` if the module stays as it was, or [`candidates()`] gives no form
/// this name.
///
/// # Errors
/// Returns an error as [`tilewright::optimize`] does.
pub fn candidate(
    module: &Verified,
    options: &Options,
    name: &str,
) -> Result<Option<Candidate>, Error> {
    let Some(options) = named(options, name) else { return Ok(None) };
    let Optimized { module, report, .. } = tilewright::optimize(module.clone(), &options)?;
    if report.unchanged {
        return Ok(None);
    }
    let passes = report.passes.iter().filter(|pass| pass.changes > 0);
    Ok(Some(Candidate {
        name: name.to_owned(),
        float_mode: options.float_mode,
        passes: passes.map(|pass| pass.name).filter(|name| is_cost_gated(name)).collect(),
        cycles: [report.before.cycles, report.after.cycles],
        module,
    }))
}

/// Returns the options that make the form of this name.
fn named(options: &Options, name: &str) -> Option<Options> {
    let mut options = options.clone();
    if let Some(pass) = name.strip_prefix(WITHOUT) {
        options.without.push(tilewright::passes().map(Pass::name).find(|&of| of == pass)?);
    } else if name == EAGER {
        (options.target.least_gain, options.target.least_small_gain) = (1.0, 1.0);
    } else if name != DEFAULT {
        options.float_mode =
            FloatMode::named(name).filter(|mode| mode.most() < options.float_mode.most())?;
    }
    Some(options)
}

fn is_cost_gated(name: &str) -> bool {
    tilewright::passes().any(|pass| pass.name() == name && pass.is_cost_gated())
}

/// Returns a text that equal modules share.
fn canonical_text(module: &Verified) -> Result<String, Error> {
    let form = PrintOptions::new().with_form(Form::Canonical).with_padding(LayoutPadding::Keep);
    tilewright::print(module, &form)
}
