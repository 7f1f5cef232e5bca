//! Composites of the builder, on numbers that can be worked out by hand.
use tilewright::composite::{
    BatchNorm, Groups, Norm, Variance, argmax, argmin, batch_norm, diagonal, ghost_batch_norm,
    group_norm, instance_norm, layer_norm, log_softmax, mean, rms_norm, softmax, top_k, variance,
    weight_norm,
};
use tilewright::prelude::*;

use ElementType::{BF16, C64, F32, F64, S32};

type Built = Result<InstId, BuildError>;

const EXACT: Norm = Norm { epsilon: 0.0, scale: None, bias: None, variance: Variance::TwoPass };

fn constant(b: &mut Builder, dims: &[i64], values: &[f32]) -> InstId {
    let data = Data::F32(values.to_vec());
    let array = ArrayLiteral::new(F32, dims.iter().copied(), data).unwrap();
    b.constant(array.into()).unwrap()
}

/// Computes the result of a function of an array: dims and elements.
fn of(dims: &[i64], values: &[f32], f: impl FnOnce(&mut Builder, InstId) -> Built) -> Found {
    let mut b = Builder::new("composite");
    let x = constant(&mut b, dims, values);
    let root = f(&mut b, x).unwrap();
    let module = b.finish(root).unwrap();
    let result = tilewright::run(&module, &[], &RunOptions::default()).unwrap().output;
    let array = result.as_array().unwrap();
    let values = match array.data() {
        Data::F32(values) => values.clone(),
        Data::S32(values) => values.iter().map(|&v| f32::from(i16::try_from(v).unwrap())).collect(),
        other => panic!("{other:?}"),
    };
    Found { dims: array.dims().to_vec(), values }
}

struct Found {
    dims: Vec<i64>,
    values: Vec<f32>,
}

impl Found {
    #[track_caller]
    fn is(&self, dims: &[i64], values: &[f32]) {
        assert_eq!(self.dims, dims);
        let close = |a: f32, e: f32| (a - e).abs() < 1e-6 || a.is_nan() && e.is_nan() || a == e;
        let all = self.values.len() == values.len()
            && self.values.iter().zip(values).all(|(&a, &e)| close(a, e));
        assert!(all, "{:?} is not {values:?}", self.values);
    }
}

#[test]
fn moments() {
    let (x, nan) = ([1.0, 2.0, 3.0, 6.0], f32::NAN);
    of(&[4], &x, |b, x| mean(b, x, &[0])).is(&[], &[3.0]);
    of(&[2, 2], &x, |b, x| mean(b, x, &[-2])).is(&[2], &[2.0, 4.0]);
    of(&[2, 2], &x, |b, x| mean(b, x, &[])).is(&[2, 2], &x);
    of(&[2, 0], &[], |b, x| mean(b, x, &[1])).is(&[2], &[nan, nan]);
    // The deviations are -2, -1, 0 and 3; their squares add up to 14.
    for form in [Variance::TwoPass, Variance::OnePass] {
        for (correction, expected) in [(0.0, 3.5), (1.0, 14.0 / 3.0), (4.0, nan), (9.0, nan)] {
            let found = of(&[4], &x, |b, x| variance(b, x, &[0], correction, form));
            found.is(&[], &[expected]);
        }
        of(&[0], &[], |b, x| variance(b, x, &[0], 0.0, form)).is(&[], &[nan]);
    }
}

#[test]
fn no_variance_is_below_0() {
    // Equal numbers, whose squares round up or down.
    let x: Vec<f32> = (0..300_u16).map(|i| 0.1 * f32::from(i / 3)).collect();
    let found = of(&[100, 3], &x, |b, x| variance(b, x, &[1], 0.0, Variance::OnePass));
    assert!(found.values.iter().all(|&v| v >= 0.0), "{:?}", found.values);
}

#[test]
fn narrow_floats_are_summed_in_wider_ones() {
    // A sum in bf16 would stop at 256.
    let mut b = Builder::new("wide");
    let x = b.parameter("x", Shape::array(BF16, [512])).unwrap();
    let y = mean(&mut b, x, &[0]).unwrap();
    let module = b.finish(y).unwrap();
    let x = ArrayLiteral::new(BF16, [512], Data::BF16(vec![half::bf16::ONE; 512])).unwrap();
    let y = tilewright::run(&module, &[x.into()], &RunOptions::default()).unwrap().output;
    assert_eq!(y, Literal::scalar(BF16, half::bf16::ONE).unwrap());
}

