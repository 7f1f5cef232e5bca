//! The instructions of one computation as they are added.

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::metadata::FrontendAttributes;
use tilewright_ir::ops::control::GetTupleElementAttrs;
use tilewright_ir::ops::shaping::ParameterAttrs;
use tilewright_ir::shape::UNBOUNDED;
use tilewright_ir::{
    CompId, Extras, InstId, Layout, Module, Op, OpMetadata, Position, Shape, Sharding,
    infer_layout, infer_shape,
};

use super::error::{Import, ImportErrorKind};
use super::quantized::{Elements, Quantized};
use super::{ImportError, Importer, location, shardings, types};
use crate::mlir::{Block, Operation, Span, Value};

/// The attributes of every instruction that is added for one operation.
#[derive(Clone, Default)]
pub(super) struct Scope {
    pub(super) metadata: Option<OpMetadata>,
    pub(super) sharding: Option<Sharding>,
    pub(super) attributes: FrontendAttributes,
}

/// A computation under way.
pub(crate) struct Body<'i, 'p> {
    pub(super) importer: &'i mut Importer<'p>,
    pub(super) computation: CompId,
    /// The instructions that compute the values of the program.
    pub(super) values: FxHashMap<Value, InstId>,
    pub(super) scope: Scope,
    /// The operation that is being converted.
    pub(super) span: Span,
    /// How that operation takes elements of quantised types.
    pub(super) elements: Elements,
    /// The integers of values that depend on constants alone; `None` of others.
    pub(super) sizes: FxHashMap<InstId, Option<Vec<i64>>>,
}

/// How a computation returns its values.
#[derive(Default)]
pub(super) struct Returns<'r> {
    /// Values that are returned after those of the `return`.
    pub(super) implicit: &'r [Value],
    /// The shardings of the values.
    pub(super) shardings: Vec<Option<Sharding>>,
}

impl<'i, 'p> Body<'i, 'p> {
    pub(super) fn new(importer: &'i mut Importer<'p>, computation: CompId, span: Span) -> Self {
        let (values, sizes, scope) = (FxHashMap::default(), FxHashMap::default(), Scope::default());
        Self { importer, computation, values, scope, span, elements: Elements::default(), sizes }
    }

    /// Converts the operations of a block and sets the root of the computation.
    pub(super) fn block(&mut self, block: &'p Block, returns: &Returns<'_>) -> Import<()> {
        self.frames_of_constants(block);
        let mut returned = None;
        let used: FxHashSet<Value> =
            block.operations.iter().flat_map(|operation| &operation.operands).copied().collect();
        for operation in &block.operations {
            // Constants that only regions use are added there.
            if operation.results.iter().all(|result| {
                !used.contains(result) && self.importer.constants.contains_key(result)
            }) && !operation.results.is_empty()
            {
                continue;
            }
            self.span = operation.span;
            self.importer.left = self.importer.left.checked_sub(1).ok_or_else(|| {
                let why = "functions that composites share are repeated too often";
                ImportError::new(ImportErrorKind::TooDeep, operation.span, why)
            })?;
            returned = self.operation(operation, returns)?;
        }
        let root = match returned {
            Some(root) => root,
            None => {
                let message = "a function or a region ends without a `return`";
                return Err(ImportError::new(ImportErrorKind::Malformed, self.span, message));
            }
        };
        self.importer.module.set_root(root).map_err(|error| self.invalid(&error.to_string()))
    }

    /// Adds the frames of the constants at the beginning. They have no metadata, but of frames that
    /// begin at one place, XLA keeps the end of the one that it meets first.
    fn frames_of_constants(&mut self, block: &Block) {
        let constants = block.operations.iter().filter(|operation| is_constant(operation));
        for location in constants.filter_map(|constant| constant.location.as_deref()) {
            self.importer.frames.metadata(location);
        }
    }

    /// Converts an operation; returns the root if it is a `return`.
    fn operation(
        &mut self,
        operation: &'p Operation,
        returns: &Returns<'_>,
    ) -> Import<Option<InstId>> {
        self.scope = Scope::default();
        match operation.name.as_str() {
            "func.return" | "stablehlo.return" | "mhlo.return" | "sdy.return" => {
                return self.returned(operation, returns).map(Some);
            }
            _ if is_constant(operation) => {}
            _ => {
                let location = operation.location.as_deref();
                self.scope.metadata = location.and_then(|l| self.importer.frames.metadata(l));
                self.scope.attributes = shardings::frontend_attributes(operation);
            }
        }
        self.scope.sharding = shardings::of(operation)?;
        self.convert(operation)?;
        Ok(None)
    }

