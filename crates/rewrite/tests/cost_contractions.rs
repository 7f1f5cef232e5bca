//! The costs of instructions beside contractions, on `tpu-like`: see `cost.rs` for its numbers.

use crate::common::{cost, module, target};
use tilewright_ir::Opcode;
use tilewright_rewrite::module_cost;

/// One vector's way to main memory or back, and a vector stored in vector memory.
const CROSSING: f64 = 4096.0 / 546.0;
const STORED: f64 = 1.0;

/// A product of `exp(x)` and a matrix, and the tanh of that; `exp(x)` is read by an op, too.
fn product(reader: &str) -> String {
    format!(
        "HloModule m\nENTRY main {{
          x = f32[1024,1024] parameter(0)
          w = f32[1024,1024] parameter(1)
          e = f32[1024,1024] exponential(x)
          d = f32[1024,1024] dot(e, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
          t = f32[1024,1024] tanh(d)
          {reader}
        }}"
    )
}

#[test]
fn what_a_contraction_alone_reads_is_computed_beside_it() {
    // 4 MiB are 1024 vectors, too many to stay on the chip. The dot loads `w`, computes
    // `e`, multiplies, and stores its result; of the tanh, the root stores the result.
    let flops = 2 * 1024u64.pow(3);
    #[expect(clippy::cast_precision_loss, reason = "a power of two")]
    let multiplied = flops as f64 / 131_072.0;
    let stored = 1024.0 * STORED + 2.0 * 1024.0 * CROSSING;
    let alone = product("ROOT r = f32[1024,1024] copy(t)");
    let dot = cost(&alone, Opcode::Dot, "tpu-like");
    let expected = 1024.0 / 2.0 + stored + multiplied;
    assert!((dot.cycles - expected).abs() < 1e-9 * expected, "{} and not {expected}", dot.cycles);
    assert_eq!((dot.vectors, dot.bytes, dot.flops), (2048, 2048 * 4096, flops));
    for opcode in [Opcode::Exp, Opcode::Tanh] {
        assert_eq!(cost(&alone, opcode, "tpu-like").cycles, 0.0);
    }
    // Its reader is no contraction, so it is computed for that reader, too.
    let shared = product(
        "r = f32[1024,1024] copy(e)\nROOT both = (f32[1024,1024], f32[1024,1024]) tuple(r, t)",
    );
    assert!(cost(&shared, Opcode::Exp, "tpu-like").cycles > 0.0);
    // The product has two readers, so it is stored, and the tanh computed from the stored value.
    let twice = product(
        "n = f32[1024,1024] negate(d)\nROOT both = (f32[1024,1024], f32[1024,1024]) tuple(n, t)",
    );
    assert!(cost(&twice, Opcode::Tanh, "tpu-like").cycles > 0.0);
    // If libraries multiply, all operands are stored for them.
    let library = cost(&alone, Opcode::Dot, "cpu");
    assert!(library.bytes > dot.bytes && cost(&alone, Opcode::Exp, "cpu").cycles > 0.0);
}

#[test]
fn what_is_spread_from_a_contraction_is_not_computed_beside_it() {
    let text = |last: &str| {
        format!(
            "HloModule m\nENTRY main {{
              x = f32[64,64,64,320] parameter(0)
              v = f32[64,32] parameter(1)
              w = f32[32,320] parameter(2)
              d = f32[64,320] dot(v, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
              b = f32[64,64,64,320] broadcast(d), dimensions={{0,3}}
              y = f32[64,64,64,320] multiply(x, b)
              {last}
            }}"
        )
    };
    let [bare, tuple] = [
        "ROOT t = f32[64,64,64,320] tanh(y)",
        "t = f32[64,64,64,320] tanh(y)\nROOT r = (f32[64,64,64,320]) tuple(t)",
    ]
    .map(text);
    for opcode in [Opcode::Broadcast, Opcode::Multiply, Opcode::Tanh] {
        assert!(cost(&tuple, opcode, "tpu-like").cycles > 0.0, "{opcode}");
    }
    // A result is stored whichever kernel computes it.
    let [bare, tuple] =
        [bare, tuple].map(|text| module_cost(&module(&text), &target("tpu-like")).cycles);
    assert!((bare - tuple).abs() < 1e-9 * bare, "{bare} {tuple}");
}
