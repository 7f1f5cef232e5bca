//! Reads how lost arrays of the original program are recovered from others: a table that
//! contains the texts of whole modules.

use tilewright_ir::metadata::{MAX_RECOVERY_DEPTH, OriginalArray, Recovery, RecoveryTable};
use tilewright_ir::{Dims, Module, Residue, escape};

use super::string::Quoted;
use super::{Failed, Parse, Parsed, Parser, SyntaxError, SyntaxErrors};
use crate::lexer::END;
use crate::span::Span;

impl Parser<'_> {
    /// ```text
    /// table := "{" (array ":" array ["," string])* "}"
    /// ```
    /// The strings are texts of modules; `name` is where the attribute's stands.
    pub(super) fn recovery_table(&mut self, name: Span) -> Parse<RecoveryTable> {
        if self.recovery_depth >= MAX_RECOVERY_DEPTH {
            let message = format!("recovery tables nest more than {MAX_RECOVERY_DEPTH} deep here");
            return self.fail(SyntaxError::new(name, message));
        }
        self.cursor.skip_space();
        let start = self.cursor.pos();
        self.expect(b'{', "`{`, as in `{ {\"x\"} : {\"y\"} }`")?;
        let table = self.recoveries();
        if table.is_err() {
            self.skip_table(start);
        }
        table
    }

    /// Parses a table after its opening brace.
    fn recoveries(&mut self) -> Parse<RecoveryTable> {
        let mut table = RecoveryTable::new();
        while !self.accept(b'}') {
            let lost = self.original_array()?;
            self.expect(b':', "`:` and the array that is there instead")?;
            let replacement = self.original_array()?;
            let module = if self.accept(b',') { Some(self.recovery_module()?) } else { None };
            // XLA's parser also keeps the first of two recoveries of the same array.
            table.entry(lost).or_insert(Recovery {
                replacement,
                module,
                residue: Residue::default(),
            });
        }
        Ok(table)
    }

    /// `array := "{" [string [index]] "}"`; without a name it is the empty one.
    fn original_array(&mut self) -> Parse<OriginalArray> {
        self.expect(b'{', "`{` and the name of an instruction, as `{\"x\"}`")?;
        if self.accept(b'}') {
            return Ok(OriginalArray { instruction: "".into(), part: Dims::new() });
        }
        self.rest_of_array()
    }

    /// Moves from an error in the table that begins at `start` to its end, if it has one: the
    /// modules in the table are not part of this text's module.
    fn skip_table(&mut self, start: usize) {
        let mut ahead = self.cursor;
        ahead.set_pos(start);
        let mut depth = 0usize;
        loop {
            let at = ahead.pos();
            match ahead.peek() {
                END => return,
                b'"' | b'\'' if ahead.quoted().is_none() => return,
                b'{' => depth += 1,
                b'}' if depth <= 1 => break,
                b'}' => depth -= 1,
                b'/' => ahead.skip_space(),
                _ => {}
            }
            if ahead.pos() == at {
                ahead.bump_char();
            }
        }
        self.cursor.set_pos(ahead.pos().max(self.cursor.pos()));
    }

    fn recovery_module(&mut self) -> Parse<Box<Module>> {
        let quoted = self.quoted("the text of a module in quotes")?;
        let mut parser = Parser::new(&quoted.text);
        parser.recovery_depth = self.recovery_depth + 1;
        // The limit of inference applies to the whole text.
        parser.inference_budget = self.inference_budget;
        let parsed = parser.parse();
        self.inference_budget = parser.inference_budget;
        match parsed {
            Ok(Parsed { module, .. }) => Ok(Box::new(module)),
            Err(errors) => self.fail_within(&quoted, &errors),
        }
    }

    /// Reports the errors of the text in a string, at their position here.
    #[cold]
    fn fail_within<T>(&mut self, quoted: &Quoted<'_>, errors: &SyntaxErrors) -> Parse<T> {
        let places = escape::places(quoted.raw);
        let place = |at: u32| quoted.start + places.get(at as usize).unwrap_or(&quoted.raw.len());
        let span = |span: Span| Span::new(place(span.start), place(span.end));
        for error in errors.errors() {
            let first = error.first.map(span);
            let _ = self.fail::<()>(SyntaxError { span: span(error.span), first, ..error.clone() });
        }
        if errors.gave_up() {
            self.gave_up = true;
            self.stopped = true;
        }
        Err(Failed)
    }
}
