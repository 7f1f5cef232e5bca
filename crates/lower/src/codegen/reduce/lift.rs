//! Lifts computations to values that may be missing.
//!
//! `(a, false) * (b, y) = (b, y)`, `(a, x) * (b, false) = (a, x)`, `(a, true) * (b, true) = (a *
//! b, true)`: a missing value is an identity of any `*`. So reductions by a computation without
//! a known identity can have padding and an empty start.

use smallvec::smallvec;
use smol_str::SmolStr;
use tilewright_ir::ops::attr::AttrValues;
use tilewright_ir::{ElementType, Op, Opcode};

use crate::kernel::{Function, FunctionStep, FunctionValue};

/// Returns the lifted function: accumulators and a flag that says whether they are present,
/// then elements and their flag. `None` if the function is not a combination.
pub(super) fn lifted(by: &Function) -> Option<Function> {
    let count = by.results.len();
    if by.parameters != count.checked_mul(2)? || by.values.len() < by.parameters {
        return None;
    }
    // The new number of a value: each half of the parameters is followed by its flag.
    let place = |value: usize| match value {
        value if value < count => value,
        value if value < by.parameters => value + 1,
        value => value + 2,
    };
    let (first, second) = (count, by.parameters + 1);
    let (elements, steps) = by.values.split_at(by.parameters);
    let (accumulators, elements) = elements.split_at(count);
    let mut lifted = Function { name: by.name.clone(), ..Function::default() };
    lifted.values.extend(accumulators.iter().cloned());
    lifted.push("has_a", ElementType::Pred);
    lifted.values.extend(elements.iter().cloned());
    lifted.push("has_b", ElementType::Pred);
    lifted.parameters = lifted.values.len();
    lifted.values.extend(steps.iter().cloned());
    lifted.steps = by.steps.iter().map(|step| step.renumbered(place)).collect();
    let select = Op::from_attrs(Opcode::Select, &mut AttrValues::default()).ok()?;
    for (i, &result) in by.results.iter().enumerate() {
        let element_type = by.values.get(result)?.element_type;
        let operands = smallvec![first, place(result), count + 1 + i];
        let both = lifted.apply("both", element_type, select.clone(), operands);
        let operands = smallvec![second, both, i];
        let kept = lifted.apply("kept", element_type, select.clone(), operands);
        lifted.results.push(kept);
    }
    let or = Op::from_attrs(Opcode::Or, &mut AttrValues::default()).ok()?;
    let has = lifted.apply("has", ElementType::Pred, or, smallvec![first, second]);
    lifted.results.push(has);
    Some(lifted)
}

impl Function {
    /// Adds a value with the name, or with the name and the first number that makes it unique.
    pub(super) fn push(&mut self, name: &str, element_type: ElementType) -> usize {
        let is_new = |name: &SmolStr| self.values.iter().all(|value| value.name != *name);
        let numbered = (0u64..).map(|number| SmolStr::from(format!("{name}{number}")));
        let mut names = std::iter::once(SmolStr::from(name)).chain(numbered);
        let name = names.find(is_new).unwrap_or_default();
        self.values.push(FunctionValue { name, element_type });
        self.values.len() - 1
    }

    /// Adds the result of an op on values, with a name derived from `name`.
    pub(super) fn apply(
        &mut self,
        name: &str,
        element_type: ElementType,
        op: Op,
        operands: smallvec::SmallVec<[usize; 3]>,
    ) -> usize {
        self.steps.push(FunctionStep::Apply(op, operands));
        self.push(name, element_type)
    }
}

impl FunctionStep {
    fn renumbered(&self, place: impl Fn(usize) -> usize) -> Self {
        match self {
            Self::Constant(literal) => Self::Constant(literal.clone()),
            Self::Apply(op, operands) => {
                Self::Apply(op.clone(), operands.iter().map(|&operand| place(operand)).collect())
            }
        }
    }
}
