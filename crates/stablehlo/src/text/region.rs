//! Regions and blocks.

use std::sync::Arc;

use super::{Parse, Parser};
use crate::mlir::{Block, Location, Region, Type, Value};

/// A region uses this many levels of the depth.
const LEVELS: u32 = 4;

/// An argument of a block: its name, where the name begins, its type and its location.
pub(super) struct Argument<'s> {
    pub(super) name: &'s str,
    pub(super) start: usize,
    pub(super) ty: Type,
    pub(super) location: Option<Arc<Location>>,
}

impl<'s> Parser<'s> {
    /// Takes a region in braces. The first block has these arguments if there are some.
    pub(super) fn region(&mut self, arguments: &[Argument<'s>]) -> Parse<Region> {
        self.nested(LEVELS, |parser| parser.scope(|parser| parser.blocks(arguments)))
    }

    fn blocks(&mut self, arguments: &[Argument<'s>]) -> Parse<Region> {
        self.expect("{")?;
        let mut region = Region::default();
        let entry = self.define_all(arguments)?;
        let operations = self.operations()?;
        if !entry.is_empty() || !operations.is_empty() {
            region.blocks.push(Block { arguments: entry, operations });
        }
        while self.accept("^") {
            self.name("the name of a block")?;
            let mut labelled = Vec::new();
            if self.peek() == b'(' {
                self.list(("(", ")"), |parser| {
                    labelled.push(parser.argument()?);
                    Ok(())
                })?;
            }
            self.expect(":")?;
            let arguments = self.define_all(&labelled)?;
            let operations = self.operations()?;
            region.blocks.push(Block { arguments, operations });
        }
        if self.accept("}") { Ok(region) } else { Err(self.unexpected("`}`")) }
    }

    /// Takes operations up to the end of a block.
    fn operations(&mut self) -> Parse<Vec<crate::mlir::Operation>> {
        let mut operations = Vec::new();
        while !matches!(self.peek(), b'}' | b'^') && !self.at_end() {
            operations.push(self.operation()?);
        }
        Ok(operations)
    }

    /// Makes the values of arguments and names them.
    fn define_all(&mut self, arguments: &[Argument<'s>]) -> Parse<Vec<Value>> {
        let mut values = Vec::with_capacity(arguments.len());
        for argument in arguments {
            let value = self.value(argument.ty.clone());
            self.define(argument.name, argument.start, value, 1)?;
            if let Some(location) = &argument.location {
                self.argument_locations.insert(value, Arc::clone(location));
            }
            values.push(value);
        }
        Ok(values)
    }

    /// `%name: type loc(...)`.
    pub(super) fn argument(&mut self) -> Parse<Argument<'s>> {
        self.skip();
        let start = self.position;
        let name = self.value_name()?;
        self.expect(":")?;
        let ty = self.ty()?;
        let location = self.any_location()?;
        Ok(Argument { name, start, ty, location })
    }
}
