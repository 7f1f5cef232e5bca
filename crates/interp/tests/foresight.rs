//! The memory that is foreseen before an evaluation begins.

use tilewright_interp::inside::foreseen_and_used;
use tilewright_interp::{InputKind, inputs_for};
use tilewright_testkit::fixture::fixtures;
use tilewright_text::parse_and_verify;

fn of_text(text: &str) -> (u64, u64) {
    let module = parse_and_verify(text).map_err(|error| format!("{error:?}")).unwrap();
    let inputs = inputs_for(&module, 0, InputKind::Normal).unwrap();
    foreseen_and_used(&module, &inputs).unwrap()
}

#[test]
fn what_is_foreseen_is_needed() {
    let (mut foreseen, mut used) = (0, 0);
    for model in fixtures("models").unwrap() {
        let (most, peak) = of_text(&model.text().unwrap());
        assert!(most <= peak, "{}: {most} bytes foreseen, {peak} used", model.name);
        foreseen += most;
        used += peak;
    }
    assert!(foreseen > used / 2, "{foreseen} bytes foreseen of {used}");
}

/// Counted by hand: 4000 bytes for `x` and `y` each, 40,000 for their product.
#[test]
fn arrays_count_from_their_step_to_their_last_use() {
    let text = "HloModule m
ENTRY e {
  x = f32[10,100] parameter(0)
  y = f32[100,10] transpose(x), dimensions={1,0}
  z = f32[100,100] dot(y, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  w = f32[10000] reshape(z)
  ROOT r = f32[100] slice(w), slice={[0:100]}
}";
    // x and y go with the product, which is alive until a part of it is cut out.
    assert_eq!(of_text(text).0, 40_000);
}
