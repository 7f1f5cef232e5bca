//! Chooses one of several modules in a folder or a profile.

use std::fmt::Write as _;

use crate::error::Error;
use crate::module::Loaded;
use crate::report::counted;

/// The most of the others that are listed.
const LISTED: usize = 20;

/// Modules of which one is wanted: the largest, since next to the program that matters there are
/// those that prepare its inputs.
#[derive(Default)]
pub(crate) struct Candidates {
    largest: Option<(String, Loaded)>,
    /// The names of the others, with their instructions if they could be read.
    others: Vec<(String, Option<usize>)>,
    /// The first error.
    error: Option<Error>,
}

impl Candidates {
    /// Adds a module. Only the largest is kept.
    pub(crate) fn add(&mut self, name: String, module: Result<Loaded, Error>) {
        match module {
            Err(error) => {
                self.error.get_or_insert(error);
                self.others.push((name, None));
            }
            Ok(module) if size(&module) > self.size() => {
                if let Some((name, smaller)) = self.largest.replace((name, module)) {
                    self.others.push((name, Some(size(&smaller))));
                }
            }
            Ok(module) => self.others.push((name, Some(size(&module)))),
        }
    }

    /// Checks whether another module is more than half as large as the largest.
    pub(crate) fn in_doubt(&self) -> bool {
        self.others.iter().any(|&(_, other)| other.is_some_and(|other| other > self.size() / 2))
    }

    /// Returns the largest module, with a note of the others; `None` if there was none.
    pub(crate) fn largest(self, place: &str, what: &str) -> Option<Result<Loaded, Error>> {
        let size = self.size();
        let list = list(self.others);
        let Some((name, mut module)) = self.largest else { return self.error.map(Err) };
        let instructions = counted(size, "instruction");
        module.notes.insert(
            0,
            if list.is_empty() {
                format!("{place}: the module {what} is `{name}`, {instructions}")
            } else {
                format!(
                    "{place}: of the modules {what} this is the largest, `{name}`, \
                     {instructions}; the others are\n{list}"
                )
            },
        );
        Some(Ok(module))
    }

    /// Returns all modules, one a line.
    pub(crate) fn list(self) -> String {
        let size = self.size();
        let largest = self.largest.map(|(name, _)| (name, Some(size)));
        list(largest.into_iter().chain(self.others).collect())
    }

    fn size(&self) -> usize {
        self.largest.as_ref().map_or(0, |(_, module)| size(module))
    }
}

fn size(module: &Loaded) -> usize {
    module.module.instruction_count()
}

/// Returns modules from the largest on, one a line.
fn list(mut modules: Vec<(String, Option<usize>)>) -> String {
    modules.sort_by(|(a, a_size), (b, b_size)| b_size.cmp(a_size).then_with(|| a.cmp(b)));
    let mut text = String::new();
    for (name, size) in modules.iter().take(LISTED) {
        let size = size.map_or("cannot be read".into(), |size| counted(size, "instruction"));
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {name} ({size})");
    }
    if let Some(more) = modules.len().checked_sub(LISTED).filter(|&more| more > 0) {
        let _ = writeln!(text, "  and {more} more");
    }
    text.truncate(text.trim_end().len());
    text
}
