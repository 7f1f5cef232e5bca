//! Shapes and layouts as HLO text writes them.

use std::fmt::{self, Display, Formatter, Write as _};

use super::layout::{Layout, Padding, PaddingValue, Tile};
use super::shape::{ArrayShape, Shape, UNBOUNDED};

impl Display for Shape {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Array(array) => array.fmt(f),
            Self::Tuple(elements) => {
                f.write_char('(')?;
                for (i, element) in elements.iter().enumerate() {
                    if i > 0 {
                        f.write_str(", ")?;
                        // As XLA does, so that long tuples can be read.
                        if i % 5 == 0 {
                            write!(f, "/*index={i}*/")?;
                        }
                    }
                    element.fmt(f)?;
                }
                f.write_char(')')
            }
            Self::Buffer(inner) => write!(f, "b({inner})"),
            Self::Token => f.write_str("token[]"),
            Self::Opaque => f.write_str("opaque[]"),
        }
    }
}

impl Display for ArrayShape {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.element_type.name())?;
        f.write_char('[')?;
        for (i, &size) in self.dims().iter().enumerate() {
            if i > 0 {
                f.write_char(',')?;
            }
            if size == UNBOUNDED {
                f.write_char('?')?;
            } else if self.dim_is_dynamic(i) {
                write!(f, "<={size}")?;
            } else {
                size.fmt(f)?;
            }
        }
        f.write_char(']')?;
        match &self.layout {
            // XLA writes no layout for a scalar unless it says something.
            Some(layout) if self.rank() > 0 || !layout.is_default() => layout.fmt(f),
            Some(_) | None => Ok(()),
        }
    }
}

impl Display for Layout {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_char('{')?;
        list(f, &self.minor_to_major)?;
        let mut colon = Colon(false);
        if !self.tiles.is_empty() {
            colon.once(f)?;
            f.write_char('T')?;
            self.tiles.iter().try_for_each(|tile| tile.fmt(f))?;
        }
        if self.tail_padding_alignment > 1 {
            colon.once(f)?;
            write!(f, "L({})", self.tail_padding_alignment)?;
        }
        if let Some(rare) = &self.rare {
            if let Some(index) = rare.index_type {
                colon.once(f)?;
                write!(f, "#({index})")?;
            }
            if let Some(pointer) = rare.pointer_type {
                colon.once(f)?;
                write!(f, "*({pointer})")?;
            }
        }
        if self.element_size_in_bits != 0 {
            colon.once(f)?;
            write!(f, "E({})", self.element_size_in_bits)?;
        }
        if self.memory_space != 0 {
            colon.once(f)?;
            write!(f, "S({})", self.memory_space)?;
        }
        if let Some(rare) = &self.rare {
            if !rare.splits.is_empty() {
                colon.once(f)?;
                f.write_str("SC")?;
                for (dim, indices) in &rare.splits {
                    write!(f, "({dim}:")?;
                    list(f, indices)?;
                    f.write_char(')')?;
                }
            }
            if let Some(physical) = &rare.physical_shape {
                colon.once(f)?;
                write!(f, "P({physical})")?;
            }
            if rare.dynamic_shape_metadata_prefix_bytes > 0 {
                colon.once(f)?;
                write!(f, "M({})", rare.dynamic_shape_metadata_prefix_bytes)?;
            }
        }
        if let Some(padding) = &self.padding {
            colon.once(f)?;
            padding.fmt(f)?;
        }
        f.write_char('}')
    }
}

impl Display for Tile {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_char('(')?;
        for (i, &size) in self.dims.iter().enumerate() {
            if i > 0 {
                f.write_char(',')?;
            }
            if size == Self::COMBINE {
                f.write_char('*')?;
            } else {
                size.fmt(f)?;
            }
        }
        f.write_char(')')
    }
}

impl Display for Padding {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("P(")?;
        list(f, &self.dims)?;
        f.write_char(')')?;
        if self.value != PaddingValue::Zero {
            write!(f, "V({})", self.value.name())?;
        }
        Ok(())
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

    /// The name in text, as in `V(-inf)`.
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
    fn once(&mut self, f: &mut Formatter<'_>) -> fmt::Result {
        if std::mem::replace(&mut self.0, true) { Ok(()) } else { f.write_char(':') }
    }
}

fn list<T: Display>(f: &mut Formatter<'_>, items: &[T]) -> fmt::Result {
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            f.write_char(',')?;
        }
        item.fmt(f)?;
    }
    Ok(())
}
