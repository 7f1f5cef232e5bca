//! The text of shapes. A module has few distinct shapes, so each is written
//! once and copied from then on.

use std::fmt::Write as _;
use std::ops::Range;

use tilewright_ir::{Entity as _, Module, Shape, ShapeId};

use super::LayoutPadding;

/// The texts of the shapes of one module, made on demand.
pub(super) struct ShapeTexts {
    padding: LayoutPadding,
    text: String,
    with_layout: Vec<Option<Written>>,
    without_layout: Vec<Option<Written>>,
}

/// The position of a shape in the text.
#[derive(Clone)]
struct Written {
    at: Range<usize>,
    /// Whether it has padding, which was not asked for.
    refused: bool,
}

/// A shape has padding that may not be written.
pub(super) struct Refused;

impl ShapeTexts {
    pub(super) fn new(padding: LayoutPadding) -> Self {
        Self { padding, text: String::new(), with_layout: Vec::new(), without_layout: Vec::new() }
    }

    /// Returns the text of an interned shape.
    pub(super) fn get(&mut self, module: &Module, id: ShapeId) -> Result<&str, Refused> {
        let written = match self.with_layout.get(id.index()) {
            Some(Some(written)) => written.clone(),
            Some(None) | None => {
                let shape = module.shape_of(id);
                let start = self.text.len();
                let refused = push(&mut self.text, shape, self.padding).is_err();
                store(&mut self.with_layout, id, Written { at: start..self.text.len(), refused })
            }
        };
        if written.refused { Err(Refused) } else { Ok(&self.text[written.at]) }
    }

    /// Returns the text of an interned shape with all layouts left out.
    pub(super) fn bare(&mut self, module: &Module, id: ShapeId) -> &str {
        let written = match self.without_layout.get(id.index()) {
            Some(Some(written)) => written.clone(),
            Some(None) | None => {
                let start = self.text.len();
                push_display(&mut self.text, &module.shape_of(id).without_layout());
                let written = Written { at: start..self.text.len(), refused: false };
                store(&mut self.without_layout, id, written)
            }
        };
        &self.text[written.at]
    }
}

fn store(into: &mut Vec<Option<Written>>, id: ShapeId, written: Written) -> Written {
    if into.len() <= id.index() {
        into.resize(id.index() + 1, None);
    }
    into[id.index()] = Some(written.clone());
    written
}

/// Appends a shape, its padding treated as asked.
pub(super) fn push(out: &mut String, shape: &Shape, padding: LayoutPadding) -> Result<(), Refused> {
    match padding {
        LayoutPadding::Refuse if has_padding(shape) => return Err(Refused),
        LayoutPadding::Strip if has_padding(shape) => push_display(out, &without_padding(shape)),
        LayoutPadding::Refuse | LayoutPadding::Strip | LayoutPadding::Keep => {
            push_display(out, shape);
        }
    }
    Ok(())
}

/// Appends a shape unchanged.
pub(super) fn push_display(out: &mut String, shape: &Shape) {
    // Writing to a string cannot fail.
    let _ = write!(out, "{shape:#}");
}

fn has_padding(shape: &Shape) -> bool {
    match shape {
        Shape::Array(array) => array.layout.as_ref().is_some_and(|l| l.padding.is_some()),
        Shape::Tuple(elements) => elements.iter().any(has_padding),
        Shape::Buffer(inner) => has_padding(inner),
        Shape::Token | Shape::Opaque => false,
    }
}

fn without_padding(shape: &Shape) -> Shape {
    match shape {
        Shape::Array(array) => {
            let mut array = array.clone();
            if let Some(layout) = &mut array.layout {
                layout.padding = None;
            }
            Shape::Array(array)
        }
        Shape::Tuple(elements) => Shape::Tuple(elements.iter().map(without_padding).collect()),
        Shape::Buffer(inner) => Shape::Buffer(Box::new(without_padding(inner))),
        Shape::Token => Shape::Token,
        Shape::Opaque => Shape::Opaque,
    }
}
