//! `tilewright opt`: rewrite a module so that it costs less.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use tilewright::ir::Module;
use tilewright::report::{LeftOut, OptReport, caveat};
use tilewright::{CheckOptions, Error, FloatMode, Loaded, Options};

use crate::args::Opt;
use crate::{io, report};

pub(crate) fn run(args: Opt) -> Result<ExitCode> {
    let output = io::Output::of(args.output.clone());
    let emit = output.form(args.form.emit())?;
    let mut options = options(&args.optimisation)?;
    options.stop_after = args.stop_after;
    let Loaded { module: before, recording, .. } = io::load(&args.input.path)?;
    let mut dump = args.dump_dir.as_deref().map(Dump::new).transpose()?;
    if let Some(dump) = &mut dump {
        dump.write("before", &before);
    }
    let mut observe = |pass: &'static str, module: &Module| {
        if let Some(dump) = &mut dump {
            dump.write(pass, module);
        }
    };
    let (optimized, blamed, doubts) = if args.check {
        let recorded = recording.map(|recording| vec![recording.arguments]);
        let how = CheckOptions {
            exact: options.float_mode == FloatMode::Exact,
            inputs: recorded.as_deref(),
            limits: args.bounds.limits(),
            ..CheckOptions::default()
        };
        let guarded = tilewright::optimize_guarded(&before, &options, &how, &mut observe)?;
        let doubts = guarded.agreement.differ_by_algebra();
        let doubts = doubts.map(|(index, verdict)| format!("out{index} {verdict} over the reals"));
        let doubts: Vec<String> = doubts.collect();
        (guarded.optimized, guarded.blamed, doubts)
    } else {
        let optimized = tilewright::optimize_observed(before, &options, &mut observe)?;
        (optimized, Vec::new(), Vec::new())
    };
    dump.map_or(Ok(()), |dump| dump.failed)?;
    let bytes = tilewright::write(&optimized.module, emit, &args.form.options())?;
    output.write(&bytes)?;
    let left_out = blamed.iter().map(LeftOut::from).collect();
    let caveat = caveat(&optimized.module);
    let summary = OptReport { left_out, caveat, ..OptReport::from(&optimized.report) };
    if args.json {
        io::to_stderr(&io::json(&summary)?);
        return Ok(ExitCode::SUCCESS);
    }
    io::warn(&tilewright::losses(&optimized.module, emit));
    io::warn(&doubts);
    io::warn(&blamed.iter().map(ToString::to_string).collect::<Vec<_>>());
    if args.explain {
        io::to_stderr(&report::explanation(&summary));
    }
    if args.stats {
        let gap = if args.explain { "\n" } else { "" };
        io::to_stderr(&format!("{gap}{}", report::statistics(&summary, &options.target.name)));
    }
    Ok(ExitCode::SUCCESS)
}

/// The options of the library, from those of the command.
pub(super) fn options(args: &crate::args::Optimisation) -> Result<Options, Error> {
    let mut options = Options::new(tilewright::target(args.target())?);
    options.float_mode = match (args.exact, args.fast_math) {
        (true, _) => FloatMode::Exact,
        (false, true) => FloatMode::Fast,
        (false, false) => FloatMode::default(),
    };
    if let Some(name) = &args.pipeline {
        options.passes = tilewright::PassSelection::Pipeline(name.clone());
    }
    if let Some(names) = &args.passes {
        options.passes = tilewright::PassSelection::List(names.clone());
    }
    Ok(options)
}

/// A folder that gets the module as it was after each pass.
struct Dump<'a> {
    folder: &'a Path,
    next: usize,
    /// The first thing that went wrong.
    failed: Result<()>,
}

impl<'a> Dump<'a> {
    fn new(folder: &'a Path) -> Result<Self> {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(Self { folder, next: 0, failed: Ok(()) })
    }

    fn write(&mut self, stage: &str, module: &Module) {
        if self.failed.is_ok() {
            self.failed = self.try_write(stage, module);
            self.next += 1;
        }
    }

    fn try_write(&self, stage: &str, module: &Module) -> Result<()> {
        let path = self.folder.join(format!("{:03}-{stage}.hlo", self.next));
        let text = tilewright::print(module)?;
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }
}
