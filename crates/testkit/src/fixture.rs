//! Walks folders of fixtures: `.hlo` files, some with an `.npz` beside them.
//!
//! A file that means nothing here is an error, so that no fixture is left
//! untested by being misnamed.

use std::fmt;
use std::path::{Path, PathBuf};

/// A module, and the file of its inputs and outputs where it has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fixture {
    /// The path below the folder walked, without extension, `/` between parts.
    pub name: String,
    /// The `.hlo` file.
    pub hlo: PathBuf,
    /// The `.npz` file of the same name.
    pub npz: Option<PathBuf>,
}

/// Why a folder of fixtures could not be walked.
#[derive(Debug)]
pub enum FixtureError {
    /// A file or folder cannot be read.
    Io(PathBuf, std::io::Error),
    /// A file is neither `.hlo` nor `.npz`, nor one of the exceptions.
    UnknownFile(PathBuf),
    /// An `.npz` has no `.hlo` of its name beside it.
    WithoutModule(PathBuf),
    /// There is no fixture at all.
    Empty(PathBuf),
}

impl fmt::Display for FixtureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(path, error) => write!(f, "{}: {error}", path.display()),
            Self::UnknownFile(path) => {
                write!(f, "{}: a fixture is an .hlo or .npz file", path.display())
            }
            Self::WithoutModule(path) => {
                write!(f, "{}: there is no .hlo file of this name", path.display())
            }
            Self::Empty(path) => write!(f, "{}: there are no fixtures", path.display()),
        }
    }
}

impl std::error::Error for FixtureError {}

impl Fixture {
    /// The module's text.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn text(&self) -> Result<String, FixtureError> {
        std::fs::read_to_string(&self.hlo).map_err(|e| FixtureError::Io(self.hlo.clone(), e))
    }
}

/// The repository's folder of fixtures.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

/// The fixtures in a folder of [`root`] and the folders in it, by name.
///
/// # Errors
/// If there are none, or a file there is not understood.
pub fn fixtures(folder: &str) -> Result<Vec<Fixture>, FixtureError> {
    walk(&root().join(folder))
}

/// The fixtures in any folder and the folders in it, by name.
///
/// # Errors
/// If there are none, or a file there is not understood.
pub fn walk(folder: &Path) -> Result<Vec<Fixture>, FixtureError> {
    let mut found = Vec::new();
    visit(folder, "", &mut found)?;
    if found.is_empty() {
        return Err(FixtureError::Empty(folder.to_owned()));
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

fn visit(folder: &Path, prefix: &str, found: &mut Vec<Fixture>) -> Result<(), FixtureError> {
    let io = |error| FixtureError::Io(folder.to_owned(), error);
    for entry in std::fs::read_dir(folder).map_err(io)? {
        let path = entry.map_err(io)?.path();
        let Some(stem) = path.file_stem().and_then(|s| s.to_str()) else {
            return Err(FixtureError::UnknownFile(path));
        };
        if path.is_dir() {
            visit(&path, &format!("{prefix}{stem}/"), found)?;
            continue;
        }
        let beside = |extension: &str| path.with_extension(extension);
        match path.extension().and_then(|e| e.to_str()) {
            Some("hlo") => found.push(Fixture {
                name: format!("{prefix}{stem}"),
                npz: Some(beside("npz")).filter(|npz| npz.is_file()),
                hlo: path,
            }),
            Some("npz") if beside("hlo").is_file() => {}
            Some("npz") => return Err(FixtureError::WithoutModule(path)),
            _ => return Err(FixtureError::UnknownFile(path)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{FixtureError, walk};

    fn folder(files: &[&str]) -> std::path::PathBuf {
        let name = files.join("-").replace('/', "_");
        let folder = std::env::temp_dir().join(format!("tilewright-{}-{name}", std::process::id()));
        for file in files {
            let path = folder.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn finds_modules_and_their_arrays_in_all_folders() {
        let folder = folder(&["b.hlo", "a/c.hlo", "a/c.npz"]);
        let found = walk(&folder).unwrap();
        let names: Vec<&str> = found.iter().map(|f| f.name.as_str()).collect();
        assert_eq!(names, ["a/c", "b"]);
        assert_eq!(found[0].npz, Some(folder.join("a/c.npz")));
        assert_eq!(found[1].npz, None);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn refuses_files_it_does_not_understand() {
        let unknown = folder(&["a.hlo", "a.txt"]);
        assert!(matches!(walk(&unknown), Err(FixtureError::UnknownFile(_))));
        std::fs::remove_dir_all(unknown).unwrap();
        let orphan = folder(&["a.npz"]);
        assert!(matches!(walk(&orphan), Err(FixtureError::WithoutModule(_))));
        std::fs::remove_dir_all(orphan).unwrap();
        let empty = folder(&[]);
        assert!(matches!(walk(&empty), Err(FixtureError::Empty(_))));
        std::fs::remove_dir_all(empty).unwrap();
    }
}
