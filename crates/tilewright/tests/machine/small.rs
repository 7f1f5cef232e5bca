//! Machines with little: few registers, little memory.

use super::norms::{group_norm, softmax};
use super::{Near, Tally, op, parsed, ran, target};

/// Whatever the machine has, the numbers are right: what does not fit is cut up, or
/// left to the host.
#[test]
fn numbers_are_right_on_any() {
    let chain = op(
        &["f32[40,300]", "f32[300]", "s8[40,300]"],
        "b = f32[40,300] broadcast(x1), dimensions={1}
  w = f32[40,300] convert(x2)
  m = f32[40,300] multiply(x0, b)
  s = f32[40,300] add(m, w)
  t = f32[300,40] transpose(s), dimensions={1,0}
  n = f32[300,40] negate(t)
  ROOT r = (f32[40,300], f32[300,40], s8[40,300]) tuple(s, n, x2)",
    );
    let mut tally = Tally::default();
    for text in [chain, softmax("[4,24,200]", "[4,24]"), group_norm([2, 5, 9, 4, 5])] {
        let module = parsed(&text);
        let inputs = tilewright::random_inputs(&module, 0).unwrap();
        for name in ["tpu-like", "mlu-like", "linear"] {
            for registers in [2, 4, 8, 64] {
                for vectors in [1, 3, 9, 40, 1000] {
                    let mut target = target(name);
                    target.vector_registers = registers;
                    target.vector_memory_bytes = vectors * target.vector_bytes();
                    let ran = ran(Near::Sums, &module, &target, &inputs);
                    tally.count(&ran);
                    // With as much as here, nothing is in the way of kernels.
                    let has_much = registers == 64 && vectors == 1000;
                    assert!(!has_much || !ran.kernels.is_empty(), "on {name}\n{text}");
                }
            }
        }
    }
    println!("{tally:?}");
    assert!(tally.with_kernels * 4 >= tally.runs, "{tally:?}");
}
