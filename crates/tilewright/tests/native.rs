//! Modules on this CPU, against the interpreter.

use tilewright::interp::compare::{Tolerance, compare};
use tilewright::interp::{Growth, as_near, evaluate, widened, widened_literal};
use tilewright::ir::{ArrayLiteral, Data, ElementType, Literal, Verified};
use tilewright::native::{self, Ran};
use tilewright::{Limits, Progress, devices_of, random_inputs};
use tilewright_testkit::fixture::{fixtures, root};

/// How many times as large an error may become, and by how many units in the last place of the
/// output's largest value besides, as `docs/numerics.md` says.
const GROWTH: Growth = Growth { factor: 4.0, ulps: 4.0 };

fn ran(module: &Verified, inputs: &[Literal], threads: usize) -> (Literal, Ran) {
    let limits = Limits::default();
    let (outputs, ran) = native::run(module, inputs, threads, &limits, &Progress::new()).unwrap();
    (outputs.output, ran)
}

/// Returns how a result differs from the interpreter's. Elements that are further apart than sums
/// in another order may be must be about as near to the result in wider floats.
fn differs(module: &Verified, inputs: &[Literal], found: &Literal) -> Option<String> {
    let limits = Limits::default();
    let expected = evaluate(module, inputs, &limits).unwrap();
    let differences = match compare(&expected, found, Tolerance::of) {
        Ok(all) => all,
        Err(error) => return Some(error.to_string()),
    };
    if differences.iter().all(|one| one.equal) {
        return None;
    }
    let wide_inputs: Vec<Literal> = inputs.iter().map(|x| widened_literal(x).unwrap()).collect();
    let exact = evaluate(&widened(module).unwrap(), &wide_inputs, &limits).unwrap();
    let near = as_near(&exact, &expected, found, GROWTH);
    let mut leaves = differences.iter().zip(near);
    let bad =
        leaves.find(|(one, near)| !one.equal && (near.is_empty() || near.iter().any(|near| !near)));
    bad.map(|(one, _)| format!("{one:?}"))
}

/// Checks a module with random inputs, with one thread and with two.
fn agrees(text: &str) -> Ran {
    let module = tilewright::parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let inputs = random_inputs(&module, 0).unwrap();
    let (found, ran_once) = ran(&module, &inputs, 1);
    if let Some(why) = differs(&module, &inputs, &found) {
        panic!("{why}\n{text}");
    }
    assert_eq!(ran(&module, &inputs, 2), (found, ran_once.clone()), "two threads");
    ran_once
}

/// Runs the fixtures of a folder; returns how many programs they had.
fn folder(name: &str) -> u64 {
    let (mut programs, mut wrong) = (0, Vec::new());
    for fixture in fixtures(name).unwrap() {
        let Ok(module) = tilewright::parse(&fixture.text().unwrap()) else { continue };
        if devices_of(&module) != tilewright::Devices::ONE {
            continue;
        }
        let Ok(inputs) = random_inputs(&module, 0) else { continue };
        if evaluate(&module, &inputs, &Limits::default()).is_err() {
            continue;
        }
        let (found, ran) = ran(&module, &inputs, 2);
        programs += ran.programs;
        wrong.extend(differs(&module, &inputs, &found).map(|why| (fixture.name.clone(), why)));
    }
    assert!(wrong.is_empty(), "below {}: {wrong:#?}", root().display());
    programs
}

#[test]
fn fixtures_of_models() {
    assert!(folder("models") > 100);
}

#[test]
fn fixtures_of_ops() {
    assert!(folder("ops") > 10);
}

#[test]
fn fixtures_of_rewrites() {
    assert!(folder("rewrite") > 100);
}

const REDUCERS: &str = "
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
max { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] maximum(a, b) }
";

/// A softmax is one program, and nothing is left to the interpreter.
#[test]
fn a_softmax_is_one_program() {
    let ran = agrees(&format!(
        "HloModule m{REDUCERS}ENTRY e {{
  x = f32[5,70] parameter(0)
  low = f32[] constant(-inf)
  zero = f32[] constant(0)
  m = f32[5] reduce(x, low), dimensions={{1}}, to_apply=max
  mb = f32[5,70] broadcast(m), dimensions={{0}}
  d = f32[5,70] subtract(x, mb)
  p = f32[5,70] exponential(d)
  s = f32[5] reduce(p, zero), dimensions={{1}}, to_apply=add
  sb = f32[5,70] broadcast(s), dimensions={{0}}
  ROOT r = f32[5,70] divide(p, sb)
}}"
    ));
    assert_eq!((ran.programs, ran.host_calls.len()), (1, 0));
}

