//! Any shape, layout, type, computation and machine, against the interpreter: the
//! same numbers, or an error that says why not.

use std::cell::RefCell;
use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use tilewright_lower as lower;
use tilewright_target::{Alignment, Target};
use tilewright_testkit::effort;

use super::harness::{leaves, random_inputs, reduce_by, run, simulated_by};

/// A shape with its layout, what is reduced, and the result with its own.
#[derive(Clone, Debug)]
struct Case {
    shape: String,
    axes: String,
    result: String,
    /// Whether the layout asks for no tiles.
    plain: bool,
}

fn joined<T: ToString>(items: &[T]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

fn dims() -> impl Strategy<Value = Vec<u64>> {
    let size = prop_oneof![1 => Just(0u64), 3 => Just(1), 12 => 2u64..10, 3 => 10u64..200];
    prop::collection::vec(size, 0..=8).prop_map(|mut dims| {
        // At most some thousands of elements.
        let mut room = 6000;
        for dim in &mut dims {
            *dim = (*dim).min(room);
            room /= (*dim).max(1);
        }
        dims
    })
}

fn case() -> impl Strategy<Value = Case> {
    let orders = prop::collection::vec(any::<u32>(), 16);
    let reduced = prop::collection::vec(any::<bool>(), 8);
    let extra = prop::collection::vec(0u64..4, 8);
    let tiles = prop_oneof![
        6 => Just(""), 1 => Just(":T(4,8)"), 1 => Just(":T(8,128)"), 1 => Just(":T(2,4)(2,1)"),
        1 => Just(":T(128)")
    ];
    (dims(), orders, reduced, extra, tiles, any::<bool>()).prop_map(
        |(dims, orders, reduced, extra, tiles, pads)| {
            let order = |rank: usize, keys: &[u32]| {
                let mut order: Vec<usize> = (0..rank).collect();
                order.sort_by_key(|&dim| keys[dim]);
                order
            };
            let kept: Vec<u64> =
                dims.iter().zip(&reduced).filter(|(_, r)| !**r).map(|(d, _)| *d).collect();
            let axes: Vec<usize> = (0..dims.len()).filter(|&dim| reduced[dim]).collect();
            let padded: Vec<u64> = dims.iter().zip(&extra).map(|(d, more)| d + more).collect();
            let more = match (tiles, pads, dims.is_empty()) {
                (_, _, true) => String::new(),
                ("", true, _) => format!(":P({})", joined(&padded)),
                (tiles, _, _) => tiles.to_owned(),
            };
            Case {
                shape: format!(
                    "[{}]{{{}{more}}}",
                    joined(&dims),
                    joined(&order(dims.len(), &orders))
                ),
                axes: joined(&axes),
                result: format!(
                    "[{}]{{{}}}",
                    joined(&kept),
                    joined(&order(kept.len(), &orders[8..]))
                ),
                plain: !more.contains('T'),
            }
        },
    )
}

/// Types and computations whose results do not depend on the order; of the last two
/// no identity is known.
const COMPUTATIONS: &[(&str, &str, &str)] = &[
    ("s32", "ROOT c = s32[] add(a, b)", "3"),
    ("s8", "ROOT c = s8[] xor(a, b)", "5"),
    ("u16", "ROOT c = u16[] multiply(a, b)", "3"),
    ("pred", "ROOT c = pred[] and(a, b)", "true"),
    ("f32", "ROOT c = f32[] maximum(a, b)", "-1"),
    ("bf16", "ROOT c = bf16[] minimum(a, b)", "1"),
    ("f64", "ROOT c = f64[] maximum(a, b)", "-inf"),
    ("s64", "ROOT c = s64[] add(a, b)", "1"),
    ("pred", "ROOT c = pred[] compare(a, b), direction=EQ", "true"),
    ("s32", "p = s32[] multiply(a, b) s = s32[] add(a, b) ROOT c = s32[] add(p, s)", "3"),
];

pub(crate) fn target() -> impl Strategy<Value = Target> {
    let lanes = prop::sample::select(vec![1u32, 3, 4, 8, 12, 32, 128]);
    let sublanes = prop::sample::select(vec![1u32, 2, 3, 8]);
    let kilobytes = prop::sample::select(vec![16u64, 64, 1024]);
    (lanes, sublanes, kilobytes, any::<bool>()).prop_map(|(lanes, sublanes, kilobytes, tiles)| {
        let mut target = Target::builtin("mlu-like").unwrap();
        target.lanes = lanes;
        target.sublanes = if tiles { sublanes } else { 1 };
        target.vector_memory_bytes = kilobytes * 1024;
        target.alignment = if tiles { Alignment::Tiles } else { Alignment::None };
        target.vector_registers = 32;
        target
    })
}

#[test]
fn the_machine_and_the_interpreter_agree() {
    // How many cases of a kind there were, and how many of them the machine computed.
    let counts: RefCell<BTreeMap<String, [usize; 2]>> = RefCell::default();
    let count = |kind: &str, is_computed: bool| {
        let mut counts = counts.borrow_mut();
        let [tried, computed] = counts.entry(kind.to_owned()).or_default();
        *tried += 1;
        *computed += usize::from(is_computed);
    };
    let computations = prop::sample::select(COMPUTATIONS);
    let strategies = prop::sample::select(&lower::Strategy::ALL[..]);
    let all = (case(), computations, target(), strategies, any::<u64>());
    let config = ProptestConfig {
        cases: effort::cases(150),
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let result =
        TestRunner::new(config).run(&all, |(case, computation, target, strategy, seed)| {
            let (element, computation, init) = computation;
            let shape = format!("{element}{}", case.shape);
            let result = format!("{element}{}", case.result);
            let module = reduce_by(&shape, &case.axes, &result, computation, init);
            let inputs = random_inputs(&module, seed).unwrap();
            let limits = tilewright_interp::Limits::default();
            let expected = leaves(run(&module, &inputs, &limits).unwrap());
            let found = simulated_by(strategy, &module, &target, &inputs);
            count("any", found.is_ok());
            count(&format!("{strategy:?}"), found.is_ok());
            if !case.plain {
                count("tiled", found.is_ok());
            }
            match found {
                Ok((values, _)) => prop_assert_eq!(values, expected),
                Err(why) => {
                    let why = why.to_string();
                    let is_known =
                        computation.starts_with("ROOT") && !computation.contains("compare");
                    if strategy == lower::Strategy::Looped && why.contains("no identity") {
                        prop_assert!(!is_known, "{}", why);
                        return Ok(());
                    }
                    let known = ["do not make whole vectors", "do not fit the vector memory"];
                    prop_assert!(known.iter().any(|known| why.contains(known)), "{}", why);
                    // Only tiles that a layout asks for are refused, or little memory, or
                    // elements wider than a lane, of which no whole number fills a vector.
                    let roomy = target.vector_memory_bytes > 500_000;
                    let fills = target.lanes * target.sublanes % 2 == 0 || !element.ends_with("64");
                    // A transpose may need all of an array for a block of the other.
                    let whole =
                        strategy == lower::Strategy::Transposed && why.contains("do not fit");
                    prop_assert!(whole || !(case.plain && roomy && fills), "{}", why);
                }
            }
            Ok(())
        });
    result.unwrap_or_else(|error| panic!("{error}"));
    let counts = counts.into_inner();
    println!("of each kind, tried and computed: {counts:?}");
    assert_eq!(counts.len(), 2 + lower::Strategy::ALL.len(), "{counts:?}");
    let [tried, computed] = counts["any"];
    assert!(computed * 4 >= tried, "{computed} of {tried} are computed");
    for (kind, [tried, computed]) in counts {
        assert!(computed * 6 >= tried, "{kind}: {computed} of {tried} are computed");
    }
}
