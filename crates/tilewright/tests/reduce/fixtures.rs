//! All fixtures: whatever a module has, the search ends with a module that verifies.

use tilewright::{Candidate, Ended, ReduceOptions};
use tilewright_testkit::fixture;

/// Files with more bytes take too long here.
const MOST_BYTES: u64 = 40_000;

#[test]
fn every_fixture_is_reduced_to_one_instruction_and_to_one_op() {
    let mut seen = 0;
    for folder in ["text/ok", "models", "rewrite", "sharded", "devices", "ops", "verify"] {
        let Ok(fixtures) = fixture::fixtures(folder) else { continue };
        for fixture in fixtures {
            let is_small = fixture.hlo.metadata().is_ok_and(|file| file.len() <= MOST_BYTES);
            let Some(module) = is_small.then(|| tilewright::load(&fixture.hlo).ok()).flatten()
            else {
                continue;
            };
            let options = ReduceOptions::default().with_jobs(1).with_max_runs(300);
            let Ok(found) = tilewright::reduce(&module, &options, &|_| true) else { continue };
            assert_eq!(found.ended, Ended::Fixpoint, "{}", fixture.name);
            assert_eq!(found.after.instructions, 1, "{}:\n{}", fixture.name, found.text);
            seen += 1;
            // The op in the middle of the entry.
            let all: Vec<_> = module.instructions(module.entry().unwrap()).collect();
            let wanted = module.opcode(all[all.len() / 2]);
            let keep = |candidate: &Candidate<'_>| crate::has_op(candidate.module, wanted);
            let found = tilewright::reduce(&module, &options, &keep).unwrap();
            assert!(found.after <= found.before, "{}", fixture.name);
            assert!(crate::has_op(&found.module, wanted), "{}", fixture.name);
            assert!(found.after.instructions <= 12, "{}:\n{}", fixture.name, found.text);
        }
    }
    assert!(seen > 200, "{seen} fixtures");
}
