//! Defines the command line: verbs, options, and the help that explains them.

mod diff;
mod graph;
mod reduce;
mod report;
mod run;
mod tune;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use tilewright::Devices;
use tilewright::Limits;
use tilewright::lowering::Strategy;
use tilewright::{Emit, Form as PrintForm, LayoutPadding, PrintOptions};

use crate::io::Output;
use crate::shell::Shell;

pub(crate) use diff::Diff;
pub(crate) use graph::Graph;
pub(crate) use reduce::Reduce;
pub(crate) use report::Report;
pub(crate) use run::{Backend, Run};
pub(crate) use tune::Tune;

/// Read, check, rewrite and run XLA's HLO without building XLA.
///
/// IN is a file of HLO text, StableHLO text, a proto in binary or text form, a profile, gzip of one
/// of these, or `-` for stdin; or a folder that XLA dumped modules into. Results go to stdout unless -o
/// says otherwise, diagnostics to stderr. The exit code is 0 when all is done,
/// 1 when the input is bad or a check found a difference, 2 when the command
/// was not understood, 3 when a module could not be evaluated: it has something
/// that is not supported, or does not fit the limits. As other tools of that name, diff
/// ends with 0 when the modules are the same, 1 when they differ, and 2 when they could
/// not be compared.
#[derive(Debug, Parser)]
#[command(name = "tilewright", version, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) shell: Shell,
    /// The verb.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The verbs; each has its file in `cmd`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Rewrite a module so that it costs less on a vector machine
    Opt(Opt),
    /// Evaluate a module and show or save its outputs
    Run(Run),
    /// Compare the outputs of two modules, or of a module and its optimised form
    Check(Check),
    /// Compare two modules as graphs: what was added, removed, changed and moved
    Diff(Diff),
    /// Find the smallest module for which a command still succeeds
    Reduce(Reduce),
    /// Measure forms of a module on an engine, and keep the fastest
    Tune(Tune),
    /// Check that modules are well formed
    Verify(Verify),
    /// Show the modelled cost of each instruction on a target
    Cost(Cost),
    /// Draw a module, for Graphviz, as SVG or as a page to look through
    Graph(Graph),
    /// Write a page on what an optimisation found and did
    Report(Report),
    /// Show the kernels of a module, for a vector machine
    Lower(Lower),
    /// Read a module and write it again
    Convert(Convert),
    /// List the passes and pipelines
    Passes(PassNames),
    /// List the ops of HLO
    Ops(Listing),
    /// List the built-in targets, or write a file to make one's own from
    Targets(Targets),
    /// Write the script with which a shell completes the command
    Completions(Completions),
    /// Write the manual
    Man(Man),
}

/// The stream of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
    File(PathBuf),
}

impl Command {
    /// Returns the stream of the JSON report, if it is requested: stderr if a result goes to
    /// stdout.
    pub(crate) fn json(&self) -> Option<Stream> {
        let (json, stream) = match self {
            Self::Opt(args) => (args.json, Stream::Stderr),
            Self::Run(args) => (args.json, Stream::Stderr),
            Self::Check(args) => (args.json, args.output.stream()),
            Self::Diff(args) => (args.json, args.output.stream()),
            Self::Reduce(args) => (args.json, args.stream()),
            Self::Tune(args) => (args.json, args.stream()),
            Self::Verify(args) => (args.json, args.output.stream()),
            Self::Cost(args) => (args.json, args.output.stream()),
            Self::Lower(args) => (args.json, args.output.stream()),
            Self::Passes(args) => (args.list.json, args.list.output.stream()),
            Self::Ops(args) => (args.json, args.output.stream()),
            Self::Targets(args) => (args.list.json, args.list.output.stream()),
            Self::Convert(_)
            | Self::Graph(_)
            | Self::Report(_)
            | Self::Completions(_)
            | Self::Man(_) => return None,
        };
        json.then_some(stream)
    }
}

