//! Ops that an engine is slow at, whatever a rewriter makes of the program around them.

use serde::{Deserialize, Serialize};
use tilewright_ir::Opcode;

/// Ops that take far longer than their bytes do, and what to use instead. An entry without ops is about whatever makes
/// large arrays.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlowOps {
    /// The names of the ops, as in HLO text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ops: Vec<String>,
    /// The size in bytes from which on arrays are large; 0 in an entry with ops.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub least_bytes: u64,
    /// How many times as long as a copy of their operands and results they took; without ops, the
    /// median of how many times as long programs took as with the advice.
    pub times: f64,
    /// The advice for users: ops that serve instead, and when.
    pub instead: String,
}

impl SlowOps {
    /// Returns what is wrong with a list, as the end of a sentence.
    pub(crate) fn fault(list: &[Self]) -> Option<String> {
        let is_op = |name: &String| Opcode::from_name(name).is_some();
        let good = |slow: &Self| {
            let is_about = slow.ops.is_empty() != (slow.least_bytes == 0);
            is_about
                && !slow.instead.trim().is_empty()
                && slow.ops.iter().all(is_op)
                && (1.0..=1e6).contains(&slow.times)
        };
        (!list.iter().all(good)).then(|| {
            "has an entry without `instead`, with neither `ops` of HLO nor `least_bytes` or with both, or whose `times` \
             is no number from 1 to 1000000".to_owned()
        })
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(bytes: &u64) -> bool {
    *bytes == 0
}
