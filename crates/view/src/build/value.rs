//! How readers show a value: by an edge from a node, or as a line of their own.

use tilewright::ir::{InstId, Module, Opcode, Shape};

use crate::words;

/// The most parts of parts in a label.
const LONGEST_PATH: usize = 40;

/// How readers show a value.
#[derive(Clone, Debug)]
pub(super) struct Value {
    /// The node that it comes from; `None` if it is a line in its readers.
    pub(super) node: Option<usize>,
    /// The name of the line, or the label of the edge: the part of a tuple.
    pub(super) name: String,
    /// The shape in the line.
    pub(super) shape: String,
}

impl Value {
    pub(super) fn of_node(node: usize) -> Self {
        Self { node: Some(node), name: String::new(), shape: String::new() }
    }

    /// A parameter without a node.
    pub(super) fn parameter(module: &Module, id: InstId) -> Self {
        let (name, shape) = (module.name_of(id).to_owned(), words::shape(module.shape(id)));
        Self { node: None, name, shape }
    }

    /// A constant without a node. A scalar is shown without its shape.
    pub(super) fn constant(module: &Module, id: InstId) -> Self {
        let is_scalar = module.array_shape(id).is_some_and(|shape| shape.rank() == 0);
        let shape = if is_scalar { String::new() } else { words::shape(module.shape(id)) };
        Self { node: None, name: words::constant(module, id), shape }
    }

    /// A scalar as the array that it is broadcast to.
    pub(super) fn repeated(&self) -> Self {
        Self { shape: "everywhere".to_owned(), ..self.clone() }
    }

    /// An element of a tuple.
    pub(super) fn part(&self, index: i64, shape: &Shape) -> Self {
        let name = words::cut_at(&format!("{}[{index}]", self.name), LONGEST_PATH);
        Self { node: self.node, name, shape: words::shape(shape) }
    }
}

/// Returns what an operand is for, if its place matters.
pub(super) fn role(module: &Module, id: InstId, operand: usize) -> String {
    let opcode = module.opcode(id);
    let count = module.operands(id).len();
    let name = match (opcode, operand) {
        (Opcode::Reduce | Opcode::ReduceWindow, _) if operand >= count / 2 => "init",
        (Opcode::Pad, 1) => "padding",
        (Opcode::Clamp, 0) => "least",
        (Opcode::Clamp, 2) => "most",
        (Opcode::Select, 0) => "if",
        (Opcode::Select, 1) => "then",
        (Opcode::Select, 2) => "else",
        (Opcode::DynamicSlice, 1..) | (Opcode::DynamicUpdateSlice, 2..) => "start",
        (Opcode::Tuple, _) => return format!("[{operand}] "),
        _ if count < 2 || opcode.is_commutative() => "",
        _ => return format!("operand {operand}: "),
    };
    if name.is_empty() { String::new() } else { format!("{name} ") }
}
