//! Operands.

use memchr::memmem;
use smol_str::{SmolStr, format_smolstr};
use tilewright_ir::ops::control::GetTupleElementAttrs;
use tilewright_ir::{InstId, Op, Opcode, Position, Shape, ShapeId, similar};

use super::computation::Scope;
use super::instruction::Operands;
use super::{Failed, Parse, Parser, SyntaxError};
use crate::span::{Span, line_column};

impl<'s> Parser<'s> {
    /// `operands := "(" ","* [operand (","+ operand)* ","*] ")"`
    ///
    /// XLA's parser does not mind a comma too many here.
    pub(super) fn operands(&mut self, scope: &mut Scope<'s>, operands: &mut Operands) -> Parse<()> {
        self.expect(b'(', "`(` and the operands")?;
        loop {
            while self.accept(b',') {}
            if self.accept(b')') {
                return Ok(());
            }
            operands.push(self.operand(scope)?);
            if !self.accept(b',') {
                return self.expect(b')', "`,` or `)`");
            }
        }
    }

    /// ```text
    /// operand := [shape] name element* | [shape] opcode arguments
    /// element := "#" integer
    /// ```
    fn operand(&mut self, scope: &mut Scope<'s>) -> Parse<InstId> {
        self.cursor.skip_space();
        if self.cursor.peek() == b'%' {
            return self.named_operand(scope, None);
        }
        let start = self.cursor.pos();
        let shape = match self.optional_shape()? {
            Some(id) => {
                let span = self.span_since(start);
                self.cursor.skip_space();
                Some((id, span))
            }
            None => None,
        };
        let start = self.cursor.pos();
        let mut ahead = self.cursor;
        if let Some(word) = ahead.word() {
            ahead.skip_space();
            if ahead.peek() == b'(' {
                self.cursor.word();
                let shape = shape.map(|(id, _)| id);
                return self.nested(|parser| parser.nested_instruction(scope, word, start, shape));
            }
        }
        match shape {
            Some((id, span)) if scope.makes_parameters => self.argument(scope, id, span),
            _ => self.named_operand(scope, shape),
        }
    }

    fn named_operand(
        &mut self,
        scope: &mut Scope<'s>,
        shape: Option<(ShapeId, Span)>,
    ) -> Parse<InstId> {
        self.cursor.skip_space();
        let start = self.cursor.pos();
        let (name, span) = self.name("an operand, as `x` or `f32[2] x`")?;
        let mut id = self.instruction_named(scope, name, span)?;
        while self.accept(b'#') {
            id = self.element(scope, id, start)?;
        }
        if let Some((declared, at)) = shape {
            self.check_operand_shape(id, declared, at)?;
        }
        Ok(id)
    }

    /// Returns the `get-tuple-element` that `tuple#1` stands for. XLA writes dumps so; the same element
    /// is one instruction, which no other line can name.
    fn element(&mut self, scope: &mut Scope<'s>, tuple: InstId, start: usize) -> Parse<InstId> {
        let index = self.integer("the index of an element, as in `x#1`")?;
        if let Some(&known) = scope.elements.get(&(tuple, index)) {
            return Ok(known);
        }
        let span = self.span_since(start);
        let name = format_smolstr!("{}#{index}", self.module.name_of(tuple));
        let place = usize::try_from(index).ok();
        let shape = match self.module.shape(tuple) {
            Shape::Tuple(parts) => {
                place.and_then(|place| parts.get(place)).cloned().ok_or("of which")
            }
            _ => Err("which is no tuple, of which"),
        };
        let shape = match shape {
            Ok(shape) => shape,
            Err(why) => {
                let whole = self.module.shape(tuple).without_layout();
                let message =
                    format!("`{name}` is an element of {whole}, {why} there is no number {index}");
                return self.fail(SyntaxError::new(span, message));
            }
        };
        let op = Op::GetTupleElement(Box::new(GetTupleElementAttrs { index }));
        let position = Position::End(scope.id);
        match self.module.insert(position, op, shape, &[tuple], name) {
            Ok(id) => {
                self.spans.set_instruction(id, span);
                self.elements.push(id);
                scope.elements.insert((tuple, index), id);
                Ok(id)
            }
            Err(error) => self.fail(SyntaxError::new(span, error.to_string())),
        }
    }

    /// Names the elements of tuples that have no lines, as XLA does: `x_1` for `x#1`.
    pub(super) fn name_the_elements(&mut self) {
        for &id in &self.elements {
            let (Op::GetTupleElement(attrs), &[tuple]) =
                (self.module.op(id), self.module.operands(id))
            else {
                continue;
            };
            let wanted = format!("{}_{}", self.module.name_of(tuple), attrs.index);
            let name = self.module.fresh_name(&wanted);
            self.module.set_name(id, name);
        }
    }

