//! Draws a module: instructions become nodes, operands edges, called computations boxes.
//!
//! Constants, parameters that are not large, and values that a loop carries are drawn as a line in
//! their readers. A `get-tuple-element` is a label of the edge from the tuple. The parameters of a
//! fusion or call stand for the operands of the instruction that calls it, so that edges lead to the
//! readers within.

mod kind;
mod plan;
mod value;
mod weigh;

use std::collections::{HashMap, HashSet};

use tilewright::ir::{CompId, InstId, Module, Op, Opcode, SecondaryMap};
use tilewright::text::{print_attribute, print_instruction, print_sharding};
use tilewright::{CostModel, Ledger, Residency};

use crate::error::ViewError;
use crate::picture::{
    Change, Edge, EdgeKind, Frame, FrameKind, Memory, Node, NodeKind, Origin, Picture,
    WHAT_IT_DOES, Weight,
};
use crate::scene::Weights;
use crate::words;
use plan::{BoxPlan, Callee};
use value::Value;

/// The most operands that are lines in a node.
const MOST_LINES: usize = 12;

/// Draws a computation of a module with all that it calls.
pub(crate) fn draw(
    module: &Module,
    root: CompId,
    model: CostModel<'_>,
    weights: &Weights,
) -> Result<Picture, ViewError> {
    let ledger = Ledger::of(module, model);
    let plan = BoxPlan::new(module, root);
    let weights = weigh::Weights::new(module, model, &ledger, weights)?;
    if !weights.is_of(module) {
        return Err(ViewError::OtherProfile(module.instruction_count()));
    }
    let mut drawing = Drawing {
        module,
        model,
        weights,
        ledger,
        plan,
        picture: Picture::default(),
        values: SecondaryMap::default(),
        node_of: SecondaryMap::default(),
        frame_of: HashMap::new(),
        last_reader: None,
        drawn: HashSet::new(),
    };
    drawing.values.fill(module.instruction_bound());
    drawing.node_of.fill(module.instruction_bound());
    drawing.run();
    Ok(drawing.picture)
}

/// Computes the fully qualified name and source line of an instruction.
pub(crate) fn origin(module: &Module, id: InstId) -> Origin {
    let Some(metadata) = module.metadata(id) else { return Origin::default() };
    let tables = module.header.stack_tables.as_ref();
    let (file, line) = match tables.and_then(|tables| tables.source_of(metadata.stack_frame_id)) {
        Some((file, line)) => (file, line),
        None => (metadata.source_file.as_str(), metadata.source_line),
    };
    Origin { op_name: metadata.op_name.to_string(), file: file.to_owned(), line }
}

struct Drawing<'m> {
    module: &'m Module,
    model: CostModel<'m>,
    ledger: Ledger<'m>,
    weights: weigh::Weights,
    plan: BoxPlan,
    picture: Picture,
    /// How the readers of each instruction show its value.
    values: SecondaryMap<InstId, Option<Value>>,
    node_of: SecondaryMap<InstId, Option<usize>>,
    /// The box of each computation. Only looked up, so the order of the map is not observable.
    frame_of: HashMap<CompId, usize>,
    /// The node that the last edge leads to, and the edges that lead there.
    last_reader: Option<usize>,
    drawn: HashSet<(usize, EdgeKind, String)>,
}

