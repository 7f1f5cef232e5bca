//! Parses names and characters.

use smol_str::SmolStr;

use super::{ParseError, Parsed, Parser};
use crate::kernel::{BufferId, FunctionId, IndexId, Kernel, RegisterId};

impl<'a> Parser<'a> {
    pub(super) fn buffer_name(&mut self) -> Parsed<BufferId> {
        self.known("buffer", |kernel, name| {
            kernel.buffers.iter().position(|buffer| buffer.name == name).map(BufferId)
        })
    }

    pub(super) fn function_name(&mut self) -> Parsed<FunctionId> {
        self.known("function", |kernel, name| {
            kernel.functions.iter().position(|function| function.name == name).map(FunctionId)
        })
    }

    pub(super) fn register(&mut self) -> Parsed<RegisterId> {
        self.known("register", |kernel, name| {
            kernel.registers.iter().position(|register| register.name == name).map(RegisterId)
        })
    }

    /// Parses an index; its first occurrence declares it.
    pub(super) fn index(&mut self) -> Parsed<IndexId> {
        let at = self.at;
        let name = self.name()?;
        if let Some(known) = self.kernel.indices.iter().position(|index| index == name) {
            return Ok(IndexId(known));
        }
        self.fresh(at, name)?;
        self.kernel.indices.push(name.into());
        Ok(IndexId(self.kernel.indices.len() - 1))
    }

    pub(super) fn known<T>(
        &mut self,
        what: &str,
        find: impl Fn(&Kernel, &str) -> Option<T>,
    ) -> Parsed<T> {
        self.skip();
        let at = self.at;
        let name = self.name()?;
        find(&self.kernel, name)
            .ok_or_else(|| self.error(at, format!("a {what}: there is no `{name}`")))
    }

    pub(super) fn new_name(&mut self) -> Parsed<SmolStr> {
        self.skip();
        let at = self.at;
        let name = self.name()?;
        self.fresh(at, name)?;
        Ok(name.into())
    }

    pub(super) fn fresh(&self, at: usize, name: &str) -> Parsed<()> {
        let kernel = &self.kernel;
        let taken = kernel.buffers.iter().any(|buffer| buffer.name == name)
            || kernel.functions.iter().any(|function| function.name == name)
            || kernel.registers.iter().any(|register| register.name == name)
            || kernel.indices.iter().any(|index| index == name);
        if taken { Err(self.error(at, format!("a new name, not `{name}` again"))) } else { Ok(()) }
    }

    pub(super) fn skip(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
    }

    pub(super) fn take_while(&mut self, holds: impl Fn(char) -> bool) -> &'a str {
        let rest = &self.text[self.at..];
        let taken = &rest[..rest.find(|c| !holds(c)).unwrap_or(rest.len())];
        self.at += taken.len();
        taken
    }

    /// Reads the characters up to the next blank.
    pub(super) fn chunk(&mut self) -> Parsed<&'a str> {
        self.skip();
        let chunk = self.take_while(|c| !c.is_whitespace());
        if chunk.is_empty() { Err(self.expected("a word")) } else { Ok(chunk) }
    }

    pub(super) fn peek_name(&self) -> &'a str {
        let rest = self.text[self.at..].trim_start();
        &rest[..rest.find(|c| !is_name(c)).unwrap_or(rest.len())]
    }

    pub(super) fn name(&mut self) -> Parsed<&'a str> {
        self.skip();
        let at = self.at;
        let name = self.take_while(is_name);
        let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if starts { Ok(name) } else { Err(self.error(at, "a name".to_owned())) }
    }

    pub(super) fn eat_word(&mut self, word: &str) -> bool {
        let found = self.peek_name() == word;
        if found {
            self.skip();
            self.at += word.len();
        }
        found
    }

    pub(super) fn word(&mut self, word: &str) -> Parsed<()> {
        if self.eat_word(word) { Ok(()) } else { Err(self.expected(&format!("`{word}`"))) }
    }

    pub(super) fn eat(&mut self, symbol: &str) -> bool {
        self.skip();
        let found = self.text[self.at..].starts_with(symbol);
        if found {
            self.at += symbol.len();
        }
        found
    }

    pub(super) fn symbol(&mut self, symbol: &str) -> Parsed<()> {
        if self.eat(symbol) { Ok(()) } else { Err(self.expected(&format!("`{symbol}`"))) }
    }

    pub(super) fn expected(&mut self, what: &str) -> ParseError {
        self.skip();
        self.error(self.at, what.to_owned())
    }

    pub(super) fn error(&self, at: usize, what: String) -> ParseError {
        let before = &self.text[..at];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |line| line.chars().count()) + 1;
        ParseError { line, column, message: format!("expected {what}") }
    }
}

pub(super) fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}
