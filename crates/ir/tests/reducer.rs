//! Which computations are known for what they do, and that what they are known
//! for holds: by hand, and by the interpreter on all small integers.

use tilewright_interp::{Limits, evaluate};
use tilewright_ir::reducer::{ArgExtremum, Monoid, Reducer};
use tilewright_ir::{ElementType, Literal, Opcode, Verified};
use tilewright_text::parse_and_verify;

/// Returns a computation on the accumulators `v` (and `i`) and the elements `w` (and `j`).
fn computation(types: &[&str], body: &str) -> Verified {
    let names = if types.len() == 1 { &["v", "w"][..] } else { &["v", "i", "w", "j"] };
    let parameters: String = (names.iter().zip(types.iter().cycle()).enumerate())
        .map(|(number, (name, t))| format!("  {name} = {t}[] parameter({number})\n"))
        .collect();
    let text = format!("HloModule m\nENTRY f {{\n{parameters}  {body}\n}}");
    parse_and_verify(&text).expect("a module")
}

fn reducer(types: &[&str], body: &str) -> Option<Reducer> {
    let module = computation(types, body);
    Reducer::of(&module, module.entry().expect("an entry"))
}

const PAIR: [&str; 2] = ["s32", "s32"];
const NAN_PAIR: [&str; 2] = ["f32", "s32"];

/// The argmax that JAX writes for integers.
const JAX_INTEGERS: &str = "
  gt = pred[] compare(v, w), direction=GT
  value = s32[] select(gt, v, w)
  eq = pred[] compare(v, w), direction=EQ
  lt = pred[] compare(i, j), direction=LT
  and = pred[] and(eq, lt)
  or = pred[] or(gt, and)
  index = s32[] select(or, i, j)
  ROOT r = (s32[], s32[]) tuple(value, index)";

/// The argmax that JAX writes for floats.
const JAX_FLOATS: &str = "
  gt = pred[] compare(v, w), direction=GT
  ne = pred[] compare(v, v), direction=NE
  first = pred[] or(gt, ne)
  value = f32[] select(first, v, w)
  eq = pred[] compare(v, w), direction=EQ
  lt = pred[] compare(i, j), direction=LT
  and = pred[] and(eq, lt)
  or = pred[] or(first, and)
  index = s32[] select(or, i, j)
  ROOT r = (f32[], s32[]) tuple(value, index)";

/// An argmin by `minimum`s, which keeps the last of equal values.
const MINIMA: &str = "
  value = s32[] minimum(w, v)
  le = pred[] compare(w, v), direction=LE
  picked = s32[] select(le, j, i)
  eq = pred[] compare(w, v), direction=EQ
  last = s32[] maximum(i, j)
  index = s32[] select(eq, last, picked)
  ROOT r = (s32[], s32[]) tuple(value, index)";

/// Chooses by a total order, said in other words: not (v <= w), or v = w and ...
const NEGATED: &str = "
  le = pred[] compare(v, w), direction=LE
  gt = pred[] not(le)
  value = s32[] select(le, w, v)
  lt = pred[] compare(v, w), direction=LT
  ge = pred[] compare(j, i), direction=GE
  eq = pred[] xor(le, lt)
  tie = pred[] and(eq, ge)
  keep = pred[] xor(gt, tie)
  index = s32[] select(keep, i, j)
  ROOT r = (s32[], s32[]) tuple(value, index)";

fn extremum(types: [ElementType; 2], greatest: bool, first_index: bool, nan_wins: bool) -> Reducer {
    Reducer::ArgExtremum(ArgExtremum { element_types: types, greatest, first_index, nan_wins })
}

#[test]
fn argmax_and_argmin_are_known_however_they_are_written() {
    use ElementType::{F32, S32};
    let integers = [S32, S32];
    assert_eq!(reducer(&PAIR, JAX_INTEGERS), Some(extremum(integers, true, true, false)));
    assert_eq!(reducer(&PAIR, MINIMA), Some(extremum(integers, false, false, false)));
    assert_eq!(reducer(&PAIR, NEGATED), Some(extremum(integers, true, true, false)));
    let least = JAX_INTEGERS.replace("direction=GT", "direction=LT");
    assert_eq!(reducer(&PAIR, &least), Some(extremum(integers, false, true, false)));
    let floats = [F32, S32];
    assert_eq!(reducer(&NAN_PAIR, JAX_FLOATS), Some(extremum(floats, true, true, true)));
    let least = JAX_FLOATS.replace("direction=GT", "direction=LT");
    assert_eq!(reducer(&NAN_PAIR, &least), Some(extremum(floats, false, true, true)));
    let numbers = JAX_FLOATS.replace("compare(v, v)", "compare(w, w)");
    assert_eq!(reducer(&NAN_PAIR, &numbers), Some(extremum(floats, true, true, false)));
}

