//! Text without a header: computations alone, or a single instruction.

use smol_str::{SmolStr, format_smolstr};
use tilewright_ir::ops::shaping::ParameterAttrs;
use tilewright_ir::{InstId, Op, Opcode, ShapeId};

use super::computation::Scope;
use super::instruction::Head;
use super::{Parse, Parser};
use crate::lexer::END;
use crate::span::Span;

impl<'s> Parser<'s> {
    /// ```text
    /// short form := computation+ | single
    /// ```
    pub(super) fn short_form(&mut self) {
        if self.at_computation() {
            self.computations();
            let entry = self.module.entry().map(|id| self.module.computation(id).name());
            self.module.name = format_smolstr!("module_{}", entry.unwrap_or(""));
        } else if self.single_instruction().is_err() {
            if let Some(error) = self.errors.first_mut()
                && error.help.is_none()
            {
                error.help = Some("the text of a module begins with `HloModule`".into());
            }
        } else {
            self.cursor.skip_space();
            if self.cursor.peek() != END {
                let _ =
                    self.unexpected::<()>("the end: text without `HloModule` is one instruction");
            }
        }
    }

    /// Checks whether a computation stands here rather than an instruction: `ENTRY`, or a name
    /// with `{` after it, or one with `%` and `(`.
    fn at_computation(&self) -> bool {
        let mut ahead = self.cursor;
        if ahead.peek_word() == Some("ENTRY") {
            return true;
        }
        let sigil = ahead.eat(b'%');
        let named = ahead.word().is_some();
        ahead.skip_space();
        named && (ahead.peek() == b'{' || (sigil && ahead.peek() == b'('))
    }

    /// ```text
    /// single   := ["ROOT"] [name "="] expression
    /// argument := shape [name]
    /// ```
    /// The arguments become parameters, as XLA makes them.
    fn single_instruction(&mut self) -> Parse<()> {
        self.module.name = SmolStr::new_static("_");
        self.module.header.is_scheduled = true;
        let id = self.module.add_computation("_");
        self.computations.insert("_", Some(id));
        self.module.set_entry(id);
        let mut scope = Scope::new(id);
        scope.makes_parameters = true;
        self.keyword("ROOT");
        self.cursor.skip_space();
        let start = self.cursor.pos();
        let named = self.cursor.peek() == b'%' || self.equals_after_word();
        let (name, span) =
            if named { self.name("a name")? } else { ("_", Span::new(start, start + 1)) };
        if named {
            self.check_name(name, span)?;
            self.expect(b'=', "`=` and what the instruction computes")?;
        }
        let root = self.expression(&mut scope, name.into(), span)?;
        self.name_the_nameless();
        self.module.set_root(root).map_err(|_| super::Failed)
    }

    fn equals_after_word(&self) -> bool {
        let mut ahead = self.cursor;
        ahead.word();
        ahead.skip_space();
        ahead.peek() == b'='
    }

    /// Returns an argument of a single instruction: the parameter of this name, made if it is
    /// new.
    pub(super) fn argument(
        &mut self,
        scope: &mut Scope<'s>,
        shape: ShapeId,
        span: Span,
    ) -> Parse<InstId> {
        let number = self.module.computation(scope.id).parameters().len();
        let name = match self.cursor.peek() {
            b',' | b')' => format_smolstr!("_{number}"),
            _ => {
                let (name, at) = self.name("the name of an argument, or `,` or `)`")?;
                if let Some(&id) = scope.made_up.get(name) {
                    self.check_operand_shape(id, shape, at)?;
                    return Ok(id);
                }
                self.check_name(name, at)?;
                name.into()
            }
        };
        let number = i64::try_from(number).unwrap_or(i64::MAX);
        let op = Op::Parameter(Box::new(ParameterAttrs { number }));
        let head = Head { shape: Some(shape), opcode: Opcode::Parameter, wrapped: None, span };
        let id = self.insert(scope, &head, op, &[], name.clone())?;
        self.spans.set_instruction(id, self.span_since(span.start as usize));
        scope.made_up.insert(name, id);
        Ok(id)
    }
}
