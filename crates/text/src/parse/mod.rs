//! HLO text to a module.
//!
//! The parser is a recursive descent without tokens: each function reads one production of the
//! grammar, which stands above it, straight from the [`Cursor`]. An error is added to a list
//! and ends its instruction; parsing continues with the next one, so that one run finds all
//! errors.

mod attribute;
mod comparison;
mod computation;
mod convolution;
mod decimal;
mod devices;
mod error;
mod expression;
mod extras;
mod header;
mod instruction;
mod layout;
mod literal;
mod metadata;
mod names;
mod number;
mod operand;
mod recover;
mod recovery;
mod shape;
mod sharding;
mod short;
mod small;
mod string;
mod sugar;
mod value;
mod verbatim;
mod window;

use tilewright_ir::verify::Rejected;
use tilewright_ir::{CompId, Dims, InstId, Module, ShapeId, Verified, verify};

use crate::lexer::{Cursor, END, starts_name};
use crate::span::{SourceMap, Span};
use names::Names;

pub use error::{MAX_ERRORS, SyntaxError, SyntaxErrors};
pub use expression::{parse_expression, parse_shape, parse_sharding};

/// The limit for the nesting of brackets of all kinds.
pub const MAX_DEPTH: usize = 200;

/// A module and where its parts stand in the text.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// The module, not verified yet.
    pub module: Module,
    /// The positions of its instructions and computations.
    pub spans: SourceMap,
}

/// Parses HLO text.
///
/// # Errors
/// All that is wrong with the text.
pub fn parse(source: &str) -> Result<Parsed, SyntaxErrors> {
    Parser::new(source).parse()
}

/// Parses bytes that should be HLO text.
///
/// # Errors
/// Like [`parse`]; invalid UTF-8 is one error at the byte where it begins. To render that
/// error, pass `String::from_utf8_lossy(bytes)` as the source.
pub fn parse_bytes(bytes: &[u8]) -> Result<Parsed, SyntaxErrors> {
    match std::str::from_utf8(bytes) {
        Ok(source) => parse(source),
        Err(error) => {
            let at = error.valid_up_to();
            let valid = bytes.get(..at).and_then(|valid| std::str::from_utf8(valid).ok());
            Err(single(valid.unwrap_or(""), at, "the text is not valid UTF-8 from here on"))
        }
    }
}

/// Why a text gave no verified module.
#[derive(Clone, Debug)]
pub enum Invalid {
    /// It is not HLO.
    Syntax(SyntaxErrors),
    /// It is HLO that breaks the verifier's rules.
    Rejected {
        /// The module with its errors.
        rejected: Box<Rejected>,
        /// The positions of its parts in the text.
        spans: Box<SourceMap>,
    },
}

impl std::fmt::Display for Invalid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Syntax(errors) => errors.fmt(f),
            Self::Rejected { rejected, .. } => rejected.fmt(f),
        }
    }
}

impl std::error::Error for Invalid {}

/// Parses HLO text and verifies the module.
///
/// # Errors
/// Reads and verifies a module. Returns all errors of the text, or else all errors that the
/// verifier finds.
pub fn parse_and_verify(source: &str) -> Result<Verified, Invalid> {
    let Parsed { module, spans } = parse(source).map_err(Invalid::Syntax)?;
    verify(module).map_err(|rejected| Invalid::Rejected { rejected, spans: Box::new(spans) })
}

fn single(source: &str, at: usize, message: &str) -> SyntaxErrors {
    let error = SyntaxError::new(Span::new(at, at.saturating_add(1)), message);
    SyntaxErrors::new(vec![error], false, source)
}

/// An error that was already put on the list.
#[derive(Clone, Copy, Debug)]
struct Failed;

type Parse<T> = Result<T, Failed>;

