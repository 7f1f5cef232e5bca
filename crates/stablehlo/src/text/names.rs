//! The names of values.

use rustc_hash::FxHashMap;

use super::cursor::span;
use super::error::SyntaxError;
use super::{Parse, Parser};
use crate::mlir::Value;

/// A name: its first value, and how many values it has.
#[derive(Clone, Copy)]
struct Group {
    first: u32,
    count: u32,
}

/// The names that can be used here.
#[derive(Default)]
pub(super) struct Names<'s> {
    groups: FxHashMap<&'s str, Group>,
    /// The names in the order of their definitions.
    defined: Vec<&'s str>,
}

impl<'s> Parser<'s> {
    /// Runs a part of the reader whose definitions end with it.
    pub(super) fn scope<T>(&mut self, part: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        let known = self.names.defined.len();
        let result = part(self);
        let Names { groups, defined } = &mut self.names;
        for name in defined.drain(known..) {
            groups.remove(name);
        }
        result
    }

    /// Like [`Self::scope`], and the part does not see the names around it.
    pub(super) fn isolated<T>(&mut self, part: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        let outer = std::mem::take(&mut self.names);
        let result = part(self);
        self.names = outer;
        result
    }

    /// Takes the name of a value without its `%`.
    pub(super) fn value_name(&mut self) -> Parse<&'s str> {
        self.expect("%")?;
        self.name("the name of a value, as `%0`")
    }

    /// Gives values a name that begins at `start`.
    pub(super) fn define(
        &mut self,
        name: &'s str,
        start: usize,
        first: Value,
        count: usize,
    ) -> Parse<()> {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        if self.names.groups.insert(name, Group { first: first.0, count }).is_some() {
            let end = start + name.len() + 1;
            return Err(SyntaxError::new(span(start, end), format!("`%{name}` is defined twice")));
        }
        self.names.defined.push(name);
        Ok(())
    }

    /// Takes a value: `%name` or `%name#1`.
    pub(super) fn operand(&mut self) -> Parse<Value> {
        self.skip();
        let start = self.position;
        let name = self.value_name()?;
        let mut index = 0;
        if self.byte(0) == b'#' {
            self.position += 1;
            index = self.small_number("the number of a result")?;
        }
        let place = self.span_since(start);
        let Some(group) = self.names.groups.get(name) else {
            return Err(SyntaxError::new(place, format!("there is no value `%{name}` here")));
        };
        if index >= group.count {
            let error =
                SyntaxError::new(place, format!("there is no value `%{name}#{index}` here"));
            return Err(match group.count.checked_sub(1) {
                Some(last) => error.help(format!("the last one is `%{name}#{last}`")),
                None => error,
            });
        }
        Ok(Value(group.first.saturating_add(index)))
    }
}