/// Where the result goes.
#[derive(Clone, Debug, Args)]
pub(crate) struct Destination {
    /// Write here instead of stdout
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
}

impl Destination {
    /// Returns the file or stdout.
    pub(crate) fn sink(&self) -> Output {
        Output::of(self.output.clone())
    }

    /// Returns the stream of a report that goes there.
    fn stream(&self) -> Stream {
        match self.sink() {
            Output::Stdout => Stream::Stdout,
            Output::File(path) => Stream::File(path),
        }
    }
}

/// A module to read.
#[derive(Debug, Args)]
pub(crate) struct Input {
    /// The module: a file of HLO text or proto, a folder of dumps, or `-` for stdin
    #[arg(value_name = "IN")]
    pub(crate) path: PathBuf,
}

/// The options of an optimisation.
#[derive(Debug, Args)]
pub(crate) struct Optimisation {
    /// The machine that costs are weighed on: a built-in name (see `tilewright
    /// targets`), a TOML file, or `auto` for what the variable `TILEWRIGHT_TARGET` names or else the
    /// engine of this machine's devices; if absent, the one that the pipeline is for, which
    /// is `auto` for the default
    #[arg(long, value_name = "TARGET")]
    target: Option<String>,
    /// The pipeline to run (see `tilewright passes`)
    #[arg(long, value_name = "NAME", conflicts_with = "passes")]
    pub(crate) pipeline: Option<String>,
    /// The passes to run, in this order, until none changes anything; the
    /// result is kept whether it pays or not
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    pub(crate) passes: Option<Vec<String>>,
    /// Keep the order of float sums and products
    #[arg(long, conflicts_with = "fast_math")]
    pub(crate) exact: bool,
    /// Allow sums of any float differences to become differences of sums
    #[arg(long)]
    pub(crate) fast_math: bool,
    /// Make no rewrites whose error is bounded only where a test holds when the program runs
    #[arg(long, conflicts_with_all = ["exact", "fast_math"])]
    pub(crate) no_guards: bool,
}

impl Optimisation {
    /// Returns the name of the target, or its file.
    pub(crate) fn target(&self) -> &str {
        let pipeline = self.pipeline.as_deref().and_then(tilewright::pipeline);
        let default = pipeline.map_or("auto", |pipeline| pipeline.target);
        self.target.as_deref().unwrap_or(default)
    }
}

/// The form in which a module is written.
#[derive(Debug, Args)]
pub(crate) struct Form {
    /// Write HLO text, a binary HloModuleProto, or StableHLO in MLIR's text or bytecode; if absent,
    /// the name of OUT decides: a proto if it ends in .pb, StableHLO if in .mlir or .mlirbc, else
    /// HLO text
    #[arg(long, value_enum, value_name = "FORM")]
    emit: Option<EmitArg>,
    /// How to handle padding in layouts, which XLA's text does not have: fail, leave it out, or
    /// write it for Tilewright alone
    #[arg(long, value_enum, value_name = "HOW", default_value_t = Padding::Refuse)]
    padding: Padding,
    /// The form of the text: XLA's default, its short form without metadata,
    /// or names and an order that two equal modules share, for comparing. StableHLO has locations
    /// in the default form only
    #[arg(long, value_enum, value_name = "FORM", default_value_t = TextForm::Default)]
    form: TextForm,
}

/// The form of the text.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum TextForm {
    Default,
    Short,
    Canonical,
}

/// The forms of a module.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum EmitArg {
    Hlo,
    Proto,
    /// StableHLO in MLIR's text
    Stablehlo,
    /// StableHLO in MLIR's text, each operation in its generic form
    StablehloGeneric,
    /// StableHLO as a portable artifact, in MLIR's bytecode
    StablehloBytecode,
}

/// The handling of padding in layouts.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Padding {
    Refuse,
    Strip,
    Keep,
}

