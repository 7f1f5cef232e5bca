//! Reads MLIR's text.
//!
//! The text is read in one pass, byte by byte. Two things are read before it, because they may
//! stand after their uses: the aliases of attributes, types and locations, and the bytes of
//! `dense_resource` constants. An operation in its pretty form becomes the same tree as in its
//! generic form.

mod alias;
mod array;
mod attribute;
mod blob;
mod cursor;
mod dense;
mod dialect;
mod error;
mod fragment;
mod literal;
mod location;
mod names;
mod number;
mod operation;
mod plain_location;
mod pretty;
mod region;
mod resource;
mod types;

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::mlir::{Location, Program, Span, Type, Value};

pub(crate) use dense::clear_unused_bits;
pub use error::{LineColumn, SyntaxError};
pub(crate) use fragment::{attribute, bits_of_float, float_of_bits, float_width, ty};

use alias::Aliases;
use names::Names;
use resource::Resources;

/// Nested types, attributes and locations may be this deep, and regions a quarter of it.
const MAX_DEPTH: u32 = 256;

/// The result of reading a part of the text.
type Parse<T> = Result<T, Box<SyntaxError>>;

/// Reads a program from MLIR's text: pretty or generic form, with or without locations.
///
/// A text without an outermost `module` gets one, as MLIR does it.
///
/// ```
/// let text = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
///   %0 = stablehlo.add %x, %x : tensor<2xf32>
///   return %0 : tensor<2xf32>
/// }";
/// let program = tilewright_stablehlo::text::parse(text)?;
/// let main = &program.module.regions[0].blocks[0].operations[0];
/// let body = &main.regions[0].blocks[0].operations;
/// assert_eq!(body[0].name, "stablehlo.add");
/// # Ok::<(), tilewright_stablehlo::text::SyntaxError>(())
/// ```
///
/// # Errors
///
/// Returns the first place that cannot be read.
pub fn parse(text: &str) -> Result<Program, SyntaxError> {
    let mut parser = Parser::new(text);
    parser.program().map_err(|mut error| {
        error.at = LineColumn::of(text, error.span.start as usize);
        *error
    })
}

/// The state of the reader.
struct Parser<'s> {
    source: &'s str,
    position: usize,
    depth: u32,
    /// The greatest depth since the beginning of the current alias.
    deepest: u32,
    types: Vec<Type>,
    argument_locations: FxHashMap<Value, Arc<Location>>,
    names: Names<'s>,
    aliases: Aliases<'s>,
    resources: Resources<'s>,
}

impl<'s> Parser<'s> {
    fn new(source: &'s str) -> Self {
        Self {
            source,
            position: 0,
            depth: 0,
            deepest: 0,
            types: Vec::new(),
            argument_locations: FxHashMap::default(),
            names: Names::default(),
            aliases: Aliases::default(),
            resources: Resources::default(),
        }
    }

    fn program(&mut self) -> Parse<Program> {
        if u32::try_from(self.source.len()).is_err() {
            return Err(SyntaxError::new(Span::default(), "the text is longer than 4 GiB")
                .help("write large constants to another file, or write bytecode"));
        }
        self.read_resources()?;
        self.read_aliases()?;
        self.position = 0;
        let module = self.outermost()?;
        Ok(Program {
            module,
            values: std::mem::take(&mut self.types),
            argument_locations: std::mem::take(&mut self.argument_locations),
        })
    }

    /// Makes a new value.
    fn value(&mut self, ty: Type) -> Value {
        // There are fewer values than bytes, and at most 4 GiB.
        let value = Value(u32::try_from(self.types.len()).unwrap_or(u32::MAX));
        self.types.push(ty);
        value
    }

    /// Runs a part of the reader one level deeper.
    fn nested<T>(&mut self, levels: u32, part: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        self.depth += levels;
        let result = self.reach(self.depth).and_then(|()| part(self));
        self.depth -= levels;
        result
    }

    /// Checks a depth and keeps the greatest.
    fn reach(&mut self, depth: u32) -> Parse<()> {
        self.deepest = self.deepest.max(depth);
        if depth > MAX_DEPTH {
            return Err(self.error_here("this is nested too deeply"));
        }
        Ok(())
    }
}
