//! Ops of MHLO and CHLO in custom calls and composites.

use tilewright_ir::Opcode;
use tilewright_stablehlo::import;
use tilewright_stablehlo::text::parse;

/// PyTorch writes the error function so; jaxlib makes `erf` of it.
#[test]
fn ops_in_custom_calls_are_ops() {
    let text = |version: &str| {
        format!(
            "func.func @main(%arg0: tensor<2xf32>) -> tensor<2xf32> {{
               %0 = stablehlo.custom_call @mhlo.erf(%arg0) {{mhlo.attributes = {{}}{version}}}
                 : (tensor<2xf32>) -> tensor<2xf32>
               return %0 : tensor<2xf32>
             }}"
        )
    };
    let root = |version: &str| {
        let module = import(&parse(&text(version)).unwrap()).unwrap();
        module.opcode(module.computation(module.entry().unwrap()).root().unwrap())
    };
    assert_eq!(root(", mhlo.version = 1 : i64"), Opcode::Erf);
    assert_eq!(root(""), Opcode::CustomCall);
}
