//! Tests that regions compute the same as their instructions one by one.

use tilewright_interp::inside::regions;
use tilewright_interp::{Evaluation, InputKind, Limits, inputs_for};
use tilewright_ir::{Data, Literal, Verified};

fn module(text: &str) -> Verified {
    match tilewright_text::parse_and_verify(text) {
        Ok(module) => module,
        Err(error) => panic!("{error}\n{text}"),
    }
}

fn outputs(module: &Verified, inputs: &[Literal], fuses: bool) -> Literal {
    let evaluation = Evaluation::new(module).limits(Limits::NONE);
    let evaluation = if fuses { evaluation } else { evaluation.one_by_one() };
    match evaluation.run(&[inputs]) {
        Ok(mut outputs) => outputs.remove(0).output,
        Err(error) => panic!("{error}"),
    }
}

fn first_difference(a: &Literal, b: &Literal) -> Option<(usize, Data, Data)> {
    let (Literal::Array(a), Literal::Array(b)) = (a, b) else { panic!("not an array") };
    let element = |data: &Data, at: usize| data.gather(std::iter::once(at));
    (0..a.len().max(b.len()))
        .map(|at| (at, element(a.data(), at), element(b.data(), at)))
        .find(|(_, a, b)| a != b)
}

/// Evaluates both ways, and returns the sizes of the regions.
fn check(text: &str) -> Vec<usize> {
    let module = module(text);
    let inputs = inputs_for(&module, 7, InputKind::Normal).unwrap_or_default();
    let (fused, apart) = (outputs(&module, &inputs, true), outputs(&module, &inputs, false));
    for (number, (fused, apart)) in fused.leaves().iter().zip(apart.leaves()).enumerate() {
        assert_eq!(first_difference(fused, apart), None, "output {number} of {text}");
    }
    regions(&module)
}

#[test]
fn chains_are_one_region_and_compute_the_same() {
    // 40,000 lanes: more than one task, and a last block that is not whole.
    let text = "HloModule m
            ENTRY main {
              x = f32[40,10,100] parameter(0)
              y = f32[10] parameter(1)
              z = f32[40,100] parameter(2)
              s = f32[] parameter(3)
              c = pred[] parameter(4)
              yb = f32[40,10,100] broadcast(y), dimensions={1}
              zb = f32[40,10,100] broadcast(z), dimensions={0,2}
              sb = f32[40,10,100] broadcast(s), dimensions={}
              a = f32[40,10,100] add(x, yb)
              b = f32[40,10,100] multiply(a, zb)
              flat = f32[400,100] reshape(b)
              e = f32[400,100] exponential(flat)
              back = f32[40,10,100] reshape(e)
              most = f32[] constant(3)
              k = f32[40,10,100] clamp(s, back, most)
              w = s32[40,10,100] convert(k)
              v = f32[40,10,100] select(c, k, a)
              m = f32[40,10,100] subtract(v, sb)
              ROOT r = (f32[40,10,100], s32[40,10,100], f32[400,100], f32[40,10,100])
                tuple(m, w, e, m)
            }";
    assert_eq!(check(text), [12]);
}

#[test]
fn what_others_need_ends_a_region() {
    let text = "HloModule m
            sum {
              a = f32[] parameter(0)
              b = f32[] parameter(1)
              ROOT c = f32[] add(a, b)
            }
            ENTRY main {
              x = f32[64,128] parameter(0)
              zero = f32[] constant(0)
              square = f32[64,128] multiply(x, x)
              more = f32[64,128] negate(x)
              total = f32[64] reduce(square, zero), dimensions={1}, to_apply=sum
              spread = f32[64,128] broadcast(total), dimensions={0}
              part = f32[64,128] divide(more, spread)
              turned = f32[128,64] transpose(part), dimensions={1,0}
              tanh = f32[64,128] tanh(part)
              cos = f32[128,64] cosine(turned)
              sin = f32[128,64] sine(cos)
              ROOT r = (f32[64,128], f32[128,64]) tuple(tanh, sin)
            }";
    // The first takes the reduction along.
    assert_eq!(check(text), [3, 2, 3]);
}

#[test]
fn broadcasts_alone_are_no_region() {
    let text = "HloModule m
        ENTRY main {
          x = f32[] parameter(0)
          y = f32[100] parameter(1)
          a = f32[100,100] broadcast(x), dimensions={}
          b = f32[100,100] broadcast(y), dimensions={1}
          ROOT r = (f32[100,100], f32[100,100]) tuple(a, b)
        }";
    assert_eq!(check(text), []);
}

/// Sums of a square over some dims, each in a region with the square.
fn reductions(dims: &[i64], reduced: &[i64]) -> String {
    let list = |dims: &[i64]| dims.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
    let kept = (0i64..).zip(dims).filter(|(at, _)| !reduced.contains(at)).map(|(_, &size)| size);
    let (result, reduced) = (list(&kept.collect::<Vec<_>>()), list(reduced));
    let dims = list(dims);
    format!(
        "HloModule m
         sum {{
           a = f32[] parameter(0)
           b = f32[] parameter(1)
           ROOT c = f32[] add(a, b)
         }}
         most {{
           a = bf16[] parameter(0)
           b = bf16[] parameter(1)
           ROOT c = bf16[] maximum(a, b)
         }}
         ENTRY main {{
           x = f32[{dims}] parameter(0)
           start = f32[] constant(0.5)
           least = bf16[] constant(-inf)
           square = f32[{dims}] multiply(x, x)
           short = bf16[{dims}] convert(square)
           total = f32[{result}] reduce(square, start), dimensions={{{reduced}}}, to_apply=sum
           top = bf16[{result}] reduce(short, least), dimensions={{{reduced}}}, to_apply=most
           ROOT r = (f32[{result}], bf16[{result}]) tuple(total, top)
         }}"
    )
}

