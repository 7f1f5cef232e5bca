//! Random sums of 16-bit floats: added up in 32 bits they are off by no more than one
//! rounding to 16 bits and what f32 rounds.

use crate::common::forms::rewarding;
use crate::common::{changes, module, optimized, passes};
use proptest::prelude::*;
use tilewright_interp::inputs::{InputKind, inputs_for};
use tilewright_interp::{Limits, evaluate};
use tilewright_ir::{Data, Literal};
use tilewright_target::reductions::Form;

/// The type, its unit roundoff, and its smallest positive number.
#[derive(Clone, Copy, Debug)]
struct Narrow(&'static str, f64, f64);

const TYPES: [Narrow; 2] =
    [Narrow("bf16", 1.0 / 256.0, 9.2e-41), Narrow("f16", 1.0 / 2048.0, 6.0e-8)];

fn text(t: &str, dims: &[(usize, bool)], init: i32) -> String {
    let join = |parts: Vec<String>| parts.join(",");
    let sizes = |of: &dyn Fn(bool) -> bool| {
        join(dims.iter().filter(|dim| of(dim.1)).map(|dim| dim.0.to_string()).collect())
    };
    let (all, kept) = (sizes(&|_| true), sizes(&|summed| !summed));
    let places = (0..dims.len()).filter(|&place| dims[place].1);
    let places = join(places.map(|place| place.to_string()).collect());
    format!(
        "HloModule random\nadd {{\n  a = {t}[] parameter(0)\n  b = {t}[] parameter(1)\n  \
         ROOT r = {t}[] add(a, b)\n}}\nENTRY main {{\n  x = {t}[{all}] parameter(0)\n  \
         init = {t}[] constant({init})\n  \
         ROOT sum = {t}[{kept}] reduce(x, init), dimensions={{{places}}}, to_apply=add\n}}\n"
    )
}

fn floats(literal: &Literal) -> Vec<f64> {
    let Literal::Array(array) = literal else { panic!("{literal:?}") };
    match array.data() {
        Data::BF16(values) => values.iter().map(|&value| value.into()).collect(),
        Data::F16(values) => values.iter().map(|&value| value.into()).collect(),
        other => panic!("{other:?}"),
    }
}

/// For each result the sum of its elements, and of their magnitudes, in f64.
fn sums(x: &[f64], dims: &[(usize, bool)], init: f64) -> Vec<(f64, f64)> {
    let kept = dims.iter().filter(|dim| !dim.1).map(|dim| dim.0).product();
    let mut sums = vec![(init, init.abs()); kept];
    for (mut index, value) in x.iter().enumerate() {
        let (mut place, mut stride) = (0, 1);
        for &(size, summed) in dims.iter().rev() {
            if !summed {
                place += index % size * stride;
                stride *= size;
            }
            index /= size;
        }
        sums[place].0 += value;
        sums[place].1 += value.abs();
    }
    sums
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn they_round_once(
        narrow in prop::sample::select(TYPES.to_vec()),
        dims in prop::collection::vec((1usize..40, any::<bool>()), 1..4),
        init in -3i32..4,
        seed in any::<u64>(),
    ) {
        let Narrow(t, roundoff, smallest) = narrow;
        let elements: usize = dims.iter().map(|dim| dim.0).product();
        prop_assume!(elements <= 20_000);
        let before = module(&text(t, &dims, init));
        let mut options = passes(&["reduce-form", "constant-fold", "dce"], "cpu", false);
        options.target = rewarding(Form::InF32);
        let after = optimized(&before, &options);
        let is_sum = dims.iter().any(|dim| dim.1 && dim.0 > 1);
        prop_assert_eq!(changes(&after, "reduce-form") == 1, is_sum && elements >= 1024);
        let inputs = inputs_for(&before, seed, InputKind::Normal).expect("inputs");
        let wide = evaluate(&after.module, &inputs, &Limits::default()).expect("values");
        let exact = sums(&floats(&inputs[0]), &dims, init.into());
        for (sum, (exact, magnitudes)) in floats(&wide).into_iter().zip(exact) {
            let rounded = f64::from(u32::try_from(elements).expect("few")) * 2f64.powi(-24);
            let bound = roundoff * exact.abs() + 1.01 * rounded * magnitudes + smallest;
            prop_assert!((sum - exact).abs() <= bound, "{sum} for {exact}, {bound}");
        }
    }
}
