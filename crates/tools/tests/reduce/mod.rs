//! Reductions of modules, with closures as predicates. Expected sizes are counted by hand.

mod fixtures;
mod real;
mod search;
mod structure;
mod values;

use tilewright::ir::{InstId, Opcode, Verified};
use tilewright_tools::{Candidate, ReduceOptions, Reduction};

/// Reduces a module on one thread.
#[track_caller]
fn reduced(text: &str, keep: impl Fn(&Verified, &str) -> bool + Sync) -> Reduction {
    let module = tilewright::parse(text).unwrap_or_else(|e| panic!("{e}"));
    let keep = |candidate: &Candidate<'_>| keep(candidate.module, candidate.text);
    let reduction =
        tilewright_tools::reduce(&module, &ReduceOptions::default().with_jobs(1), &keep).unwrap();
    // The text is the module.
    let read = tilewright::parse(&reduction.text).unwrap();
    assert_eq!(read.instruction_count(), reduction.after.instructions);
    reduction
}

/// Returns all instructions with an op.
fn with_op(module: &Verified, opcode: Opcode) -> Vec<InstId> {
    let all = module.computations().iter().flat_map(|&id| module.instructions(id));
    all.filter(|&id| module.opcode(id) == opcode).collect()
}

fn has_op(module: &Verified, opcode: Opcode) -> bool {
    !with_op(module, opcode).is_empty()
}

fn entry_parameters(module: &Verified) -> usize {
    module.computation(module.entry().unwrap()).parameters().len()
}