/// The state of a parse.
struct Parser<'s> {
    cursor: Cursor<'s>,
    module: Module,
    spans: SourceMap,
    errors: Vec<SyntaxError>,
    /// Whether to look no further.
    stopped: bool,
    /// Whether that was because of too many errors.
    gave_up: bool,
    depth: usize,
    computations: Names<'s, CompId>,
    /// Computations without a name in the text, with default names, which get a number if they
    /// are taken.
    nameless: Vec<(CompId, &'static str)>,
    /// The elements of tuples that have no lines, in order: `x#1`.
    elements: Vec<InstId>,
    /// Attributes of the header that were met.
    header_names: Vec<&'s str>,
    /// Texts of shapes met before.
    shapes: Names<'s, ShapeId>,
    metadata: metadata::Recent<'s>,
    /// Empty maps for the names of the next computations.
    spare_names: Vec<Names<'s, InstId>>,
    /// Whether some brace of an inline computation is known to be open.
    unbalanced: bool,
    /// The number of parts that inferred shapes may still have, see `infer`.
    inference_budget: usize,
    /// The number of recovery tables around the text.
    recovery_depth: usize,
}

impl<'s> Parser<'s> {
    fn new(source: &'s str) -> Self {
        Self {
            cursor: Cursor::new(source),
            module: Module::default(),
            spans: SourceMap::default(),
            errors: Vec::new(),
            stopped: false,
            gave_up: false,
            depth: 0,
            computations: Names::default(),
            nameless: Vec::new(),
            elements: Vec::new(),
            header_names: Vec::new(),
            shapes: Names::default(),
            metadata: metadata::Recent::default(),
            spare_names: Vec::new(),
            unbalanced: false,
            inference_budget: source.len().saturating_mul(2).saturating_add(1 << 20),
            recovery_depth: 0,
        }
    }

    /// Reads the whole text.
    fn parse(&mut self) -> Result<Parsed, SyntaxErrors> {
        let source = self.cursor.source();
        if u32::try_from(source.len()).is_err() {
            return Err(single(source, source.len(), "the text is longer than 4 GiB"));
        }
        if let Some(nul) = memchr::memchr(END, source.as_bytes()) {
            return Err(single(source, nul, "the text contains a NUL byte; is it HLO text?"));
        }
        self.reserve();
        self.text();
        self.finish()
    }

    /// Makes room for as many instructions as there seem to be: mostly one on
    /// a line, and those are not short.
    fn reserve(&mut self) {
        const SHORT_LINE: usize = 64;
        let source = self.cursor.source().as_bytes();
        let lines = memchr::memchr_iter(b'\n', source).count();
        let instructions = lines.min(source.len() / SHORT_LINE);
        self.module.reserve(instructions);
        self.spans.reserve(instructions);
    }

    fn finish(&mut self) -> Result<Parsed, SyntaxErrors> {
        if self.errors.is_empty() && self.cursor.open_comment().is_some() {
            let _ = self.unexpected::<()>("");
        }
        if self.errors.is_empty() {
            let module = std::mem::take(&mut self.module);
            Ok(Parsed { module, spans: std::mem::take(&mut self.spans) })
        } else {
            let errors = std::mem::take(&mut self.errors);
            Err(SyntaxErrors::new(errors, self.gave_up, self.cursor.source()))
        }
    }

