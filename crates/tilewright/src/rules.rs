//! Tests of rules on random modules.

use tilewright_ir::Verified;
use tilewright_ir::verify::verify;
use tilewright_rewrite::numbers::{Class, FloatMode};
use tilewright_rewrite::pattern::Rule;
use tilewright_rewrite::{OptimizeError, Pass, Reason};

use crate::check::{CheckOptions, Within, check};
use crate::error::Error;
use crate::module::{PrintOptions, print};

/// The tolerance for floats after a rewrite of class [`Class::FastMath`] that is outside the
/// contract of the other classes: a few units in the last place of bf16.
const FAST_MATH: Within = Within { relative: 0.03125, absolute: 0.03125 };

/// The result of testing a rule.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RuleTrial {
    /// Number of modules on which the rule was tested, each an expression that it matches.
    pub tried: usize,
    /// The texts of the first module whose outputs the rule changed by more than its class
    /// allows, before and after the rewrite.
    pub wrong: Option<[String; 2]>,
    /// Why the default pipeline may not make or keep the rewrites of the rule.
    pub caveats: Vec<Reason>,
}

impl RuleTrial {
    /// Checks whether the rule was tested at all and never changed the outputs.
    pub fn holds(&self) -> bool {
        self.tried > 0 && self.wrong.is_none()
    }
}

/// Tests a rule on small random modules, one for each seed, whose result is an expression that
/// the rule matches. Each module is evaluated before and after the rewrite of that expression, on
/// inputs of several kinds. What the outputs may differ by depends on the class that the rule
/// states for that very module ([`Rule::class_at`]): nothing for [`Class::Exact`], and the
/// contract of [`check`] for [`Class::Regrouping`] and [`Class::Bounded`]. [`Class::FastMath`]
/// promises no bound: there, each float may also differ by 1/32 of itself and 1/32.
///
/// # Errors
/// Returns an error if a module cannot be rewritten or evaluated.
pub fn try_rule(rule: &Rule, seeds: std::ops::Range<u64>) -> Result<RuleTrial, Error> {
    let mut trial = RuleTrial { caveats: rule.caveats(), ..RuleTrial::default() };
    for module in seeds.filter_map(|seed| rule.instance(seed)) {
        let Some((rewritten, class)) = rewritten(rule, &module)? else { continue };
        trial.tried += 1;
        if !agree(&module, &rewritten, class)? {
            let text = |module| print(module, &PrintOptions::default());
            trial.wrong = Some([text(&module)?, text(&rewritten)?]);
            break;
        }
    }
    Ok(trial)
}

/// Returns a module whose result is replaced as the rule says, and what that does to floats.
fn rewritten(rule: &Rule, module: &Verified) -> Result<Option<(Verified, Class)>, Error> {
    let Some(root) = module.entry().and_then(|entry| module.computation(entry).root()) else {
        return Ok(None);
    };
    let class = rule.class_at(module, root);
    let Some((class, patch)) = class.zip(rule.patch(module, root, FloatMode::Fast)) else {
        return Ok(None);
    };
    let mut rewritten = module.clone().into_inner();
    let pass = rule.name();
    patch.apply(&mut rewritten).map_err(|error| OptimizeError::Edit { pass, error })?;
    let rewritten =
        verify(rewritten).map_err(|rejected| OptimizeError::Broken { pass, rejected })?;
    Ok(Some((rewritten, class)))
}

fn agree(before: &Verified, after: &Verified, class: Class) -> Result<bool, Error> {
    let how = CheckOptions { exact: class == Class::Exact, ..CheckOptions::default() };
    if check(before, after, &how)?.equal() {
        return Ok(true);
    }
    let within = CheckOptions { within: Some(FAST_MATH), ..how };
    Ok(class == Class::FastMath && check(before, after, &within)?.equal())
}