/// Reshapes that split channels into groups, and a reduced array with dims of size 1, are a part of
/// the program; so is the gradient of a bias, which is a sum over what the statistics keep.
#[test]
fn a_group_norm_is_one_program() {
    let ran = agrees(&format!(
        "HloModule m{REDUCERS}ENTRY e {{
  x = f32[2,6,8] parameter(0)
  scale = f32[8] parameter(1)
  zero = f32[] constant(0)
  g = f32[2,6,2,4] reshape(x)
  s = f32[2,2] reduce(g, zero), dimensions={{1,3}}, to_apply=add
  k = f32[2,1,2,1] reshape(s)
  f = f32[2,2] reshape(k)
  sb = f32[2,6,2,4] broadcast(f), dimensions={{0,2}}
  d = f32[2,6,2,4] subtract(g, sb)
  u = f32[2,6,8] reshape(d)
  w = f32[2,6,8] broadcast(scale), dimensions={{2}}
  y = f32[2,6,8] multiply(u, w)
  b = f32[8] reduce(y, zero), dimensions={{0,1}}, to_apply=add
  ROOT both = (f32[2,6,8], f32[8]) tuple(y, b)
}}"
    ));
    assert_eq!((ran.programs, ran.host_calls.len()), (1, 0));
}

/// What needs the result of an op that programs have not is another program: the sum that comes
/// after the product, which itself uses what the first one makes.
#[test]
fn a_program_needs_nothing_that_is_made_of_it() {
    let ran = agrees(&format!(
        "HloModule m{REDUCERS}ENTRY e {{
  x = f32[4,4] parameter(0)
  zero = f32[] constant(0)
  s = f32[4] reduce(x, zero), dimensions={{1}}, to_apply=add
  sb = f32[4,4] broadcast(s), dimensions={{0}}
  d = f32[4,4] subtract(x, sb)
  p = f32[4,4] dot(d, x), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  q = f32[4,4] multiply(p, d)
  ROOT t = f32[4] reduce(q, zero), dimensions={{1}}, to_apply=add
}}"
    ));
    assert_eq!(ran.programs, 2);
    assert_eq!(ran.host_calls.into_iter().collect::<Vec<_>>(), [("dot", 1)]);
}

/// Whole numbers wrap, and inits count once, as a hand calculation says.
#[test]
fn reduces_of_whole_numbers_are_exact() {
    let text = "HloModule m
add { a = s8[] parameter(0) b = s8[] parameter(1) ROOT c = s8[] add(a, b) }
or { a = pred[] parameter(0) b = pred[] parameter(1) ROOT c = pred[] or(a, b) }
ENTRY e {
  x = s8[2,3] parameter(0)
  t = pred[2,2] parameter(1)
  five = s8[] constant(5)
  no = pred[] constant(false)
  s = s8[2] reduce(x, five), dimensions={1}, to_apply=add
  any = pred[2] reduce(t, no), dimensions={0}, to_apply=or
  ROOT both = (s8[2], pred[2]) tuple(s, any)
}";
    let module = tilewright::parse(text).unwrap();
    let array = |element_type, dims: [i64; 2], data| {
        Literal::Array(ArrayLiteral::new(element_type, dims, data).unwrap())
    };
    let x = array(ElementType::S8, [2, 3], Data::S8(vec![1, 2, 3, 100, 27, 1]));
    let t = array(ElementType::Pred, [2, 2], Data::Pred(vec![false, true, false, false]));
    let (found, ran) = ran(&module, &[x, t], 1);
    let Literal::Tuple(parts) = found else { panic!("no tuple") };
    let data: Vec<&Data> = parts.iter().map(|part| part.as_array().unwrap().data()).collect();
    assert!(matches!(data[0], Data::S8(sums) if sums == &[11, -123]), "{data:?}");
    assert!(matches!(data[1], Data::Pred(any) if any == &[false, true]), "{data:?}");
    assert_eq!((ran.programs, ran.host_calls.len()), (2, 0));
}

