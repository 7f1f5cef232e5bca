//! The language of kernels: what is printed is read back, and what is wrong is
//! told with its line.

use std::cell::Cell;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use tilewright_lower::kernel::{Expr, IndexId, Kernel, Statement, check, lines, parse};
use tilewright_target::Target;

/// Everything that a kernel may have, on a machine of 8x128 vectors.
const ALL: &str = "kernel everything.1 for tpu-like
in x: f32[8192]
in b: bf16[2048]
out y: f32[4096]
workspace w: s32[1024]
vmem xs: f32[2048] twice
vmem bs: bf16[2048]
vmem ys: f32[4096]
vmem is: s32[1024]
vmem ts: f32[1024] twice
fn add(a: f32, b0: f32) {
  c: f32 = add a, b0
  return c
}
fn first_greatest(a: f32, i: s32, b1: f32, j: s32) {
  gt: pred = compare a, b1, direction=GT
  m: f32 = select gt, a, b1
  k: s32 = select gt, i, j
  one: s32 = splat 1
  l: s32 = multiply k, one
  return m, l
}
{
  copy bs[0] <- b[0] of 2048
  wait bs
  stream xs <- x[2048*n] of min(2048, 8192 - 2048*n) for n in 4 {
    v: f32 x 1024 = load xs[1024] where p%128 in 0..100 - 1*n, p/128%8 == n else -inf
    at: s32 x 1024 = positions 128*(p/128%8) + p%128 + 8*(n/2) + n%2
    when n == 0 {
      greatest: f32 x 1024 = splat -inf
      place: s32 x 1024 = splat -1
      for r in 8 - 2*n {
        greatest, place = call first_greatest of greatest, place, v, at
      }
      greatest, place = fold p%128 by first_greatest of greatest, place
      row: s32 x 1024 = spread p/128%8 at 7 of place
      store is[0] = row where p%1024 in 0..12
      store ys[1024*n] = greatest
    }
    bf: bf16 x 2048 = load bs[0]
    wide: f32 x 2048 = convert bf
    cut: f32 x 2048 = reduce-precision wide, exponent_bits=5, mantissa_bits=10
    init: f32 x 2048 = scalar ys[3]
    cut = subtract cut, init
    inside: pred x 1024 = under p%128 in 0..100 - 1*n, p/128%8 == n
    half: f32 x 1024 = part n/2 of wide
    half = gather ys[128*(p%8) + p/8 + n] where p%128 in 0..64 else 0.5
    half = gather ys[1023 - 1*p]
  }
  stream ts[256*q + 64*u] <- x[4096*m + 512*q + u] of 64 each q in 4 each u in 2 for m in 2 {
    turned: f32 x 1024 = gather ts[256*(p/128%4) + p%64] where p/512%2 == m else 0.0
  }
  copy y[0] <- ys[0] of 4096
  copy w[0] <- is[0] of 1024
}
";

fn tpu() -> Target {
    Target::builtin("tpu-like").expect("a built-in target")
}

fn read(text: &str) -> Kernel {
    parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[test]
fn a_kernel_reads_back() {
    let kernel = read(ALL);
    assert_eq!(kernel.to_string(), ALL);
    assert_eq!(read(&kernel.to_string()), kernel);
    assert_eq!(check(&kernel, &tpu()), []);
}

/// The kernel that the docs show is one.
#[test]
fn the_documented_kernel_reads_back() {
    let page = include_str!("../../../docs/kernels.md");
    let text = page.split("```text\n").nth(1).and_then(|rest| rest.split("```").next());
    let text = text.expect("a kernel in the page");
    let kernel = read(text);
    assert_eq!(kernel.to_string(), text);
    assert_eq!(check(&kernel, &tpu()), []);
}

#[test]
fn lines_are_those_of_the_text() {
    fn walk<'a>(statements: &'a [Statement], all: &mut Vec<&'a Statement>) {
        for statement in statements {
            all.push(statement);
            walk(statement.body().unwrap_or_default(), all);
        }
    }
    let kernel = read(ALL);
    let text: Vec<&str> = ALL.lines().collect();
    let mut statements = Vec::new();
    walk(&kernel.body, &mut statements);
    let lines = lines(&kernel);
    assert_eq!(lines.len(), statements.len());
    for (line, statement) in lines.iter().zip(statements) {
        let begins = match statement {
            Statement::For { .. } => "for ",
            Statement::When { .. } => "when ",
            Statement::Stream { .. } => "stream ",
            Statement::Copy { .. } => "copy ",
            Statement::Wait(_) => "wait ",
            Statement::Store { .. } => "store ",
            Statement::Set { .. } => "",
        };
        assert!(text[line - 1].trim().starts_with(begins), "line {line}: {statement:?}");
    }
}

