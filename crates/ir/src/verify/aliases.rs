//! Checks aliases: values that share one buffer. Parameters and results of the entry may share
//! buffers, and so may operands and results of fusions and custom calls.

use rustc_hash::FxHashSet;

use super::Report;
use super::devices::Verdict;
use super::transfers::same_shape;
use crate::diag::DiagnosticPlace;
use crate::entity::{CompId, InstId};
use crate::metadata::InputOutputAlias;
use crate::module::Module;
use crate::ops::Op;
use crate::ops::control::{AsyncAttrs, OutputAlias};
use crate::types::shape::{ArrayShape, Dims, Shape};

/// Checks the aliases and donors in the header.
pub(super) fn check_header(module: &Module, report: &mut Report) {
    let Some(entry) = module.entry() else { return };
    let mut add = |verdict: Verdict| {
        if let Err((code, message)) = verdict {
            report.add(code, DiagnosticPlace::Module, message);
        }
    };
    let mut outputs = FxHashSet::default();
    let mut parts = FxHashSet::default();
    for alias in &module.header.input_output_alias {
        let part = (alias.parameter, &alias.parameter_part);
        add(judge_buffers(module, entry, alias));
        if !outputs.insert(&alias.output) {
            let message = format!("two aliases for the result {}", index(&alias.output));
            add(Err((super::ALIAS, format!("input_output_alias has {message}; keep one"))));
        } else if !parts.insert(part) {
            let message = format!("parameter {} {} lies in two results", part.0, index(part.1));
            add(Err((super::ALIAS, format!("input_output_alias: {message}; keep one alias"))));
        }
    }
    for (number, part) in &module.header.buffer_donors {
        if parts.contains(&(*number, part)) {
            let message = format!(
                "parameter {number} {} is a buffer_donor and has an alias; keep one of them",
                index(part)
            );
            add(Err((super::ALIAS, message)));
        } else if let Err(problem) = parameter_part(module, entry, *number, part) {
            add(Err((super::ALIAS, format!("buffer_donor: {problem}"))));
        }
    }
}

/// Returns the part of a parameter's shape at an index. It takes the shape from the entry
/// layout, if the module has one.
fn parameter_part<'m>(
    module: &'m Module,
    entry: CompId,
    number: i64,
    part: &Dims,
) -> Result<&'m Shape, String> {
    let parameters = module.computation(entry).parameters();
    let at = usize::try_from(number).ok().filter(|&at| at < parameters.len());
    let Some((at, &parameter)) = at.and_then(|at| Some((at, parameters.get(at)?))) else {
        return Err(format!("there is no parameter {number} among {}", parameters.len()));
    };
    let layout = module.header.entry_layout.as_ref().and_then(|layout| layout.parameters.get(at));
    let shape = layout.unwrap_or_else(|| module.shape(parameter));
    subshape(shape, part).ok_or_else(|| format!("parameter {number} has no part {}", index(part)))
}

fn judge_buffers(module: &Module, entry: CompId, alias: &InputOutputAlias) -> Verdict {
    let InputOutputAlias { output, parameter: number, parameter_part: part, must } = alias;
    let wrong = |message| Err((super::ALIAS, format!("input_output_alias: {message}")));
    let Some(root) = module.computation(entry).root() else { return Ok(()) };
    let layout = module.header.entry_layout.as_ref().map(|layout| &layout.result);
    let Some(result) = subshape(layout.unwrap_or_else(|| module.shape(root)), output) else {
        return wrong(format!("the result has no part {}", index(output)));
    };
    let parameter = match parameter_part(module, entry, *number, part) {
        Ok(parameter) => parameter,
        Err(problem) => return wrong(problem),
    };
    let fits = match (array(parameter), array(result)) {
        (Some(parameter), Some(result)) => same_buffer_size(parameter, result),
        _ => false,
    };
    if !fits {
        return wrong(format!(
            "parameter {number} {}, {parameter}, cannot lie in {result}",
            index(part)
        ));
    }
    if *must && !same_shape(parameter, result) {
        return wrong(format!(
            "parameter {number} {}, {parameter}, must lie in {result}; where that is a must, \
             shape and layout are the same",
            index(part)
        ));
    }
    Ok(())
}

fn array(shape: &Shape) -> Option<&ArrayShape> {
    match shape {
        Shape::Buffer(inner) => inner.as_array(),
        Shape::Array(_) | Shape::Tuple(_) | Shape::Token | Shape::Opaque => shape.as_array(),
    }
}

/// Checks that values which share a buffer have the same size, whatever their shapes. The size
/// in bytes, with tiles and dynamic dims, depends on the target.
fn same_buffer_size(a: &ArrayShape, b: &ArrayShape) -> bool {
    let plain = |array: &ArrayShape| {
        array.is_static()
            && array.layout.as_ref().is_none_or(|layout| {
                layout.tiles.is_empty()
                    && layout.padding.is_none()
                    && layout.element_size_in_bits == 0
            })
    };
    !plain(a) || !plain(b) || a.num_bytes() == b.num_bytes()
}

