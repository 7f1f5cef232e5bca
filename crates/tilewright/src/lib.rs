//! Read, check, rewrite and run XLA's HLO, without building XLA.
//!
//! ```text
//!  HLO text,  load, parse            optimize         print, write   HLO text,
//!  proto   ───────────────► Verified ────────► Verified ────────────► proto
//!                            ▲     │ ╲            │ ╱
//!   Builder (a front end) ───┘     │  ╲── check ──╱
//!                                  │
//!                 Literals ──────► run ──────► Literal       cost ──► report
//!               (random, npz)                (npz)
//! ```
//!
//! A reshape is free on a linear memory and moves every element on a vector machine.
//! [`optimize`] removes such reshapes around reductions and broadcasts, which norms consist of,
//! and reports its rewrites. [`check()`] evaluates the module before and after and compares the
//! outputs. Costs are a model of a [`target()`](target), not a measurement.
//!
//! A front end makes modules with a [`Builder`](ir::Builder), without any text:
//!
//! ```
#![doc = include_str!("../examples/quickstart.rs")]
//! ```
//!
//! Functions that take several ops, such as a norm or an argmax, are in [`composite`].
//!
//! [`prelude`] has the items that most programs need; the other crates are available as [`ir`],
//! [`text`], [`proto`], [`targets`], [`rewrite`], [`lower`] and [`interp`]. The semantic version
//! of this crate covers its own items and the items that it re-exports by name.

pub mod agreement;
pub mod algebra;
pub mod bisect;
mod chance;
pub mod check;
pub mod composite;
pub mod error;
pub mod guard;
mod judge;
pub mod listing;
pub mod lowering;
pub mod module;
mod nudge;
pub mod pipeline;
pub mod prelude;
pub mod profile;
pub mod recording;
pub mod report;
pub mod rules;
pub mod run;
pub mod simulate;

pub use tilewright_interp as interp;
pub use tilewright_ir as ir;
pub use tilewright_lower as lower;
pub use tilewright_proto as proto;
pub use tilewright_rewrite as rewrite;
pub use tilewright_sim as sim;
pub use tilewright_target as targets;
pub use tilewright_text as text;

pub use agreement::{Agreement, Excuse, OutputDifference, Witness};
pub use algebra::algebra;
pub use bisect::{Bisection, FirstDifference, OperandAgreement, bisect};
pub use check::{CheckOptions, Within, check};
pub use error::Error;
pub use guard::{Blame, Guarded, Remedy, optimize_guarded};
pub use interp::algebra::Verdict;
pub use interp::{Devices, Limits, Observer, Outputs, Progress};
pub use ir::Verified;
pub use module::{
    Emit, Form, LayoutPadding, Loaded, PrintOptions, Recording, Source, encode, load, load_bytes,
    load_file, load_proto, load_text, losses, parse, print, write,
};
pub use pipeline::{
    Evaluate, FloatMode, Note, Optimized, Options, PIPELINES, Pass, PassReport, PassSelection,
    Pipeline, Report, StopReason, optimize, passes, pipeline, target,
};
pub use profile::{Profile, Profiler};
pub use recording::check_recording;
pub use rules::{RuleTrial, try_rule};
pub use run::{
    Inputs, RunOptions, devices_of, elements, outputs_to_npz, random_inputs, read_infeed,
    read_inputs, run, values_to_npz,
};
pub use targets::Target;
