//! Defines the named pipelines.

use tilewright_target::Target;

/// A list of passes, grouped by their purpose.
#[derive(Clone, Copy, Debug)]
pub struct Pipeline {
    /// The name for `--pipeline`.
    pub name: &'static str,
    /// Its purpose in one line.
    pub summary: &'static str,
    /// The built-in target for which it is the default.
    pub target: &'static str,
    /// The passes that run once at the beginning.
    pub first: &'static [&'static str],
    /// The passes that run until none changes anything, so that the cost-gated passes see
    /// modules in their simplest form.
    pub cleanup: &'static [&'static str],
    /// Groups of cost-gated passes. After the cleanup, the passes of the first group that
    /// changes anything run once each. Cleanup and groups repeat until none changes anything.
    pub cost_gated: &'static [&'static [&'static str]],
    /// The passes that run once at the end, after the pipeline has restored all code in whose
    /// changes no cost-gated pass had a part.
    pub last: &'static [&'static str],
}

/// The beginning of every pipeline: a smaller module leaves less work for later passes.
const FIRST: &[&str] = &["control-flow", "inline", "tuple", "dce"];

/// The passes that bring everything into its simplest form. A folded value may decide a branch,
/// which then becomes a call; another pass handles it in the same round or the next.
const CLEANUP: &[&str] = &[
    "constant-fold",
    "control-flow",
    "inline",
    "tuple",
    "dead-elements",
    "convert",
    "algebra",
    "reshape",
    "broadcast",
    "transpose",
    "reduce",
    "reduce-of-reduce",
    "cse",
    "dce",
    "cluster-sibling-reductions",
];

/// Groups that first bring small values into their cheapest form, then weigh the rewrites
/// beside them. The target decides whether a rewrite pays.
const COST_GATED: &[&[&str]] = &[
    &["reduce-of-broadcast", "reduce-through-transpose"],
    &["unit-dims"],
    &["reshape-out-of-loop"],
    &["reshape-out-of-region", "reduce-through-reshape"],
    &["factored-sums"],
    &["shifted-moments"],
    &["widen-accumulation"],
    &["reduce-as-window"],
    &["merged-dims"],
    &["rematerialize"],
];

const DEFAULT: Pipeline = Pipeline {
    name: "default",
    summary: "all that pays on the target",
    target: Target::DEFAULT,
    first: FIRST,
    cleanup: CLEANUP,
    cost_gated: COST_GATED,
    last: &["cluster-sibling-reductions"],
};

/// Every pipeline.
pub const PIPELINES: &[Pipeline] = &[
    DEFAULT,
    Pipeline { name: "tpu", summary: "the same, for tpu-like", target: "tpu-like", ..DEFAULT },
    Pipeline { name: "cpu", summary: "the same, for cpu", target: "cpu", ..DEFAULT },
    Pipeline {
        name: "cleanup",
        summary: "simpler forms alone, kept whatever they cost",
        cost_gated: &[],
        last: &[],
        ..DEFAULT
    },
];

/// Finds the pipeline with this name.
pub fn pipeline(name: &str) -> Option<&'static Pipeline> {
    PIPELINES.iter().find(|pipeline| pipeline.name == name)
}
