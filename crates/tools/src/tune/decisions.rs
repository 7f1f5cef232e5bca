//! Remembers which form of a program won, in a file.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::measured::Measured;

/// The variable that names the file of decisions.
pub const DECISIONS: &str = "TILEWRIGHT_DECISIONS";

/// A file of more bytes is written anew: without what was replaced, and the oldest decisions if half of
/// this is not enough for all.
const MOST_BYTES: usize = 1 << 20;
/// More bytes are not read: no file of decisions is so long.
const MOST_READ: u64 = 64 << 20;
/// How long another process is waited for that writes.
const PATIENCE: Duration = Duration::from_secs(2);
/// The time between two looks at the lock.
const LOOKS: Duration = Duration::from_millis(5);

/// All that a decision depends on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Program {
    /// A digest of the module.
    pub module: String,
    /// The options of the optimisation and of the compiler.
    pub options: String,
    /// The kind of the devices, and their number.
    pub device: String,
    /// The versions of the engine and of its driver.
    pub engine: String,
    /// The version of Tilewright.
    pub version: String,
}

/// The form of a program that won, and the times of all forms.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// The program.
    #[serde(flatten)]
    pub program: Program,
    /// The name of the function, for people.
    pub function: String,
    /// The name of the form that won.
    pub winner: String,
    /// A digest of that form: if another one is made under its name now, the decision does not hold.
    pub digest: String,
    /// The seconds that measuring took, compilations included.
    pub seconds: f64,
    /// All forms, the original first.
    pub forms: Vec<Measured>,
}

/// Decisions by program.
#[derive(Clone, Debug, Default)]
pub struct Decisions {
    /// The last decision for each program.
    known: BTreeMap<Program, Decision>,
    /// The number of lines that say nothing, of a damaged or foreign file.
    pub damaged: usize,
}

/// Returns the file of this user: that of [`DECISIONS`], or `tilewright/decisions.jsonl` in the folder of caches.
/// `None` if there is no such folder, or the variable is empty.
pub fn default_path() -> Option<PathBuf> {
    match std::env::var_os(DECISIONS) {
        Some(path) if path.is_empty() => None,
        Some(path) => Some(path.into()),
        None => Some(dirs::cache_dir()?.join("tilewright").join("decisions.jsonl")),
    }
}

impl Decisions {
    /// Reads a file, with one decision in each line; the last one for a program counts. Lines that are no
    /// decisions are counted and skipped. A file that does not exist has none.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn read(path: &Path) -> io::Result<Self> {
        let bytes = read(path)?;
        let mut decisions = Self::default();
        for line in lines(&bytes) {
            match serde_json::from_slice::<Decision>(line) {
                Ok(decision) => {
                    decisions.known.insert(decision.program.clone(), decision);
                }
                Err(_) => decisions.damaged += 1,
            }
        }
        Ok(decisions)
    }

    /// Returns the decision for a program.
    pub fn find(&self, program: &Program) -> Option<&Decision> {
        self.known.get(program)
    }

    /// Returns all decisions, in order of their programs.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Decision> {
        self.known.values()
    }

    /// Adds a decision to a file. Other processes may do so at the same time.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn append(path: &Path, decision: &Decision) -> io::Result<()> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let _lock = Lock::take(path)?;
        // A process that was killed may have left half a line, which ends here.
        let mut line = vec![b'\n'];
        serde_json::to_writer(&mut line, decision)?;
        line.push(b'\n');
        let mut file = File::options().create(true).append(true).open(path)?;
        file.write_all(&line)?;
        if usize::try_from(file.metadata()?.len()).is_ok_and(|bytes| bytes <= MOST_BYTES) {
            return Ok(());
        }
        drop(file);
        replace(path, &compacted(&read(path)?))
    }

    /// Removes all decisions from a file. Returns how many there were.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or written.
    pub fn clear(path: &Path) -> io::Result<usize> {
        let count = Self::read(path)?.known.len();
        if path.try_exists()? {
            let _lock = Lock::take(path)?;
            replace(path, &[])?;
        }
        Ok(count)
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        opened => drop(opened?.take(MOST_READ).read_to_end(&mut bytes)?),
    }
    Ok(bytes)
}

fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty())
}

/// Returns the lines of a file that count, the last for each program, as far as half of [`MOST_BYTES`] takes
/// them; the oldest go first. What is JSON, but no decision that is known here, may be one of a newer
/// version, and stays.
fn compacted(bytes: &[u8]) -> Vec<u8> {
    let mut seen = BTreeMap::new();
    let mut kept = Vec::new();
    let mut left = MOST_BYTES / 2;
    let all: Vec<&[u8]> = lines(bytes).collect();
    for line in all.into_iter().rev() {
        let is_replaced = match serde_json::from_slice::<Decision>(line) {
            Ok(decision) => seen.insert(decision.program, ()).is_some(),
            Err(_) => serde_json::from_slice::<serde::de::IgnoredAny>(line).is_err(),
        };
        if is_replaced {
            continue;
        }
        let Some(rest) = left.checked_sub(line.len() + 1) else { break };
        left = rest;
        kept.push(line);
    }
    kept.iter().rev().flat_map(|line| line.iter().copied().chain([b'\n'])).collect()
}

/// Replaces a file at once: who reads it sees the old one or the new one.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = beside(path, &format!(".{}.tmp", std::process::id()));
    let written = fs::write(&temporary, bytes).and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // The first error is the one to report.
        let _ = fs::remove_file(&temporary);
    }
    written
}

fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.file_name().map_or_else(OsString::new, ToOwned::to_owned);
    name.push(end);
    path.with_file_name(name)
}

/// Keeps other processes from writing a file, by a lock on a file beside it, which stays.
struct Lock {
    /// `None` where files cannot be locked, or another process holds the lock for too long.
    _file: Option<File>,
}

impl Lock {
    fn take(path: &Path) -> io::Result<Self> {
        let lock = beside(path, ".lock");
        let file = File::options().create(true).truncate(false).write(true).open(lock)?;
        let begun = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: Some(file) }),
                Err(TryLockError::WouldBlock) if begun.elapsed() < PATIENCE => {
                    thread::sleep(LOOKS);
                }
                Err(_) => return Ok(Self { _file: None }),
            }
        }
    }
}
