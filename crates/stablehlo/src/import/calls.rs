//! Functions and calls of them.

use smol_str::SmolStr;
use tilewright_ir::metadata::InputOutputAlias;
use tilewright_ir::ops::attr::Verbatim;
use tilewright_ir::ops::control::CallAttrs;
use tilewright_ir::{CompId, Dims, Op, Shape};

use super::attributes::{integer, optional_int, optional_text, symbol};
use super::body::{Body, Returns};
use super::error::{Import, ImportError, ImportErrorKind};
use super::{Importer, shardings};
use crate::mlir::{Attribute, Block, Operation, value_of};

/// The type of a function's attributes of one argument or result.
type Dictionary = [(SmolStr, Attribute)];

/// Returns the attributes of an argument or a result.
fn of_value<'a>(function: &'a Operation, list: &str, number: usize) -> &'a Dictionary {
    match function.attribute(list) {
        Some(Attribute::Array(entries)) => match entries.get(number) {
            Some(Attribute::Dictionary(dictionary)) => dictionary,
            _ => &[],
        },
        _ => &[],
    }
}

fn body_of(function: &Operation) -> Import<&Block> {
    match function.regions.first().map(|region| region.blocks.as_slice()) {
        Some([block]) => Ok(block),
        Some([_, _, ..]) => {
            Err(ImportError::unsupported(function, "has several blocks; HLO has no jumps"))
        }
        _ => Err(ImportError::unsupported(function, "has no body; define it in the program")),
    }
}

impl<'p> Importer<'p> {
    /// Converts `main`.
    pub(super) fn entry(&mut self, main: &'p Operation) -> Import<CompId> {
        self.lowered.insert("main".into(), None);
        let block = body_of(main)?;
        let entry = self.function_body("main", main, block, None)?;
        for number in 0..block.arguments.len() {
            self.alias(main, number)?;
        }
        Ok(entry)
    }

    /// Notes which results may use the buffer of a parameter.
    fn alias(&mut self, main: &Operation, number: usize) -> Import<()> {
        let attributes = of_value(main, "arg_attrs", number);
        let parameter = i64::try_from(number).unwrap_or(i64::MAX);
        if value_of(attributes, "jax.buffer_donor").is_some() {
            self.module.header.buffer_donors.push((parameter, Dims::new()));
        }
        let Some(output) = value_of(attributes, "tf.aliasing_output") else { return Ok(()) };
        let output = integer(output).ok_or_else(|| {
            ImportError::malformed(main, "takes an integer as `tf.aliasing_output`")
        })?;
        let results = match main.attribute("function_type") {
            Some(Attribute::Type(ty)) => match &**ty {
                crate::mlir::Type::Function(ty) => ty.results.len(),
                _ => 0,
            },
            _ => 0,
        };
        let output: Dims = if results == 1 { Dims::new() } else { [output].into_iter().collect() };
        self.module.header.input_output_alias.push(InputOutputAlias {
            output,
            parameter,
            parameter_part: Dims::new(),
            must: false,
        });
        Ok(())
    }

    /// Converts a function that is called, once.
    pub(super) fn called(
        &mut self,
        operation: &Operation,
        name: &str,
        caller: CompId,
    ) -> Import<CompId> {
        match self.lowered.get(name) {
            Some(Some(computation)) => return Ok(*computation),
            Some(None) => {
                let message = format!("`{name}` calls itself, which HLO does not allow");
                return Err(ImportError::new(ImportErrorKind::TooDeep, operation.span, message));
            }
            None => {}
        }
        self.lowered.insert(name.into(), None);
        let computation = self.copied(operation, name, caller)?;
        self.lowered.insert(name.into(), Some(computation));
        Ok(computation)
    }

    /// Converts a function that is called, into a computation of its own.
    fn copied(&mut self, operation: &Operation, name: &str, caller: CompId) -> Import<CompId> {
        let Some(function) = self.function(name) else {
            let why = format!("calls `{name}`, which the program does not define");
            return Err(ImportError::malformed(operation, &why));
        };
        self.function_body(name, function, body_of(function)?, Some(caller))
    }