#[test]
fn doubles_stay_doubles() {
    let mut b = Builder::new("double");
    let x = b.parameter("x", Shape::array(F64, [2])).unwrap();
    let BatchNorm { y, mean, variance } = batch_norm(&mut b, x, 0, &EXACT).unwrap();
    let s = softmax(&mut b, x, &[0]).unwrap();
    for id in [y, mean, variance, s] {
        assert_eq!(*b.module().shape(id), Shape::array(F64, [2]));
    }
}

#[test]
fn choices() {
    let x = [3.0, 7.0, 7.0, f32::NAN, 2.0, f32::NAN];
    of(&[2, 3], &x, |b, x| argmax(b, x, 1)).is(&[2], &[1.0, 0.0]);
    of(&[2, 3], &x, |b, x| argmin(b, x, -1)).is(&[2], &[0.0, 0.0]);
    of(&[2, 3], &x, |b, x| argmin(b, x, 0)).is(&[3], &[1.0, 1.0, 1.0]);
    of(&[0, 3], &[], |b, x| argmax(b, x, 1)).is(&[0], &[]);
    let x = [3.0, 9.0, 8.0, 1.0, 3.0, 9.0];
    let values = |b: &mut Builder, x| Ok(top_k(b, x, 2, 0)?.0);
    let places = |b: &mut Builder, x| Ok(top_k(b, x, 2, 0)?.1);
    of(&[3, 2], &x, values).is(&[2, 2], &[8.0, 9.0, 3.0, 9.0]);
    of(&[3, 2], &x, places).is(&[2, 2], &[1.0, 0.0, 0.0, 2.0]);
}

#[test]
fn diagonals() {
    let x = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    let at = |offset, dim1, dim2| {
        of(&[2, 3], &x, |b: &mut Builder, x| diagonal(b, x, offset, dim1, dim2))
    };
    at(0, 0, 1).is(&[2], &[1.0, 5.0]);
    at(1, 0, -1).is(&[2], &[2.0, 6.0]);
    at(1, 1, 0).is(&[1], &[4.0]);
    at(-1, -2, -1).is(&[1], &[4.0]);
    for far in [3, -2, i64::MAX, i64::MIN] {
        at(far, 0, 1).is(&[0], &[]);
    }
    // The other dims come first.
    of(&[2, 3, 1], &x, |b, x| diagonal(b, x, -1, 1, 2)).is(&[2, 1], &[2.0, 5.0]);
    of(&[2, 3, 1], &x, |b, x| diagonal(b, x, -1, 1, 0)).is(&[1, 2], &[2.0, 6.0]);
}

#[test]
fn softmaxes() {
    let third = 3.0_f32.ln();
    of(&[1, 2], &[0.0, third], |b, x| softmax(b, x, &[1])).is(&[1, 2], &[0.25, 0.75]);
    of(&[2], &[5.0, 5.0], |b, x| log_softmax(b, x, &[-1])).is(&[2], &[-2.0_f32.ln(); 2]);
    of(&[2], &[300.0, 0.0], |b, x| softmax(b, x, &[0])).is(&[2], &[1.0, 0.0]);
}

#[test]
fn norms() {
    // The mean of 1 and 3 is 2, their variance 1; of 10 and 30 these are 20 and 100.
    let (x, y) = ([1.0, 3.0, 10.0, 30.0], [-1.0, 1.0, -1.0, 1.0]);
    of(&[2, 2], &x, |b, x| layer_norm(b, x, &[1], &EXACT)).is(&[2, 2], &y);
    of(&[1, 2, 2], &x, |b, x| instance_norm(b, x, &[0], 1, &EXACT)).is(&[1, 2, 2], &y);
    of(&[1, 4], &x, |b, x| group_norm(b, x, &[0], Groups { dim: 1, count: 2 }, &EXACT))
        .is(&[1, 4], &y);
    of(&[4, 1], &x, |b, x| group_norm(b, x, &[], Groups { dim: 0, count: 2 }, &EXACT))
        .is(&[4, 1], &y);
    of(&[0, 4], &[], |b, x| group_norm(b, x, &[0], Groups { dim: 1, count: 2 }, &EXACT))
        .is(&[0, 4], &[]);
    of(&[1, 0], &[], |b, x| group_norm(b, x, &[0], Groups { dim: 1, count: 2 }, &EXACT))
        .is(&[1, 0], &[]);
    let rms = |b: &mut Builder, x| rms_norm(b, x, &[0], &EXACT);
    of(&[2], &[1.0, 7.0], rms).is(&[2], &[0.2, 1.4]);
    let one_pass = Norm { variance: Variance::OnePass, epsilon: 3.0, ..EXACT };
    of(&[2], &x[..2], |b, x| layer_norm(b, x, &[0], &one_pass)).is(&[2], &[-0.5, 0.5]);
    let scaled = |b: &mut Builder, x| {
        let (scale, bias) = (constant(b, &[2], &[2.0, 3.0]), constant(b, &[2], &[0.5, 0.0]));
        layer_norm(b, x, &[1], &Norm { scale: Some(scale), bias: Some(bias), ..EXACT })
    };
    of(&[1, 2], &x[..2], scaled).is(&[1, 2], &[-1.5, 3.0]);
    // A scale has the order of the array's dims, not of those that are named.
    let ordered = |b: &mut Builder, x| {
        let scale = constant(b, &[1, 2], &[2.0, 3.0]);
        layer_norm(b, x, &[1, 0], &Norm { scale: Some(scale), ..EXACT })
    };
    of(&[1, 2], &x[..2], ordered).is(&[1, 2], &[-2.0, 3.0]);
}

