//! Checks buffers, `b(f32[8])`: the ops that may hold them, and that each is written once.

use rustc_hash::{FxHashMap, FxHashSet};

use super::Report;
use super::aliases::{index, is_pin};
use crate::diag::DiagnosticPlace;
use crate::entity::{CompId, InstId};
use crate::instruction::Use;
use crate::module::Module;
use crate::ops::control::{CustomCallAttrs, OutputAlias};
use crate::ops::{Op, Opcode};
use crate::types::shape::{Dims, Shape};

/// A call that runs on a stream may take buffers.
const STREAM: &str = "_xla_stream_annotation";

pub(super) fn check(module: &Module, report: &mut Report) {
    let all = || module.computations().iter().flat_map(|&c| module.instructions(c));
    if !all().any(|id| has_buffer(module.shape(id))) {
        return;
    }
    let (wrapped, bodies) = (called_by(module, is_async), called_by(module, is_loop));
    for &computation in module.computations() {
        if wrapped.contains(&computation) {
            // The operands of an asynchronous op are those of the wrapped computation.
            if let Some(root) = module.computation(computation).root()
                && let Op::CustomCall(attrs) = module.op(root)
            {
                check_custom_call(module, root, attrs, report);
            }
            continue;
        }
        let writers = count_writers(module, computation, bodies.contains(&computation));
        for id in module.instructions(computation) {
            check_instruction(module, id, report);
            check_writers(module, id, &writers, report);
        }
    }
}

fn is_async(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::AsyncStart | Opcode::AsyncUpdate | Opcode::AsyncDone)
}

fn is_loop(opcode: Opcode) -> bool {
    opcode == Opcode::While
}

/// Returns the computations that ops of a kind call.
fn called_by(module: &Module, kind: fn(Opcode) -> bool) -> FxHashSet<CompId> {
    let all = module.computations().iter().flat_map(|&c| module.instructions(c));
    all.filter(|&id| kind(module.opcode(id))).flat_map(|id| module.called(id)).collect()
}

fn has_buffer(shape: &Shape) -> bool {
    match shape {
        Shape::Buffer(_) => true,
        Shape::Tuple(elements) => elements.iter().any(has_buffer),
        Shape::Array(_) | Shape::Token | Shape::Opaque => false,
    }
}

/// Returns the indices of the buffers in a shape.
fn buffers_in(shape: &Shape) -> Vec<Dims> {
    let (mut found, mut stack) = (Vec::new(), vec![(shape, Dims::new())]);
    while let Some((shape, path)) = stack.pop() {
        match shape {
            Shape::Buffer(_) => found.push(path),
            Shape::Tuple(elements) => {
                for (at, element) in (0i64..).zip(elements) {
                    let mut path = path.clone();
                    path.push(at);
                    stack.push((element, path));
                }
            }
            Shape::Array(_) | Shape::Token | Shape::Opaque => {}
        }
    }
    found.sort_unstable();
    found
}

/// For each buffer, the number of writes by its users.
type Writers = FxHashMap<(InstId, Dims), usize>;

/// Users follow their operands, so they are counted first.
fn count_writers(module: &Module, computation: CompId, is_body: bool) -> Writers {
    let mut writers = Writers::default();
    let backwards: Vec<InstId> = module.instructions(computation).collect();
    for &id in backwards.iter().rev() {
        let paths = buffers_in(module.shape(id));
        if paths.is_empty() {
            continue;
        }
        let users = first_uses(module, id);
        for path in paths {
            let counts =
                users.iter().map(|&first| writes_of(module, &path, first, is_body, &writers));
            let count = counts.fold(0, usize::saturating_add);
            writers.insert((id, path), count);
        }
    }
    writers
}

/// Returns the users of a value, each with the first operand that is the value.
fn first_uses(module: &Module, id: InstId) -> Vec<Use> {
    let mut uses: Vec<Use> = module.uses(id).collect();
    uses.sort_unstable_by_key(|u| (u.user, u.operand));
    uses.dedup_by_key(|u| u.user);
    uses
}

/// The number of times a user writes a buffer. Its called computations are not examined.
fn writes_of(
    module: &Module,
    path: &Dims,
    Use { user, operand }: Use,
    is_body: bool,
    writers: &Writers,
) -> usize {
    let count = |path: Dims| writers.get(&(user, path)).copied().unwrap_or(0);
    match module.op(user) {
        Op::Call(_) | Op::CustomCall(_) | Op::Fusion(_) | Op::While(_) | Op::Conditional(_) => 1,
        Op::DynamicUpdateSlice => 1,
        Op::GetTupleElement(attrs) if path.first() == Some(&attrs.index) => {
            count(path.iter().skip(1).copied().collect())
        }
        // The next iteration of the loop writes it.
        Op::Tuple if module.is_root(user) => usize::from(is_body),
        Op::Tuple => i64::try_from(operand)
            .map_or(0, |at| count([at].into_iter().chain(path.iter().copied()).collect())),
        _ => 0,
    }
}

fn check_writers(module: &Module, id: InstId, writers: &Writers, report: &mut Report) {
    if !makes_buffers(module.op(id)) {
        return;
    }
    for path in buffers_in(module.shape(id)) {
        let part = index(&path);
        let count = writers.get(&(id, path)).copied().unwrap_or(0);
        if count > 1 {
            let message = format!(
                "its buffer {part} is written by {count} instructions; give the second what the \
                 first yields"
            );
            report.add(super::BUFFERS, DiagnosticPlace::Instruction(id), message);
        }
    }
}