impl Form {
    /// Returns the form asked for.
    pub(crate) fn emit(&self) -> Option<Emit> {
        self.emit.map(|emit| match emit {
            EmitArg::Hlo => Emit::Hlo,
            EmitArg::Proto => Emit::Proto,
            EmitArg::Stablehlo => Emit::Stablehlo,
            EmitArg::StablehloGeneric => Emit::StablehloGeneric,
            EmitArg::StablehloBytecode => Emit::StablehloBytecode,
        })
    }

    /// Returns the options of the library.
    pub(crate) fn options(&self) -> PrintOptions {
        let form = match self.form {
            TextForm::Default => PrintForm::Default,
            TextForm::Short => PrintForm::Short,
            TextForm::Canonical => PrintForm::Canonical,
        };
        PrintOptions::new().with_form(form).with_padding(match self.padding {
            Padding::Refuse => LayoutPadding::Refuse,
            Padding::Strip => LayoutPadding::Strip,
            Padding::Keep => LayoutPadding::Keep,
        })
    }
}

/// The limits of an evaluation.
#[derive(Debug, Args)]
pub(crate) struct Bounds {
    /// The most steps of one evaluation: an instruction is one, and one more
    /// for every 512 elements; K, M and G stand for thousands, millions and
    /// billions
    #[arg(long, value_name = "N", default_value_t = Limits::default().max_steps, value_parser = steps)]
    max_steps: u64,
    /// The most bytes of values alive at one time in one evaluation; K, M and
    /// G stand for KiB, MiB and GiB
    #[arg(long, value_name = "N", default_value_t = Limits::default().max_bytes, value_parser = bytes)]
    max_bytes: u64,
}

impl Bounds {
    /// Returns the limits of the library.
    pub(crate) fn limits(&self) -> Limits {
        Limits { max_steps: self.max_steps, max_bytes: self.max_bytes }
    }
}

/// On which devices a module is evaluated.
#[derive(Debug, Args)]
pub(crate) struct DeviceCount {
    /// How many replicas run the module; if absent, as many as its header says or its
    /// collectives name
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    replicas: Option<u16>,
    /// How many partitions each replica has; if absent, as many as the header says or
    /// collectives and `shard_map` name
    #[arg(long, value_name = "M", value_parser = clap::value_parser!(u16).range(1..=1024))]
    partitions: Option<u16>,
}

impl DeviceCount {
    /// Returns the requested devices, completed by those of the header; `None` if nothing was
    /// requested.
    pub(crate) fn asked(&self, header: Devices) -> Option<Devices> {
        let Self { replicas, partitions } = self;
        (replicas.is_some() || partitions.is_some()).then(|| Devices {
            replicas: replicas.map_or(header.replicas, usize::from),
            partitions: partitions.map_or(header.partitions, usize::from),
        })
    }
}

fn not_negative(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok();
    let number = number.filter(|number| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| "it must be a number from 0 on".to_owned())
}

/// The most seconds that are accepted: a year.
const MOST_SECONDS: f64 = 365.0 * 24.0 * 60.0 * 60.0;

fn seconds(text: &str) -> Result<f64, String> {
    let seconds = not_negative(text)?;
    if seconds > MOST_SECONDS { Err("it must be at most a year".to_owned()) } else { Ok(seconds) }
}

fn steps(text: &str) -> Result<u64, String> {
    scaled(text, 1000)
}

fn bytes(text: &str) -> Result<u64, String> {
    scaled(text, 1024)
}

/// Returns a number that may end in K, M or G: once, twice or thrice the factor.
fn scaled(text: &str, factor: u64) -> Result<u64, String> {
    let power = match text.chars().last() {
        Some('k' | 'K') => 1,
        Some('m' | 'M') => 2,
        Some('g' | 'G') => 3,
        _ => 0,
    };
    let digits = if power == 0 { text } else { text.get(..text.len() - 1).unwrap_or_default() };
    let wrong = "it must be a whole number, which may end in K, M or G";
    let number: u64 = digits.parse().map_err(|_| wrong.to_owned())?;
    number.checked_mul(factor.pow(power)).ok_or_else(|| "it must be less than 2^64".to_owned())
}

