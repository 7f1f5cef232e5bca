//! Read, check, rewrite and run XLA's HLO, without building XLA.
//!
//! ```text
//!  HLO text,  load, parse            optimize         print, write   HLO text,
//!  proto   ───────────────► Verified ────────► Verified ────────────► proto
//!                            ▲     │ ╲            │ ╱
//!   Builder (a front end) ───┘     │  ╲── check ──╱
//!                                  │
//!                 Literals ──────► run ──────► Outputs       cost ──► report
//!               (random, npz)                (npz)
//! ```
//!
//! A reshape is free on a linear memory and moves every element on a vector machine.
//! [`optimize`] removes such reshapes around reductions and broadcasts, which norms consist of,
//! and reports its rewrites. [`check()`] evaluates the module before and after and compares the
//! outputs. Costs are a model of a [`target()`](target), not a measurement.
//!
//! # Verbs
//!
//! Every verb is one function that takes its options last. Options have a default, setters
//! (`with_...`) and fields to read. `module` in the examples sums groups of channels.
//!
//! ## Read
//!
//! [`load`] reads a file or a folder of dumps, [`parse`] a text. [`load_file`], [`load_text`],
//! [`load_bytes`] and [`load_proto`] keep the source, for messages. The format is told by the
//! content.
//!
//! ```
//! # use tilewright::prelude::*;
//! # const TEXT: &str =
//! #     include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/small.hlo"));
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let module = tilewright::parse(TEXT)?;
//! assert_eq!(module.name, "group_sums");
//! let error = tilewright::parse("HloModule m\nENTRY e {\n  ROOT x = f32[2] parametr(0)\n}");
//! assert!(error.unwrap_err().to_string().contains("did you mean `parameter`?"));
//! # Ok(())
//! # }
//! ```
//!
//! ## Build
//!
//! A front end needs no text: it makes modules with a [`Builder`](ir::Builder). Functions that take
//! several ops, such as a norm or an argmax, are in [`composite`].
//!
//! ```
//! # use tilewright::prelude::*;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut b = Builder::new("softmax_of_double");
//! let x = b.parameter("x", Shape::array(ElementType::F32, [8, 1024]))?;
//! let twice = b.binary(Opcode::Add, x, x)?;
//! let y = tilewright::composite::softmax(&mut b, twice, &[-1])?;
//! let module: Verified = b.finish(y)?;
//! # Ok(())
//! # }
//! ```
//!
//! ## Optimise
//!
//! [`optimize`] takes [`Options`]. Its report says what was done: as text, as fields, and as JSON
//! by [`report::OptReport`]. [`optimize_guarded`] leaves out rewrites that change the results.
//!
//! ```
//! # use tilewright::prelude::*;
//! # const TEXT: &str =
//! #     include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/small.hlo"));
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let module = tilewright::parse(TEXT)?;
//! let options = Options::new(tilewright::target("tpu-like")?);
//! let Optimized { module: better, report, .. } = tilewright::optimize(module, &options)?;
//! assert!(report.after.cycles < report.before.cycles);
//! assert!(report.to_string().contains("realigned vectors"));
//! assert!(report.explanation().to_string().starts_with("Rewritten:"));
//! # Ok(())
//! # }
//! ```
//!
//! ## Check
//!
//! [`check()`] takes [`CheckOptions`]. [`algebra()`] compares over a finite field, [`bisect()`] finds
//! the first instruction that differs, [`try_rule`] tests a rule on random modules.
//!
//! ```
//! # use tilewright::prelude::*;
//! # const TEXT: &str =
//! #     include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/small.hlo"));
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let module = tilewright::parse(TEXT)?;
//! # let options = Options::new(tilewright::target("tpu-like")?);
//! # let better = tilewright::optimize(module.clone(), &options)?.module;
//! let agreement = tilewright::check(&module, &better, &CheckOptions::default().with_seeds(1))?;
//! assert!(agreement.equal(), "{agreement}");
//! # Ok(())
//! # }
//! ```
//!
//! ## Run
//!
//! [`run`] takes [`RunOptions`] and evaluates a module with the interpreter; `simulate::run` does on
//! the simulated machine. [`random_inputs`] and [`read_inputs`] make inputs.
//!
//! ```
//! # use tilewright::prelude::*;
//! # const TEXT: &str =
//! #     include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/small.hlo"));
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let module = tilewright::parse(TEXT)?;
//! let inputs = tilewright::random_inputs(&module, 0)?;
//! let outputs = tilewright::run(&module, &inputs, &RunOptions::default())?;
//! assert_eq!(outputs.output.shape().to_string(), "f32[2,32]");
//! # Ok(())
//! # }
//! ```
//!
//! ## Cost
//!
//! ```
//! # use tilewright::prelude::*;
//! # const TEXT: &str =
//! #     include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/small.hlo"));
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let module = tilewright::parse(TEXT)?;
//! let costs = tilewright::report::CostReport::new(&module, &tilewright::target("cpu")?)?;
//! assert!(costs.to_string().contains("on cpu. Costs are a model, not a measurement."));
//! # Ok(())
//! # }
//! ```
//!
//! ## Write
//!
//! [`print()`] makes a text and [`encode`] a proto; [`write()`] makes either.
//!
//! ```
//! # use tilewright::prelude::*;
//! # const TEXT: &str =
//! #     include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/small.hlo"));
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let module = tilewright::parse(TEXT)?;
//! let text = tilewright::print(&module, &PrintOptions::default())?;
//! assert!(text.starts_with("HloModule group_sums"));
//! let proto = tilewright::encode(&module)?;
//! assert_eq!(tilewright::load_bytes("group_sums.pb", proto)?.module.name, module.name);
//! # Ok(())
//! # }
//! ```
//!
//! # A front end
//!
//! ```
#![doc = include_str!("../examples/quickstart.rs")]
//! ```
//!
//! # Parts
//!
//! [`prelude`] has the items that most programs need; the other crates are available as [`ir`],
//! [`text`], [`proto`], [`targets`], [`rewrite`], [`interp`], `lower` and `sim`. The semantic version
//! of this crate covers its own items and the items that it re-exports by name.
//!
//! The feature `simulate`, which is on by default, has kernels and the simulated machine: `lowering`,
//! `simulate`, `lower` and `sim`. The feature `native`, on by default, too, has the module `native`: it
//! runs norms and reductions of modules on this CPU by vector instructions; `native-calls` has what
//! custom calls of XLA need of it.

