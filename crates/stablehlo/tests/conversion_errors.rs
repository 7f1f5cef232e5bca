//! What cannot be converted: the kind of the error, and what it says.

use tilewright_ir::{Builder, Shape};
use tilewright_stablehlo::export::ExportErrorKind;
use tilewright_stablehlo::{ImportErrorKind, export, import, text};

/// The error of a function with these operations, on a vector `%a`.
fn error(body: &str) -> (ImportErrorKind, String) {
    let source = format!(
        "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {{\n{body}\nreturn %r : tensor<4xf32>\n}}"
    );
    let program = text::parse(&source).unwrap_or_else(|e| panic!("{e}"));
    let error = import(&program).unwrap_err();
    assert!(error.span.end as usize <= source.len());
    (error.kind, error.message)
}

#[test]
fn ops_that_hlo_does_not_have_are_named() {
    let of = |name: &str| {
        let (kind, message) =
            error(&format!(r#"%r = "{name}"(%a) : (tensor<4xf32>) -> tensor<4xf32>"#));
        assert_eq!(kind, ImportErrorKind::Unsupported);
        message.strip_prefix(&format!("`{name}` ")).unwrap().to_owned()
    };
    let other = "is of a dialect that XLA does not convert; lower it to StableHLO first";
    assert_eq!(of("other.op"), other);
    assert_eq!(of("stablehlo.other"), "is not read here yet; write it by other ops");
    assert_eq!(of("mhlo.other"), "is not read here yet; write it by other ops");
    assert!(of("chlo.other").ends_with("(`stablehlo-opt --chlo-legalize-to-stablehlo`)"));
}

/// What an op needs is named: the kind of a configuration is that of the interface, as jaxlib has it.
#[test]
fn what_an_op_needs_is_named() {
    let call = |version: i32, config: &str| {
        error(&format!(
            "%r = stablehlo.custom_call @f(%a) {{api_version = {version} : i32, backend_config = {config}}} \
             : (tensor<4xf32>) -> tensor<4xf32>"
        ))
        .1
    };
    assert_eq!(call(4, "\"a\""), "`stablehlo.custom_call` takes a dictionary as `backend_config`");
    assert_eq!(
        call(2, "{a = 1 : i32}"),
        "`stablehlo.custom_call` takes a string as `backend_config`"
    );
    let concatenate = r#"%r = "stablehlo.concatenate"(%a) : (tensor<4xf32>) -> tensor<4xf32>"#;
    assert_eq!(error(concatenate).1, "`stablehlo.concatenate` lacks its attribute `dimension`");
}

/// Each condition of the products that `einsum` writes, and each part of what a transfer or a sharding needs.
#[test]
fn older_forms_are_checked() {
    let einsum = |config: &str| {
        let op = r#"%r = "stablehlo.einsum"(%a, %a)"#;
        error(&format!("{op} {{einsum_config = \"{config}\"}} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>")).1
    };
    for config in ["ii,i->i", "i,j->k", "i,j->ii", "i->i", "i,i"] {
        let message = einsum(config);
        assert!(
            message.contains("`einsum_config`") || message.contains("dot"),
            "{config}: {message}"
        );
    }
    let send = r#"%t = stablehlo.create_token : !stablehlo.token
%s = "stablehlo.send"(%a, %t) : (tensor<4xf32>, !stablehlo.token) -> !stablehlo.token
%r = stablehlo.abs %a : tensor<4xf32>"#;
    assert_eq!(error(send).1, "`stablehlo.send` lacks its attribute `channel_handle`");
    let recv = r#"%r = "stablehlo.recv"(%a) : (tensor<4xf32>) -> tensor<4xf32>"#;
    assert_eq!(error(recv).1, "`stablehlo.recv` lacks its attribute `channel_handle`");
    let done = r#"%r = "stablehlo.async_done"(%a) : (tensor<4xf32>) -> tensor<4xf32>"#;
    assert_eq!(error(done).1, "`stablehlo.async_done` takes what an `async_start` yields");
    let start = r#"%r = "stablehlo.async_start"(%a) : (tensor<4xf32>) -> tensor<4xf32>"#;
    assert_eq!(error(start).1, "`stablehlo.async_start` has no region, where its op is");
    let ragged = r#"%r = "chlo.ragged_dot"(%a, %a, %a) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>"#;
    let lacks = "`chlo.ragged_dot` lacks its attribute `ragged_dot_dimension_numbers`";
    assert_eq!(error(ragged).1, lacks);
    let sharding = r#"%r = stablehlo.abs %a {mhlo.sharding = "\FF"} : tensor<4xf32>"#;
    let message = error(sharding).1;
    assert!(
        message.starts_with("`stablehlo.abs` has no sharding of HLO in `mhlo.sharding`"),
        "{message}"
    );
    let sharding = r#"%r = stablehlo.abs %a {mhlo.sharding = 3 : i32} : tensor<4xf32>"#;
    assert_eq!(error(sharding).1, "`stablehlo.abs` takes a text as `mhlo.sharding`");
}

#[test]
fn missing_and_wrong_attributes_are_named() {
    let op = r#"%r = "stablehlo.reduce_precision"(%a) {exponent_bits = 5 : i32} : (tensor<4xf32>) -> tensor<4xf32>"#;
    assert_eq!(
        error(op),
        (
            ImportErrorKind::Malformed,
            "`stablehlo.reduce_precision` lacks its attribute `mantissa_bits`".into()
        )
    );
    let op =
        r#"%r = "stablehlo.reverse"(%a) {dimensions = "x"} : (tensor<4xf32>) -> tensor<4xf32>"#;
    let (kind, message) = error(op);
    assert_eq!(kind, ImportErrorKind::Malformed);
    assert_eq!(message, "`stablehlo.reverse` takes a list of integers as `dimensions`");
}

#[test]
fn types_that_hlo_does_not_have_are_named() {
    let op = r#"%q = "stablehlo.convert"(%a) : (tensor<4xf32>) -> tensor<4xi37>
%r = "stablehlo.convert"(%q) : (tensor<4xi37>) -> tensor<4xf32>"#;
    let (kind, message) = error(op);
    assert_eq!(kind, ImportErrorKind::Unsupported);
    assert_eq!(message, "`stablehlo.convert` has integers of 37 bits; HLO does not");
}

#[test]
fn invalid_modules_are_refused() {
    let op = r#"%r = "stablehlo.add"(%a) : (tensor<4xf32>) -> tensor<4xf32>"#;
    let (kind, message) = error(op);
    assert_eq!(kind, ImportErrorKind::Invalid);
    assert!(message.contains("`add` takes 2 operands, not 1"), "{message}");
}

#[test]
fn functions_do_not_call_themselves() {
    let source = "func.func @main(%a: tensor<f32>) -> tensor<f32> {
  %0 = call @main(%a) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}";
    let error = import(&text::parse(source).unwrap()).unwrap_err();
    assert_eq!(error.kind, ImportErrorKind::TooDeep);
    assert_eq!(error.message, "`main` calls itself, which HLO does not allow");
}

#[test]
fn a_program_has_main() {
    let source = "func.func @other(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }";
    let error = import(&text::parse(source).unwrap()).unwrap_err();
    assert_eq!(error.kind, ImportErrorKind::Malformed);
    assert!(error.message.contains("no function `main`"), "{}", error.message);
}

#[test]
fn long_chains_of_calls_are_refused() {
    let mut source = String::from(
        "func.func @main(%a: tensor<f32>) -> tensor<f32> {
  %0 = call @f0(%a) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}\n",
    );
    for number in 0..1000 {
        source += &format!(
            "func.func @f{number}(%a: tensor<f32>) -> tensor<f32> {{
  %0 = call @f{}(%a) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}}\n",
            number + 1
        );
    }
    let error = import(&text::parse(&source).unwrap()).unwrap_err();
    assert_eq!(error.kind, ImportErrorKind::TooDeep);
}

