//! A ledger that followed edits agrees with one that is made after them.

use crate::common::{module, target};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use tilewright_ir::{InstId, Module, Op, Opcode, Position};
use tilewright_rewrite::cost::{CostModel, Ledger, Memo, SweepCount};
use tilewright_testkit::fixture::fixtures;

/// The number of trials for each model and target.
const TRIALS: usize = 24;

/// The costs of a module.
#[derive(Debug)]
struct Figures {
    /// The cycles of each computation, in their order.
    cycles: Vec<f64>,
    peak_live_bytes: u64,
    memory_sweeps: usize,
}

fn figures(ledger: &Ledger<'_>, module: &Module) -> Figures {
    Figures {
        cycles: module.computations().iter().map(|&each| ledger.total(each).cycles).collect(),
        peak_live_bytes: ledger.peak_live_bytes(module),
        memory_sweeps: ledger.memory_sweeps(module),
    }
}

#[track_caller]
fn assert_same(followed: &Figures, anew: &Figures, what: &str) {
    let close = |(one, other): (&f64, &f64)| (one - other).abs() <= 1e-12 * other.abs();
    let same = followed.cycles.len() == anew.cycles.len()
        && followed.cycles.iter().zip(&anew.cycles).all(close)
        && followed.peak_live_bytes == anew.peak_live_bytes
        && followed.memory_sweeps == anew.memory_sweeps;
    assert!(same, "{what}: {followed:?} {anew:?}");
}

/// Picks a number below another.
fn below(random: &mut ChaCha8Rng, end: usize) -> usize {
    random.next_u32() as usize % end.max(1)
}

/// Picks one of some instructions.
fn pick(random: &mut ChaCha8Rng, of: &[InstId]) -> InstId {
    of[below(random, of.len())]
}

/// Makes an edit that verifiers would accept: another value of the same shape for an operand, a
/// copy of a value, a value behind a barrier, another root of the same shape, or the removal of
/// dead code.
fn edit(module: &mut Module, random: &mut ChaCha8Rng) {
    let computation = module.computations()[below(random, module.computations().len())];
    let order: Vec<InstId> = module.instructions(computation).collect();
    let id = pick(random, &order);
    let place = order.iter().position(|&other| other == id).unwrap_or(0);
    match below(random, 5) {
        0 => {
            let operands = module.operands(id).to_vec();
            let Some(slot) = (!operands.is_empty()).then(|| below(random, operands.len())) else {
                return;
            };
            let shape = module.shape(operands[slot]).clone();
            let fits: Vec<InstId> =
                order[..place].iter().copied().filter(|&o| *module.shape(o) == shape).collect();
            module.set_operand(id, slot, pick(random, &fits)).expect("an operand");
        }
        1 if module.opcode(id) != Opcode::Parameter => {
            let copy = module.copy_instruction(id, Position::Before(id), |_| None).expect("a copy");
            let uses: Vec<_> = module.uses(id).collect();
            for one in uses.into_iter().filter(|_| below(random, 2) == 0) {
                module.set_operand(one.user, one.operand, copy).expect("an operand");
            }
        }
        2 => {
            let Some(next) = module.next_instruction(id) else { return };
            let (shape, name) = (module.shape(id).clone(), module.fresh_name("barrier"));
            let uses: Vec<_> = module.uses(id).collect();
            let barrier = module
                .insert(Position::Before(next), Op::OptimizationBarrier, shape, &[id], name)
                .expect("a barrier");
            for one in uses {
                module.set_operand(one.user, one.operand, barrier).expect("an operand");
            }
        }
        3 => {
            let shape =
                module.computation(computation).root().map(|root| module.shape(root).clone());
            let fits: Vec<InstId> = order
                .iter()
                .copied()
                .filter(|&o| Some(module.shape(o)) == shape.as_ref())
                .collect();
            if !fits.is_empty() {
                module.set_root(pick(random, &fits)).expect("a root of this shape");
            }
        }
        _ => {
            for &id in order.iter().rev() {
                if module.is_removable(id) {
                    module.remove(id).expect("nothing uses it");
                }
            }
        }
    }
}

#[test]
fn what_follows_edits_is_what_is_found_anew() {
    let mut random = ChaCha8Rng::seed_from_u64(7);
    for file in fixtures("models").expect("a folder") {
        let original = module(&file.text().expect("a text")).into_inner();
        for name in ["tpu-like", "cpu"] {
            let mut target = target(name);
            // Nearly every array is large, as in a module of real sizes.
            target.vector_memory_bytes = 1 << 12;
            let memo = Memo::default();
            let model = CostModel::new(&target, &memo);
            let mut module = original.clone();
            let mut ledger = Ledger::of(&module, model);
            let mut sweeps = SweepCount::of(&ledger, &module);
            // The ledger follows all edits since it was last asked, including those undone.
            let mut late = (Ledger::of(&module, model), module.moment());
            for trial in 0..TRIALS {
                let what = format!("{} on {name}, trial {trial}", file.name);
                let before = figures(&ledger, &module);
                module.begin_trial();
                for _ in 0..=below(&mut random, 3) {
                    edit(&mut module, &mut random);
                }
                ledger.update(&module, &module.tried());
                let anew = figures(&Ledger::of(&module, model), &module);
                assert_same(&figures(&ledger, &module), &anew, &what);
                sweeps.update(&ledger, &module);
                assert_eq!(sweeps.get(), anew.memory_sweeps, "{what}");
                if below(&mut random, 2) == 0 {
                    module.keep();
                    ledger.keep();
                    sweeps.keep();
                } else {
                    module.roll_back();
                    ledger.roll_back();
                    sweeps.roll_back();
                    assert_eq!(sweeps.get(), before.memory_sweeps, "{what}");
                    assert_same(&figures(&ledger, &module), &before, &what);
                }
                if below(&mut random, 3) == 0 {
                    late.0.update(&module, &module.edited_since(late.1));
                    late.0.keep();
                    late.1 = module.moment();
                    let anew = figures(&Ledger::of(&module, model), &module);
                    assert_same(&figures(&late.0, &module), &anew, &what);
                }
            }
        }
    }
}