/// Checks whether the result of an op is a new buffer.
fn makes_buffers(op: &Op) -> bool {
    matches!(op, Op::CustomCall(_) | Op::While(_) | Op::Parameter(_) | Op::DynamicUpdateSlice)
}

fn check_instruction(module: &Module, id: InstId, report: &mut Report) {
    match module.op(id) {
        Op::CustomCall(attrs) => check_custom_call(module, id, attrs, report),
        Op::Parameter(_) if is_of_entry(module, id) && has_buffer(module.shape(id)) => {
            let message = "the entry is given arrays; pin them to make buffers of them";
            report.add(super::BUFFERS, DiagnosticPlace::Instruction(id), message);
        }
        op if may_hold_buffers(op) || runs_on_stream(module, id) => {}
        op => {
            let given = module.operands(id).iter().any(|&o| has_buffer(module.shape(o)));
            if given || has_buffer(module.shape(id)) {
                let message = format!(
                    "`{}` neither takes nor yields buffers; pin its result instead",
                    op.opcode()
                );
                report.add(super::BUFFERS, DiagnosticPlace::Instruction(id), message);
            }
        }
    }
}

fn may_hold_buffers(op: &Op) -> bool {
    is_async(op.opcode())
        || matches!(
            op,
            Op::Parameter(_)
                | Op::While(_)
                | Op::GetTupleElement(_)
                | Op::Tuple
                | Op::DynamicUpdateSlice
        )
}

fn runs_on_stream(module: &Module, id: InstId) -> bool {
    module.opcode(id) == Opcode::Call
        && module
            .extras(id)
            .is_some_and(|e| e.frontend_attributes.iter().any(|(name, _)| name == STREAM))
}

fn is_of_entry(module: &Module, id: InstId) -> bool {
    module.entry().is_some() && module.instruction(id).parent() == module.entry()
}

fn is_buffer(module: &Module, id: InstId) -> bool {
    matches!(module.shape(id), Shape::Buffer(_))
}

fn check_custom_call(module: &Module, id: InstId, attrs: &CustomCallAttrs, report: &mut Report) {
    let aliases = &attrs.output_to_operand_aliasing;
    let problem = match attrs.custom_call_target.as_str() {
        "CreateBuffer" => wrong_creation(module, id),
        _ if is_pin(module.op(id)) => wrong_pin(module, id, attrs),
        _ => wrong_parts(module, id, aliases),
    };
    if let Some(message) = problem {
        report.add(super::BUFFERS, DiagnosticPlace::Instruction(id), message);
    }
}

fn wrong_creation(module: &Module, id: InstId) -> Option<String> {
    let fits = module.operands(id).is_empty() && is_buffer(module, id);
    (!fits).then(|| "`CreateBuffer` takes nothing and yields a buffer".into())
}

/// `Pin` makes a buffer from an array, `Unpin` an array from a buffer. Their single alias
/// requires that both have the same shape.
fn wrong_pin(module: &Module, id: InstId, attrs: &CustomCallAttrs) -> Option<String> {
    let target = &attrs.custom_call_target;
    let (given, yielded) = (module.operands(id), module.shape(id));
    let given = if given.len() == 1 { Some(module.shape(given[0])) } else { None };
    let (fits, array, buffer) = match (given, yielded, target.as_str()) {
        (Some(Shape::Array(_)), Shape::Buffer(_), "Pin") => (true, "takes", "yields"),
        (Some(Shape::Buffer(_)), Shape::Array(_), "Unpin") => (true, "yields", "takes"),
        (_, _, "Pin") => (false, "takes", "yields"),
        _ => (false, "yields", "takes"),
    };
    if !fits {
        return Some(format!("`{target}` {array} an array and {buffer} a buffer"));
    }
    let once = attrs.output_to_operand_aliasing.len() == 1;
    (!once).then(|| {
        format!("`{target}` keeps the buffer; write output_to_operand_aliasing={{{{}}: (0, {{}})}}")
    })
}

/// Checks that every buffer parameter is returned, and that every returned buffer is a
/// parameter.
fn wrong_parts(module: &Module, id: InstId, aliases: &[OutputAlias]) -> Option<String> {
    let mut given: FxHashMap<(i64, &Dims), usize> = FxHashMap::default();
    let mut yielded: FxHashMap<&Dims, usize> = FxHashMap::default();
    for alias in aliases {
        *given.entry((alias.operand, &alias.operand_part)).or_default() += 1;
        *yielded.entry(&alias.output).or_default() += 1;
    }
    for (number, &operand) in (0i64..).zip(module.operands(id)) {
        for part in buffers_in(module.shape(operand)) {
            let count = given.get(&(number, &part)).copied().unwrap_or(0);
            if count != 1 {
                return Some(format!(
                    "the buffer {} of operand {number} must be one of its results, not {count}; \
                     say which in output_to_operand_aliasing",
                    index(&part)
                ));
            }
        }
    }
    let count = |part: &Dims| yielded.get(part).copied().unwrap_or(0);
    let part = buffers_in(module.shape(id)).into_iter().find(|part| count(part) != 1)?;
    Some(format!(
        "its buffer {} must be one of its operands, not {}; say which in \
         output_to_operand_aliasing",
        index(&part),
        count(&part)
    ))
}
