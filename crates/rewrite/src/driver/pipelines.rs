//! The named pipelines.

/// The passes of a pipeline, by their purpose.
#[derive(Clone, Copy, Debug)]
pub struct Pipeline {
    /// The name of the pipeline for `--pipeline`.
    pub name: &'static str,
    /// One line on its purpose.
    pub summary: &'static str,
    /// The target to use if none is named: a built-in one, or `auto`.
    pub target: &'static str,
    /// The passes that run first, once.
    pub first: &'static [&'static str],
    /// The passes that run until none changes anything, so that the cost-gated passes see modules
    /// in their simplest form.
    pub cleanup: &'static [&'static str],
    /// The groups of cost-gated passes. After the cleanup, the passes of the first group that
    /// changes anything run once each; then the cleanup begins again, until no group changes
    /// anything.
    pub cost_gated: &'static [&'static [&'static str]],
    /// The passes that run once at the end, after the pipeline has put back all changes that no
    /// cost-gated pass had a part in.
    pub last: &'static [&'static str],
}

/// The first passes of every pipeline: they remove code, so that later passes have less to do.
const FIRST: &[&str] = &["control-flow", "inline", "tuple", "dce", "constraint"];

/// The passes that bring a module into its simplest form. A folded constant may decide a branch,
/// which then becomes a call; so the result of one pass reaches the others in the same round or the
/// next.
const CLEANUP: &[&str] = &[
    "batch-norm",
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

/// The cost-gated groups: those that make values small come first, in their cheapest form, then
/// those whose gain depends on these values. The target's costs decide whether a rewrite pays.
const COST_GATED: &[&[&str]] = &[
    &["all-reduce"],
    &["reduce-of-broadcast", "reduce-through-transpose"],
    &["unit-dims"],
    &["reshape-out-of-loop"],
    &["reshape-out-of-region", "reduce-through-reshape"],
    &["factored-sums"],
    &["late-factors"],
    &["shifted-moments"],
    &["local-moments"],
    &["reduce-as-window"],
    &["convolution-barrier"],
    &["reduce-form", "tree-reduce"],
    &["rematerialize"],
    &["local-sums"],
];

const DEFAULT: Pipeline = Pipeline {
    name: "default",
    summary: "all that pays on the target",
    target: "auto",
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

/// Returns the pipeline of this name.
pub fn pipeline(name: &str) -> Option<&'static Pipeline> {
    PIPELINES.iter().find(|pipeline| pipeline.name == name)
}