/// One change to the kernel above, and what is said of it: the line, and words
/// of the message.
#[test]
fn flaws_are_told_with_their_line() {
    for (from, to, line, words) in [
        ("xs[1024]", "xs[1000]", 27, "multiples of 1024 elements"),
        ("xs[1024]", "xs[2048]", 27, "`xs`, which has 2048"),
        ("load xs", "load bs", 27, "`bs` bf16"),
        ("load xs[1024]", "load x[1024]", 27, "vectors are loaded from vmem"),
        (" else -inf", "", 27, "`else`"),
        ("at: s32 x", "at: f32 x", 28, "do not agree"),
        ("8*(n/2) + n%2", "8*(m/2) + n%2", 28, "`m` is the index of no loop"),
        ("gather ys[1023", "gather ys[9023", 48, "reaches element 8000 of `ys`"),
        ("gather ys[1023", "gather is[1023", 48, "`half` holds f32, `is` s32"),
        ("gather ys[1023", "gather y[1023", 48, "elements are gathered from vmem"),
        (" else 0.5", "", 47, "`else`"),
        ("part n/2 of", "part p of", 46, "`p` is the position in a vector"),
        ("x[4096*m + 512*q", "x[8192 + 4096*m + 512*q", 50, "which has 8192"),
        ("ts[256*q + 64*u]", "ts[512*q + 64*u]", 50, "which has 1024"),
        ("x[4096*m + 512*q", "x[4096*m + 512*n", 50, "`n` is the index of no loop"),
        ("greatest, place, v, at", "greatest, place, v, place2", 33, "place2"),
        ("fold p%128 by first_greatest", "fold p%128 by add", 35, "do not agree"),
        ("store is[0] = row", "store ys[0] = row", 37, "holds s32"),
        ("ys[1024*n]", "ys[1024*n + 4096]", 38, "which has 4096"),
        ("wide: f32 x 2048", "wide: f32 x 1024", 41, "different numbers of elements"),
        ("scalar ys[3]", "scalar ys[4096]", 43, "which has 4096"),
        ("copy y[0] <- ys[0] of 4096", "copy y[1] <- ys[0] of 4096", 53, "which has 4096"),
        ("copy y[0] <- ys[0]", "copy ys[0] <- ys[0]", 53, "between main memory"),
        ("copy y[0] <- ys[0]", "copy x[0] <- ys[0]", 53, "copies write out or workspace"),
        ("copy w[0] <- is[0]", "copy w[0] <- ys[0]", 54, "elements of two types"),
        ("of min(2048, 8192 - 2048*n)", "of 4096", 26, "which has 8192"),
        ("xs: f32[2048] twice", "xs: f32[2048]", 26, "streams fill vmem twice"),
        ("wait bs", "wait b", 25, "what is waited for is vmem"),
        ("cut = subtract cut, init", "v = subtract v, v\n    cut = subtract cut, cut2", 45, "cut2"),
        ("part n/2 of", "part n + 2 of", 46, "there are 2 parts"),
        ("half: f32 x 1024", "half: f32 x 1000", 46, "no part of 2048"),
        ("inside: pred", "inside: s32", 45, "do not agree"),
        ("under p%128 in", "under p%100 in", 45, "no digit of positions in 1024"),
        ("ys: f32[4096]", "ys: f32[40960000]", 1, "bytes of vector memory"),
        ("gt: pred = compare", "gt: s32 = compare", 1, "`gt` of `first_greatest` is not s32"),
    ] {
        let changed = ALL.replacen(from, to, 1);
        assert_ne!(changed, ALL, "{from}");
        let told = match parse(&changed) {
            Ok(kernel) => check(&kernel, &tpu()).into_iter().next().map(|f| (f.line, f.message)),
            Err(error) => Some((error.line, error.message)),
        };
        let (at, message) = told.unwrap_or_else(|| panic!("{to}: nothing is told"));
        assert_eq!(at, line, "{to}: {message}");
        assert!(message.contains(words), "{to}: {message}");
    }
}

