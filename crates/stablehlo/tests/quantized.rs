//! Quantised values, `real = (stored - zero) scale`. What is expected is computed by hand.

use tilewright_ir::Verified;
use tilewright_stablehlo::{ImportErrorKind, import, text};
use tilewright_testkit::mlir_properties::compute_the_same;

/// A program without arguments that returns the last of these operations.
fn program(operations: &str, ty: &str) -> Result<Verified, (ImportErrorKind, String)> {
    let source =
        format!("func.func @main() -> tensor<{ty}> {{\n{operations}\nreturn %r : tensor<{ty}>\n}}");
    let program = text::parse(&source).unwrap_or_else(|error| panic!("{error}\n{source}"));
    import(&program).map_err(|error| (error.kind, error.message))
}

/// Checks that operations compute this constant.
#[track_caller]
fn assert_stores(operations: &str, ty: &str, stored: &str, expected: &str) {
    let found = program(operations, ty).unwrap_or_else(|error| panic!("{error:?}"));
    let constant = format!("%r = stablehlo.constant dense<{expected}> : tensor<{stored}>");
    let expected = program(&constant, stored).unwrap();
    assert_eq!(compute_the_same(&expected, &found), Ok(true));
}

/// A quantised constant.
fn constant(name: &str, ty: &str, stored: &str, value: &str) -> String {
    format!(
        r#"%{name} = "stablehlo.constant"() {{value = dense<{value}> : tensor<{stored}>}} : () -> tensor<{ty}>"#
    )
}

const X: &str = "1x2x!quant.uniform<i8:f32, 0.5:1>";
const Y: &str = "2x1x!quant.uniform<i8:f32, 0.25>";
const PRODUCT: &str = "1x1x!quant.uniform<i8:f32, 2.000000e-01:-3>";

fn product(x: &str, y: &str) -> String {
    let (x, y) = (constant("x", X, "1x2xi8", x), constant("y", Y, "2x1xi8", y));
    format!("{x}\n{y}\n%r = stablehlo.dot %x, %y : (tensor<{X}>, tensor<{Y}>) -> tensor<{PRODUCT}>")
}

/// A product is rounded once, to even, and clamped.
#[test]
fn products_are_rounded_and_clamped() {
    // ((3 - 1) 2 + (5 - 1) 0) 0.5 0.25 / 0.2 - 3 = -0.5
    assert_stores(&product("[[3, 5]]", "[[2], [0]]"), PRODUCT, "1x1xi8", "0");
    // ((3 - 1) 2 + (2 - 1) 4) 0.625 - 3 = 2
    assert_stores(&product("[[3, 2]]", "[[2], [4]]"), PRODUCT, "1x1xi8", "2");
    // 126 127 2 0.625 is beyond 127, and so is its negative.
    assert_stores(&product("[[127, 127]]", "[[127], [127]]"), PRODUCT, "1x1xi8", "127");
    assert_stores(&product("[[127, 127]]", "[[-128], [-128]]"), PRODUCT, "1x1xi8", "-128");
}

#[test]
fn stored_integers_are_in_the_range_of_their_type() {
    let floats = "%x = stablehlo.constant dense<[-1000.0, 0.5, 1.5, 1000.0]> : tensor<4xf32>";
    let quantized = |ty: &str| {
        format!("{floats}\n%r = stablehlo.uniform_quantize %x : (tensor<4xf32>) -> tensor<{ty}>")
    };
    let narrow = "4x!quant.uniform<i8<-127:127>:f32, 1.0>";
    assert_stores(&quantized(narrow), narrow, "4xi8", "[-127, 0, 2, 127]");
    let unsigned = "4x!quant.uniform<u8:f32, 1.0:128>";
    assert_stores(&quantized(unsigned), unsigned, "4xui8", "[0, 128, 130, 255]");
    let wide = "4x!quant.uniform<i32:f32, 0.25:-1>";
    assert_stores(&quantized(wide), wide, "4xi32", "[-4001, 1, 5, 3999]");
}

