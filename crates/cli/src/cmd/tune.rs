//! `tilewright tune`: which form of a module is the fastest on an engine?

mod remembered;
mod timer;

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use serde::Serialize;
use tilewright::{Emit, PrintOptions, Verified};
use tilewright_tools::tune::{Form, Measured, Race, RaceOptions, candidates, table};

use self::timer::{Failure, Timer};
use crate::args::{Stream, Tune};
use crate::command::{INTERRUPTED, stop_at_ctrl_c};
use crate::io::{self, Output};
use crate::progress;

pub(crate) fn run(args: Tune) -> Result<ExitCode> {
    let (Some(input), Some(command)) = (&args.input, &args.with) else {
        return if args.clear { remembered::clear(args.json) } else { remembered::list(args.json) };
    };
    let output = Output::of(args.output.clone());
    let emit = output.form(None)?;
    let module = io::load(input)?.module;
    let options = super::opt::options(&args.optimisation)?;
    let candidates = progress::stage("optimise", || candidates(&module, &options))?;
    let forms: Vec<Form> =
        std::iter::once(Form::original()).chain(candidates.iter().map(Form::from)).collect();
    let modules: Vec<&Verified> =
        std::iter::once(&module).chain(candidates.iter().map(|one| &one.module)).collect();
    let stop = stop_at_ctrl_c()?;
    let timer = Timer::new(command, args.timeout.map(Duration::from_secs_f64), &stop)?;
    let race = raced(&args, &modules, &forms, &timer)?;
    let winner = race.winner().unwrap_or_default();
    let best = modules.get(winner).context("no form won")?;
    output.write(&written(best, emit)?)?;
    let report = Report {
        winner: forms.get(winner).map(|form| form.name.clone()).unwrap_or_default(),
        forms: Measured::all(&race, &forms),
    };
    io::to_stderr(&if args.json { io::json(&report)? } else { report.to_string() });
    let is_interrupted = stop.load(Ordering::Relaxed);
    Ok(if is_interrupted { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
}

impl Tune {
    /// Returns the stream of the report: stdout for a list, since it is the result.
    pub(crate) fn stream(&self) -> Stream {
        if self.input.is_some() { Stream::Stderr } else { Stream::Stdout }
    }
}

fn written(module: &Verified, emit: Emit) -> Result<Vec<u8>> {
    Ok(tilewright::write(module, emit, &PrintOptions::default())?)
}

/// Runs the command on each form in turn, until one has won or the time is over.
fn raced(args: &Tune, modules: &[&Verified], forms: &[Form], timer: &Timer) -> Result<Race> {
    let begun = Instant::now();
    let options = RaceOptions { least_gain: args.least_gain, seconds: args.max_seconds };
    let mut race = Race::new(forms.len().saturating_sub(1), options);
    for (number, module) in modules.iter().enumerate() {
        timer.add(number, &written(module, Emit::Hlo)?)?;
    }
    let line = Mutex::new(String::new());
    let told = || Some(line.lock().unwrap_or_else(PoisonError::into_inner).clone().into());
    progress::shown(told, || {
        while let Some(lane) = race.next() {
            let name = forms.get(lane).map_or("", |form| &form.name);
            *line.lock().unwrap_or_else(PoisonError::into_inner) = format!("running {name}");
            match timer.seconds(lane) {
                Ok(seconds) => race.record(seconds),
                Err(Failure::Stopped) => race.end(),
                Err(Failure::Fails(why)) if lane == 0 => {
                    return Err(anyhow!("on the module itself, the command {why}"));
                }
                Err(Failure::Fails(why)) => race.take_out(lane, why),
                Err(Failure::Other(error)) => return Err(error),
            }
            if begun.elapsed().as_secs_f64() >= args.max_seconds {
                race.end();
            }
        }
        Ok(())
    })?;
    Ok(race)
}

/// The times of all forms, and which won.
#[derive(Serialize)]
struct Report {
    winner: String,
    forms: Vec<Measured>,
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&table(&self.forms))?;
        if let [_] = self.forms.as_slice() {
            writeln!(f, "nothing pays by the model, so nothing was measured")?;
        }
        Ok(())
    }
}
