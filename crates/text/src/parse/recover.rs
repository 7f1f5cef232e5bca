//! Finds the position at which parsing continues after an error.
//!
//! These functions look at the text alone, line by line if that helps, and only move forward,
//! so that all errors of a text together cost one more pass.

use super::Parser;
use crate::lexer::{Cursor, END, is_space, starts_name};

impl Parser<'_> {
    /// Moves from an error in an instruction to the next instruction or to the
    /// `}` of the computation. `start` is where the wrong one began.
    pub(super) fn recover_instruction(&mut self, start: usize) {
        if self.cursor.pos() <= start {
            self.cursor.set_pos(start);
            self.cursor.bump_char();
        }
        // Before this no quote opens a string that ends on its line.
        let mut no_string_before = 0;
        while !self.stopped {
            let fresh_line = self.at_line_start();
            let here = self.cursor.pos();
            match self.cursor.peek() {
                END => return,
                b'{' => self.skip_inline_body(),
                b'}' if self.closes_computation(fresh_line) => return,
                b'"' | b'\'' if here >= no_string_before => {
                    no_string_before = self.skip_string();
                }
                b'%' => {
                    if begins_definition(self.cursor) {
                        return;
                    }
                    self.cursor.bump();
                    self.cursor.word();
                }
                byte if starts_name(byte) => {
                    if begins_definition(self.cursor) {
                        return;
                    }
                    self.cursor.word();
                }
                b'/' => {
                    self.cursor.skip_space();
                    if self.cursor.pos() == here {
                        self.cursor.bump();
                    }
                }
                byte if is_space(byte) => self.cursor.skip_space(),
                // Numbers and the letters that follow them directly: `1x`, `3.5e7`.
                _ => {
                    if self.cursor.number().is_empty() {
                        self.cursor.bump_char();
                    }
                }
            }
        }
    }

    /// Checks whether only whitespace stands before the cursor on its line.
    fn at_line_start(&self) -> bool {
        let mut at = self.cursor.pos();
        // At most 64 steps to the left.
        for _ in 0..64 {
            match at.checked_sub(1).map(|before| self.cursor.byte(before)) {
                None | Some(b'\n') => return true,
                Some(b' ' | b'\t' | b'\r') => at -= 1,
                Some(_) => return false,
            }
        }
        false
    }

    /// Checks whether the `}` here ends a computation, rather than an attribute.
    fn closes_computation(&self, fresh_line: bool) -> bool {
        let mut ahead = self.cursor;
        ahead.bump();
        let glued = matches!(ahead.peek(), b',' | b')');
        ahead.skip_space();
        match ahead.peek() {
            END => true,
            _ if fresh_line => !glued,
            byte => (byte == b'%' || starts_name(byte)) && begins_computation(ahead),
        }
    }

    /// Moves over a brace and, if it holds instructions and is closed, over all
    /// that it holds.
    fn skip_inline_body(&mut self) {
        self.cursor.bump();
        let mut ahead = self.cursor;
        ahead.skip_space();
        if self.unbalanced || !begins_definition(ahead) {
            return;
        }
        let mut depth = 1usize;
        // If a string is not closed, no later quote closes one either.
        let mut closes = true;
        while depth > 0 {
            match ahead.peek() {
                END => {
                    // A search of the following text would fail too.
                    self.unbalanced = true;
                    return;
                }
                b'"' if closes => {
                    closes = ahead.quoted().is_some();
                    if closes {
                        continue;
                    }
                }
                b'{' => depth += 1,
                b'}' => depth -= 1,
                _ => {}
            }
            ahead.bump();
        }
        self.cursor.set_pos(ahead.pos());
    }

    /// Moves over a string that ends on its line. Otherwise moves over its quote and returns
    /// the end of the line.
    fn skip_string(&mut self) -> usize {
        let start = self.cursor.pos();
        let quote = self.cursor.peek();
        self.cursor.bump();
        loop {
            match self.cursor.peek() {
                b'\\' => {
                    self.cursor.bump();
                    self.cursor.bump_char();
                }
                END | b'\n' => {
                    let end = self.cursor.pos();
                    self.cursor.set_pos(start + 1);
                    return end;
                }
                byte => {
                    self.cursor.bump_char();
                    if byte == quote {
                        return 0;
                    }
                }
            }
        }
    }

    /// Moves from an error in the header to the first computation.
    pub(super) fn recover_header(&mut self) {
        while !self.stopped && self.cursor.peek() != END {
            self.next_line();
            if self.computation_on_line() {
                return;
            }
        }
    }

    /// Moves from an error outside of instructions to the next computation;
    /// the body of the wrong one is looked at for more errors.
    pub(super) fn recover_computation(&mut self) {
        if self.stopped {
            return;
        }
        let rest = self.rest_of_line();
        if rest.trim_end().ends_with('{') {
            let body = self.cursor.pos() + rest.trim_end().len() - 1;
            self.cursor.set_pos(body);
            let id = self.module.add_computation("");
            let _ = self.body(id);
            return;
        }
        self.recover_header();
    }

    fn rest_of_line(&self) -> &str {
        let pos = self.cursor.pos();
        let rest = self.cursor.source().get(pos..).unwrap_or("");
        rest.split('\n').next().unwrap_or("")
    }

    fn next_line(&mut self) {
        let length = self.rest_of_line().len();
        self.cursor.set_pos(self.cursor.pos() + length);
        self.cursor.bump();
    }

    /// Checks whether the line here looks like the first of a computation.
    fn computation_on_line(&self) -> bool {
        let line = self.rest_of_line().trim();
        line.ends_with('{')
            && line.starts_with(|c: char| c == '%' || c.is_ascii_alphabetic() || c == '_')
    }
}

/// `["ROOT"] name "="`, with whitespace before the `=` unlike attributes.
pub(super) fn begins_definition(mut ahead: Cursor<'_>) -> bool {
    if ahead.peek_word() == Some("ROOT") {
        ahead.word();
        ahead.skip_space();
    }
    let sigil = ahead.eat(b'%');
    if ahead.word().is_none() {
        return false;
    }
    let end = ahead.pos();
    while matches!(ahead.peek(), b' ' | b'\t') {
        ahead.bump();
    }
    ahead.peek() == b'=' && (sigil || ahead.pos() > end)
}

/// `"ENTRY" | name ("{" | " ("`: operands have no space before their `(`.
fn begins_computation(mut ahead: Cursor<'_>) -> bool {
    if ahead.peek_word() == Some("ENTRY") {
        return true;
    }
    ahead.eat(b'%');
    let named = ahead.word().is_some();
    let spaced = ahead.peek() == b' ';
    ahead.skip_space();
    named && (ahead.peek() == b'{' || (spaced && ahead.peek() == b'('))
}
