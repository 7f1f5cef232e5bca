//! Loops that do not run, and values that a loop only passes on.

use super::constants::Number;
use super::{Outcome, Pattern, Simplifier};
use crate::mlir::Operation;

pub(super) const PATTERNS: &[(&str, Pattern)] = &[("while", never), ("while", invariant)];

/// A loop whose condition is false yields what it was given.
fn never(s: &mut Simplifier, operation: &mut Operation) -> Option<Outcome> {
    let end = operation.regions.first()?.blocks.first()?.operations.last()?;
    if s.splat(*end.operands.first()?)? != Number::Integer(0) {
        return None;
    }
    Some(Outcome::Values(operation.operands.to_vec()))
}

/// Replaces a value that a loop returns as it was given by the value from outside.
fn invariant(s: &mut Simplifier, operation: &mut Operation) -> Option<Outcome> {
    let [condition, body] = &mut operation.regions[..] else { return None };
    let ([condition], [body]) = (&mut condition.blocks[..], &mut body.blocks[..]) else {
        return None;
    };
    let count = operation.operands.len();
    let end = body.operations.last_mut()?;
    if condition.arguments.len() != count
        || body.arguments.len() != count
        || end.operands.len() != count
        || operation.results.len() != count
    {
        return None;
    }
    let passed: Vec<bool> = (0..count)
        .map(|at| {
            let returned = end.operands.get(at);
            returned == body.arguments.get(at) || returned == operation.operands.get(at)
        })
        .collect();
    if !passed.contains(&true) {
        return None;
    }
    for at in (0..count).rev().filter(|&at| passed.get(at) == Some(&true)) {
        let operand = operation.operands.remove(at);
        let arguments = [condition.arguments.remove(at), body.arguments.remove(at)];
        end.operands.remove(at);
        let result = operation.results.remove(at);
        for value in arguments.into_iter().chain([result]) {
            s.replace(value, operand);
        }
    }
    s.changed = true;
    None
}
