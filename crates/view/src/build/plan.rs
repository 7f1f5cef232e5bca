//! Which computations are drawn, and in whose box.

use std::collections::HashMap;

use tilewright::ir::{CompId, InstId, Module, Op, Opcode};

use super::is_boxed;

/// The most boxes within each other. Deeper computations are drawn beside the others.
const DEEPEST: usize = 24;

/// A computation that an instruction calls, and what for.
#[derive(Clone, Debug)]
pub(super) struct Callee {
    pub(super) computation: CompId,
    /// `body`, `condition`, `branch 0`.
    pub(super) role: String,
}

/// The computations that are drawn. The maps are only looked up, so that their order is not
/// observable.
#[derive(Debug, Default)]
pub(super) struct BoxPlan {
    /// Callers before callees.
    order: Vec<CompId>,
    /// The only caller of each computation that is drawn in the caller's box.
    caller: HashMap<CompId, InstId>,
    nested: HashMap<InstId, Vec<Callee>>,
    elsewhere: HashMap<InstId, Vec<CompId>>,
    /// The operand that the first parameter of a computation in a box stands for; the others stand
    /// for those after it. Loops have no entry: their parameters change.
    first_operand: HashMap<CompId, usize>,
}

impl BoxPlan {
    pub(super) fn new(module: &Module, root: CompId) -> Self {
        let mut reached = module.call_order(root);
        reached.reverse();
        let mut plan = Self::default();
        let mut callers: HashMap<CompId, Vec<InstId>> = HashMap::new();
        // Only what is boxed by a computation that is drawn is drawn.
        for &computation in &reached {
            if computation != root && !callers.contains_key(&computation) {
                continue;
            }
            plan.order.push(computation);
            for id in module.instructions(computation) {
                for callee in boxed(module, id) {
                    callers.entry(callee.computation).or_default().push(id);
                }
            }
        }
        let mut depths: HashMap<CompId, usize> = HashMap::new();
        for computation in plan.order.clone() {
            let depth = depths.get(&computation).copied().unwrap_or(0);
            for id in module.instructions(computation) {
                for callee in boxed(module, id) {
                    let alone = callers.get(&callee.computation).is_some_and(|all| all.len() == 1);
                    if alone && depth < DEEPEST {
                        depths.insert(callee.computation, depth + 1);
                        plan.nest(module, id, callee);
                    } else {
                        plan.elsewhere.entry(id).or_default().push(callee.computation);
                    }
                }
            }
        }
        plan
    }

    fn nest(&mut self, module: &Module, id: InstId, callee: Callee) {
        let number = module.called(id).iter().position(|&other| other == callee.computation);
        let first = match module.opcode(id) {
            Opcode::Fusion | Opcode::Call | Opcode::AsyncStart => Some(0),
            Opcode::Conditional => number.map(|number| number + 1),
            _ => None,
        };
        if let Some(first) = first {
            self.first_operand.insert(callee.computation, first);
        }
        self.caller.insert(callee.computation, id);
        self.nested.entry(id).or_default().push(callee);
    }

    pub(super) fn order(&self) -> &[CompId] {
        &self.order
    }

    /// The computations that are drawn in the box of an instruction.
    pub(super) fn nested(&self, id: InstId) -> &[Callee] {
        self.nested.get(&id).map_or(&[], Vec::as_slice)
    }

    /// The computations that an instruction calls and others do, too.
    pub(super) fn elsewhere(&self, id: InstId) -> &[CompId] {
        self.elsewhere.get(&id).map_or(&[], Vec::as_slice)
    }

    /// Checks whether an operand is read by the computations in an instruction's box, as their
    /// parameter, and not by the instruction.
    pub(super) fn is_handed_in(&self, module: &Module, id: InstId, operand: usize) -> bool {
        self.nested(id).iter().any(|callee| {
            let count = module.computation(callee.computation).parameters().len();
            let first = self.first_operand.get(&callee.computation);
            first.is_some_and(|&first| (first..first.saturating_add(count)).contains(&operand))
        })
    }

    /// Returns the operand that a parameter stands for.
    pub(super) fn operand_of(&self, module: &Module, parameter: InstId) -> Option<InstId> {
        let Op::Parameter(attrs) = module.op(parameter) else { return None };
        let computation = module.instruction(parameter).parent()?;
        let first = *self.first_operand.get(&computation)?;
        let number = first.checked_add(usize::try_from(attrs.number).ok()?)?;
        module.operands(*self.caller.get(&computation)?).get(number).copied()
    }

    /// Checks whether a computation is drawn in the box of its caller.
    pub(super) fn is_nested(&self, computation: CompId) -> bool {
        self.caller.contains_key(&computation)
    }
}

/// The computations of an instruction that are drawn as boxes.
fn boxed(module: &Module, id: InstId) -> impl Iterator<Item = Callee> {
    let opcode = module.opcode(id);
    let called = module.called(id);
    let several = called.len() > 1;
    called.into_iter().enumerate().filter(move |(_, callee)| is_boxed(module, opcode, *callee)).map(
        move |(number, computation)| {
            let role = match (opcode, number) {
                (Opcode::While, 0) => "condition".to_owned(),
                (Opcode::While, _) => "body".to_owned(),
                (Opcode::Conditional, _) => format!("branch {number}"),
                _ if several => format!("computation {number}"),
                _ => String::new(),
            };
            Callee { computation, role }
        },
    )
}