#[test]
fn deep_regions_are_refused_or_converted() {
    for depth in [8, 60, 180, 400] {
        let vector = "tensor<4xf32>";
        let mut body = format!("%r0 = \"stablehlo.negate\"(%a) : ({vector}) -> {vector}\n");
        for at in 0..depth {
            let next = at + 1;
            body = format!(
                "%i{next} = \"stablehlo.constant\"() {{value = dense<0> : tensor<i32>}} : () -> tensor<i32>
%r{next} = \"stablehlo.case\"(%i{next}) ({{
{body}\"stablehlo.return\"(%r{at}) : ({vector}) -> ()
}}) : (tensor<i32>) -> {vector}\n"
            );
        }
        let source = format!(
            "func.func @main(%a: {vector}) -> {vector} {{\n{body}return %r{depth} : {vector}\n}}"
        );
        let is_shallow = depth == 8;
        let program = match text::parse(&source) {
            Ok(program) => program,
            Err(error) => {
                assert!(!is_shallow && error.to_string().contains("deep"), "{depth}: {error}");
                continue;
            }
        };
        match import(&program) {
            Ok(module) => {
                assert!(depth != 400, "regions {depth} deep are converted");
                assert!(export(&module).is_ok(), "{depth}");
            }
            Err(error) => {
                assert!(!is_shallow, "{error}");
                assert_eq!(error.kind, ImportErrorKind::TooDeep, "{depth}");
            }
        }
    }
}

