//! Folders that XLA dumped modules into (`XLA_FLAGS=--xla_dump_to=DIR`).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::choice::Candidates;
use crate::error::Error;
use crate::module::{Loaded, load_file};

/// The names of the files that have a module before optimisation end so. A text has a header, which
/// a proto does not; a proto has all constants, of which a text may leave some out.
const ENDINGS: [&str; 6] = [
    "before_optimizations.txt",
    "before_optimizations.hlo",
    "before_optimizations.hlo.pb",
    "before_optimizations.pb",
    "hlo_unoptimized_snapshot.pb",
    "hlo_unoptimized_snapshot.txt",
];

/// A constant whose value a text leaves out.
const ELIDED: &str = "constant({...})";

/// Reads the module before optimisation in a folder. If there are several, it is the largest,
/// unless another is more than half as large.
pub(crate) fn load(folder: &Path) -> Result<Loaded, Error> {
    let name = folder.display().to_string();
    let modules = dumped(folder).map_err(|error| Error::read(&*name, error))?;
    let mut candidates = Candidates::default();
    for files in modules.values() {
        let (file, module) = fullest(files);
        let file = file.file_name().map_or(file.as_os_str(), |name| name);
        candidates.add(file.display().to_string(), module);
    }
    if candidates.in_doubt() {
        return Err(Error::Several { name, modules: candidates.list() });
    }
    let none = Error::NoModule {
        name: name.clone(),
        problem: "it is a folder without a module before optimisation \
                  (`*.before_optimizations.*`, which XLA writes with \
                  XLA_FLAGS=--xla_dump_to=DIR); name a file in it",
    };
    candidates.largest(&name, "before optimisation").unwrap_or(Err(none))
}

/// Returns the files of each module before optimisation, in the order of the endings.
fn dumped(folder: &Path) -> std::io::Result<BTreeMap<String, Vec<PathBuf>>> {
    let mut found: BTreeMap<String, Vec<(usize, PathBuf)>> = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        if let Some((module, ending)) = name.and_then(parts).filter(|_| path.is_file()) {
            found.entry(module.to_owned()).or_default().push((ending, path));
        }
    }
    let sorted = found.into_iter().map(|(module, mut files)| {
        files.sort();
        (module, files.into_iter().map(|(_, path)| path).collect())
    });
    Ok(sorted.collect())
}

/// Returns the name of the module and the number of the ending of a file's name.
fn parts(file: &str) -> Option<(&str, usize)> {
    let file = file.strip_suffix(".gz").unwrap_or(file);
    let mut endings = ENDINGS.iter().enumerate();
    let (stem, ending) = endings.find_map(|(at, ending)| Some((file.strip_suffix(ending)?, at)))?;
    let stem = stem.strip_suffix('.').unwrap_or(stem);
    // A snapshot is made of every execution.
    Some((stem.split_once(".execution_").map_or(stem, |(module, _)| module), ending))
}

/// Returns the first file of a module that has all of its constants, or else the first.
fn fullest(files: &[PathBuf]) -> (&Path, Result<Loaded, Error>) {
    let mut files = files.iter().map(|file| (file.as_path(), load_file(file)));
    let is_full = |module: &Loaded| !module.source.text.contains(ELIDED);
    let Some(first) = files.next() else {
        return (Path::new(""), Err(Error::read("", std::io::ErrorKind::NotFound.into())));
    };
    if first.1.as_ref().is_ok_and(|module| !is_full(module)) {
        let fuller = files.find(|(_, module)| module.as_ref().is_ok_and(is_full));
        return fuller.unwrap_or(first);
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_dumps_are_taken_apart() {
        let parts = |file| parts(file).map(|(module, _)| module);
        assert_eq!(parts("module_0000.f.before_optimizations.txt"), Some("module_0000.f"));
        assert_eq!(parts("module_0000.f.before_optimizations.hlo.pb.gz"), Some("module_0000.f"));
        let snapshot = "module_0000.f.execution_0012.hlo_unoptimized_snapshot.pb";
        assert_eq!(parts(snapshot), Some("module_0000.f"));
        assert_eq!(parts("module_0000.f.cpu_after_optimizations.txt"), None);
        assert_eq!(parts("module_0000.f.0001.x.before_algsimp.txt"), None);
    }
}