/// Regions compute with stored integers: the zero is taken off once for each sum.
#[test]
fn sums_take_off_their_zero() {
    let ty = "!quant.uniform<i8:f32, 0.5:3>";
    let (x, init) =
        (constant("x", &format!("3x{ty}"), "3xi8", "[1, 2, 3]"), constant("i", ty, "i8", "3"));
    let reduce = format!(
        "{x}\n{init}\n%r = stablehlo.reduce(%x init: %i) applies stablehlo.add across dimensions = [0] : \
         (tensor<3x{ty}>, tensor<{ty}>) -> tensor<{ty}>"
    );
    // (1 - 3) + (2 - 3) + (3 - 3) = -3, which is stored as 0.
    assert_stores(&reduce, ty, "i8", "0");
    let all = format!("3x{ty}");
    // 1 - 3 + 3 = 1: the zeros cancel out.
    let y = constant("y", &all, "3xi8", "[3, -128, 127]");
    let difference = format!("{x}\n{y}\n%r = stablehlo.subtract %x, %y : tensor<{all}>");
    assert_stores(&difference, &all, "3xi8", "[1, 127, -121]");
}

#[test]
fn scales_are_along_the_same_dim() {
    let rows = "2x2x!quant.uniform<i8:f32:0, {0.5, 0.25}>";
    let (x, y) = (
        constant("x", "2x2x!quant.uniform<i8:f32, 0.5>", "2x2xi8", "1"),
        constant("y", rows, "2x2xi8", "1"),
    );
    let to = "2x2x!quant.uniform<i8:f32:1, {0.5, 0.25}>";
    let product = format!(
        "{x}\n{y}\n%r = stablehlo.dot %x, %y : (tensor<2x2x!quant.uniform<i8:f32, 0.5>>, tensor<{rows}>) -> tensor<{to}>"
    );
    let (kind, message) = program(&product, to).unwrap_err();
    assert_eq!(kind, ImportErrorKind::Malformed);
    assert_eq!(
        message,
        "`stablehlo.dot` has scales along a dim of `rhs` that is not the one of the result"
    );
}

#[test]
fn other_quantized_types_are_refused() {
    for ty in [
        "4x!quant.any<i8:f32>",
        "4x!quant.uniform<i8:f32:{0:1, 1:2}, {{0.5}}>",
        "4x!quant.uniform<i64:f32, 0.5>",
        "4x!quant.uniform<i8:i32, 0.5>",
        "4x!quant.uniform<i64<0:7>:f32, 0.5>",
        "4x!quant.uniform<i8<0:200>:f32, 0.5>",
        "4x!quant.uniform<u32:f32, 0.5>",
        "4x!quant.uniform<i8:f32, 0.5:128>",
        "4x!quant.uniform<i8:f32, 1e-300>",
        "4x!quant.uniform<i8:f32:1, {0.5}>",
        "4x!quant.uniform<i8:f32:0, {0.5, 0.25}>",
        "4x!quant.uniform<i8:f32:9223372036854775807, {0.5}>",
        "4x!quant.uniform<i8:f32, x>",
        "4x!quant.uniform<i8:f32, -0.5>",
        "4x!quant.uniform<i8:f32, inf>",
        "4x!quant.uniform<i8:f32, 0.5, 0.25>",
        "4x!quant.uniform<i8<1>:f32, 0.5>",
    ] {
        let (kind, message) = program(&constant("r", ty, "4xi8", "1"), ty).unwrap_err();
        assert_eq!(kind, ImportErrorKind::Unsupported, "{ty}: {message}");
        assert!(message.contains("has elements of type `!quant."), "{message}");
    }
}

