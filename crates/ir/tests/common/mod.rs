//! Helpers for several tests: shapes from their text, short forms of modules.
#![allow(dead_code, reason = "each test uses a part of it")]
use tilewright_ir::ops::attr::{AttrValue, AttrValues};
use tilewright_ir::ops::elementwise::{CompareAttrs, Direction};
use tilewright_ir::ops::shaping::{BroadcastAttrs, ParameterAttrs, ReshapeAttrs};
use tilewright_ir::types::shape::UNBOUNDED;
use tilewright_ir::{
    ArrayShape, CompId, Dims, ElementType, InstId, Literal, Module, Op, Opcode, Position, Shape,
};

/// Returns the shape that this text stands for: `f32[2,<=3,?]`, `(f32[2], s32[])`, `token[]`,
/// `opaque[]`. No layouts.
#[track_caller]
pub(crate) fn shape(text: &str) -> Shape {
    let mut rest = text;
    let shape = read_shape(&mut rest);
    assert_eq!(rest, "", "the end of `{text}`");
    shape
}

fn read_shape(rest: &mut &str) -> Shape {
    *rest = rest.trim_start();
    if let Some(inner) = rest.strip_prefix('(') {
        *rest = inner;
        let mut elements = Vec::new();
        loop {
            if let Some(after) = rest.strip_prefix(')') {
                *rest = after;
                return Shape::Tuple(elements);
            }
            elements.push(read_shape(rest));
            *rest = rest.strip_prefix(", ").unwrap_or(rest);
        }
    }
    let (name, after) = rest.split_once('[').expect("a `[`");
    let (dims, after) = after.split_once(']').expect("a `]`");
    *rest = after;
    match name {
        "token" => return Shape::Token,
        "opaque" => return Shape::Opaque,
        _ => {}
    }
    let dims: Vec<&str> = dims.split(',').filter(|d| !d.is_empty()).collect();
    let dynamic: Vec<bool> = dims.iter().map(|d| d.starts_with("<=") || *d == "?").collect();
    let size = |dim: &&str| match *dim {
        "?" => UNBOUNDED,
        dim => dim.trim_start_matches("<=").parse().expect("a size"),
    };
    let element_type = ElementType::from_name(name).expect("an element type");
    ArrayShape::new(element_type, dims.iter().map(size)).with_dynamic(&dynamic).into()
}

/// Returns a parameter op.
pub(crate) fn parameter(number: i64) -> Op {
    Op::Parameter(Box::new(ParameterAttrs { number }))
}

/// Returns a reshape op.
pub(crate) fn reshape() -> Op {
    Op::Reshape(Box::new(ReshapeAttrs { inferred_dimension: None }))
}

/// Returns a broadcast op.
pub(crate) fn broadcast(dimensions: &[i64]) -> Op {
    Op::Broadcast(Box::new(BroadcastAttrs { dimensions: dimensions.into() }))
}

/// Returns a comparison op.
pub(crate) fn compare(direction: Direction) -> Op {
    Op::Compare(Box::new(CompareAttrs { direction, order: None }))
}

/// Returns a custom call, which may have any operands and any shape.
pub(crate) fn custom_call() -> Op {
    let mut values = AttrValues::default();
    values.insert("custom_call_target", AttrValue::Str("opaque".into()));
    Op::from_attrs(Opcode::CustomCall, &mut values).unwrap()
}

/// Returns a scalar constant.
pub(crate) fn constant_f32(value: f32) -> Op {
    Op::Constant(Box::new(Literal::scalar(ElementType::F32, value).unwrap()))
}

/// Returns the op of an opcode without attributes.
pub(crate) fn plain(opcode: Opcode) -> Op {
    Op::from_attrs(opcode, &mut Default::default()).expect("an op without attributes")
}

/// Adds a computation with these parameters, whose root is opaque.
pub(crate) fn callee(module: &mut Module, name: &str, parameters: &[&str], result: &str) -> CompId {
    let id = module.add_computation(name);
    for (number, text) in parameters.iter().enumerate() {
        let op = parameter(i64::try_from(number).unwrap());
        add(module, id, op, text, &[], &format!("p{number}"));
    }
    add(module, id, custom_call(), result, &[], "result");
    id
}

/// Appends an instruction.
#[track_caller]
pub(crate) fn add(
    module: &mut Module,
    computation: CompId,
    op: Op,
    text: &str,
    operands: &[InstId],
    name: &str,
) -> InstId {
    module.insert(Position::End(computation), op, shape(text), operands, name).unwrap()
}

/// `x, y: f32[4]`, `sum = x + y`, `twice = sum + sum`, `root = twice * x`, in
/// an entry `main`.
pub(crate) struct Small {
    pub(crate) module: Module,
    pub(crate) main: CompId,
    pub(crate) x: InstId,
    pub(crate) y: InstId,
    pub(crate) sum: InstId,
    pub(crate) twice: InstId,
    pub(crate) root: InstId,
}

pub(crate) fn small() -> Small {
    let mut module = Module::new("small");
    let main = module.add_computation("main");
    module.set_entry(main);
    let x = add(&mut module, main, parameter(0), "f32[4]", &[], "x");
    let y = add(&mut module, main, parameter(1), "f32[4]", &[], "y");
    let sum = add(&mut module, main, Op::Add, "f32[4]", &[x, y], "sum");
    let twice = add(&mut module, main, Op::Add, "f32[4]", &[sum, sum], "twice");
    let root = add(&mut module, main, Op::Multiply, "f32[4]", &[twice, x], "root");
    Small { module, main, x, y, sum, twice, root }
}

/// Returns the names of a computation's instructions, in order.
pub(crate) fn names(module: &Module, computation: CompId) -> Vec<String> {
    module.instructions(computation).map(|id| module.name_of(id).to_owned()).collect()
}

/// Returns every use of a value as `user.operand`.
pub(crate) fn uses(module: &Module, id: InstId) -> Vec<String> {
    module.uses(id).map(|u| format!("{}.{}", module.name_of(u.user), u.operand)).collect()
}

/// Returns all there is to see of a module's graph: computations, instructions in order with
/// op, shape, operands, use lists and control edges.
pub(crate) fn picture(module: &Module) -> String {
    let mut lines = vec![format!("{} entry {:?}", module.name, module.entry())];
    for &computation in module.computations() {
        let c = module.computation(computation);
        lines.push(format!("{} root {:?} of {}", c.name(), c.root(), c.len()));
        lines.push(format!("parameters {:?}", c.parameters()));
        for id in module.instructions(computation) {
            let mut used = uses(module, id);
            used.sort();
            let extras = module.extras(id);
            lines.push(format!(
                "{id:?} {} = {} {:?} {:?} used {used:?} after {:?} before {:?} {:?}",
                module.name_of(id),
                module.shape(id),
                module.op(id),
                module.operands(id),
                extras.map_or(&[][..], |e| &e.control_predecessors),
                extras.map_or(&[][..], |e| e.control_successors()),
                module.metadata(id),
            ));
        }
        let mut backwards: Vec<InstId> = module.instructions(computation).rev().collect();
        backwards.reverse();
        lines.push(format!("backwards {backwards:?}"));
    }
    lines.join("\n")
}

/// Dims.
pub(crate) fn dims(sizes: &[i64]) -> Dims {
    sizes.into()
}
