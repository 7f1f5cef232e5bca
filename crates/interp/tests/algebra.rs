//! Programs over a finite field: laws that hold there, and differences that show.

use tilewright_interp::algebra::{AlgebraOptions, Verdict, compare};
use tilewright_ir::{Opcode, Verified};
use tilewright_text::parse_and_verify;

#[track_caller]
fn module(text: &str) -> Verified {
    match parse_and_verify(text) {
        Ok(module) => module,
        Err(invalid) => panic!("{invalid}\n{text}"),
    }
}

/// Returns a module of three vectors of 12 floats, its body, and its one result.
fn program(element_type: &str, body: &str) -> Verified {
    let text = format!(
        "HloModule m

         sum {{
           a = {element_type}[] parameter(0)
           b = {element_type}[] parameter(1)
           ROOT s = {element_type}[] add(a, b)
         }}

         largest {{
           a = {element_type}[] parameter(0)
           b = {element_type}[] parameter(1)
           ROOT s = {element_type}[] maximum(a, b)
         }}

         ENTRY e {{
           x = {element_type}[12] parameter(0)
           y = {element_type}[12] parameter(1)
           z = {element_type}[12] parameter(2)
           zero = {element_type}[] constant(0)
           {body}
         }}"
    );
    module(&text.replace("F[", &format!("{element_type}[")))
}

#[track_caller]
fn verdict(a: &str, b: &str) -> Verdict {
    let options = AlgebraOptions::default();
    let mut found = compare(&program("f32", a), &program("f32", b), &options);
    assert_eq!(found.len(), 1);
    found.remove(0)
}

#[track_caller]
fn equal(a: &str, b: &str) {
    assert_eq!(verdict(a, b), Verdict::Equal, "{a}\n{b}");
}

#[track_caller]
fn differ(a: &str, b: &str) {
    let found = verdict(a, b);
    assert!(found.differs(), "{found:?}\n{a}\n{b}");
}

