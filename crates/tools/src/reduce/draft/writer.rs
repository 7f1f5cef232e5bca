//! Writes a module anew, computation by computation, with the changes of a draft.

use std::collections::{HashMap, HashSet};

use tilewright::ir::ops::shaping::ParameterAttrs;
use tilewright::ir::{
    ArrayShape, CompId, ElementType, Extras, InstId, Literal, Module, Op, Position, Shape,
};

use super::live::Live;
use super::{Draft, DraftRoot, Inlined, Stand};
use crate::reduce::annotations::{Kinds, strip_extras, strip_op, strip_shape};
use crate::reduce::fill;

pub(super) struct Writer<'a> {
    pub(super) from: &'a Module,
    pub(super) draft: &'a Draft,
    live: Live,
    pub(super) to: Module,
    /// The new ids of values.
    pub(super) values: HashMap<InstId, InstId>,
    computations: HashMap<CompId, CompId>,
    pub(super) entry: CompId,
    /// The old parameters of the entry that are kept, by their new numbers.
    pub(super) kept: Vec<InstId>,
    /// Their new numbers.
    pub(super) numbers: HashMap<InstId, i64>,
    /// The shapes of new parameters of the entry, after those that are kept.
    pub(super) added: Vec<Shape>,
    /// Scalars that were written in the current computation.
    scalars: HashMap<(ElementType, bool), InstId>,
    names: Names,
}

impl<'a> Writer<'a> {
    pub(super) fn new(from: &'a Module, draft: &'a Draft) -> Option<Self> {
        let live = Live::of(from, draft)?;
        let entry = from.entry()?;
        let is_kept = |parameter: &InstId| {
            let is_used =
                live.instructions.contains(parameter) && !draft.stands.contains_key(parameter);
            !draft.dropped.contains(parameter) && (is_used || !draft.drops_unused)
        };
        let parameters = from.computation(entry).parameters();
        let kept: Vec<InstId> = parameters.iter().copied().filter(is_kept).collect();
        let numbers = kept.iter().copied().zip(0i64..).collect();
        let name = if draft.renamed.module { "m".into() } else { from.name.clone() };
        Some(Self {
            from,
            draft,
            live,
            to: Module::new(name),
            values: HashMap::new(),
            computations: HashMap::new(),
            entry,
            kept,
            numbers,
            added: Vec::new(),
            scalars: HashMap::new(),
            names: Names::default(),
        })
    }

    pub(super) fn write(mut self) -> Option<Module> {
        for &computation in self.from.computations() {
            if self.live.computations.contains(&computation) {
                self.computation(computation)?;
            }
        }
        let entry = *self.computations.get(&self.entry)?;
        self.to.set_entry(entry);
        if !self.draft.inlined.is_empty() {
            let called: HashSet<CompId> = self.to.call_order(entry).into_iter().collect();
            self.to.retain_computations(|id| called.contains(&id));
        }
        self.to.header = self.header()?;
        Some(self.to)
    }

    fn computation(&mut self, id: CompId) -> Option<()> {
        let computation = self.from.computation(id);
        let name = match (self.draft.renamed.computations, id == self.entry) {
            (false, _) => computation.name().to_owned(),
            (true, true) => "main".to_owned(),
            (true, false) => format!("f{}", self.computations.len()),
        };
        let to = self.to.add_computation(name);
        self.to.set_execution_thread(to, computation.execution_thread().map(Into::into));
        self.scalars.clear();
        for instruction in self.from.instructions(id) {
            if matches!(self.from.op(instruction), Op::Parameter(_)) {
                self.old_parameter(instruction, id, to)?;
            }
            let is_written = self.values.contains_key(&instruction);
            if !is_written && self.live.instructions.contains(&instruction) {
                let value = self.instruction(instruction, id, to)?;
                self.values.insert(instruction, value);
            }
        }
        if id == self.entry && self.draft.has_probe {
            let name = self.fresh("unused");
            self.parameter(to, Shape::scalar(ElementType::F32), &name)?;
        }
        self.to.order_parameters(to).ok()?;
        self.root(id, to)?;
        self.computations.insert(id, to);
        Some(())
    }

    fn root(&mut self, id: CompId, to: CompId) -> Option<()> {
        let root = match self.draft.roots.get(&id) {
            Some(DraftRoot::Of(root)) => self.value(*root)?,
            None => self.value(self.from.computation(id).root()?)?,
            Some(DraftRoot::Tuple(elements)) => {
                let elements: Option<Vec<InstId>> =
                    elements.iter().map(|&element| self.value(element)).collect();
                let elements = elements?;
                let shapes = elements.iter().map(|&id| self.to.shape(id).clone()).collect();
                let name = self.fresh("result");
                let shape = Shape::Tuple(shapes);
                self.to.insert(Position::End(to), Op::Tuple, shape, &elements, name).ok()?
            }
        };
        self.to.set_root(root).ok()
    }

