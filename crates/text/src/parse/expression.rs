//! Text of one instruction of a module that exists, and of shapes alone.

use smol_str::SmolStr;
use tilewright_ir::{CompId, InstId, Module, Shape, Sharding};

use super::computation::Scope;
use super::{Failed, Parse, Parser, SyntaxErrors};
use crate::lexer::END;
use crate::span::Span;

/// Parses what an instruction computes, as in `[shape] opcode(operands), attributes`, and adds it
/// at the end of a computation, without a name; the root stays the same. The shape is inferred if it is left out.
/// `values` gives the names of the operands in the text; attributes name the module's
/// computations.
///
/// ```
/// use tilewright_text::{parse, parse_expression};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut module = parse("HloModule m\nENTRY e {\n  x = f32[2,3] parameter(0)\n}\n")?.module;
/// let entry = module.entry().ok_or("no entry")?;
/// let x = module.computation(entry).root().ok_or("no root")?;
/// let text = "transpose(a), dimensions={1,0}";
/// let y = parse_expression(text, &mut module, entry, &[("a", x)])?;
/// assert_eq!(module.shape(y).to_string(), "f32[3,2]{0,1}");
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// All that is wrong with the text. No instruction was added then, but a computation in braces
/// may have been.
pub fn parse_expression(
    source: &str,
    module: &mut Module,
    computation: CompId,
    values: &[(&str, InstId)],
) -> Result<InstId, SyntaxErrors> {
    let computations: Vec<(String, CompId)> = module
        .computations()
        .iter()
        .filter(|&&id| id != computation)
        .map(|&id| (module.computation(id).name().to_owned(), id))
        .collect();
    if let Some(root) = module.computation(computation).root() {
        // It may be the root because it is the last. It exists, so this cannot fail.
        let _ = module.set_root(root);
    }
    let mut parser = Parser::new(source);
    parser.module = std::mem::take(module);
    for (name, id) in &computations {
        parser.computations.insert(name, Some(*id));
    }
    let mut scope = Scope::new(computation);
    for &(name, id) in values {
        scope.names.insert(name, Some(id));
    }
    let added = parser.expression(&mut scope, SmolStr::default(), Span::new(0, 0));
    let parsed = added.and_then(|id| parser.ended(id));
    parser.name_the_nameless();
    *module = std::mem::take(&mut parser.module);
    match (parsed, added) {
        (Ok(id), _) if parser.errors.is_empty() => return Ok(id),
        // It has no users, so that it can be removed.
        (_, Ok(id)) => drop(module.remove(id)),
        (_, Err(Failed)) => {}
    }
    Err(parser.failed())
}

/// Parses a shape, as in `f32[2,3]{0,1}` or `(f32[], s32[4])`.
///
/// ```
/// let shape = tilewright_text::parse_shape("bf16[8,128]")?;
/// assert_eq!(shape.to_string(), "bf16[8,128]");
/// assert!(tilewright_text::parse_shape("f32[2").is_err());
/// # Ok::<(), tilewright_text::SyntaxErrors>(())
/// ```
///
/// # Errors
/// All that is wrong with the text.
pub fn parse_shape(source: &str) -> Result<Shape, SyntaxErrors> {
    let mut parser = Parser::new(source);
    parser.cursor.skip_space();
    let shape = parser.shape().and_then(|shape| parser.ended(shape));
    shape.map_err(|Failed| parser.failed())
}

impl Parser<'_> {
    /// Returns the value if the text ends here.
    fn ended<T>(&mut self, value: T) -> Parse<T> {
        self.cursor.skip_space();
        if self.cursor.peek() == END { Ok(value) } else { self.unexpected("the end of the text") }
    }

    /// The errors found.
    fn failed(&mut self) -> SyntaxErrors {
        let errors = std::mem::take(&mut self.errors);
        SyntaxErrors::new(errors, self.gave_up, self.cursor.source())
    }
}

/// Parses a sharding as it stands after `sharding=`, for example `{devices=[2,1]<=[2]}`.
///
/// ```
/// use tilewright_text::{parse_sharding, print_sharding};
///
/// # fn main() -> Result<(), tilewright_text::SyntaxErrors> {
/// let sharding = parse_sharding("{devices=[2,1]<=[2]}")?;
/// assert_eq!(print_sharding(&sharding), "{devices=[2,1]<=[2]}");
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// All that is wrong with the text.
pub fn parse_sharding(source: &str) -> Result<Sharding, SyntaxErrors> {
    let mut parser = Parser::new(source);
    let parsed = parser.sharding();
    match parsed.and_then(|sharding| parser.ended(sharding)) {
        Ok(sharding) if parser.errors.is_empty() => Ok(sharding),
        _ => Err(parser.failed()),
    }
}
