//! Runs commands of the user on modules, by the shell.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use process_wrap::std::{ChildWrapper, CommandWrap};

/// The name of the variable with the path of the module.
const CANDIDATE: &str = "TILEWRIGHT_CANDIDATE";
/// The name of the variable with the folder where `tilewright` was started.
const FOLDER: &str = "TILEWRIGHT_FOLDER";
/// The time between two looks at a running command, at first and at most.
const LOOKS: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(20)];
/// The exit code after Ctrl-C, as of a shell: 128 and the number of the signal.
pub(crate) const INTERRUPTED: u8 = 130;

/// The least time that a run is given if the user says nothing.
const PATIENCE: Duration = Duration::from_secs(10);
/// How many times as long as the first run a run may take then.
const TIMES_FIRST: u32 = 10;

/// The time that a run may take.
pub(crate) struct TimeLimit {
    asked: Option<Duration>,
    first: OnceLock<Duration>,
}

impl TimeLimit {
    /// Returns the limit that the user asks for, or else one that the first run sets.
    pub(crate) fn new(asked: Option<Duration>) -> Self {
        Self { asked, first: OnceLock::new() }
    }

    /// Notes how long a run took that ended by itself.
    pub(crate) fn note(&self, time: Duration) {
        self.first.get_or_init(|| time);
    }

    /// Checks whether a run that began then has taken too long. The first one may take any time.
    pub(crate) fn is_over(&self, begun: Instant) -> bool {
        let by_first = || Some(self.first.get()?.saturating_mul(TIMES_FIRST).max(PATIENCE));
        self.asked.or_else(by_first).is_some_and(|most| begun.elapsed() >= most)
    }
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Exited(i32),
    /// By a signal.
    Killed,
    /// It was ended, since it took too long or nobody waits for it any more.
    Stopped,
}

/// A command that takes the path of a module.
pub(crate) struct ModuleCommand {
    command: String,
    /// The folder where `tilewright` was started.
    folder: PathBuf,
}

impl ModuleCommand {
    /// Returns a command, with the path of a module in place of `{}`, or at its end if it names neither that nor
    /// the variable.
    pub(crate) fn new(command: &str) -> Result<Self> {
        let is_told = command.contains("{}") || command.contains(CANDIDATE);
        Ok(Self {
            command: if is_told { command.to_owned() } else { format!("{command} {{}}") },
            folder: std::env::current_dir().context("cannot tell the current folder")?,
        })
    }

    /// Runs the command in a folder, and waits until it ends or `is_over`.
    pub(crate) fn run(
        &self,
        folder: &Path,
        module: &Path,
        output: [Stdio; 2],
        is_over: impl FnMut() -> bool,
    ) -> Result<Outcome> {
        let mut child = self.wrapped(folder, module, output).spawn().context("cannot run `sh`")?;
        wait(child.as_mut(), is_over)
    }

    fn wrapped(&self, folder: &Path, module: &Path, [stdout, stderr]: [Stdio; 2]) -> CommandWrap {
        let script = self.command.replace("{}", &quoted(module));
        let mut command = CommandWrap::with_new("sh", |command| {
            command
                .args(["-c", &script])
                .current_dir(folder)
                .env(CANDIDATE, module)
                .env(FOLDER, &self.folder)
                .stdin(Stdio::null())
                .stdout(stdout)
                .stderr(stderr);
        });
        // The processes that the shell starts end with it.
        #[cfg(unix)]
        command.wrap(process_wrap::std::ProcessGroup::leader());
        #[cfg(windows)]
        command.wrap(process_wrap::std::JobObject);
        command
    }
}

fn wait(child: &mut dyn ChildWrapper, mut is_over: impl FnMut() -> bool) -> Result<Outcome> {
    let [mut pause, longest] = LOOKS;
    loop {
        if let Some(status) = child.try_wait().context("cannot wait for the command")? {
            return Ok(ended(status));
        }
        if is_over() {
            child.start_kill().context("cannot end the command")?;
            child.wait().context("cannot wait for the command")?;
            return Ok(Outcome::Stopped);
        }
        std::thread::sleep(pause);
        pause = pause.saturating_mul(2).min(longest);
    }
}

fn ended(status: ExitStatus) -> Outcome {
    status.code().map_or(Outcome::Killed, Outcome::Exited)
}

/// Returns a path as one word of the shell.
fn quoted(path: &Path) -> String {
    let path = path.to_string_lossy();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:".contains(c);
    if path.chars().all(is_plain) {
        return path.into_owned();
    }
    format!("'{}'", path.replace('\'', "'\\''"))
}

/// Returns a new folder for modules, which is removed when it is dropped.
pub(crate) fn scratch(verb: &str) -> Result<tempfile::TempDir> {
    let prefix = format!("tilewright-{verb}-");
    let folder = tempfile::Builder::new().prefix(&prefix).tempdir();
    folder.context("cannot make a folder for candidates")
}

/// Creates a file for what a command prints.
pub(crate) fn printed(path: &Path) -> Result<File> {
    File::create(path).with_context(|| format!("cannot write {}", path.display()))
}

/// Returns a flag that the first Ctrl-C sets; the second ends the program.
pub(crate) fn stop_at_ctrl_c() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(INTERRUPTED.into());
        }
    })
    .context("cannot listen to Ctrl-C")?;
    Ok(stop)
}
