//! One of two modules, with the classes of its instructions and computations.
//!
//! ```text
//! core   opcode, attributes, element types and dims; constants by value, parameters by number
//! full   core, layouts, sharding and the like
//! value  core, and the values of the operands and of the computations called
//! exact  full, and likewise
//! ```
//!
//! Both modules share the interners, so that classes of one can be compared with those of the
//! other. No class depends on names, on metadata (unless asked) or on the order of instructions.

use std::borrow::Cow;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tilewright::ir::{CompId, Entity as _, InstId, Module, Op, OpMetadata, Shape};
use tilewright::text::{print_extras, print_provenance};

use super::canonical;
use super::interner::{Class, Interner, Parts};

/// The interners that two modules share.
#[derive(Default)]
pub(super) struct Interners<'m> {
    cores: Interner<(Cow<'m, Op>, Class)>,
    fulls: Interner<(Class, Class, Attributes, Option<Cow<'m, OpMetadata>>)>,
    shapes: Interner<Cow<'m, Shape>>,
    threads: Interner<&'m str>,
    pub(super) parts: Interner<Parts>,
    pub(super) bodies: Interner<Vec<u32>>,
}

/// Attributes by name.
pub(super) type Attributes = Vec<(String, String)>;

/// A module with the classes of its parts. Vectors are indexed by instruction.
pub(super) struct Side<'m> {
    pub(super) module: &'m Module,
    /// Whether metadata counts.
    pub(super) metadata: bool,
    pub(super) core: Vec<Class>,
    pub(super) full: Vec<Class>,
    pub(super) value: Vec<Class>,
    pub(super) exact: Vec<Class>,
    /// The class of the dims and element types of an instruction.
    pub(super) shape: Vec<Class>,
    /// The instructions of each computation in an order that isomorphic computations share.
    pub(super) order: FxHashMap<CompId, Vec<InstId>>,
    /// The class of a computation as a graph: equal only if isomorphic.
    pub(super) body: FxHashMap<CompId, Class>,
    /// The same without layouts, sharding and the like.
    pub(super) core_body: FxHashMap<CompId, Class>,
    /// The instructions that call a computation, in order.
    pub(super) callers: FxHashMap<CompId, Vec<InstId>>,
    /// The computations by name.
    pub(super) by_name: FxHashMap<&'m str, CompId>,
}

impl<'m> Side<'m> {
    /// Classifies a module.
    pub(super) fn new(module: &'m Module, metadata: bool, interners: &mut Interners<'m>) -> Self {
        let bound = module.instruction_bound();
        let mut side = Self {
            module,
            metadata,
            core: vec![0; bound],
            full: vec![0; bound],
            value: vec![0; bound],
            exact: vec![0; bound],
            shape: vec![0; bound],
            order: FxHashMap::default(),
            body: FxHashMap::default(),
            core_body: FxHashMap::default(),
            callers: FxHashMap::default(),
            by_name: FxHashMap::default(),
        };
        let mut shapes = ShapeClasses::default();
        // Callees come before callers, and operands before users.
        for &computation in module.computations() {
            for id in module.instructions(computation) {
                side.classify(id, interners, &mut shapes);
            }
            side.classify_computation(computation, interners);
            side.by_name.insert(module.computation(computation).name(), computation);
        }
        side
    }

    fn classify(&mut self, id: InstId, interners: &mut Interners<'m>, shapes: &mut ShapeClasses) {
        let module = self.module;
        let (bare, with_layout) = shapes.of(module, id, interners);
        let core = interners.cores.class((plain_op(module.op(id)), bare));
        let attributes = attributes(module, id, self.metadata);
        let metadata = if self.metadata { placed_metadata(module, id) } else { None };
        let full = interners.fulls.class((core, with_layout, attributes, metadata));
        let (mut value, mut exact) = (Parts::from_slice(&[core]), Parts::from_slice(&[full]));
        for &operand in module.operands(id) {
            value.push(self.value[operand.index()]);
            exact.push(self.exact[operand.index()]);
        }
        for called in module.called(id) {
            self.callers.entry(called).or_default().push(id);
            // A computation that stands later cannot be called; the verifier saw to that.
            value.push(self.core_body.get(&called).copied().unwrap_or(0));
            exact.push(self.body.get(&called).copied().unwrap_or(0));
        }
        let at = id.index();
        self.shape[at] = bare;
        self.core[at] = core;
        self.full[at] = full;
        self.value[at] = interners.parts.class(value);
        self.exact[at] = interners.parts.class(exact);
    }

