//! Shardy's operations and attributes as custom calls and frontend attributes.
//!
//! XLA keeps them so when a program becomes HLO, and makes them Shardy's again before it
//! partitions the program (`xla/service/spmd/shardy/sdy_round_trip`).
//!
//! ```text
//! sdy.mesh                 xla.sdy.meshes of the module
//! sdy.sharding             xla.sdy.sharding of a parameter or an op
//! sdy.sharding of results  a custom call xla.sdy.FuncResultSharding before the return
//! sdy.sharding_constraint  a custom call Sharding
//! sdy.manual_computation   a call between xla.sdy.GlobalToLocalShape and LocalToGlobalShape
//! ```

mod meshes;
mod placement;
mod rewrite;

use smol_str::SmolStr;

use super::body::Body;
use super::error::{Import, ImportError};
use super::special;
use crate::mlir::{Attribute, Attributes, Operation, Program, Value};
use meshes::MeshNames;

/// Replaces what is Shardy's in a program.
pub(super) fn export(program: &Program) -> Import<Program> {
    let mut program = program.clone();
    let names = MeshNames::of(&program);
    let mut rewriter = rewrite::Rewriter::new(&names, std::mem::take(&mut program.values));
    for region in &mut program.module.regions {
        for block in &mut region.blocks {
            rewriter.top(block)?;
        }
    }
    program.values = rewriter.finish();
    if !names.is_empty() {
        let meshes = ("xla.sdy.meshes".into(), names.dictionary());
        add_frontend(&mut program.module.attributes, meshes);
    }
    placement::place(&mut program);
    Ok(program)
}

/// One of Shardy's collectives along no axes, which moves nothing; others come from its partitioner.
pub(crate) fn along_no_axes<'p>(body: &mut Body<'_, 'p>, operation: &'p Operation) -> Import<()> {
    const AXES: [&str; 4] =
        ["gathering_axes", "reduce_scatter_axes", "reduction_axes", "slicing_axes"];
    let mut axes = AXES.iter().filter_map(|name| operation.attribute(name));
    let are_none = |axes: &Attribute| match axes {
        Attribute::Opaque { text, .. } => !text.contains('"'),
        _ => false,
    };
    if !axes.next().is_some_and(are_none) {
        let why = "exchanges values between devices, which XLA does not convert; give XLA the program \
                   before Shardy partitions it";
        return Err(ImportError::unsupported(operation, why));
    }
    special::same(body, operation)
}

/// Adds a frontend attribute.
fn add_frontend(attributes: &mut Attributes, (name, text): (SmolStr, String)) {
    let value = Attribute::String(text.into_bytes().into());
    let known = attributes.iter_mut().find(|(name, _)| name == "mhlo.frontend_attributes");
    if let Some((_, Attribute::Dictionary(entries))) = known {
        entries.retain(|(known, _)| *known != name);
        entries.push((name, value));
        return;
    }
    let entries = Attribute::Dictionary(vec![(name, value)]);
    attributes.push(("mhlo.frontend_attributes".into(), entries));
}

/// A custom call with a frontend attribute.
fn custom_call(
    of: &Operation,
    target: &str,
    (operands, results): (&[Value], &[Value]),
    has_side_effect: bool,
) -> Operation {
    let target = Attribute::String(target.as_bytes().into());
    Operation {
        name: "stablehlo.custom_call".into(),
        operands: operands.into(),
        results: results.into(),
        attributes: vec![
            ("call_target_name".into(), target),
            ("has_side_effect".into(), Attribute::Bool(has_side_effect)),
        ],
        regions: Vec::new(),
        location: of.location.clone(),
        span: of.span,
    }
}