impl Drawing<'_> {
    fn run(&mut self) {
        let order = self.plan.order().to_vec();
        for &computation in &order {
            self.computation(computation);
        }
        for &computation in &order {
            for id in self.module.instructions(computation) {
                self.edges(id);
            }
        }
        for &computation in &order {
            for id in self.module.instructions(computation) {
                self.stand_in(id);
            }
        }
        self.shorten();
    }

    /// Makes the nodes of a computation. Those of its callers are there.
    fn computation(&mut self, computation: CompId) {
        let frame = self.frame(computation);
        let root = self.module.computation(computation).root();
        for id in self.module.instructions(computation) {
            let value = self.value(computation, id).filter(|_| root != Some(id));
            match value {
                Some(value) => self.values.set(id, Some(value)),
                None => self.node(id, frame, root == Some(id)),
            }
        }
    }

    /// Returns the box of a computation, and makes it unless it is there.
    fn frame(&mut self, computation: CompId) -> usize {
        if let Some(&frame) = self.frame_of.get(&computation) {
            return frame;
        }
        let kind = if self.picture.boxes.is_empty() { FrameKind::Entry } else { FrameKind::Shared };
        let title = self.module.computation(computation).name().to_owned();
        self.push_frame(computation, Frame { title, kind, parent: None, owner: None })
    }

    fn push_frame(&mut self, computation: CompId, frame: Frame) -> usize {
        let index = self.picture.boxes.len();
        self.picture.boxes.push(frame);
        self.frame_of.insert(computation, index);
        index
    }

    fn node(&mut self, id: InstId, frame: usize, is_result: bool) {
        let index = self.picture.nodes.len();
        let frame = self.call_frames(id, frame, index);
        let node = self.described(id, frame, is_result);
        self.picture.nodes.push(node);
        self.node_of.set(id, Some(index));
        self.values.set(id, Some(Value::of_node(index)));
    }

    /// Makes the boxes of the computations that an instruction alone calls, and returns the box
    /// that the instruction belongs into.
    fn call_frames(&mut self, id: InstId, frame: usize, owner: usize) -> usize {
        let callees = self.plan.nested(id).to_vec();
        let name = self.module.name_of(id);
        let title = format!("{} {name}", self.module.opcode(id));
        let call = Frame { title, kind: FrameKind::Call, parent: Some(frame), owner: Some(owner) };
        match callees.as_slice() {
            [] => frame,
            [only] => self.push_frame(only.computation, call),
            several => {
                let around = self.picture.boxes.len();
                self.picture.boxes.push(call);
                for Callee { computation, role } in several {
                    let name = self.module.computation(*computation).name();
                    let title = format!("{role}: {name}");
                    let parent = Some(around);
                    let frame = Frame { title, kind: FrameKind::Role, parent, owner: Some(owner) };
                    self.push_frame(*computation, frame);
                }
                around
            }
        }
    }

    fn described(&self, id: InstId, frame: usize, is_result: bool) -> Node {
        let module = self.module;
        let memory = self.memory(id);
        let weight = self.weights.of(module, id);
        let residency = self.ledger.residency(id);
        let kind = kind::of(module, id, self.model.target, residency, memory.is_stored);
        Node {
            name: module.name_of(id).to_owned(),
            computation: module
                .instruction(id)
                .parent()
                .map_or_else(String::new, |parent| module.computation(parent).name().to_owned()),
            op: module.opcode(id).name(),
            frame,
            kind,
            title: match kind {
                NodeKind::Input => "parameter".to_owned(),
                NodeKind::Constant => format!("constant {}", words::constant(module, id)),
                _ => words::title(module, id),
            },
            shape: words::shape(module.shape(id)),
            inlined: Vec::new(),
            is_result,
            memory,
            large_reads: 0,
            origin: origin(module, id),
            text: print_instruction(module, id),
            details: details(module, id, weight.as_ref()),
            weight,
            calls: Vec::new(),
            change: Change::None,
            notes: Vec::new(),
            hidden: [0, 0],
        }
    }

    fn memory(&self, id: InstId) -> Memory {
        let shape = self.module.shape(id);
        let footprint = self.model.footprint(shape);
        let is_stored = match self.ledger.residency(id) {
            Residency::Inlined => kind::is_stored_for_a_user(self.module, id, self.model.target),
            Residency::Alias | Residency::Stored => true,
        };
        let is_array = shape.as_array().is_some();
        Memory {
            bytes: footprint.bytes,
            padded_bytes: footprint.padded_bytes,
            // Small arrays are all padded to a tile, which says nothing.
            is_padded: is_array
                && is_stored
                && footprint.padding() >= 1.5
                && footprint.padded_bytes > self.model.target.vector_bytes().saturating_mul(16),
            is_large: is_array && is_stored && footprint.padded_bytes > self.model.on_chip_bytes(),
            is_stored,
        }
    }

    /// Makes the edges to an instruction from its operands, and lines for those without a node.
    fn edges(&mut self, id: InstId) {
        let Some(to) = self.node_of[id] else { return };
        for (number, operand) in self.module.operands(id).to_vec().into_iter().enumerate() {
            // If it is handed in, the readers within have the edge.
            if !self.plan.is_handed_in(self.module, id, number) {
                self.edge(id, operand, to, number);
            }
        }
        // A parameter with a node has an edge from what it stands for.
        if let Some(operand) = self.plan.operand_of(self.module, id) {
            self.edge(id, operand, to, 0);
        }
        self.edges_of_computations(id, to);
        let before = self.module.extras(id).map(|extras| extras.control_predecessors.clone());
        for before in before.into_iter().flatten() {
            let Some(from) = self.node_of[before] else { continue };
            let label = String::new();
            let kind = EdgeKind::Order;
            self.push(Edge { from, to, kind, label, bytes: 0, is_large: false });
        }
    }

    /// The edges from the results of the computations in an instruction's box.
    fn edges_of_computations(&mut self, id: InstId, to: usize) {
        for Callee { computation, role } in self.plan.nested(id).to_vec() {
            let root = self.module.computation(computation).root();
            if let Some(from) = root.and_then(|root| self.node_of[root]) {
                let label = if self.plan.nested(id).len() > 1 { role } else { String::new() };
                let bytes = self.picture.nodes[from].memory.bytes;
                self.push(Edge { from, to, kind: EdgeKind::Result, label, bytes, is_large: false });
            }
        }
        for computation in self.plan.elsewhere(id).to_vec() {
            let frame = self.frame_of.get(&computation).copied();
            self.picture.nodes[to].calls.extend(frame);
        }
    }

    fn edge(&mut self, reader: InstId, operand: InstId, to: usize, number: usize) {
        let memory = self.memory(operand);
        match self.values[operand].clone() {
            Some(Value { node: Some(from), name: label, .. }) => {
                let (bytes, is_large) = (memory.bytes, memory.is_large);
                self.picture.nodes[to].large_reads += usize::from(is_large);
                self.push(Edge { from, to, kind: EdgeKind::Data, label, bytes, is_large });
            }
            Some(Value { node: None, name, shape }) => {
                let role = value::role(self.module, reader, number);
                let line = words::cut(&format!("{role}{name} {shape}"));
                self.picture.nodes[to].large_reads += usize::from(memory.is_large);
                self.picture.nodes[to].inlined.push(line.trim_end().to_owned());
            }
            None => {}
        }
    }

    /// Adds an edge, unless it is there. All edges to a reader are added before those to the next.
    fn push(&mut self, edge: Edge) {
        if self.last_reader != Some(edge.to) {
            self.last_reader = Some(edge.to);
            self.drawn.clear();
        }
        if self.drawn.insert((edge.from, edge.kind, edge.label.clone())) {
            self.picture.edges.push(edge);
        }
    }

    /// Shortens long lists of operands without nodes.
    fn shorten(&mut self) {
        for node in &mut self.picture.nodes {
            if node.inlined.len() > MOST_LINES {
                let more = node.inlined.len() - (MOST_LINES - 1);
                node.inlined.truncate(MOST_LINES - 1);
                node.inlined.push(format!("… and {more} more"));
            }
        }
    }

    /// Notes which node stands for an instruction without one: the node of its value or of its first
    /// reader.
    fn stand_in(&mut self, id: InstId) {
        if self.node_of[id].is_some() {
            return;
        }
        let of_value = self.values[id].as_ref().and_then(|value| value.node);
        let reader = || self.module.uses(id).find_map(|one| self.node_of[one.user]);
        if let Some(node) = of_value.or_else(reader) {
            self.picture.stands_for.push((self.module.name_of(id).to_owned(), node));
        }
    }

    /// Returns how the readers of an instruction show its value, unless it has a node.
    fn value(&self, computation: CompId, id: InstId) -> Option<Value> {
        let module = self.module;
        match module.op(id) {
            Op::Constant(literal) => {
                let is_small = literal.leaves().iter().all(|leaf| {
                    leaf.as_array().is_some_and(|array| {
                        array.len() <= 4 || (array.len() <= 4096 && array.splat().is_some())
                    })
                });
                is_small.then(|| Value::constant(module, id))
            }
            Op::Parameter(_) => {
                if let Some(operand) = self.plan.operand_of(module, id) {
                    return self.values[operand].clone();
                }
                let is_drawn = self.memory(id).is_large && !self.plan.is_nested(computation);
                (!is_drawn).then(|| Value::parameter(module, id))
            }
            // A scalar that is repeated is drawn as the scalar.
            Op::Broadcast(attrs) if attrs.dimensions.is_empty() && !self.memory(id).is_stored => {
                let of = self.values[*module.operands(id).first()?].as_ref()?;
                of.node.is_none().then(|| of.repeated())
            }
            Op::GetTupleElement(attrs) => {
                let of = module.operands(id).first()?;
                self.values[*of].as_ref().map(|value| value.part(attrs.index, module.shape(id)))
            }
            _ => None,
        }
    }
}

