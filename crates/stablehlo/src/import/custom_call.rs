//! `stablehlo.custom_call`.

use tilewright_ir::ops::attr::{AttrValue, AttrValues, Verbatim};
use tilewright_ir::ops::control::{ApiVersion, CustomCallAttrs, OutputAlias};
use tilewright_ir::{Dims, Layout, Op, Opcode, Shape};

use super::approx_top_k;
use super::attributes::{
    integer, integers, misfit, missing, optional_bool, optional_int, optional_text, parameter, text,
};
use super::body::{Body, fill_layouts};
use super::error::{Import, ImportError};
use super::{forms, literal};
use crate::mlir::{Attribute, Operation};

/// Targets whose result has the buffer of the operand.
const ALIASING: &[&str] = &["Pin", "Unpin"];

/// Targets of Shardy whose results do not keep the attributes.
const LOCAL: &[&str] = &[CustomCallAttrs::TO_SHARDS, CustomCallAttrs::TO_WHOLES];

/// Converts a custom call.
pub(crate) fn custom_call<'p>(body: &mut Body<'_, 'p>, operation: &'p Operation) -> Import<()> {
    let target = optional_text(operation, "call_target_name")?
        .ok_or_else(|| missing(operation, "call_target_name"))?;
    if target == "ApproxTopK" {
        return approx_top_k::approx_top_k(body, operation);
    }
    if target == "ragged_all_to_all" {
        return ragged_all_to_all(body, operation);
    }
    let operands = body.operands(operation)?;
    let mut shape = body.result_shape(operation)?;
    let (config, api_version) = config_and_version(operation)?;
    let mut attrs = CustomCallAttrs {
        custom_call_has_side_effect: optional_bool(operation, "has_side_effect")?.unwrap_or(false),
        api_version,
        output_to_operand_aliasing: aliases(operation)?,
        ..CustomCallAttrs::default()
    };
    if ALIASING.contains(&target.as_str()) {
        let (output, operand_part) = (Dims::new(), Dims::new());
        attrs.output_to_operand_aliasing = vec![OutputAlias { output, operand: 0, operand_part }];
    }
    if let Some(value) = operation.attribute("mhlo.literal") {
        let value = literal::literal(value);
        let value = value.map_err(|why| ImportError::malformed(operation, &why))?;
        attrs.literal = Some(Box::new(value));
    }
    attrs.custom_call_target = target;
    attrs.called_computations = body.callee(operation)?.into_iter().collect();
    if operation.attribute("operand_layouts").is_some() {
        let shapes = operands.iter().map(|&id| body.importer.module.shape(id).without_layout());
        let mut shapes: Vec<Shape> = shapes.collect();
        set_layouts(operation, "operand_layouts", &mut shapes)?;
        attrs.operand_layout_constraints = Some(shapes);
        match &mut shape {
            Shape::Tuple(elements) => set_layouts(operation, "result_layouts", elements)?,
            other => set_layouts(operation, "result_layouts", std::slice::from_mut(other))?,
        }
    }
    let is_local = LOCAL.contains(&attrs.custom_call_target.as_str());
    let id = body.emit(Op::CustomCall(Box::new(attrs)), shape, &operands)?;
    if let Some(config) = config {
        let mut extras = body.importer.module.extras(id).cloned().unwrap_or_default();
        extras.backend_config = Some(config);
        body.importer.module.set_extras(id, extras);
    }
    if is_local && operation.results.len() != 1 {
        body.scope.attributes.clear();
    }
    body.bind(operation, id)
}

impl<'p> Body<'_, 'p> {
    /// Returns the function that a custom call names.
    pub(super) fn callee(
        &mut self,
        operation: &'p Operation,
    ) -> Import<Option<tilewright_ir::CompId>> {
        let called = match operation.attribute("called_computations") {
            None => return Ok(None),
            Some(Attribute::Array(called)) => called.as_slice(),
            Some(_) => return Err(misfit(operation, "called_computations", "functions")),
        };
        match called {
            [] => Ok(None),
            [Attribute::Symbol(path)] => {
                let name = path.first().cloned().unwrap_or_default();
                self.importer.called(operation, &name, self.computation).map(Some)
            }
            _ => Err(ImportError::unsupported(operation, "calls more than one function")),
        }
    }
}

