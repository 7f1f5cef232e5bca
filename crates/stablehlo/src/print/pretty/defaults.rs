//! Attributes that MLIR leaves out of a pretty form, since they say what holds without them.

use crate::mlir::{Attribute, DialectAttribute, value_of};

/// Checks whether an attribute of an operation is left out.
pub(super) fn is_default(operation: &str, name: &str, value: &Attribute) -> bool {
    match (operation, name, value) {
        (_, "result_accuracy", Attribute::Dialect(accuracy)) => {
            operation.starts_with("stablehlo.") && is_default_accuracy(accuracy)
        }
        (
            "stablehlo.custom_call" | "mhlo.custom_call",
            "called_computations" | "output_operand_aliases",
            Attribute::Array(items),
        ) => items.is_empty(),
        ("stablehlo.custom_call" | "mhlo.custom_call", "has_side_effect", value) => {
            *value == Attribute::Bool(false)
        }
        (
            "stablehlo.custom_call" | "mhlo.custom_call",
            "api_version",
            Attribute::Integer(value, _),
        ) => *value == 1,
        ("chlo.top_k" | "mhlo.topk", "is_stable" | "largest", value) => {
            *value == Attribute::Bool(true)
        }
        ("stablehlo.cholesky", "lower", value) => *value == Attribute::Bool(false),
        ("stablehlo.composite", "version", Attribute::Integer(value, _)) => *value == 0,
        ("stablehlo.composite", "composite_attributes", Attribute::Dictionary(entries)) => {
            entries.is_empty()
        }
        _ => false,
    }
}

fn is_default_accuracy(accuracy: &DialectAttribute) -> bool {
    let [(name, Attribute::Dialect(mode))] = accuracy.parameters.as_slice() else { return false };
    let word = value_of(&mode.parameters, "value");
    name == "mode" && matches!(word, Some(Attribute::String(word)) if **word == *b"DEFAULT")
}
