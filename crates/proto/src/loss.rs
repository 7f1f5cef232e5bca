//! Lists what is lost when a module is written as text or as proto.
//!
//! Only losses that a reader would miss are reported. Parts that nearly every module has are
//! not: ids, the devices for which it was compiled, and whether a module that is not
//! partitioned may choose its shardings.

use std::collections::{BTreeMap, BTreeSet};

use tilewright_ir::{Header, Module};

use crate::generated::known::{
    HLO_COMPUTATION_PROTO, HLO_INSTRUCTION_PROTO, HLO_MODULE_PROTO, OP_METADATA,
    ORIGINAL_VALUE_RECOVERY_TABLE_PROTO_ENTRY,
};
use crate::residue::{Schema, lookup};
use crate::wire::fields;

/// Lists the parts of a module read from proto that text cannot express: names of fields, with
/// the names of the messages that contain them.
///
/// ```
/// # fn main() -> Result<(), tilewright_proto::ProtoError> {
/// # let module = tilewright_ir::Module::new("m");
/// for loss in tilewright_proto::lost_in_text(&module) {
///     eprintln!("warning: text cannot say {loss}");
/// }
/// # Ok(())
/// # }
/// ```
pub fn lost_in_text(module: &Module) -> Vec<String> {
    let mut losses = Losses::default();
    losses.add(&HEADER, &module.header.residue, "");
    losses.add_within(module);
    losses.told()
}

/// Returns the modules in a module's recovery table.
fn recovery_modules(module: &Module) -> impl Iterator<Item = &Module> {
    module.header.origin_recovery.values().filter_map(|recovery| recovery.module.as_deref())
}

/// Lists the parts of a module read from text that proto cannot express: attributes of its
/// header, which XLA keeps in the configuration of a compilation.
pub fn lost_in_proto(module: &Module) -> Vec<String> {
    let Header { replica_count, num_partitions, .. } = module.header;
    let mut losses = Vec::new();
    for (name, count) in [("replica_count", replica_count), ("num_partitions", num_partitions)] {
        losses.extend(count.filter(|&count| count != 1).map(|count| format!("`{name}={count}`")));
    }
    if module.header.alias_passthrough_params {
        losses.push("`alias_passthrough_params=true`".to_owned());
    }
    let is_partitioned = num_partitions.is_some_and(|count| count != 1);
    for (name, allowed) in [
        ("parameters", &module.header.allow_sharding_propagation_to_parameters),
        ("output", &module.header.allow_sharding_propagation_to_output),
    ] {
        if is_partitioned && allowed.contains(&true) {
            losses.push(format!("`allow_spmd_sharding_propagation_to_{name}`"));
        }
    }
    let within: BTreeSet<String> = recovery_modules(module)
        .flat_map(|module| {
            let of = |loss| format!("{loss} of the recovery module `{}`", module.name);
            lost_in_proto(module).into_iter().map(of)
        })
        .collect();
    losses.extend(within);
    losses
}

/// A kind of message with fields that may be carried.
struct MessageKind {
    /// Before the name of the one.
    of: &'static str,
    schema: Schema,
    /// Fields of XLA that are only carried: their names, or an empty name if a reader would not
    /// miss the field.
    names: &'static [(u32, &'static str)],
}

const HEADER: MessageKind = MessageKind {
    of: "the module",
    schema: &HLO_MODULE_PROTO,
    names: &[
        // The number of the module among others of its process.
        (5, ""),
        (10, "cross_program_prefetches"),
        (11, "is_dynamic"),
        (12, "spmd_output_sharding"),
        (13, "profile_info"),
        (14, "spmd_parameters_shardings"),
        // For which devices it was compiled.
        (15, ""),
        (16, "use_auto_spmd_partitioning"),
        (21, ""),
        // Metadata has the content of the table of payloads.
        (22, ""),
        (23, ""),
        (24, "debug_attributes"),
    ],
};
const COMPUTATION: MessageKind =
    MessageKind { of: "computation", schema: &HLO_COMPUTATION_PROTO, names: &[] };
const INSTRUCTION: MessageKind = MessageKind {
    of: "instruction",
    schema: &HLO_INSTRUCTION_PROTO,
    names: &[
        (45, "all_reduce_id"),
        (73, "is_cross_program_prefetch"),
        (99, "backend_config_payload"),
    ],
};
const RECOVERY: MessageKind = MessageKind {
    of: "the recovery of",
    schema: &ORIGINAL_VALUE_RECOVERY_TABLE_PROTO_ENTRY,
    names: &[],
};
const METADATA: MessageKind = MessageKind {
    of: "the metadata of",
    schema: &OP_METADATA,
    names: &[
        (8, "size_of_generated_code_in_bytes"),
        (9, "size_of_memory_working_set_in_bytes"),
        (10, "profile_info"),
    ],
};

/// The lost fields and the messages that contain them, with the name of the first message and
/// the number of others.
#[derive(Default)]
struct Losses(BTreeMap<(&'static str, String), (String, usize)>);

impl Losses {
    /// Adds the losses of all parts but the header.
    fn add_within(&mut self, module: &Module) {
        for &id in module.computations() {
            let computation = module.computation(id);
            self.add(&COMPUTATION, computation.residue(), computation.name());
            for id in module.instructions(id) {
                if let Some(extras) = module.extras(id) {
                    self.add(&INSTRUCTION, &extras.residue, module.name_of(id));
                }
                let metadata = module.metadata(id);
                if let Some(rare) = metadata.and_then(|metadata| metadata.rare.as_deref()) {
                    self.add(&METADATA, &rare.residue, module.name_of(id));
                }
            }
        }
        for (lost, recovery) in &module.header.origin_recovery {
            self.add(&RECOVERY, &recovery.residue, &lost.instruction);
        }
        for module in recovery_modules(module) {
            self.add(&HEADER, &module.header.residue, &module.name);
            self.add_within(module);
        }
    }

    fn add(&mut self, kind: &MessageKind, residue: &[u8], name: &str) {
        for field in fields(residue).flatten() {
            let known = kind.names.iter().find(|&&(number, _)| number == field.number);
            let told = match (known, lookup(kind.schema, field.number)) {
                (Some((_, "")), _) => continue,
                (Some((_, known)), _) => format!("`{known}`"),
                (None, None) => format!("the unknown field {}", field.number),
                (None, Some(_)) => format!("what is unknown within field {}", field.number),
            };
            let losses = self.0.entry((kind.of, told));
            losses.and_modify(|(_, more)| *more += 1).or_insert_with(|| (name.to_owned(), 0));
        }
    }

    fn told(self) -> Vec<String> {
        let told = self.0.into_iter().map(|((of, field), (name, more))| {
            let name = if name.is_empty() { String::new() } else { format!(" `{name}`") };
            let more = if more == 0 { String::new() } else { format!(" and {more} more") };
            format!("{field} of {of}{name}{more}")
        });
        told.collect()
    }
}
