//! What `tilewright.jit(tune=True)` has decided for a user.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use serde::Serialize;
use tilewright::report::{aligned, counted};
use tilewright_tools::tune::{DECISIONS, Decision, Decisions, default_path, printable};

use crate::io;

pub(super) fn list(json: bool) -> Result<ExitCode> {
    let path = path()?;
    let known =
        Decisions::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    if known.damaged > 0 {
        let (lines, path) = (counted(known.damaged, "line"), path.display());
        let are = if known.damaged == 1 { "is no decision" } else { "are no decisions" };
        io::warn(&[format!("{lines} of {path} {are}")]);
    }
    let all: Vec<&Decision> = known.iter().collect();
    let text = if json { io::json(&all)? } else { listed(&all, &path) };
    io::to_stdout(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn clear(json: bool) -> Result<ExitCode> {
    #[derive(Serialize)]
    struct Cleared {
        cleared: usize,
        path: PathBuf,
    }
    let path = path()?;
    let cleared =
        Decisions::clear(&path).with_context(|| format!("cannot clear {}", path.display()))?;
    let text = format!("forgot {} of {}\n", counted(cleared, "decision"), path.display());
    let text = if json { io::json(&Cleared { cleared, path })? } else { text };
    io::to_stdout(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

fn path() -> Result<PathBuf> {
    default_path()
        .with_context(|| format!("there is no folder for caches: name a file by {DECISIONS}"))
}

fn listed(all: &[&Decision], path: &std::path::Path) -> String {
    let heads = ["function", "device", "engine", "winner", "measured", "modelled", "module"];
    let mut rows = vec![heads.map(str::to_owned)];
    rows.extend(all.iter().map(|decision| {
        let won = decision.forms.iter().find(|one| one.form.name == decision.winner);
        let ratio = |ratio: Option<f64>| ratio.map_or("-".to_owned(), |x| format!("{x:.2}x"));
        let program = &decision.program;
        [
            printable(&decision.function),
            printable(&program.device),
            printable(&program.engine),
            printable(&decision.winner),
            ratio(won.and_then(|won| won.measured)),
            ratio(won.and_then(|won| won.form.modelled)),
            printable(&program.module).chars().take(12).collect(),
        ]
    }));
    let table = if all.is_empty() { String::new() } else { aligned(&rows, |c| c == 4 || c == 5) };
    format!("{table}{} in {}\n", counted(all.len(), "decision"), path.display())
}
