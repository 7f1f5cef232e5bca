//! Loops, branches and calls.

use smallvec::SmallVec;
use tilewright_ir::ops::control::{ApiVersion, CustomCallAttrs, WhileAttrs};
use tilewright_ir::{CompId, InstId, Op, Shape};

use super::attributes::parsed;
use super::body::Body;
use super::error::Export;
use super::forms::text;
use super::types;
use super::value::Yield;
use crate::mlir::{Attribute, Attributes, Region};

/// Converts an op that calls computations or an outside function.
pub(super) fn convert<'m>(body: &mut Body<'_, 'm>, id: InstId, op: &'m Op) -> Export<()> {
    match op {
        Op::While(attrs) => while_loop(body, id, attrs),
        Op::Conditional(attrs) => {
            if attrs.branch_computations.is_empty() {
                let both = [attrs.true_computation, attrs.false_computation];
                let branches: Vec<CompId> = both.into_iter().flatten().collect();
                conditional(body, id, "stablehlo.if", &branches)
            } else {
                conditional(body, id, "stablehlo.case", &attrs.branch_computations)
            }
        }
        Op::Call(attrs) if attrs.is_composite => composite(body, id, attrs.to_apply),
        Op::Call(attrs) => call(body, id, attrs.to_apply),
        Op::CustomCall(attrs) => custom_call(body, id, attrs),
        // A call computes the same, and every compiler takes it.
        Op::Fusion(attrs) => call(body, id, attrs.calls),
        _ => Err(body.unsupported("StableHLO has no such op")),
    }
}

/// The parts of the loop's tuple are arguments of both regions.
fn while_loop<'m>(body: &mut Body<'_, 'm>, id: InstId, attrs: &'m WhileAttrs) -> Export<()> {
    let operands = body.operand_values(id)?;
    let condition = body.region(attrs.condition)?;
    let step = body.region(attrs.body)?;
    body.emit(id, "stablehlo.while", &operands, Attributes::new(), vec![condition, step])
}

/// The branches use the operands directly.
fn conditional<'m>(
    body: &mut Body<'_, 'm>,
    id: InstId,
    name: &str,
    branches: &[CompId],
) -> Export<()> {
    let mut regions: Vec<Region> = Vec::new();
    for (number, &branch) in branches.iter().enumerate() {
        let operand = body.yielded(body.operand(id, number + 1)?)?;
        regions.push(body.region_with(branch, Vec::new(), vec![operand])?);
    }
    let selector = body.yielded(body.operand(id, 0)?)?.leaves();
    body.emit(id, name, &selector, Attributes::new(), regions)
}

fn call(body: &mut Body<'_, '_>, id: InstId, to_apply: CompId) -> Export<()> {
    let name = body.exporter.name_of(to_apply);
    let operands = body.operand_values(id)?;
    let callee = Attribute::Symbol(SmallVec::from_iter([name]));
    body.emit(id, "func.call", &operands, vec![("callee".into(), callee)], Vec::new())
}

/// The frontend attributes of a composite call name the op that it stands for.
fn composite(body: &mut Body<'_, '_>, id: InstId, to_apply: CompId) -> Export<()> {
    let extras = body.exporter.module.extras(id);
    let attribute = |name: &str| {
        let known = extras.map(|extras| &extras.frontend_attributes);
        let entry = known.and_then(|list| list.iter().find(|(known, _)| known == name));
        entry.map(|(_, value)| super::arguments::unquoted(value)).unwrap_or_default()
    };
    let attributes = attribute("composite.attributes");
    let attributes = if attributes.is_empty() { "{}" } else { &attributes };
    let attributes = parsed(attributes).ok_or_else(|| {
        body.unsupported("the attributes of the composite are no dictionary of MLIR")
    })?;
    let name = attribute("composite.name");
    let version = attribute("composite.version").parse().unwrap_or(0);
    let function = body.exporter.name_of(to_apply);
    let operands = body.operand_values(id)?;
    let attributes = vec![
        ("composite_attributes".into(), attributes),
        ("decomposition".into(), Attribute::Symbol(SmallVec::from_iter([function]))),
        text("name", &name),
        ("version".into(), Attribute::integer(version, 32)),
    ];
    body.emit(id, "stablehlo.composite", &operands, attributes, Vec::new())
}

fn custom_call(body: &mut Body<'_, '_>, id: InstId, attrs: &CustomCallAttrs) -> Export<()> {
    if attrs.window.is_some() || attrs.dim_labels.is_some() {
        return Err(body.unsupported("StableHLO has no custom calls with windows"));
    }
    let version = match attrs.api_version {
        ApiVersion::Unspecified => 0,
        ApiVersion::Original => 1,
        ApiVersion::StatusReturning => 2,
        ApiVersion::StatusReturningUnified => 3,
        ApiVersion::TypedFfi => 4,
    };
    let mut attributes = vec![("api_version".into(), Attribute::integer(version, 32))];
    attributes.extend(backend_config(body, id, attrs.api_version)?);
    attributes.push(text("call_target_name", &attrs.custom_call_target));
    let called: Vec<CompId> =
        attrs.to_apply.into_iter().chain(attrs.called_computations.iter().copied()).collect();
    if !called.is_empty() {
        let symbol = |computation| {
            Attribute::Symbol(SmallVec::from_iter([body.exporter.name_of(computation)]))
        };
        let called = Attribute::Array(called.into_iter().map(symbol).collect());
        attributes.push(("called_computations".into(), called));
    }
    attributes.push(("has_side_effect".into(), Attribute::Bool(attrs.custom_call_has_side_effect)));
    attributes.extend(layouts(body, id, attrs));
    attributes.push(("output_operand_aliases".into(), aliases(attrs)));
    emit_whole(body, id, attributes)
}

