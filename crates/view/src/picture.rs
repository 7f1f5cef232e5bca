//! What is drawn: nodes, edges between them, and boxes around them.

use serde::Serialize;

/// The most notes that a mark names.
const MOST_NOTES: usize = 4;

/// The name in [`Node::details`] of what an op that moves or renames elements does.
pub(crate) const WHAT_IT_DOES: &str = "what it does";

/// The drawing of one module.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Picture {
    /// Boxes, each after the box around it.
    pub boxes: Vec<Frame>,
    /// Nodes. Within a computation, operands stand before their users.
    pub nodes: Vec<Node>,
    /// Edges from values to their readers, in the order of the readers.
    pub edges: Vec<Edge>,
    /// The nodes that stand for instructions without a node of their own: a constant is drawn in
    /// its reader. Pairs of an instruction's name and the index of a node, in order of the module.
    pub stands_for: Vec<(String, usize)>,
}

/// A box around nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// The heading.
    pub title: String,
    /// The kind.
    pub kind: FrameKind,
    /// The index of the box around it.
    pub parent: Option<usize>,
    /// The node of the instruction that calls the computation in the box.
    pub owner: Option<usize>,
}

/// The kind of a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FrameKind {
    /// The entry computation, or the one computation that is drawn.
    Entry,
    /// A computation that several instructions call.
    Shared,
    /// An instruction with the computations that it alone calls.
    Call,
    /// One of several computations of an instruction, such as the body of a loop.
    Role,
    /// Instructions of one scope of the framework's program.
    Scope,
    /// A part of a long list of instructions.
    Part,
}

/// A node: an instruction.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The instruction's name.
    pub name: String,
    /// The name of the computation that contains it.
    pub computation: String,
    /// The name of its op.
    pub op: &'static str,
    /// The index of the innermost box that contains it.
    pub frame: usize,
    /// The kind, which decides how it is drawn.
    pub kind: NodeKind,
    /// The op with its most important attributes: `reduce add {1,2}`.
    pub title: String,
    /// The shape of the result.
    pub shape: String,
    /// Operands that are drawn as a line in the node: parameters, constants, carried values.
    pub inlined: Vec<String>,
    /// Whether it is the result of its computation.
    pub is_result: bool,
    /// The memory of the result.
    pub memory: Memory,
    /// Number of large arrays that it reads from memory.
    pub large_reads: usize,
    /// The cost or time, if the picture shows any.
    pub weight: Option<Weight>,
    /// The origin in the framework's program.
    pub origin: Origin,
    /// The instruction as it stands in HLO text.
    pub text: String,
    /// Other facts, as pairs of a name and a text.
    pub details: Vec<(&'static str, String)>,
    /// The indices of boxes elsewhere with computations that it calls.
    pub calls: Vec<usize>,
    /// The change by an optimisation.
    pub change: Change,
    /// The indices of the notes that explain the change, in [`crate::Scene::notes`].
    pub notes: Vec<usize>,
    /// Number of operands and users that are left out of the picture.
    pub hidden: [usize; 2],
}

impl Node {
    /// The lines of text in the node after its title, apart from marks.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.shape.as_str()).chain(self.inlined.iter().map(String::as_str))
    }

    /// The text that a viewer shows beside the node: the instruction, its effect in words, and the framework's name.
    pub fn tooltip(&self) -> String {
        let effect = self.details.iter().find(|(name, _)| *name == WHAT_IT_DOES);
        let lines = [Some(&self.text), effect.map(|(_, text)| text), Some(&self.origin.op_name)];
        let lines: Vec<&str> = lines.into_iter().flatten().map(String::as_str).collect();
        lines.join("\n").trim_end().to_owned()
    }

    /// The marks: words for what is also drawn as colour or pattern.
    pub fn marks(&self) -> Vec<String> {
        let mut marks = Vec::new();
        marks.extend(self.change.word().map(|word| {
            let few = self.notes.iter().take(MOST_NOTES);
            let mut notes: Vec<String> = few.map(|note| (note + 1).to_string()).collect();
            notes.extend((self.notes.len() > MOST_NOTES).then(|| "…".to_owned()));
            if notes.is_empty() {
                word.to_owned()
            } else {
                format!("{word}, note {}", notes.join(" "))
            }
        }));
        if let NodeKind::Moves | NodeKind::Exchanges = self.kind {
            marks.push(
                if self.kind == NodeKind::Moves { "moves data" } else { "between devices" }.into(),
            );
        }
        marks.extend(self.memory.padding_mark());
        match self.large_reads {
            0 => {}
            1 => marks.push("reads a large array".into()),
            n => marks.push(format!("reads {n} large arrays")),
        }
        let weight = self.weight.as_ref().filter(|weight| weight.share >= 0.001);
        marks.extend(weight.map(|weight| weight.text.clone()));
        if self.hidden != [0, 0] {
            marks.push(format!("not drawn: {} operands, {} users", self.hidden[0], self.hidden[1]));
        }
        marks
    }
}