    /// Returns the new id of a value.
    pub(super) fn value(&self, id: InstId) -> Option<InstId> {
        self.values.get(&self.draft.resolve(self.from, id)?).copied()
    }

    /// Writes a parameter, unless it is left out. Numbers have no gaps.
    fn old_parameter(&mut self, id: InstId, computation: CompId, to: CompId) -> Option<()> {
        let number = if computation == self.entry {
            let Some(&number) = self.numbers.get(&id) else { return Some(()) };
            number
        } else if self.draft.dropped.contains(&id) {
            return Some(());
        } else {
            // Parameters are not always written in the order of their numbers.
            let all = self.from.computation(computation).parameters();
            let before = all.iter().take_while(|&&other| other != id);
            let kept = before.filter(|other| !self.draft.dropped.contains(other)).count();
            i64::try_from(kept).ok()?
        };
        let op = Op::Parameter(Box::new(ParameterAttrs { number }));
        let written = self.copy(id, to, op, &[])?;
        if !self.draft.stands.contains_key(&id) {
            self.values.insert(id, written);
        }
        Some(())
    }

    fn instruction(&mut self, id: InstId, computation: CompId, to: CompId) -> Option<InstId> {
        let shape = self.draft.shape_of(self.from, id);
        match self.draft.stands.get(&id) {
            Some(Stand::Parameter) if computation == self.entry => {
                let name = self.name(id);
                return self.parameter(to, shape.clone(), &name);
            }
            Some(Stand::Parameter | Stand::Value(_)) => return None,
            Some(Stand::Zero) => return self.filled(to, shape, false),
            Some(Stand::One) => return self.filled(to, shape, true),
            Some(Stand::Constant(literal)) => {
                let op = Op::Constant(Box::new(literal.clone()));
                let name = self.name(id);
                return self.to.insert(Position::End(to), op, shape.clone(), &[], name).ok();
            }
            None => {}
        }
        if let Some(inlined) = self.draft.inlined.get(&id) {
            return self.inlined(inlined, to);
        }
        let operands: Option<Vec<InstId>> =
            self.draft.operands_of(self.from, id).iter().map(|&id| self.value(id)).collect();
        let mut op = self.draft.op_of(self.from, id).clone();
        let mut is_known = true;
        op.map_computations(&mut |callee| {
            let known = self.computations.get(&callee).copied();
            is_known &= known.is_some();
            known.unwrap_or(callee)
        });
        if is_known { self.copy(id, to, op, &operands?) } else { None }
    }

    /// Writes an instruction with its annotations.
    fn copy(&mut self, id: InstId, to: CompId, mut op: Op, operands: &[InstId]) -> Option<InstId> {
        let kinds = self.draft.stripped.get(&id).copied().unwrap_or_default();
        strip_op(&mut op, kinds);
        let mut shape = self.draft.shape_of(self.from, id).clone();
        strip_shape(&mut shape, kinds);
        let name = self.name(id);
        let copy = self.to.insert(Position::End(to), op, shape, operands, name).ok()?;
        if let Some(metadata) = self.from.metadata(id).filter(|_| !kinds.has(Kinds::METADATA)) {
            self.to.set_metadata(copy, metadata.clone());
        }
        if let Some(extras) = self.from.extras(id) {
            let extras = self.extras(id, extras, kinds);
            if !extras.is_empty() {
                self.to.set_extras(copy, extras);
            }
        }
        Some(copy)
    }

    fn extras(&self, id: InstId, extras: &Extras, kinds: Kinds) -> Extras {
        let mut extras = strip_extras(extras, kinds);
        let before = std::mem::take(&mut extras.control_predecessors);
        extras.control_predecessors = before.iter().filter_map(|&id| self.value(id)).collect();
        let is_narrower = self
            .draft
            .shapes
            .get(&id)
            .is_some_and(|shape| shape.leaves().len() != self.from.shape(id).leaves().len());
        if is_narrower {
            extras.sharding = None;
            extras.origin = None;
            extras.parameter_replication.clear();
        }
        extras
    }

    /// Writes a new parameter of the entry.
    fn parameter(&mut self, to: CompId, shape: Shape, name: &str) -> Option<InstId> {
        let number = i64::try_from(self.kept.len().checked_add(self.added.len())?).ok()?;
        self.added.push(shape.clone());
        let op = Op::Parameter(Box::new(ParameterAttrs { number }));
        self.to.insert(Position::End(to), op, shape, &[], name).ok()
    }

