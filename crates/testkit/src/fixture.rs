//! Walks folders of fixtures: `.hlo` files, some with an `.npz` beside them.
//!
//! A file that means nothing here is an error, so that no fixture is left
//! untested by being misnamed.
//!
//! The comments that a fixture begins with are its [`Header`]: a sentence on what it
//! tests, then flags and `key: value` lines. Which there are, the [`Language`] of the
//! folder says; all folders are read by the same rules, and a line that none of them
//! explains is an error.
//!
//! ```text
//! // A reduce along the rows of a matrix.
//! // target: linear
//! // exact
//! HloModule ...
//! ```

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
    /// Returns the module's text.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn text(&self) -> Result<String, FixtureError> {
        std::fs::read_to_string(&self.hlo).map_err(|e| FixtureError::Io(self.hlo.clone(), e))
    }
}

/// Returns the repository's folder of fixtures.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

/// Returns the fixtures in a folder of [`root`] and the folders in it, by name.
///
/// # Errors
/// Returns an error if there are none, or a file there is not understood.
pub fn fixtures(folder: &str) -> Result<Vec<Fixture>, FixtureError> {
    walk(&root().join(folder))
}

/// Returns the fixtures in any folder and the folders in it, by name.
///
/// # Errors
/// Returns an error if there are none, or a file there is not understood.
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

/// The language of the headers in a folder of fixtures, apart from the sentence.
#[derive(Clone, Copy, Debug, Default)]
pub struct Language {
    /// Lines of one word.
    pub flags: &'static [&'static str],
    /// Lines `key: value` of which there is at most one.
    pub once: &'static [&'static str],
    /// Lines `key: value` of which there are any number.
    pub many: &'static [&'static str],
}

/// The comments at the beginning of a fixture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The subject of the test: all lines before the first flag or key.
    pub sentence: String,
    flags: Vec<String>,
    values: Vec<(String, String)>,
}

/// A header that is not understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeaderError {
    /// A line that is no flag and has no key of the language, behind one that is, or
    /// that looks like one.
    Unknown(String),
    /// A key that is there once already.
    Twice(String),
}

impl fmt::Display for HeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(line) => write!(f, "`// {line}` is no directive"),
            Self::Twice(key) => write!(f, "`// {key}:` is there twice"),
        }
    }
}

impl std::error::Error for HeaderError {}

impl Header {
    /// Reads the comments that a text begins with. Where it was made, a line of
    /// `made by fixtures/...`, is passed over.
    ///
    /// # Errors
    /// Returns an error if a line is neither part of the sentence nor of the language.
    pub fn read(source: &str, language: &Language) -> Result<Self, HeaderError> {
        let mut header = Self::default();
        let lines = source.lines().map_while(|line| line.strip_prefix("//")).map(str::trim);
        for line in lines.filter(|line| !line.contains("made by fixtures/")) {
            let pair = line.split_once(": ").filter(|(key, _)| is_word(key));
            let begun = !header.flags.is_empty() || !header.values.is_empty();
            match pair {
                _ if language.flags.contains(&line) => header.flags.push(line.to_owned()),
                Some((key, value)) if language.many.contains(&key) => header.push(key, value),
                Some((key, value)) if language.once.contains(&key) => {
                    if header.value(key).is_some() {
                        return Err(HeaderError::Twice(key.to_owned()));
                    }
                    header.push(key, value);
                }
                None if !begun => {
                    let space = if header.sentence.is_empty() { "" } else { " " };
                    header.sentence = format!("{}{space}{line}", header.sentence);
                }
                _ => return Err(HeaderError::Unknown(line.to_owned())),
            }
        }
        Ok(header)
    }

    fn push(&mut self, key: &str, value: &str) {
        self.values.push((key.to_owned(), value.to_owned()));
    }

    /// Checks whether there is a flag.
    pub fn flag(&self, name: &str) -> bool {
        self.flags.iter().any(|flag| flag == name)
    }

    /// Returns the value of a key, if there is one; the first of several.
    pub fn value(&self, key: &str) -> Option<&str> {
        let with_key = self.values.iter().find(|(own, _)| own == key);
        with_key.map(|(_, value)| value.as_str())
    }

    /// Returns all values of a key, in order.
    pub fn values<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        let with_key = self.values.iter().filter(move |(own, _)| own == key);
        with_key.map(|(_, value)| value.as_str())
    }
}

/// Checks whether a text could be a key: lower-case letters and hyphens.
fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase() || c == '-')
}

#[cfg(test)]
mod tests {
    use super::{FixtureError, Header, HeaderError, Language, walk};

    const LANGUAGE: Language = Language { flags: &["exact"], once: &["target"], many: &["note"] };

    #[test]
    fn a_header_is_a_sentence_then_directives() {
        let text = "// A sum\n// of rows: all of them.\n// target: cpu\n// exact\n// note: a\n\
                    // note: b: c\n// made by fixtures/x.py with jax\nHloModule m\n// no: header";
        let header = Header::read(text, &LANGUAGE).unwrap();
        assert_eq!(header.sentence, "A sum of rows: all of them.");
        assert_eq!(header.value("target"), Some("cpu"));
        assert!(header.flag("exact") && !header.flag("target"));
        assert_eq!(header.values("note").collect::<Vec<_>>(), ["a", "b: c"]);
        assert_eq!(header.value("expect"), None);
    }

    #[test]
    fn a_line_that_nothing_explains_is_refused() {
        for (text, line) in [
            ("// tarqet: cpu\nHloModule m", "tarqet: cpu"),
            ("// A sum.\n// exact\n// exat\nHloModule m", "exat"),
            ("// A sum.\n// exact\n// expect: fires\nHloModule m", "expect: fires"),
        ] {
            let error = HeaderError::Unknown(line.to_owned());
            assert_eq!(Header::read(text, &LANGUAGE), Err(error));
        }
        let twice = Header::read("// A sum.\n// target: a\n// target: b\n", &LANGUAGE);
        assert_eq!(twice, Err(HeaderError::Twice("target".to_owned())));
    }

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
