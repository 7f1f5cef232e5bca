//! Values at many indices, and at indices beyond 32 bits.

use tilewright_ir::{ArrayLiteral, Data, ElementType, Literal};
use tilewright_lower::{Lowered, Sequence, Strategy, fused, lower};
use tilewright_sim::{memory_of, run_stages};
use tilewright_target::Target;

use super::groups::{group, op, target};
use super::harness::{InterpreterArithmetic, parsed};

/// Returns a module of one array, each step of which is made from the one before.
fn chain(shape: &str, steps: usize, step: impl Fn(usize) -> String) -> Lowered {
    let body: String = (0..steps).map(|n| step(n) + "\n  ").collect();
    let zero = "z = f32[] constant(0)";
    let text = op(&[shape], &format!("{zero}\n  {body}ROOT r = {shape} negate(x{steps})"));
    lower(&parsed(&text), &target("tpu-like"), Strategy::Fused).unwrap()
}

fn texts(lowered: &Lowered) -> Vec<String> {
    lowered.kernels.values().map(ToString::to_string).collect()
}

/// Each step of a prefix sum adds the array to itself, shifted. A kernel that computed the first
/// step wherever the last needs it would add 4095 times.
#[test]
fn shifted_sums_are_not_computed_at_every_shift() {
    let steps = 12;
    let lowered = chain("f32[4096]", steps, |n| {
        let (by, left) = (1 << n, 4096 - (1 << n));
        format!(
            "cut{n} = f32[{left}] slice(x{n}), slice={{[0:{left}]}}
  p{n} = f32[4096] pad(cut{n}, z), padding={by}_0
  x{} = f32[4096] add(x{n}, p{n})",
            n + 1
        )
    });
    assert!(lowered.host_calls.is_empty(), "{:?}", lowered.host_calls);
    let adds: usize = texts(&lowered).iter().map(|text| text.matches("= add ").count()).sum();
    assert!((steps..=3 * steps).contains(&adds), "{adds} additions");
}

/// Reshapes whose dims do not nest make the indices of their operands longer, threefold here.
#[test]
fn reshapes_of_transposes_are_stored_on_the_way() {
    let lowered = chain("f32[3,5,7]", 40, |n| {
        format!(
            "t{n} = f32[7,5,3] transpose(x{n}), dimensions={{2,1,0}}
  x{} = f32[3,5,7] reshape(t{n})",
            n + 1
        )
    });
    assert!(lowered.host_calls.is_empty(), "{:?}", lowered.host_calls);
    let most = texts(&lowered).iter().map(String::len).max().unwrap();
    assert!(most < 20_000, "a kernel of {most} bytes");
}

/// Returns the elements of a part of an array that is larger than 32 bits count.
fn part_of(root: &str, values: [i32; 4], target: &Target) -> Vec<i32> {
    let text = op(&["s32[4]"], root);
    let module = parsed(&text);
    let whole = group(&module, &["x0"], &["r"]);
    let (id, input) = (whole.outputs[0], whole.inputs[0]);
    let kernel = fused(&module, &whole, target).unwrap();
    let text = kernel.to_string();
    let sequence = Sequence::of_one(&module, id, kernel, 0..1);
    let values = ArrayLiteral::new(ElementType::S32, [4], Data::S32(values.to_vec())).unwrap();
    let values = Literal::Array(values);
    let memory = |_| memory_of(target, module.array_shape(input).unwrap(), &values);
    let ran = run_stages(target, &InterpreterArithmetic, &sequence, &memory)
        .unwrap_or_else(|e| panic!("{e}\n{text}"));
    let results = ran.results(target, &sequence).unwrap_or_else(|| panic!("poison\n{text}"));
    match results[0].as_array().unwrap().data() {
        Data::S32(values) => values.clone(),
        other => panic!("{other:?}"),
    }
}

/// 2^31 and 3 * 10^9 do not fit in s32, nor do differences from them.
#[test]
fn indices_beyond_32_bits() {
    for name in ["tpu-like", "mlu-like", "linear"] {
        let target = target(name);
        let padded = "z = s32[] constant(9)
  p = s32[3000000004] pad(x0, z), padding=3000000000_0
  ROOT r = s32[5] slice(p), slice={[2999999998:3000000003]}";
        assert_eq!(part_of(padded, [1, 2, 3, 4], &target), [9, 9, 1, 2, 3], "{name}");
        let joined = "z = s32[] constant(9)
  b = s32[3000000000] broadcast(z), dimensions={}
  c = s32[3000000004] concatenate(x0, b), dimensions={0}
  ROOT r = s32[4] slice(c), slice={[0:3000000004:1000000000]}";
        assert_eq!(part_of(joined, [1, 2, 3, 4], &target), [1, 9, 9, 9], "{name}");
        let counted = "i = f32[3000000004] iota(), iota_dimension=0
  l = s32[3000000004] convert(i)
  s = s32[4] slice(l), slice={[0:3000000004:1000000000]}
  ROOT r = s32[4] add(s, x0)";
        let expected = [0, 1_000_000_000, 2_000_000_000, i32::MAX];
        assert_eq!(part_of(counted, [0; 4], &target), expected, "{name}");
    }
}
