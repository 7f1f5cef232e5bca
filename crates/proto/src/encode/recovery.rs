//! Encodes how lost arrays of the original program are recovered from others.

use prost::Message as _;
use tilewright_ir::metadata::{MAX_RECOVERY_DEPTH, OriginalArray, Recovery, RecoveryTable};

use super::encode_within;
use super::extras::original_array;
use crate::error::{ProtoError, Within as _, each};
use crate::generated::known;
use crate::generated::xla::OriginalValueRecoveryTableProto;
use crate::generated::xla::original_value_recovery_table_proto::Entry;
use crate::residue::with_residue;

/// Writes nothing for an empty table, like XLA.
pub(super) fn encode(
    table: &RecoveryTable,
    depth: usize,
) -> Result<Option<OriginalValueRecoveryTableProto>, ProtoError> {
    if table.is_empty() {
        return Ok(None);
    }
    if depth >= MAX_RECOVERY_DEPTH {
        return Err(ProtoError::recovery_depth());
    }
    let recoveries: Vec<_> = table.iter().collect();
    let entries = each("entries", &recoveries, |&(lost, recovery)| entry(lost, recovery, depth))?;
    Ok(Some(OriginalValueRecoveryTableProto { entries }))
}

fn entry(lost: &OriginalArray, recovery: &Recovery, depth: usize) -> Result<Vec<u8>, ProtoError> {
    let module = recovery.module.as_ref().map(|module| encode_within(module, depth + 1));
    let entry = Entry {
        old_original_array: Some(original_array(lost)),
        new_original_array: Some(original_array(&recovery.replacement)),
        recovery_module: module.transpose().within("recovery_module")?,
    };
    let known = &known::ORIGINAL_VALUE_RECOVERY_TABLE_PROTO_ENTRY;
    Ok(with_residue(entry.encode_to_vec(), &recovery.residue, known))
}