    fn function_body(
        &mut self,
        name: &str,
        function: &'p Operation,
        block: &'p Block,
        caller: Option<CompId>,
    ) -> Import<CompId> {
        let computation = self.begin(name, caller, function.span)?;
        let mut body = Body::new(self, computation, function.span);
        for (number, &argument) in block.arguments.iter().enumerate() {
            let attributes = of_value(function, "arg_attrs", number);
            body.scope.attributes = shardings::frontend(attributes);
            body.scope.sharding = shardings::in_attributes(attributes, function)?;
            let shape = body.shape_of(function, argument)?;
            let leaves = shape.leaves().len();
            let parameter = body.parameter(number, shape, Some(argument))?;
            body.values.insert(argument, parameter);
            body.replicate(parameter, attributes, leaves);
        }
        body.scope = super::body::Scope::default();
        let results = match function.attribute("res_attrs") {
            Some(Attribute::Array(results)) => results.len(),
            _ => 0,
        };
        let sharding =
            |number| shardings::in_attributes(of_value(function, "res_attrs", number), function);
        let shardings = (0..results).map(sharding).collect::<Import<Vec<_>>>()?;
        body.block(block, &Returns { implicit: &[], shardings })?;
        let thread = optional_text(function, "execution_thread")?;
        self.module.set_execution_thread(computation, thread);
        self.end();
        Ok(computation)
    }
}

impl Body<'_, '_> {
    /// Notes whether a parameter is the same on all devices.
    fn replicate(&mut self, id: tilewright_ir::InstId, attributes: &Dictionary, leaves: usize) {
        let all = match value_of(attributes, "mhlo.is_same_data_across_replicas") {
            Some(Attribute::Bool(true) | Attribute::Unit) => vec![true; leaves],
            _ => match value_of(attributes, "mhlo.parameter_replication") {
                Some(Attribute::Array(list)) => {
                    list.iter().map(|entry| matches!(entry, Attribute::Bool(true))).collect()
                }
                _ => return,
            },
        };
        let mut extras = self.importer.module.extras(id).cloned().unwrap_or_default();
        extras.parameter_replication = all;
        self.importer.module.set_extras(id, extras);
    }

    pub(super) fn emit_call(
        &mut self,
        operation: &Operation,
        to_apply: CompId,
        is_composite: bool,
    ) -> Import<()> {
        let operands = self.operands(operation)?;
        let root = self.importer.module.computation(to_apply).root();
        let shape =
            root.map_or(Shape::Tuple(Vec::new()), |root| self.importer.module.shape(root).clone());
        let op = Op::Call(Box::new(CallAttrs { to_apply, is_composite }));
        let id = self.emit(op, shape, &operands)?;
        self.bind(operation, id)
    }
}

/// `func.call`.
pub(crate) fn call<'p>(body: &mut Body<'_, 'p>, operation: &'p Operation) -> Import<()> {
    let callee = symbol(operation, "callee")?;
    let computation = body.importer.called(operation, &callee, body.computation)?;
    let at = body.scope.attributes.iter().position(|(name, _)| name == "backend_config");
    let config = at.map(|at| body.scope.attributes.remove(at).1);
    body.emit_call(operation, computation, false)?;
    if let (Some(config), Some(&result)) = (config, operation.results.first())
        && let Some(&id) = body.values.get(&result)
    {
        let mut extras = body.importer.module.extras(id).cloned().unwrap_or_default();
        extras.backend_config = Some(Verbatim(config));
        body.importer.module.set_extras(id, extras);
    }
    Ok(())
}

/// `stablehlo.composite`: a call that names what it stands for in its frontend attributes.
pub(crate) fn composite<'p>(body: &mut Body<'_, 'p>, operation: &'p Operation) -> Import<()> {
    if !operation.regions.is_empty() {
        return Err(ImportError::unsupported(operation, "has regions, which XLA does not convert"));
    }
    let decomposition = symbol(operation, "decomposition")?;
    let name = optional_text(operation, "name")?
        .ok_or_else(|| super::attributes::missing(operation, "name"))?;
    let version = optional_int(operation, "version")?.unwrap_or(0);
    let computation = body.importer.copied(operation, &decomposition, body.computation)?;
    let attributes = match operation.attribute("composite_attributes") {
        Some(attribute) => crate::print::attribute(attribute),
        None => "{}".into(),
    };
    body.scope.attributes.extend([
        ("composite.attributes".into(), attributes.into_boxed_str()),
        ("composite.name".into(), name.as_str().into()),
        ("composite.version".into(), version.to_string().into_boxed_str()),
    ]);
    body.scope.attributes.sort_by(|(a, _), (b, _)| a.cmp(b));
    body.emit_call(operation, computation, true)
}