    fn classify_computation(&mut self, id: CompId, interners: &mut Interners<'m>) {
        let order = canonical::order(self, id);
        let thread = self.module.computation(id).execution_thread().unwrap_or_default();
        let thread = interners.threads.class(thread);
        let body = canonical::body(self, id, &order, &self.full, &self.body);
        let core = canonical::body(self, id, &order, &self.core, &self.core_body);
        let with_thread = |mut body: Vec<u32>| {
            body.push(thread);
            body
        };
        let body = interners.bodies.class(with_thread(body));
        let core = interners.bodies.class(with_thread(core));
        self.body.insert(id, body);
        self.core_body.insert(id, core);
        self.order.insert(id, order);
    }
}

/// Returns an op with the computations that it calls made equal: these are compared by what they
/// compute.
fn plain_op(op: &Op) -> Cow<'_, Op> {
    let mut calls = false;
    op.for_each_computation(&mut |_| calls = true);
    if !calls {
        return Cow::Borrowed(op);
    }
    let mut plain = op.clone();
    plain.map_computations(&mut |_| CompId::from_index(0));
    Cow::Owned(plain)
}

/// Returns the attributes of an instruction that any op can have, by name.
pub(super) fn attributes(module: &Module, id: InstId, metadata: bool) -> Attributes {
    let Some(extras) = module.extras(id) else { return Vec::new() };
    let mut attributes = print_extras(extras);
    if metadata {
        attributes.extend(print_provenance(extras));
    }
    attributes
}

/// Returns the metadata of an instruction with its line in place of the number of a stack frame,
/// which means nothing in another module.
pub(super) fn placed_metadata(module: &Module, id: InstId) -> Option<Cow<'_, OpMetadata>> {
    let metadata = module.metadata(id)?;
    if metadata.stack_frame_id == 0 {
        return Some(Cow::Borrowed(metadata));
    }
    let mut metadata = metadata.clone();
    let tables = module.header.stack_tables.as_ref();
    if let Some((file, line)) = tables.and_then(|tables| tables.source_of(metadata.stack_frame_id))
    {
        metadata.source_file = file.into();
        metadata.source_line = line;
    }
    metadata.stack_frame_id = 0;
    Some(Cow::Owned(metadata))
}

/// The classes of shapes without and with layouts, by their ids in a module.
#[derive(Default)]
struct ShapeClasses {
    known: FxHashMap<usize, (Class, Class)>,
}

impl ShapeClasses {
    fn of<'m>(
        &mut self,
        module: &'m Module,
        id: InstId,
        interners: &mut Interners<'m>,
    ) -> (Class, Class) {
        let shape = module.instruction(id).shape_id();
        *self.known.entry(shape.index()).or_insert_with(|| {
            let shape = module.shape_of(shape);
            let bare = interners.shapes.class(Cow::Owned(shape.without_layout()));
            (bare, interners.shapes.class(Cow::Owned(with_explicit_layout(shape))))
        })
    }
}

/// Returns a shape whose arrays all have a layout: row major if none is given.
pub(super) fn with_explicit_layout(shape: &Shape) -> Shape {
    match shape {
        Shape::Array(array) => {
            Shape::Array(array.clone().with_layout(Some(array.layout_or_default())))
        }
        Shape::Tuple(elements) => Shape::Tuple(elements.iter().map(with_explicit_layout).collect()),
        Shape::Buffer(inner) => Shape::Buffer(Box::new(with_explicit_layout(inner))),
        Shape::Token => Shape::Token,
        Shape::Opaque => Shape::Opaque,
    }
}

/// Returns the control predecessors of an instruction.
pub(super) fn control_predecessors(module: &Module, id: InstId) -> SmallVec<[InstId; 2]> {
    let extras = module.extras(id);
    extras
        .map_or_else(SmallVec::new, |extras| extras.control_predecessors.iter().copied().collect())
}
