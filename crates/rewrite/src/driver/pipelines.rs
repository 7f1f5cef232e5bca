//! The pipelines that have names.

use tilewright_target::Target;

/// Passes by what they are for.
#[derive(Clone, Copy, Debug)]
pub struct Pipeline {
    /// What `--pipeline` calls it.
    pub name: &'static str,
    /// One line on what it is for.
    pub summary: &'static str,
    /// The built-in target that it is for, where none is named.
    pub target: &'static str,
    /// These run first, once.
    pub first: &'static [&'static str],
    /// These run until none changes anything, so that the cost-gated passes see modules
    /// in their simplest form.
    pub cleanup: &'static [&'static str],
    /// Then the passes of the first of these groups that changes anything, once
    /// each; and all begins again until none does.
    pub cost_gated: &'static [&'static [&'static str]],
    /// These run once at the end, after the pipeline has put back, as it was written, all
    /// that no cost-gated pass had a part in.
    pub last: &'static [&'static str],
}

/// What every pipeline begins with: the less there is, the less there is to do.
const FIRST: &[&str] = &["control-flow", "inline", "tuple", "dce"];

/// Everything in its simplest form. What is folded may decide a branch, which is
/// called then; so whatever one of these makes, another finds in the same round
/// or the next.
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

/// Small values first, in their cheapest form, then what is weighed beside them.
/// Whether any of it pays is for the target to say.
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

/// The pipeline of this name.
pub fn pipeline(name: &str) -> Option<&'static Pipeline> {
    PIPELINES.iter().find(|pipeline| pipeline.name == name)
}