/// The operands and the result of a custom call may be tuples.
fn emit_whole(body: &mut Body<'_, '_>, id: InstId, attributes: Attributes) -> Export<()> {
    let module = body.exporter.module;
    let mut operands = Vec::new();
    for &operand in module.operands(id) {
        let yielded = body.yielded(operand)?;
        operands.push(whole(body, &yielded, module.shape(operand))?);
    }
    let is_nested = module.shape(id).as_tuple().is_some_and(|parts| {
        parts.len() == 1 || parts.iter().any(|part| part.as_tuple().is_some())
    });
    if !is_nested {
        return body.emit(id, "stablehlo.custom_call", &operands, attributes, Vec::new());
    }
    let ty = types::ty(module.shape(id));
    let ty = ty.ok_or_else(|| body.unsupported("StableHLO has no values of this shape"))?;
    let mut attributes = attributes;
    attributes.extend(module.extras(id).map(super::arguments::common).unwrap_or_default());
    let tuple = body.help("stablehlo.custom_call", &operands, attributes, ty);
    let parts = parts(body, tuple, module.shape(id))?;
    body.yields.insert(id, parts);
    Ok(())
}

/// Returns a value as one; a tuple is made of its parts.
fn whole(body: &mut Body<'_, '_>, yielded: &Yield, shape: &Shape) -> Export<crate::mlir::Value> {
    match (yielded, shape) {
        (Yield::One(value), _) => Ok(*value),
        (Yield::Tuple(parts), Shape::Tuple(shapes)) => {
            let values = parts.iter().zip(shapes).map(|(part, shape)| whole(body, part, shape));
            let values = values.collect::<Export<Vec<_>>>()?;
            let ty = types::ty(shape);
            let ty = ty.ok_or_else(|| body.unsupported("StableHLO has no values of this shape"))?;
            Ok(body.help("stablehlo.tuple", &values, Attributes::new(), ty))
        }
        _ => Err(body.invalid("a tuple has the shape of an array")),
    }
}

/// Returns the parts of a value that is a tuple.
fn parts(body: &mut Body<'_, '_>, value: crate::mlir::Value, shape: &Shape) -> Export<Yield> {
    let Shape::Tuple(shapes) = shape else { return Ok(Yield::One(value)) };
    let mut all = Vec::new();
    for (index, shape) in (0i64..).zip(shapes) {
        let ty = types::ty(shape);
        let ty = ty.ok_or_else(|| body.unsupported("StableHLO has no values of this shape"))?;
        let index = vec![("index".into(), Attribute::integer(index, 32))];
        let part = body.help("stablehlo.get_tuple_element", &[value], index, ty);
        all.push(parts(body, part, shape)?);
    }
    Ok(Yield::Tuple(all))
}

/// The configuration is text, but a dictionary for the typed interface.
fn backend_config(
    body: &Body<'_, '_>,
    id: InstId,
    version: ApiVersion,
) -> Export<Option<(smol_str::SmolStr, Attribute)>> {
    let extras = body.exporter.module.extras(id);
    let config = extras.and_then(|extras| extras.backend_config.as_ref());
    if version == ApiVersion::TypedFfi {
        return match parsed(config.map_or("{}", |config| &config.0)) {
            Some(config @ Attribute::Dictionary(_)) => Ok(Some(("backend_config".into(), config))),
            _ => {
                Err(body.unsupported("the configuration of a typed call is no dictionary of MLIR"))
            }
        };
    }
    let bytes = match config {
        Some(config) => tilewright_ir::backend_config::to_bytes(config)
            .ok_or_else(|| body.unsupported("the configuration has a malformed escape"))?,
        None => Vec::new(),
    };
    Ok(Some(("backend_config".into(), Attribute::String(bytes.into()))))
}

/// Returns the layouts of operands and results, if they are constrained.
fn layouts(body: &Body<'_, '_>, id: InstId, attrs: &CustomCallAttrs) -> Attributes {
    let Some(operands) = &attrs.operand_layout_constraints else { return Vec::new() };
    let result = body.exporter.module.shape(id);
    let results = match result {
        Shape::Tuple(parts) => parts.as_slice(),
        other => std::slice::from_ref(other),
    };
    let orders = |shapes: &[Shape]| Attribute::Array(shapes.iter().map(order).collect());
    vec![("operand_layouts".into(), orders(operands)), ("result_layouts".into(), orders(results))]
}

fn order(shape: &Shape) -> Attribute {
    match shape {
        Shape::Array(array) => super::attributes::order(&array.layout_or_default().minor_to_major),
        _ => super::attributes::order(&[]),
    }
}

fn aliases(attrs: &CustomCallAttrs) -> Attribute {
    let aliases = attrs.output_to_operand_aliasing.iter().map(|alias| {
        let parameters = vec![
            ("output_tuple_indices".into(), Attribute::i64s(alias.output.iter().copied())),
            ("operand_index".into(), Attribute::i64(alias.operand)),
            ("operand_tuple_indices".into(), Attribute::i64s(alias.operand_part.iter().copied())),
        ];
        Attribute::structure("stablehlo", "output_operand_alias", parameters)
    });
    Attribute::Array(aliases.collect())
}
