//! HLO text in and out.
//!
//! [`parse`] reads a module from text and records the positions of its parts; [`print()`]
//! writes one as text that XLA reads back; [`render`] draws errors with a caret below them.
//!
//! ```
//! use tilewright_text::{parse, parse_and_verify, render::render};
//!
//! let text = "HloModule m\n\nENTRY e {\n  x = f32[2] parameter(0)\n  ROOT y = f32[2] negat(x)\n}\n";
//! let Err(errors) = parse(text) else { return };
//! assert_eq!(errors.errors()[0].at.line, 5);
//! assert!(render("m.hlo", text, &errors).contains("did you mean `negate`?"));
//!
//! let text = text.replace("negat(", "negate(");
//! assert!(parse_and_verify(&text).is_ok());
//! ```

mod lexer;
mod parse;
pub mod part;
mod print;
pub mod render;
pub mod span;

pub use parse::{
    Invalid, MAX_DEPTH, MAX_ERRORS, Parsed, SyntaxError, SyntaxErrors, parse, parse_and_verify,
    parse_bytes, parse_expression, parse_shape, parse_sharding,
};
pub use print::{
    Form, LayoutPadding, PrintError, PrintOptions, print, print_attribute, print_constant,
    print_extras, print_header, print_instruction, print_into, print_metadata, print_provenance,
    print_sharding,
};
pub use span::{LineColumn, SourceMap, Span};
