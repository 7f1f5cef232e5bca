//! Prints shapes and layouts as in HLO text.

use std::fmt::{self, Display, Formatter};

use super::layout::{Layout, Padding, PaddingValue, RareLayout, Tile};
use super::shape::{ArrayShape, Shape, UNBOUNDED};

/// The maximum number of bytes of a shape in a message.
const BRIEF: usize = 1000;

/// `{shape}` is for messages and truncates a long shape. `{shape:#}` prints the whole shape so
/// that it can be parsed.
impl Display for Shape {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if f.alternate() {
            return write_shape(f, self);
        }
        let mut brief = Brief { out: f, left: BRIEF };
        let result = write_shape(&mut brief, self);
        if brief.left > 0 {
            return result;
        }
        match self {
            Self::Tuple(elements) => write!(f, "... {} elements)", elements.len()),
            Self::Array(_) | Self::Buffer(_) | Self::Token | Self::Opaque => f.write_str("..."),
        }
    }
}

/// Like [`Shape`]: truncated if it is long, except with `{array:#}`.
impl Display for ArrayShape {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if f.alternate() {
            return write_array(f, self);
        }
        let mut brief = Brief { out: f, left: BRIEF };
        let result = write_array(&mut brief, self);
        if brief.left > 0 { result } else { f.write_str("...") }
    }
}

impl Display for Layout {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_layout(f, self)
    }
}

/// Forwards a number of bytes and then stops the writer with an error, so that a long text costs
/// no more than a short one.
struct Brief<'a, 'f> {
    out: &'a mut Formatter<'f>,
    left: usize,
}

impl fmt::Write for Brief<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.left = self.left.saturating_sub(text.len());
        if self.left == 0 { Err(fmt::Error) } else { self.out.write_str(text) }
    }
}

fn write_shape(out: &mut impl fmt::Write, shape: &Shape) -> fmt::Result {
    match shape {
        Shape::Array(array) => write_array(out, array),
        Shape::Tuple(elements) => {
            out.write_char('(')?;
            for (i, element) in elements.iter().enumerate() {
                if i > 0 {
                    out.write_str(", ")?;
                    // XLA prints the same comment, so that long tuples are readable.
                    if i % 5 == 0 {
                        write!(out, "/*index={i}*/")?;
                    }
                }
                write_shape(out, element)?;
            }
            out.write_char(')')
        }
        Shape::Buffer(inner) => {
            out.write_str("b(")?;
            write_shape(out, inner)?;
            out.write_char(')')
        }
        Shape::Token => out.write_str("token[]"),
        Shape::Opaque => out.write_str("opaque[]"),
    }
}

fn write_array(out: &mut impl fmt::Write, array: &ArrayShape) -> fmt::Result {
    out.write_str(array.element_type.name())?;
    out.write_char('[')?;
    for (i, &size) in array.dims().iter().enumerate() {
        if i > 0 {
            out.write_char(',')?;
        }
        if size == UNBOUNDED {
            out.write_char('?')?;
        } else if array.dim_is_dynamic(i) {
            write!(out, "<={size}")?;
        } else {
            write!(out, "{size}")?;
        }
    }
    out.write_char(']')?;
    match &array.layout {
        // XLA prints no layout for a scalar unless the layout has extra parts.
        Some(layout) if array.rank() > 0 || !layout.is_default() => write_layout(out, layout),
        Some(_) | None => Ok(()),
    }
}

/// Writes every part that differs from the default, invalid parts included, so that any parsed
/// layout can be written and parsed again.
fn write_layout(out: &mut impl fmt::Write, layout: &Layout) -> fmt::Result {
    out.write_char('{')?;
    list(out, &layout.minor_to_major)?;
    let mut colon = Colon(false);
    if !layout.tiles.is_empty() {
        colon.once(out)?;
        out.write_char('T')?;
        layout.tiles.iter().try_for_each(|tile| write_tile(out, tile))?;
    }
    if layout.tail_padding_alignment != 1 {
        colon.once(out)?;
        write!(out, "L({})", layout.tail_padding_alignment)?;
    }
    if let Some(rare) = &layout.rare {
        if let Some(index) = rare.index_type {
            colon.once(out)?;
            write!(out, "#({index})")?;
        }
        if let Some(pointer) = rare.pointer_type {
            colon.once(out)?;
            write!(out, "*({pointer})")?;
        }
    }
    if layout.element_size_in_bits != 0 {
        colon.once(out)?;
        write!(out, "E({})", layout.element_size_in_bits)?;
    }
    if layout.memory_space != 0 {
        colon.once(out)?;
        write!(out, "S({})", layout.memory_space)?;
    }
    if let Some(rare) = &layout.rare {
        write_rare(out, rare, &mut colon)?;
    }
    if let Some(padding) = &layout.padding {
        colon.once(out)?;
        write_padding(out, padding)?;
    }
    out.write_char('}')
}

fn write_rare(out: &mut impl fmt::Write, rare: &RareLayout, colon: &mut Colon) -> fmt::Result {
    if !rare.splits.is_empty() {
        colon.once(out)?;
        out.write_str("SC")?;
        for (dim, indices) in &rare.splits {
            write!(out, "({dim}:")?;
            list(out, indices)?;
            out.write_char(')')?;
        }
    }
    if let Some(physical) = &rare.physical_shape {
        colon.once(out)?;
        out.write_str("P(")?;
        write_shape(out, physical)?;
        out.write_char(')')?;
    }
    if rare.dynamic_shape_metadata_prefix_bytes != 0 {
        colon.once(out)?;
        write!(out, "M({})", rare.dynamic_shape_metadata_prefix_bytes)?;
    }
    Ok(())
}

fn write_tile(out: &mut impl fmt::Write, tile: &Tile) -> fmt::Result {
    out.write_char('(')?;
    for (i, &size) in tile.dims.iter().enumerate() {
        if i > 0 {
            out.write_char(',')?;
        }
        if size == Tile::COMBINE {
            out.write_char('*')?;
        } else {
            write!(out, "{size}")?;
        }
    }
    out.write_char(')')
}

fn write_padding(out: &mut impl fmt::Write, padding: &Padding) -> fmt::Result {
    out.write_str("P(")?;
    list(out, &padding.dims)?;
    out.write_char(')')?;
    if padding.value != PaddingValue::Zero {
        write!(out, "V({})", padding.value.name())?;
    }
    Ok(())
}

impl Display for Tile {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_tile(f, self)
    }
}

impl Display for Padding {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_padding(f, self)
    }
}

impl PaddingValue {
    /// Every value with its name in text.
    pub const NAMES: [(Self, &'static str); 7] = [
        (Self::Unknown, "unknown"),
        (Self::Zero, "0"),
        (Self::One, "1"),
        (Self::Lowest, "lowest"),
        (Self::Highest, "highest"),
        (Self::MinusInfinity, "-inf"),
        (Self::Infinity, "inf"),
    ];

    /// Returns the name in text, as in `V(-inf)`.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(value, _)| *value == self).map_or("0", |(_, name)| name)
    }

    /// The value with this name in text.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(_, n)| *n == name).map(|(value, _)| *value)
    }
}

/// The `:` between the dims of a layout and the first thing that follows.
struct Colon(bool);

impl Colon {
    fn once(&mut self, out: &mut impl fmt::Write) -> fmt::Result {
        if std::mem::replace(&mut self.0, true) { Ok(()) } else { out.write_char(':') }
    }
}

fn list<T: Display>(out: &mut impl fmt::Write, items: &[T]) -> fmt::Result {
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            out.write_char(',')?;
        }
        write!(out, "{item}")?;
    }
    Ok(())
}