/// Shorthand for a chain of instructions, the last one the root.
fn chain(lines: &[&str]) -> String {
    let last = lines.len() - 1;
    let lines = lines.iter().enumerate();
    let lines =
        lines.map(|(i, line)| if i == last { format!("ROOT {line}") } else { (*line).into() });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn sums_and_products_may_be_regrouped() {
    let left = chain(&["a = F[12] add(x, y)", "b = F[12] multiply(a, z)"]);
    let right =
        chain(&["a = F[12] multiply(z, y)", "b = F[12] multiply(x, z)", "c = F[12] add(a, b)"]);
    equal(&left, &right);
    let wrong = right.replace("multiply(x, z)", "multiply(x, y)");
    differ(&left, &wrong);
}

#[test]
fn a_factor_comes_out_of_a_sum() {
    let inside = chain(&[
        "s = F[] reduce(x, zero), dimensions={0}, to_apply=sum",
        "r = F[] rsqrt(s)",
        "b = F[12] broadcast(r), dimensions={}",
        "p = F[12] multiply(b, y)",
        "t = F[] reduce(p, zero), dimensions={0}, to_apply=sum",
    ]);
    let outside = chain(&[
        "s = F[] reduce(x, zero), dimensions={0}, to_apply=sum",
        "q = F[] sqrt(s)",
        "t = F[] reduce(y, zero), dimensions={0}, to_apply=sum",
        "o = F[] divide(t, q)",
    ]);
    equal(&inside, &outside);
    differ(&inside, &outside.replace("reduce(y,", "reduce(z,"));
}

#[test]
fn a_sum_of_squares_may_be_shifted() {
    let direct = chain(&[
        "n = F[] constant(12)",
        "s = F[] reduce(x, zero), dimensions={0}, to_apply=sum",
        "m = F[] divide(s, n)",
        "b = F[12] broadcast(m), dimensions={}",
        "d = F[12] subtract(x, b)",
        "q = F[12] multiply(d, d)",
        "v = F[] reduce(q, zero), dimensions={0}, to_apply=sum",
    ]);
    let shifted = chain(&[
        "n = F[] constant(0.083333336)",
        "q = F[12] multiply(x, x)",
        "s = F[] reduce(x, zero), dimensions={0}, to_apply=sum",
        "w = F[] reduce(q, zero), dimensions={0}, to_apply=sum",
        "m = F[] multiply(s, s)",
        "k = F[] multiply(m, n)",
        "v = F[] subtract(w, k)",
    ]);
    equal(&direct, &shifted);
    differ(&direct, &shifted.replace("0.083333336", "0.08333334"));
    differ(&direct, &direct.replace("constant(12)", "constant(11)"));
}

#[test]
fn dots_are_sums_of_products() {
    let dot = chain(&["d = F[] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}"]);
    let sum = chain(&[
        "p = F[12] multiply(y, x)",
        "m = F[3,4] reshape(p)",
        "s = F[4] reduce(m, zero), dimensions={0}, to_apply=sum",
        "t = F[] reduce(s, zero), dimensions={0}, to_apply=sum",
    ]);
    equal(&dot, &sum);
    differ(&dot, &sum.replace("multiply(y, x)", "multiply(y, y)"));
}

#[test]
fn functions_keep_the_laws_that_are_known() {
    let pairs: [(&[&str], &[&str]); 5] = [
        (
            &["l = F[12] logistic(x)"],
            &[
                "o = F[] constant(1)",
                "b = F[12] broadcast(o), dimensions={}",
                "n = F[12] negate(x)",
                "e = F[12] exponential(n)",
                "s = F[12] add(b, e)",
                "d = F[12] divide(b, s)",
            ],
        ),
        (
            &["n = F[12] negate(x)", "t = F[12] tanh(n)"],
            &["t = F[12] tanh(x)", "n = F[12] negate(t)"],
        ),
        (
            &[
                "h = F[] constant(-0.5)",
                "b = F[12] broadcast(h), dimensions={}",
                "p = F[12] power(x, b)",
            ],
            &["r = F[12] rsqrt(x)"],
        ),
        (
            &[
                "h = F[] constant(3)",
                "b = F[12] broadcast(h), dimensions={}",
                "p = F[12] power(x, b)",
            ],
            &["q = F[12] multiply(x, x)", "p = F[12] multiply(q, x)"],
        ),
        (
            &["p = F[12] multiply(x, y)", "r = F[12] sqrt(p)"],
            &["a = F[12] sqrt(x)", "b = F[12] sqrt(y)", "r = F[12] multiply(a, b)"],
        ),
    ];
    for (a, b) in pairs {
        equal(&chain(a), &chain(b));
    }
    differ(&chain(&["l = F[12] logistic(x)"]), &chain(&["l = F[12] tanh(x)"]));
    differ(&chain(&["l = F[12] exponential(x)"]), &chain(&["l = F[12] exponential(y)"]));
}

#[test]
fn what_depends_on_an_unknown_law_is_said() {
    let square = chain(&["r = F[12] log(x)", "s = F[12] add(r, r)"]);
    let other = chain(&["p = F[12] multiply(x, x)", "s = F[12] log(p)"]);
    let Verdict::Differs { unless, .. } = verdict(&square, &other) else {
        panic!("{:?}", verdict(&square, &other));
    };
    assert_eq!(unless.len(), 1);
}

#[test]
fn constants_are_what_they_stand_for() {
    let scaled = |constant: &[&str]| {
        let rest = ["b = F[12] broadcast(c), dimensions={}", "p = F[12] multiply(b, x)"];
        chain(&[constant, &rest].concat())
    };
    let third = scaled(&["t = F[] constant(3)", "o = F[] constant(1)", "c = F[] divide(o, t)"]);
    let folded = scaled(&["c = F[] constant(0.33333334)"]);
    equal(&third, &folded);
    differ(&third, &folded.replace("334)", "337)"));
    // 1 / sqrt(3), as f32.
    let root = scaled(&["t = F[] constant(3)", "c = F[] rsqrt(t)"]);
    let folded = scaled(&["c = F[] constant(0.57735026)"]);
    equal(&root, &folded);
    differ(&root, &folded.replace("26)", "3)"));
    // Through a tuple, too.
    let tuple = "u = (F[], F[]) tuple(t, t)\ng = F[] get-tuple-element(u), index=1";
    let root = scaled(&["t = F[] constant(3)", tuple, "c = F[] rsqrt(g)"]);
    equal(&root, &folded);
}

#[test]
fn conversions_do_not_round() {
    let narrow = chain(&[
        "a = bf16[12] convert(x)",
        "b = bf16[12] convert(y)",
        "s = bf16[12] add(a, b)",
        "c = F[12] convert(s)",
    ]);
    equal(&narrow, &chain(&["s = F[12] add(y, x)"]));
}

#[test]
fn maxima_agree_in_any_order_and_decide_nothing_else() {
    let whole = chain(&["m = F[] reduce(x, zero), dimensions={0}, to_apply=largest"]);
    let staged = chain(&[
        "r = F[3,4] reshape(x)",
        "a = F[3] reduce(r, zero), dimensions={1}, to_apply=largest",
        "m = F[] reduce(a, zero), dimensions={0}, to_apply=largest",
    ]);
    let through = vec![Opcode::Maximum];
    assert_eq!(verdict(&whole, &staged), Verdict::Agrees { through });
    let other = whole.replace("(x,", "(y,");
    let undecided = Verdict::Undecided { why: "it depends on maximum".into() };
    assert_eq!(verdict(&whole, &other), undecided);
}

#[test]
fn what_a_comparison_of_floats_decides_is_unsure() {
    let chosen = chain(&["c = pred[12] compare(x, y), direction=GT", "s = F[12] select(c, x, z)"]);
    let other = chosen.replace("(x, y)", "(x, z)");
    assert!(matches!(verdict(&chosen, &other), Verdict::Undecided { .. }));
    assert!(matches!(verdict(&chosen, &chosen), Verdict::Agrees { .. }));
    let place = chain(&[
        "c = pred[12] compare(x, y), direction=GT",
        "i = s32[12] convert(c)",
        "f = F[12] convert(i)",
        "s = F[12] multiply(f, z)",
    ]);
    assert!(matches!(verdict(&chosen, &place), Verdict::Undecided { .. }));
}

#[test]
fn what_integers_decide_is_sure() {
    let even = chain(&[
        "i = s32[12] iota(), iota_dimension=0",
        "o = s32[] constant(1)",
        "b = s32[12] broadcast(o), dimensions={}",
        "a = s32[12] and(i, b)",
        "c = pred[12] compare(a, b), direction=NE",
        "s = F[12] select(c, x, y)",
    ]);
    let odd =
        even.replace("direction=NE", "direction=EQ").replace("select(c, x, y)", "select(c, y, x)");
    equal(&even, &odd);
    differ(&even, &even.replace("direction=NE", "direction=EQ"));
}

#[test]
fn a_difference_is_shown_where_it_is() {
    let whole = chain(&["r = F[3,4] reshape(x)"]);
    let changed = chain(&[
        "a = F[10] slice(x), slice={[0:10]}",
        "b = F[2] slice(y), slice={[10:12]}",
        "c = F[12] concatenate(a, b), dimensions={0}",
        "r = F[3,4] reshape(c)",
    ]);
    let expected = Verdict::Differs { at: vec![2, 2], unless: Vec::new() };
    assert_eq!(verdict(&whole, &changed), expected);
}

#[test]
fn what_takes_too_long_is_undecided() {
    let mut options = AlgebraOptions::default();
    options.limits.max_steps = 2;
    let text = chain(&["a = F[12] add(x, y)", "b = F[12] add(a, z)", "c = F[12] add(b, z)"]);
    let found = compare(&program("f32", &text), &program("f32", &text), &options);
    assert!(matches!(found.as_slice(), [Verdict::Undecided { why }] if why.contains("steps")));
}

#[test]
fn the_sign_of_a_single_number_is_no_chance() {
    // Over the field, |x| is x for half of all x.
    let scalar = |result: &str| {
        module(&format!(
            "HloModule m

             ENTRY e {{
               x = f32[] parameter(0)
               size = f32[] abs(x)
               ROOT r = f32[] {result}
             }}"
        ))
    };
    for seed in 0..8 {
        let options = AlgebraOptions { seed, ..AlgebraOptions::default() };
        let verdict = |a: &str, b: &str| compare(&scalar(a), &scalar(b), &options).remove(0);
        assert!(verdict("copy(size)", "copy(x)").differs(), "seed {seed}");
        assert_ne!(verdict("maximum(size, x)", "copy(x)"), Verdict::Equal, "seed {seed}");
        assert_ne!(verdict("minimum(size, x)", "copy(size)"), Verdict::Equal, "seed {seed}");
        assert_eq!(verdict("copy(size)", "abs(x)"), Verdict::Equal, "seed {seed}");
    }
}
