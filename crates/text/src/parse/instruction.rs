//! Instructions.

use smallvec::SmallVec;
use smol_str::SmolStr;
use tilewright_ir::ops::attr::AttrError;
use tilewright_ir::ops::shaping::ParameterAttrs;
use tilewright_ir::{
    ArrayShape, InstId, Op, Opcode, Position, Shape, ShapeId, infer_layout, infer_mixed, similar,
};

use super::attribute::Attributes;
use super::computation::Scope;
use super::sugar::asynchronous;
use super::{Failed, MAX_DEPTH, Parse, Parser, SyntaxError};
use crate::print::name::may_name_instruction;
use crate::span::Span;

/// The operands collected so far.
pub(super) type Operands = SmallVec<[InstId; 8]>;

/// The part of an instruction before the parentheses.
#[derive(Clone, Copy)]
pub(super) struct Head {
    pub(super) shape: Option<ShapeId>,
    pub(super) opcode: Opcode,
    /// The opcode that this `async-start` wraps, if it is not a computation.
    pub(super) wrapped: Option<Opcode>,
    /// The position of the opcode.
    pub(super) span: Span,
}

impl<'s> Parser<'s> {
    /// `instruction := ["ROOT"] name "=" expression`
    pub(super) fn instruction(&mut self, scope: &mut Scope<'s>) -> Parse<()> {
        let root = self.root_keyword();
        let (name, span) = self.name("an instruction, as `y = f32[2] negate(x)`, or `}`")?;
        let named = self.check_name(name, span);
        let result =
            match named.and_then(|()| self.expect(b'=', "`=` and what the instruction computes")) {
                Ok(()) => self.expression(scope, name.into(), span),
                Err(failed) => Err(failed),
            };
        match result {
            Ok(id) => {
                if let Some(previous) = scope.names.insert(name, Some(id)) {
                    return self.duplicate_name(name, span, previous);
                }
                match root {
                    Some(root) => self.set_root(scope, id, root),
                    None => Ok(()),
                }
            }
            Err(failed) => {
                if !scope.names.contains(name) {
                    scope.names.insert(name, None);
                }
                Err(failed)
            }
        }
    }

    /// `ROOT`, unless it is the name of an instruction.
    fn root_keyword(&mut self) -> Option<Span> {
        let start = self.cursor.pos();
        if !self.cursor.eat_word("ROOT") {
            return None;
        }
        let span = self.span_since(start);
        self.cursor.skip_space();
        Some(span)
    }

    /// Reports a name that no instruction can have, here as in XLA.
    pub(super) fn check_name(&mut self, name: &str, span: Span) -> Parse<()> {
        if may_name_instruction(name) {
            return Ok(());
        }
        let message = format!("an instruction cannot be named `{name}`");
        let other = format!("{}_", name.trim_start_matches('_'));
        let help = format!(
            "types and what begins with `__` are no names: use another, as `{other}`, here and \
             where it is used"
        );
        self.fail(SyntaxError::new(span, message).help(help))
    }

    fn set_root(&mut self, scope: &mut Scope<'s>, id: InstId, span: Span) -> Parse<()> {
        if let Some(first) = scope.root {
            let error = SyntaxError::new(span, "a second root in this computation");
            return self.fail(error.first(Some(first)));
        }
        scope.root = Some(span);
        // It was inserted just now, so it cannot have been removed.
        self.module.set_root(id).map_err(|_| Failed)
    }

    #[cold]
    fn duplicate_name(&mut self, name: &str, span: Span, previous: Option<InstId>) -> Parse<()> {
        let message = format!("a second instruction named `{name}` in this computation");
        let first = previous.and_then(|id| self.spans.instruction(id));
        self.fail(SyntaxError::new(span, message).first(first))
    }

    /// ```text
    /// expression := [shape] opcode arguments ("," attribute)*
    /// ```
    pub(super) fn expression(
        &mut self,
        scope: &mut Scope<'s>,
        name: SmolStr,
        at: Span,
    ) -> Parse<InstId> {
        let head = self.head()?;
        let mut operands = Operands::new();
        let value = self.arguments(scope, &head, &mut operands)?;
        let mut attributes = Attributes::default();
        self.attributes(scope, &head, &mut attributes)?;
        self.comparison_order(&head, &operands, &mut attributes)?;
        let op = match (value, head.wrapped) {
            (Some(op), _) => op,
            (None, Some(wrapped)) => {
                self.wrapping(scope, &head, wrapped, &operands, &mut attributes)?
            }
            (None, None) => match Op::from_attrs(head.opcode, &mut attributes.values) {
                Ok(op) => op,
                Err(error) => return self.attribute_error(&head, &error, &attributes),
            },
        };
        self.hand_on_thread(&op);
        let id = self.insert(scope, &head, op, &operands, name)?;
        self.spans.set_instruction(id, Span { start: at.start, end: attributes.own_end });
        self.attach(id, &mut attributes);
        Ok(id)
    }

