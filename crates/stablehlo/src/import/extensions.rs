//! Ops within custom calls and composites.
//!
//! Programs that may have only StableHLO's own ops carry others in custom calls,
//! `stablehlo.custom_call @mhlo.erf(%x) {mhlo.attributes = {}, mhlo.version = 1}`, and in composites,
//! `stablehlo.composite "chlo.erf" %x {decomposition = @chlo.erf.impl, version = 1 : i32}`
//! (`stablehlo_ext`'s passes, `xla/mlir_hlo/mhlo/transforms/hlo_legalize_to_stablehlo`).

use std::borrow::Cow;

use smol_str::SmolStr;

use crate::mlir::{Attribute, Operation, Program};

/// Returns a program whose custom calls and composites are the ops that they carry.
pub(super) fn unwrapped(program: &Program) -> Cow<'_, Program> {
    if !has_extension(&program.module) {
        return Cow::Borrowed(program);
    }
    let mut program = program.clone();
    let mut rest = vec![&mut program.module];
    while let Some(operation) = rest.pop() {
        if let Some((name, attributes)) = extension(operation) {
            let kept = operation.attributes.drain(..).filter(|(name, _)| {
                // Those of the custom call itself have no dialect.
                name.contains('.') && name != "mhlo.attributes" && name != "mhlo.version"
            });
            operation.attributes = kept.chain(attributes).collect();
            operation.name = name;
        }
        let blocks = operation.regions.iter_mut().flat_map(|region| &mut region.blocks);
        rest.extend(blocks.flat_map(|block| &mut block.operations));
    }
    Cow::Owned(program)
}

fn has_extension(module: &Operation) -> bool {
    let mut rest = vec![module];
    while let Some(operation) = rest.pop() {
        if extension(operation).is_some() {
            return true;
        }
        let blocks = operation.regions.iter().flat_map(|region| &region.blocks);
        rest.extend(blocks.flat_map(|block| &block.operations));
    }
    false
}

/// The name and the attributes of an op.
type Named = (SmolStr, Vec<(SmolStr, Attribute)>);

/// Returns the name and the attributes of the op in a custom call or a composite.
fn extension(operation: &Operation) -> Option<Named> {
    match operation.name.as_str() {
        "stablehlo.composite" => return composite(operation),
        "stablehlo.custom_call" => {}
        _ => return None,
    }
    operation.attribute("mhlo.version")?;
    let Attribute::String(target) = operation.attribute("call_target_name")? else { return None };
    let target = std::str::from_utf8(target)
        .ok()
        .filter(|name| name.starts_with("mhlo.") || name.starts_with("chlo."))?;
    let attributes = match operation.attribute("mhlo.attributes") {
        Some(Attribute::Dictionary(attributes)) => attributes.clone(),
        None => Vec::new(),
        Some(_) => return None,
    };
    Some((target.into(), attributes))
}

fn composite(operation: &Operation) -> Option<Named> {
    let Attribute::String(name) = operation.attribute("name")? else { return None };
    let name = std::str::from_utf8(name).ok()?;
    if !crate::dialect::op(name)?.is_composite {
        return None;
    }
    let attributes = match operation.attribute("composite_attributes") {
        Some(Attribute::Dictionary(attributes)) => attributes.clone(),
        None => Vec::new(),
        Some(_) => return None,
    };
    Some((name.into(), attributes))
}