    /// Puts an error on the list.
    #[cold]
    fn fail<T>(&mut self, error: SyntaxError) -> Parse<T> {
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(error);
        } else {
            self.gave_up = true;
            self.stopped = true;
        }
        Err(Failed)
    }

    /// Reports the text here instead of the expected one.
    #[cold]
    fn unexpected<T>(&mut self, expected: &str) -> Parse<T> {
        self.cursor.skip_space();
        let start = self.cursor.pos();
        if self.cursor.peek() == END {
            self.stopped = true;
            let error = match self.cursor.open_comment() {
                Some(comment) => SyntaxError::new(
                    Span::new(comment, comment + 2),
                    "this comment is never closed",
                )
                .expected("`*/` further on"),
                None => SyntaxError::new(Span::new(start, start), "the text ends too early")
                    .expected(expected),
            };
            return self.fail(error);
        }
        let span = self.found();
        let found = self.cursor.text(start, span.end as usize);
        self.fail(SyntaxError::new(span, format!("unexpected `{found}`")).expected(expected))
    }

    /// Returns the extent of the word, number or character here.
    fn found(&self) -> Span {
        const LONGEST: usize = 60;
        let start = self.cursor.pos();
        let mut ahead = self.cursor;
        if ahead.peek() == b'%' && starts_name(ahead.peek_second()) {
            ahead.bump();
        }
        if ahead.word().is_none() && ahead.number().is_empty() {
            ahead.bump_char();
        }
        let end = ahead.pos();
        // Only ASCII can be this long.
        Span::new(start, if end - start > LONGEST { start + LONGEST } else { end })
    }

    /// Returns the bytes from a position to here.
    fn span_since(&self, start: usize) -> Span {
        Span::new(start, self.cursor.pos())
    }

    /// Reads a byte after whitespace.
    fn expect(&mut self, byte: u8, expected: &str) -> Parse<()> {
        if self.cursor.accept_after_space(byte) { Ok(()) } else { self.unexpected(expected) }
    }

    /// Reads a byte after whitespace if it is there.
    fn accept(&mut self, byte: u8) -> bool {
        self.cursor.accept_after_space(byte)
    }

    /// Runs a production that may contain itself, to a limited depth.
    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        if self.depth >= MAX_DEPTH {
            return self.too_deep();
        }
        self.depth += 1;
        let result = parse(self);
        self.depth -= 1;
        result
    }

    /// Reports brackets that nest too deep, and stops: otherwise the same error would follow
    /// once for each bracket.
    #[cold]
    fn too_deep<T>(&mut self) -> Parse<T> {
        self.stopped = true;
        let span = self.found();
        let message = format!("brackets nest more than {MAX_DEPTH} deep here");
        self.fail(SyntaxError::new(span, message))
    }

    /// `name := ["%"] word`
    fn name(&mut self, what: &str) -> Parse<(&'s str, Span)> {
        self.cursor.skip_space();
        let start = self.cursor.pos();
        if self.cursor.peek() == b'%' && starts_name(self.cursor.peek_second()) {
            self.cursor.bump();
        }
        match self.cursor.word() {
            Some(name) => Ok((name, self.span_since(start))),
            None => self.unexpected(what),
        }
    }

    /// `integer := ["-"] digit+`, within 64 bits.
    fn integer(&mut self, what: &str) -> Parse<i64> {
        self.cursor.skip_space();
        let start = self.cursor.pos();
        let negative = self.cursor.eat(b'-');
        let digits = self.cursor.pos();
        let mut value = 0i64;
        while let digit @ b'0'..=b'9' = self.cursor.peek() {
            value = value.wrapping_mul(10).wrapping_add(i64::from(digit - b'0'));
            self.cursor.bump();
        }
        match self.cursor.pos() - digits {
            0 => {
                self.cursor.set_pos(start);
                self.unexpected(what)
            }
            // A number of up to 18 digits fits 64 bits, so nothing wrapped.
            1..=18 => Ok(if negative { -value } else { value }),
            _ => self.long_integer(start),
        }
    }

    /// Returns the integer of many digits from a position to here.
    #[cold]
    fn long_integer(&mut self, start: usize) -> Parse<i64> {
        match self.cursor.since(start).parse() {
            Ok(value) => Ok(value),
            Err(_) => {
                let span = self.span_since(start);
                self.fail(SyntaxError::new(span, "this number does not fit 64 bits"))
            }
        }
    }

    /// `integers := "{" [integer ("," integer)*] "}"`
    fn integers(&mut self) -> Parse<Dims> {
        self.expect(b'{', "`{`, as in `{0,1}`")?;
        let mut integers = Dims::new();
        if self.accept(b'}') {
            return Ok(integers);
        }
        loop {
            integers.push(self.integer("an integer")?);
            if self.accept(b',') {
                continue;
            }
            self.expect(b'}', "`,` or `}`")?;
            return Ok(integers);
        }
    }
}
