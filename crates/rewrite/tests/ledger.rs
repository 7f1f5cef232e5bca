//! A ledger that followed edits says what one made afterwards says.

mod common;

use common::{module, target};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use tilewright_ir::{InstId, Module, Op, Opcode, Position};
use tilewright_rewrite::analysis::cost::{CostModel, Ledger, Memo};
use tilewright_testkit::fixture::fixtures;

/// So many trials for each model and target.
const TRIALS: usize = 24;

/// What a module costs: cycles, the most bytes alive, passes over images.
type Figures = (f64, u64, usize);

fn figures(ledger: &Ledger<'_>, module: &Module) -> Figures {
    (ledger.cycles(module), ledger.peak_live_bytes(module), ledger.image_passes(module))
}

#[track_caller]
fn assert_same(followed: Figures, anew: Figures, what: &str) {
    let close = (followed.0 - anew.0).abs() <= 1e-12 * anew.0.abs();
    assert!(close && (followed.1, followed.2) == (anew.1, anew.2), "{what}: {followed:?} {anew:?}");
}

/// A number below another.
fn below(random: &mut ChaCha8Rng, end: usize) -> usize {
    random.next_u32() as usize % end.max(1)
}

/// Picks one of some instructions.
fn pick(random: &mut ChaCha8Rng, of: &[InstId]) -> InstId {
    of[below(random, of.len())]
}

/// Makes an edit that verifiers would accept: another value of the shape for an operand, a
/// value computed anew, a value behind a barrier, or nothing more to do with dead code.
fn edit(module: &mut Module, random: &mut ChaCha8Rng) {
    let computation = module.computations()[below(random, module.computations().len())];
    let order: Vec<InstId> = module.instructions(computation).collect();
    let id = pick(random, &order);
    let place = order.iter().position(|&other| other == id).unwrap_or(0);
    match below(random, 4) {
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
            // Nearly everything is large, as in a module of real sizes.
            target.vector_memory_bytes = 1 << 12;
            let memo = Memo::default();
            let model = CostModel::new(&target, &memo);
            let mut module = original.clone();
            let mut ledger = Ledger::of(&module, model);
            for trial in 0..TRIALS {
                let what = format!("{} on {name}, trial {trial}", file.name);
                let before = figures(&ledger, &module);
                module.begin_trial();
                for _ in 0..=below(&mut random, 3) {
                    edit(&mut module, &mut random);
                }
                ledger.update(&module, &module.tried());
                let anew = figures(&Ledger::of(&module, model), &module);
                assert_same(figures(&ledger, &module), anew, &what);
                if below(&mut random, 2) == 0 {
                    module.keep();
                    ledger.keep();
                } else {
                    module.roll_back();
                    ledger.roll_back();
                    assert_same(figures(&ledger, &module), before, &what);
                }
            }
        }
    }
}
