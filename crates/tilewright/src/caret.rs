//! Draws an error in a text that is not HLO, as errors in HLO are drawn.

use std::ops::Range;

use tilewright_text::span::line_column;

/// The number of bytes of a line that are shown before an error, and after its beginning.
const BEFORE: usize = 60;
const AFTER: usize = 80;

/// An error with its place.
pub(crate) struct Caret<'a> {
    pub(crate) name: &'a str,
    pub(crate) text: &'a str,
    pub(crate) span: Range<usize>,
    pub(crate) message: &'a str,
    pub(crate) help: &'a str,
}

impl Caret<'_> {
    /// Returns the error with its line and a caret below it.
    pub(crate) fn draw(&self) -> String {
        let Self { name, text, span, message, help } = self;
        let start = floor(text, span.start);
        let before = text.get(floor(text, start.saturating_sub(BEFORE))..start);
        let before = before.and_then(|text| text.rsplit('\n').next()).unwrap_or_default();
        let after = text.get(start..floor(text, start.saturating_add(AFTER)));
        let after = after.and_then(|text| text.lines().next()).unwrap_or_default();
        let wrong = text.get(start..floor(text, span.end)).unwrap_or_default();
        let width = wrong.chars().count().min(after.chars().count()).max(1);
        let at = line_column(text, start);
        let line = at.line.to_string();
        let gap = " ".repeat(line.len());
        // Tabs are as wide in both lines.
        let indent: String = before.chars().map(|c| if c == '\t' { c } else { ' ' }).collect();
        let carets = "^".repeat(width);
        format!(
            "error: {message}\n{gap}--> {name}:{at}\n{gap} |\n{line} | {before}{after}\n\
             {gap} | {indent}{carets}\n{gap} |\n{gap} = help: {help}\n"
        )
    }
}

/// Returns the last boundary between characters up to an offset.
fn floor(text: &str, offset: usize) -> usize {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset = offset.saturating_sub(1);
    }
    offset
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(text: &str, span: Range<usize>) -> String {
        Caret { name: "m.txt", text, span, message: "wrong", help: "right it" }.draw()
    }

    #[test]
    fn the_caret_stands_below_the_error() {
        let expected = "error: wrong\n --> m.txt:2:5\n  |\n2 | \té: x\n  | \t   ^\n  |\n  \
                        = help: right it\n";
        assert_eq!(drawn("a\n\té: x\nb", 7..8), expected);
    }

    #[test]
    fn every_place_can_be_drawn() {
        let text = "é\n\u{1F600}x\n";
        for start in 0..text.len() + 3 {
            for end in start..text.len() + 3 {
                assert!(drawn(text, start..end).contains('^'), "{start}..{end}");
            }
        }
        let long = "x".repeat(1 << 20);
        assert!(drawn(&long, 1 << 19..1 << 20).len() < 400);
    }
}
