//! Parts of texts and what they are, worked out by hand from MLIR's language reference.

use std::sync::Arc;

use tilewright_stablehlo::mlir::{
    Attribute, DenseArray, Elements, Location, Operation, Scalar, Sign, TensorType, Type,
};

use crate::text::{attribute, operations, read};

fn integer(bits: u32, sign: Sign) -> Type {
    Type::Scalar(Scalar::Integer { bits, sign })
}

fn float(name: &str) -> Type {
    Type::Scalar(Scalar::Float(name.into()))
}

/// The bytes of a constant.
fn bytes(text: &str) -> Vec<u8> {
    match attribute(text) {
        Attribute::Dense(dense) => match dense.elements {
            Elements::Bytes(bytes) => bytes.to_vec(),
            Elements::Strings(strings) => strings.concat(),
        },
        other => panic!("{text} is {other:?}"),
    }
}

fn ty(text: &str) -> Type {
    match attribute(text) {
        Attribute::Type(ty) => *ty,
        other => panic!("{text} is {other:?}"),
    }
}

#[test]
fn scalars() {
    let i64 = integer(64, Sign::Signless);
    assert_eq!(attribute("3"), Attribute::Integer(3, i64.clone()));
    assert_eq!(attribute("-1 : i8"), Attribute::Integer(-1, integer(8, Sign::Signless)));
    assert_eq!(attribute("0xFF : ui8"), Attribute::Integer(255, integer(8, Sign::Unsigned)));
    assert_eq!(attribute("7 : index"), Attribute::Integer(7, Type::Scalar(Scalar::Index)));
    assert_eq!(attribute("true"), Attribute::Bool(true));
    assert_eq!(attribute("unit"), Attribute::Unit);
    assert_eq!(attribute("1.5"), Attribute::Float(1.5, float("f64")));
    // 0.1 rounded to the type, as MLIR keeps it.
    assert_eq!(attribute("0.1 : f32"), Attribute::Float(f64::from(0.1_f32), float("f32")));
    assert_eq!(attribute("0.1 : bf16"), Attribute::Float(0.100_097_656_25, float("bf16")));
    assert_eq!(attribute("0x3F800000 : f32"), Attribute::Float(1.0, float("f32")));
    assert_eq!(attribute("0xFF800000 : f32"), Attribute::Float(f64::NEG_INFINITY, float("f32")));
    assert_eq!(attribute("2.0 : f8E4M3FN"), Attribute::Float(2.0, float("f8E4M3FN")));
}