/// Ops that have no rule for quantised values do not compute with their integers.
#[test]
fn ops_without_a_rule_are_refused() {
    let ty = "4x!quant.uniform<i8:f32, 0.5:3>";
    let x = constant("x", ty, "4xi8", "1");
    let sum = format!(
        "{x}\n%r = chlo.broadcast_add %x, %x : (tensor<{ty}>, tensor<{ty}>) -> tensor<{ty}>"
    );
    let (kind, message) = program(&sum, ty).unwrap_err();
    assert_eq!(kind, ImportErrorKind::Unsupported);
    assert!(message.contains("--stablehlo-legalize-quantized-op-to-qdq"), "{message}");
    let other = "2x2x!quant.uniform<i8:f32, 0.25:3>";
    let moved = format!("{x}\n%r = stablehlo.reshape %x : (tensor<{ty}>) -> tensor<{other}>");
    let (kind, message) = program(&moved, other).unwrap_err();
    assert_eq!(kind, ImportErrorKind::Malformed);
    assert!(message.contains("requantize them"), "{message}");
    let wide = "4x!quant.uniform<i64:f32, 0.5>";
    let quantized =
        format!("{x}\n%r = stablehlo.uniform_quantize %x : (tensor<{ty}>) -> tensor<{wide}>");
    let (kind, message) = program(&quantized, wide).unwrap_err();
    assert_eq!(kind, ImportErrorKind::Unsupported);
    assert!(message.contains("has elements of type `!quant."), "{message}");
}

/// Sums of 32 bits are clamped where their type has a narrower range.
#[test]
fn narrow_ranges_of_32_bits_are_kept() {
    let ty = "2x!quant.uniform<i32<-100:100>:f32, 0.5>";
    let x = constant("x", ty, "2xi32", "[60, -60]");
    let sum = format!("{x}\n%r = stablehlo.add %x, %x : tensor<{ty}>");
    assert_stores(&sum, ty, "2xi32", "[100, -100]");
}

/// Scales along a dim of the batch, and values that stand for floats of other types.
#[test]
fn scales_of_batches_and_other_floats() {
    let (x, y) =
        ("2x1x2x!quant.uniform<i8:f32, 0.5>", "2x2x1x!quant.uniform<i8:f32:0, {0.5, 0.25}>");
    let to = "2x1x1x!quant.uniform<i8:f32:0, {0.5, 0.5}>";
    let (a, b) = (
        constant("a", x, "2x1x2xi8", "[[[1, 2]], [[3, 4]]]"),
        constant("b", y, "2x2x1xi8", "[[[2], [4]], [[4], [8]]]"),
    );
    let product = format!(
        "{a}\n{b}\n%r = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1] : \
         (tensor<{x}>, tensor<{y}>) -> tensor<{to}>"
    );
    // 10 0.25 / 0.5 and 44 0.125 / 0.5
    assert_stores(&product, to, "2x1x1xi8", "[[[5]], [[11]]]");
    let half = "2x!quant.uniform<i8:bf16, 0.5:1>";
    let dequantized = format!(
        "{}\n%r = stablehlo.uniform_dequantize %q : (tensor<{half}>) -> tensor<2xbf16>",
        constant("q", half, "2xi8", "[3, -1]")
    );
    assert_stores(&dequantized, "2xbf16", "2xbf16", "[1.0, -1.0]");
    // A third of 2^31 - 1 has more digits than a float of 32 bits.
    let double = "1x!quant.uniform<i32:f64, 3.0>";
    let dequantized = format!(
        "{}\n%r = stablehlo.uniform_dequantize %q : (tensor<{double}>) -> tensor<1xf64>",
        constant("q", double, "1xi32", "[715827883]")
    );
    assert_stores(&dequantized, "1xf64", "1xf64", "[2147483649.0]");
    let (rows, columns) =
        ("2x2x!quant.uniform<i8:f32:0, {0.5, 0.25}>", "2x2x!quant.uniform<i8:f32:1, {1.0, 0.125}>");
    let requantized = format!(
        "{}\n%r = stablehlo.uniform_quantize %q : (tensor<{rows}>) -> tensor<{columns}>",
        constant("q", rows, "2x2xi8", "[[4, 4], [4, 4]]")
    );
    assert_stores(&requantized, columns, "2x2xi8", "[[2, 16], [1, 8]]");
}
