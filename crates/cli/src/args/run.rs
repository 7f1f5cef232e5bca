//! The options of `tilewright run`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use tilewright::lowering::Strategy;

use super::{Bounds, DeviceCount, Input};

/// The machine that runs a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Backend {
    Interp,
    Sim,
    Native,
}

/// `tilewright run`.
#[derive(Debug, Args)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) input: Input,
    /// The inputs, as arrays `in0`, `in1` ... of an npz file; if absent, the arguments
    /// that a snapshot recorded, or random ones. For several devices, an array may have a
    /// first dim more, with a row for each
    #[arg(long, value_name = "NPZ", conflicts_with = "seed")]
    pub(crate) inputs: Option<PathBuf>,
    /// The seed of the random inputs; 0 if absent
    #[arg(long, value_name = "S")]
    pub(crate) seed: Option<u64>,
    /// Write the outputs here, as arrays `out0`, `out1` ... of an npz file
    #[arg(short, long, value_name = "NPZ")]
    pub(crate) output: Option<PathBuf>,
    /// The data for infeed instructions, as arrays `in0`, `in1` ... of an npz file in the order
    /// in which they are read
    #[arg(long, value_name = "NPZ")]
    pub(crate) infeed: Option<PathBuf>,
    /// Write the data of outfeed instructions here, as arrays `out0`, `out1` ... of an npz file
    #[arg(long, value_name = "NPZ")]
    pub(crate) outfeed: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) devices: DeviceCount,
    #[command(flatten)]
    pub(crate) bounds: Bounds,
    /// The backend: the interpreter; or the simulated machine of a target, which runs all that
    /// has kernels; or this CPU, which runs norms and reductions by vector instructions. The last
    /// two leave the rest to the interpreter
    #[arg(long, value_enum, value_name = "BACKEND", default_value_t = Backend::Interp)]
    pub(crate) backend: Backend,
    /// The machine that is simulated: a built-in name (see `tilewright targets`) or
    /// a TOML file; tpu-like if absent
    #[arg(long, value_name = "TARGET")]
    pub(crate) target: Option<String>,
    /// How the simulated machine computes reduces along several axes: `fused`, in one pass over
    /// their input, `looped`, axis by axis, or `transposed`, with their input first turned into
    /// rows; the last two store arrays in main memory in between. `fused` if absent, and where
    /// the others do not apply
    #[arg(long, value_name = "STRATEGY")]
    pub(crate) strategy: Option<Strategy>,
    /// Write what the parts of the simulated machine did, and when, as a timeline for Perfetto
    /// or chrome://tracing; its microseconds are cycles
    #[arg(long, value_name = "JSON")]
    pub(crate) trace: Option<PathBuf>,
    /// Show the time and the bytes of each instruction, the slowest first, on stderr; for
    /// several devices, those of the first
    #[arg(long)]
    pub(crate) profile: bool,
    /// The threads of `--backend native`, which change no result; one for each core if absent
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<std::num::NonZero<usize>>,
    /// Show the time, and the counters of the simulated machine, on stderr
    #[arg(long)]
    pub(crate) stats: bool,
    /// Give the report of --stats and --profile as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