#[test]
fn strings_and_symbols() {
    let string = |bytes: &[u8]| Attribute::String(Arc::from(bytes));
    assert_eq!(
        attribute(r#""a \"b\" \\ \n \t \C3\A9 \00""#),
        string(b"a \"b\" \\ \n \t \xC3\xA9 \0")
    );
    assert_eq!(attribute("\"é // no comment\""), string("é // no comment".as_bytes()));
    let symbol = |path: &[&str]| Attribute::Symbol(path.iter().map(|&name| name.into()).collect());
    assert_eq!(attribute("@a"), symbol(&["a"]));
    assert_eq!(attribute("@a::@\"odd name\""), symbol(&["a", "odd name"]));
}

#[test]
fn arrays() {
    let dense = |array| Attribute::DenseArray(array);
    assert_eq!(attribute("array<i64>"), dense(DenseArray::I64(vec![])));
    assert_eq!(attribute("array<i64: 1, -2>"), dense(DenseArray::I64(vec![1, -2])));
    assert_eq!(attribute("array<i32: 7>"), dense(DenseArray::Integer(32, vec![7])));
    assert_eq!(attribute("array<i1: true, false>"), dense(DenseArray::Bool(vec![true, false])));
    assert_eq!(
        attribute("array<f32: 1.5, 0x7F800000>"),
        dense(DenseArray::F32(vec![1.5, f32::INFINITY]))
    );
    assert_eq!(attribute("array<f64: -0.0>"), dense(DenseArray::F64(vec![-0.0])));
    let items = vec![Attribute::Unit, Attribute::Array(vec![])];
    assert_eq!(attribute("[unit, []]"), Attribute::Array(items));
    let entries = vec![("a.b".into(), Attribute::Unit), ("odd name".into(), Attribute::Bool(true))];
    assert_eq!(attribute("{a.b, \"odd name\" = true}"), Attribute::Dictionary(entries));
}

#[test]
fn constants() {
    assert_eq!(bytes("dense<[[1, 2], [3, -4]]> : tensor<2x2xi16>"), [1, 0, 2, 0, 3, 0, 0xFC, 0xFF]);
    assert_eq!(bytes("dense<7> : tensor<100xi8>"), [7]);
    assert_eq!(bytes("dense<> : tensor<0x3xf32>"), []);
    assert_eq!(bytes("dense<[]> : tensor<0xf32>"), []);
    assert_eq!(bytes("dense<[true, false, true]> : tensor<3xi1>"), [1, 0, 1]);
    // The bits above the width are 0.
    assert_eq!(bytes("dense<[-8, 7]> : tensor<2xi4>"), [0x08, 0x07]);
    assert_eq!(bytes("dense<[255, -1]> : tensor<2xi8>"), [0xFF, 0xFF]);
    assert_eq!(bytes("dense<18446744073709551615> : tensor<ui64>"), [0xFF; 8]);
    assert_eq!(bytes("dense<[1.0, -0.0]> : tensor<2xf32>"), [0, 0, 0x80, 0x3F, 0, 0, 0, 0x80]);
    assert_eq!(bytes("dense<0x7FC00000> : tensor<f32>"), [0, 0, 0xC0, 0x7F]);
    assert_eq!(bytes("dense<[1.5, 0x7C00]> : tensor<2xf16>"), [0, 0x3E, 0, 0x7C]);
    assert_eq!(bytes("dense<1.0> : tensor<bf16>"), [0x80, 0x3F]);
    assert_eq!(bytes("dense<[1.5, -2.0]> : tensor<2xf8E4M3FN>"), [0x3C, 0xC0]);
    assert_eq!(bytes("dense<1.0> : tensor<f8E5M2>"), [0x3C]);
    assert_eq!(
        bytes("dense<[(1.0, -2.0)]> : tensor<1xcomplex<f32>>"),
        [0, 0, 0x80, 0x3F, 0, 0, 0, 0xC0]
    );
    assert_eq!(bytes("dense<[\"a\", \"b\"]> : tensor<2x!tf.string>"), b"ab");
    assert_eq!(bytes("dense<// one\n 1> : tensor<i8>"), [1]);
}

#[test]
fn constants_as_bytes() {
    assert_eq!(
        bytes("dense<\"0x0000803F000000C0\"> : tensor<2xf32>"),
        [0, 0, 0x80, 0x3F, 0, 0, 0, 0xC0]
    );
    // One element that all are equal to.
    assert_eq!(bytes("dense<\"0x0000803F\"> : tensor<2xf32>"), [0, 0, 0x80, 0x3F]);
    assert_eq!(bytes("dense<\"0x010001\"> : tensor<3xi1>"), [1, 0, 1]);
    // Of older versions, with a bit for each truth value.
    assert_eq!(bytes("dense<\"0x0502\"> : tensor<10xi1>"), [1, 0, 1, 0, 0, 0, 0, 0, 0, 1]);
    assert_eq!(bytes("dense<\"0xFF\"> : tensor<3xi1>"), [1]);
}

#[test]
fn resources() {
    let text = "module {\n %0 = stablehlo.constant dense_resource<w> : tensor<1xf32>\n \
                %1 = stablehlo.constant dense_resource<\"x y\"> : tensor<1xi8>\n \
                %2 = stablehlo.constant dense_resource<elided> : tensor<1xi8>\n}\n\n{-#\n  \
                dialect_resources: {\n    builtin: {\n      w: \"0x040000000000803F\",\n      \
                \"x y\": \"0x0100000007\"\n    }\n  },\n  external_resources: {\n    mlir_reproducer: \
                {\n      pipeline: \"any\",\n      disable_threading: false\n    }\n  }\n#-}\n";
    let program = read(text);
    let bytes = operations(&program).iter().map(|operation| match operation.attribute("value") {
        Some(Attribute::Resource { bytes, .. }) => bytes.as_deref().map(<[u8]>::to_vec),
        other => panic!("{other:?}"),
    });
    let expected = [Some(vec![0, 0, 0x80, 0x3F]), Some(vec![7]), None];
    assert_eq!(bytes.collect::<Vec<_>>(), expected);
}

#[test]
fn types() {
    let f32 = Scalar::Float("f32".into());
    let tensor = |dims: &[Option<i64>], element: &Scalar| TensorType {
        dims: dims.iter().copied().collect(),
        element: element.clone(),
        encoding: None,
    };
    assert_eq!(ty("tensor<f32>"), Type::Tensor(tensor(&[], &f32)));
    assert_eq!(ty("tensor<2x?x0xf32>"), Type::Tensor(tensor(&[Some(2), None, Some(0)], &f32)));
    assert_eq!(ty("tensor<*xf32>"), Type::UnrankedTensor(f32.clone()));
    let complex = Scalar::Complex(Box::new(f32.clone()));
    assert_eq!(ty("tensor<3xcomplex<f32>>"), Type::Tensor(tensor(&[Some(3)], &complex)));
    let quantized = Scalar::Other("!quant.uniform<i8:f32, 2.0:15>".into());
    let text = "tensor<2x!quant.uniform<i8:f32, 2.0:15>>";
    assert_eq!(ty(text), Type::Tensor(tensor(&[Some(2)], &quantized)));
    let bounded = attribute("#stablehlo.bounds<?, 4>");
    assert_eq!(bounded, attribute("#stablehlo.type_extensions<bounds = [?, 4]>"));
    let encoded =
        TensorType { encoding: Some(Box::new(bounded)), ..tensor(&[Some(2), None], &f32) };
    assert_eq!(ty("tensor<2x?xf32, #stablehlo.bounds<?, 4>>"), Type::Tensor(encoded));
    assert_eq!(ty("tuple<si4, none>"), Type::Tuple(vec![integer(4, Sign::Signed), Type::None]));
    assert_eq!(ty("!stablehlo.token"), Type::Token);
    assert_eq!(ty("!mhlo.token"), Type::Token);
    assert_eq!(ty("!stablehlo.future<f32, bf16>"), Type::Future(vec![float("f32"), float("bf16")]));
    for text in [
        "memref<2x?xf32, strided<[1, ?]>>",
        "vector<4xf32>",
        "!tf.resource<tensor<f32>>",
        "!a<\"b>\">",
    ] {
        assert_eq!(ty(text), Type::Other { text: text.into() });
    }
    let Type::Function(function) = ty("(i1, i2) -> (() -> i3)") else { panic!("no function") };
    assert_eq!(function.inputs.len(), 2);
    assert!(matches!(function.results.as_slice(), [Type::Function(_)]));
}

#[test]
fn dialect_attributes() {
    let parameters = |text: &str| match attribute(text) {
        Attribute::Dialect(dialect) => (dialect.name, dialect.parameters),
        other => panic!("{text} is {other:?}"),
    };
    let list = |values: &[i64]| Attribute::DenseArray(DenseArray::I64(values.to_vec()));
    let number = |value| Attribute::Integer(value, integer(64, Sign::Signless));
    let (name, found) = parameters("#stablehlo<comparison_direction LT>");
    assert_eq!(
        (name.as_str(), found),
        ("comparison_direction", vec![("value".into(), attribute("\"LT\""))])
    );
    let (name, found) = parameters("#stablehlo.gather<offset_dims = [0, 1], index_vector_dim = 2>");
    let expected =
        vec![("offset_dims".into(), list(&[0, 1])), ("index_vector_dim".into(), number(2))];
    assert_eq!((name.as_str(), found), ("gather", expected));
    let (name, found) = parameters("#stablehlo.conv<[b, 0, 1, f]x[o, 1, 0, i]->[f, 0, b, 1]>");
    let expected = vec![
        ("input_batch_dimension".into(), number(0)),
        ("input_feature_dimension".into(), number(3)),
        ("input_spatial_dimensions".into(), list(&[1, 2])),
        ("kernel_input_feature_dimension".into(), number(3)),
        ("kernel_output_feature_dimension".into(), number(0)),
        ("kernel_spatial_dimensions".into(), list(&[2, 1])),
        ("output_batch_dimension".into(), number(2)),
        ("output_feature_dimension".into(), number(0)),
        ("output_spatial_dimensions".into(), list(&[1, 3])),
    ];
    assert_eq!((name.as_str(), found), ("conv", expected));
    let (name, found) = parameters(
        "#stablehlo.conv<raw input_batch_dimension = 3, input_spatial_dimensions = [4]>",
    );
    let expected = vec![
        ("input_batch_dimension".into(), number(3)),
        ("input_spatial_dimensions".into(), list(&[4])),
    ];
    assert_eq!((name.as_str(), found), ("conv", expected));
    let (_, found) = parameters("#stablehlo.axis_ref<name = \"x\", sub_axis_info = (2)4>");
    let [_, (_, Attribute::Dialect(part))] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(part.parameters, [("pre_size".into(), number(2)), ("size".into(), number(4))]);
    let (_, found) = parameters(
        "#stablehlo.result_accuracy<atol = 1.5, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>",
    );
    assert_eq!(found[0], ("atol".into(), Attribute::Float(1.5, float("f64"))));
    let (_, found) = parameters("#stablehlo.mesh<axes=[<name = \"x\", size = 2>]>");
    assert!(matches!(&found[0].1, Attribute::Array(axes) if axes.len() == 1));
}

#[test]
fn other_attributes_keep_their_text() {
    let opaque = |dialect: &str, text: &str| Attribute::Opaque {
        dialect: dialect.into(),
        text: text.into(),
    };
    let text = "sharding<@mesh, [{\"x\"}, {?}]>";
    assert_eq!(attribute(&format!("#sdy.{text}")), opaque("sdy", text));
    assert_eq!(attribute("#sdy<manual_axes{\"a\"}>"), opaque("sdy", "manual_axes{\"a\"}"));
    assert_eq!(attribute("#a.b"), opaque("a", "b"));
    let spaced = "#sdy.sharding < @mesh , [ {\"x , \\22\"},{ ? } ] >";
    assert_eq!(
        attribute(&spaced.replacen(" <", "<", 1)),
        opaque("sdy", "sharding<@mesh, [{\"x , \\22\"}, {?}]>")
    );
    assert_eq!(attribute("#mhlo.layout<[0, 1]>"), opaque("mhlo", "layout<[0, 1]>"));
    let map = "affine_map<(d0) -> (d0)>";
    assert_eq!(attribute(map), opaque("builtin", map));
}

#[test]
fn locations() {
    let location = |text: &str| match attribute(&format!("loc({text})")) {
        Attribute::Location(location) => (*location).clone(),
        other => panic!("{text} is {other:?}"),
    };
    let file = |start, end| Location::File { file: "a.py".into(), start, end };
    assert_eq!(location("unknown"), Location::Unknown);
    assert_eq!(location("\"a.py\":1:2"), file((1, 2), (1, 2)));
    assert_eq!(location("\"a.py\":1:2 to :5"), file((1, 2), (1, 5)));
    assert_eq!(location("\"a.py\":1:2 to 3:4"), file((1, 2), (3, 4)));
    let child = Arc::new(file((1, 2), (1, 2)));
    let name = Location::Name { name: "f".into(), child: Arc::clone(&child) };
    assert_eq!(location("\"f\"(\"a.py\":1:2)"), name);
    let name = Location::Name { name: "f".into(), child: Arc::new(Location::Unknown) };
    assert_eq!(location("\"f\""), name);
    let call = Location::Call { callee: Arc::new(name), caller: Arc::clone(&child) };
    assert_eq!(location("callsite(\"f\" at \"a.py\":1:2)"), call);
    let fused = Location::Fused {
        metadata: Some(Box::new(Attribute::Bool(true))),
        parts: vec![child, Arc::new(Location::Unknown)],
    };
    assert_eq!(location("fused<true>[\"a.py\":1:2, unknown]"), fused);
}

#[test]
fn locations_for_people() {
    let of = |text: &str| {
        let program = read(&format!("\"a.b\"() : () -> () {text}\n"));
        operations(&program)[0].location.as_deref().cloned()
    };
    let file = |start, end| Location::File { file: "/a b/c.py".into(), start, end };
    assert_eq!(of(""), None);
    assert_eq!(of("[unknown]"), Some(Location::Unknown));
    assert_eq!(of("/a b/c.py:1:2"), Some(file((1, 2), (1, 2))));
    assert_eq!(of("/a b/c.py:1:2 to :5"), Some(file((1, 2), (1, 5))));
    assert_eq!(of("/a b/c.py:1:2 to 3:4"), Some(file((1, 2), (3, 4))));
    let child = Arc::new(file((1, 2), (1, 2)));
    let name = Location::Name { name: "f".into(), child: Arc::clone(&child) };
    assert_eq!(of("\"f\"(/a b/c.py:1:2)"), Some(name.clone()));
    let call = Location::Call { callee: Arc::new(name), caller: child };
    assert_eq!(of("#loc2\n#loc1 = /a b/c.py:1:2\n#loc2 = \"f\"(#loc1)\n at #loc1"), Some(call));
    // These are operations.
    for text in [
        "\"a.b\"() : () -> ()",
        "\"a.b\" ( ) : () -> ()",
        "%0 = stablehlo.create_token : !stablehlo.token",
    ] {
        let program = read(&format!("\"a.b\"() : () -> () {text}"));
        assert_eq!(operations(&program).len(), 2, "{text}");
    }
}

#[test]
fn aliases_stand_before_or_after_their_uses() {
    let text = "#after = [#before]\n\"a.b\"() {x = #after, y = !t} : () -> () loc(#loc1)\n\
                #before = 1 : i8\n!t = tuple<!u>\n!u = i8\n#loc1 = loc(\"f\"(#loc))\n#loc = loc(unknown)\n";
    let program = read(text);
    let operation = &operations(&program)[0];
    let i8 = integer(8, Sign::Signless);
    let list = Attribute::Array(vec![Attribute::Integer(1, i8.clone())]);
    assert_eq!(operation.attribute("x"), Some(&list));
    let tuple = Attribute::Type(Box::new(Type::Tuple(vec![i8])));
    assert_eq!(operation.attribute("y"), Some(&tuple));
    let child = Arc::new(Location::Unknown);
    assert_eq!(operation.location.as_deref(), Some(&Location::Name { name: "f".into(), child }));
}

#[test]
fn a_text_without_module_gets_one() {
    let program = read("func.func private @f()\nfunc.func private @g()");
    assert_eq!(program.module.name, "builtin.module");
    assert_eq!(operations(&program).len(), 2);
    let program = read("// a comment\nmodule @m attributes {a.b} {}");
    assert_eq!(program.module.attribute("sym_name"), Some(&attribute("\"m\"")));
    assert_eq!(program.module.attribute("a.b"), Some(&Attribute::Unit));
}

#[test]
fn arguments_keep_their_locations() {
    let program = read("func.func @f(%x: i1 loc(\"x\"), %y: i1) { return }");
    let function = &operations(&program)[0];
    let arguments = &function.regions[0].blocks[0].arguments;
    let child = Arc::new(Location::Unknown);
    let location = Location::Name { name: "x".into(), child };
    assert_eq!(program.argument_locations[&arguments[0]].as_ref(), &location);
    assert!(!program.argument_locations.contains_key(&arguments[1]));
}

#[test]
fn names_of_results() {
    let program = read(
        "%a, %b:2 = \"a.b\"() : () -> (i1, i2, i3)\n\"c.d\"(%b#1, %a, %b) : (i3, i1, i2) -> ()",
    );
    let [first, second] = operations(&program) else { panic!("two operations") };
    let results = &first.results;
    assert_eq!(second.operands.as_slice(), [results[2], results[0], results[1]]);
    assert_eq!(program.type_of(results[1]), Some(&integer(2, Sign::Signless)));
}

#[test]
fn places_of_operations() {
    let text =
        "func.func @f() {\n  %0 = \"a.b\"() : () -> i1  // why\n\n  return loc(unknown)\n}\n";
    let program = read(text);
    let function = &operations(&program)[0];
    let [first, second] = function.regions[0].blocks[0].operations.as_slice() else {
        panic!("two operations")
    };
    let place = |operation: &Operation| {
        text.get(operation.span.start as usize..operation.span.end as usize)
    };
    assert_eq!(place(first), Some("%0 = \"a.b\"() : () -> i1"));
    assert_eq!(place(second), Some("return loc(unknown)"));
    assert_eq!(place(function), Some(text.trim_end()));
}

#[test]
fn older_spellings() {
    // PyTorch/XLA's numbers for truth values, and attributes that now are properties.
    let text = "func.func @main(%x: tensor<1x2x4x4xf32>, %k: tensor<3x2x2x2xf32>) -> tuple<tensor<1x3x3x3xf32>> {\n\
                %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], \
                window = {stride = [1, 1], pad = [[0, 1], [2, 3]], reverse = [0, 1]} \
                {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : \
                (tensor<1x2x4x4xf32>, tensor<3x2x2x2xf32>) -> tensor<1x3x3x3xf32>\n\
                %1 = stablehlo.custom_call @mhlo.erf(%0) {mhlo.attributes = {}, mhlo.version = 1 : i64} : \
                (tensor<1x3x3x3xf32>) -> tensor<1x3x3x3xf32>\n\
                %2 = \"stablehlo.reverse\"(%1) {dimensions = dense<1> : tensor<1xi64>} : \
                (tensor<1x3x3x3xf32>) -> tensor<1x3x3x3xf32>\n\
                %3 = stablehlo.tuple %2 {xla_shape = \"(f32[1,3,3,3]{3,2,1,0})\"} : tuple<tensor<1x3x3x3xf32>>\n\
                return %3 : tuple<tensor<1x3x3x3xf32>>\n}";
    let program = read(text);
    let body = &operations(&program)[0].regions[0].blocks[0].operations;
    let reversal = Attribute::DenseArray(DenseArray::Bool(vec![false, true]));
    assert_eq!(body[0].attribute("window_reversal"), Some(&reversal));
    let padding = attribute("dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>");
    assert_eq!(body[0].attribute("padding"), Some(&padding));
    assert_eq!(body[1].attribute("call_target_name"), Some(&attribute("\"mhlo.erf\"")));
    assert_eq!(body[2].attribute("dimensions"), Some(&attribute("dense<1> : tensor<1xi64>")));
    assert_eq!(body[3].results.len(), 1);
}

#[test]
fn casts_and_constants_of_other_dialects() {
    let text = "func.func @f(%x: tensor<2xf32>) {\n\
                %0 = tensor.cast %x : tensor<2xf32> to tensor<?xf32>\n\
                %1, %2 = builtin.unrealized_conversion_cast %x, %0 : \
                tensor<2xf32>, tensor<?xf32> to i1, i2\n\
                %3 = arith.constant 7 : i8\n%4 = arith.constant true\n\
                %5 = arith.constant dense<1> : tensor<2xi8>\n\
                %6 = stablehlo.uniform_quantize %x : (tensor<2xf32>) -> tensor<2x!quant.uniform<i8:f32, 2.0>>\n\
                // The spelling of such a type may change.\n\
                %7 = stablehlo.uniform_dequantize %6 : (tensor<2x!quant.uniform<i8:f32, 2.000000e+00>>) -> tensor<2xf32>\n\
                return }";
    let program = read(text);
    let body = &operations(&program)[0].regions[0].blocks[0].operations;
    let result =
        |operation: usize, index: usize| program.type_of(body[operation].results[index]).cloned();
    assert_eq!(result(0, 0), Some(ty("tensor<?xf32>")));
    assert_eq!(result(1, 1), Some(ty("i2")));
    assert_eq!(result(2, 0), Some(ty("i8")));
    assert_eq!(result(3, 0), Some(ty("i1")));
    assert_eq!(result(4, 0), Some(ty("tensor<2xi8>")));
    assert_eq!(result(6, 0), Some(ty("tensor<2xf32>")));
}

#[test]
fn check_and_interpreter_operations() {
    let text = "func.func @f(%x: tensor<2xf32>) {\n\
                check.expect_eq_const %x, dense<1.0> : tensor<2xf32>\n\
                check.expect_almost_eq_const %x, dense<1.0> : tensor<2xf32>\n\
                check.expect_almost_eq_const %x, dense<1.0> : tensor<2xf32>, tolerance = 0.5\n\
                check.expect_eq %x, %x : tensor<2xf32>\n\
                check.expect_almost_eq %x, %x, tolerance = 0.1 : tensor<2xf32>\n\
                check.expect_close %x, %x, max_ulp_difference = 18446744073709551615, \
                min_ulp_difference = 5 : tensor<2xf32>, tensor<2xf32>\n\
                check.expect_serialized_eq %x, probe_id = \"p\", iter = 2 : tensor<2xf32>\n\
                interpreter.print %x : tensor<2xf32>\n\
                %0 = interpreter.probe %x, probe_id = \"p\" : tensor<2xf32>\n\
                \"check.expect_eq\"(%x, %0) : (tensor<2xf32>, tensor<2xf32>) -> ()\n\
                return }";
    let program = read(text);
    let body = &operations(&program)[0].regions[0].blocks[0].operations;
    assert_eq!(body.len(), 11);
    assert_eq!(body[0].attribute("value"), Some(&attribute("dense<1.0> : tensor<2xf32>")));
    assert_eq!(body[2].attribute("tolerance"), Some(&attribute("0.5")));
    let most = Attribute::Integer(u64::MAX.into(), integer(64, Sign::Unsigned));
    assert_eq!(body[5].attribute("max_ulp_difference"), Some(&most));
    assert_eq!(body[9].operands.as_slice(), [body[8].operands[0], body[8].results[0]]);
}
