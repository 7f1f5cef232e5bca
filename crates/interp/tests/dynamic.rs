//! Dims of a size known only at run time: what is refused, and what inputs have
//! them. What they compute is tested by the fixtures of `ops`.

use std::io::Cursor;

use tilewright_interp::{InputKind, Limits, evaluate, inputs_for, npz};
use tilewright_ir::{ArrayLiteral, Data, ElementType, Literal, Shape, Verified};

fn module(lines: &str) -> Verified {
    let text = format!("HloModule m\nENTRY e {{\n  {}\n}}\n", lines.replace("; ", "\n  "));
    tilewright_text::parse_and_verify(&text).unwrap()
}

fn floats(dims: &[i64]) -> Literal {
    let count = dims.iter().product::<i64>() as usize;
    let data = Data::F32((0..count).map(|i| i as f32).collect());
    ArrayLiteral::new(ElementType::F32, dims.iter().copied(), data).unwrap().into()
}

fn numbers(values: &[i32]) -> Vec<Literal> {
    let scalar = |&v: &i32| ArrayLiteral::new(ElementType::S32, [], Data::S32(vec![v])).unwrap();
    values.iter().map(scalar).map(Literal::Array).collect()
}

fn run(lines: &str, inputs: &[Literal]) -> Result<Literal, String> {
    evaluate(&module(lines), inputs, &Limits::default()).map_err(|error| error.to_string())
}

/// Returns the error of lines after a parameter `x` of 5 rows, of which `d` has the first `n`,
/// and a number `m`.
fn error(lines: &str, sizes: [i32; 2]) -> String {
    let start = "x = f32[5,3] parameter(0); n = s32[] parameter(1); m = s32[] parameter(2); \
                 d = f32[<=5,3] set-dimension-size(x, n), dimensions={0}; ";
    let inputs = [vec![floats(&[5, 3])], numbers(&sizes)].concat();
    run(&format!("{start}{lines}"), &inputs).unwrap_err()
}

#[test]
fn what_is_not_there_is_not_read() {
    let grow = "ROOT r = f32[<=5,3] set-dimension-size(d, m), dimensions={0}";
    let message = error(grow, [2, 3]);
    assert!(message.contains("`r`") && message.contains("dim 0 of 2 elements 3 long"), "{message}");
    assert!(error(grow, [-1, 1]).contains("a size of -1"));
    assert!(error(grow, [6, 1]).contains("dim 0 of 5 elements 6 long"));
    // A static result has no room for fewer elements.
    let stays = error("ROOT r = f32[5,3] set-dimension-size(d, m), dimensions={0}", [2, 2]);
    assert!(stays.contains("yields f32[2,3], which is no f32[5,3]"), "{stays}");
    let slice = "ROOT r = f32[1,3] slice(d), slice={[3:4], [0:3]}";
    assert!(error(slice, [3, 0]).contains("yields f32[0,3], which is no f32[1,3]"));
    let slice = "ROOT r = f32[3,3] dynamic-slice(d, m, m), dynamic_slice_sizes={3,3}";
    assert!(error(slice, [2, 0]).contains("takes 3 elements of dim 0, which has 2"));
}

#[test]
fn sizes_that_differ_are_not_made_equal() {
    let two = "e = f32[<=5,3] set-dimension-size(x, m), dimensions={0}; ";
    let sum = error(&format!("{two}ROOT r = f32[<=5,3] add(d, e)"), [2, 3]);
    assert!(sum.contains("f32[2,3] and f32[3,3]"), "{sum}");
    let update =
        format!("{two}z = s32[] constant(0); ROOT r = f32[<=5,3] dynamic-update-slice(d, e, z, z)");
    assert!(error(&update, [3, 2]).contains("replaces dim 0 of 3 elements by one of 2"));
}

