//! Lists of passes, pipelines, ops and targets, as data.

use serde::Serialize;
use tilewright_ir::Opcode;
use tilewright_target::Target;

use crate::error::Error;
use crate::pipeline::{PIPELINES, passes, target};

/// Every pass and pipeline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PassList {
    /// The passes, in alphabetical order.
    pub passes: Vec<PassEntry>,
    /// The pipelines, the default first.
    pub pipelines: Vec<PipelineEntry>,
}

/// A pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PassEntry {
    /// The name for `--passes`.
    pub name: &'static str,
    /// A summary of one line.
    pub summary: &'static str,
    /// The largest change that it makes to floats; see [`tilewright_rewrite::numbers`].
    pub class: &'static str,
}

/// A pipeline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PipelineEntry {
    /// The name for `--pipeline`.
    pub name: &'static str,
    /// A summary of its purpose in one line.
    pub summary: &'static str,
    /// The default target.
    pub target: &'static str,
    /// The passes that run first, once.
    pub first: &'static [&'static str],
    /// The passes that simplify, before and after each cost-gated pass.
    pub cleanup: &'static [&'static str],
    /// The passes whose rewrites are kept only if the cost model says that they pay.
    pub cost_gated: Vec<&'static str>,
    /// The passes that run after rewrites without gain were undone.
    pub last: &'static [&'static str],
}

impl PassList {
    /// The list of all passes and pipelines.
    pub fn new() -> Self {
        let passes = passes().map(|pass| PassEntry {
            name: pass.name(),
            summary: pass.summary(),
            class: pass.class().name(),
        });
        let pipelines = PIPELINES.iter().map(|pipeline| PipelineEntry {
            name: pipeline.name,
            summary: pipeline.summary,
            target: pipeline.target,
            first: pipeline.first,
            cleanup: pipeline.cleanup,
            cost_gated: pipeline.cost_gated.concat(),
            last: pipeline.last,
        });
        Self { passes: passes.collect(), pipelines: pipelines.collect() }
    }
}

impl Default for PassList {
    fn default() -> Self {
        Self::new()
    }
}

/// Every op of HLO.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OpList {
    /// The ops, in the order of the table of ops.
    pub ops: Vec<OpEntry>,
}

/// An op.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OpEntry {
    /// The name in HLO text.
    pub name: &'static str,
    /// The family it belongs to.
    pub family: &'static str,
    /// The least number of operands.
    pub min_operands: usize,
    /// The greatest number of operands; `null` for any number.
    pub max_operands: Option<usize>,
    /// Its attributes, without those that every op has.
    pub attributes: Vec<&'static str>,
}

impl OpList {
    /// The list of all ops.
    pub fn new() -> Self {
        let ops = Opcode::ALL.iter().map(|op| OpEntry {
            name: op.name(),
            family: op.family().name(),
            min_operands: op.arity().min,
            max_operands: op.arity().max,
            attributes: op.attrs().iter().map(|spec| spec.name).collect(),
        });
        Self { ops: ops.collect() }
    }
}

impl Default for OpList {
    fn default() -> Self {
        Self::new()
    }
}

/// Every built-in target.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TargetList {
    /// The default target.
    pub default: &'static str,
    /// The targets, in alphabetical order, with every key of their files.
    pub targets: Vec<Target>,
}

impl TargetList {
    /// The list of all targets.
    ///
    /// # Errors
    /// If a built-in target is not valid, which is a bug.
    pub fn new() -> Result<Self, Error> {
        let targets = Target::builtin_names().map(target).collect::<Result<_, _>>()?;
        Ok(Self { default: Target::DEFAULT, targets })
    }
}
