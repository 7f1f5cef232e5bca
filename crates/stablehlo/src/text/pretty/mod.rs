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

use tilewright_ir::similar;

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

/// Returns the known operation that a word was meant to be: one of its dialect with a name like its
/// own, or the one of its name in a dialect like its own.
fn meant(word: &str) -> Option<&'static str> {
    let names = || assembly::names().chain(READERS.iter().map(|(name, _)| *name));
    let parts = || names().filter_map(|name| name.split_once('.'));
    let (dialect, operation) = word.split_once('.')?;
    let meant = if parts().any(|(known, _)| known == dialect) {
        let known = parts().filter(|(known, _)| *known == dialect).map(|(_, name)| name);
        (dialect, similar(operation, known)?)
    } else {
        (similar(dialect, parts().map(|(known, _)| known))?, operation)
    };
    names().find(|name| name.split_once('.') == Some(meant))
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
        let help = match meant(word) {
            Some(name) => format!("did you mean `{name}`?"),
            None => format!("write it in the generic form, as `\"{word}\"(...) : (...) -> ...`"),
        };
        self.error_here(message).help(help)
    }
}
