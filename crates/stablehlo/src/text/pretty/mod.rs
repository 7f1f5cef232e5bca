//! Operations in their pretty form.
//!
//! Most forms are rows of [`table`]; those with regions or another order have their own readers.

mod constant;
mod convolution;
mod dot;
mod form;
mod func;
mod reduce;
mod sharding;
mod short;
mod table;
mod types;
mod while_loop;

use super::operation::Draft;
use super::{Parse, Parser};

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

impl Parser<'_> {
    /// Takes an operation in its pretty form, after its results.
    pub(super) fn pretty(&mut self) -> Parse<Draft> {
        self.skip();
        let start = self.position;
        let word = self.word("an operation, as `\"stablehlo.add\"` or `stablehlo.add`")?;
        let name = SHORT.iter().find(|(short, _)| *short == word).map_or(word, |(_, name)| name);
        let mut draft = Draft::new(name, self.span_since(start));
        if let Some((_, reader)) = READERS.iter().find(|(known, _)| *known == name) {
            reader(self, &mut draft)?;
        } else if let Some(form) = table::form(name) {
            self.parts(form, &mut draft)?;
        } else {
            self.position = start;
            let message = format!("`{word}` has no pretty form that is known here");
            let help = format!("write it in the generic form, as `\"{word}\"(...) : (...) -> ...`");
            return Err(self.error_here(message).help(help));
        }
        Ok(draft)
    }
}
