//! Draws errors, with a caret below them.
//!
//! ```text
//! error: unknown opcode `ad`
//!  --> model.hlo:4:12
//!   |
//! 4 |   ROOT r = f32[2] ad(x, y)
//!   |                   ^^
//!   |
//!   = help: did you mean `add`?
//! ```
//!
//! The drawing depends only on its input. Long lines are cut around the caret, so that a
//! megabyte on one line is drawn as quickly as a short one.

mod compared;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Snippet};
use tilewright_ir::verify::Rejected;
use tilewright_ir::{Diagnostic, DiagnosticPlace, Module};

use crate::parse::{Invalid, MAX_ERRORS, SyntaxError, SyntaxErrors};
use crate::print::print_instruction;
use crate::span::{LineColumn, LineIndex, SourceMap, Span};

pub use compared::Shown;

/// The number of bytes of a line that are shown before and after the caret.
const BEFORE: usize = 60;
const AFTER: usize = 60;
/// The most bytes that are underlined.
const UNDERLINED: usize = 80;
/// This is wide enough that only this module cuts lines.
const WIDTH: usize = 400;

/// Draws errors as text for people.
#[derive(Clone, Copy, Debug, Default)]
pub struct Renderer {
    colour: bool,
}

/// Syntax errors, drawn without colour.
pub fn render(source_name: &str, source: &str, errors: &SyntaxErrors) -> String {
    Renderer::new().syntax_errors(source_name, source, errors)
}

impl Renderer {
    /// A renderer without colour.
    pub const fn new() -> Self {
        Self { colour: false }
    }

    /// The same renderer with colour for terminals, or without.
    #[must_use]
    pub const fn with_colour(mut self, colour: bool) -> Self {
        self.colour = colour;
        self
    }

    /// Returns all that is wrong with a text that gave no verified module.
    pub fn invalid(&self, source_name: &str, source: &str, invalid: &Invalid) -> String {
        match invalid {
            Invalid::Syntax(errors) => self.syntax_errors(source_name, source, errors),
            Invalid::Rejected { rejected, spans } => {
                self.rejected(source_name, Some((source, spans)), rejected)
            }
        }
    }

    /// Syntax errors, one drawing below the other.
    pub fn syntax_errors(&self, source_name: &str, source: &str, errors: &SyntaxErrors) -> String {
        let mut drawings: Vec<String> = errors
            .errors()
            .iter()
            .map(|error| self.syntax_error(source_name, source, error))
            .collect();
        if errors.gave_up() {
            let note = format!("only the first {MAX_ERRORS} errors are shown");
            drawings.push(self.note(&note));
        }
        join(drawings)
    }

    fn syntax_error(&self, source_name: &str, source: &str, error: &SyntaxError) -> String {
        let title = Level::ERROR.primary_title(error.message.as_str());
        let label = error.expected.as_ref().map(|expected| format!("expected {expected}"));
        let excerpt = Excerpt::of(source, error.span);
        let snippet = excerpt.snippet(error.at.line, label).path(source_name);
        let mut group = Group::with_title(title).element(snippet);
        if let Some(help) = &error.help {
            group = group.element(Level::HELP.message(help.as_str()));
        }
        excerpt.with_true_column(self.draw(&[group]), error.at)
    }

    /// Draws the verifier's errors in the source text of the module. A place without text is
    /// drawn as it would be printed.
    pub fn diagnostics(
        &self,
        source_name: &str,
        source: Option<(&str, &SourceMap)>,
        module: &Module,
        diagnostics: &[Diagnostic],
    ) -> String {
        join(self.drawings(source_name, source, module, diagnostics))
    }

    /// Like [`Self::diagnostics`], with the number of further errors.
    pub fn rejected(
        &self,
        source_name: &str,
        source: Option<(&str, &SourceMap)>,
        rejected: &Rejected,
    ) -> String {
        let Rejected { module, diagnostics, .. } = rejected;
        let mut drawings = self.drawings(source_name, source, module, diagnostics);
        drawings.extend(rejected.note().map(|note| self.note(&note)));
        join(drawings)
    }

    fn drawings(
        &self,
        source_name: &str,
        source: Option<(&str, &SourceMap)>,
        module: &Module,
        diagnostics: &[Diagnostic],
    ) -> Vec<String> {
        let places = source.map(|(source, spans)| {
            let lines = LineIndex::new(source);
            Places { source, spans, lines }
        });
        let draw = |diagnostic| self.diagnostic(source_name, places.as_ref(), module, diagnostic);
        diagnostics.iter().map(draw).collect()
    }

    fn note(&self, note: &str) -> String {
        self.draw(&[Group::with_title(Level::NOTE.primary_title(note))])
    }