#[test]
fn groups_are_reduced_with_what_follows_them() {
    let mut b = Builder::new("nchw");
    let x = b.parameter("x", Shape::array(F32, [5, 6, 7, 8])).unwrap();
    let y = group_norm(&mut b, x, &[0], Groups { dim: 1, count: 2 }, &EXACT).unwrap();
    let text = tilewright::print(&b.finish(y).unwrap(), &PrintOptions::default()).unwrap();
    assert!(text.contains("f32[5,2,3,7,8] reshape(%x)"), "{text}");
    assert_eq!(text.matches("f32[5,2] reduce(").count(), 2, "{text}");
    assert_eq!(text.matches("dimensions={2,3,4}, to_apply").count(), 2, "{text}");
}

#[test]
fn norms_over_a_batch() {
    let x = [1.0, 10.0, 3.0, 30.0];
    let batch = |b: &mut Builder, x| batch_norm(b, x, 1, &EXACT).unwrap();
    of(&[2, 2], &x, |b, x| Ok(batch(b, x).y)).is(&[2, 2], &[-1.0, -1.0, 1.0, 1.0]);
    of(&[2, 2], &x, |b, x| Ok(batch(b, x).mean)).is(&[2], &[2.0, 20.0]);
    of(&[2, 2], &x, |b, x| Ok(batch(b, x).variance)).is(&[2], &[1.0, 100.0]);
    let x = [1.0, 3.0, 10.0, 30.0];
    let ghost = |b: &mut Builder, x| {
        ghost_batch_norm(b, x, Groups { dim: 0, count: 2 }, 1, &EXACT).unwrap()
    };
    of(&[4, 1], &x, |b, x| Ok(ghost(b, x).y)).is(&[4, 1], &[-1.0, 1.0, -1.0, 1.0]);
    of(&[4, 1], &x, |b, x| Ok(ghost(b, x).mean)).is(&[2, 1], &[2.0, 20.0]);
    of(&[4, 1], &x, |b, x| Ok(ghost(b, x).variance)).is(&[2, 1], &[1.0, 100.0]);
}

#[test]
fn norms_of_weights() {
    let v = [3.0, 4.0, 6.0, 8.0];
    of(&[2], &v[..2], |b, v| weight_norm(b, v, &[], 0.0, None)).is(&[2], &[0.6, 0.8]);
    let scaled = |b: &mut Builder, v| {
        let scale = constant(b, &[2], &[10.0, 5.0]);
        weight_norm(b, v, &[0], 0.0, Some(scale))
    };
    of(&[2, 2], &v, scaled).is(&[2, 2], &[6.0, 8.0, 3.0, 4.0]);
    // Each of 3 and 4 by itself: 3 / sqrt(9 + 16) and 4 / sqrt(16 + 16).
    let root = 4.0 / 32.0_f32.sqrt();
    of(&[2], &v[..2], |b, v| weight_norm(b, v, &[0], 16.0, None)).is(&[2], &[0.6, root]);
}

/// Returns the error for a composite of a parameter that does not fit.
fn refusal(shape: Shape, f: impl FnOnce(&mut Builder, InstId) -> Built) -> String {
    let mut b = Builder::new("refused");
    let x = b.parameter("x", shape).unwrap();
    let error = f(&mut b, x).expect_err("it does not fit").to_string();
    b.finish(x).expect("what was added until then does no harm");
    error
}