    /// Returns the instruction with a name, in this computation.
    pub(super) fn instruction_named(
        &mut self,
        scope: &Scope<'s>,
        name: &'s str,
        span: Span,
    ) -> Parse<InstId> {
        match scope.names.get(name) {
            Some(Some(id)) => Ok(id),
            // The error in its definition was reported there.
            Some(None) => Err(Failed),
            None => match scope.made_up.get(name) {
                Some(&id) => Ok(id),
                None => self.unknown_name(scope, name, span),
            },
        }
    }

    #[cold]
    fn unknown_name(&mut self, scope: &Scope<'s>, name: &str, span: Span) -> Parse<InstId> {
        const MOST_NAMES: usize = 10_000;
        let mut error =
            SyntaxError::new(span, format!("no instruction `{name}` stands before this"));
        if let Some(at) = self.definition_after(name) {
            let line = line_column(self.cursor.source(), at).line;
            error = error.help(format!(
                "line {line} defines `{name}`; operands stand before their users, in the same computation"
            ));
        } else if scope.names.len() <= MOST_NAMES
            && let Some(other) = similar(name, scope.names.iter())
        {
            error = error.help(format!("did you mean `{other}`?"));
        }
        self.fail(error)
    }

    /// Returns the position of a later definition of a name, within a limited distance.
    fn definition_after(&self, name: &str) -> Option<usize> {
        const FURTHEST: usize = 1 << 20;
        let start = self.cursor.pos();
        let source = self.cursor.source();
        let bytes = source.as_bytes();
        let end = bytes.len().min(start + FURTHEST);
        let mut from = start;
        while let Some(found) = memmem::find(bytes.get(from..end)?, name.as_bytes()) {
            let at = from + found;
            from = at + name.len();
            let free = |b: u8| !(b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'));
            let rest = bytes.get(from..end)?;
            if at > 0 && free(self.cursor.byte(at - 1)) && rest.starts_with(b" =") {
                return Some(at);
            }
        }
        None
    }

    pub(super) fn check_operand_shape(
        &mut self,
        id: InstId,
        declared: ShapeId,
        at: Span,
    ) -> Parse<()> {
        if self.module.instruction(id).shape_id() == declared {
            return Ok(());
        }
        let (actual, wanted) = (self.module.shape(id), self.module.shape_of(declared));
        // XLA does not ask which dims are dynamic.
        if actual.agrees(wanted) {
            return Ok(());
        }
        let message = format!(
            "operand `{}` is {}, not {}",
            self.module.name_of(id),
            actual.without_layout(),
            wanted.without_layout()
        );
        self.fail(SyntaxError::new(at, message))
    }

    /// `opcode arguments` without attributes: an instruction with a made-up name.
    fn nested_instruction(
        &mut self,
        scope: &mut Scope<'s>,
        word: &str,
        start: usize,
        shape: Option<ShapeId>,
    ) -> Parse<InstId> {
        let head = self.opcode(word, start, shape)?;
        let mut operands = Operands::new();
        let value = self.arguments(scope, &head, &mut operands)?;
        let plain = || match head.wrapped {
            None => Op::from_attrs(head.opcode, &mut Default::default()).ok(),
            Some(_) => None,
        };
        let op = match value.or_else(plain) {
            Some(op) => op,
            None => {
                let message = format!("`{}` cannot stand inside of operands", head.opcode);
                let error = SyntaxError::new(head.span, message)
                    .help("it needs attributes: give it a line and a name of its own");
                return self.fail(error);
            }
        };
        let name = free_name(scope, head.opcode);
        let id = self.insert(scope, &head, op, &operands, name.clone())?;
        let span = self.span_since(start);
        self.spans.set_instruction(id, span);
        scope.made_up.insert(name, id);
        Ok(id)
    }
}

/// `multiply.anon`, `multiply.anon.1` ... as XLA calls nested instructions.
fn free_name(scope: &mut Scope<'_>, opcode: Opcode) -> SmolStr {
    let stem = opcode.name();
    let tried = scope.tried.entry(opcode).or_default();
    // No number is tried twice, so all names together cost one pass.
    loop {
        let name = match *tried {
            0 => format_smolstr!("{stem}.anon"),
            number => format_smolstr!("{stem}.anon.{number}"),
        };
        *tried += 1;
        if !scope.names.contains(&name) && !scope.made_up.contains_key(&name) {
            return name;
        }
    }
}
