//! Tests of the reader of MLIR's text.
mod errors;
mod fixtures;
mod hostile;
mod printed;
mod values;

use tilewright_stablehlo::mlir::{Attribute, Operation, Program};
use tilewright_stablehlo::text::parse;

/// Reads a text that is MLIR.
fn read(text: &str) -> Program {
    parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Returns the operations of a module.
fn operations(program: &Program) -> &[Operation] {
    &program.module.regions[0].blocks[0].operations
}

/// Reads one attribute.
fn attribute(text: &str) -> Attribute {
    let program = read(&format!("\"a.b\"() {{x = {text}}} : () -> ()"));
    operations(&program)[0].attribute("x").expect("the attribute").clone()
}
