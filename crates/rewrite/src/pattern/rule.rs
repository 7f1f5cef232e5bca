//! A rewrite as a pattern, a condition, a replacement and the law that makes them equal.

use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;
use tilewright_ir::{EditError, InstId, Module, Opcode, Patch, Value};

use super::matcher::{Match, Mismatch};
use super::replacement::Replacement;
use super::{Operands, Pattern};
use crate::driver::attempt::{Attempt, attempt_each};
use crate::driver::numbers::{Class, FloatMode};
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
/// // log(exp(x)) = x, but for the rounding of both and for what overflows.
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
    /// A rule that replaces nothing yet. It is [`Class::FastMath`] and gated by cost, unless it
    /// says otherwise.
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

    /// One line on what it does, for lists of passes. Without it, these show the law.
    #[must_use]
    pub fn with_summary(self, summary: &'static str) -> Self {
        Self { summary, ..self }
    }

    /// The equation that it applies, in one line.
    #[must_use]
    pub fn with_law(self, law: &'static str) -> Self {
        Self { law, ..self }
    }

    /// The most that it does to floats.
    #[must_use]
    pub fn with_class(self, class: Class) -> Self {
        Self { class, ..self }
    }

    /// What it does to floats at a place, where that may be less than at most: what adds up
    /// integers in another order is exact. Where that is `None`, the rule does not apply.
    #[must_use]
    pub fn with_class_of(
        self,
        class_of: impl Fn(&Match<'_>) -> Option<Class> + Send + Sync + 'static,
    ) -> Self {
        Self { class_of: Some(Arc::new(class_of)), ..self }
    }

    /// What to say of it at a place: what was done (`reduced f32[8] first`) and what would be
    /// (`reducing f32[8] first`). Without it, notes tell the law.
    #[must_use]
    pub fn say(
        self,
        say: impl Fn(&Match<'_>) -> Option<[String; 2]> + Send + Sync + 'static,
    ) -> Self {
        Self { say: Some(Arc::new(say)), ..self }
    }

    /// Applied wherever it matches, whatever it costs, and without notes: for simpler forms of
    /// what other rules look for.
    #[must_use]
    pub fn always(self) -> Self {
        Self { always: true, ..self }
    }

    /// With a condition on what matches; `says` completes "the expression must ...".
    #[must_use]
    pub fn when(
        mut self,
        says: &'static str,
        holds: impl Fn(&Match<'_>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.conditions.push((says, Arc::new(holds)));
        self
    }

    /// What the matched expression is replaced by. Where that is `None`, nothing changes.
    #[must_use]
    pub fn replace(
        self,
        replace: impl Fn(&Match<'_>, &mut Replacement<'_>) -> Option<Value> + Send + Sync + 'static,
    ) -> Self {
        Self { replace: Arc::new(replace), ..self }
    }

    /// What it looks for.
    pub fn pattern(&self) -> &Pattern {
        &self.pattern
    }

    /// The edits that it makes at an instruction, if it applies there.
    pub fn patch(&self, module: &Module, id: InstId, float_mode: FloatMode) -> Option<Patch> {
        self.applied(&self.pattern.matches(module, id)?, float_mode).ok()
    }

    /// The edits that it makes at an instruction.
    ///
    /// # Errors
    /// Why it does not apply there, in words for a person.
    pub fn patch_or_why(
        &self,
        module: &Module,
        id: InstId,
        float_mode: FloatMode,
    ) -> Result<Patch, Mismatch> {
        let why = |why: String| Mismatch { instruction: module.name_of(id).to_owned(), why };
        self.applied(&self.pattern.matches_or_why(module, id)?, float_mode).map_err(why)
    }

    fn applied(&self, found: &Match<'_>, float_mode: FloatMode) -> Result<Patch, String> {
        let class = self.class_of.as_ref().map_or(Some(self.class), |class_of| class_of(found));
        let class = class.ok_or("nothing is known of what it does to floats here")?;
        if !float_mode.allow(class) {
            return Err(format!("a rewrite of class `{}` is not allowed", class.name()));
        }
        if let Some((says, _)) = self.conditions.iter().find(|(_, each)| !each(found)) {
            return Err(format!("the expression must {says}"));
        }
        let mut new = Replacement::of(found);
        let value = (self.replace)(found, &mut new).ok_or("it has no replacement here")?;
        new.replaced_by(value).ok_or_else(|| "the replacement has another shape".into())
    }

    /// The ops that it begins with.
    pub(super) fn opcodes(&self) -> &[Opcode] {
        self.pattern.opcodes()
    }

    /// Whether it is gated by what it costs.
    pub(super) fn is_gated(&self) -> bool {
        !self.always
    }

    /// As one that may be made, for the driver.
    pub(super) fn attempt(
        &self,
        module: &Module,
        id: InstId,
        float_mode: FloatMode,
    ) -> Option<Attempt> {
        let found = self.pattern.matches(module, id)?;
        let patch = self.applied(&found, float_mode).ok()?;
        let said = self.say.as_ref().and_then(|say| say(&found));
        let [done, would] = said.unwrap_or_else(|| {
            let what = if self.law.is_empty() { self.name } else { self.law };
            [format!("applied {what}"), format!("applying {what}")]
        });
        Some(Attempt { patch, frees: self.pattern.freed(module, id), done, would })
    }
}

impl Pattern {
    /// The operands of a matched instruction that are part of the expression, each once: they
    /// go with it, unless others use them.
    fn freed(&self, module: &Module, id: InstId) -> SmallVec<[InstId; 2]> {
        let patterns: &[Pattern] = match &self.operands {
            Operands::Any => &[],
            Operands::InOrder(patterns) => patterns,
            Operands::EitherOrder(pair) => &**pair,
        };
        let parts: Vec<&Pattern> =
            patterns.iter().filter(|pattern| !pattern.opcodes().is_empty()).collect();
        let mut freed: SmallVec<[InstId; 2]> = SmallVec::new();
        for &operand in module.operands(id) {
            let is_part = |part: &&Pattern| part.opcodes().contains(&module.opcode(operand));
            if parts.iter().any(is_part) && !freed.contains(&operand) {
                freed.push(operand);
            }
        }
        freed
    }
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

    fn is_cost_gated(&self) -> bool {
        self.is_gated()
    }

    fn run(&self, module: &mut Module, cx: &mut Context<'_>) -> Result<usize, EditError> {
        if self.always {
            let float_mode = cx.float_mode;
            return simplify(module, |module, id| self.patch(module, id, float_mode));
        }
        attempt_each(self, self.opcodes(), module, cx, |module, id, float_mode| {
            self.attempt(module, id, float_mode).map(Ok)
        })
    }
}
