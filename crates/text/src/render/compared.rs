//! Draws two instructions that differ, one below the other.

use annotate_snippets::{Group, Level};

use super::{Excerpt, Renderer};
use crate::span::{LineColumn, Span};

/// An instruction to be shown, with the part that is underlined.
#[derive(Clone, Debug)]
pub enum Shown<'s> {
    /// In the text that it was read from.
    Place {
        /// The name of the file.
        name: &'s str,
        /// The whole text.
        source: &'s str,
        /// The part that is underlined.
        span: Span,
        /// Where that begins.
        at: LineColumn,
    },
    /// As it is printed, because there is no text.
    Printed {
        /// The name of the file.
        name: &'s str,
        /// The instruction.
        text: &'s str,
        /// The part that is underlined.
        span: Span,
    },
}

impl Renderer {
    /// Draws two instructions below a title, and notes below them.
    ///
    /// ```text
    /// changed: %y
    ///  --> a.hlo:4:24
    ///   |
    /// 4 |   ROOT y = f32[2] subtract(p, q)
    ///   |                            ^
    ///  --> b.hlo:4:24
    ///   |
    /// 4 |   ROOT y = f32[2] subtract(q, p)
    ///   |                            ^
    ///   |
    ///   = operand 0: %p -> %q
    /// ```
    pub fn compared(
        &self,
        kind: &str,
        title: &str,
        sides: [&Shown<'_>; 2],
        notes: &[String],
    ) -> String {
        let level = Level::NOTE.with_name(kind.to_owned());
        let first = self.side(Group::with_title(level.primary_title(title)), sides[0], &[]);
        let second = self.side(Group::with_level(Level::NOTE), sides[1], notes);
        format!("{first}\n{}", second.trim_start_matches('\n'))
    }

    fn side(&self, group: Group<'_>, shown: &Shown<'_>, notes: &[String]) -> String {
        let (source, span, name) = match *shown {
            Shown::Place { name, source, span, .. } => (source, span, name),
            Shown::Printed { name, text, span } => (text, span, name),
        };
        let excerpt = Excerpt::of(source, span);
        let snippet = match *shown {
            Shown::Place { at, .. } => excerpt.snippet(at.line, None),
            Shown::Printed { .. } => excerpt.snippet(1, None).line_numbering(false),
        };
        let mut group = group.element(snippet.path(name));
        for note in notes {
            group = group.element(Level::NOTE.no_name().message(note.as_str()));
        }
        match *shown {
            Shown::Place { at, .. } => excerpt.with_true_column(self.draw(&[group]), at),
            Shown::Printed { .. } => self.draw(&[group]),
        }
    }
}
