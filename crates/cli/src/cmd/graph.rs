//! `tilewright graph`: pictures of modules.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use tilewright_view::{Emit, Options, Scene, ViewError, Weights};

use crate::args::Graph;
use crate::cmd::opt;
use crate::io;

pub(crate) fn run(args: Graph) -> Result<ExitCode> {
    let output = io::Output::of(args.output.clone());
    let emit = match (args.emit(), &output) {
        (Some(emit), _) => emit,
        (None, io::Output::File(path)) => Emit::of_path(path)?,
        (None, io::Output::Stdout) => Emit::Dot,
    };
    let optimisation = opt::options(&args.optimisation)?;
    let options = Options::new(optimisation.target.clone())
        .with_weights(weights(&args)?)
        .with_subject(args.subject());
    let module = io::load(&args.input.path)?.module;
    let scene = if args.after {
        if let Some(note) = tilewright::after_optimization(&module) {
            io::note(&note);
        }
        let optimized = tilewright::optimize(module.clone(), &optimisation)?;
        Scene::before_and_after(&module, &optimized.module, &optimized.report, &options)?
    } else {
        Scene::of(&module, &options)?
    };
    output.write(scene.print(emit)?.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

fn weights(args: &Graph) -> Result<Weights> {
    let read = |path: &Path| {
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
    };
    match &args.profile {
        Some(path) => Ok(Weights::Profile(read(path)?)),
        None if args.cost => Ok(Weights::Cycles),
        None => Ok(Weights::None),
    }
}

/// Returns the exit code of an error: 2 if what was asked for does not exist.
pub(crate) fn exit_code(error: &anyhow::Error) -> ExitCode {
    match error.downcast_ref::<ViewError>() {
        Some(
            ViewError::NoInstruction { .. }
            | ViewError::NoComputation { .. }
            | ViewError::UnknownForm(_),
        ) => ExitCode::from(2),
        _ => ExitCode::FAILURE,
    }
}
