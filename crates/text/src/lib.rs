//! HLO text in and out.
//!
//! [`parse`] reads a module from text and remembers where its parts stand;
//! [`print()`] writes one as text that XLA reads back;
//! [`render`] draws what is wrong with a caret below it.

mod lexer;
mod parse;
mod print;
pub mod render;
pub mod span;

pub use parse::{
    Invalid, MAX_DEPTH, MAX_ERRORS, Parsed, SyntaxError, SyntaxErrors, parse, parse_and_verify,
    parse_bytes,
};
pub use print::{
    Form, LayoutPadding, PrintError, PrintOptions, print, print_instruction, print_into,
};
pub use span::{LineColumn, SourceMap, Span};
