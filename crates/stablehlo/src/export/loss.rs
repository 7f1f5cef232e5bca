//! What a module says that its StableHLO does not.

use tilewright_ir::ops::control::CustomCallSchedule;
use tilewright_ir::{InstId, Layout, Module, Op, Shape};

use super::{arguments, asynchronous};

/// Lists what is left out of a module's StableHLO, and what not every reader takes: a line for each.
/// StableHLO's values have no layouts, memory spaces or order of execution; those of the entry's arrays and of
/// constrained custom calls are attributes.
pub fn lost(module: &Module) -> Vec<String> {
    let mut lines: Vec<String> = LOSSES.iter().filter_map(|loss| loss.line(module)).collect();
    let flat = |alias| arguments::flat_alias(module, alias).is_some();
    if !module.header.input_output_alias.iter().all(flat) {
        lines.push("an alias of a tuple is left out: `main` has no tuples".to_owned());
    }
    lines
}

/// A part of instructions that StableHLO cannot say.
struct Loss {
    what: &'static str,
    is_lost: fn(&Module, InstId) -> bool,
}

const LOSSES: &[Loss] = &[
    Loss { what: "StableHLO cannot say layouts, which are left out", is_lost: layout },
    Loss { what: "StableHLO cannot say memory spaces, which are left out", is_lost: memory_space },
    Loss { what: "StableHLO cannot say schedules, which are left out", is_lost: schedule },
    Loss { what: "StableHLO cannot say control-predecessors, which are left out", is_lost: order },
    Loss {
        what: "StableHLO starts only collectives, so that other computations are called at their start",
        is_lost: asynchronous::is_called,
    },
    Loss { what: "only MHLO has the op, so that compilers behind PJRT refuse it", is_lost: mhlo },
];

impl Loss {
    /// Returns the line of a loss, with the first instruction and the number of others.
    fn line(&self, module: &Module) -> Option<String> {
        let all = module.computations().iter().flat_map(|&one| module.instructions(one));
        let mut lost = all.filter(|&id| (self.is_lost)(module, id));
        let (first, more) = (lost.next()?, lost.count());
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        Some(format!("{}: `{}`{more}", self.what, module.name_of(first)))
    }
}

fn any_layout(shape: &Shape, test: impl Fn(&Layout) -> bool) -> bool {
    let arrays = shape.leaves().into_iter().filter_map(Shape::as_array);
    arrays.filter_map(|array| array.layout.as_ref()).any(test)
}

/// Copies and bitcasts move as their layouts say.
fn layout(module: &Module, id: InstId) -> bool {
    let is_said = match module.op(id) {
        Op::Parameter(_) | Op::Copy | Op::Bitcast | Op::Tuple | Op::GetTupleElement(_) => true,
        Op::CustomCall(attrs) => attrs.operand_layout_constraints.is_some(),
        _ => module.entry().and_then(|entry| module.computation(entry).root()) == Some(id),
    };
    !is_said && any_layout(module.shape(id), |layout| !arguments::is_plain(layout))
}

fn memory_space(module: &Module, id: InstId) -> bool {
    any_layout(module.shape(id), |layout| layout.memory_space != 0)
}

fn schedule(module: &Module, id: InstId) -> bool {
    matches!(module.op(id), Op::CustomCall(attrs) if attrs.schedule != CustomCallSchedule::None)
}

fn order(module: &Module, id: InstId) -> bool {
    module.extras(id).is_some_and(|extras| !extras.control_predecessors.is_empty())
}

fn mhlo(module: &Module, id: InstId) -> bool {
    match module.op(id) {
        Op::AllToAll(attrs) => attrs.dimensions.is_none(),
        Op::TopK(attrs) => !attrs.largest,
        Op::Domain(_)
        | Op::RaggedDot(_)
        | Op::RngGetAndUpdateState(_)
        | Op::Scan(_)
        | Op::StochasticConvert => true,
        _ => false,
    }
}
