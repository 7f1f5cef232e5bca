//! Layouts.

use smallvec::SmallVec;
use tilewright_ir::layout::RareLayout;
use tilewright_ir::{Dims, ElementType, Layout, Padding, PaddingValue, Tile};

use super::{Parse, Parser, SyntaxError};

impl Parser<'_> {
    /// ```text
    /// layout := "{" [integer ("," integer)*] [":" part+] "}"
    /// ```
    /// with the parts in the order of [`Parser::layout_parts`].
    pub(super) fn layout(&mut self, rank: usize) -> Parse<Layout> {
        self.expect(b'{', "`{`")?;
        let start = self.cursor.pos();
        let mut order: SmallVec<[u32; 6]> = SmallVec::new();
        self.cursor.skip_space();
        while !matches!(self.cursor.peek(), b':' | b'}') {
            if !order.is_empty() {
                self.expect(b',', "`,`, `:` or `}`")?;
            }
            order.push(self.dim_number()?);
            self.cursor.skip_space();
        }
        if order.len() != rank {
            let message =
                format!("the layout orders {} dims, but the array has {rank}", order.len());
            let span = self.span_since(start);
            return self.fail(SyntaxError::new(span, message));
        }
        let mut layout = Layout::new(order);
        if self.accept(b':') {
            self.layout_parts(&mut layout)?;
        }
        self.expect(
            b'}',
            "`}`, or parts in the order T(..) L(..) #(..) *(..) E(..) S(..) SC(..) P(..) V(..) M(..)",
        )?;
        Ok(layout)
    }

    fn dim_number(&mut self) -> Parse<u32> {
        self.cursor.skip_space();
        let start = self.cursor.pos();
        let number = self.integer("a dim number")?;
        match u32::try_from(number) {
            Ok(number) => Ok(number),
            Err(_) => {
                let span = self.span_since(start);
                self.fail(SyntaxError::new(span, format!("there is no dim {number}")))
            }
        }
    }

    /// ```text
    /// parts := ["D" group] ["T" tile+] ["L" "(" integer ")"]
    ///          ["#" "(" type ")"] ["*" "(" type ")"]
    ///          ["E" "(" integer ")"] ["S" "(" integer ")"]
    ///          ["SC" ("(" integer ":" integers ")")+]
    ///          ["P" "(" (shape | integers) ")"] ["V" "(" word ")"]
    ///          ["M" "(" integer ")"] [our padding, if not above]
    /// ```
    fn layout_parts(&mut self, layout: &mut Layout) -> Parse<()> {
        let mut rare = RareLayout::default();
        if self.part("D") {
            // XLA reads the kinds of the dims and forgets them too.
            self.skip_group()?;
        }
        if self.part("T") {
            while self.tile_follows() {
                layout.tiles.push(self.tile()?);
            }
        }
        if self.part("L") {
            layout.tail_padding_alignment = self.in_parens()?;
        }
        if self.part("#") {
            rare.index_type = Some(self.type_in_parens()?);
        }
        if self.part("*") {
            rare.pointer_type = Some(self.type_in_parens()?);
        }
        if self.part("E") {
            layout.element_size_in_bits = self.in_parens()?;
        }
        if self.part("S") {
            layout.memory_space = self.in_parens()?;
        }
        if self.part("SC") {
            self.splits(&mut rare)?;
        }
        self.physical(layout, &mut rare)?;
        if self.part("M") {
            rare.dynamic_shape_metadata_prefix_bytes = self.in_parens()?;
        }
        if layout.padding.is_none() {
            self.physical(layout, &mut rare)?;
        }
        layout.rare = (rare != RareLayout::default()).then(|| Box::new(rare));
        Ok(())
    }

    /// Moves over the letters of a part if its `(` follows them.
    fn part(&mut self, letters: &str) -> bool {
        self.cursor.skip_space();
        let start = self.cursor.pos();
        let mut here = self.cursor.eat_text(letters);
        if here {
            self.cursor.skip_space();
            here = self.cursor.peek() == b'(';
        }
        if !here {
            self.cursor.set_pos(start);
        }
        here
    }

    fn in_parens(&mut self) -> Parse<i64> {
        self.expect(b'(', "`(`")?;
        let value = self.integer("an integer")?;
        self.expect(b')', "`)`")?;
        Ok(value)
    }

    fn type_in_parens(&mut self) -> Parse<ElementType> {
        self.expect(b'(', "`(`")?;
        self.cursor.skip_space();
        match self.cursor.peek_word().and_then(ElementType::from_name) {
            Some(element_type) => {
                self.cursor.word();
                self.expect(b')', "`)`")?;
                Ok(element_type)
            }
            None => self.unexpected("an integer type, as `u32`"),
        }
    }

    fn skip_group(&mut self) -> Parse<()> {
        self.expect(b'(', "`(`")?;
        loop {
            self.cursor.skip_space();
            match self.cursor.peek() {
                b'D' | b'C' | b'S' | b'H' | b'+' | b'~' | b',' => self.cursor.bump(),
                _ => return self.expect(b')', "`D`, `C`, `S`, `H`, `+`, `~`, `,` or `)`"),
            }
        }
    }

    fn tile_follows(&mut self) -> bool {
        self.cursor.skip_space();
        self.cursor.peek() == b'('
    }

    /// `tile := "(" ("*" | integer) ("," ("*" | integer))* ")"`
    fn tile(&mut self) -> Parse<Tile> {
        self.expect(b'(', "`(`")?;
        let mut dims = SmallVec::new();
        loop {
            let size =
                if self.accept(b'*') { Tile::COMBINE } else { self.integer("a size or `*`")? };
            dims.push(size);
            if self.accept(b',') {
                continue;
            }
            self.expect(b')', "`,` or `)`")?;
            return Ok(Tile { dims });
        }
    }

    fn splits(&mut self, rare: &mut RareLayout) -> Parse<()> {
        while self.tile_follows() {
            self.expect(b'(', "`(`")?;
            let dim = self.integer("a dim number")?;
            self.expect(b':', "`:`")?;
            let indices = self.integers_to_paren()?;
            rare.splits.push((dim, indices.to_vec()));
        }
        Ok(())
    }

    fn integers_to_paren(&mut self) -> Parse<Dims> {
        let mut integers = Dims::new();
        if self.accept(b')') {
            return Ok(integers);
        }
        loop {
            integers.push(self.integer("an integer")?);
            if self.accept(b',') {
                continue;
            }
            self.expect(b')', "`,` or `)`")?;
            return Ok(integers);
        }
    }

    /// `P(3,5)` is our padding; `P(f32[3])` the shape of a sparse array.
    fn physical(&mut self, layout: &mut Layout, rare: &mut RareLayout) -> Parse<()> {
        if !self.part("P") {
            return Ok(());
        }
        self.expect(b'(', "`(`")?;
        self.cursor.skip_space();
        if !matches!(self.cursor.peek(), b'0'..=b'9' | b'-' | b')') {
            rare.physical_shape = Some(self.nested(Self::shape)?);
            return self.expect(b')', "`)`");
        }
        let dims = self.integers_to_paren()?;
        let value = if self.part("V") { self.padding_value()? } else { PaddingValue::Zero };
        layout.padding = Some(Box::new(Padding { dims, value }));
        Ok(())
    }

    fn padding_value(&mut self) -> Parse<PaddingValue> {
        self.expect(b'(', "`(`")?;
        self.cursor.skip_space();
        let start = self.cursor.pos();
        let text = self.cursor.number();
        let Some(value) = PaddingValue::from_name(text) else {
            self.cursor.set_pos(start);
            let names: Vec<_> = PaddingValue::NAMES.iter().map(|(_, n)| format!("`{n}`")).collect();
            return self.unexpected(&format!("one of {}", names.join(", ")));
        };
        self.expect(b')', "`)`")?;
        Ok(value)
    }
}
