//! Random modules: renamed and reordered they are the same, and one mutation is one difference.

use std::cell::Cell;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use tilewright::ir::{CompId, InstId, Literal, Op, Opcode, Position};
use tilewright_testkit::generate::{Options, random_module};

use super::*;

/// A small random generator: which numbers it gives matters to no test.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        usize::try_from(self.0 >> 33).unwrap() % bound.max(1)
    }
}

/// All instructions get the names of others, and the order of those of another schedule.
fn shuffled(module: &Module, seed: u64) -> Module {
    let mut module = module.clone();
    let mut dice = Dice(seed);
    let computations: Vec<CompId> = module.computations().to_vec();
    let ids: Vec<InstId> = computations.iter().flat_map(|&id| module.instructions(id)).collect();
    let mut names: Vec<String> = ids.iter().map(|&id| module.name_of(id).to_owned()).collect();
    for at in (1..names.len()).rev() {
        names.swap(at, dice.below(at + 1));
    }
    for (&id, name) in ids.iter().zip(names) {
        module.set_name(id, name);
    }
    for id in computations {
        let all: Vec<InstId> = module.instructions(id).collect();
        let mut missing: std::collections::BTreeMap<InstId, usize> =
            all.iter().map(|&id| (id, module.operands(id).len())).collect();
        let mut ready: Vec<InstId> = all.into_iter().filter(|id| missing[id] == 0).collect();
        let mut order = Vec::new();
        while !ready.is_empty() {
            let next = ready.swap_remove(dice.below(ready.len()));
            order.push(next);
            for of in module.uses(next).collect::<Vec<_>>() {
                let left = missing.get_mut(&of.user).unwrap();
                *left -= 1;
                if *left == 0 {
                    ready.push(of.user);
                }
            }
        }
        module.order_instructions(id, &order).unwrap();
    }
    module
}

/// What a mutation makes.
enum Expected {
    /// One change of this kind, or two operands.
    Changed(What),
    /// One instruction more, and one that takes it as its operand.
    Added,
}

/// Changes one thing of a module, if it has what can be changed.
fn mutated(module: &Module, kind: usize, dice: &mut Dice) -> Option<(Module, Expected)> {
    let mut module = module.clone();
    let all: Vec<InstId> =
        module.computations().iter().flat_map(|&id| module.instructions(id)).collect();
    let pick = |of: Vec<InstId>, dice: &mut Dice| -> Option<InstId> {
        (!of.is_empty()).then(|| of[dice.below(of.len())])
    };
    match kind {
        0 => {
            let is_number = |&id: &InstId| {
                module.constant(id).and_then(Literal::as_array).is_some_and(|array| {
                    array.dims().is_empty() && array.as_slice::<f32>().is_some()
                })
            };
            let id = pick(all.into_iter().filter(is_number).collect(), dice)?;
            let value = Literal::scalar(tilewright::ir::ElementType::F32, 12345.5_f32).unwrap();
            module.set_attributes(id, Op::Constant(Box::new(value))).unwrap();
            Some((module, Expected::Changed(What::Value)))
        }
        1 => {
            let swaps = |&id: &InstId| {
                let operands = module.operands(id);
                matches!(module.opcode(id), Opcode::Subtract | Opcode::Divide | Opcode::Power)
                    && module.opcode(operands[0]) != module.opcode(operands[1])
            };
            let id = pick(all.into_iter().filter(swaps).collect(), dice)?;
            let [x, y] = *module.operands(id) else { return None };
            module.set_operand(id, 0, y).unwrap();
            module.set_operand(id, 1, x).unwrap();
            Some((module, Expected::Changed(What::Operand)))
        }
        _ => {
            let takes = |&id: &InstId| {
                let first = module.operands(id).first();
                first.is_some_and(|&first| {
                    module.array_shape(first).is_some_and(|shape| shape.element_type.is_float())
                        && module.opcode(first) != Opcode::Cos
                })
            };
            let id = pick(all.into_iter().filter(takes).collect(), dice)?;
            let value = module.operands(id)[0];
            let shape = module.shape(value).clone();
            let name = module.fresh_name("inserted");
            let new = module.insert(
                Position::Before(id),
                Op::from_attrs(Opcode::Cos, &mut tilewright::ir::ops::attr::AttrValues::default())
                    .unwrap(),
                shape,
                &[value],
                name,
            );
            module.set_operand(id, 0, new.unwrap()).unwrap();
            Some((module, Expected::Added))
        }
    }
}

#[test]
fn one_mutation_is_one_difference() {
    // How many modules of a kind there were, and how many of them had what it changes.
    let counted = Cell::new([[0_u32; 2]; 3]);
    let config =
        ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() };
    let strategy = (0..u64::MAX, 5_usize..120, 0_usize..3, any::<bool>());
    let result = TestRunner::new(config).run(&strategy, |(seed, size, kind, shuffles)| {
        let module = random_module(seed, &Options::of_size(size));
        let mutation = mutated(&module, kind, &mut Dice(seed));
        let mut counts_of_kinds = counted.get();
        counts_of_kinds[kind][0] += 1;
        counts_of_kinds[kind][1] += u32::from(mutation.is_some());
        counted.set(counts_of_kinds);
        let Some((other, expected)) = mutation else { return Ok(()) };
        let other = if shuffles { shuffled(&other, seed) } else { other };
        let found = compared(&module, &other);
        let mut changed = found.computations.iter().flat_map(|of| &of.changed);
        match expected {
            Expected::Changed(what) => {
                prop_assert_eq!(counts(&found), [1, 0, 0, 0], "{:#?}", found);
                let pair = changed.next().unwrap();
                prop_assert!(!pair.changes.is_empty(), "{:#?}", found);
                prop_assert!(pair.changes.iter().all(|change| change.what == what));
            }
            Expected::Added => {
                prop_assert_eq!(counts(&found), [1, 1, 0, 0], "{:#?}", found);
                prop_assert_eq!(changed.next().unwrap().changes.len(), 1);
            }
        }
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
    let counted = counted.into_inner();
    println!("of each kind, tried and mutated: {counted:?}");
    for [tried, mutated] in counted {
        assert!(mutated * 10 >= tried, "{counted:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn renamed_and_reordered_is_the_same(seed in 0..u64::MAX, size in 5_usize..120) {
        let module = random_module(seed, &Options::of_size(size));
        let other = shuffled(&module, seed ^ 0x5eed);
        let found = compared(&module, &other);
        prop_assert!(found.is_same(), "{found:#?}");
    }

    /// Whatever two modules are, the difference is symmetric.
    #[test]
    fn any_two(seed in 0..u64::MAX, other in 0..u64::MAX, size in 5_usize..60) {
        let a = random_module(seed, &Options::of_size(size));
        let b = random_module(other, &Options::of_size(size));
        let found = compared(&a, &b);
        let paired: usize = found.computations.iter().map(|of| of.unchanged).sum();
        let [changed, added, removed, moved] = counts(&found);
        prop_assert_eq!(paired + changed + moved + removed, a.instruction_count());
        prop_assert_eq!(paired + changed + moved + added, b.instruction_count());
    }
}