/// The facts about an instruction that its text does not have.
fn details(module: &Module, id: InstId, weight: Option<&Weight>) -> Vec<(&'static str, String)> {
    let mut details = Vec::new();
    details.extend(tilewright::report::meaning(module, id).map(|what| (WHAT_IT_DOES, what)));
    details.extend(weight.map(|weight| ("cost", weight.text.clone())));
    module.op(id).for_each_attr(&mut |name, value| {
        if name != "dimensions" {
            details.push((name, words::cut_at(&print_attribute(module, &value), 400)));
        }
    });
    let Some(extras) = module.extras(id) else { return details };
    if let Some(sharding) = &extras.sharding {
        details.push(("sharding", print_sharding(sharding)));
    }
    if let Some(config) = &extras.backend_config {
        details.push(("backend_config", words::cut_at(&config.0, 2000)));
    }
    for (name, value) in &extras.frontend_attributes {
        details.push(("frontend_attributes", words::cut_at(&format!("{name}={value}"), 400)));
    }
    details
}

/// Checks whether an instruction's computations are drawn in place of named in its title.
pub(crate) fn is_boxed(module: &Module, opcode: Opcode, computation: CompId) -> bool {
    let applies = matches!(
        opcode,
        Opcode::Fusion | Opcode::Call | Opcode::While | Opcode::Conditional | Opcode::AsyncStart
    );
    applies || words::reducer(module, computation).is_none()
}