fn api_version(operation: &Operation) -> Import<ApiVersion> {
    Ok(match optional_int(operation, "api_version")? {
        None | Some(1) => ApiVersion::Original,
        Some(0) => ApiVersion::Unspecified,
        Some(2) => ApiVersion::StatusReturning,
        Some(3) => ApiVersion::StatusReturningUnified,
        Some(4) => ApiVersion::TypedFfi,
        Some(_) => return Err(misfit(operation, "api_version", "a number from 0 to 4")),
    })
}

fn aliases(operation: &Operation) -> Import<Vec<OutputAlias>> {
    let list = match operation.attribute("output_operand_aliases") {
        None => return Ok(Vec::new()),
        Some(Attribute::Array(list)) => list,
        Some(_) => return Err(misfit(operation, "output_operand_aliases", "a list")),
    };
    let alias = |entry: &Attribute| {
        let Attribute::Dialect(alias) = entry else { return None };
        let indices = |name| -> Dims {
            let list = parameter(alias, name).and_then(integers).unwrap_or_default();
            list.into_iter().collect()
        };
        Some(OutputAlias {
            output: indices("output_tuple_indices"),
            operand: parameter(alias, "operand_index").and_then(integer)?,
            operand_part: indices("operand_tuple_indices"),
        })
    };
    let aliases = list.iter().map(alias).collect::<Option<_>>();
    aliases.ok_or_else(|| misfit(operation, "output_operand_aliases", "aliases of operands"))
}

/// The configuration of a `ragged_all_to_all` has its groups and its channel.
fn ragged_all_to_all<'p>(body: &mut Body<'_, 'p>, operation: &'p Operation) -> Import<()> {
    const GROUPS: &str = "backend_config.replica_groups";
    let program = body.importer.program;
    let groups = forms::groups(program, operation, GROUPS)?;
    let mut values = AttrValues::default();
    values.insert("replica_groups", groups.ok_or_else(|| missing(operation, GROUPS))?);
    if let Some(channel) = optional_int(operation, "backend_config.channel_id")? {
        values.insert("channel_id", AttrValue::Int(channel));
    }
    let op = super::rows::with_values(Opcode::RaggedAllToAll, operation, &mut values)?;
    let (operands, shape) = (body.operands(operation)?, body.result_shape(operation)?);
    let id = body.emit(op, shape, &operands)?;
    body.bind(operation, id)
}

/// Returns the configuration and the version. A dictionary that an older version cannot have is in
/// an attribute of its own, and makes the call a typed one.
fn config_and_version(operation: &Operation) -> Import<(Option<Verbatim>, ApiVersion)> {
    let version = api_version(operation)?;
    let own = operation.attribute("backend_config").and_then(text).unwrap_or_default();
    match operation.attribute("mhlo.backend_config") {
        Some(config @ Attribute::Dictionary(_))
            if version == ApiVersion::Original && own.is_empty() =>
        {
            let config = Verbatim(crate::print::attribute(config).into_boxed_str());
            Ok((Some(config), ApiVersion::TypedFfi))
        }
        _ => Ok((backend_config(operation, version)?, version)),
    }
}

/// Returns the configuration as text. That of the typed interface is a dictionary.
fn backend_config(operation: &Operation, version: ApiVersion) -> Import<Option<Verbatim>> {
    let is_typed = version == ApiVersion::TypedFfi;
    Ok(match operation.attribute("backend_config") {
        None => None,
        Some(Attribute::String(bytes)) if bytes.is_empty() => None,
        Some(Attribute::String(bytes)) if !is_typed => {
            Some(tilewright_ir::backend_config::to_text(bytes))
        }
        Some(config @ Attribute::Dictionary(_)) if is_typed => {
            Some(Verbatim(crate::print::attribute(config).into_boxed_str()))
        }
        Some(_) => {
            let expected = if is_typed { "a dictionary" } else { "a string" };
            return Err(misfit(operation, "backend_config", expected));
        }
    })
}

fn set_layouts(operation: &Operation, name: &str, shapes: &mut [Shape]) -> Import<()> {
    let list = match operation.attribute(name) {
        Some(Attribute::Array(list)) if list.len() == shapes.len() => list,
        _ => return Err(misfit(operation, name, "an order of dims for each value")),
    };
    for (shape, order) in shapes.iter_mut().zip(list) {
        let order = integers(order).ok_or_else(|| misfit(operation, name, "orders of dims"))?;
        if let Shape::Array(array) = shape {
            let order = order.into_iter().filter_map(|dim| u32::try_from(dim).ok());
            array.layout = Some(Layout::new(order));
        }
        fill_layouts(shape);
    }
    Ok(())
}