    /// Writes a value whose elements are all zero, or all one.
    fn filled(&mut self, to: CompId, shape: &Shape, is_one: bool) -> Option<InstId> {
        match shape {
            Shape::Array(array) => self.filled_array(to, array, is_one),
            Shape::Tuple(elements) if elements.iter().all(|e| e.as_tuple().is_none()) => {
                let elements: Option<Vec<InstId>> =
                    elements.iter().map(|element| self.filled(to, element, is_one)).collect();
                let name = self.fresh("filled");
                let shape = shape.without_layout();
                self.to.insert(Position::End(to), Op::Tuple, shape, &elements?, name).ok()
            }
            Shape::Token => {
                let name = self.fresh("token");
                self.to.insert(Position::End(to), Op::AfterAll, Shape::Token, &[], name).ok()
            }
            Shape::Tuple(_) | Shape::Buffer(_) | Shape::Opaque => None,
        }
    }

    fn filled_array(&mut self, to: CompId, array: &ArrayShape, is_one: bool) -> Option<InstId> {
        if !array.is_static() {
            return None;
        }
        let element_type = array.element_type;
        let scalar = match self.scalars.get(&(element_type, is_one)) {
            Some(&scalar) => scalar,
            None => {
                let literal = fill::scalar(element_type, is_one)?;
                let op = Op::Constant(Box::new(Literal::Array(literal)));
                let name = self.fresh(if is_one { "one" } else { "zero" });
                let shape = Shape::scalar(element_type);
                let scalar = self.to.insert(Position::End(to), op, shape, &[], name).ok()?;
                self.scalars.insert((element_type, is_one), scalar);
                scalar
            }
        };
        if array.rank() == 0 {
            return Some(scalar);
        }
        let op = Op::Broadcast(Box::default());
        let name = self.fresh("filled");
        self.to.insert(Position::End(to), op, array.clone().into(), &[scalar], name).ok()
    }

    /// Writes a copy of a computation that was written before, and returns its result.
    fn inlined(&mut self, inlined: &Inlined, to: CompId) -> Option<InstId> {
        let callee = *self.computations.get(&inlined.callee)?;
        let arguments: Option<Vec<InstId>> =
            inlined.arguments.iter().map(|&argument| self.value(argument)).collect();
        let arguments = arguments?;
        let mut copies: HashMap<InstId, InstId> = HashMap::new();
        for id in self.to.instructions(callee).collect::<Vec<_>>() {
            let copy = match self.to.op(id) {
                Op::Parameter(attrs) => *arguments.get(usize::try_from(attrs.number).ok()?)?,
                op => {
                    let op = op.clone();
                    let shape = self.to.shape(id).clone();
                    let operands: Option<Vec<InstId>> =
                        self.to.operands(id).iter().map(|id| copies.get(id).copied()).collect();
                    let name = self.to.name_of(id).to_owned();
                    let name = self.fresh(&name);
                    let copy =
                        self.to.insert(Position::End(to), op, shape, &operands?, name).ok()?;
                    self.to.copy_metadata(id, copy);
                    if let Some(mut extras) = self.to.extras(id).cloned() {
                        let before = std::mem::take(&mut extras.control_predecessors);
                        let before = before.iter().filter_map(|id| copies.get(id).copied());
                        extras.control_predecessors = before.collect();
                        self.to.set_extras(copy, extras);
                    }
                    copy
                }
            };
            copies.insert(id, copy);
        }
        copies.get(&self.to.computation(callee).root()?).copied()
    }

    /// Returns the name of what is written in place of an old instruction.
    fn name(&mut self, id: InstId) -> String {
        if !self.draft.renamed.instructions {
            return self.from.name_of(id).to_owned();
        }
        match self.from.op(id) {
            Op::Parameter(_) => self.names.numbered("p"),
            _ => self.names.numbered("v"),
        }
    }

    /// Returns a name that neither an old nor a new instruction has.
    fn fresh(&mut self, wanted: &str) -> String {
        self.names.fresh(self.from, wanted)
    }
}

/// Names that are in use.
#[derive(Default)]
struct Names {
    /// All names of the old module and new ones; filled when the first is needed.
    taken: HashSet<String>,
    /// The next number after each stem.
    next: HashMap<String, u64>,
}

impl Names {
    /// Returns the stem with the next number.
    fn numbered(&mut self, stem: &str) -> String {
        let next = self.next.entry(stem.to_owned()).or_default();
        let name = format!("{stem}{next}");
        *next = next.saturating_add(1);
        name
    }

    fn fresh(&mut self, from: &Module, wanted: &str) -> String {
        if self.taken.is_empty() {
            for &computation in from.computations() {
                let names = from.instructions(computation).map(|id| from.name_of(id).to_owned());
                self.taken.extend(names);
            }
        }
        if self.taken.insert(wanted.to_owned()) {
            return wanted.to_owned();
        }
        let stem = match wanted.rsplit_once('.') {
            Some((stem, number)) if number.bytes().all(|b| b.is_ascii_digit()) => stem,
            _ => wanted,
        };
        let stem = format!("{stem}.");
        loop {
            let name = self.numbered(&stem);
            if self.taken.insert(name.clone()) {
                return name;
            }
        }
    }
}
