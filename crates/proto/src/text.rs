//! Reads the text format of protobuf, in which XLA writes modules and snapshots, too.
//!
//! A text names fields and values of enumerations that the ir has no place for. Its schema,
//! `proto/text.proto`, therefore has all of XLA's messages; the bytes that a text stands for are
//! decoded like any others.

use std::ops::Range;
use std::sync::OnceLock;

use miette::Diagnostic as _;
use prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor};

/// Why a text is no message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}; {help}")]
pub struct TextProtoError {
    /// The bytes of the text that are wrong.
    pub span: Range<usize>,
    /// The error.
    pub message: String,
    /// Advice on how to correct it.
    pub help: &'static str,
}

/// The cause of most errors.
const DAMAGED: &str = "the file is damaged, or of an XLA with other fields than jaxlib 0.12 has";

/// The most messages within each other. Decoding has the same limit.
const MAX_DEPTH: usize = 100;

/// The messages that XLA writes, each with the fields that tell it from those below it. What has
/// none of these fields is a module.
const ROOTS: [(&str, &[&str]); 4] = [
    ("xla.HloSnapshot", &["hlo", "arguments", "result", "execution_platform"]),
    ("xla.HloUnoptimizedSnapshot", &["partitions", "version"]),
    ("xla.HloProto", &["hlo_module", "buffer_assignment"]),
    ("xla.HloModuleProto", &[]),
];

/// Checks whether a text is that of a message rather than HLO: it begins with a field.
///
/// ```
/// assert!(tilewright_proto::looks_like_text_proto("# a dump\nhlo_module { name: \"f\" }"));
/// assert!(!tilewright_proto::looks_like_text_proto("HloModule f\n"));
/// ```
pub fn looks_like_text_proto(text: &str) -> bool {
    let mut tokens = Tokens::of(text).map(|(token, _)| token);
    let (Some(Token::Word(name)), Some(Token::Colon | Token::Open)) =
        (tokens.next(), tokens.next())
    else {
        return false;
    };
    let is_of = |message: MessageDescriptor| message.get_field_by_name(name).is_some();
    ROOTS.iter().any(|(root, _)| message(root).is_some_and(is_of))
}

/// Returns the bytes that a text stands for: a module, dump or snapshot.
///
/// # Errors
/// Returns an error if the text is not that of such a message.
pub fn encode_text_proto(text: &str) -> Result<Vec<u8>, TextProtoError> {
    let fields = outermost_fields(text)?;
    let is = |own: &[&str]| own.is_empty() || own.iter().any(|name| fields.contains(name));
    let root = ROOTS.iter().find(|(_, own)| is(own)).and_then(|(root, _)| message(root));
    let Some(root) = root else { return Err(damaged(0..0, "there is no schema of it")) };
    DynamicMessage::parse_text_format(root, text)
        .map(|message| message.encode_to_vec())
        .map_err(|error| damaged(place(&error, text), error.to_string()))
}

fn damaged(span: Range<usize>, message: impl Into<String>) -> TextProtoError {
    TextProtoError { span, message: message.into(), help: DAMAGED }
}

/// Returns where an error is; the end of the text if it does not say so.
fn place(error: &prost_reflect::text_format::ParseError, text: &str) -> Range<usize> {
    let label = error.labels().and_then(|mut labels| labels.next());
    label.map_or(text.len()..text.len(), |label| {
        label.offset()..label.offset().saturating_add(label.len())
    })
}

/// Returns the descriptor of a message of the schema.
fn message(name: &str) -> Option<MessageDescriptor> {
    static POOL: OnceLock<Option<DescriptorPool>> = OnceLock::new();
    let schema = include_bytes!("generated/text.binpb");
    let pool = POOL.get_or_init(|| DescriptorPool::decode(schema.as_slice()).ok());
    pool.as_ref()?.get_message_by_name(name)
}

/// Returns the names of the fields that are in no other. The parser recurses, so that the depth
/// of a text is checked before it is parsed.
fn outermost_fields(text: &str) -> Result<Vec<&str>, TextProtoError> {
    let mut names = Vec::new();
    let mut depth = 0usize;
    for (token, at) in Tokens::of(text) {
        match token {
            Token::Open if depth == MAX_DEPTH => {
                let message = format!("messages nest more than {MAX_DEPTH} deep here");
                return Err(damaged(at..at.saturating_add(1), message));
            }
            Token::Open => depth = depth.saturating_add(1),
            Token::Close => depth = depth.saturating_sub(1),
            Token::Word(name) if depth == 0 && !names.contains(&name) => names.push(name),
            Token::Word(_) | Token::Colon | Token::Other => {}
        }
    }
    Ok(names)
}

/// As much of a token as the kind of a message and its depth follow from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    Colon,
    Open,
    Close,
    /// A string, a number or another sign.
    Other,
}

/// The tokens of a text, each with its place; comments are left out.
struct Tokens<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Tokens<'a> {
    fn of(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Advances while bytes are of a kind.
    fn skip(&mut self, is: impl Fn(u8) -> bool) {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        let count = rest.iter().position(|&byte| !is(byte)).unwrap_or(rest.len());
        self.at = self.at.saturating_add(count);
    }

    /// Advances past a string, which ends where the line does at the latest.
    fn skip_string(&mut self, quote: u8) {
        self.at = self.at.saturating_add(1);
        loop {
            self.skip(|byte| !matches!(byte, b'\\' | b'\n') && byte != quote);
            let escaped = self.text.as_bytes().get(self.at) == Some(&b'\\');
            self.at = self.at.saturating_add(if escaped { 2 } else { 1 }).min(self.text.len());
            if !escaped {
                return;
            }
        }
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = (Token<'a>, usize);

    fn next(&mut self) -> Option<Self::Item> {
        self.skip(|byte| byte.is_ascii_whitespace());
        while self.text.as_bytes().get(self.at) == Some(&b'#') {
            self.skip(|byte| byte != b'\n');
            self.skip(|byte| byte.is_ascii_whitespace());
        }
        let start = self.at;
        let is_of_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let token = match *self.text.as_bytes().get(start)? {
            quote @ (b'"' | b'\'') => {
                self.skip_string(quote);
                return Some((Token::Other, start));
            }
            byte if byte.is_ascii_alphabetic() || byte == b'_' => {
                self.skip(is_of_word);
                return Some((Token::Word(self.text.get(start..self.at)?), start));
            }
            b':' => Token::Colon,
            b'{' | b'<' => Token::Open,
            b'}' | b'>' => Token::Close,
            _ => Token::Other,
        };
        self.at = start.saturating_add(1);
        Some((token, start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_know_strings_and_comments() {
        let text = "# name {\n a: \"{ \\\" # <\" b < c: 'x' > # {";
        let tokens: Vec<Token<'_>> = Tokens::of(text).map(|(token, _)| token).collect();
        let (word, other) = (Token::Word, Token::Other);
        let (colon, open, close) = (Token::Colon, Token::Open, Token::Close);
        let expected = [word("a"), colon, other, word("b"), open, word("c"), colon, other, close];
        assert_eq!(tokens, expected);
    }

    #[test]
    fn every_root_and_its_fields_are_in_the_schema() {
        for (root, fields) in ROOTS {
            let message = message(root).unwrap_or_else(|| panic!("{root}"));
            for field in fields {
                assert!(message.get_field_by_name(field).is_some(), "{root}.{field}");
            }
        }
    }
}