#[test]
fn registers_are_set_before_they_are_read() {
    let text = "kernel k for tpu-like
vmem ys: f32[1024]
{
  for i in 2 {
    a: f32 x 1024 = splat 1.0
  }
  store ys[0] = a
}
";
    let flaws = check(&read(text), &tpu());
    assert_eq!(flaws.len(), 1);
    assert_eq!(
        flaws[0].to_string(),
        "line 7: `a` may not be set yet: set it before the loop or condition"
    );
}

#[test]
fn registers_are_counted_where_they_are_alive() {
    // 64 vectors in one register, and one more beside it.
    let text = |len: u64| {
        format!(
            "kernel k for tpu-like
vmem ys: f32[131072]
{{
  a: f32 x {len} = splat 1.0
  b: f32 x 1024 = splat 2.0
  store ys[0] = b
  store ys[0] = a
}}
"
        )
    };
    assert_eq!(read(&text(63 * 1024)).live_registers(&tpu()), 64);
    assert_eq!(check(&read(&text(63 * 1024)), &tpu()), []);
    let flaws = check(&read(&text(64 * 1024)), &tpu());
    assert!(flaws[0].message.starts_with("65 vector registers"), "{flaws:?}");
}

#[test]
fn what_is_no_kernel_is_refused() {
    for (text, at, words) in [
        ("", "line 1, column 1", "`kernel`"),
        ("kernel k for t\n{\n  a = add b, c\n}", "line 3, column 3", "there is no `a`"),
        ("kernel k for t\nin x: f33[1]\n{\n}", "line 2, column 6", "an element type"),
        ("kernel k for t\nin x: f32[1]\nin x: f32[1]\n{\n}", "line 3, column 4", "a new name"),
        ("kernel k for t\n{\n  for i in 2 {\n", "line 4, column 1", "a name"),
        ("kernel k for t\n{\n}\n}", "line 4, column 1", "the end"),
        ("kernel k for t\n{\n  for i in 3/0 {\n}\n}", "line 3, column 14", "a positive number"),
        ("kernel k for t\n{\n  for i in 99999999999999999999 {\n}\n}", "line 3", "64 bits"),
        ("kernel k for t\n{\n  a: s8 x 4 = splat 128\n}", "line 3, column 21", "a value of s8"),
    ] {
        let error = parse(text).expect_err(text).to_string();
        assert!(error.starts_with(at) && error.contains(words), "{text:?}: {error}");
    }
    let deep = format!("kernel k for t\n{{\n  wait x[{}1\n", "(".repeat(10_000));
    assert!(parse(&deep).is_err());
    let deep = format!("kernel k for t\n{}", "{ for i in 2 ".repeat(10_000));
    assert!(parse(&deep).is_err());
}

/// Expressions of three indices and the position.
fn expression() -> impl Strategy<Value = Expr> {
    let leaf = prop_oneof![
        any::<i64>().prop_map(Expr::Constant),
        (-9i64..9).prop_map(Expr::Constant),
        (0usize..3).prop_map(|index| Expr::Index(IndexId(index))),
        Just(Expr::Position),
    ];
    leaf.prop_recursive(4, 24, 2, |inner| {
        let both = (inner.clone(), inner.clone()).prop_map(|(a, b)| Box::new([a, b]));
        prop_oneof![
            both.clone().prop_map(Expr::Sum),
            both.prop_map(Expr::Least),
            (inner.clone(), -9i64..9).prop_map(|(of, by)| Expr::Times(Box::new(of), by)),
            (inner.clone(), 1i64..9).prop_map(|(of, by)| Expr::Over(Box::new(of), by)),
            (inner, 1i64..9).prop_map(|(of, by)| Expr::Modulo(Box::new(of), by)),
        ]
    })
}

/// Returns a kernel that loops over three indices and uses an expression.
fn with_expression(count: Expr) -> Kernel {
    let mut body = vec![Statement::For { index: IndexId(2), count, body: Vec::new() }];
    for index in [1, 0] {
        body = vec![Statement::For { index: IndexId(index), count: Expr::Constant(3), body }];
    }
    let indices = vec!["i".into(), "j".into(), "k".into()];
    Kernel { name: "k".into(), target: "t".into(), indices, body, ..Kernel::default() }
}

