//! Comparisons that rounding alone decides.
//!
//! `sum(x - mean(x)) == 0` holds over the reals for all `x`. In floats it holds if the rounding
//! errors of the sum cancel, which depends on the order of its terms. Both sides of this
//! comparison are the same element of the field.
//!
//! A tie excuses different results of two programs, so comparisons that depend on values must
//! not count. A value that depends on an order is unknown in the field. A value that depends on
//! an op that takes or removes a sign (`sqrt(x*x)` is `x` there for half of all elements) or on
//! integers (which come from one input) is unknown, too.

use std::rc::Rc;

use rustc_hash::FxHashMap;
use tilewright_ir::ops::elementwise::Direction;
use tilewright_ir::{Data, InstId, Module, Op, Opcode, Verified};

use super::compare::{AlgebraOptions, evaluate, kinds, least_steps};
use super::field::{UNSURE, marks, residue};
use super::inputs::inputs;
use super::step::Field;
use crate::compare::are_finite;
use crate::devices::tells_devices_apart;
use crate::error::{Fault, Outcome};
use crate::inputs::InputKind;
use crate::limits::Ledger;
use crate::value::Value;

/// The comparisons in the entry of a module whose sides are equal over the reals, element
/// by element.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ties {
    equal: FxHashMap<InstId, Vec<bool>>,
}

impl Ties {
    /// Finds the ties of a module. None are found in a module that has integers among its
    /// parameters, has loops or branches, runs on several devices, or needs more than the
    /// limits.
    pub fn of(module: &Verified, options: &AlgebraOptions) -> Self {
        let AlgebraOptions { seed, limits } = *options;
        if !may_have_ties(module) || least_steps(module) > limits.max_steps {
            return Self::default();
        }
        let Ok(inputs) = inputs(module, seed, InputKind::Normal, &limits) else {
            return Self::default();
        };
        match evaluate(module, &inputs, limits, Field::looking_for_ties()) {
            Ok((_, field)) => field.ties.unwrap_or_default(),
            Err(_) => Self::default(),
        }
    }

    /// Checks whether there are no ties.
    pub fn is_empty(&self) -> bool {
        self.equal.is_empty()
    }

    /// Takes in a comparison over the field, which runs once.
    pub(crate) fn note(&mut self, module: &Module, id: InstId, sides: &[Value]) {
        let is_same = matches!(module.operands(id), [a, b] if a == b);
        let [Value::Array(a), Value::Array(b)] = sides else { return };
        let (Data::F64(a), Data::F64(b)) = (a.data(), b.data()) else { return };
        if is_same || module.instruction(id).parent() != module.entry() {
            return;
        }
        let is_tie = |(a, b): (&f64, &f64)| {
            let (a, b) = (a.to_bits(), b.to_bits());
            marks(a | b) & UNSURE == 0 && residue(a) == residue(b)
        };
        let ties: Vec<bool> = a.iter().zip(b).map(is_tie).collect();
        if ties.contains(&true) {
            self.equal.insert(id, ties);
        }
    }

    /// Returns the result of a comparison whose finite sides tie over the reals, decided as
    /// over the reals.
    pub(crate) fn decide(
        &self,
        id: InstId,
        direction: Direction,
        sides: &[Value],
        result: Value,
        ledger: &Rc<Ledger>,
    ) -> Outcome<Value> {
        let (Some(ties), Value::Array(array)) = (self.equal.get(&id), &result) else {
            return Ok(result);
        };
        let finite = sides.iter().map(|side| {
            let side = side.array()?;
            Ok(are_finite(side.data(), side.element_type()))
        });
        let finite = finite.collect::<Outcome<Vec<_>>>()?;
        let holds = matches!(direction, Direction::Eq | Direction::Le | Direction::Ge);
        array.clone().modify(ledger, |data| {
            let Data::Pred(values) = data else {
                return Err(Fault::Internal("a comparison gives no truth values"));
            };
            for (at, (value, _)) in values.iter_mut().zip(ties).enumerate().filter(|(_, t)| *t.1) {
                if finite.iter().all(|side| side.get(at) == Some(&true)) {
                    *value = holds;
                }
            }
            Ok(())
        })
    }
}

/// Checks whether a module compares floats, and one input tells as much as any other.
fn may_have_ties(module: &Verified) -> bool {
    let compares = |id: InstId| matches!(module.op(id), Op::Compare(_));
    let branches = |id: InstId| matches!(module.op(id), Op::While(_) | Op::Conditional(_));
    let all = || module.computations().iter().flat_map(|&c| module.instructions(c));
    all().any(compares)
        && !all().any(branches)
        && kinds(module).len() == 1
        && !tells_devices_apart(module)
}

/// Checks whether an instruction takes or leaves a sign, by itself or in a computation that it
/// applies to elements: over the field signs are random.
pub(super) fn leaves_sign_open(module: &Module, id: InstId) -> bool {
    let by_itself = |id: InstId| {
        matches!(
            module.opcode(id),
            Opcode::Abs | Opcode::Sign | Opcode::Sqrt | Opcode::Rsqrt | Opcode::Power
        )
    };
    let applied = || {
        let called = module.called(id).into_iter();
        called.flat_map(|computation| module.instructions(computation)).any(by_itself)
    };
    by_itself(id) || !matches!(module.op(id), Op::Call(_)) && applied()
}
