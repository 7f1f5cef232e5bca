//! The verbs, one file each.

pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod convert;
pub(crate) mod cost;
pub(crate) mod diff;
pub(crate) mod graph;
pub(crate) mod lower;
pub(crate) mod man;
pub(crate) mod ops;
pub(crate) mod opt;
pub(crate) mod passes;
pub(crate) mod reduce;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod targets;
pub(crate) mod tune;
pub(crate) mod verify;
