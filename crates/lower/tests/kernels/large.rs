//! Reductions of nothing, and results larger than vector memory.

use tilewright_target::Target;
use tilewright_testkit::effort::Turns;

use super::harness::{TARGETS, agree, agree_on, random_inputs, reduce, simulated};

/// Nothing along a dim that is reduced, that is kept, or both.
const EMPTY: &[(&str, &str, &str)] = &[
    ("[0]", "0", "[]"),
    ("[3,0]", "1", "[3]"),
    ("[3,0]", "0", "[0]"),
    ("[0,300]", "0", "[300]"),
    ("[0,70000]", "0", "[70000]"),
    ("[5,0,7,130]", "1,2", "[5,130]"),
    ("[5,0,7]", "0,2", "[0]"),
    ("[0,0]", "0", "[0]"),
];

#[test]
fn nothing_gives_the_init() {
    for name in TARGETS {
        let target = Target::builtin(name).unwrap();
        for (shape, axes, result) in EMPTY {
            for (element, op, init) in [("f32", "add", "2.5"), ("bf16", "maximum", "-1")] {
                let (shape, result) = (format!("{element}{shape}"), format!("{element}{result}"));
                agree(&reduce(&shape, axes, &result, op, init), &target);
            }
        }
    }
}

/// Results beyond a quarter of 256 KiB, in the order of the array and in others;
/// sizes that tiles divide and sizes that they do not.
const LARGE: &[(&str, &str, &str)] = &[
    ("[3,30000]", "0", "[30000]"),
    ("[30000,3]", "1", "[30000]"),
    ("[70,3,300]", "1", "[70,300]"),
    ("[70,300]", "", "[70,300]"),
    ("[160,128]", "", "[160,128]{0,1}"),
    ("[70,300]", "", "[70,300]{0,1}"),
    ("[30,30,30]{0,1,2}", "", "[30,30,30]"),
    ("[32,5,32,24]", "1", "[32,32,24]{1,0,2}"),
    ("[9001,2,2]", "2", "[9001,2]{0,1}"),
    ("[32,24,32]{1,0,2}", "", "[32,24,32]{0,2,1}"),
];

#[test]
fn large_results_are_written_in_windows() {
    let mut turns = Turns::of(5);
    for name in TARGETS {
        let mut target = Target::builtin(name).unwrap();
        target.vector_memory_bytes = 256 * 1024;
        for (shape, axes, result) in LARGE {
            for (element, op, init) in [("s32", "add", "2"), ("bf16", "maximum", "-1")] {
                if !turns.is_next() {
                    continue;
                }
                let (shape, result) = (format!("{element}{shape}"), format!("{element}{result}"));
                let module = reduce(&shape, axes, &result, op, init);
                let inputs = random_inputs(&module, 0).unwrap();
                let ran = agree_on(&module, &target, &inputs);
                assert!(ran.counters.vmem_peak_bytes <= target.vector_memory_bytes);
                // Nothing is written twice.
                let places = ran.stages[0].outputs[0].len() as u64;
                let bytes = places * if element == "s32" { 4 } else { 2 };
                assert!(ran.counters.hbm_write_bytes <= bytes, "{shape} on {name}");
            }
        }
    }
}

/// Each byte is read once and written once, and neither waits for the other for
/// long: within 1.3 of what main memory needs.
#[test]
fn windows_are_written_beside_the_work() {
    let target = Target::builtin("mlu-like").unwrap();
    let module = reduce("f32[256,8,1024]", "1", "f32[256,1024]", "add", "0");
    let inputs = random_inputs(&module, 0).unwrap();
    let (_, ran) = simulated(&module, &target, &inputs).unwrap();
    let (read, written) = (256 * 8 * 1024 * 4 + 4, 256 * 1024 * 4);
    assert_eq!(ran.counters.hbm_read_bytes, read);
    assert_eq!(ran.counters.hbm_write_bytes, written);
    let bound = (read + written) as f64 / target.hbm_bytes_per_cycle;
    assert!(ran.counters.cycles < 1.3 * bound, "{:?} beside {bound}", ran.counters);
}
