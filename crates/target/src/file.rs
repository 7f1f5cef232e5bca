//! Reading a target from TOML.

use std::collections::BTreeMap;
use std::fmt;

use tilewright_ir::similar;
use toml::{Spanned, Value};

use crate::rule::shorten;
use crate::target::Target;

/// The reason why there is no target.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// No built-in target has the name.
    #[error("no built-in target is called `{name}`; there are {known}, or write a target file")]
    Unknown {
        /// The name asked for.
        name: String,
        /// The existing names.
        known: String,
    },
    /// The text is not TOML.
    #[error("line {line}, column {column}: {message}")]
    Syntax {
        /// Counted from 1.
        line: usize,
        /// In characters, counted from 1.
        column: usize,
        /// The message of the TOML parser.
        message: String,
    },
    /// The text is TOML but not a target.
    #[error("{}", list(.0))]
    Problems(Vec<Problem>),
}

/// An error in a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The line of the file, counted from 1, if there is one.
    pub line: Option<usize>,
    /// The error and its solution.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        f.write_str(&self.message)
    }
}

/// The key that names the built-in target from which a file inherits the keys that it leaves out.
pub(crate) const BASE: &str = "base";

/// Largest number of problems that are shown.
const SHOWN: usize = 48;

fn list(problems: &[Problem]) -> String {
    let mut lines: Vec<String> = problems.iter().take(SHOWN).map(Problem::to_string).collect();
    if problems.len() > SHOWN {
        lines.push(format!("and {} problems more", problems.len() - SHOWN));
    }
    lines.join("\n")
}

impl TargetError {
    pub(crate) fn unknown(name: &str) -> Self {
        let known: Vec<String> = Target::builtin_names().map(|name| format!("`{name}`")).collect();
        Self::Unknown { name: shorten(name), known: known.join(", ") }
    }

    fn syntax(text: &str, error: &toml::de::Error) -> Self {
        let start = error.span().map_or(0, |span| span.start);
        let before = text.get(..start).unwrap_or(text);
        let column = before.chars().rev().take_while(|&c| c != '\n').count() + 1;
        Self::Syntax { line: line(text, start), column, message: error.message().to_owned() }
    }
}

fn line(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|&b| b == b'\n').count() + 1
}

impl Target {
    /// Reads a target file. Keys that it leaves out are those of the built-in target that its key
    /// `base` names. Without `base`, every key is required. Unknown keys are errors.
    ///
    /// # Errors
    /// Returns an error if the text is not TOML. Otherwise returns all errors in it: keys that
    /// are unknown or missing, values of the wrong type, numbers that make no sense, a `base` that
    /// is not built in.
    pub fn from_toml(text: &str) -> Result<Self, TargetError> {
        let mut entries: BTreeMap<Spanned<String>, Value> =
            toml::from_str(text).map_err(|error| TargetError::syntax(text, &error))?;
        let base = entries.remove_entry(BASE);
        let (inherited, bad_base) = match &base {
            None => (toml::Table::new(), None),
            Some((key, value)) => match inherited(value) {
                Ok(table) => (table, None),
                Err(message) => {
                    (toml::Table::new(), Some(problem(Some(line(text, key.span().start)), message)))
                }
            },
        };
        let mut found: Vec<(usize, &str, &Value)> = entries
            .iter()
            .map(|(key, value)| (key.span().start, key.get_ref().as_str(), value))
            .collect();
        found.sort_unstable_by_key(|&(at, ..)| at);
        let given = inherited.iter().filter(|(key, _)| !entries.contains_key(key.as_str()));
        found.extend(given.map(|(key, value)| (INHERITED, key.as_str(), value)));
        let line = |at| (at != INHERITED).then(|| line(text, at));
        let mut problems = problems(&found, line);
        if let Some(bad_base) = bad_base {
            // Nothing is known of the keys that are left out.
            problems.retain(|problem| problem.line.is_some());
            problems.insert(0, bad_base);
        }
        if !problems.is_empty() {
            return Err(TargetError::Problems(problems));
        }
        let mut table: toml::Table =
            found.iter().map(|&(_, key, value)| (key.to_owned(), value.clone())).collect();
        table.entry("reductions").or_insert_with(|| toml::Table::new().into());
        for list in ["programs", "slow_ops"] {
            table.entry(list).or_insert_with(|| Value::Array(Vec::new()));
        }
        table.try_into().map_err(|error| TargetError::syntax(text, &error))
    }

