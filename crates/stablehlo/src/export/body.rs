//! The operations of one block as they are added.

use std::cmp::Ordering;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use tilewright_ir::{ArrayShape, CompId, InstId, Op, Opcode, Shape, infer_mixed};

use super::error::{Export, ExportError, ExportErrorKind};
use super::value::Yield;
use super::{Exporter, arguments, control, forms, locations, operation, special, types};
use crate::dialect;
use crate::limits::MAX_DEPTH;
use crate::mlir::{Attributes, Block, Location, Operation, Region, Type, Value};

/// A block under way.
pub(super) struct Body<'e, 'm> {
    pub(super) exporter: &'e mut Exporter<'m>,
    pub(super) operations: Vec<Operation>,
    /// The results of the instructions.
    pub(super) yields: FxHashMap<InstId, Yield>,
    /// The instruction that is being converted.
    pub(super) current: InstId,
}

impl<'m> Exporter<'m> {
    /// Converts the instructions of a computation, whose parameters are bound, to a block that
    /// ends with `terminator`.
    pub(super) fn block(
        &mut self,
        computation: CompId,
        arguments: Vec<Value>,
        parameters: Vec<Yield>,
        terminator: &str,
    ) -> Export<Block> {
        if self.depth >= MAX_DEPTH {
            return Err(ExportError {
                kind: ExportErrorKind::TooDeep,
                instruction: self.module.computation(computation).name().into(),
                message: format!("calls are nested more than {MAX_DEPTH} deep"),
                others: Vec::new(),
            });
        }
        self.depth += 1;
        let module = self.module;
        let computed = module.computation(computation);
        let bound = computed.parameters().iter().copied().zip(parameters);
        let yields: FxHashMap<InstId, Yield> = bound.collect();
        let Some(root) = computed.root() else {
            return Err(ExportError {
                kind: ExportErrorKind::Invalid,
                instruction: computed.name().into(),
                message: "the computation has no instructions".into(),
                others: Vec::new(),
            });
        };
        let mut body = Body { exporter: self, operations: Vec::new(), yields, current: root };
        for id in module.instructions(computation) {
            if !body.yields.contains_key(&id) {
                body.current = id;
                body.exporter.left = body.exporter.left.checked_sub(1).ok_or_else(|| {
                    body.error(
                        ExportErrorKind::TooDeep,
                        "computations that ops share are repeated too often",
                    )
                })?;
                let depth = body.exporter.depth;
                body.instruction(id).or_else(|error| body.refuse(id, error, depth))?;
            }
        }
        body.current = root;
        let results = body.yielded(root)?.leaves();
        let mut end = operation(terminator, Attributes::new());
        end.operands = results.into();
        body.operations.push(end);
        let operations = body.operations;
        self.depth -= 1;
        Ok(Block { arguments, operations })
    }

    /// Returns a new value for each array of a shape.
    pub(super) fn values_of(&mut self, shape: &Shape) -> Option<Yield> {
        match shape {
            Shape::Tuple(parts) => {
                let parts = parts.iter().map(|part| self.values_of(part));
                parts.collect::<Option<_>>().map(Yield::Tuple)
            }
            other => {
                let ty = types::ty(other)?;
                Some(Yield::One(self.value(ty)))
            }
        }
    }
}

