//! Tests of rules on random modules.

use tilewright_rewrite::numbers::{Class, FloatMode};
use tilewright_rewrite::pattern::Rule;
use tilewright_rewrite::{Options, Pass, PassSelection};
use tilewright_target::Target;

use crate::check::{CheckOptions, check};
use crate::error::Error;
use crate::module::{PrintOptions, print};
use crate::pipeline::optimize;

/// The result of testing a rule.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RuleTrial {
    /// Number of modules on which the rule was tested, each an expression that it matches.
    pub tried: usize,
    /// The texts of the first module whose outputs the rule changed by more than its class
    /// allows, before and after the rewrite.
    pub wrong: Option<[String; 2]>,
}

impl RuleTrial {
    /// Whether the rule was tested at all and never changed the outputs.
    pub fn holds(&self) -> bool {
        self.tried > 0 && self.wrong.is_none()
    }
}

/// Tests a rule on small random modules, one for each seed, whose result is an expression that
/// the rule matches. Each module is evaluated before and after the rewrite, on inputs of several
/// kinds. Outputs must be equal bit for bit if the rule is [`Class::Exact`].
///
/// # Errors
/// If a module cannot be rewritten or evaluated.
pub fn try_rule(rule: &Rule, seeds: std::ops::Range<u64>) -> Result<RuleTrial, Error> {
    let passes = PassSelection::list([rule.name()]);
    let options = Options::new(Target::builtin(Target::DEFAULT)?)
        .with_float_mode(FloatMode::Fast)
        .with_passes(passes)
        .with_pass(rule.clone().always());
    let how = CheckOptions::default().with_exact(rule.class() == Class::Exact);
    let mut trial = RuleTrial::default();
    for module in seeds.filter_map(|seed| rule.instance(seed)) {
        let rewritten = optimize(module.clone(), &options)?.module;
        trial.tried += 1;
        if !check(&module, &rewritten, &how)?.equal() {
            let text = |module| print(module, &PrintOptions::default());
            trial.wrong = Some([text(&module)?, text(&rewritten)?]);
            break;
        }
    }
    Ok(trial)
}
