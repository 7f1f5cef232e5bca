//! Rules: rewrites that consist of a pattern, a condition, a replacement and a law.

use std::fmt;
use std::sync::Arc;

use tilewright_ir::{EditError, InstId, Module, Opcode, Patch, Value};

use super::Pattern;
use super::matcher::{Match, Mismatch, Unmatched, search};
use super::refused::Refused;
use super::replacement::Replacement;
use crate::driver::attempt::{Attempt, attempt_each};
use crate::driver::numbers::{Class, FloatMode};
use crate::driver::reason::{Reason, Refusal};
use crate::driver::simplify::simplify;
use crate::driver::{Context, Pass};

type Replace = dyn Fn(&Match<'_>, &mut Replacement<'_>) -> Option<Value> + Send + Sync;
type Holds = dyn Fn(&Match<'_>) -> bool + Send + Sync;
type ClassOf = dyn Fn(&Match<'_>) -> Option<Class> + Send + Sync;
type Say = dyn Fn(&Match<'_>) -> Option<[String; 2]> + Send + Sync;

/// A rewrite of one expression into another.
///
/// ```
/// use tilewright_rewrite::numbers::Class;
/// use tilewright_rewrite::pattern::{Rule, any, exp, log};
///
/// // log(exp(x)) = x, except for rounding and for an exp(x) that overflows.
/// let rule = Rule::new("log-of-exp", log(exp(any("x"))))
///     .with_law("log(exp(x)) = x")
///     .with_class(Class::FastMath)
///     .replace(|found, _| Some(found.get("x")?.into()));
/// assert_eq!(rule.name(), "log-of-exp");
/// # use tilewright_rewrite::Pass as _;
/// ```
#[derive(Clone)]
pub struct Rule {
    name: &'static str,
    summary: &'static str,
    law: &'static str,
    class: Class,
    class_of: Option<Arc<ClassOf>>,
    always: bool,
    pattern: Pattern,
    conditions: Vec<(&'static str, Arc<Holds>)>,
    replace: Arc<Replace>,
    say: Option<Arc<Say>>,
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rule({}: {})", self.name, self.pattern)
    }
}

impl Rule {
    /// A rule for expressions that match `pattern`. It changes nothing until [`Self::replace`] is
    /// called. By default its class is [`Class::FastMath`], and it is cost-gated.
    pub fn new(name: &'static str, pattern: Pattern) -> Self {
        Self {
            name,
            summary: "",
            law: "",
            class: Class::FastMath,
            class_of: None,
            always: false,
            pattern,
            conditions: Vec::new(),
            replace: Arc::new(|_, _| None),
            say: None,
        }
    }

    /// Sets the line that lists of passes show for the rule. By default they show the law.
    #[must_use]
    pub fn with_summary(self, summary: &'static str) -> Self {
        Self { summary, ..self }
    }

    /// Sets the law: the equation that the rule applies, in one line.
    #[must_use]
    pub fn with_law(self, law: &'static str) -> Self {
        Self { law, ..self }
    }

    /// Sets the class: the most that the rule may do to floats.
    #[must_use]
    pub fn with_class(self, class: Class) -> Self {
        Self { class, ..self }
    }

    /// Sets a function that finds how the rule changes floats at a place, if that may be less than
    /// its class: regrouping a sum of integers is exact. If the function returns `None`, or more
    /// than the class, the rule does not apply.
    #[must_use]
    pub fn with_class_of(
        self,
        class_of: impl Fn(&Match<'_>) -> Option<Class> + Send + Sync + 'static,
    ) -> Self {
        Self { class_of: Some(Arc::new(class_of)), ..self }
    }

    /// Sets the texts of notes about a matched expression: one for a rewrite that was made
    /// (`reduced f32[8] first`) and one for a rewrite that was not (`reducing f32[8] first`). By
    /// default notes state the law.
    #[must_use]
    pub fn say(
        self,
        say: impl Fn(&Match<'_>) -> Option<[String; 2]> + Send + Sync + 'static,
    ) -> Self {
        Self { say: Some(Arc::new(say)), ..self }
    }

    /// Applies the rule wherever it matches, whatever it costs, and without notes: for rules that
    /// simplify expressions so that other rules match. A pipeline with cost-gated passes keeps its
    /// changes only where one of these passes had a part in them: see
    /// [`Options::with_pass`](crate::Options::with_pass).
    #[must_use]
    pub fn always(self) -> Self {
        Self { always: true, ..self }
    }

    /// Adds a condition on the matched expression. `says` is the condition in words that follow
    /// "the expression must".
    #[must_use]
    pub fn when(
        mut self,
        says: &'static str,
        holds: impl Fn(&Match<'_>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.conditions.push((says, Arc::new(holds)));
        self
    }

    /// Sets the function that builds the replacement. If it returns `None`, or a condition does not
    /// hold, the operands of commutative ops are tried in the other order; if no order is left,
    /// nothing changes.
    #[must_use]
    pub fn replace(
        self,
        replace: impl Fn(&Match<'_>, &mut Replacement<'_>) -> Option<Value> + Send + Sync + 'static,
    ) -> Self {
        Self { replace: Arc::new(replace), ..self }
    }

    /// Returns the equation that the rule applies; empty if it states none.
    pub fn law(&self) -> &'static str {
        self.law
    }

    /// Returns the pattern that the rule looks for.
    pub fn pattern(&self) -> &Pattern {
        &self.pattern
    }

    /// Returns the edits that the rule makes at an instruction; `None` if it does not apply there.
    pub fn patch(&self, module: &Module, id: InstId, float_mode: FloatMode) -> Option<Patch> {
        let (_, Applied { patch, .. }) = self.search(module, id, float_mode).ok()?;
        Some(patch)
    }

    /// As [`Self::patch`], with the reason if the rule does not apply.
    ///
    /// # Errors
    /// If the rule does not apply: the instruction that does not fit, and why.
    pub fn patch_or_why(
        &self,
        module: &Module,
        id: InstId,
        float_mode: FloatMode,
    ) -> Result<Patch, Mismatch> {
        let found = self.search(module, id, float_mode);
        found
            .map(|(_, Applied { patch, .. })| patch)
            .map_err(|unmatched| unmatched.mismatch(module))
    }

    /// Returns how the rule changes floats at an instruction, if it applies there.
    pub fn class_at(&self, module: &Module, id: InstId) -> Option<Class> {
        let (_, Applied { class, .. }) = self.search(module, id, FloatMode::Fast).ok()?;
        Some(class)
    }

    /// Finds the first way to match an instruction to which the rule applies.
    fn search<'m>(
        &self,
        module: &'m Module,
        id: InstId,
        float_mode: FloatMode,
    ) -> Result<(Match<'m>, Applied), Unmatched<'_>> {
        search(&self.pattern, module, id, &|found| {
            self.applied(found, float_mode).map_err(|refused| match found.unknown() {
                Some(name) => Refused::UnknownName(name.to_owned()),
                None => refused,
            })
        })
    }

    fn applied(&self, found: &Match<'_>, float_mode: FloatMode) -> Result<Applied, Refused> {
        let class = self.class_of.as_ref().map_or(Some(self.class), |class_of| class_of(found));
        let class = class.ok_or(Refused::NoClass)?;
        if class > self.class {
            return Err(Refused::Exceeds(class));
        }
        if !float_mode.allow(class) {
            return Err(Refused::NotAllowed(class));
        }
        if let Some((says, _)) = self.conditions.iter().find(|(_, each)| !each(found)) {
            return Err(Refused::Condition(says));
        }
        let mut new = Replacement::of(found);
        let value = (self.replace)(found, &mut new).ok_or(Refused::NoReplacement)?;
        Ok(Applied { patch: new.replaced_by(value, found)?, class })
    }

    /// Returns why the default pipeline may not make or keep the rewrites of the rule.
    pub fn caveats(&self) -> Vec<Reason> {
        let is_fast = self.class == Class::FastMath && self.class_of.is_none();
        let caveats = [(is_fast, Reason::Class), (self.always, Reason::PutBack)];
        caveats.into_iter().filter(|(holds, _)| *holds).map(|(_, reason)| reason).collect()
    }

    /// The ops of the root of its pattern; if the list is empty, every op is possible.
    pub(super) fn opcodes(&self) -> &[Opcode] {
        self.pattern.opcodes()
    }

    /// Whether the rule is cost-gated.
    pub(super) fn is_gated(&self) -> bool {
        !self.always
    }

    /// Returns the rewrite as an attempt for the driver; an error if the rule itself is at fault.
    pub(super) fn attempt(
        &self,
        module: &Module,
        id: InstId,
        float_mode: FloatMode,
    ) -> Option<Result<Attempt, Refusal>> {
        let (found, Applied { patch, .. }) = match self.search(module, id, float_mode) {
            Ok(found) => found,
            Err(unmatched) => {
                let refused = unmatched.refusal()?;
                let at_fault = matches!(refused, Refused::UnknownName(_) | Refused::Exceeds(_));
                let text = refused.to_string();
                return at_fault.then_some(Err(Refusal { reason: Reason::Rule, text }));
            }
        };
        let said = self.say.as_ref().and_then(|say| say(&found));
        let [done, would] = said.unwrap_or_else(|| {
            let what = if self.law.is_empty() { self.name } else { self.law };
            [format!("applied {what}"), format!("applying {what}")]
        });
        let is_read = |id: &InstId| reads(&patch, *id);
        let frees = found.ops().iter().copied().filter(|id| !is_read(id)).collect();
        Some(Ok(Attempt { patch, frees, done, would }))
    }
}

/// The edits that a rule makes for a match.
struct Applied {
    patch: Patch,
    class: Class,
}

/// Checks whether an instruction of the module stays, because new instructions read it or it is the
/// replacement.
pub(super) fn reads(patch: &Patch, id: InstId) -> bool {
    let operands = patch.planned().iter().flat_map(|planned| &planned.operands);
    let results = patch.replaced().iter().map(|(_, result)| result);
    operands.chain(results).any(|&value| value == Value::Old(id))
}

impl Pass for Rule {
    fn name(&self) -> &'static str {
        self.name
    }

    fn summary(&self) -> &'static str {
        if self.summary.is_empty() { self.law } else { self.summary }
    }

    fn class(&self) -> Class {
        self.class
    }

    fn rules(&self) -> &[Rule] {
        std::slice::from_ref(self)
    }

    fn is_cost_gated(&self) -> bool {
        self.is_gated()
    }

    fn run(&self, module: &mut Module, cx: &mut Context<'_>) -> Result<usize, EditError> {
        if self.always {
            let float_mode = cx.float_mode;
            return simplify(module, |module, id| self.patch(module, id, float_mode));
        }
        attempt_each(self, self.opcodes(), module, cx, |module, id, float_mode| {
            self.attempt(module, id, float_mode)
        })
    }
}