/// The kind of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NodeKind {
    /// A parameter.
    Input,
    /// A constant.
    Constant,
    /// Elements are computed one by one.
    Elementwise,
    /// A dot or convolution.
    Contraction,
    /// A reduction, scan, sort or window.
    Reduction,
    /// Elements are moved in memory.
    Moves,
    /// Elements are moved between devices, or in and out of the module.
    Exchanges,
    /// A value by another name, or one that is computed where it is read.
    Free,
    /// Calls, loops, branches and tuples.
    Control,
    /// Anything else.
    Other,
}

/// The memory of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Memory {
    /// Bytes of the elements.
    pub bytes: u64,
    /// Bytes on the target, padding included.
    pub padded_bytes: u64,
    /// Whether it is padded so much, and so large, that it is marked.
    pub is_padded: bool,
    /// Whether it is a large array that lies in memory.
    pub is_large: bool,
    /// Whether it lies in memory at all.
    pub is_stored: bool,
}

impl Memory {
    /// The padded memory as a multiple of the elements' own.
    #[expect(clippy::cast_precision_loss, reason = "a ratio to show")]
    pub fn padding(&self) -> f64 {
        if self.bytes == 0 { 1.0 } else { self.padded_bytes as f64 / self.bytes as f64 }
    }

    /// Says how much is padded, if it is marked.
    pub fn padding_mark(&self) -> Option<String> {
        let size = tilewright::report::bytes(self.padded_bytes);
        self.is_padded.then(|| format!("padded {:.1} times to {size}", self.padding()))
    }
}

/// The cost or time of an instruction.
#[derive(Clone, Debug, PartialEq)]
pub struct Weight {
    /// The cost in words.
    pub text: String,
    /// The fraction of the whole, from 0 to 1.
    pub share: f64,
}

/// The origin of an instruction in the framework's program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The framework's name, for example `jit(f)/jit(main)/add`; empty if unknown.
    pub op_name: String,
    /// The source file; empty if unknown.
    pub file: String,
    /// The line, from 1; 0 if unknown.
    pub line: i64,
}

/// The change of an instruction by an optimisation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// The same before and after.
    #[default]
    None,
    /// Only before.
    Removed,
    /// Only after.
    Added,
    /// The same name, with another op, shape or operand.
    Edited,
}

impl Change {
    /// Says what happened; `None` if nothing did.
    pub fn word(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Removed => Some("removed"),
            Self::Added => Some("new"),
            Self::Edited => Some("edited"),
        }
    }
}

/// An edge from a value to a reader.
#[derive(Clone, Debug, PartialEq)]
pub struct Edge {
    /// The index of the node with the value.
    pub from: usize,
    /// The index of the reader.
    pub to: usize,
    /// The kind.
    pub kind: EdgeKind,
    /// The part of a tuple, or the role of a computation's result; empty for a whole value.
    pub label: String,
    /// The size of the value in bytes, without padding.
    pub bytes: u64,
    /// Whether it is a large array that lies in memory.
    pub is_large: bool,
}

impl Edge {
    /// The width of the line, from 1 (up to 1 KiB) to 6 (1 GiB and more).
    pub fn width(&self) -> f64 {
        let powers = self.bytes.max(1).ilog2().clamp(10, 30) - 10;
        1.0 + f64::from(powers) / 4.0
    }

    /// The label, with the size of a large array.
    pub fn text(&self) -> String {
        let size = self.is_large.then(|| tilewright::report::bytes(self.bytes));
        let parts = [Some(self.label.clone()).filter(|label| !label.is_empty()), size];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }
}

/// The kind of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EdgeKind {
    /// A value and its reader.
    Data,
    /// The result of a computation and the instruction that called it.
    Result,
    /// An order without a value.
    Order,
}