    fn returned(&mut self, operation: &Operation, returns: &Returns<'_>) -> Import<InstId> {
        let mut operands = Vec::new();
        for &value in operation.operands.iter().chain(returns.implicit) {
            operands.push(self.value(operation, value)?);
        }
        let sharding = shardings::together(&returns.shardings);
        if let (&[only], Some(_)) = (operands.as_slice(), &sharding) {
            let own = self.importer.module.extras(only).and_then(|extras| extras.sharding.clone());
            self.scope.sharding = own.map(|own| Sharding::Tuple(own.leaves().to_vec()));
            let tuple = self.tuple(&operands)?;
            self.scope.sharding = returns.shardings.first().cloned().flatten();
            return self.element(tuple, 0);
        }
        self.scope.sharding = sharding;
        self.together(&operands)
    }

    /// Returns one value as it is, and several as a tuple.
    pub(super) fn together(&mut self, operands: &[InstId]) -> Import<InstId> {
        match operands {
            &[only] => Ok(only),
            several => self.tuple(several),
        }
    }

    pub(super) fn tuple(&mut self, operands: &[InstId]) -> Import<InstId> {
        let shapes = operands.iter().map(|&id| self.importer.module.shape(id).clone());
        let shape = Shape::Tuple(shapes.collect());
        self.emit(Op::Tuple, shape, operands)
    }

    /// Adds the element of a tuple.
    pub(super) fn element(&mut self, tuple: InstId, index: usize) -> Import<InstId> {
        let elements = self.importer.module.shape(tuple).as_tuple();
        let Some(shape) = elements.and_then(|elements| elements.get(index)).cloned() else {
            return Err(self.invalid("the op yields fewer values than the operation has results"));
        };
        let index = i64::try_from(index).unwrap_or(i64::MAX);
        let op = Op::GetTupleElement(Box::new(GetTupleElementAttrs { index }));
        self.emit(op, shape, &[tuple])
    }

    /// Adds a parameter; its name is that of its location.
    pub(super) fn parameter(
        &mut self,
        number: usize,
        shape: Shape,
        of: Option<Value>,
    ) -> Import<InstId> {
        let locations = &self.importer.program.argument_locations;
        let name = of.and_then(|value| locations.get(&value)).map(|l| location::name(l));
        let name = name.unwrap_or_default();
        self.scope.metadata = (!name.is_empty())
            .then(|| OpMetadata { op_name: name.clone(), ..OpMetadata::default() });
        let name = match name.rsplit('/').next() {
            Some(last) if !last.is_empty() => sanitized(last),
            _ if of.is_none() => "arg_tuple".into(),
            _ => format!("Arg_{number}"),
        };
        let number = i64::try_from(number).unwrap_or(i64::MAX);
        let op = Op::Parameter(Box::new(ParameterAttrs { number }));
        let id = self.emit_named(op, shape, &[], &name);
        self.scope.metadata = None;
        id
    }

    /// Returns the instruction of an operand.
    pub(super) fn value(&self, operation: &Operation, value: Value) -> Import<InstId> {
        self.values.get(&value).copied().ok_or_else(|| {
            let why = "uses a value from outside its region, which only loops and branches can; \
                       pass it as an operand";
            ImportError::unsupported(operation, why)
        })
    }

    pub(super) fn operands(&self, operation: &Operation) -> Import<Vec<InstId>> {
        operation.operands.iter().map(|&value| self.value(operation, value)).collect()
    }

    /// Returns the shape of a value.
    pub(super) fn shape_of(&self, operation: &Operation, value: Value) -> Import<Shape> {
        let ty = self.importer.program.type_of(value);
        let ty = ty.ok_or_else(|| ImportError::malformed(operation, "has a value without type"))?;
        let shape = types::shape(ty).map_err(|what| {
            ImportError::unsupported(operation, &format!("has {what}; HLO does not"))
        })?;
        Ok(match (shape, Quantized::of(ty)) {
            (Shape::Array(array), Some(ty)) => {
                Shape::Array(array.with_element_type(self.elements.of(&ty)))
            }
            (shape, _) => shape,
        })
    }

    /// Returns the shape of an operation's results: several are a tuple.
    pub(super) fn result_shape(&self, operation: &Operation) -> Import<Shape> {
        let shapes = operation.results.iter().map(|&result| self.shape_of(operation, result));
        let mut shapes = shapes.collect::<Import<Vec<Shape>>>()?;
        Ok(match shapes.pop() {
            Some(only) if shapes.is_empty() => only,
            last => Shape::Tuple(shapes.into_iter().chain(last).collect()),
        })
    }

