//! Rule sets: several rules as one pass.

use std::fmt;

use smallvec::SmallVec;
use tilewright_ir::{EditError, Module, Opcode};

use super::rule::Rule;
use crate::driver::numbers::Class;
use crate::driver::simplify::simplify;
use crate::driver::{Context, Pass};

/// Rules that canonicalize, as one pass. At each instruction, the first rule that applies is
/// applied, without regard to costs.
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
    /// A pass of these rules, which are tried in this order. Its class is that
    /// of the rule that may change floats the most.
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

    /// The rules, in the order in which they are tried.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
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

    fn run(&self, module: &mut Module, cx: &mut Context<'_>) -> Result<usize, EditError> {
        let float_mode = cx.float_mode;
        simplify(module, |module, id| {
            let rules = self.by_opcode.get(module.opcode(id) as usize)?.iter();
            rules
                .filter_map(|&rule| self.rules.get(rule))
                .find_map(|rule| rule.patch(module, id, float_mode))
        })
    }
}
