//! Tests the layouts of results whose shape the text leaves out: they equal the layouts of
//! XLA's parser.

use tilewright_ir::Shape;
use tilewright_text::parse;

const MODULE: &str = include_str!("../../../fixtures/text/ok/omitted_layouts.hlo");

/// The output of XLA (jaxlib 0.10.2).
const EXPECTED: &[(&str, &str)] = &[
    ("negate", "f32[3,4]{0,1:T(2,128)S(5)}"),
    ("rounded", "f32[3,4]{1,0:E(32)}"),
    ("abs", "f32[3,4]{0,1}"),
    ("real", "f32[3,4]{0,1}"),
    ("finite", "pred[3,4]{1,0}"),
    ("sum", "f32[3,4]{0,1:T(2,128)S(5)}"),
    ("mus", "f32[3,4]{1,0}"),
    ("nibbles", "s4[3,4]{0,1:E(4)}"),
    ("compare", "pred[3,4]{0,1:T(2,128)S(5)}"),
    ("complex", "c64[3,4]{0,1:T(2,128)S(5)}"),
    ("by_element", "f32[3,4]{0,1}"),
    ("packed_as_true", "f32[3,4]{0,1:E(32)}"),
    ("by_flag", "f32[3,4]{0,1:T(2,128)S(5)}"),
    ("nibbles_or", "s4[3,4]{0,1:E(4)}"),
    ("clamp", "f32[3,4]{0,1:T(2,128)S(5)}"),
    ("clamp_y", "f32[3,4]{1,0:E(32)}"),
    ("copy", "f32[3,4]{0,1:T(2,128)S(5)}"),
    ("transpose", "f32[4,3]{1,0:T(2,128)S(5)}"),
    ("transpose_y", "f32[4,3]{0,1:E(32)}"),
    ("transpose_default", "f32[6,4]{0,1}"),
    ("turned", "f32[1,3,1,4]{1,3,0,2}"),
    ("reverse", "f32[3,4]{0,1:T(2,128)S(5)}"),
    ("concatenate", "f32[6,4]{1,0}"),
    ("pad", "f32[3,4]{1,0}"),
    ("reduce", "f32[4,1,1]{2,1,0}"),
    ("window", "f32[3,4]{1,0}"),
    ("scattered", "f32[3,4]{0,1:T(2,128)S(5)}"),
    ("sort", "f32[3,4]{0,1:T(2,128)S(5)}"),
    ("map", "f32[3,4]{1,0}"),
    ("dot", "f32[4,4]{1,0}"),
    ("cholesky", "f32[4,4]{0,1}"),
    ("solve", "f32[4,4]{0,1}"),
    ("fft", "c64[3,4]{0,1}"),
    ("norm", "(f32[3,4,1,1]{0,1,2,3}, f32[3]{0}, f32[3]{0})"),
    ("normed", "f32[3,4,1,1]{0,1,2,3}"),
    ("gather", "f32[2,4]{1,0}"),
    ("scatter", "f32[3,4]{0,1:T(2,128)S(5)}"),
    ("resized", "f32[<=3,4]{0,1:T(2,128)S(5)}"),
    ("after", "f32[3,4]{0,1:T(2,128)S(5)}"),
    ("both", "(f32[3,4]{0,1:T(2,128)S(5)}, f32[3,4]{1,0:E(32)})"),
    ("first", "f32[3,4]{0,1:T(2,128)S(5)}"),
];

#[test]
fn omitted_shapes_have_the_layouts_that_xla_gives_them() {
    let module = parse(MODULE).expect("the fixture reads").module;
    let entry = module.entry().expect("it has an entry");
    for (name, shape) in EXPECTED {
        let id = module.instructions(entry).find(|&id| module.name_of(id) == *name);
        let id = id.expect("the fixture has all that XLA prints");
        assert_eq!(with_layouts(module.shape(id)), *shape, "of `{name}`");
    }
}

/// Returns a shape as in text, row major if it has no layout.
fn with_layouts(shape: &Shape) -> String {
    match shape {
        Shape::Tuple(elements) => {
            let elements: Vec<String> = elements.iter().map(with_layouts).collect();
            format!("({})", elements.join(", "))
        }
        Shape::Array(array) if array.rank() > 0 => {
            Shape::from(array.clone().with_layout(Some(array.layout_or_default()))).to_string()
        }
        other => other.to_string(),
    }
}
