//! The values of constants.

use smallvec::SmallVec;
use tilewright_ir::shape::checked_product;
use tilewright_ir::{ArrayLiteral, Data, Dims, ElementType, Literal, Shape, ShapeId};

use super::decimal::{BF16, F16};
use super::{Parse, Parser, SyntaxError};
use crate::span::Span;

impl Parser<'_> {
    /// Returns the value of a constant of a shape.
    pub(super) fn literal_of(&mut self, shape: ShapeId) -> Parse<Literal> {
        let (element_type, dims) = match self.module.shape_of(shape) {
            Shape::Array(array) => (array.element_type, Dims::from(array.dims())),
            other => {
                let shape = other.clone();
                return self.literal(&shape);
            }
        };
        self.array_literal(element_type, &dims)
    }

    /// ```text
    /// literal := array | "(" [literal ("," literal)*] ")"
    /// ```
    fn literal(&mut self, shape: &Shape) -> Parse<Literal> {
        match shape {
            Shape::Array(array) => self.array_literal(array.element_type, array.dims()),
            Shape::Tuple(elements) => self.nested(|parser| parser.tuple_literal(elements)),
            // XLA prints no text for a token, and reads none back.
            Shape::Token | Shape::Buffer(_) | Shape::Opaque => {
                let span = self.found();
                let message = format!("a constant cannot be {shape}");
                self.fail(SyntaxError::new(span, message))
            }
        }
    }

    fn tuple_literal(&mut self, elements: &[Shape]) -> Parse<Literal> {
        self.expect(b'(', "`(` and the elements of the tuple")?;
        let mut values = Vec::new();
        for (i, shape) in elements.iter().enumerate() {
            if i > 0 {
                self.expect(b',', "`,` and the next element of the tuple")?;
            }
            values.push(self.literal(shape)?);
        }
        self.expect(b')', "`)` after the last element of the tuple")?;
        Ok(Literal::Tuple(values))
    }

    /// ```text
    /// array    := element | brace                       as the rank says
    /// brace    := "{" (array ","*)* "}" | "{" "..." "}"
    /// ```
    fn array_literal(&mut self, element_type: ElementType, dims: &[i64]) -> Parse<Literal> {
        let elided = self.elided(dims);
        // An array without elements is complete even if its values are elided.
        if elided && !dims.contains(&0) {
            let shape = Shape::array(element_type, dims.iter().copied());
            return Ok(Literal::Elided(Box::new(shape)));
        }
        self.cursor.skip_space();
        let start = self.cursor.pos();
        let data =
            if elided { Data::zeros(element_type, 0) } else { self.data(element_type, dims)? };
        match ArrayLiteral::new(element_type, dims.iter().copied(), data) {
            Ok(array) => Ok(Literal::Array(array)),
            Err(error) => {
                let span = Span::new(start, start + 1);
                self.fail(SyntaxError::new(span, error.to_string()))
            }
        }
    }

    /// `{...}`, where the values were left out.
    fn elided(&mut self, dims: &[i64]) -> bool {
        self.cursor.skip_space();
        let start = self.cursor.pos();
        let elided = !dims.is_empty()
            && self.cursor.eat(b'{')
            && {
                self.cursor.skip_space();
                self.cursor.eat_text("...")
            }
            && self.accept(b'}');
        if !elided {
            self.cursor.set_pos(start);
        }
        elided
    }

    fn data(&mut self, element_type: ElementType, dims: &[i64]) -> Parse<Data> {
        use ElementType as T;
        let ty = element_type;
        Ok(match element_type {
            T::Pred => Data::Pred(self.elements(dims, Self::truth)?),
            T::S1 | T::S2 | T::S4 | T::S8 => Data::S8(self.elements(dims, |p| p.whole(ty))?),
            T::S16 => Data::S16(self.elements(dims, |p| p.whole(ty))?),
            T::S32 => Data::S32(self.elements(dims, |p| p.whole(ty))?),
            T::S64 => Data::S64(self.elements(dims, |p| p.whole(ty))?),
            T::U1 | T::U2 | T::U4 | T::U8 => Data::U8(self.elements(dims, |p| p.whole(ty))?),
            T::U16 => Data::U16(self.elements(dims, |p| p.whole(ty))?),
            T::U32 => Data::U32(self.elements(dims, |p| p.whole(ty))?),
            T::U64 => Data::U64(self.elements(dims, |p| p.whole(ty))?),
            T::F16 => Data::F16(self.elements(dims, |p| p.narrow(F16).map(half::f16::from_bits))?),
            T::BF16 => {
                Data::BF16(self.elements(dims, |p| p.narrow(BF16).map(half::bf16::from_bits))?)
            }
            T::F32 => Data::F32(self.elements(dims, Self::single)?),
            T::F64 => Data::F64(self.elements(dims, Self::double)?),
            T::C64 => Data::C64(self.elements(dims, |p| p.complex(Self::single))?),
            T::C128 => Data::C128(self.elements(dims, |p| p.complex(Self::double))?),
            T::F4E2M1FN
            | T::F6E2M3FN
            | T::F6E3M2FN
            | T::F8E3M4
            | T::F8E4M3
            | T::F8E4M3FN
            | T::F8E4M3B11FNUZ
            | T::F8E4M3FNUZ
            | T::F8E5M2
            | T::F8E5M2FNUZ
            | T::F8E8M0FNU => Data::U8(self.elements(dims, |p| p.small(ty))?),
        })
    }

    /// Returns the elements of nested braces. Their number is the number of elements in the
    /// text; `dims` is only compared with it.
    fn elements<T: Clone + Default>(
        &mut self,
        dims: &[i64],
        mut element: impl FnMut(&mut Self) -> Parse<T>,
    ) -> Parse<Vec<T>> {
        let mut values = Vec::new();
        if dims.is_empty() {
            values.push(element(self)?);
            return Ok(values);
        }
        self.cursor.skip_space();
        if self.cursor.peek() != b'{' {
            return self.without_braces(dims, element);
        }
        // The number of items in each open brace so far.
        let mut counts: SmallVec<[i64; 6]> = SmallVec::new();
        self.expect(b'{', "`{` and the elements")?;
        counts.push(0);
        loop {
            let level = counts.len();
            let (Some(count), Some(&size)) = (counts.last_mut(), dims.get(level - 1)) else {
                return Ok(values);
            };
            if self.cursor.accept_after_space(b'}') {
                let empty = *count == 0 && dims.iter().skip(level - 1).any(|&d| d == 0);
                if *count != size && !empty {
                    let count = *count;
                    return self.wrong_count_of_elements(level - 1, size, count);
                }
                counts.pop();
                if counts.is_empty() {
                    return Ok(values);
                }
                while self.accept(b',') {}
                continue;
            }
            if *count == size {
                return self.too_many_elements(level - 1, size);
            }
            *count += 1;
            if level == dims.len() {
                values.push(element(self)?);
                while self.accept(b',') {}
            } else {
                self.expect(b'{', "`{` and the elements of the next dim")?;
                counts.push(0);
            }
        }
    }

    /// Returns the value of an array written as a scalar. XLA takes it for the first element
    /// and sets the others to zero (`ParseDenseLiteral` in `xla/hlo/parser/hlo_parser.cc`).
    #[cold]
    fn without_braces<T: Clone + Default>(
        &mut self,
        dims: &[i64],
        mut element: impl FnMut(&mut Self) -> Parse<T>,
    ) -> Parse<Vec<T>> {
        let is_number =
            matches!(self.cursor.peek(), b'0'..=b'9' | b'-' | b't' | b'f' | b'n' | b'i');
        let Some(count) = self.affordable(dims).filter(|&count| is_number && count > 0) else {
            return self.unexpected("`{` and the elements");
        };
        self.inference_budget -= count;
        let mut values = vec![T::default(); count];
        let first = element(self)?;
        values.iter_mut().take(1).for_each(|value| *value = first.clone());
        Ok(values)
    }

    /// Returns the number of elements of these dims, if the text is long enough for an array of
    /// this size made from a single element.
    fn affordable(&self, dims: &[i64]) -> Option<usize> {
        let count = usize::try_from(checked_product(dims)?).ok()?;
        (count <= self.inference_budget).then_some(count)
    }

    #[cold]
    fn wrong_count_of_elements<T>(&mut self, dim: usize, size: i64, count: i64) -> Parse<T> {
        let end = self.cursor.pos();
        let span = Span::new(end.saturating_sub(1), end);
        let message =
            format!("dim {dim} has the size {size}, but only {count} stand in this brace");
        self.fail(SyntaxError::new(span, message))
    }

    #[cold]
    fn too_many_elements<T>(&mut self, dim: usize, size: i64) -> Parse<T> {
        let span = self.found();
        let message = format!("dim {dim} has the size {size}, but more stand in this brace");
        self.fail(SyntaxError::new(span, message).expected("`}`"))
    }
}
