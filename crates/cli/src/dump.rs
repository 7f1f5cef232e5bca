//! The files of `opt --dump-dir`: a folder for each run, with the module after each pass.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{fs, io};

use anyhow::{Context as _, Result};
use tilewright::PrintOptions;
use tilewright::ir::Module;
use tilewright::report::counted;

/// A folder that gets the module as it was after each pass of one run.
pub(crate) struct Dump {
    folder: PathBuf,
    state: Mutex<Dumped>,
}

struct Dumped {
    /// The number of the next file.
    next: usize,
    /// The first error.
    failed: Result<()>,
}

impl Dump {
    /// Makes a folder for a run on a module of this name, beside those of other runs.
    pub(crate) fn new(runs: &Path, module: &str) -> Result<Self> {
        let failed = || format!("cannot make a folder in {}", runs.display());
        fs::create_dir_all(runs).with_context(failed)?;
        let folder = numbered(runs, &plain(module)).with_context(failed)?;
        Ok(Self { folder, state: Mutex::new(Dumped { next: 0, failed: Ok(()) }) })
    }

    fn state(&self) -> MutexGuard<'_, Dumped> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the module as it is after a stage. [`Dump::finish`] returns the first error.
    pub(crate) fn write(&self, stage: &str, module: &Module) {
        let mut state = self.state();
        if state.failed.is_ok() {
            state.failed = self.try_write(state.next, stage, module);
            state.next += 1;
        }
    }

    fn try_write(&self, number: usize, stage: &str, module: &Module) -> Result<()> {
        let path = self.folder.join(format!("{number:03}-{stage}.hlo"));
        let text = tilewright::print(module, &PrintOptions::default())?;
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Returns what was written and where, or the first error.
    pub(crate) fn finish(&self) -> Result<String> {
        let mut state = self.state();
        std::mem::replace(&mut state.failed, Ok(()))?;
        let modules = counted(state.next, "module");
        Ok(format!("--dump-dir: {modules} in {}", self.folder.display()))
    }
}

/// Makes a folder whose number is one more than the highest in the folder of runs.
fn numbered(runs: &Path, name: &str) -> io::Result<PathBuf> {
    let mut number = highest(runs)?;
    loop {
        number = number.saturating_add(1);
        let folder = runs.join(format!("{number:03}-{name}"));
        match fs::create_dir(&folder) {
            Ok(()) => return Ok(folder),
            // Another run has made it in the meantime.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < u32::MAX => {}
            Err(error) => return Err(error),
        }
    }
}

/// Returns the highest number with which the name of an entry begins; 0 if there is none.
fn highest(runs: &Path) -> io::Result<u32> {
    let mut highest = 0;
    for entry in fs::read_dir(runs)? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.split_once('-')?.0.parse().ok());
        highest = highest.max(number.unwrap_or(0));
    }
    Ok(highest)
}

/// Returns a module's name as the name of a folder, whatever characters it has.
fn plain(name: &str) -> String {
    const LONGEST: usize = 60;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    let letters = name.chars().take(LONGEST).map(|c| if is_plain(c) { c } else { '_' });
    letters.collect()
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn names_of_folders_are_plain() {
        assert_eq!(plain("jit_f.1"), "jit_f.1");
        assert_eq!(plain("../a b\0\u{e9}"), ".._a_b__");
        assert_eq!(plain(&"x".repeat(1000)).len(), 60);
    }
}
