//! `tilewright report`: a page on what an optimisation found and did.

use std::process::ExitCode;

use anyhow::Result;
use tilewright::{CheckOptions, Error, FloatMode, Optimized, Options, Verified};
use tilewright_tools::explain;
use tilewright_view::report::{Findings, report};

use crate::args::Report;
use crate::cmd::opt;
use crate::{io, progress};

pub(crate) fn run(args: Report) -> Result<ExitCode> {
    let output = io::Output::of(args.output.clone());
    let options = opt::options(&args.optimisation)?;
    let module = io::load(&args.input.path)?.module;
    if let Some(note) = tilewright::after_optimization(&module) {
        io::note(&note);
    }
    let work = || -> Result<String> {
        let optimized = tilewright::optimize(module.clone(), &options)?;
        let explanation = explain(&module, &optimized, &options)?;
        let [before, after] = tilewright::simplest_forms(&module, &optimized, &options)?;
        let verdict =
            args.check.then(|| verdict(&args, &module, &optimized, &options)).transpose()?;
        Ok(report(&Findings {
            forms: [&before, &after],
            optimized: &optimized,
            explanation: &explanation,
            target: &options.target,
            verdict: verdict.as_deref(),
        })?)
    };
    let page = progress::shown(|| Some("writing a report".into()), work)?;
    output.write(page.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// Compares the module before and after; returns the first line of the verdict.
fn verdict(
    args: &Report,
    module: &Verified,
    optimized: &Optimized,
    options: &Options,
) -> Result<String, Error> {
    let how = CheckOptions::default()
        .with_exact(options.float_mode == FloatMode::Exact)
        .with_limits(args.bounds.limits());
    let agreement = tilewright::check(module, &optimized.module, &how)?;
    Ok(agreement.to_string().lines().next().unwrap_or_default().to_owned())
}