#[test]
fn extrema_that_depend_on_the_order_are_not() {
    let cases = [
        ("no word on NaN", JAX_FLOATS.replace("or(gt, ne)", "or(gt, gt)")),
        ("NaN on both sides", JAX_FLOATS.replace("compare(v, v)", "compare(v, w)")),
        ("zeros told apart", JAX_FLOATS.replace("direction=GT", "direction=GT, type=TOTALORDER")),
        ("an index of its own", JAX_FLOATS.replace("or(first, and)", "or(lt, lt)")),
        ("the other's index", JAX_FLOATS.replace("select(or, i, j)", "select(or, j, i)")),
    ];
    for (what, body) in cases {
        assert_ne!(body, JAX_FLOATS, "{what}");
        assert_eq!(reducer(&NAN_PAIR, &body), None, "{what}");
    }
    let cases = [
        ("the first of equal values", JAX_INTEGERS.replace("or(gt, and)", "or(gt, eq)")),
        ("the last of equal values", JAX_INTEGERS.replace("or(gt, and)", "or(gt, gt)")),
        ("the greater of the indices", JAX_INTEGERS.replace("compare(i, j)", "compare(v, j)")),
        ("values that swap", JAX_INTEGERS.replace("select(gt, v, w)", "select(gt, w, v)")),
        ("one value", JAX_INTEGERS.replace("select(gt, v, w)", "select(gt, v, v)")),
        (
            "an index for a value",
            JAX_INTEGERS.replace("tuple(value, index)", "tuple(index, value)"),
        ),
    ];
    for (what, body) in cases {
        assert_ne!(body, JAX_INTEGERS, "{what}");
        assert_eq!(reducer(&PAIR, &body), None, "{what}");
    }
}

#[test]
fn a_monoid_in_disguise_is_known() {
    use ElementType::{BF16, F32, Pred, S32, U8};
    let cases = [
        (
            "bf16",
            Opcode::Add,
            BF16,
            "c = f32[] convert(v) d = f32[] convert(w) s = f32[] add(d, c) ROOT r = bf16[] convert(s)",
        ),
        (
            "f32",
            Opcode::Multiply,
            F32,
            "c = f64[] convert(v) d = f64[] convert(w) s = f64[] multiply(c, d) ROOT r = f32[] convert(s)",
        ),
        ("f32", Opcode::Add, F32, "c = f32[] copy(v) s = f32[] add(c, w) ROOT r = f32[] copy(s)"),
        ("f32", Opcode::Add, F32, "s = f32[] add(w, v) ROOT r = (f32[]) tuple(s)"),
        (
            "s32",
            Opcode::Maximum,
            S32,
            "g = pred[] compare(v, w), direction=GE ROOT r = s32[] select(g, v, w)",
        ),
        (
            "u8",
            Opcode::Minimum,
            U8,
            "g = pred[] compare(w, v), direction=GT ROOT r = u8[] select(g, v, w)",
        ),
        (
            "pred",
            Opcode::Maximum,
            Pred,
            "g = pred[] compare(v, w), direction=GT ROOT r = pred[] select(g, v, w)",
        ),
    ];
    for (t, opcode, element_type, body) in cases {
        let monoid = Monoid { opcode, element_type };
        assert_eq!(reducer(&[t], body).and_then(|r| r.monoid()), Some(monoid), "{body}");
    }
}

#[test]
fn what_looks_like_one_is_not() {
    let cases = [
        ("f32", "g = pred[] compare(v, w), direction=GT ROOT r = f32[] select(g, v, w)"),
        ("s32", "g = pred[] compare(v, w), direction=EQ ROOT r = s32[] select(g, v, w)"),
        ("s32", "g = pred[] compare(v, w), direction=GT ROOT r = s32[] select(g, v, v)"),
        (
            "f16",
            "c = bf16[] convert(v) d = bf16[] convert(w) s = bf16[] add(c, d) ROOT r = f16[] convert(s)",
        ),
        (
            "f32",
            "c = f64[] convert(v) d = f64[] convert(w) s = f64[] subtract(c, d) ROOT r = f32[] convert(s)",
        ),
        ("f32", "c = f64[] convert(v) s = f64[] add(c, c) ROOT r = f32[] convert(s)"),
        (
            "s32",
            "c = s8[] convert(v) d = s8[] convert(w) s = s8[] add(c, d) ROOT r = s32[] convert(s)",
        ),
        (
            "s32",
            "c = u32[] convert(v) d = u32[] convert(w) s = u32[] maximum(c, d) ROOT r = s32[] convert(s)",
        ),
    ];
    for (t, body) in cases {
        assert_eq!(reducer(&[t], body), None, "{body}");
    }
}

/// Returns the result of a computation on a pair of pairs.
fn applied(module: &Verified, [v, i]: [i32; 2], [w, j]: [i32; 2]) -> [i32; 2] {
    let scalar = |value| Literal::scalar(ElementType::S32, value).expect("a literal");
    let inputs = [scalar(v), scalar(i), scalar(w), scalar(j)];
    let result = evaluate(module, &inputs, &Limits::default()).expect("a result");
    let Literal::Tuple(results) = result else { panic!("no tuple") };
    let number = |at: usize| {
        let array = results[at].as_array().and_then(|a| a.as_slice::<i32>());
        array.expect("an integer")[0]
    };
    [number(0), number(1)]
}

#[test]
fn extrema_of_integers_are_semilattices() {
    let pairs: Vec<[i32; 2]> = (-1..=1).flat_map(|v| (0..=2).map(move |i| [v, i])).collect();
    for body in [JAX_INTEGERS, MINIMA, NEGATED] {
        let module = computation(&PAIR, body);
        let of = |a, b| applied(&module, a, b);
        for &a in &pairs {
            assert_eq!(of(a, a), a, "{body}");
            for &b in &pairs {
                assert_eq!(of(a, b), of(b, a), "{a:?} {b:?} {body}");
                for &c in &pairs {
                    assert_eq!(of(of(a, b), c), of(a, of(b, c)), "{a:?} {b:?} {c:?} {body}");
                }
            }
        }
    }
}
