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
    assert!(error(grow, [-1, 1]).contains("a size of -1"));
    assert!(error(grow, [6, 1]).contains("dim 0 of at most 5 elements 6 long"));
    assert!(error(grow, [2, 6]).contains("dim 0 of at most 5 elements 6 long"));
    // A static result has no room for fewer elements.
    let stays = error("ROOT r = f32[5,3] set-dimension-size(d, m), dimensions={0}", [2, 2]);
    assert!(stays.contains("yields f32[2,3], which is no f32[5,3]"), "{stays}");
    let slice = "ROOT r = f32[1,3] slice(d), slice={[3:4], [0:3]}";
    assert!(error(slice, [3, 0]).contains("yields f32[0,3], which is no f32[1,3]"));
    let slice = "ROOT r = f32[3,3] dynamic-slice(d, m, m), dynamic_slice_sizes={3,3}";
    assert!(error(slice, [2, 0]).contains("takes 3 elements of dim 0, which has 2"));
}

/// Rows of `x`, of 1 to 15, added to those of `y`, 100 times as large, and summed; from jaxlib 0.12.0.1.
#[test]
fn elementwise_ops_of_two_sizes_repeat_one_row_and_else_take_the_fewer() {
    let text = "x = f32[5,3] parameter(0); y = f32[5,3] parameter(1); n = s32[] parameter(2); \
        m = s32[] parameter(3); d = f32[<=5,3] set-dimension-size(x, n), dimensions={0}; \
        e = f32[<=5,3] set-dimension-size(y, m), dimensions={0}; s = f32[<=5,3] add(d, e); \
        z = f32[] constant(0); r = f32[3] reduce(s, z), dimensions={0}, to_apply={ \
        a = f32[] parameter(0); b = f32[] parameter(1); ROOT c = f32[] add(a, b) }; \
        k = s32[] get-dimension-size(s), dimensions={0}; ROOT t = (f32[3], s32[]) tuple(r, k)";
    let rows = |scale: f32| {
        let data = (1u8..=15).map(|i| scale * f32::from(i)).collect();
        Literal::Array(ArrayLiteral::new(ElementType::F32, [5, 3], Data::F32(data)).unwrap())
    };
    let xla = [
        ([2, 3], [505.0, 707.0, 909.0], 2),
        ([3, 2], [505.0, 707.0, 909.0], 2),
        ([1, 3], [1203.0, 1506.0, 1809.0], 3),
        ([3, 1], [312.0, 615.0, 918.0], 3),
        ([1, 1], [101.0, 202.0, 303.0], 1),
        ([0, 3], [0.0; 3], 0),
        ([1, 0], [0.0; 3], 0),
    ];
    for (sizes, sums, count) in xla {
        let inputs = [vec![rows(1.0), rows(100.0)], numbers(&sizes)].concat();
        let sums = ArrayLiteral::new(ElementType::F32, [3], Data::F32(sums.to_vec())).unwrap();
        let expected = vec![Literal::Array(sums), numbers(&[count]).pop().unwrap()];
        assert_eq!(run(text, &inputs), Ok(Literal::Tuple(expected)), "{sizes:?}");
    }
}

/// A loop pushes rows onto a stack; what it gains is written before it is read. From jaxlib 0.12.0.1.
#[test]
fn dims_grow_up_to_their_bound() {
    let text = "k0 = s32[] parameter(0); z = s32[] constant(0); \
        full = s32[4,2] broadcast(z), dimensions={}; \
        empty = s32[<=4,2] set-dimension-size(full, z), dimensions={0}; \
        init = (s32[<=4,2], s32[]) tuple(empty, k0); \
        w = (s32[<=4,2], s32[]) while(init), condition={ s = (s32[<=4,2], s32[]) parameter(0); \
          buf = s32[<=4,2] get-tuple-element(s), index=0; n = s32[] get-dimension-size(buf), dimensions={0}; \
          lim = s32[] constant(3); ROOT p = pred[] compare(n, lim), direction=LT }, \
        body={ s = (s32[<=4,2], s32[]) parameter(0); buf = s32[<=4,2] get-tuple-element(s), index=0; \
          k = s32[] get-tuple-element(s), index=1; n = s32[] get-dimension-size(buf), dimensions={0}; \
          one = s32[] constant(1); more = s32[] add(n, one); \
          grown = s32[<=4,2] set-dimension-size(buf, more), dimensions={0}; \
          row = s32[1,2] broadcast(n), dimensions={}; zero = s32[] constant(0); \
          put = s32[<=4,2] dynamic-update-slice(grown, row, n, zero); kk = s32[] add(k, one); \
          ROOT t = (s32[<=4,2], s32[]) tuple(put, kk) }; \
        out = s32[<=4,2] get-tuple-element(w), index=0; k1 = s32[] get-tuple-element(w), index=1; \
        r = s32[2] reduce(out, z), dimensions={0}, to_apply={ a = s32[] parameter(0); \
          b = s32[] parameter(1); ROOT c = s32[] add(a, b) }; ROOT t = (s32[2], s32[]) tuple(r, k1)";
    let sums = ArrayLiteral::new(ElementType::S32, [2], Data::S32(vec![3, 3])).unwrap();
    let expected = vec![Literal::Array(sums), numbers(&[8]).pop().unwrap()];
    assert_eq!(run(text, &numbers(&[5])), Ok(Literal::Tuple(expected)));
}

/// Sizes that inputs are drawn for lie within the bound, whatever the kind.
#[test]
fn sizes_are_drawn_up_to_the_bound() {
    let cut = module(
        "x = s32[8] parameter(0); n = s32[] parameter(1); \
        ROOT d = s32[<=8] set-dimension-size(x, n), dimensions={0}",
    );
    for seed in 0..5 {
        for &kind in InputKind::ALL {
            let inputs = inputs_for(&cut, seed, kind).unwrap();
            assert!(evaluate(&cut, &inputs, &Limits::default()).is_ok(), "{kind:?} {seed}");
        }
    }
}

#[test]
fn sizes_that_differ_are_not_made_equal() {
    let two = "e = f32[<=5,3] set-dimension-size(x, m), dimensions={0}; ";
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