#[test]
fn reductions_are_of_the_region_that_they_reduce() {
    // Rows shorter and longer than a block, of lengths that divide nothing;
    // outermost dims that are kept and that are reduced, in several chunks.
    for (dims, reduced) in [
        (&[100, 999][..], &[1][..]),
        (&[17, 5001], &[1]),
        (&[2, 70_001], &[1]),
        (&[3000, 77], &[0]),
        (&[70_003], &[0]),
        (&[5, 3, 40, 101], &[1, 3]),
        (&[5, 3, 40, 101], &[0, 2]),
        (&[7, 1, 64, 100, 3], &[0, 2, 3]),
    ] {
        assert_eq!(check(&reductions(dims, reduced)), [4], "{dims:?} {reduced:?}");
    }
    // One chunk of many totals: several threads fold it once it is there.
    assert_eq!(check(&reductions(&[3, 50_000], &[0])), [2]);
}

/// A block of an array is read before its place is overwritten.
#[test]
fn results_take_the_place_of_operands() {
    let text = "HloModule m
            ENTRY main {
              x = f32[100,500] parameter(0)
              y = f32[500] parameter(1)
              t = f32[500,100] transpose(x), dimensions={1,0}
              u = f32[100,500] transpose(t), dimensions={1,0}
              a = f32[100,500] negate(u)
              yb = f32[100,500] broadcast(y), dimensions={1}
              b = f32[100,500] multiply(a, yb)
              c = f32[100,500] subtract(b, u)
              d = s32[100,500] convert(c)
              ROOT r = (f32[100,500], s32[100,500], f32[100,500]) tuple(b, d, c)
            }";
    assert_eq!(check(text), [5]);
}

/// A generator of numbers, good enough to choose by.
struct Dice(u64);

impl Dice {
    fn throw(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) as usize % sides
    }
}

/// Returns a program of elementwise ops, broadcasts, reshapes, reductions and transposes on
/// arrays of 6 * 7 * 120 lanes.
fn program(seed: u64) -> String {
    let mut dice = Dice(seed);
    let (cube, flat) = ("f32[6,7,120]", "f32[42,120]");
    let mut lines = vec![
        format!("  v0 = {cube} parameter(0)"),
        "  row = f32[120] parameter(1)".to_owned(),
        "  zero = f32[] constant(0)".to_owned(),
    ];
    let mut shapes = vec![cube];
    for i in 1..40 {
        let pick = |dice: &mut Dice, shape: &str, shapes: &[&str]| {
            let all: Vec<usize> = (0..i).filter(|&v| shapes[v] == shape).collect();
            (!all.is_empty()).then(|| all[dice.throw(all.len())])
        };
        let shape = if dice.throw(2) == 0 { cube } else { flat };
        let other = if shape == cube { flat } else { cube };
        let line = match (dice.throw(8), pick(&mut dice, shape, &shapes)) {
            (0, _) => {
                let dim = if shape == cube { 2 } else { 1 };
                format!("broadcast(row), dimensions={{{dim}}}")
            }
            (1 | 2, Some(a)) => format!("negate(v{a})"),
            (3 | 4, Some(a)) => {
                let b = pick(&mut dice, shape, &shapes).unwrap_or(a);
                format!("subtract(v{a}, v{b})")
            }
            (5, Some(a)) if shape == cube => {
                lines.push(format!("  t{i} = f32[7,6,120] transpose(v{a}), dimensions={{1,0,2}}"));
                format!("transpose(t{i}), dimensions={{1,0,2}}")
            }
            (6, Some(a)) => {
                let dims = if shape == cube { "{0,1}" } else { "{0}" };
                lines.push(format!(
                    "  t{i} = f32[120] reduce(v{a}, zero), dimensions={dims}, to_apply=sum"
                ));
                let dim = if shape == cube { 2 } else { 1 };
                format!("broadcast(t{i}), dimensions={{{dim}}}")
            }
            _ => match pick(&mut dice, other, &shapes) {
                Some(a) => format!("reshape(v{a})"),
                None => "broadcast(zero), dimensions={}".to_owned(),
            },
        };
        lines.push(format!("  v{i} = {shape} {line}"));
        shapes.push(shape);
    }
    let wanted: Vec<usize> = (0..6).map(|_| dice.throw(40)).collect();
    let types: Vec<&str> = wanted.iter().map(|&v| shapes[v]).collect();
    let names: Vec<String> = wanted.iter().map(|v| format!("v{v}")).collect();
    lines.push(format!("  ROOT r = ({}) tuple({})", types.join(", "), names.join(", ")));
    format!(
        "HloModule m\nsum {{\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = \
             f32[] add(a, b)\n}}\nENTRY main {{\n{}\n}}",
        lines.join("\n")
    )
}

#[test]
fn any_program_computes_the_same() {
    let mut regions = 0;
    for seed in 0..60 {
        regions += check(&program(seed)).len();
    }
    assert!(regions > 60, "{regions} regions");
}
