//! Every error: its place, and what it says.

use tilewright_stablehlo::text::{LineColumn, parse};

/// Texts and their errors.
#[rustfmt::skip]
const CASES: &[(&str, &str)] = &[
    (
        "",
        "1:1: the text ends too early; expected a module, as `module { ... }`",
    ),
    (
        "module {",
        "1:9: the text ends too early; expected `}`",
    ),
    (
        "module {}}",
        "1:10: unexpected `}`; expected an operation, as `stablehlo.add` or `\"stablehlo.add\"`",
    ),
    (
        "module { %0 = stablehlo.add }",
        "1:29: unexpected `}`; expected `%`",
    ),
    (
        "func.func @f(%x: i1) { \"a\"(%y) : (i1) -> () }",
        "1:28: there is no value `%y` here",
    ),
    (
        "func.func @f(%x: i1) { \"a\"(%x#1) : (i1) -> () }",
        "1:28: there is no value `%x#1` here (the last one is `%x#0`)",
    ),
    (
        "func.func @f(%x: i1) { \"a\"(%x#99999999999) : (i1) -> () }",
        "1:31: this number is too large",
    ),
    (
        "func.func @f(%x: i1, %x: i1) { return }",
        "1:22: `%x` is defined twice",
    ),
    (
        "func.func @f(%x: i1) { func.func @g() { \"a\"(%x) : (i1) -> () } }",
        "1:45: there is no value `%x` here",
    ),
    (
        "%0:2 = \"a.b\"() : () -> i1",
        "1:1: 2 results are named, but the operation has 1",
    ),
    (
        "%0 = \"a.b\"() : () -> i1 %1 = \"a\"(%0) : (i2) -> i1",
        "1:40: operand 0 was defined with another type (write the type that the operand has where it is defined)",
    ),
    (
        "%0 = \"a.b\"() : () -> i1 %1 = \"a\"(%0) : () -> i1",
        "1:40: there are 1 operands, but 0 types",
    ),
    (
        "\"a.b\"()[^bb1] : () -> ()",
        "1:8: operations with successors cannot be read (a region of StableHLO has one block)",
    ),
    (
        "\"a.b\"() {x = 1, x = 2} : () -> ()",
        "1:17: the attribute `x` is here twice",
    ),
    (
        "\"a.b\"() {x = } : () -> ()",
        "1:14: unexpected `}`; expected an attribute, as `1 : i64`",
    ),
    (
        "\"a.b\"() {x = 1 y} : () -> ()",
        "1:16: unexpected `y`; expected `,` or `}`",
    ),
    (
        "\"a.b\"() {x = #foo} : () -> ()",
        "1:14: there is no alias `#foo` (`#foo = ...` may stand before or after the module)",
    ),
    (
        "#a = [#b]\n#b = [#a]\nmodule {}",
        "2:7: the alias `#a` contains itself",
    ),
    (
        "#a = 1\n#a = 2\nmodule {}",
        "2:1: the alias `#a` is defined twice",
    ),
    (
        "#a = 1\nmodule {} loc(#a)",
        "2:15: this alias is no location",
    ),
    (
        "!a = i1\nmodule {} loc(#b)",
        "2:15: there is no alias `#b` (`#b = ...` may stand before or after the module)",
    ),
    (
        "\"a.b\"() : () -> !b",
        "1:17: there is no alias `!b` (`!b = ...` may stand before or after the module)",
    ),
    (
        "\"a.b\"() {x = \"abc} : () -> ()",
        "1:14: this string has no end",
    ),
    (
        "\"a.b\"() {x = \"ab\nc\"} : () -> ()",
        "1:14: this string has no end on its line (write `\\0A` for a new line, `\\5C` for a backslash)",
    ),
    (
        "\"a.b\"() {x = \"a\\qc\"} : () -> ()",
        "1:16: this escape is not known (the escapes are `\\n`, `\\t`, `\\\"`, `\\\\` and two hex digits)",
    ),
    (
        "\"a\\FF\"() : () -> ()",
        "1:1: this is no UTF-8",
    ),
    (
        "\"a.b\"() {x = 1.5 : i32} : () -> ()",
        "1:14: this is no integer",
    ),
    (
        "\"a.b\"() {x = 1 : tensor<f32>} : () -> ()",
        "1:14: a number has no such type",
    ),
    (
        "\"a.b\"() {x = 0x1 : f80} : () -> ()",
        "1:14: the bits of `f80` are not known",
    ),
    (
        "\"a.b\"() {x = 0x1FFFF : f16} : () -> ()",
        "1:14: these bits do not fit into 16",
    ),
    (
        "\"a.b\"() {x = 999999999999999999999999999999999999999999} : () -> ()",
        "1:14: this integer is too large",
    ),
    (
        "\"a.b\"() {x = array<f16: 1.0>} : () -> ()",
        "1:20: an array cannot have this type (arrays have elements of i1, i8, i16, i32, i64, f32 or f64)",
    ),
    (
        "\"a.b\"() {x = array<i64: 99999999999999999999>} : () -> ()",
        "1:25: this integer is too large",
    ),
    (
        "\"a.b\"() {x = tensor<2xfoo>} : () -> ()",
        "1:23: unexpected `foo`; expected a type, as `tensor<2xf32>`",
    ),
    (
        "\"a.b\"() {x = tensor<99999999999999999999xf32>} : () -> ()",
        "1:21: this dim is too large",
    ),
    (
        "\"a.b\"() {x = tensor<2x!stablehlo.token>} : () -> ()",
        "1:23: this is no type of elements",
    ),
    (
        "\"a.b\"() {x = #sdy.a<[>} : () -> ()",
        "1:22: unexpected `>`; expected brackets in pairs",
    ),
    (
        "\"a.b\"() {x = #sdy.a<[]} : () -> (",
        "1:23: unexpected `}`; expected brackets in pairs",
    ),
    (
        "\"a.b\"() {x = #sdy.a<[",
        "1:20: this is never closed",
    ),
    (
        "\"a.b\"() {x = #stablehlo.dot<a = [1], a = [1]>} : () -> ()",
        "1:38: the parameter `a` is here twice",
    ),
    (
        "\"a.b\"() {x = #stablehlo.conv<[b, 0]x[i, 0, o]->[b, 0, f]>} : () -> ()",
        "1:30: this list must have `b`, `f`, 0, 1, ...",
    ),
    (
        "\"a.b\"() {x = #stablehlo.conv<[b, 0, z]x[i, 0, o]->[b, 0, f]>} : () -> ()",
        "1:37: unexpected `z`; expected a number, `b` or `f`, each once",
    ),
    (
        "\"a.b\"() {x = dense<[1, 2]> : tensor<3xi8>} : () -> ()",
        "1:20: this list has 2 items, but the type says 3",
    ),
    (
        "\"a.b\"() {x = dense<1> : i8} : () -> ()",
        "1:25: a constant has a `tensor` type",
    ),
    (
        "\"a.b\"() {x = dense<1> : tensor<?xi8>} : () -> ()",
        "1:25: a constant has known dims and fewer than 2^63 elements",
    ),
    (
        "\"a.b\"() {x = dense<1> : tensor<2xi99>} : () -> ()",
        "1:25: constants of this type cannot be read",
    ),
    (
        "\"a.b\"() {x = dense<[1, 2] : tensor<2xi8>} : () -> ()",
        "1:41: unexpected `}`; expected `:`",
    ),
    (
        "\"a.b\"() {x = dense<[1, 256]> : tensor<2xi8>} : () -> ()",
        "1:24: this integer does not fit into 8 bits",
    ),
    (
        "\"a.b\"() {x = dense<-1> : tensor<ui8>} : () -> ()",
        "1:20: this integer does not fit into 8 bits",
    ),
    (
        "\"a.b\"() {x = dense<1.5> : tensor<i8>} : () -> ()",
        "1:20: this is no integer",
    ),
    (
        "\"a.b\"() {x = dense<true> : tensor<i8>} : () -> ()",
        "1:20: unexpected `true`; expected an integer",
    ),
    (
        "\"a.b\"() {x = dense<x> : tensor<i8>} : () -> ()",
        "1:20: unexpected `x`; expected an integer",
    ),
    (
        "\"a.b\"() {x = dense<1 2> : tensor<i8>} : () -> ()",
        "1:22: unexpected `2`; expected `>`",
    ),
    (
        "\"a.b\"() {x = dense<1/2> : tensor<i8>} : () -> ()",
        "1:21: unexpected `/`; expected a number",
    ),
    (
        "\"a.b\"() {x = dense<\"0x0102\"> : tensor<3xi8>} : () -> ()",
        "1:20: the string has 2 bytes, but the type has 3 elements of 1",
    ),
    (
        "\"a.b\"() {x = dense<\"0x010\"> : tensor<3xi8>} : () -> ()",
        "1:20: this string holds no hexadecimal bytes (write `\"0x\"` and two digits for each byte)",
    ),
    (
        "\"a.b\"() {x = dense<1, 2",
        "1:20: this constant is never closed",
    ),
    (
        "\"a.b\"() : () -> () loc(foo)",
        "1:24: unexpected `foo`; expected a location, as `\"file.py\":1:2`",
    ),
    (
        "\"a.b\"() : () -> () loc(\"a\":99999999999:1)",
        "1:28: this number is too large",
    ),
    (
        "stablehlo.ad %0",
        "1:1: `stablehlo.ad` has no pretty form that is known here (did you mean `stablehlo.add`?)",
    ),
    (
        "stablehlo.ads %0",
        "1:1: `stablehlo.ads` has no pretty form that is known here (did you mean `stablehlo.abs`?)",
    ),
    (
        "stablhlo.add %0",
        "1:1: `stablhlo.add` has no pretty form that is known here (did you mean `stablehlo.add`?)",
    ),
    (
        "stablehlo.mean %0",
        "1:1: `stablehlo.mean` has no pretty form that is known here (write it in the generic form, as \
         `\"stablehlo.mean\"(...) : (...) -> ...`)",
    ),
    (
        "%0:0 = \"a.b\"() : () -> () \"c\"(%0) : (i1) -> ()",
        "1:31: there is no value `%0#0` here",
    ),
    (
        "#t = 1\n\"a.b\"() : () -> !t",
        "2:17: there is no alias `!t` (`!t = ...` may stand before or after the module)",
    ),
    (
        "stablehlo.convert %0 to",
        "1:19: there is no value `%0` here",
    ),
    (
        "func.func @f(%x: i1) { return %x i1 }",
        "1:34: unexpected `i1`; expected an operation, as `stablehlo.add` or `\"stablehlo.add\"`",
    ),
    (
        "module { ^bb0(%x: i1) }",
        "1:23: unexpected `}`; expected `:`",
    ),
    (
        "{-# foo #-}",
        "1:9: unexpected `#`; expected `:`",
    ),
    (
        "tosa.add %0",
        "1:1: `tosa.add` has no pretty form that is known here (write it in the generic form, as `\"tosa.add\"(...) : (...) -> ...`)",
    ),
    (
        "func.func @f(%x: tensor<f32>) { %0 = stablehlo.tuple %x : tensor<f32> }",
        "1:59: this is no tuple",
    ),
    (
        "func.func @f(%x: tensor<f32>) { %0 = stablehlo.complex %x, %x : tensor<f32> }",
        "1:65: this is no tensor of complex numbers",
    ),
    (
        "func.func @f(%x: tensor<f32>) { %0 = stablehlo.reduce_precision %x, format = m5 : tensor<f32> }",
        "1:78: this is no format; expected `e5m10`",
    ),
    (
        "func.func @f(%x: tensor<f32>) { %0 = stablehlo.reduce(%x init: %x) applies mhlo.add across dimensions = [] : (tensor<f32>, tensor<f32>) -> tensor<f32> }",
        "1:76: `mhlo.add` is no operation of `stablehlo`",
    ),
    (
        "func.func @f(%x: i1) { %0 = stablehlo.reduce(%x init: %x) applies stablehlo.add across dimensions = [] : (i1, i1) -> i1 }",
        "1:67: the first operand is no tensor",
    ),
    (
        "func.func @f(%x: tensor<f32>) { %0 = stablehlo.dot %x, %x, foo : tensor<f32> }",
        "1:60: unexpected `foo`; expected `precision` or `algorithm`",
    ),
    (
        "func.func @f(%x: tensor<f32>) { %0 = stablehlo.convolution(%x, %x) dim_numbers = [b, f]x[i, o]->[b, f], window = {foo = 1} }",
        "1:115: unexpected `foo`; expected `stride`, `pad`, `lhs_dilate`, `rhs_dilate` or `reverse`",
    ),
    (
        "func.func @f(%x: tensor<f32>) { %0 = stablehlo.convolution(%x, %x) dim_numbers = [b, f]x[i, o]->[b, f], window = {stride = [], stride = []} }",
        "1:128: `stride` is here twice",
    ),
    (
        "%0 = stablehlo.constant 1",
        "1:25: unexpected `1`; expected a constant, as `dense<0> : tensor<i32>`",
    ),
    (
        "%0 = stablehlo.constant [1]",
        "1:25: unexpected `[`; expected a constant, as `dense<0> : tensor<i32>`",
    ),
    (
        "func.func @f(%x: tensor<f32>) { %0 = sdy.reshard %x @mesh : tensor<f32> }",
        "1:53: unexpected `@mesh`; expected the brackets of `sharding`",
    ),
    (
        "func.func @f(%x: tensor<f32>) { %0 = sdy.manual_computation(%x) in_shardings=<@mesh> }",
        "1:78: unexpected `<`; expected `[`",
    ),
    (
        "func.func @f(%x: tensor<f32>) { %0 = sdy.propagation_barrier %x allowed_direction=UP : tensor<f32> }",
        "1:83: unexpected `UP`; expected one of `NONE`, `FORWARD`, `BACKWARD`, `BOTH`",
    ),
    (
        "func.func f() {}",
        "1:11: unexpected `f`; expected a symbol, as `@main`",
    ),
    (
        "%0 = stablehlo.iota dim = x : tensor<2xf32>",
        "1:27: unexpected `x`; expected an integer",
    ),
    (
        "module {}\n{-# dialect_resources: { builtin: { a: \"0xZZ\" } } #-}",
        "2:40: this string holds no hexadecimal bytes (write `\"0x\"` and two digits for each byte)",
    ),
    (
        "é",
        "1:1: unexpected `é`; expected an operation, as `stablehlo.add` or `\"stablehlo.add\"`",
    ),
];

#[test]
fn errors_say_what_is_wrong_and_where() {
    for (text, expected) in CASES {
        let error = parse(text).expect_err(text);
        assert_eq!(error.to_string(), *expected, "{text}");
    }
}

#[test]
fn errors_are_data() {
    let text = "module {\n  // é\n  %é = stablehlo.iota dims = 0 : tensor<2xf32>\n}";
    let error = parse(text).expect_err("an error");
    assert_eq!(error.at, LineColumn { line: 3, column: 4 });
    assert_eq!(error.message, "unexpected `é`");
    let text = "module {\n  // é\n  %e = stablehlo.iota dims = 0 : tensor<2xf32>\n}";
    let error = parse(text).expect_err("an error");
    assert_eq!(error.at, LineColumn { line: 3, column: 23 });
    let range = error.span.start as usize..error.span.end as usize;
    assert_eq!(text.get(range), Some("dims"));
    assert_eq!(error.expected.as_deref(), Some("`dim`"));
    assert_eq!(error.help, None);
}