    /// `arguments := "(" integer ")" | "(" literal ")" | operands`
    ///
    /// Reads the text between the parentheses. Returns the op if that text is the op's value.
    pub(super) fn arguments(
        &mut self,
        scope: &mut Scope<'s>,
        head: &Head,
        operands: &mut Operands,
    ) -> Parse<Option<Op>> {
        match head.opcode {
            Opcode::Parameter => self.parameter().map(Some),
            Opcode::Constant => self.constant(head).map(Some),
            _ => self.operands(scope, operands).map(|()| None),
        }
    }

    /// `head := [shape] opcode`, up to its `(`.
    pub(super) fn head(&mut self) -> Parse<Head> {
        self.cursor.skip_space();
        let shape = self.optional_shape()?;
        self.cursor.skip_space();
        let start = self.cursor.pos();
        let Some(word) = self.cursor.word() else {
            let what = if shape.is_some() { "an opcode, as `add`" } else { "a shape or an opcode" };
            return self.unexpected(what);
        };
        self.opcode(word, start, shape)
    }

    /// Returns the head whose opcode was just read.
    pub(super) fn opcode(
        &mut self,
        word: &str,
        start: usize,
        shape: Option<ShapeId>,
    ) -> Parse<Head> {
        let span = self.span_since(start);
        match Opcode::from_name(word) {
            Some(opcode) => Ok(Head { shape, opcode, wrapped: None, span }),
            None => match asynchronous(word) {
                Some((opcode, wrapped)) => Ok(Head {
                    shape,
                    opcode,
                    wrapped: Some(wrapped).filter(|_| opcode == Opcode::AsyncStart),
                    span,
                }),
                None => self.unknown_opcode(word, span),
            },
        }
    }

    #[cold]
    fn unknown_opcode<T>(&mut self, word: &str, span: Span) -> Parse<T> {
        let mut error = SyntaxError::new(span, format!("unknown opcode `{word}`"));
        if let Some(name) = similar(word, Opcode::ALL.iter().map(|opcode| opcode.name())) {
            error = error.help(format!("did you mean `{name}`?"));
        }
        self.fail(error)
    }

    /// `"(" integer ")"`, of a parameter.
    fn parameter(&mut self) -> Parse<Op> {
        self.expect(b'(', "`(` and the number of the parameter")?;
        self.cursor.skip_space();
        let start = self.cursor.pos();
        let number = self.integer("the number of the parameter")?;
        if number < 0 {
            let span = self.span_since(start);
            return self.fail(SyntaxError::new(span, "parameter numbers begin at 0"));
        }
        self.expect(b')', "`)`")?;
        Ok(Op::Parameter(Box::new(ParameterAttrs { number })))
    }

    /// `"(" literal ")"`, of a constant.
    fn constant(&mut self, head: &Head) -> Parse<Op> {
        let Some(shape) = head.shape else {
            let error = SyntaxError::new(head.span, "a constant without a shape")
                .expected("a shape before it, as `f32[2] constant({1, 2})`");
            return self.fail(error);
        };
        self.expect(b'(', "`(` and the value of the constant")?;
        let value = self.literal_of(shape)?;
        self.expect(b')', "`)` after the value")?;
        Ok(Op::Constant(Box::new(value)))
    }

    #[cold]
    pub(super) fn attribute_error<T>(
        &mut self,
        head: &Head,
        error: &AttrError,
        attributes: &Attributes<'_>,
    ) -> Parse<T> {
        let reported = match error {
            AttrError::Missing(name) => {
                let message = format!("`{}` needs the attribute `{name}`", head.opcode);
                let error = SyntaxError::new(head.span, message);
                match similar(name, attributes.other_names()) {
                    Some(other) => error.help(format!("is `{other}` meant to be it?")),
                    None => error,
                }
            }
            AttrError::Value { name, expected } => {
                let span = attributes.span_of(name).unwrap_or(head.span);
                SyntaxError::new(span, format!("`{name}` cannot have this value"))
                    .expected(expected)
            }
        };
        self.fail(reported)
    }

