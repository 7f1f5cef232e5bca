//! Aliases: `#name = attribute` and `!name = type` outside of all operations.
//!
//! They may stand after their uses. An alias is copied where it is used, except for locations,
//! so the size of all copies is bounded.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::error::SyntaxError;
use super::{Parse, Parser};
use crate::mlir::{Attribute, Location, Span, Type};

/// Copies of aliases may have this many bytes more than the text has.
const ALLOWANCE: usize = 16 << 20;
/// Copies of aliases may have this many bytes for each byte of the text.
const GROWTH: usize = 16;

/// The value of an alias.
#[derive(Clone)]
enum Target {
    Attribute(Attribute),
    Type(Type),
}

struct Alias {
    /// The offset of the value.
    start: usize,
    /// The offset after the value.
    end: usize,
    state: AliasState,
    /// The size of the value with all aliases in it, in bytes of text.
    size: usize,
    depth: u32,
}

enum AliasState {
    Unread,
    /// It is being read, so that it cannot be used.
    Begun,
    Read(Target),
}

/// All aliases by their names with the `#` or `!`.
#[derive(Default)]
pub(super) struct Aliases<'s> {
    known: FxHashMap<&'s str, Alias>,
    /// The size of all copies.
    copied: usize,
}

impl<'s> Parser<'s> {
    /// Finds and reads all aliases.
    pub(super) fn read_aliases(&mut self) -> Parse<()> {
        let mut names = Vec::new();
        let mut line = 0;
        while line < self.source.len() {
            self.position = line;
            line += self.rest().find('\n').map_or(self.source.len(), |at| at + 1);
            if let Some((name, place)) = self.definition() {
                let alias = Alias {
                    start: self.position,
                    end: self.position,
                    state: AliasState::Unread,
                    size: 0,
                    depth: 0,
                };
                if self.aliases.known.insert(name, alias).is_some() {
                    let message = format!("the alias `{name}` is defined twice");
                    return Err(SyntaxError::new(place, message));
                }
                names.push(name);
            }
        }
        names.into_iter().try_for_each(|name| self.read_alias(name))
    }

    /// Takes the beginning of an alias on this line, `#name =`, and returns the name and its place.
    fn definition(&mut self) -> Option<(&'s str, Span)> {
        while matches!(self.byte(0), b' ' | b'\t') {
            self.position += 1;
        }
        let start = self.position;
        if !matches!(self.byte(0), b'#' | b'!') {
            return None;
        }
        self.position += 1;
        self.name("").ok()?;
        let (name, place) = (self.text(start, self.position), self.span_since(start));
        while matches!(self.byte(0), b' ' | b'\t') {
            self.position += 1;
        }
        if self.byte(0) != b'=' || self.byte(1) == b'=' {
            return None;
        }
        self.position += 1;
        Some((name, place))
    }

    /// Reads the value of an alias if this was not done.
    fn read_alias(&mut self, name: &'s str) -> Parse<()> {
        let Some(alias) = self.aliases.known.get_mut(name) else { return Ok(()) };
        if !matches!(alias.state, AliasState::Unread) {
            return Ok(());
        }
        alias.state = AliasState::Begun;
        let start = alias.start;
        let before = (self.position, self.deepest, self.aliases.copied);
        self.position = start;
        self.deepest = self.depth;
        let target = self.nested(1, |parser| match name.as_bytes().first() {
            Some(b'!') => parser.ty().map(Target::Type),
            _ if parser.is_plain_location(name) => {
                let location = parser.plain_location()?;
                let location = location.ok_or_else(|| parser.unexpected("a location"))?;
                Ok(Target::Attribute(Attribute::Location(location)))
            }
            _ => parser.attribute().map(Target::Attribute),
        })?;
        let end = self.position;
        let copied = self.aliases.copied.saturating_sub(before.2);
        let size = match &target {
            Target::Attribute(Attribute::Location(_)) => 0,
            _ => (end - start).saturating_add(copied),
        };
        let depth = self.deepest - self.depth;
        self.position = before.0;
        self.deepest = self.deepest.max(before.1);
        if let Some(alias) = self.aliases.known.get_mut(name) {
            *alias = Alias { start, end, state: AliasState::Read(target), size, depth };
        }
        Ok(())
    }

    /// Skips an alias if its definition is here.
    pub(super) fn skip_alias(&mut self) -> bool {
        self.skip();
        let start = self.position;
        let end = self.definition().and_then(|(name, _)| self.aliases.known.get(name));
        self.position = end.map_or(start, |alias| alias.end);
        self.position > start
    }

    /// Returns the value of an alias whose name begins at `start`.
    fn alias(&mut self, start: usize) -> Parse<Target> {
        let name = self.text(start, self.position);
        let place = self.span_since(start);
        self.read_alias(name)?;
        let Some(alias) = self.aliases.known.get(name) else {
            let help = format!("`{name} = ...` may stand before or after the module");
            return Err(SyntaxError::new(place, format!("there is no alias `{name}`")).help(help));
        };
        let AliasState::Read(target) = &alias.state else {
            return Err(SyntaxError::new(place, format!("the alias `{name}` contains itself")));
        };
        let (target, depth) = (target.clone(), alias.depth);
        self.aliases.copied = self.aliases.copied.saturating_add(alias.size);
        if self.aliases.copied > ALLOWANCE.saturating_add(self.source.len().saturating_mul(GROWTH))
        {
            return Err(SyntaxError::new(place, "the aliases stand for too much text"));
        }
        self.reach(self.depth + depth)?;
        Ok(target)
    }

    pub(super) fn attribute_alias(&mut self, start: usize) -> Parse<Attribute> {
        match self.alias(start)? {
            Target::Attribute(attribute) => Ok(attribute),
            Target::Type(ty) => Ok(Attribute::Type(Box::new(ty))),
        }
    }

    pub(super) fn type_alias(&mut self, start: usize) -> Parse<Type> {
        match self.alias(start)? {
            Target::Type(ty) => Ok(ty),
            Target::Attribute(_) => {
                Err(SyntaxError::new(self.span_since(start), "this alias is no type"))
            }
        }
    }

    pub(super) fn location_alias(&mut self, start: usize) -> Parse<Arc<Location>> {
        match self.alias(start)? {
            Target::Attribute(Attribute::Location(location)) => Ok(location),
            _ => Err(SyntaxError::new(self.span_since(start), "this alias is no location")),
        }
    }
}
