//! Ops that an engine is slow at, whatever a rewriter makes of the program around them.

use serde::{Deserialize, Serialize};
use tilewright_ir::Opcode;

/// Ops that take far longer than their bytes do, and what to use instead.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlowOps {
    /// The names of the ops, as in HLO text.
    pub ops: Vec<String>,
    /// How many times as long as a copy of their operands and results they took.
    pub times: f64,
    /// The advice for users: ops that serve instead, and when.
    pub instead: String,
}

impl SlowOps {
    /// Returns what is wrong with a list, as the end of a sentence.
    pub(crate) fn fault(list: &[Self]) -> Option<String> {
        let is_op = |name: &String| Opcode::from_name(name).is_some();
        let good = |slow: &Self| {
            let says = !slow.ops.is_empty() && !slow.instead.trim().is_empty();
            says && slow.ops.iter().all(is_op) && (1.0..=1e6).contains(&slow.times)
        };
        (!list.iter().all(good)).then(|| {
            "has an entry without `ops` of HLO or `instead`, or whose `times` is no number from 1 to 1000000".to_owned()
        })
    }
}
