//! Operations in their pretty form.
//!
//! The form of an op is in its row ([`crate::dialect`]).

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
use crate::dialect;

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
    let parts = || dialect::names().filter_map(|name| name.split_once('.'));
    let (of, operation) = word.split_once('.')?;
    let meant = if parts().any(|(known, _)| known == of) {
        let known = parts().filter(|(known, _)| *known == of).map(|(_, name)| name);
        (of, similar(operation, known)?)
    } else {
        (similar(of, parts().map(|(known, _)| known))?, operation)
    };
    dialect::names().find(|name| name.split_once('.') == Some(meant))
}

impl Parser<'_> {
    /// Takes an operation in its pretty form, after its results.
    pub(super) fn pretty(&mut self) -> Parse<Draft> {
        self.skip();
        let start = self.position;
        let word = self.word(OPERATION)?;
        let name = SHORT.iter().find(|(short, _)| *short == word).map_or(word, |(_, name)| name);
        let mut draft = Draft::new(name, self.span_since(start));
        let Some(op) = dialect::op(name).filter(|op| !op.form.is_empty()) else {
            self.position = start;
            return Err(self.unknown_form(word));
        };
        self.parts(op, op.form, &mut draft)?;
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
