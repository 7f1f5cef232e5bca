//! Einsums of one operand, which jaxlib does not convert. The expected values are computed by hand.

use tilewright_stablehlo::{import, text};
use tilewright_testkit::mlir_properties::compute_the_same;

#[test]
fn one_operand_is_moved_and_summed() {
    let module = |ty: &str, operations: &str| {
        let source = format!(
            "func.func @main() -> tensor<{ty}> {{\n{operations}\nreturn %r : tensor<{ty}>\n}}"
        );
        import(&text::parse(&source).unwrap()).unwrap()
    };
    for (config, ty, expected) in [
        ("ii->i", "2xf32", "[1.0, 5.0]"),
        ("ij->j", "2xf32", "[5.0, 7.0]"),
        ("ij->ji", "2x2xf32", "[[1.0, 4.0], [2.0, 5.0]]"),
        ("ii->", "f32", "6.0"),
    ] {
        let einsum = module(
            ty,
            &format!(
                r#"%x = stablehlo.constant dense<[[1.0, 2.0], [4.0, 5.0]]> : tensor<2x2xf32>
                %r = "stablehlo.unary_einsum"(%x) {{einsum_config = "{config}"}} : (tensor<2x2xf32>) -> tensor<{ty}>"#
            ),
        );
        let constant = format!("%r = stablehlo.constant dense<{expected}> : tensor<{ty}>");
        assert_eq!(compute_the_same(&module(ty, &constant), &einsum), Ok(true), "{config}");
    }
}
