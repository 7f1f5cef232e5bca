//! The places of the parts of an instruction in its text.

use crate::span::Span;

/// A part of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'n> {
    /// The shape of its result.
    Shape,
    /// The opcode.
    Opcode,
    /// The text between the parentheses, such as the value of a constant.
    Arguments,
    /// An operand, by its number from 0.
    Operand(usize),
    /// An attribute with its value, by name.
    Attribute(&'n str),
}

/// Returns the place of a part in the text of an instruction, which begins with its name; `None`
/// if it is not there. `span` is the place of the instruction.
pub fn part(source: &str, span: Span, part: Part<'_>) -> Option<Span> {
    let text = source.get(span.range())?;
    let range = find(text, part)?;
    let start = span.range().start;
    let trimmed = text.get(range.clone())?;
    let from = range.start + (trimmed.len() - trimmed.trim_start().len());
    let to = from + trimmed.trim().len();
    (from < to).then(|| Span::new(start + from, start + to))
}

fn find(text: &str, part: Part<'_>) -> Option<std::ops::Range<usize>> {
    let shape = after_space(text, text.find('=')? + 1);
    let shape_end = end_of(text, shape, |byte| byte.is_ascii_whitespace());
    let opcode = after_space(text, shape_end);
    let open = opcode + text.get(opcode..)?.find('(')?;
    let close = end_of(text, open + 1, |byte| byte == b')');
    match part {
        Part::Shape => Some(shape..shape_end),
        Part::Opcode => Some(opcode..open),
        Part::Arguments => Some(open + 1..close),
        Part::Operand(number) => {
            let (start, end) = items(text, open + 1, close).nth(number)?;
            // A comment may number the operand.
            let comment = text.get(start..end)?.rfind("*/").map_or(0, |at| at + 2);
            Some(start + comment..end)
        }
        Part::Attribute(name) => {
            let mut all = items(text, close + 1, text.len());
            let (start, end) = all.find(|&(start, end)| {
                let item = text.get(start..end).unwrap_or_default().trim_start();
                item.strip_prefix(name).is_some_and(|rest| rest.starts_with('='))
            })?;
            Some(start..end)
        }
    }
}

fn after_space(text: &str, from: usize) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    from + (rest.len() - rest.trim_start().len())
}

/// The texts between commas, as ranges.
fn items(text: &str, from: usize, to: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
    let mut next = Some(from);
    std::iter::from_fn(move || {
        let start = next?;
        if start >= to {
            return None;
        }
        let end = end_of(text, start, |byte| byte == b',').min(to);
        next = Some(end + 1);
        Some((start, end))
    })
}

/// Returns the place of the first byte that is meant, outside of brackets and strings, or the end
/// of the text.
fn end_of(text: &str, from: usize, is_meant: impl Fn(u8) -> bool) -> usize {
    let mut depth = 0usize;
    let mut in_string = false;
    let mut escaped = false;
    for (at, &byte) in text.as_bytes().iter().enumerate().skip(from) {
        if in_string {
            in_string = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
            continue;
        }
        if depth == 0 && is_meant(byte) {
            return at;
        }
        match byte {
            b'"' => in_string = true,
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, wanted: Part<'_>) -> Option<String> {
        let source = format!("é\n  {text}\n");
        let start = source.find(text)?;
        let place = part(&source, Span::new(start, start + text.len()), wanted)?;
        source.get(place.range()).map(str::to_owned)
    }

    #[test]
    fn parts_of_an_instruction() {
        let text = "%r = (f32[2,3]{1,0}, /*index=1*/ s32[]) fusion(f32[2] %x, (f32[], f32[]) %t, \
                    /*index=2*/%z), kind=kLoop, calls=%c, k={a=\"x, ),kind=1\"}, b={1,2}";
        let get = |wanted| shown(text, wanted).unwrap_or_default();
        assert_eq!(get(Part::Shape), "(f32[2,3]{1,0}, /*index=1*/ s32[])");
        assert_eq!(get(Part::Opcode), "fusion");
        assert_eq!(get(Part::Operand(0)), "f32[2] %x");
        assert_eq!(get(Part::Operand(1)), "(f32[], f32[]) %t");
        assert_eq!(get(Part::Operand(2)), "%z");
        assert_eq!(get(Part::Attribute("kind")), "kind=kLoop");
        assert_eq!(get(Part::Attribute("calls")), "calls=%c");
        assert_eq!(get(Part::Attribute("b")), "b={1,2}");
        assert_eq!(shown(text, Part::Operand(3)), None);
        assert_eq!(shown(text, Part::Attribute("a")), None);
        assert_eq!(shown("c = f32[] constant(1)", Part::Arguments).as_deref(), Some("1"));
    }

    #[test]
    fn every_text_is_taken() {
        let whole = "c = f32[2] add(x, y), a={\"b\\\"\"}";
        for end in 0..=whole.len() {
            for wanted in [Part::Shape, Part::Opcode, Part::Operand(1), Part::Attribute("a")] {
                let place = part(whole, Span::new(0, end), wanted);
                assert!(place.is_none_or(|place| place.range().end <= end));
            }
        }
    }
}