/// Runs a property of a random expression, a divisor and the values of indices and position.
fn for_all(property: impl Fn(&Expr, i64, [i64; 4]) -> Result<(), TestCaseError>) {
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    let strategy = (expression(), 1i64..9, prop::array::uniform4(0i64..4));
    let result = TestRunner::new(config).run(&strategy, |(expr, by, at)| property(&expr, by, at));
    result.unwrap_or_else(|error| panic!("{error}"));
}

fn count(counter: &Cell<u32>, is_counted: bool) {
    counter.set(counter.get() + u32::from(is_counted));
}

#[test]
fn ranges_hold_all_values() {
    let [tried, ranged, simplified] = [const { Cell::new(0_u32) }; 3];
    for_all(|expr, _, at| {
        count(&tried, true);
        let index = |id: IndexId| at.get(id.0).copied();
        let range = expr.range_at(Some(0..=3), &|_| Some(0..=3));
        let value = expr.value_at(Some(at[3]), &index);
        if let (Some(value), Some(range)) = (value, range) {
            count(&ranged, true);
            prop_assert!(range.contains(&value));
        }
        let simple = expr.clone().simplified(Some(0..=3), &|_| Some(0..=3));
        if let (Some(value), Some(simple)) = (value, simple.value_at(Some(at[3]), &index)) {
            count(&simplified, true);
            prop_assert_eq!(value, simple);
        }
        Ok(())
    });
    let [tried, ranged, simplified] = [tried, ranged, simplified].map(Cell::into_inner);
    println!("of {tried} expressions, {ranged} have a range, {simplified} a value once simpler");
    assert!(ranged * 6 >= tried, "{ranged} of {tried} have a range");
    assert!(simplified * 6 >= tried, "{simplified} of {tried} have a value once simpler");
}

#[test]
fn simpler_forms_are_equal() {
    let [tried, valued, divided, left, multiplied, multiples] = [const { Cell::new(0_u32) }; 6];
    for_all(|expr, by, at| {
        count(&tried, true);
        let index = |id: IndexId| at.get(id.0).copied();
        let value = |expr: &Expr| expr.value_at(Some(at[3]), &index);
        let Some(of) = value(expr) else { return Ok(()) };
        count(&valued, true);
        // An overflow has no value in one form, and may have one in the other.
        let same = |counter: &Cell<u32>, simple: Expr, plain: Option<i64>| {
            let simple = value(&simple);
            count(counter, simple.is_some() && plain.is_some());
            simple.is_none() || plain.is_none() || simple == plain
        };
        prop_assert!(same(&divided, expr.clone().quotient(by), of.checked_div_euclid(by)));
        prop_assert!(same(&left, expr.clone().remainder(by), of.checked_rem_euclid(by)));
        prop_assert!(same(&multiplied, expr.clone() * by, of.checked_mul(by)));
        if expr.is_multiple_of(by) {
            count(&multiples, true);
            prop_assert_eq!(of.checked_rem_euclid(by), Some(0));
        }
        Ok(())
    });
    let [tried, valued, divided, left, multiplied, multiples] =
        [tried, valued, divided, left, multiplied, multiples].map(Cell::into_inner);
    println!(
        "of {tried} expressions {valued} have a value; of these, {divided} have one divided, {left} \
         what is left, {multiplied} one multiplied, and {multiples} are known multiples"
    );
    assert!(valued * 6 >= tried, "{valued} of {tried} have a value");
    assert!(divided * 3 >= valued, "{divided} of {valued} have a value divided");
    assert!(left * 3 >= valued, "{left} of {valued} have a value left");
    assert!(multiplied * 10 >= valued, "{multiplied} of {valued} have a value multiplied");
    assert!(multiples * 40 >= valued, "{multiples} of {valued} are known multiples");
}

proptest! {
    #[test]
    fn expressions_read_back(expr in expression()) {
        // Indices are numbered as they are first named.
        let kernel = with_expression(expr);
        let text = kernel.to_string();
        prop_assert_eq!(read(&text).to_string(), text);
    }

    #[test]
    fn broken_texts_never_panic(at in 0usize..ALL.len(), what in "[ -~]{0,3}") {
        let mut text = ALL.to_owned();
        text.replace_range(at..=at, &what);
        if let Ok(kernel) = parse(&text) {
            check(&kernel, &tpu());
            prop_assert_eq!(read(&kernel.to_string()).to_string(), kernel.to_string());
        }
    }
}