    /// Binds the results of an operation to an instruction: several are the elements of a tuple.
    pub(super) fn bind(&mut self, operation: &Operation, id: InstId) -> Import<()> {
        match operation.results[..] {
            [only] => {
                self.values.insert(only, id);
                Ok(())
            }
            _ => self.bind_elements(operation, id),
        }
    }

    /// Binds the results of an operation to the elements of a tuple.
    pub(super) fn bind_elements(&mut self, operation: &Operation, tuple: InstId) -> Import<()> {
        let sharding = self.scope.sharding.clone();
        for (index, &result) in operation.results.iter().enumerate() {
            self.scope.sharding = sharding.as_ref().map(|all| shardings::element(all, index));
            let element = self.element(tuple, index)?;
            self.values.insert(result, element);
        }
        self.scope.sharding = sharding;
        Ok(())
    }

    /// Adds an instruction with what the scope says.
    pub(super) fn emit(&mut self, op: Op, shape: Shape, operands: &[InstId]) -> Import<InstId> {
        let opcode = op.opcode().name();
        let named = self.scope.metadata.as_ref().and_then(|m| m.op_name.rsplit('/').next());
        let name = named.filter(|name| !name.is_empty()).map_or_else(|| opcode.into(), sanitized);
        self.emit_named(op, shape, operands, &name)
    }

    fn emit_named(
        &mut self,
        op: Op,
        mut shape: Shape,
        operands: &[InstId],
        name: &str,
    ) -> Import<InstId> {
        let module = &mut self.importer.module;
        if !matches!(op, Op::CustomCall(_) | Op::Infeed(_)) {
            let shapes: Vec<&Shape> = operands.iter().map(|&id| module.shape(id)).collect();
            bound(module, &op, &shapes, &mut shape);
            infer_layout(&op, &shapes, &mut shape);
        }
        fill_layouts(&mut shape);
        let name = module.fresh_name(name);
        let position = Position::End(self.computation);
        let inserted = module.insert(position, op, shape, operands, name);
        let id = match inserted {
            Ok(id) => id,
            Err(error) => return Err(self.invalid(&error.to_string())),
        };
        let Scope { metadata, sharding, attributes } = &self.scope;
        if let Some(metadata) = metadata {
            module.set_metadata(id, metadata.clone());
        }
        if sharding.is_some() || !attributes.is_empty() {
            let mut extras = Extras::default();
            extras.sharding = sharding.clone().map(Box::new);
            extras.frontend_attributes.clone_from(attributes);
            module.set_extras(id, extras);
        }
        Ok(id)
    }

    /// The error of an operation that yields no valid instruction.
    pub(super) fn invalid(&self, why: &str) -> ImportError {
        ImportError::new(ImportErrorKind::Invalid, self.span, why)
    }
}

pub(super) fn is_constant(operation: &Operation) -> bool {
    let name = operation.name.as_str();
    name != "func.constant" && name.split_once('.').is_some_and(|(_, op)| op == "constant")
}

/// Gives dims of which the program says no size those that XLA infers from the operands.
fn bound(module: &Module, op: &Op, operands: &[&Shape], shape: &mut Shape) {
    let is_unbounded =
        |shape: &Shape| shape.as_array().is_some_and(|array| array.dims().contains(&UNBOUNDED));
    if !is_unbounded(shape) {
        return;
    }
    if let (Ok(Shape::Array(found)), Shape::Array(declared)) =
        (infer_shape(module, op, operands, None), &*shape)
        && found.rank() == declared.rank()
        && found.element_type == declared.element_type
    {
        *shape = Shape::Array(found);
    }
}

/// Gives arrays without a layout the row-major one.
pub(super) fn fill_layouts(shape: &mut Shape) {
    match shape {
        Shape::Array(array) if array.layout.is_none() => {
            array.layout = Some(Layout::descending(array.rank()));
        }
        Shape::Tuple(elements) => elements.iter_mut().for_each(fill_layouts),
        Shape::Buffer(inner) => fill_layouts(inner),
        Shape::Array(_) | Shape::Token | Shape::Opaque => {}
    }
}

/// Returns a name with only the characters that names in HLO have.
pub(super) fn sanitized(name: &str) -> String {
    let keep =
        |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-') { c } else { '_' };
    let name: String = name.chars().map(keep).collect();
    match name.chars().next() {
        Some(first) if first.is_ascii_alphabetic() || first == '_' => name,
        _ => format!("_{name}"),
    }
}