#[test]
fn reshapes_say_which_dim_has_which_size() {
    let flat = "f = f32[<=15] reshape(d); ";
    let split = error(&format!("{flat}ROOT r = f32[<=3,<=5] reshape(f)"), [2, 0]);
    assert!(split.contains("which of the dynamic dims of f32[<=3,<=5]"), "{split}");
    let uneven = error(&format!("{flat}ROOT r = f32[<=3,5] reshape(f)"), [2, 0]);
    assert!(uneven.contains("[6] do not divide into [5]"), "{uneven}");
    let lost = error("ROOT r = f32[15] reshape(d)", [2, 0]);
    assert!(lost.contains("[2, 3] do not have as many elements as [15]"), "{lost}");
    let count = error("ROOT r = f32[<=15] dynamic-reshape(d, m)", [2, 5]);
    assert!(count.contains("[2, 3] do not have as many elements as [5]"), "{count}");
    let long = "one = s32[] constant(1); ROOT r = f32[<=5,<=3] dynamic-reshape(d, m, one)";
    assert!(error(long, [2, 6]).contains("yields f32[6,1], which is no f32[<=5,<=3]"));
}

#[test]
fn what_nobody_says_is_not_guessed() {
    let padded = "z = f32[] constant(0); \
        ROOT r = f32[<=5,3] reduce-window(d, z), window={size=3x1 pad=1_1x0_0}, to_apply={ \
        a = f32[] parameter(0); b = f32[] parameter(1); ROOT s = f32[] add(a, b) }";
    assert!(error(padded, [2, 0]).contains("a padded window over the dynamic dim 0"));
    let bits = "ROOT r = f32[3,<=5]{0,1} bitcast(d)";
    assert!(error(bits, [2, 0]).contains("may lie in memory otherwise than"));
    let gathered = error(
        "ROOT r = f32[<=5,3] all-reduce(d), to_apply={ a = f32[] parameter(0); \
        b = f32[] parameter(1); ROOT s = f32[] add(a, b) }",
        [2, 0],
    );
    assert!(gathered.contains("devices hand each other no values of dynamic dims"), "{gathered}");
    let chosen = "f = f32[<=15] reshape(d); \
        ROOT r = (f32[7], s32[7]) custom-call(f), custom_call_target=\"TopK\"";
    assert!(error(chosen, [2, 0]).contains("it takes no f32[<=15]"));
    let unknown = "z = f32[] constant(0); ROOT r = f32[?] broadcast(z), dimensions={}";
    assert!(error(unknown, [2, 0]).contains("nothing says how large f32[?] is"));
}

#[test]
fn inputs_have_any_size_up_to_the_bound() {
    let sum = module(
        "x = f32[<=4,2] parameter(0); y = f32[<=4,2] parameter(1); \
        ROOT r = f32[<=4,2] add(x, y)",
    );
    for rows in 0..=4 {
        let input = floats(&[rows, 2]);
        let doubled = evaluate(&sum, &[input.clone(), input], &Limits::default()).unwrap();
        assert_eq!(doubled.shape(), Shape::array(ElementType::F32, [rows, 2]));
    }
    let error = evaluate(&sum, &[floats(&[5, 2]), floats(&[5, 2])], &Limits::default());
    assert!(error.unwrap_err().to_string().contains("f32[<=4,2], but the input is f32[5,2]"));
    // Any size of an unbounded dim.
    let any = "x = f32[?,2] parameter(0); ROOT r = f32[?,2] negate(x)";
    assert_eq!(run(any, &[floats(&[3, 2])]).unwrap().shape(), floats(&[3, 2]).shape());

    let mut sizes = std::collections::BTreeSet::new();
    for seed in 0..3 {
        for &kind in InputKind::ALL {
            let inputs = inputs_for(&sum, seed, kind).unwrap();
            let dims = inputs[0].shape().as_array().unwrap().dims().to_vec();
            assert!(evaluate(&sum, &inputs, &Limits::default()).is_ok());
            sizes.insert(dims[0]);
        }
    }
    assert_eq!(sizes, (0..=4).collect());
}

#[test]
fn files_have_any_size_up_to_the_bound() {
    let shape = module("x = f32[<=4,2] parameter(0); ROOT r = f32[<=4,2] negate(x)");
    let shape = shape.shape(shape.computation(shape.entry().unwrap()).parameters()[0]);
    for rows in [0, 3, 5] {
        let mut file = Cursor::new(Vec::new());
        npz::write(&mut file, &[("in", &[floats(&[rows, 2])])]).unwrap();
        let read = npz::read(file, "in", &[shape]);
        assert_eq!(read.ok(), (rows < 5).then(|| vec![floats(&[rows, 2])]));
    }
}
