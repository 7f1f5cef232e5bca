//! Files, stdin and stdout: all reading and writing of the command.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::{Context as _, Result};
use clap::CommandFactory as _;
use clap::error::ErrorKind;
use serde::Serialize;
use tilewright::ir::Literal;
use tilewright::{Emit, Error, Loaded};

use crate::args::Cli;
use crate::{progress, shell};

/// Returns the path that means stdin or stdout.
fn is_dash(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Ends with a usage error if stdin is named more than once.
pub(crate) fn stdin_once<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) {
    if paths.into_iter().filter(|path| is_dash(path)).count() > 1 {
        let message = "stdin (`-`) can be read only once; name a file for the other";
        Cli::command().error(ErrorKind::ArgumentConflict, message).exit();
    }
}

/// Reads a module from a file, a folder or stdin, and says how it was chosen.
pub(crate) fn load(path: &Path) -> Result<Loaded, Error> {
    let loaded = load_quietly(path)?;
    loaded.notes.iter().for_each(|text| note(text));
    Ok(loaded)
}

/// Reads a module from a file, a folder or stdin.
pub(crate) fn load_quietly(path: &Path) -> Result<Loaded, Error> {
    let start = Instant::now();
    let loaded = if is_dash(path) {
        // Whoever types at a terminal is not disturbed.
        load_module(path)
    } else {
        progress::shown(|| Some("reading".into()), || load_module(path))
    }?;
    let all = start.elapsed();
    match loaded.verify_time {
        Some(verified) => {
            progress::tell_time("read", all.saturating_sub(verified));
            progress::tell_time("verify", verified);
        }
        None => progress::tell_time("read and verify", all),
    }
    Ok(loaded)
}

fn load_module(path: &Path) -> Result<Loaded, Error> {
    if is_dash(path) {
        let mut bytes = Vec::new();
        io::stdin()
            .lock()
            .read_to_end(&mut bytes)
            .map_err(|source| Error::read("<stdin>", source))?;
        tilewright::load_bytes("<stdin>", bytes)
    } else {
        tilewright::load_file(path)
    }
}

/// Returns the arrays that infeed instructions read; none without a file.
pub(crate) fn infeed(path: Option<&Path>) -> Result<Vec<Literal>, Error> {
    path.map_or(Ok(Vec::new()), tilewright::read_infeed)
}

/// The destination of a result.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Output {
    Stdout,
    File(PathBuf),
}

impl Output {
    /// Returns the sink for the path of `-o`, or stdout without one.
    pub(crate) fn of(path: Option<PathBuf>) -> Self {
        match path {
            Some(path) if !is_dash(&path) => Self::File(path),
            Some(_) | None => Self::Stdout,
        }
    }

    /// Returns the form in which a module is written there: the requested one, or else that of
    /// the file's name.
    pub(crate) fn form(&self, asked: Option<Emit>) -> Result<Emit, Error> {
        match (asked, self) {
            (Some(emit), _) => Ok(emit),
            (None, Self::File(path)) => Emit::of_path(path),
            (None, Self::Stdout) => Ok(Emit::Hlo),
        }
    }

    /// Checks whether what is written there is coloured: a terminal, unless `--color` or the environment says
    /// otherwise.
    pub(crate) fn colours(&self) -> bool {
        let choice = match self {
            Self::Stdout => anstream::AutoStream::choice(&io::stdout()),
            Self::File(_) => anstream::ColorChoice::Never,
        };
        choice != anstream::ColorChoice::Never
    }

    /// Writes all bytes. A file is replaced at once or not at all.
    pub(crate) fn write(&self, bytes: &[u8]) -> Result<()> {
        progress::timed("write", || match self {
            Self::Stdout => to_stdout(bytes),
            Self::File(path) => {
                replace(path, bytes).with_context(|| format!("cannot write {}", path.display()))
            }
        })
    }
}

/// Writes a file under another name and then renames it, so that no reader sees a partial file.
/// Anything but a plain file (a pipe, `/dev/null`) is written directly.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if path.metadata().is_ok_and(|meta| !meta.is_file()) {
        return File::options().write(true).open(path)?.write_all(bytes);
    }
    // A link stays a link: its target is replaced.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let name = path.file_name().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidFilename))?;
    let (temporary, mut file) = create_beside(&path, name)?;
    let written = file.write_all(bytes).and_then(|()| {
        if let Ok(meta) = path.metadata() {
            file.set_permissions(meta.permissions())?;
        }
        drop(file);
        std::fs::rename(&temporary, &path)
    });
    if written.is_err() {
        // The first error is the one to report.
        let _ = std::fs::remove_file(&temporary);
    }
    written
}

/// Returns a new file in the folder of `path`.
fn create_beside(path: &Path, name: &std::ffi::OsStr) -> io::Result<(PathBuf, File)> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}-{number}.tmp", std::process::id()));
        let temporary = path.with_file_name(hidden);
        match File::options().write(true).create_new(true).open(&temporary) {
            Ok(file) => return Ok((temporary, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

/// Writes to stdout. Whoever closed the pipe has read enough.
pub(crate) fn to_stdout(bytes: &[u8]) -> Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(error).context("cannot write to stdout")
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Writes to stderr. If that fails, the error cannot be reported.
pub(crate) fn to_stderr(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

/// Warns of unexpected results that are no errors, a line each.
pub(crate) fn warn(warnings: &[String]) {
    if shell::notes() {
        let lines = warnings.iter().map(|warning| format!("warning: {warning}\n"));
        to_stderr(&lines.collect::<String>());
    }
}

/// Says what is worth knowing on stderr.
pub(crate) fn note(text: &str) {
    if shell::notes() {
        to_stderr(&format!("note: {text}\n"));
    }
}

/// Returns a report as text or as JSON, ended by a newline.
pub(crate) fn report<T: Display + Serialize>(report: &T, as_json: bool) -> Result<String> {
    if as_json { json(report) } else { Ok(format!("{report}\n")) }
}

/// Returns a value as JSON, ended by a newline.
pub(crate) fn json<T: Serialize + ?Sized>(value: &T) -> Result<String> {
    let mut text = serde_json::to_string_pretty(value).context("cannot write JSON")?;
    text.push('\n');
    Ok(text)
}
