//! Decodes how lost arrays of the original program are recovered from others.

use tilewright_ir::metadata::{MAX_RECOVERY_DEPTH, OriginalArray, Recovery, RecoveryTable};

use super::extras::original_array;
use super::{decode_within, message};
use crate::error::{ProtoError, Within as _, each};
use crate::generated::known;
use crate::generated::xla::original_value_recovery_table_proto::Entry;
use crate::generated::xla::{OriginalArrayProto, OriginalValueRecoveryTableProto};

pub(super) fn decode(
    proto: &OriginalValueRecoveryTableProto,
    depth: usize,
) -> Result<RecoveryTable, ProtoError> {
    if depth >= MAX_RECOVERY_DEPTH {
        return Err(ProtoError::recovery_depth());
    }
    // If two entries describe one array, the last one counts, as in XLA.
    each("entries", &proto.entries, |bytes| entry(bytes, depth))
}

fn entry(bytes: &[u8], depth: usize) -> Result<(OriginalArray, Recovery), ProtoError> {
    let known = &known::ORIGINAL_VALUE_RECOVERY_TABLE_PROTO_ENTRY;
    let (entry, residue): (Entry, _) = message(bytes, known)?;
    // One without a name is the empty one.
    let array = |array: Option<OriginalArrayProto>| original_array(&array.unwrap_or_default());
    let module = entry.recovery_module.as_deref().map(|bytes| decode_within(bytes, depth + 1));
    let recovery = Recovery {
        replacement: array(entry.new_original_array),
        module: module.transpose().within("recovery_module")?.map(Box::new),
        residue: residue.into(),
    };
    Ok((array(entry.old_original_array), recovery))
}
