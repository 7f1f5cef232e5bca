//! Lists of passes, pipelines, ops and targets, as data.

use std::fmt;

use serde::Serialize;
use tilewright_ir::Opcode;
use tilewright_rewrite::table::aligned;
use tilewright_rewrite::{OptimizeError, Pass, registry};
use tilewright_target::Target;

use crate::at_hand;
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
    /// The rules that it consists of; none if it is written as a function.
    pub rules: Vec<RuleEntry>,
}

/// A rule of a pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RuleEntry {
    /// The name.
    pub name: &'static str,
    /// The equation that it applies.
    pub law: &'static str,
    /// The largest change that it makes to floats.
    pub class: &'static str,
}

impl PassEntry {
    fn of(pass: &dyn Pass) -> Self {
        let rules = pass.rules().iter().map(|rule| RuleEntry {
            name: rule.name(),
            law: rule.law(),
            class: rule.class().name(),
        });
        Self {
            name: pass.name(),
            summary: pass.summary(),
            class: pass.class().name(),
            rules: rules.collect(),
        }
    }
}

/// The pass, and below it a line for each rule.
impl fmt::Display for PassEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): {}", self.name, self.class, self.summary)?;
        if self.rules.is_empty() {
            return Ok(());
        }
        f.write_str("\n")?;
        let names = self.rules.iter().map(|rule| format!("  {}", rule.name)).collect::<Vec<_>>();
        let rows = names.iter().zip(&self.rules).map(|(name, rule)| [name, rule.class, rule.law]);
        write_rows(f, &rows.collect::<Vec<_>>())
    }
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
        let pipelines = PIPELINES.iter().map(|pipeline| PipelineEntry {
            name: pipeline.name,
            summary: pipeline.summary,
            target: pipeline.target,
            first: pipeline.first,
            cleanup: pipeline.cleanup,
            cost_gated: pipeline.cost_gated.concat(),
            last: pipeline.last,
        });
        Self { passes: passes().map(PassEntry::of).collect(), pipelines: pipelines.collect() }
    }

    /// The passes of these names alone, without pipelines.
    ///
    /// # Errors
    /// If there is no pass of a name.
    pub fn of(names: &[impl AsRef<str>]) -> Result<Self, Error> {
        let named = names.iter().map(|name| {
            let pass = registry::pass(name.as_ref());
            let unknown = || OptimizeError::UnknownPass(name.as_ref().to_owned());
            Ok(PassEntry::of(pass.ok_or_else(unknown)?))
        });
        Ok(Self { passes: named.collect::<Result<_, Error>>()?, pipelines: Vec::new() })
    }
}

/// A line for each pass, then the stages of each pipeline. Without pipelines, the rules of each
/// pass.
impl fmt::Display for PassList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.pipelines.is_empty() {
            let passes = self.passes.iter().map(ToString::to_string);
            return f.write_str(&passes.collect::<Vec<_>>().join("\n\n"));
        }
        let rows = self.passes.iter().map(|pass| [pass.name, pass.class, pass.summary]);
        write_rows(f, &rows.collect::<Vec<_>>())?;
        for pipeline in &self.pipelines {
            write!(f, "\n\npipeline `{}`: {}\n", pipeline.name, pipeline.summary)?;
            let stages = [
                ["  first, once:", &pipeline.first.join(", ")],
                ["  cost-gated:", &pipeline.cost_gated.join(", ")],
                ["  to tidy up:", &pipeline.cleanup.join(", ")],
            ];
            let stages = stages.into_iter().filter(|[_, passes]| !passes.is_empty());
            write_rows(f, &stages.collect::<Vec<_>>())?;
        }
        Ok(())
    }
}

/// Writes rows in columns, without a newline at the end.
fn write_rows<const N: usize>(f: &mut fmt::Formatter<'_>, rows: &[[&str; N]]) -> fmt::Result {
    f.write_str(aligned(rows, |_| false).trim_end())
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

/// A line for each op: its name, its family, its number of operands and its attributes.
impl fmt::Display for OpList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = self.ops.iter().map(|op| {
            let operands = match (op.min_operands, op.max_operands) {
                (min, Some(max)) if min == max => min.to_string(),
                (min, Some(max)) => format!("{min} to {max}"),
                (min, None) => format!("{min} or more"),
            };
            [op.name.into(), op.family.into(), operands, op.attributes.join(", ")]
        });
        let rows: Vec<[String; 4]> = rows.collect();
        f.write_str(aligned(&rows, |_| false).trim_end())
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
    /// The target that `auto` stands for.
    pub default: String,
    /// The targets, in alphabetical order, with every key of their files.
    pub targets: Vec<Target>,
}

impl TargetList {
    /// The list of all targets.
    ///
    /// # Errors
    /// Returns an error if a built-in target is not valid, which is a bug.
    pub fn new() -> Result<Self, Error> {
        let targets = Target::builtin_names().map(target).collect::<Result<_, _>>()?;
        Ok(Self { default: at_hand::name(), targets })
    }

    /// The list of the built-in target of this name alone.
    ///
    /// # Errors
    /// If there is no built-in target of this name.
    pub fn of(name: &str) -> Result<Self, Error> {
        Ok(Self { default: at_hand::name(), targets: vec![Target::builtin(name)?] })
    }
}

/// A line for each target: its name, whether it is the default, and its description.
impl fmt::Display for TargetList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = self.targets.iter().map(|target| {
            let mark = if target.name == self.default { "(default)" } else { "" };
            [target.name.as_str(), mark, &target.description]
        });
        write_rows(f, &rows.collect::<Vec<_>>())
    }
}