#[test]
fn dims_that_do_not_fit_are_refused() {
    let shape = || Shape::array(F32, [2, 6]);
    let out = |dim: i64| format!("`mean`: there is no dim {dim} in f32[2,6], which has 2");
    for dim in [2, -3, i64::MIN, i64::MAX] {
        assert_eq!(refusal(shape(), |b, x| mean(b, x, &[0, dim])), out(dim));
    }
    assert_eq!(
        refusal(shape(), |b, x| softmax(b, x, &[1, -1])),
        "`softmax`: dim 1 of f32[2,6] is named twice"
    );
    assert_eq!(
        refusal(shape(), |b, x| softmax(b, x, &[0, 1, 0])),
        "`softmax`: dim 0 of f32[2,6] is named twice"
    );
    assert_eq!(
        refusal(Shape::scalar(F32), |b, x| argmax(b, x, -1)),
        "`argmax`: there is no dim -1 in f32[], which has 0"
    );
    assert_eq!(
        refusal(shape(), |b, x| diagonal(b, x, 0, 1, -1)),
        "`diagonal`: dim 1 of f32[2,6] is named twice"
    );
    assert_eq!(
        refusal(shape(), |b, x| group_norm(b, x, &[-1], Groups { dim: 1, count: 2 }, &EXACT)),
        "`group_norm`: dim 1 of f32[2,6] is named twice"
    );
    assert_eq!(
        refusal(shape(), |b, x| Ok(ghost_batch_norm(
            b,
            x,
            Groups { dim: 1, count: 2 },
            1,
            &EXACT
        )?
        .y)),
        "`ghost_batch_norm`: dim 1 of f32[2,6] is named twice"
    );
}

/// The argument of an error is a parameter of the composite that was called.
#[test]
fn errors_name_the_argument() {
    let argument = |shape: Shape, f: fn(&mut Builder, InstId) -> Built| {
        let mut b = Builder::new("refused");
        let x = b.parameter("x", shape).unwrap();
        match f(&mut b, x) {
            Err(BuildError::Argument { argument, .. }) => argument,
            other => panic!("{other:?}"),
        }
    };
    let shape = || Shape::array(F32, [2, 6]);
    assert_eq!(argument(Shape::array(S32, [2]), |b, x| mean(b, x, &[0])), "x");
    assert_eq!(argument(Shape::array(S32, [2]), |b, v| weight_norm(b, v, &[0], 0.0, None)), "v");
    assert_eq!(argument(shape(), |b, x| mean(b, x, &[2])), "dims");
    assert_eq!(argument(shape(), |b, x| argmax(b, x, 2)), "dim");
    assert_eq!(argument(shape(), |b, x| diagonal(b, x, 0, 0, 2)), "dim2");
    assert_eq!(argument(shape(), |b, x| weight_norm(b, x, &[2], 0.0, None)), "kept");
    let instance = |b: &mut Builder, x| instance_norm(b, x, &[0], 2, &EXACT);
    assert_eq!(argument(shape(), instance), "channel");
    let instance = |b: &mut Builder, x| instance_norm(b, x, &[2], 1, &EXACT);
    assert_eq!(argument(shape(), instance), "batch");
}

#[test]
fn operands_that_do_not_fit_are_refused() {
    assert_eq!(
        refusal(Shape::array(S32, [2]), |b, x| mean(b, x, &[0])),
        "`mean`: it takes elements of f16, bf16, f32 or f64, not s32; convert them first"
    );
    let pair = Shape::Tuple(vec![Shape::scalar(F32); 2]);
    assert_eq!(refusal(pair, |b, x| diagonal(b, x, 0, 0, 1)), "`diagonal`: `x` is not an array");
    let dynamic = ArrayShape::new(F32, [8]).with_dynamic(&[true]);
    assert_eq!(
        refusal(dynamic.into(), |b, x| layer_norm(b, x, &[0], &EXACT)),
        "`layer_norm`: it takes an array of static dims, not f32[<=8]"
    );
    assert_eq!(
        refusal(Shape::array(F32, [3, 0]), |b, x| argmin(b, x, 1)),
        "`argmin`: dim 1 of f32[3,0] is empty"
    );
    let orderless = refusal(Shape::array(C64, [3]), |b, x| argmax(b, x, 0));
    assert!(orderless.contains("not c64"), "{orderless}");
    let orderless = refusal(Shape::array(C64, [3]), |b, x| Ok(top_k(b, x, 1, 0)?.0));
    assert_eq!(orderless, "`top_k`: it takes real numbers, not c64");
    let long = || Shape::array(F32, [1 << 31, 1]);
    assert_eq!(
        refusal(long(), |b, x| argmax(b, x, 0)),
        "`argmax`: dim 0 has 2147483648 elements, and s32 tells places"
    );
    assert_eq!(
        refusal(long(), |b, x| diagonal(b, x, 1 - (1 << 31), 0, 1)),
        "`diagonal`: s32 does not tell all places in f32[2147483648,1]"
    );
}

