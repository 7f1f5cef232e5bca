//! Rules: rewrites that consist of a pattern, a condition, a replacement and a law.

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

    /// Sets the class for each matched expression, if it depends on the expression: for example, a
    /// rule that adds in another order is exact on integers. The rule does not apply to an
    /// expression for which `class_of` returns `None`.
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

    /// Applies the rule wherever it matches, without regard to costs and without notes. This is for
    /// rules that canonicalize.
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

    /// Sets the function that builds the replacement of a matched expression. If it returns `None`,
    /// the rule does not apply to this expression.
    #[must_use]
    pub fn replace(
        self,
        replace: impl Fn(&Match<'_>, &mut Replacement<'_>) -> Option<Value> + Send + Sync + 'static,
    ) -> Self {
        Self { replace: Arc::new(replace), ..self }
    }

    /// The pattern of the expressions that the rule replaces.
    pub fn pattern(&self) -> &Pattern {
        &self.pattern
    }

    /// The edits that the rule makes at an instruction; `None` if it does not apply there.
    pub fn patch(&self, module: &Module, id: InstId, float_mode: FloatMode) -> Option<Patch> {
        self.applied(&self.pattern.matches(module, id)?, float_mode).ok()
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

    /// The ops of the root of its pattern; if the list is empty, every op is possible.
    pub(super) fn opcodes(&self) -> &[Opcode] {
        self.pattern.opcodes()
    }

    /// Whether the rule is cost-gated.
    pub(super) fn is_gated(&self) -> bool {
        !self.always
    }

    /// The rewrite at an instruction, for the driver to judge; `None` if the rule does not apply.
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
    /// The operands of a matched instruction that are part of the expression, each once. They are
    /// removed with it unless other instructions use them.
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
