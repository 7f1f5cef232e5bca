//! Checks the types of functions and of values that registers are set to.

use tilewright_ir::element::NumberClass;
use tilewright_ir::{ElementType, Module, Op, Shape, infer_shape};

use crate::kernel::{Function, FunctionStep, Kernel, RegisterId, Value};

/// Returns the flaws of the kernel's functions.
pub(super) fn functions(kernel: &Kernel) -> Vec<String> {
    kernel.functions.iter().flat_map(function).collect()
}

fn function(function: &Function) -> Vec<String> {
    let name = &function.name;
    let mut flaws = Vec::new();
    if function.values.len() != function.parameters.saturating_add(function.steps.len()) {
        flaws.push(format!("`{name}` has other values than its parameters and steps"));
        return flaws;
    }
    for (place, step) in function.steps.iter().enumerate() {
        let place = place + function.parameters;
        let value = &function.values[place];
        let found = match step {
            FunctionStep::Constant(literal) => {
                literal.as_array().map(tilewright_ir::ArrayLiteral::element_type)
            }
            FunctionStep::Apply(op, operands) => {
                let known = operands.iter().filter(|&&operand| operand < place);
                let types: Vec<ElementType> =
                    known.map(|&operand| function.values[operand].element_type).collect();
                if types.len() == operands.len() {
                    result(op, &types, value.element_type)
                } else {
                    None
                }
            }
        };
        if found != Some(value.element_type) {
            flaws.push(format!(
                "`{}` of `{name}` is not {}",
                value.name,
                value.element_type.name()
            ));
        }
    }
    if function.results.iter().any(|&result| result >= function.values.len()) {
        flaws.push(format!("`{name}` returns what it does not compute"));
    }
    flaws
}

/// Returns the result type of an elementwise op. If the op allows any type (`convert`), the
/// wanted type.
fn result(op: &Op, operands: &[ElementType], wanted: ElementType) -> Option<ElementType> {
    if !op.opcode().is_elementwise() {
        return None;
    }
    let operands: Vec<Shape> = operands.iter().map(|&operand| Shape::scalar(operand)).collect();
    let operands: Vec<&Shape> = operands.iter().collect();
    // Elementwise ops call no computations, so an empty module is enough.
    let shape = infer_shape(&Module::new(""), op, &operands, Some(&Shape::scalar(wanted))).ok()?;
    shape.as_array().map(|array| array.element_type)
}

/// Returns the flaws of a value that registers are set to.
pub(super) fn value(kernel: &Kernel, registers: &[RegisterId], value: &Value) -> Vec<String> {
    let set: Option<Vec<_>> = registers.iter().map(|&id| kernel.register(id)).collect();
    let operands: Option<Vec<_>> = value.operands().map(|id| kernel.register(id)).collect();
    let (Some(set), Some(operands)) = (set, operands) else {
        return vec!["it names a register that does not exist".to_owned()];
    };
    let mut flaws = Vec::new();
    let lens = set.iter().chain(&operands).map(|register| register.len);
    let is_part = matches!(value, Value::Part { .. });
    if !is_part && lens.collect::<std::collections::BTreeSet<u64>>().len() > 1 {
        flaws.push("its registers hold different numbers of elements".to_owned());
    }
    let wanted: Vec<ElementType> = set.iter().map(|register| register.element_type).collect();
    let given: Vec<ElementType> = operands.iter().map(|register| register.element_type).collect();
    let one = |found: Option<ElementType>| matches!(wanted[..], [only] if found == Some(only));
    let agree = match value {
        Value::Load { otherwise, .. } | Value::Gather { otherwise, .. } => {
            let literal = otherwise.as_ref().map(|literal| literal.as_array());
            let element = literal.map(|array| array.map(tilewright_ir::ArrayLiteral::element_type));
            wanted.len() == 1 && element.is_none_or(one)
        }
        Value::Scalar(place) => one(kernel.buffer(place.buffer).map(|buffer| buffer.element_type)),
        Value::Splat(literal) => {
            one(literal.as_array().map(tilewright_ir::ArrayLiteral::element_type))
        }
        Value::Positions(_) => matches!(
            wanted[..],
            [only] if matches!(only.class(), NumberClass::Signed | NumberClass::Unsigned)
        ),
        Value::Apply(op, _) => {
            wanted.first().is_some_and(|&wanted| one(result(op, &given, wanted)))
        }
        Value::Call(id, _) => kernel.function(*id).is_some_and(|function| {
            function.parameter_types().eq(given.iter().copied())
                && function.result_types().eq(wanted.iter().copied())
        }),
        Value::Fold { by, .. } => kernel
            .function(*by)
            .is_some_and(|function| given == wanted && is_combination(function, &given)),
        Value::Under(_) => one(Some(ElementType::Pred)),
        Value::Spread { .. } | Value::Part { .. } => given == wanted && wanted.len() == 1,
    };
    if !agree {
        flaws.push("the types of its registers do not agree with what they are set to".to_owned());
    }
    flaws
}

/// Checks whether a function takes accumulators of these types, then as many elements, and
/// returns accumulators.
fn is_combination(function: &Function, types: &[ElementType]) -> bool {
    function.parameter_types().eq(types.iter().chain(types).copied())
        && function.result_types().eq(types.iter().copied())
}
