//! Shapes.

use smallvec::SmallVec;
use tilewright_ir::shape::UNBOUNDED;
use tilewright_ir::{ArrayShape, Dims, ElementType, Shape, ShapeId, similar};

use super::{Parse, Parser, SyntaxError};
use crate::lexer::END;

/// The most dims of an array. XLA has no limit, but real arrays have far fewer.
const MAX_RANK: usize = 256;

impl Parser<'_> {
    /// Returns the interned shape that stands here after whitespace, if there is one. Shapes
    /// repeat so often that most are recognised by their text.
    #[inline]
    pub(super) fn optional_shape(&mut self) -> Parse<Option<ShapeId>> {
        let start = self.cursor.pos();
        let Some(end) = self.shape_extent() else {
            return if self.at_shape() { self.new_shape(None).map(Some) } else { Ok(None) };
        };
        match self.shapes.get(self.cursor.text(start, end)) {
            Some(Some(id)) => {
                self.cursor.set_pos(end);
                Ok(Some(id))
            }
            _ => self.new_shape(Some(end)).map(Some),
        }
    }

    /// Returns a shape that was not met yet, or is written in an unusual way.
    fn new_shape(&mut self, end: Option<usize>) -> Parse<ShapeId> {
        let start = self.cursor.pos();
        let shape = self.shape()?;
        let id = self.module.intern_shape(shape);
        if end == Some(self.cursor.pos()) {
            self.shapes.insert(self.cursor.since(start), Some(id));
        }
        Ok(id)
    }

    /// Checks whether the text here can only be a shape.
    fn at_shape(&self) -> bool {
        let mut ahead = self.cursor;
        if ahead.peek() == b'(' {
            return true;
        }
        let Some(word) = ahead.word() else { return false };
        match ahead.peek() {
            b'[' => true,
            b'(' => word == "b",
            b' ' => {
                ahead.skip_space();
                ahead.peek() == b'[' && is_type(word)
            }
            _ => false,
        }
    }

    /// Returns the end of the shape at the current position if it has the usual form; it is not
    /// checked.
    fn shape_extent(&self) -> Option<usize> {
        let mut ahead = self.cursor;
        if ahead.peek() == b'(' {
            return self.tuple_extent();
        }
        ahead.word()?;
        if !ahead.eat(b'[') {
            return None;
        }
        while matches!(ahead.peek(), b'0'..=b'9' | b',' | b'<' | b'=' | b'?') {
            ahead.bump();
        }
        if !ahead.eat(b']') {
            return None;
        }
        if ahead.peek() != b'{' {
            // A layout might come after whitespace.
            let end = ahead.pos();
            ahead.skip_space();
            return (ahead.peek() != b'{').then_some(end);
        }
        if !matches!(ahead.peek_second(), b'0'..=b'9' | b':') {
            return None;
        }
        loop {
            ahead.bump();
            match ahead.peek() {
                b'}' => return Some(ahead.pos() + 1),
                b'{' | b'/' | b' ' | b'\n' | END => return None,
                _ => {}
            }
        }
    }

    fn tuple_extent(&self) -> Option<usize> {
        let mut ahead = self.cursor;
        let mut depth = 0usize;
        loop {
            match ahead.peek() {
                b'(' => depth += 1,
                b')' if depth <= 1 => return Some(ahead.pos() + 1),
                b')' => depth -= 1,
                b'/' => {
                    let before = ahead.pos();
                    ahead.skip_space();
                    if ahead.pos() == before {
                        return None;
                    }
                    continue;
                }
                b'"' | b'\'' | END => return None,
                _ => {}
            }
            ahead.bump();
        }
    }

    /// ```text
    /// shape := "(" [shape ("," shape)*] ")"
    ///        | "b" "(" shape ")"
    ///        | ("token" | "opaque") "[" "]"
    ///        | type "[" [size ("," size)*] "]" [layout]
    /// ```
    pub(super) fn shape(&mut self) -> Parse<Shape> {
        self.cursor.skip_space();
        if self.cursor.peek() == b'(' {
            return self.nested(Self::tuple_shape);
        }
        let start = self.cursor.pos();
        let Some(word) = self.cursor.word() else {
            return self.unexpected("a shape, as `f32[2,3]`");
        };
        let span = self.span_since(start);
        if word == "b" && self.accept(b'(') {
            let inner = self.nested(Self::shape)?;
            self.expect(b')', "`)` after the shape of the buffer")?;
            return Ok(Shape::Buffer(Box::new(inner)));
        }
        if word == "token" || word == "opaque" {
            self.expect(b'[', "`[]`")?;
            self.expect(b']', "`]`")?;
            return Ok(if word == "token" { Shape::Token } else { Shape::Opaque });
        }
        let Some(element_type) = ElementType::from_name(word) else {
            let mut error = SyntaxError::new(span, format!("unknown element type `{word}`"));
            let names = ElementType::ALL.iter().map(|t| t.name());
            if let Some(name) = similar(word, names) {
                error = error.help(format!("did you mean `{name}`?"));
            }
            return self.fail(error);
        };
        self.array_shape(element_type).map(Shape::Array)
    }

    fn tuple_shape(&mut self) -> Parse<Shape> {
        self.expect(b'(', "`(`")?;
        let mut elements = Vec::new();
        if self.accept(b')') {
            return Ok(Shape::Tuple(elements));
        }
        loop {
            elements.push(self.shape()?);
            if self.accept(b',') {
                continue;
            }
            self.expect(b')', "`,` or `)` after a shape of the tuple")?;
            return Ok(Shape::Tuple(elements));
        }
    }

    fn array_shape(&mut self, element_type: ElementType) -> Parse<ArrayShape> {
        self.expect(b'[', "`[` and the sizes of the dims")?;
        let start = self.cursor.pos();
        let mut dims = Dims::new();
        let mut dynamic: SmallVec<[bool; 6]> = SmallVec::new();
        while !self.accept(b']') {
            if !dims.is_empty() {
                self.expect(b',', "`,` or `]`")?;
            }
            let (size, is_dynamic) = self.dim_size()?;
            dims.push(size);
            dynamic.push(is_dynamic);
        }
        if dims.len() > MAX_RANK {
            let message = format!("an array of {} dims; at most {MAX_RANK} are taken", dims.len());
            let span = self.span_since(start);
            return self.fail(SyntaxError::new(span, message));
        }
        let layout = if self.at_layout() { Some(self.layout(dims.len())?) } else { None };
        Ok(ArrayShape::new(element_type, dims).with_dynamic(&dynamic).with_layout(layout))
    }

    /// `size := integer | "<=" integer | "?"`, with whether it is dynamic.
    fn dim_size(&mut self) -> Parse<(i64, bool)> {
        self.cursor.skip_space();
        if self.cursor.eat(b'?') {
            return Ok((UNBOUNDED, true));
        }
        let is_dynamic = self.cursor.eat_text("<=");
        self.cursor.skip_space();
        let start = self.cursor.pos();
        let size = self.integer("the size of a dim, as `8`, `<=8` or `?`")?;
        if size < 0 {
            let span = self.span_since(start);
            return self.fail(SyntaxError::new(span, "the size of a dim cannot be negative"));
        }
        Ok((size, is_dynamic))
    }

    /// Checks whether a `{` is here that opens a layout: an integer or `:` follows.
    fn at_layout(&mut self) -> bool {
        let mut ahead = self.cursor;
        // `f32[]{}`, written together, means the same as `f32[]`.
        let adjacent = ahead.peek() == b'{';
        ahead.skip_space();
        if !ahead.eat(b'{') {
            return false;
        }
        ahead.skip_space();
        matches!(ahead.peek(), b'0'..=b'9' | b':' | b'-') || (adjacent && ahead.peek() == b'}')
    }
}

fn is_type(word: &str) -> bool {
    matches!(word, "token" | "opaque") || ElementType::from_name(word).is_some()
}