impl<'m> Body<'_, 'm> {
    fn instruction(&mut self, id: InstId) -> Export<()> {
        let module = self.exporter.module;
        let op = module.op(id);
        self.check_precision(id, op)?;
        match op {
            Op::Tuple => {
                let parts = module.operands(id).iter().map(|&part| self.yielded(part));
                let parts = parts.collect::<Export<Vec<_>>>()?;
                self.yields.insert(id, Yield::Tuple(parts));
                Ok(())
            }
            Op::GetTupleElement(attrs) => {
                let tuple = self.yielded(self.operand(id, 0)?)?;
                let index = usize::try_from(attrs.index).unwrap_or(usize::MAX);
                let part = match tuple {
                    Yield::Tuple(parts) => parts.into_iter().nth(index),
                    Yield::One(_) => None,
                };
                let part = part.ok_or_else(|| self.invalid("the tuple has no such element"))?;
                self.yields.insert(id, part);
                Ok(())
            }
            Op::While(_) | Op::Conditional(_) | Op::Call(_) | Op::CustomCall(_) | Op::Fusion(_) => {
                control::convert(self, id, op)
            }
            _ => match special::find(op.opcode()) {
                Some(convert) => convert(self, id, op),
                None => self.by_row(id, op),
            },
        }
    }

    /// Notes an instruction that StableHLO cannot say, and goes on with its users.
    fn refuse(&mut self, id: InstId, error: ExportError, depth: usize) -> Export<()> {
        // Blocks within the instruction may have been left.
        self.exporter.depth = depth;
        let values = self.exporter.values_of(self.exporter.module.shape(id));
        match (error.kind, values) {
            (ExportErrorKind::Unsupported, Some(values)) => {
                if self.exporter.named.insert(id) {
                    self.exporter.refused.push(error);
                }
                self.yields.insert(id, values);
                Ok(())
            }
            _ => Err(error),
        }
    }

    fn by_row(&mut self, id: InstId, op: &'m Op) -> Export<()> {
        let opcode = op.opcode();
        let row = dialect::of_opcode(opcode).ok_or_else(|| {
            self.unsupported(&format!("StableHLO has no op `{opcode}`; rewrite it first"))
        })?;
        let attributes = forms::write(row, op);
        let regions = self.regions(row, op)?;
        let mut operands = self.operand_values(id)?;
        if opcode == Opcode::Convolution {
            self.promote(id, &mut operands)?;
        }
        if opcode == Opcode::CollectivePermute && operands.len() != 1 {
            return Err(self.unsupported("StableHLO permutes one array at a time"));
        }
        self.emit(id, row.name, &operands, attributes, regions)
    }

    /// XLA's passes let floats of different precision meet; StableHLO does not.
    fn check_precision(&self, id: InstId, op: &Op) -> Export<()> {
        let module = self.exporter.module;
        let operands: Vec<&Shape> =
            module.operands(id).iter().map(|&id| module.shape(id)).collect();
        let inferred = infer_mixed(module, op, &operands, Some(module.shape(id)));
        if inferred.is_ok_and(|inferred| inferred.mixes_precision) {
            return Err(self
                .unsupported("floats of different precision meet; put a `convert` between them"));
        }
        Ok(())
    }

    /// Converts one operand of a convolution to the type of the other, the more precise one.
    fn promote(&mut self, id: InstId, operands: &mut [Value]) -> Export<()> {
        let (left, right) = (self.array(self.operand(id, 0)?)?, self.array(self.operand(id, 1)?)?);
        let rank = |of: &ArrayShape| {
            (of.element_type.is_complex(), of.element_type.is_float(), of.element_type.bits())
        };
        let (from, to) = match rank(left).cmp(&rank(right)) {
            Ordering::Less => (left, right.element_type),
            Ordering::Greater => (right, left.element_type),
            Ordering::Equal if left.element_type == right.element_type => return Ok(()),
            Ordering::Equal => {
                return Err(self.unsupported("its operands have types of the same size"));
            }
        };
        let place = usize::from(rank(left) > rank(right));
        let ty = types::tensor(&from.clone().with_element_type(to));
        if let Some(operand) = operands.get_mut(place) {
            *operand = self.help("stablehlo.convert", &[*operand], Attributes::new(), ty);
        }
        Ok(())
    }

    pub(super) fn regions(&mut self, row: &dialect::Op, op: &'m Op) -> Export<Vec<Region>> {
        if row.regions.is_empty() {
            return Ok(Vec::new());
        }
        let mut called = Vec::new();
        op.for_each_computation(&mut |computation| called.push(computation));
        called.into_iter().map(|computation| self.region(computation)).collect()
    }

    /// Converts a computation to a region with an argument for each array of its parameters.
    pub(super) fn region(&mut self, computation: CompId) -> Export<Region> {
        let module = self.exporter.module;
        let mut arguments = Vec::new();
        let mut parameters = Vec::new();
        for &parameter in module.computation(computation).parameters() {
            let values = self.new_values(module.shape(parameter))?;
            arguments.extend(values.leaves());
            parameters.push(values);
        }
        self.region_with(computation, arguments, parameters)
    }

    /// Converts a computation with given parameters to a region.
    pub(super) fn region_with(
        &mut self,
        computation: CompId,
        arguments: Vec<Value>,
        parameters: Vec<Yield>,
    ) -> Export<Region> {
        let end = "stablehlo.return";
        let block = self.exporter.block(computation, arguments, parameters, end)?;
        Ok(Region { blocks: vec![block] })
    }

    pub(super) fn new_values(&mut self, shape: &Shape) -> Export<Yield> {
        self.exporter.values_of(shape).ok_or_else(|| {
            self.unsupported(
                "StableHLO has no values of this shape: a buffer, an opaque value or `s1`",
            )
        })
    }

    /// Adds an operation for an instruction: its results are the parts of its shape.
    pub(super) fn emit(
        &mut self,
        id: InstId,
        name: &str,
        operands: &[Value],
        attributes: Attributes,
        regions: Vec<Region>,
    ) -> Export<()> {
        let module = self.exporter.module;
        let results = self.new_values(module.shape(id))?;
        let mut added = operation(name, attributes);
        added.operands = operands.into();
        added.results = results.leaves().into();
        added.regions = regions;
        added.location = self.location(id);
        if let Some(extras) = module.extras(id) {
            added.attributes.extend(match added.results.len() {
                1 => arguments::of_one(extras),
                _ => arguments::common(extras),
            });
        }
        self.operations.push(added);
        self.yields.insert(id, results);
        Ok(())
    }

    /// Adds an operation that only helps the current instruction, and returns its result.
    pub(super) fn help(
        &mut self,
        name: &str,
        operands: &[Value],
        attributes: Attributes,
        ty: Type,
    ) -> Value {
        let result = self.exporter.value(ty);
        self.help_all(name, operands, attributes, &[result]);
        result
    }

    /// As [`Self::help`], with any number of results.
    pub(super) fn help_all(
        &mut self,
        name: &str,
        operands: &[Value],
        attributes: Attributes,
        results: &[Value],
    ) {
        let mut added = operation(name, attributes);
        added.operands = operands.into();
        added.results = results.into();
        added.location = self.location(self.current);
        self.operations.push(added);
    }

    pub(super) fn location(&self, id: InstId) -> Option<Arc<Location>> {
        let module = self.exporter.module;
        locations::location(module, module.metadata(id)?)
    }

    /// Returns an operand of an instruction.
    pub(super) fn operand(&self, id: InstId, number: usize) -> Export<InstId> {
        let operand = self.exporter.module.operands(id).get(number).copied();
        operand.ok_or_else(|| self.invalid("the instruction has too few operands"))
    }

    /// Returns what an instruction yields.
    pub(super) fn yielded(&self, id: InstId) -> Export<Yield> {
        self.yields.get(&id).cloned().ok_or_else(|| self.invalid("an operand comes later"))
    }

    /// Returns all operands; a tuple is several.
    pub(super) fn operand_values(&self, id: InstId) -> Export<Vec<Value>> {
        let mut values = Vec::new();
        for &operand in self.exporter.module.operands(id) {
            values.extend(self.yielded(operand)?.leaves());
        }
        Ok(values)
    }

    /// Returns the shape of an instruction that is an array.
    pub(super) fn array(&self, id: InstId) -> Export<&'m ArrayShape> {
        let module = self.exporter.module;
        module.array_shape(id).ok_or_else(|| self.invalid("the value is no array"))
    }

    pub(super) fn invalid(&self, message: &str) -> ExportError {
        self.error(ExportErrorKind::Invalid, message)
    }

    pub(super) fn unsupported(&self, message: &str) -> ExportError {
        self.error(ExportErrorKind::Unsupported, message)
    }

    fn error(&self, kind: ExportErrorKind, message: &str) -> ExportError {
        let instruction = self.exporter.module.name_of(self.current).into();
        ExportError { kind, instruction, message: message.into(), others: Vec::new() }
    }
}

/// Converts an instruction.
pub(super) type Convert = for<'m> fn(&mut Body<'_, 'm>, InstId, &'m Op) -> Export<()>;

/// An opcode and how it is converted.
pub(super) type Special = (Opcode, Convert);
