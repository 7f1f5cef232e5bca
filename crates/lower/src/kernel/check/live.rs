//! Counts the registers that are live at one time.

use tilewright_target::Target;

use super::Flaw;
use crate::kernel::{Function, FunctionStep, Kernel, RegisterId, Statement, Value};

/// Returns the flaw of a kernel with more live registers than the target has.
pub(super) fn flaw(kernel: &Kernel, target: &Target) -> Option<Flaw> {
    let most = kernel.live_registers(target);
    let has = u64::from(target.vector_registers);
    (most > has).then(|| Flaw {
        line: 1,
        message: format!(
            "{most} vector registers are in use at one time, and {} has {has}: keep fewer values",
            target.name
        ),
    })
}

impl Kernel {
    /// Returns the largest number of vector registers that are live at one time.
    pub fn live_registers(&self, target: &Target) -> u64 {
        let weights = self
            .registers
            .iter()
            .map(|register| target.vectors_for(register.element_type, register.len));
        let mut live = Live {
            kernel: self,
            target,
            weights: weights.collect(),
            alive: vec![false; self.registers.len()],
            most: 0,
        };
        live.statements(&self.body);
        live.most
    }
}

struct Live<'a> {
    kernel: &'a Kernel,
    target: &'a Target,
    /// The number of vectors that each register takes.
    weights: Vec<u64>,
    /// For each register, whether it is read later.
    alive: Vec<bool>,
    most: u64,
}

impl Live<'_> {
    /// Visits the statements from last to first.
    fn statements(&mut self, statements: &[Statement]) {
        for statement in statements.iter().rev() {
            match statement {
                Statement::For { body, .. } | Statement::Stream { body, .. } => {
                    // Registers that the body reads in its next iteration are live at its end.
                    let after = self.alive.clone();
                    self.statements(body);
                    self.join(&after);
                    self.statements(body);
                    self.join(&after);
                }
                Statement::When { body, .. } => {
                    let after = self.alive.clone();
                    self.statements(body);
                    self.join(&after);
                }
                Statement::Set { registers, value } => {
                    registers.iter().for_each(|&id| self.mark(id, true));
                    self.count(self.temporaries(value, registers));
                    registers.iter().for_each(|&id| self.mark(id, false));
                    value.operands().for_each(|id| self.mark(id, true));
                    self.count(0);
                }
                Statement::Store { from, .. } => {
                    self.mark(*from, true);
                    self.count(0);
                }
                Statement::Copy { .. } | Statement::Wait(_) => {}
            }
        }
    }

    fn join(&mut self, other: &[bool]) {
        self.alive.iter_mut().zip(other).for_each(|(alive, &other)| *alive |= other);
    }

    fn mark(&mut self, id: RegisterId, alive: bool) {
        if let Some(slot) = self.alive.get_mut(id.0) {
            *slot = alive;
        }
    }

    fn count(&mut self, temporaries: u64) {
        let alive = self.alive.iter().zip(&self.weights).filter(|(alive, _)| **alive);
        let sum: u64 = alive.map(|(_, &weight)| weight).fold(temporaries, u64::saturating_add);
        self.most = self.most.max(sum);
    }

    /// Returns the number of vectors for intermediate values of a function.
    fn temporaries(&self, value: &Value, registers: &[RegisterId]) -> u64 {
        let (Value::Call(id, _) | Value::Fold { by: id, .. }) = value else { return 0 };
        let len = registers.first().and_then(|&id| self.kernel.register(id)).map_or(0, |r| r.len);
        let Some(function) = self.kernel.function(*id) else { return 0 };
        let inner = (function.parameters..function.values.len())
            .filter(|value| !function.results.contains(value))
            .filter(|&value| is_computed(function, value));
        let vectors =
            inner.map(|value| self.target.vectors_for(function.values[value].element_type, len));
        vectors.max().unwrap_or(0)
    }
}

/// Checks whether a value takes a register of its own, which constants do not.
fn is_computed(function: &Function, value: usize) -> bool {
    let step = value.checked_sub(function.parameters).and_then(|step| function.steps.get(step));
    matches!(step, Some(FunctionStep::Apply(..)))
}
