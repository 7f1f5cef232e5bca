//! Values given per dim: slices, padding, windows.

use smallvec::SmallVec;
use tilewright_ir::ops::dims::{PadDim, SliceDim, WindowDim};

use super::{Parse, Parser, SyntaxError};

/// The numbers of one dim in `1_1x0_1`.
type PerDim = SmallVec<[i64; 3]>;

/// A part of a window: its name, its numbers and their position.
struct Field<'s> {
    name: &'s str,
    values: SmallVec<[PerDim; 4]>,
    at: usize,
}

const FIELDS: [&str; 6] = ["size", "stride", "pad", "lhs_dilate", "rhs_dilate", "rhs_reversal"];

impl<'s> Parser<'s> {
    /// ```text
    /// slices := "{" [slice ("," slice)*] "}"
    /// slice  := "[" integer ":" integer [":" integer] "]"
    /// ```
    pub(super) fn slices(&mut self) -> Parse<SmallVec<[SliceDim; 4]>> {
        self.expect(b'{', "`{`, as in `{[0:4], [2:6]}`")?;
        let mut slices = SmallVec::new();
        while !self.accept(b'}') {
            if !slices.is_empty() {
                self.expect(b',', "`,` or `}`")?;
            }
            self.expect(b'[', "`[`, as in `[0:4]`")?;
            let start = self.integer("the first index")?;
            self.expect(b':', "`:` and the limit")?;
            let limit = self.integer("the limit")?;
            let stride = if self.accept(b':') { self.integer("the stride")? } else { 1 };
            self.expect(b']', "`]`")?;
            slices.push(SliceDim { start, limit, stride });
        }
        Ok(slices)
    }

    /// `padding := low "_" high ["_" interior] ("x" ...)*`; nothing for a scalar.
    pub(super) fn padding(&mut self) -> Parse<SmallVec<[PadDim; 4]>> {
        let dims = self.per_dim("padding, as `0_1x2_2_1`")?;
        let pads: Option<_> = dims
            .0
            .iter()
            .map(|dim| match **dim {
                [low, high] => Some(PadDim { low, high, interior: 0 }),
                [low, high, interior] => Some(PadDim { low, high, interior }),
                _ => None,
            })
            .collect();
        match pads {
            Some(pads) => Ok(pads),
            None => self.wrong_count(dims.1, "`low_high` or `low_high_interior` for each dim"),
        }
    }

    /// Reads numbers joined by `_`, for each dim, joined by `x`; returns their position, too.
    fn per_dim(&mut self, what: &str) -> Parse<(SmallVec<[PerDim; 4]>, usize)> {
        self.cursor.skip_space();
        let start = self.cursor.pos();
        let text = self.cursor.sizes();
        if text.is_empty() {
            return match self.cursor.peek() {
                // The window or padding of a scalar.
                b',' | b'}' | b' ' | b'\n' => Ok((SmallVec::new(), start)),
                _ => self.unexpected(what),
            };
        }
        let dim = |text: &str| text.split('_').map(|n| n.parse().ok()).collect::<Option<PerDim>>();
        match text.split('x').map(dim).collect() {
            Some(dims) => Ok((dims, start)),
            None => self.wrong_count(start, what),
        }
    }

    fn wrong_count<T>(&mut self, start: usize, what: &str) -> Parse<T> {
        let span = self.span_since(start);
        let text = self.cursor.since(start);
        self.fail(SyntaxError::new(span, format!("unexpected `{text}`")).expected(what))
    }

    /// ```text
    /// window := "{" (field "=" sizes)* "}"
    /// field  := "size" | "stride" | "pad" | "lhs_dilate" | "rhs_dilate" | "rhs_reversal"
    /// ```
    pub(super) fn window(&mut self) -> Parse<SmallVec<[WindowDim; 2]>> {
        self.expect(b'{', "`{`, as in `{size=3x3 pad=1_1x1_1}`")?;
        let mut fields: SmallVec<[Field<'_>; 6]> = SmallVec::new();
        while !self.accept(b'}') {
            let field = self.window_field(&fields)?;
            fields.push(field);
            self.accept(b',');
        }
        let rank = fields.first().map_or(0, |field| field.values.len());
        let mut dims: SmallVec<[WindowDim; 2]> = (0..rank).map(|_| WindowDim::new(1)).collect();
        for Field { name, values, at } in &fields {
            let fits = values.len() == rank
                && dims.iter_mut().zip(values).all(|(dim, value)| set_field(dim, name, value));
            if !fits {
                self.cursor.set_pos(*at);
                self.cursor.sizes();
                return self.wrong_count(*at, &format!("{rank} sizes for `{name}`, joined by `x`"));
            }
        }
        Ok(dims)
    }

    fn window_field(&mut self, before: &[Field<'s>]) -> Parse<Field<'s>> {
        let start = self.cursor.pos();
        let name = self.cursor.word().unwrap_or("");
        if !FIELDS.contains(&name) {
            self.cursor.set_pos(start);
            let names: Vec<String> = FIELDS.iter().map(|name| format!("`{name}`")).collect();
            return self.unexpected(&format!("one of {}", names.join(", ")));
        }
        if before.iter().any(|field| field.name == name) {
            let span = self.span_since(start);
            return self.repeated(name, span);
        }
        self.expect(b'=', "`=`")?;
        let (values, at) = self.per_dim("numbers, as `3x3`")?;
        Ok(Field { name, values, at })
    }
}

/// Sets a field of one dim; `false` if these are not numbers for it.
fn set_field(dim: &mut WindowDim, name: &str, value: &[i64]) -> bool {
    match (name, value) {
        ("pad", &[low, high]) => (dim.padding_low, dim.padding_high) = (low, high),
        ("size", &[size]) => dim.size = size,
        ("stride", &[stride]) => dim.stride = stride,
        ("lhs_dilate", &[dilation]) => dim.base_dilation = dilation,
        ("rhs_dilate", &[dilation]) => dim.window_dilation = dilation,
        ("rhs_reversal", &[reversal @ (0 | 1)]) => dim.reversal = reversal == 1,
        _ => return false,
    }
    true
}
