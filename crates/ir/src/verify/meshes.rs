//! Checks that shardings of Shardy name meshes that the module has.

use super::Report;
use crate::diag::DiagnosticPlace;
use crate::metadata::value_of;
use crate::module::Module;
use crate::types::sdy;

/// Frontend attributes whose values name meshes.
const NAMING: [&str; 3] = ["xla.sdy.sharding", "xla.sdy.in_shardings", "xla.sdy.out_shardings"];

pub(super) fn check(module: &Module, report: &mut Report) {
    let listed = value_of(&module.header.frontend_attributes, "xla.sdy.meshes");
    let meshes = listed.map_or(Some(Vec::new()), sdy::meshes);
    // A list that cannot be read names no meshes to compare with.
    let Some(meshes) = meshes else { return };
    for id in module.computations().iter().flat_map(|&one| module.instructions(one)) {
        let Some(extras) = module.extras(id) else { continue };
        let values = NAMING.iter().filter_map(|name| value_of(&extras.frontend_attributes, name));
        let mut named = values.flat_map(sdy::mesh_names);
        let unknown = named.find(|name| !meshes.iter().any(|(known, _)| known == name));
        if let Some(unknown) = unknown {
            let known: Vec<String> = meshes.iter().map(|(name, _)| format!("@{name}")).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            let message = format!(
                "its sharding names the mesh @{unknown}, and `xla.sdy.meshes` of the module has {known}; \
                 add the mesh to the module's `frontend_attributes`"
            );
            report.add(super::UNKNOWN_MESH, DiagnosticPlace::Instruction(id), message);
        }
    }
}