/// Places of maxima as JAX writes them: the first of equal elements, and of NaN; along any dim.
#[test]
fn places_are_the_first_ones() {
    let text = "HloModule m
argmax {
  a = f32[] parameter(0)
  i = s32[] parameter(1)
  b = f32[] parameter(2)
  j = s32[] parameter(3)
  above = pred[] compare(a, b), direction=GT
  nan = pred[] compare(a, a), direction=NE
  first = pred[] or(above, nan)
  value = f32[] select(first, a, b)
  tie = pred[] compare(a, b), direction=EQ
  before = pred[] compare(i, j), direction=LT
  early = pred[] and(tie, before)
  is = pred[] or(first, early)
  place = s32[] select(is, i, j)
  ROOT both = (f32[], s32[]) tuple(value, place)
}
ENTRY e {
  x = f32[2,3,2] parameter(0)
  places = s32[2,3,2] iota(), iota_dimension=1
  least = f32[] constant(-inf)
  zero = s32[] constant(0)
  ROOT found = (f32[2,2], s32[2,2]) reduce(x, places, least, zero), dimensions={1}, to_apply=argmax
}";
    let module = tilewright::parse(text).unwrap();
    let nan = f32::NAN;
    let data = vec![1.0, 5.0, 3.0, 5.0, 3.0, -1.0, -0.0, 2.0, nan, 7.0, 0.0, nan];
    let x = ArrayLiteral::new(ElementType::F32, [2, 3, 2], Data::F32(data)).unwrap();
    let (found, ran) = ran(&module, &[Literal::Array(x)], 2);
    let Literal::Tuple(parts) = found else { panic!("no tuple") };
    let data: Vec<&Data> = parts.iter().map(|part| part.as_array().unwrap().data()).collect();
    let Data::F32(values) = data[0] else { panic!("{data:?}") };
    assert_eq!(values[..2], [3.0, 5.0]);
    assert!(values[2].is_nan() && values[3].is_nan(), "{values:?}");
    assert!(matches!(data[1], Data::S32(places) if places == &[1, 0, 1, 2]), "{data:?}");
    assert_eq!(ran.programs, 1);
}

/// An init that is no identity counts once, and so does one that is not known before the run; the
/// maximum of nothing is the init. The sum is left to the interpreter.
#[test]
fn inits_of_floats_count_once() {
    let ran = agrees(&format!(
        "HloModule m{REDUCERS}ENTRY e {{
  x = f32[3,5] parameter(0)
  y = f32[3,0] parameter(1)
  init = f32[] parameter(2)
  two = f32[] constant(2)
  a = f32[3] reduce(x, two), dimensions={{1}}, to_apply=add
  b = f32[3] reduce(x, init), dimensions={{1}}, to_apply=max
  c = f32[3] reduce(y, two), dimensions={{1}}, to_apply=max
  ROOT all = (f32[3], f32[3], f32[3]) tuple(a, b, c)
}}"
    ));
    assert_eq!(ran.programs, 1);
}

/// Computations of loops have programs, too.
#[test]
fn loops_run_programs() {
    let ran = agrees(&format!(
        "HloModule m{REDUCERS}
go {{ s = (s32[], f32[4,8]) parameter(0) i = s32[] get-tuple-element(s), index=0
  three = s32[] constant(3) ROOT c = pred[] compare(i, three), direction=LT }}
turn {{ s = (s32[], f32[4,8]) parameter(0) i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1) next = s32[] add(i, one) x = f32[4,8] get-tuple-element(s), index=1
  zero = f32[] constant(0) t = f32[4] reduce(x, zero), dimensions={{1}}, to_apply=add
  b = f32[4,8] broadcast(t), dimensions={{0}} y = f32[4,8] subtract(x, b)
  ROOT r = (s32[], f32[4,8]) tuple(next, y) }}
ENTRY e {{ x = f32[4,8] parameter(0) zero = s32[] constant(0)
  s = (s32[], f32[4,8]) tuple(zero, x)
  ROOT w = (s32[], f32[4,8]) while(s), condition=go, body=turn }}"
    ));
    assert_eq!(ran.programs, 3);
}
