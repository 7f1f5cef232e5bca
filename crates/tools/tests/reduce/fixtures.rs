//! All fixtures: whatever a module has, the search ends with a module that verifies.

use tilewright_testkit::effort::Turns;
use tilewright_testkit::fixture;
use tilewright_tools::{Candidate, Ended, ReduceOptions};

/// Files with more bytes take too long here.
const MOST_BYTES: u64 = 40_000;

#[test]
fn every_fixture_is_reduced_to_one_instruction_and_to_one_op() {
    let (mut seen, mut turns) = (0, Turns::of(4));
    let mut failures = Vec::new();
    // What is in `verify` is no module.
    for folder in ["text/ok", "models", "rewrite", "sharded", "devices", "ops"] {
        for fixture in fixture::fixtures(folder).unwrap() {
            if fixture.hlo.metadata().unwrap().len() > MOST_BYTES || !turns.is_next() {
                continue;
            }
            let name = format!("{folder}/{}", fixture.name);
            let module = match tilewright::load(&fixture.hlo) {
                Ok(module) => module,
                Err(error) => {
                    failures.push(format!("{name} is not loaded: {error}"));
                    continue;
                }
            };
            let options = ReduceOptions::default().with_jobs(1).with_max_runs(300);
            let found = match tilewright_tools::reduce(&module, &options, &|_| true) {
                Ok(found) => found,
                Err(error) => {
                    failures.push(format!("{name} is not reduced: {error}"));
                    continue;
                }
            };
            assert_eq!(found.ended, Ended::Fixpoint, "{name}");
            assert_eq!(found.after.instructions, 1, "{name}:\n{}", found.text);
            seen += 1;
            // The op in the middle of the entry.
            let all: Vec<_> = module.instructions(module.entry().unwrap()).collect();
            let wanted = module.opcode(all[all.len() / 2]);
            let keep = |candidate: &Candidate<'_>| crate::reduce::has_op(candidate.module, wanted);
            let found = tilewright_tools::reduce(&module, &options, &keep).unwrap();
            assert!(found.after <= found.before, "{name}");
            assert!(crate::reduce::has_op(&found.module, wanted), "{name}");
            assert!(found.after.instructions <= 12, "{name}:\n{}", found.text);
        }
    }
    println!("{seen} fixtures");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(seen > 300, "{seen} fixtures");
}