#[test]
fn opaque_values_are_not_exported() {
    let mut builder = Builder::new("m");
    let x = builder.parameter("x", Shape::Opaque).unwrap();
    let module = builder.finish(x).unwrap();
    let error = export(&module).unwrap_err();
    assert_eq!(error.kind, ExportErrorKind::Unsupported);
    assert_eq!(error.instruction, "x");
}

/// jaxlib does not convert these either.
#[test]
fn sizes_that_only_a_run_tells_are_named() {
    let op = "%n = stablehlo.get_dimension_size %a, dim = 0 : (tensor<4xf32>) -> tensor<i32>
%s = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
%z = stablehlo.constant dense<0.0> : tensor<f32>
%i = stablehlo.constant dense<1> : tensor<i32>
%u = stablehlo.set_dimension_size %a, %i, dim = 0 : (tensor<4xf32>, tensor<i32>) -> tensor<?xf32>
%k = stablehlo.get_dimension_size %u, dim = 0 : (tensor<?xf32>) -> tensor<i32>
%l = stablehlo.reshape %k : (tensor<i32>) -> tensor<1xi32>
";
    let broadcast = "%q = stablehlo.dynamic_broadcast_in_dim %z, %l, dims = [] : (tensor<f32>, tensor<1xi32>) -> tensor<?xf32>";
    let reshape =
        "%q = stablehlo.dynamic_reshape %a, %l : (tensor<4xf32>, tensor<1xi32>) -> tensor<?xf32>";
    let end = "%r = stablehlo.convert %q : (tensor<?xf32>) -> tensor<4xf32>";
    for (name, last) in [("dynamic_broadcast_in_dim", broadcast), ("dynamic_reshape", reshape)] {
        let (kind, message) = error(&format!("{op}{last}\n{end}"));
        assert_eq!(kind, ImportErrorKind::Unsupported);
        let start = format!("`stablehlo.{name}` has sizes that only a run tells");
        assert!(message.starts_with(&start) && message.contains("refine the shapes"), "{message}");
    }
}

#[test]
fn approximate_top_k_says_what_it_lacks() {
    let call = |config: &str| {
        let source = format!(
            r#"func.func @main(%a: tensor<200xf32>, %b: tensor<200xi32>) -> tensor<3xf32> {{
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %i = stablehlo.constant dense<-1> : tensor<i32>
  %0:2 = "stablehlo.custom_call"(%a, %b, %z, %i) {{call_target_name = "ApproxTopK", called_computations = [@gt], mhlo.backend_config = {{{config}}}}} : (tensor<200xf32>, tensor<200xi32>, tensor<f32>, tensor<i32>) -> (tensor<3xf32>, tensor<3xi32>)
  return %0#0 : tensor<3xf32>
}}
func.func private @gt(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>) -> tensor<i1> {{
  %0 = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
  return %0 : tensor<i1>
}}"#
        );
        import(&text::parse(&source).unwrap()).unwrap_err().message
    };
    let rest = "aggregate_to_topk = true, reduction_dim = 0 : i64, reduction_input_size_override = -1 : i64";
    let message = call(&format!("{rest}, top_k = 3 : i64, recall_target = 1.5 : f32"));
    assert!(message.contains("a float above 0 and up to 1 as `recall_target`"), "{message}");
    let message = call(&format!("{rest}, recall_target = 0.5 : f32"));
    assert!(message.contains("needs an integer as `top_k`"), "{message}");
    let message = call(&format!("{rest}, top_k = 0 : i64, recall_target = 0.5 : f32"));
    assert!(message.contains("for fewer than one"), "{message}");
}

/// StableHLO has no transfers without a channel, and none whose state is handed on.
#[test]
fn transfers_that_stablehlo_does_not_have_are_named() {
    let message = |channel: &str, done: &str| {
        let text = format!(
            "HloModule m
ENTRY e {{
  x = f32[4] parameter(0)
  t = token[] after-all()
  s = (f32[4], u32[], token[]) send(x, t), {channel}is_host_transfer=true
  {done}, {channel}is_host_transfer=true
  ROOT r = f32[4] negate(x)
}}"
        );
        let module = tilewright_text::parse_and_verify(&text).unwrap();
        export(&module).map(|_| ()).map_err(|error| (error.kind, error.message))
    };
    let done = "d = token[] send-done(s)";
    assert_eq!(message("channel_id=1, ", done), Ok(()));
    let why = "StableHLO's transfers need a channel; give it a channel_id";
    assert_eq!(message("", done), Err((ExportErrorKind::Unsupported, why.into())));
    let handed_on = "p = ((f32[4], u32[], token[])) tuple(s)
  g = (f32[4], u32[], token[]) get-tuple-element(p), index=0
  d = token[] send-done(g)";
    let why = "StableHLO has a start and its done as one op; let the done take its start itself";
    assert_eq!(
        message("channel_id=1, ", handed_on),
        Err((ExportErrorKind::Unsupported, why.into()))
    );
}
