//! `tilewright targets`: the built-in targets, and files to make one's own from.

use std::process::ExitCode;

use anyhow::Result;
use tilewright::listing::TargetList;

use crate::args::Targets;
use crate::io;

/// How an engine is measured.
const CALIBRATE: &str = "\
A target's table of reductions is measured, on a quiet machine, in a clone of Tilewright and an
environment of Python that has the jaxlib to be measured:

  tilewright targets cpu -o mine.toml
  python benches/calibrate.py --engine mine.toml    # 40 minutes: draws programs, times their forms
  python benches/calibrate.py --refine mine.toml    # draws more where a form is faster
  python benches/check_forms.py mine.toml           # how often the choice is the best one
  tilewright opt module.hlo --target mine.toml

What `tilewright.jit(tune=True)` has measured says which modelled gains are none on this machine:

  tilewright tune --list --json > decisions.json
  python benches/learned.py decisions.json --base xla-cpu-0.12 -o mine.toml
";

pub(crate) fn run(args: Targets) -> Result<ExitCode> {
    let text = match &args.name {
        Some(name) if !args.list.json => tilewright::target_template(name)?,
        Some(name) => io::report(&TargetList::of(name)?, true)?,
        None if args.calibrate => CALIBRATE.to_owned(),
        None => io::report(&TargetList::new()?, args.list.json)?,
    };
    args.list.output.sink().write(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