/// Checks the aliases of one instruction.
pub(super) fn check(module: &Module, id: InstId, report: &mut Report) {
    let aliases = match module.op(id) {
        Op::Fusion(attrs) => &attrs.output_to_operand_aliasing,
        Op::CustomCall(attrs) => &attrs.output_to_operand_aliasing,
        Op::AsyncStart(attrs) | Op::AsyncUpdate(attrs) | Op::AsyncDone(attrs) => {
            &attrs.output_to_operand_aliasing
        }
        _ => return,
    };
    // A part may be listed twice; another check finds buffers that are listed twice.
    for alias in aliases {
        let problem = match module.op(id) {
            Op::AsyncStart(attrs) => wrong_async_alias(module, id, attrs, alias),
            Op::AsyncUpdate(_) | Op::AsyncDone(_) => {
                Some("the start says so for all that belongs to it; leave it out here".into())
            }
            _ => wrong_alias(module, id, alias),
        };
        let Some(problem) = problem else { continue };
        let message = format!(
            "output_to_operand_aliasing {}: ({}, {}): {problem}",
            index(&alias.output),
            alias.operand,
            index(&alias.operand_part)
        );
        report.add(super::OPERAND_ALIAS, DiagnosticPlace::Instruction(id), message);
    }
}

fn wrong_alias(module: &Module, id: InstId, alias: &OutputAlias) -> Option<String> {
    let Some(result) = subshape(module.shape(id), &alias.output) else {
        return Some("the result has no such part".into());
    };
    let operands = module.operands(id);
    let Some(&operand) = usize::try_from(alias.operand).ok().and_then(|at| operands.get(at)) else {
        return Some(format!("there is no such operand among {}", operands.len()));
    };
    let Some(part) = subshape(module.shape(operand), &alias.operand_part) else {
        return Some("the operand has no such part".into());
    };
    let fits = if is_pin(module.op(id)) {
        leaves_fit(array_within(result), array_within(part))
    } else {
        leaves_fit(result, part)
    };
    (!fits).then(|| format!("{part} cannot lie in {result}; their types and dims must agree"))
}

/// For a start, parts of the state share buffers with parameters of its computation, whose
/// operands may not be bound yet.
fn wrong_async_alias(
    module: &Module,
    id: InstId,
    attrs: &AsyncAttrs,
    alias: &OutputAlias,
) -> Option<String> {
    let computation = module.computation(attrs.calls?);
    let parameters = computation.parameters();
    let Some(&parameter) = usize::try_from(alias.operand).ok().and_then(|at| parameters.get(at))
    else {
        return Some(format!("what it runs has {} parameters", parameters.len()));
    };
    let Some(part) = subshape(module.shape(parameter), &alias.operand_part) else {
        return Some("the parameter has no such part".into());
    };
    let result = match alias.output.split_first() {
        Some((&0, rest)) => {
            let (number, rest) = rest.split_first()?;
            let parameter = usize::try_from(*number).ok().and_then(|at| parameters.get(at));
            parameter.and_then(|&parameter| subshape(module.shape(parameter), rest))
        }
        Some((&1, rest)) => computation.root().and_then(|root| subshape(module.shape(root), rest)),
        Some(_) => subshape(module.shape(id), &alias.output),
        None => None,
    };
    let Some(result) = result else {
        return Some("the state of parameters, result and context has no such part".into());
    };
    let fits = leaves_fit(array_within(result), array_within(part));
    (!fits).then(|| format!("{part} cannot lie in {result}; their types and dims must agree"))
}

/// Checks whether an op is one of the two custom calls that convert an array to a buffer,
/// `b(f32[8])`, or a buffer to an array.
pub(super) fn is_pin(op: &Op) -> bool {
    matches!(op, Op::CustomCall(attrs) if matches!(attrs.custom_call_target.as_str(), "Pin" | "Unpin"))
}

/// Returns the array of a buffer; any other shape unchanged.
fn array_within(shape: &Shape) -> &Shape {
    match shape {
        Shape::Buffer(inner) => inner,
        Shape::Array(_) | Shape::Tuple(_) | Shape::Token | Shape::Opaque => shape,
    }
}

/// Checks whether two values have the same arrays, ignoring dynamic flags.
fn leaves_fit(a: &Shape, b: &Shape) -> bool {
    if std::ptr::eq(a, b) {
        return true;
    }
    let (a, b) = (a.leaves(), b.leaves());
    a.len() == b.len()
        && a.iter().zip(b).all(|(a, b)| match (a, b) {
            (Shape::Array(a), Shape::Array(b)) => {
                a.element_type == b.element_type && a.dims() == b.dims()
            }
            (a, b) => a.compatible(b),
        })
}

/// Returns the part of a shape at an index.
fn subshape<'s>(shape: &'s Shape, index: &[i64]) -> Option<&'s Shape> {
    index.iter().try_fold(shape, |shape, &at| shape.as_tuple()?.get(usize::try_from(at).ok()?))
}

/// Returns an index as in text.
pub(super) fn index(index: &Dims) -> String {
    const SHOWN: usize = 8;
    let mut numbers: Vec<String> = index.iter().take(SHOWN).map(ToString::to_string).collect();
    if index.len() > SHOWN {
        numbers.push("...".into());
    }
    format!("{{{}}}", numbers.join(","))
}
