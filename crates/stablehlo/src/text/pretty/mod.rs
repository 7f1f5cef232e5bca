//! Operations in their pretty form.
//!
//! Most forms are rows of the table of [`crate::assembly`]; those with regions or another order have their own readers.

mod constant;
mod convolution;
mod dot;
mod form;
mod func;
mod reduce;
mod sharding;
mod short;
mod types;
mod while_loop;

use super::error::SyntaxError;
use super::operation::Draft;
use super::{Parse, Parser};
use crate::assembly;

/// Reads the rest of an operation after its name.
type Reader = fn(&mut Parser<'_>, &mut Draft) -> Parse<()>;

/// Operations that have their own readers.
const READERS: &[(&str, Reader)] = &[
    ("builtin.module", |parser, draft| parser.module(draft)),
    ("func.func", |parser, draft| parser.function(draft)),
    ("stablehlo.reduce", |parser, draft| parser.reduce(draft)),
    ("mhlo.reduce", |parser, draft| parser.reduce(draft)),
    ("stablehlo.while", |parser, draft| parser.while_loop(draft)),
    ("mhlo.while", |parser, draft| parser.while_loop(draft)),
];

/// Operations that may be written without the name of their dialect.
const SHORT: &[(&str, &str)] = &[
    ("module", "builtin.module"),
    ("call", "func.call"),
    ("return", "func.return"),
    ("constant", "func.constant"),
];

/// The expected text of an error where an operation should begin.
const OPERATION: &str = "an operation, as `stablehlo.add` or `\"stablehlo.add\"`";
/// Names longer than this are like no other.
const LONGEST: usize = 64;

/// Returns how many letters must be changed, added or removed to make one word of the other.
fn distance(a: &str, b: &str) -> usize {
    if a.len() > LONGEST || b.len() > LONGEST {
        return usize::MAX;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (index, x) in a.bytes().enumerate() {
        let mut diagonal = index;
        let mut left = index + 1;
        for (slot, y) in row.iter_mut().zip(std::iter::once(None).chain(b.bytes().map(Some))) {
            let above = *slot;
            left = match y {
                None => index + 1,
                Some(y) => (diagonal + usize::from(x != y)).min(above + 1).min(left + 1),
            };
            diagonal = above;
            *slot = left;
        }
    }
    row.last().copied().unwrap_or(usize::MAX)
}

impl Parser<'_> {
    /// Takes an operation in its pretty form, after its results.
    pub(super) fn pretty(&mut self) -> Parse<Draft> {
        self.skip();
        let start = self.position;
        let word = self.word(OPERATION)?;
        let name = SHORT.iter().find(|(short, _)| *short == word).map_or(word, |(_, name)| name);
        let mut draft = Draft::new(name, self.span_since(start));
        if let Some((_, reader)) = READERS.iter().find(|(known, _)| *known == name) {
            reader(self, &mut draft)?;
        } else if let Some(form) = assembly::form(name) {
            self.parts(form, &mut draft)?;
        } else {
            self.position = start;
            return Err(self.unknown_form(word));
        }
        Ok(draft)
    }

    /// The error about an operation without a known form.
    fn unknown_form(&mut self, word: &str) -> Box<SyntaxError> {
        if !word.contains('.') {
            return self.unexpected(OPERATION);
        }
        let message = format!("`{word}` has no pretty form that is known here");
        let names = assembly::names().chain(READERS.iter().map(|(name, _)| *name));
        let nearest = names.map(|name| (distance(name, word), name)).min();
        let help = match nearest {
            Some((0..=2, name)) => format!("did you mean `{name}`?"),
            _ => format!("write it in the generic form, as `\"{word}\"(...) : (...) -> ...`"),
        };
        self.error_here(message).help(help)
    }
}