/// How much of an explanation is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Explain {
    Layers,
    All,
}

/// `tilewright opt`.
#[derive(Debug, Args)]
pub(crate) struct Opt {
    #[command(flatten)]
    pub(crate) input: Input,
    /// Write here instead of stdout
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) optimisation: Optimisation,
    /// Evaluate before and after on several inputs; if they differ, name the
    /// rewrite that makes the difference and leave its pass out
    #[arg(long)]
    pub(crate) check: bool,
    #[command(flatten)]
    pub(crate) bounds: Bounds,
    /// Show costs before and after, and the changes of each pass, on stderr
    #[arg(long)]
    pub(crate) stats: bool,
    /// Explain in plain words, on stderr, what was done to which layer and what kept rewrites from
    /// being made; `all` adds every rewrite that was made or left
    #[arg(long, value_enum, value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "layers")]
    pub(crate) explain: Option<Explain>,
    /// Write the module before, and after every pass that changed it, into a new folder in this
    /// one, with the number of the run and the name of the module
    #[arg(long, value_name = "DIR")]
    pub(crate) dump_dir: Option<PathBuf>,
    /// Stop after this many rewrites, to find the one that matters
    #[arg(long, value_name = "N")]
    pub(crate) stop_after: Option<u64>,
    /// Give the report of --stats and --explain as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) form: Form,
}

/// `tilewright check`.
#[derive(Debug, Args)]
pub(crate) struct Check {
    /// A module: a file of HLO text or proto, a folder of dumps, or `-` for stdin
    #[arg(value_name = "A")]
    pub(crate) a: PathBuf,
    /// The module to compare with; the optimised A if absent
    #[arg(value_name = "B")]
    pub(crate) b: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) optimisation: Optimisation,
    /// The inputs to compare on, as arrays `in0`, `in1` ... of an npz file; if absent, the
    /// arguments that A recorded if it is a snapshot, or random ones of all kinds. For
    /// several devices, an array may have a first dim more, with a row for each
    #[arg(long, value_name = "NPZ", conflicts_with_all = ["seed", "seeds"])]
    pub(crate) inputs: Option<PathBuf>,
    /// Let floats differ by this fraction of the element of A plus --atol, instead of by the
    /// rounding error
    #[arg(long, value_name = "X", conflicts_with = "exact", value_parser = not_negative)]
    pub(crate) rtol: Option<f64>,
    /// Let floats differ by this plus --rtol
    #[arg(long, value_name = "X", conflicts_with = "exact", value_parser = not_negative)]
    pub(crate) atol: Option<f64>,
    /// The seed of the first random inputs of each kind; 0 if absent
    #[arg(long, value_name = "S")]
    pub(crate) seed: Option<u64>,
    /// The number of random inputs of each kind to try, from consecutive seeds; 2 if absent
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) seeds: Option<u64>,
    /// The data for infeed instructions in every evaluation, as arrays `in0`, `in1` ... of an
    /// npz file in the order in which they are read
    #[arg(long, value_name = "NPZ")]
    pub(crate) infeed: Option<PathBuf>,
    /// If the outputs differ, find the first instruction of A whose value differs from that of
    /// B's instruction of the same name
    #[arg(long)]
    pub(crate) bisect: bool,
    /// Only compare over a finite field, where nothing is rounded: exit code 1 if an output is
    /// not the same over the reals
    #[arg(long, conflicts_with_all = ["bisect", "infeed", "seeds"])]
    pub(crate) algebra: bool,
    #[command(flatten)]
    pub(crate) devices: DeviceCount,
    #[command(flatten)]
    pub(crate) bounds: Bounds,
    #[command(flatten)]
    pub(crate) output: Destination,
    /// Give the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `tilewright verify`.