    /// Checks a target whose fields were set by hand.
    /// # Errors
    /// Every field whose value is not valid.
    pub fn check(&self) -> Result<(), TargetError> {
        let table = toml::Table::try_from(self)
            .map_err(|error| problem(None, format!("not to be written as TOML: {error}")))
            .map_err(|problem| TargetError::Problems(vec![problem]))?;
        let found: Vec<_> = table.iter().map(|(key, value)| (0, key.as_str(), value)).collect();
        let problems = problems(&found, |_| None);
        if problems.is_empty() { Ok(()) } else { Err(TargetError::Problems(problems)) }
    }
}

/// The place of a key that a file inherits.
const INHERITED: usize = usize::MAX;

/// Returns the keys of a built-in target, or what is wrong with its name.
fn inherited(name: &Value) -> Result<toml::Table, String> {
    let target = match name.as_str() {
        Some(name) => Target::builtin(name),
        None => return Err(format!("`{BASE}` is no string; give the name of a built-in target")),
    };
    let target = target.map_err(|error| match error {
        TargetError::Unknown { name, known } => {
            format!("`{BASE}` is \"{name}\"; give the name of a built-in target: {known}")
        }
        error => error.to_string(),
    })?;
    toml::Table::try_from(target).map_err(|error| error.to_string())
}

fn problem(line: Option<usize>, message: String) -> Problem {
    Problem { line, message }
}

/// Returns all errors of these keys and values.
fn problems(
    found: &[(usize, &str, &Value)],
    line: impl Fn(usize) -> Option<usize>,
) -> Vec<Problem> {
    let mut problems = Vec::new();
    for &(at, key, value) in found {
        // A hostile file can have a million errors, so only those that are shown get an
        // explanation.
        let shown = problems.len() < SHOWN;
        let fault = match Target::KEYS.iter().position(|known| *known == key) {
            None => Some(unknown_key(key, shown)),
            Some(i) => Target::RULES[i].fault(value).map(|fault| format!("`{key}` {fault}")),
        };
        if let Some(message) = fault {
            problems.push(problem(if shown { line(at) } else { None }, message));
        }
    }
    problems.extend(packs_wide(found).map(|(at, message)| problem(line(at), message)));
    for (key, rule) in Target::KEYS.iter().zip(Target::RULES) {
        if !rule.is_optional() && !found.iter().any(|(_, k, _)| k == key) {
            problems.push(problem(
                None,
                format!("`{key}` is missing; give it, or a `{BASE}` to inherit from"),
            ));
        }
    }
    problems
}

/// Returns the only rule about two keys.
fn packs_wide(found: &[(usize, &str, &Value)]) -> Option<(usize, String)> {
    let number = |key| {
        let &(at, _, value) = found.iter().find(|(_, k, _)| *k == key)?;
        Some((at, value.as_integer()?))
    };
    let ((_, lane), (at, pack)) = (number("lane_bits")?, number("pack_min_bits")?);
    (pack > lane).then(|| {
        let message =
            format!("`pack_min_bits` is {pack}; give no more than `lane_bits`, which is {lane}");
        (at, message)
    })
}

fn unknown_key(key: &str, suggest: bool) -> String {
    let known = if suggest { Target::KEYS } else { &[] };
    let advice = match similar(key, known.iter().copied().chain([BASE])) {
        Some(known) => format!("did you mean `{known}`?"),
        None => "remove it".to_owned(),
    };
    format!("`{}` is no key of a target; {advice}", shorten(key))
}
