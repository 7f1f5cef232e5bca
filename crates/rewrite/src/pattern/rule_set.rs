//! Rule sets: several rules as one pass.

use std::fmt;

use smallvec::SmallVec;
use tilewright_ir::{EditError, InstId, Module, Opcode};

use super::rule::Rule;
use crate::driver::attempt::attempt_each;
use crate::driver::numbers::Class;
use crate::driver::simplify::simplify;
use crate::driver::{Context, Pass};

/// Rules that form one pass: at each instruction the first that matches is applied.
///
/// The set is gated by cost if one of its rules is: see [`Rule::always`]. Rules that are not gated
/// go first then, over the whole module.
#[derive(Clone)]
pub struct RuleSet {
    name: &'static str,
    summary: &'static str,
    class: Class,
    rules: Vec<Rule>,
    /// For each op, by its number, the rules whose pattern may have it at the root.
    by_opcode: Vec<SmallVec<[usize; 4]>>,
}

impl fmt::Debug for RuleSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuleSet").field("name", &self.name).field("rules", &self.rules).finish()
    }
}

impl RuleSet {
    /// Makes a pass of these rules, which are tried in this order. Its class is that of the rule
    /// that may change floats the most.
    pub fn new(
        name: &'static str,
        summary: &'static str,
        rules: impl IntoIterator<Item = Rule>,
    ) -> Self {
        let rules: Vec<Rule> = rules.into_iter().collect();
        let class = rules.iter().map(Pass::class).max().unwrap_or(Class::Exact);
        let mut by_opcode = vec![SmallVec::new(); Opcode::ALL.len()];
        // The number of an opcode is its position in `Opcode::ALL`.
        for (&opcode, of) in Opcode::ALL.iter().zip(&mut by_opcode) {
            let begins =
                |rule: &Rule| rule.opcodes().is_empty() || rule.opcodes().contains(&opcode);
            of.extend((0..rules.len()).filter(|&place| begins(&rules[place])));
        }
        Self { name, summary, class, rules, by_opcode }
    }

    /// The rules that may match an instruction, in order.
    fn rules_at(&self, module: &Module, id: InstId) -> impl Iterator<Item = &Rule> {
        let places = self.by_opcode.get(module.opcode(id) as usize);
        places.into_iter().flatten().filter_map(|&rule| self.rules.get(rule))
    }
}

impl Pass for RuleSet {
    fn name(&self) -> &'static str {
        self.name
    }

    fn summary(&self) -> &'static str {
        self.summary
    }

    fn class(&self) -> Class {
        self.class
    }

    /// In the order in which they are tried.
    fn rules(&self) -> &[Rule] {
        &self.rules
    }

    fn is_cost_gated(&self) -> bool {
        self.rules.iter().any(Rule::is_gated)
    }

    fn run(&self, module: &mut Module, cx: &mut Context<'_>) -> Result<usize, EditError> {
        let float_mode = cx.float_mode;
        let mut changes = simplify(module, |module, id| {
            let mut rules = self.rules_at(module, id).filter(|rule| !rule.is_gated());
            rules.find_map(|rule| rule.patch(module, id, float_mode))
        })?;
        if self.is_cost_gated() {
            changes += attempt_each(self, &[], module, cx, |module, id, float_mode| {
                let mut rules = self.rules_at(module, id).filter(|rule| rule.is_gated());
                rules.find_map(|rule| rule.attempt(module, id, float_mode))
            })?;
        }
        Ok(changes)
    }
}
