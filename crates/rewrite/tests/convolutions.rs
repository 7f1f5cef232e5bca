//! Barriers behind random convolutions of few images: every bit stays.

use crate::common::{changes, module, optimized, passes};
use tilewright_interp::inputs::{InputKind, inputs_for};
use tilewright_interp::{Limits, evaluate};
use tilewright_ir::Verified;

/// Sums of a convolution of images along their space, and of what is computed from it through a transpose.
fn sums(images: u64, size: u64, channels: u64, is_first: bool) -> Verified {
    let (labels, of_image) = match is_first {
        true => ("bf01_01io->bf01", format!("f32[{images},{channels},{size},{size}]")),
        false => ("b01f_01io->b01f", format!("f32[{images},{size},{size},{channels}]")),
    };
    let (space, turned) = if is_first { ("2,3", "1,0,2,3") } else { ("1,2", "0,2,1,3") };
    let of_turned = match is_first {
        true => format!("f32[{channels},{images},{size},{size}]"),
        false => of_image.clone(),
    };
    let (one, other) = (format!("f32[{images},{channels}]"), format!("f32[{channels},{images}]"));
    let other = if is_first { &other } else { &one };
    module(&format!(
        "HloModule random
add {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}}
ENTRY main {{
  x = {of_image} parameter(0)
  w = f32[3,3,{channels},{channels}] parameter(1)
  y = {of_image} convolution(x, w), window={{size=3x3 pad=1_1x1_1}}, dim_labels={labels}
  zero = f32[] constant(0)
  sum = {one} reduce(y, zero), dimensions={{{space}}}, to_apply=add
  squares = {of_image} multiply(y, y)
  second = {one} reduce(squares, zero), dimensions={{{space}}}, to_apply=add
  turned = {of_turned} transpose(y), dimensions={{{turned}}}
  sizes = {of_turned} abs(turned)
  third = {other} reduce(sizes, zero), dimensions={{{space}}}, to_apply=add
  ROOT results = ({of_image}, {one}, {one}, {other}) tuple(y, sum, second, third)
}}"
    ))
}

#[test]
fn barriers_keep_every_bit() {
    let mut options = passes(&["convolution-barrier"], "tpu-v5e", false);
    options.target.vector_memory_bytes = 4096;
    let mut seed = 0;
    for images in 1..=9 {
        for (size, channels, is_first) in [(9, 8, false), (8, 5, true), (16, 4, true)] {
            seed += 1;
            let before = sums(images, size, channels, is_first);
            let after = optimized(&before, &options);
            let barriers = changes(&after, "convolution-barrier");
            assert_eq!(barriers, usize::from((2..8).contains(&images)), "{images} images");
            let inputs = inputs_for(&before, seed, InputKind::Normal).expect("inputs");
            let values = [&before, &after.module]
                .map(|module| evaluate(module, &inputs, &Limits::default()).expect("values"));
            assert_eq!(values[0], values[1], "{images} images");
        }
    }
}
