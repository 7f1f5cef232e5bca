//! Remembers which form of a program won, in a file.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::measured::Measured;

/// The variable that names the file of decisions.
pub const DECISIONS: &str = "TILEWRIGHT_DECISIONS";

/// Beyond this many bytes, a file is written anew without what was replaced.
const MOST_BYTES: u64 = 4 << 20;

/// All that a decision depends on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Program {
    /// A digest of the module.
    pub module: String,
    /// The options of the optimisation.
    pub options: String,
    /// The kind of the devices, and their number.
    pub device: String,
    /// The versions of the engine and of its driver.
    pub engine: String,
    /// The version of Tilewright.
    pub version: String,
}

/// What won of the forms of a program.
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
        let mut file = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            opened => opened?,
        };
        file.lock_shared()?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(Self::of(&bytes))
    }

    fn of(bytes: &[u8]) -> Self {
        let mut decisions = Self::default();
        for line in bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            match serde_json::from_slice::<Decision>(line) {
                Ok(decision) => drop(decisions.add(decision)),
                Err(_) => decisions.damaged += 1,
            }
        }
        decisions
    }

    /// Adds a decision. Returns the one that it replaces.
    pub fn add(&mut self, decision: Decision) -> Option<Decision> {
        self.known.insert(decision.program.clone(), decision)
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
        let mut file = File::options().create(true).append(true).read(true).open(path)?;
        file.lock()?;
        // A process that was killed may have left half a line, which ends here.
        let mut line = vec![b'\n'];
        serde_json::to_writer(&mut line, decision)?;
        line.push(b'\n');
        if file.metadata()?.len() > MOST_BYTES {
            compact(&mut file)?;
        }
        file.write_all(&line)
    }

    /// Removes all decisions from a file. Returns how many there were.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or written.
    pub fn clear(path: &Path) -> io::Result<usize> {
        let count = Self::read(path)?.known.len();
        if path.try_exists()? {
            let file = File::options().write(true).open(path)?;
            file.lock()?;
            file.set_len(0)?;
        }
        Ok(count)
    }
}

/// Writes a locked file anew with the last decision for each program.
fn compact(file: &mut File) -> io::Result<()> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let mut text = Vec::new();
    for decision in Decisions::of(&bytes).iter() {
        serde_json::to_writer(&mut text, decision)?;
        text.push(b'\n');
    }
    file.set_len(0)?;
    file.write_all(&text)
}
