//! Training steps of real models, and a rewrite that is wrong.

use std::sync::atomic::{AtomicI64, Ordering};

use tilewright::ir::{Opcode, Verified};
use tilewright_testkit::fixture;
use tilewright_tools::{Candidate, ReduceOptions};

use crate::reduce::{has_op, with_op};

fn gpt2() -> Verified {
    tilewright::load(fixture::root().join("foreign/gpt2_small_step.hlo")).unwrap()
}

/// Five predicates on a training step of GPT-2 with more than a thousand instructions.
#[test]
fn a_training_step_is_reduced_to_the_op_looked_for() {
    let module = gpt2();
    assert!(module.instruction_count() > 1_000);
    for (op, most) in [
        (Opcode::Tanh, 2),
        (Opcode::Gather, 3),
        (Opcode::Dot, 3),
        (Opcode::Select, 4),
        // An array, an init, the reduce, and the two parameters of its computation.
        (Opcode::Reduce, 5),
    ] {
        let keep = |candidate: &Candidate<'_>| has_op(candidate.module, op);
        let found = tilewright_tools::reduce(&module, &ReduceOptions::default(), &keep).unwrap();
        assert!(found.after.instructions <= most, "{op}:\n{}", found.text);
        assert!(found.runs < 400, "{op}: {} runs", found.runs);
    }
}

/// Runs take as long as the module is large: small arrays and single results come first.
#[test]
fn few_runs_see_the_whole_module() {
    let module = gpt2();
    let seen = AtomicI64::new(0);
    let keep = |candidate: &Candidate<'_>| {
        seen.fetch_add(elements(candidate.module), Ordering::Relaxed);
        has_op(candidate.module, Opcode::Tanh)
    };
    let found =
        tilewright_tools::reduce(&module, &ReduceOptions::default().with_jobs(1), &keep).unwrap();
    assert_eq!(found.after.instructions, 2);
    let seen = seen.into_inner();
    assert!(seen < 2 * elements(&module), "{seen} elements in {} runs", found.runs);
}

fn elements(module: &Verified) -> i64 {
    let all = module.computations().iter().flat_map(|&id| module.instructions(id));
    all.filter_map(|id| module.array_shape(id)?.num_elements()).sum()
}

/// An exponential that is divided by its own sum: the softmax.
#[test]
fn a_pattern_of_several_ops_is_found() {
    let keep = |candidate: &Candidate<'_>| {
        let module = candidate.module;
        with_op(module, Opcode::Divide).iter().any(|&id| {
            let operands = module.operands(id);
            module.opcode(operands[0]) == Opcode::Exp
                && module.opcode(operands[1]) == Opcode::Broadcast
        })
    };
    let found = tilewright_tools::reduce(&gpt2(), &ReduceOptions::default(), &keep).unwrap();
    // x, exponential, a broadcast of something, divide.
    assert!(found.after.instructions <= 5, "{}", found.text);
}