    fn diagnostic(
        &self,
        source_name: &str,
        places: Option<&Places<'_>>,
        module: &Module,
        diagnostic: &Diagnostic,
    ) -> String {
        let title =
            Level::ERROR.primary_title(diagnostic.message.as_str()).id(diagnostic.code.to_string());
        let group = Group::with_title(title);
        if let Some((source, span, at)) = places.and_then(|p| p.find(diagnostic.place)) {
            let excerpt = Excerpt::of(source, span);
            let snippet = excerpt.snippet(at.line, None).path(source_name);
            return excerpt.with_true_column(self.draw(&[group.element(snippet)]), at);
        }
        let printed = match diagnostic.place {
            DiagnosticPlace::Instruction(id) => print_instruction(module, id),
            DiagnosticPlace::Computation(id) => {
                format!("computation {}", module.computation(id).name())
            }
            DiagnosticPlace::Module => format!("HloModule {}", module.name),
        };
        let excerpt = Excerpt::of(&printed, Span::new(0, printed.len()));
        self.draw(&[group.element(excerpt.snippet(1, None).line_numbering(false))])
    }

    fn draw(&self, groups: &[Group<'_>]) -> String {
        use annotate_snippets::Renderer as Drawer;
        let drawer = if self.colour { Drawer::styled() } else { Drawer::plain() };
        drawer.term_width(WIDTH).decor_style(DecorStyle::Ascii).render(groups)
    }
}

/// One drawing below the other, with a line between them.
fn join(drawings: Vec<String>) -> String {
    let mut text = drawings.join("\n\n");
    text.push('\n');
    text
}

/// The source with an index of its positions.
struct Places<'a> {
    source: &'a str,
    spans: &'a SourceMap,
    lines: LineIndex<'a>,
}

impl<'a> Places<'a> {
    fn find(&self, place: DiagnosticPlace) -> Option<(&'a str, Span, LineColumn)> {
        let span = self.spans.place(place)?;
        Some((self.source, span, self.lines.at(span.start as usize)))
    }
}

/// The part of a line that is shown, and the part of that which is underlined.
struct Excerpt {
    text: String,
    underlined: std::ops::Range<usize>,
}

impl Excerpt {
    fn of(source: &str, span: Span) -> Self {
        let start = floor(source, (span.start as usize).min(source.len()));
        // Only the shown part is visited: lines can be very long.
        let earliest = floor(source, start.saturating_sub(BEFORE));
        let before = source.get(earliest..start).unwrap_or("");
        let from = before.rfind('\n').map_or(earliest, |at| earliest + at + 1);
        let cut_before = from > 0 && source.as_bytes().get(from - 1) != Some(&b'\n');
        let latest = floor(source, source.len().min(start + UNDERLINED + AFTER));
        let shown = source.get(start..latest).unwrap_or("");
        let line_end = start + shown.find('\n').unwrap_or(shown.len());
        let end = floor(source, (span.end as usize).min(line_end).min(start + UNDERLINED));
        let end = end.max(start);
        let to = floor(source, line_end.min(end + AFTER)).max(end);
        let cut_after = to < source.len() && source.as_bytes().get(to) != Some(&b'\n');
        let part = |a: usize, b: usize| source.get(a..b).unwrap_or("");
        let mut text = String::from(if cut_before { "..." } else { "" });
        text.push_str(part(from, start));
        let underlined_start = text.len();
        text.push_str(part(start, end));
        let underlined_end = text.len();
        text.push_str(part(end, to).trim_end());
        text.push_str(if cut_after { "..." } else { "" });
        // At the end of the text only the end can be underlined.
        if underlined_start == underlined_end && underlined_end == text.len() {
            text.push(' ');
        }
        // A character that is not ASCII has more bytes than the invalid one.
        let first = text.get(underlined_start..).and_then(|rest| rest.chars().next());
        let least = underlined_start + first.map_or(1, char::len_utf8);
        let underlined = underlined_start..underlined_end.max(least);
        Self { text, underlined }
    }

    fn snippet(&self, line: usize, label: Option<String>) -> Snippet<'_, Annotation<'_>> {
        let mut annotation = AnnotationKind::Primary.span(self.underlined.clone());
        if let Some(label) = label {
            annotation = annotation.label(label);
        }
        Snippet::source(self.text.as_str()).line_start(line).annotation(annotation)
    }

    /// Replaces the column of the excerpt in a drawing by the column of the whole line.
    fn with_true_column(&self, drawing: String, at: LineColumn) -> String {
        let before = self.text.get(..self.underlined.start).unwrap_or("");
        let shown = LineColumn { line: at.line, column: before.chars().count() + 1 };
        let Some((title, rest)) = drawing.split_once("--> ") else { return drawing };
        if shown == at {
            return drawing;
        }
        let rest = rest.replacen(&format!(":{shown}"), &format!(":{at}"), 1);
        format!("{title}--> {rest}")
    }
}

/// Returns the last character boundary up to an offset.
fn floor(source: &str, mut offset: usize) -> usize {
    while !source.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}
