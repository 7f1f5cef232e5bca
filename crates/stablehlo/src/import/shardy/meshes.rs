//! The meshes of a program, each of which keeps one name.

use smol_str::SmolStr;

use crate::mlir::{Attribute, Operation, Program};

/// The names of meshes; equal meshes have the name of the first one.
pub(super) struct MeshNames {
    /// The name, what it is called from now on, and the text of the mesh.
    meshes: Vec<(SmolStr, SmolStr, String)>,
}

impl MeshNames {
    pub(super) fn of(program: &Program) -> Self {
        let blocks = program.module.regions.iter().flat_map(|region| &region.blocks);
        let mut meshes: Vec<(SmolStr, SmolStr, String)> = Vec::new();
        for operation in blocks.flat_map(|block| &block.operations) {
            let Some((name, text)) = mesh(operation) else { continue };
            let first = meshes.iter().find(|(_, _, known)| *known == text);
            let kept = first.map_or_else(|| name.clone(), |(_, kept, _)| kept.clone());
            meshes.push((name, kept, text));
        }
        Self { meshes }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.meshes.is_empty()
    }

    /// Returns the meshes as the frontend attribute lists them.
    pub(super) fn dictionary(&self) -> String {
        let kept = self.meshes.iter().filter(|(name, kept, _)| name == kept);
        let mut entries: Vec<String> = kept
            .map(|(name, _, text)| {
                let mut key = String::new();
                crate::print::word(&mut key, name);
                format!("{key} = {text}")
            })
            .collect();
        // Dictionaries are in the order of their keys.
        entries.sort();
        format!("{{{}}}", entries.join(", "))
    }

    /// Returns a text with the names of meshes that are kept.
    pub(super) fn renamed(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('@') {
            out.push_str(before);
            out.push('@');
            let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '$' | '-');
            let end = after.find(|c| !is_part(c)).unwrap_or(after.len());
            let (name, tail) = after.split_at(end);
            let known = self.meshes.iter().find(|(known, ..)| known == name);
            out.push_str(known.map_or(name, |(_, kept, _)| kept));
            rest = tail;
        }
        out.push_str(rest);
        out
    }
}

/// Returns the name and the text of a mesh.
fn mesh(operation: &Operation) -> Option<(SmolStr, String)> {
    if operation.name != "sdy.mesh" {
        return None;
    }
    let name = super::super::attributes::text(operation.attribute("sym_name")?)?;
    let text = crate::print::attribute(operation.attribute("mesh")?);
    Some((name, text))
}

/// Returns the text of a sharding without what says its kind: `@mesh, [{"x"}]`.
pub(super) fn inner(attribute: &Attribute) -> Option<String> {
    let text = crate::print::attribute(attribute);
    let text = text.strip_prefix("#sdy.sharding<")?;
    Some(text.strip_suffix('>')?.to_owned())
}
