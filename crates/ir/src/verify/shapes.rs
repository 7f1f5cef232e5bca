//! Checks that every declared shape is its op's result shape, and that entry layouts match.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::Report;
use crate::diag::{Code, DiagnosticPlace};
use crate::entity::{CompId, InstId, ShapeId};
use crate::infer::{ShapeErrorKind, infer_mixed};
use crate::module::Module;
use crate::ops::control::AsyncAttrs;
use crate::ops::{Op, Opcode};
use crate::types::shape::Shape;

pub(super) fn check(module: &Module, report: &mut Report) {
    let mut chains = Chains::default();
    let mut known: FxHashSet<Plain> = FxHashSet::default();
    // Callees stand before their callers.
    let mut unedited: FxHashSet<CompId> = FxHashSet::default();
    for &computation in module.computations() {
        let mut is_unedited = true;
        for id in module.instructions(computation) {
            if report.is_exhausted() {
                return;
            }
            let is_as_before = module.is_verified(id) && is_alone(module.op(id), &unedited);
            is_unedited &= is_as_before;
            if is_as_before {
                continue;
            }
            let plain = Plain::of(module, id);
            if plain.is_some_and(|plain| known.contains(&plain)) {
                continue;
            }
            let operands: SmallVec<[&Shape; 4]> =
                module.operands(id).iter().map(|&o| module.shape(o)).collect();
            let declared = module.shape(id);
            if report.is_full() {
                let parts = operands.iter().map(|shape| shape.leaves().len());
                report.spend(parts.sum::<usize>() + declared.leaves().len());
            }
            let inherited = chains.inherited(module, id);
            let op = inherited.as_ref().unwrap_or(module.op(id));
            match infer_mixed(module, op, &operands, Some(declared)) {
                Ok(inferred) => {
                    // An error is reported once, at the instruction where it begins.
                    chains.follow(module, id);
                    if inferred.mixes_precision {
                        report.mixes_precision.get_or_insert(id);
                    } else {
                        known.extend(plain);
                    }
                }
                Err(error) => {
                    report.add(
                        code_of(error.kind),
                        DiagnosticPlace::Instruction(id),
                        error.message,
                    );
                }
            }
        }
        if is_unedited {
            unedited.insert(computation);
        }
    }
    check_entry_layout(module, report);
}

/// Checks whether the rule of an op asks for its attributes, operands and shapes, and otherwise
/// only for unedited computations.
fn is_alone(op: &Op, unedited: &FxHashSet<CompId>) -> bool {
    let mut calls_edited = false;
    op.for_each_computation(&mut |callee| calls_edited |= !unedited.contains(&callee));
    !calls_edited && !matches!(op, Op::AsyncStart(_) | Op::AsyncUpdate(_) | Op::AsyncDone(_))
}

/// An elementwise op without attributes, and its shapes: all that its shape rule depends on. Most
/// instructions of a module are like another one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Plain {
    opcode: Opcode,
    operands: [Option<ShapeId>; 3],
    result: ShapeId,
}

impl Plain {
    fn of(module: &Module, id: InstId) -> Option<Self> {
        let opcode = module.opcode(id);
        let shape = |id: InstId| module.instruction(id).shape_id();
        let mut operands = [None; 3];
        let all = module.operands(id);
        if !opcode.is_elementwise() || opcode.has_attributes() || all.len() > operands.len() {
            return None;
        }
        for (place, &operand) in operands.iter_mut().zip(all) {
            *place = Some(shape(operand));
        }
        Some(Self { opcode, operands, result: shape(id) })
    }
}

/// The attributes of each asynchronous start, by the instructions that continue it. Ops that
/// continue or end another may leave out the computation, which only the start then names.
#[derive(Default)]
struct Chains(FxHashMap<InstId, AsyncAttrs>);

impl Chains {
    fn follow(&mut self, module: &Module, id: InstId) {
        let attrs = match module.op(id) {
            Op::AsyncStart(attrs) => Some(AsyncAttrs::clone(attrs)),
            Op::AsyncUpdate(_) => self.of_operand(module, id).cloned(),
            _ => None,
        };
        if let Some(attrs) = attrs {
            self.0.insert(id, attrs);
        }
    }

    fn of_operand(&self, module: &Module, id: InstId) -> Option<&AsyncAttrs> {
        self.0.get(module.operands(id).first()?)
    }

    /// Returns the op with attributes that it inherits from its start, unless it has its own.
    fn inherited(&self, module: &Module, id: InstId) -> Option<Op> {
        let attrs = || self.of_operand(module, id).cloned().map(Box::new);
        match module.op(id) {
            Op::AsyncUpdate(own) if own.calls.is_none() => Some(Op::AsyncUpdate(attrs()?)),
            Op::AsyncDone(own) if own.calls.is_none() => Some(Op::AsyncDone(attrs()?)),
            _ => None,
        }
    }
}

fn code_of(kind: ShapeErrorKind) -> Code {
    match kind {
        ShapeErrorKind::OperandCount => super::OPERAND_COUNT,
        ShapeErrorKind::Operand => super::OPERAND,
        ShapeErrorKind::Attribute => super::ATTRIBUTE,
        ShapeErrorKind::Result => super::RESULT,
        ShapeErrorKind::NeedsShape => super::NEEDS_SHAPE,
        ShapeErrorKind::Callee => super::CALLEE,
    }
}

fn check_entry_layout(module: &Module, report: &mut Report) {
    let (Some(entry), Some(layout)) = (module.entry(), &module.header.entry_layout) else { return };
    let computation = module.computation(entry);
    let parameters = computation.parameters();
    if parameters.len() != layout.parameters.len() {
        let message = format!(
            "entry_computation_layout has {} parameters, but the entry `{}` has {}",
            layout.parameters.len(),
            computation.name(),
            parameters.len()
        );
        report.add(super::ENTRY_LAYOUT, DiagnosticPlace::Module, message);
        return;
    }
    for (i, (&parameter, expected)) in parameters.iter().zip(&layout.parameters).enumerate() {
        if !module.shape(parameter).compatible(expected) {
            let message = format!(
                "entry_computation_layout says {expected} for parameter {i}, which is {}",
                module.shape(parameter)
            );
            report.add(super::ENTRY_LAYOUT, DiagnosticPlace::Instruction(parameter), message);
        }
    }
    if let Some(root) = computation.root()
        && !module.shape(root).compatible(&layout.result)
    {
        let message = format!(
            "entry_computation_layout says {} for the result, which is {}",
            layout.result,
            module.shape(root)
        );
        report.add(super::ENTRY_LAYOUT, DiagnosticPlace::Instruction(root), message);
    }
}