#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// The modules: files of HLO text or proto, folders of dumps, or `-` for stdin
    #[arg(value_name = "IN", required = true)]
    pub(crate) paths: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) output: Destination,
    /// Give the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `tilewright cost`.
#[derive(Debug, Args)]
pub(crate) struct Cost {
    #[command(flatten)]
    pub(crate) input: Input,
    /// The machine: a built-in name (see `tilewright targets`), a TOML file, or `auto` for what the variable
    /// `TILEWRIGHT_TARGET` names or else the engine of this machine's devices
    #[arg(long, value_name = "TARGET", default_value = "auto")]
    pub(crate) target: String,
    /// Show the memory of arrays instead: the largest, with their padding, what is in use at once,
    /// and what would help
    #[arg(long)]
    pub(crate) memory: bool,
    #[command(flatten)]
    pub(crate) output: Destination,
    /// Give the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `tilewright lower`.
#[derive(Debug, Args)]
pub(crate) struct Lower {
    #[command(flatten)]
    pub(crate) input: Input,
    /// The machine: a built-in name (see `tilewright targets`), `auto` for the engine of this
    /// machine's devices, or a TOML file
    #[arg(long, value_name = "TARGET", default_value = tilewright::Target::DEFAULT)]
    pub(crate) target: String,
    /// How a reduce along several axes is computed: `fused`, in one pass over its input,
    /// `looped`, axis by axis, or `transposed`, with its input first turned into rows; the last
    /// two store arrays in main memory in between
    #[arg(long, value_name = "STRATEGY", default_value_t)]
    pub(crate) strategy: Strategy,
    /// Show the plan of every reduce in place of its kernel: the axes in memory,
    /// kept (d) or reduced (a), and for each reduced one how many results advance
    /// together, how far apart its entries lie, and how often this is done side by
    /// side
    #[arg(long)]
    pub(crate) plan: bool,
    #[command(flatten)]
    pub(crate) output: Destination,
    /// Give the kernels or plans as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `tilewright convert`.
#[derive(Debug, Args)]
pub(crate) struct Convert {
    #[command(flatten)]
    pub(crate) input: Input,
    /// Write here: HLO text, or a proto if it ends in .pb; `-` for stdout
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) form: Form,
}

/// `tilewright passes`.
#[derive(Debug, Args)]
pub(crate) struct PassNames {
    /// Passes to show with the laws of their rules [default: all passes and pipelines]
    #[arg(value_name = "PASS")]
    pub(crate) names: Vec<String>,
    #[command(flatten)]
    pub(crate) list: Listing,
}

/// `tilewright targets`.
#[derive(Debug, Args)]
pub(crate) struct Targets {
    /// The target to write a TOML file for: every key with its meaning and its value, to change
    /// those that differ [default: a list of all targets]
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Write a TOML file, as is done without --json
    #[arg(long, requires = "name", conflicts_with = "json")]
    pub(crate) toml: bool,
    /// Say how to measure an engine's reductions on this machine
    #[arg(long, conflicts_with_all = ["name", "json"])]
    pub(crate) calibrate: bool,
    #[command(flatten)]
    pub(crate) list: Listing,
}

/// `tilewright completions`.
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_enum, value_name = "SHELL")]
    pub(crate) shell: clap_complete::Shell,
    #[command(flatten)]
    pub(crate) output: Destination,
}

/// `tilewright man`.
#[derive(Debug, Args)]
pub(crate) struct Man {
    /// The verb whose page is written to stdout [default: the page of `tilewright`]
    #[arg(value_name = "VERB")]
    pub(crate) verb: Option<String>,
    /// Write all pages, one for each verb, into this folder
    #[arg(short, long, value_name = "DIR", conflicts_with = "verb")]
    pub(crate) output: Option<PathBuf>,
}

/// `tilewright ops`, and what other lists share with it.
#[derive(Debug, Args)]
pub(crate) struct Listing {
    #[command(flatten)]
    pub(crate) output: Destination,
    /// Give the list as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