#[test]
fn options_that_do_not_fit_are_refused() {
    let shape = || Shape::array(F32, [2, 6]);
    for groups in [4, 0, -2, 12, i64::MIN] {
        assert_eq!(
            refusal(shape(), |b, x| group_norm(
                b,
                x,
                &[0],
                Groups { dim: 1, count: groups },
                &EXACT
            )),
            format!("`group_norm`: the 6 elements of dim 1 cannot be divided into {groups} groups")
        );
    }
    for k in [-1, 7, i64::MAX] {
        let found = refusal(shape(), |b, x| Ok(top_k(b, x, k, 1)?.0));
        assert_eq!(found, format!("`top_k`: dim 1 has no {k} elements, but 6"));
    }
    for epsilon in [-1e-9, f64::NAN, f64::INFINITY] {
        let norm = Norm { epsilon, ..EXACT };
        let expected = format!("epsilon is {epsilon}, and must be a number of 0 or more");
        for found in [
            refusal(shape(), |b, x| rms_norm(b, x, &[1], &norm)),
            refusal(shape(), |b, x| Ok(batch_norm(b, x, 1, &norm)?.y)),
            refusal(shape(), |b, x| weight_norm(b, x, &[1], epsilon, None)),
        ] {
            assert!(found.ends_with(&expected), "{found}");
        }
    }
    assert_eq!(
        refusal(shape(), |b, x| variance(b, x, &[0], f64::NAN, Variance::TwoPass)),
        "`variance`: the correction NaN is not finite"
    );
    let scaled = |b: &mut Builder, x, scale: Shape| {
        let scale = b.parameter("scale", scale)?;
        instance_norm(b, x, &[0], 1, &Norm { scale: Some(scale), ..EXACT })
    };
    assert_eq!(
        refusal(shape(), |b, x| scaled(b, x, Shape::array(F32, [2]))),
        "`instance_norm`: the scale is f32[2], and must have dims [6]"
    );
    let whole = refusal(shape(), |b, x| scaled(b, x, Shape::array(S32, [6])));
    assert!(whole.contains("not s32"), "{whole}");
}

/// Returns the sizes of the arrays that are reshaped, ascending.
fn reshaped(module: &Module) -> Vec<i64> {
    let entry = module.entry().unwrap();
    let reshapes = module.instructions(entry).filter(|&id| matches!(module.op(id), Op::Reshape(_)));
    let mut sizes: Vec<i64> =
        reshapes.map(|id| module.array_shape(id).unwrap().num_elements().unwrap()).collect();
    sizes.sort_unstable();
    sizes
}

#[test]
fn opt_takes_the_reshapes_from_a_group_norm() {
    for form in [Variance::TwoPass, Variance::OnePass] {
        let mut b = Builder::new("group_norm");
        let x = b.parameter("x", Shape::array(F32, [2, 4, 8, 320])).unwrap();
        let norm = Norm { variance: form, ..Norm::default() };
        let y = group_norm(&mut b, x, &[0], Groups { dim: -1, count: 32 }, &norm).unwrap();
        let before = b.finish(y).unwrap();
        assert_eq!(reshaped(&before), [20_480, 20_480]);
        let options = Options::new(tilewright::target("tpu-like").unwrap());
        let after = tilewright::optimize(before.clone(), &options).unwrap().module;
        // Only the sums and the factors of each image and channel are left.
        let left = reshaped(&after);
        assert!(left.iter().all(|&size| size <= 640), "{left:?}");
        let same = tilewright::check(&before, &after, &CheckOptions::default()).unwrap();
        assert!(same.equal(), "{same:?}");
    }
}

#[test]
fn opt_knows_an_argmax() {
    let mut b = Builder::new("argmax");
    let x = b.parameter("x", Shape::array(F32, [8, 512, 1024])).unwrap();
    let x = b.reshape(x, [8, 4, 128, 16, 64]).unwrap();
    let y = argmax(&mut b, x, 2).unwrap();
    let module = b.finish(y).unwrap();
    let options = Options::new(tilewright::target("tpu-like").unwrap());
    let report = tilewright::optimize(module, &options).unwrap().report;
    assert!(report.after.cycles < report.before.cycles, "{report:?}");
}