    /// Puts an instruction at the end of its computation; its shape is inferred if it was not
    /// written.
    pub(super) fn insert(
        &mut self,
        scope: &Scope<'s>,
        head: &Head,
        op: Op,
        operands: &[InstId],
        name: SmolStr,
    ) -> Parse<InstId> {
        let shape = match head.shape {
            Some(shape) => shape,
            None => self.infer(head, &op, operands)?,
        };
        let position = Position::End(scope.id);
        match self.module.insert_interned(position, op, shape, operands, name) {
            Ok(id) => Ok(id),
            Err(error) => self.fail(SyntaxError::new(head.span, error.to_string())),
        }
    }

    /// Returns the shape that an op yields. A tuple of tuples of tuples can double in size with
    /// every line, so the visited and the resulting shapes must stay in proportion to the text.
    fn infer(&mut self, head: &Head, op: &Op, operands: &[InstId]) -> Parse<ShapeId> {
        if !matches!(op, Op::GetTupleElement(_)) {
            self.pay_for_shapes_of(head, operands)?;
        }
        let shapes: SmallVec<[&Shape; 8]> =
            operands.iter().map(|&id| self.module.shape(id)).collect();
        let inferred = infer_mixed(&self.module, op, &shapes, None).map(|inferred| {
            let mut shape = inferred.shape;
            infer_layout(op, &shapes, &mut shape);
            shape
        });
        drop(shapes);
        let shape = match inferred {
            Ok(shape) => shape,
            Err(error) => return self.fail(SyntaxError::new(head.span, error.message)),
        };
        let size = Size::of(&shape);
        if size.depth > MAX_DEPTH {
            let message = format!("tuples nest more than {MAX_DEPTH} deep in what this yields");
            return self.fail(SyntaxError::new(head.span, message));
        }
        self.pay_for_inference(head, size.parts)?;
        Ok(self.module.intern_shape(shape))
    }

    /// Takes the sizes of the operands' shapes from the inference budget, which limits how much
    /// work a text can cause.
    pub(super) fn pay_for_shapes_of(&mut self, head: &Head, operands: &[InstId]) -> Parse<()> {
        // Shapes are visited one by one, so that none is visited beyond the budget.
        for &id in operands {
            let parts = Size::of(self.module.shape(id)).parts;
            self.pay_for_inference(head, parts)?;
        }
        Ok(())
    }

    fn pay_for_inference(&mut self, head: &Head, parts: usize) -> Parse<()> {
        match self.inference_budget.checked_sub(parts) {
            Some(left) => {
                self.inference_budget = left;
                Ok(())
            }
            None => {
                let error =
                    SyntaxError::new(head.span, "too many and too large tuple shapes to infer")
                        .help("write the shape of the instruction");
                self.fail(error)
            }
        }
    }
}

/// The cost of walking over a shape.
#[derive(Clone, Copy, Default)]
struct Size {
    /// The number of arrays and tuples in it; a shape with many dims or a long layout counts as
    /// more.
    parts: usize,
    /// The nesting depth of tuples and buffers.
    depth: usize,
}

impl Size {
    /// Shapes of the text nest to a limit, so this recursion does too.
    fn of(shape: &Shape) -> Self {
        let inside = match shape {
            Shape::Tuple(elements) => {
                elements.iter().map(Self::of).fold(Self::default(), Self::and)
            }
            Shape::Buffer(inner) => Self::of(inner),
            Shape::Array(array) => return Self::of_array(array),
            Shape::Token | Shape::Opaque => Self::default(),
        };
        Self { parts: inside.parts + 1, depth: inside.depth + 1 }
    }

    fn of_array(array: &ArrayShape) -> Self {
        const NUMBERS_OF_A_PART: usize = 8;
        let Some(layout) = &array.layout else {
            return Self { parts: 1 + array.rank() / NUMBERS_OF_A_PART, depth: 0 };
        };
        let tiles = layout.tiles.iter().map(|tile| 1 + tile.dims.len());
        let mut numbers = array.rank() + tiles.sum::<usize>();
        let mut physical = Self::default();
        if let Some(rare) = &layout.rare {
            numbers += rare.splits.iter().map(|(_, indices)| 1 + indices.len()).sum::<usize>();
            if let Some(shape) = &rare.physical_shape {
                physical = Self::of(shape);
                physical.depth += 1;
            }
        }
        Self { parts: 1 + numbers / NUMBERS_OF_A_PART, depth: 0 }.and(physical)
    }

    fn and(self, other: Self) -> Self {
        Self { parts: self.parts + other.parts, depth: self.depth.max(other.depth) }
    }
}
