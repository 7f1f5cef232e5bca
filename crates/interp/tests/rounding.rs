//! Tests the rounding that is known on the way to a result, against counts by hand.

use tilewright_interp::{Inexact, Rounding, Tolerance};
use tilewright_ir::ElementType;

/// Half a unit in the last place of 1, by type.
const F32: f64 = 1.0 / (1u32 << 24) as f64;
const BF16: f64 = 1.0 / 256.0;
const F64: f64 = F32 * F32 / 32.0;

fn rounding(entry: &str) -> Rounding {
    let text = format!(
        "HloModule m
         add {{
           a = f32[] parameter(0)
           b = f32[] parameter(1)
           ROOT c = f32[] add(a, b)
         }}
         add_f64 {{
           a = f64[] parameter(0)
           b = f64[] parameter(1)
           ROOT c = f64[] add(a, b)
         }}
         most {{
           a = f32[] parameter(0)
           b = f32[] parameter(1)
           ROOT c = f32[] maximum(a, b)
         }}
         twice {{
           a = (s32[], f32[]) parameter(0)
           i = s32[] get-tuple-element(a), index=0
           x = f32[] get-tuple-element(a), index=1
           y = f32[] multiply(x, x)
           z = f32[] add(y, x)
           ROOT c = (s32[], f32[]) tuple(i, z)
         }}
         more {{
           a = (s32[], f32[]) parameter(0)
           ROOT c = pred[] constant(false)
         }}
         ENTRY e {{
           x = f32[8,1024] parameter(0)
           w = f64[8,64] parameter(1)
           zero = f32[] constant(0)
           {entry}
         }}"
    );
    Rounding::of_module(&tilewright_text::parse_and_verify(&text).unwrap())
}

fn of(entry: &str) -> Inexact {
    rounding(entry).of_output(0)
}

/// Returns the inexactness of this many roundings to `f32`.
fn single(roundings: f64) -> Inexact {
    Inexact { variance: roundings * F32 * F32, coarsest: if roundings > 0.0 { F32 } else { 0.0 } }
}

#[test]
fn roundings_add_up_along_a_path() {
    assert_eq!(of("ROOT y = f32[8,1024] multiply(x, x)"), single(1.0));
    let chain = "y = f32[8,1024] multiply(x, x)
        z = f32[8,1024] exponential(y)
        n = f32[8,1024] negate(z)
        t = f32[1024,8] transpose(n), dimensions={1,0}
        ROOT m = f32[1024,8] maximum(t, t)";
    assert_eq!(of(chain), single(2.0));
    assert_eq!(of("ROOT y = f32[8,1024] copy(x)"), single(0.0));
    let called = "k = s32[] constant(1)
        s = (s32[], f32[]) tuple(k, zero)
        t = (s32[], f32[]) call(s), to_apply=twice
        u = (s32[], f32[]) while(t), condition=more, body=twice
        ROOT r = f32[] get-tuple-element(u), index=1";
    // The loop's turns count once.
    assert_eq!(of(called), single(4.0));
}

#[test]
fn sums_count_by_the_number_of_their_terms() {
    let reduce =
        |to: &str| of(&format!("ROOT y = f32[8] reduce(x, zero), dimensions={{1}}, to_apply={to}"));
    assert_eq!(reduce("add"), single(11.0));
    assert_eq!(reduce("most"), single(0.0));
    let dot = "ROOT d = f32[8,8] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={1}";
    assert_eq!(of(dot), single(11.0));
    // Where nothing wider adds up, every term counts.
    let wide = "none = f64[] constant(0)
        ROOT y = f64[8] reduce(w, none), dimensions={1}, to_apply=add_f64";
    assert_eq!(of(wide), Inexact { variance: 64.0 * F64 * F64, coarsest: F64 });
}

#[test]
fn the_coarsest_type_counts_for_what_came_through_it() {
    let two = rounding(
        "y = f32[8,1024] multiply(x, x)
         short = bf16[8,1024] convert(x)
         long = f32[8,1024] convert(short)
         ROOT r = (f32[8,1024], f32[8,1024]) tuple(y, long)",
    );
    assert_eq!(two.of_output(0), single(1.0));
    assert_eq!(two.of_output(1), Inexact { variance: BF16 * BF16, coarsest: BF16 });
    // The compared values are not the selected ones.
    let chosen = "short = bf16[8,1024] convert(x)
        none = bf16[] constant(0)
        nones = bf16[8,1024] broadcast(none), dimensions={}
        c = pred[8,1024] compare(short, nones), direction=GT
        ROOT r = f32[8,1024] select(c, x, x)";
    assert_eq!(of(chosen), single(0.0));
}

#[test]
fn tolerance_grows_with_what_was_rounded() {
    let of = |roundings| Tolerance::after(ElementType::F32, single(roundings));
    assert_eq!(of(0.0).relative, 6.0 * F32);
    assert_eq!(of(16.0).relative, 24.0 * F32);
    assert_eq!(of(16.0).ulps, 8);
    let coarse = Inexact { variance: BF16 * BF16, coarsest: BF16 };
    let coarse = Tolerance::after(ElementType::F32, coarse);
    // Two units in the last place of bf16 are 2^17 of f32.
    assert_eq!((coarse.relative, coarse.ulps), (6.0 * BF16, 1 << 17));
    let hopeless = Inexact { variance: 1.0, coarsest: 0.5 };
    assert_eq!(Tolerance::after(ElementType::F32, hopeless).relative, 1.0 / 16.0);
    assert_eq!(Tolerance::after(ElementType::S32, single(1.0)), Tolerance::EXACT);
}