mod agreement;
mod algebra;
mod at_hand;
mod bisect;
mod caret;
mod chance;
mod check;
mod choice;
mod error;
mod folder;
mod format;
mod guard;
mod gzip;
#[cfg(any(feature = "native", feature = "simulate"))]
mod host;
mod judge;
pub mod listing;
#[cfg(feature = "simulate")]
pub mod lowering;
mod mlir;
mod module;
#[cfg(feature = "native")]
pub mod native;
mod nudge;
mod pipeline;
pub mod prelude;
mod profile;
mod recording;
pub mod report;
mod rules;
mod run;
#[cfg(feature = "simulate")]
pub mod simulate;
mod stage;
mod xspace;

pub use tilewright_interp as interp;
pub use tilewright_ir as ir;
#[cfg(any(feature = "native", feature = "simulate"))]
pub use tilewright_lower as lower;
pub use tilewright_proto as proto;
pub use tilewright_rewrite as rewrite;
#[cfg(feature = "simulate")]
pub use tilewright_sim as sim;
pub use tilewright_target as targets;
pub use tilewright_text as text;

pub use agreement::{Agreement, Excuse, OutputDifference, Witness};
pub use algebra::algebra;
pub use bisect::{Bisection, FirstDifference, OperandAgreement, bisect};
pub use check::{CheckOptions, Within, check};
pub use error::Error;
pub use guard::{Blame, Difference, Guarded, Remedy, optimize_guarded};
pub use interp::algebra::Verdict;
pub use interp::{
    BranchCounts, Devices, EvalError, Limits, Observer, Outputs, Progress, Seen, widened,
};
pub use ir::{Verified, composite};
pub use mlir::{
    MlirStyle, encode_stablehlo, encode_stablehlo_dialects, load_mlir, load_mlir_bytecode,
    print_stablehlo,
};
pub use module::{
    Emit, Form, LayoutPadding, Loaded, PrintOptions, Recording, Source, encode, load, load_bytes,
    load_file, load_proto, load_text, losses, parse, print, write,
};
pub use pipeline::{
    Evaluate, FloatMode, Note, Optimized, Options, PIPELINES, Pass, PassReport, PassSelection,
    Pipeline, Report, StopReason, optimize, passes, pipeline, simplest, simplest_forms, target,
    target_template,
};
pub use profile::{InstructionProfile, Profile, Profiler};
pub use recording::{check_recording, recorded_devices};
pub use rules::{RuleTrial, try_rule};
pub use run::{
    Inputs, RunOptions, devices_of, elements, outputs_to_npz, random_inputs, read_infeed,
    read_inputs, run, values_to_npz,
};
pub use stage::after_optimization;
pub use targets::Target;
pub use tilewright_rewrite::cost::{
    Cost, CostModel, InstructionCost, Ledger, Memo, Residency, instruction_costs, memory_use,
    run_costs,
};
pub use tilewright_rewrite::numbers::Class;
pub use tilewright_rewrite::{
    Context, Notes, OptimizeError, Outcome, Place, Reason, Simplest, pattern,
};
