//! Damages small modules in every imaginable way, with fixed seeds: the properties of
//! `testkit::properties` hold for all of them.
use std::ops::Range;
use std::path::Path;

use tilewright_testkit::properties::{self, Outcome};

/// Small modules with most parts that text can have.
const MODULES: [&str; 12] = [
    "text/ok/short_whitening.hlo",
    "text/ok/origin_recovery.hlo",
    "sharded/psum.hlo",
    "sharded/all_gather_compiled.hlo",
    "sharded/ppermute_compiled.hlo",
    "sharded/mixed_devices.hlo",
    "sharded/donated_tree.hlo",
    "rewrite/inline/thread.hlo",
    "verify/V028_async_thread.hlo",
    "verify/V020_axis_twice.hlo",
    "verify/V027_operand.hlo",
    "verify/V037_loop.hlo",
];

fn texts() -> Vec<(&'static str, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let read = |name| (name, std::fs::read_to_string(folder.join(name)).unwrap());
    MODULES.into_iter().map(read).collect()
}

#[track_caller]
fn hold(bytes: &[u8]) -> Outcome {
    let broken = |problem| -> Outcome {
        let shown: String = String::from_utf8_lossy(bytes).chars().take(3000).collect();
        panic!("{problem}\nin\n{shown}");
    };
    properties::text(bytes).unwrap_or_else(broken)
}

/// A fixed sequence of pseudo-random numbers.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }
}

#[test]
fn the_modules_are_modules() {
    for (name, text) in texts() {
        let outcome = hold(text.as_bytes());
        let expected =
            if name.starts_with("verify/") { Outcome::Rejected } else { Outcome::Verified };
        assert_eq!(outcome, expected, "{name}");
    }
}

#[test]
fn truncated_at_every_byte() {
    for (_, text) in texts() {
        for end in 0..text.len() {
            hold(&text.as_bytes()[..end]);
        }
    }
}

/// Returns the positions of words, numbers and single characters.
fn tokens(text: &str) -> Vec<Range<usize>> {
    let mut tokens: Vec<Range<usize>> = Vec::new();
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut in_word = false;
    for (at, c) in text.char_indices() {
        match tokens.last_mut() {
            Some(last) if in_word && is_word(c) => last.end = at + c.len_utf8(),
            _ if c.is_whitespace() => {}
            _ => tokens.push(at..at + c.len_utf8()),
        }
        in_word = is_word(c);
    }
    tokens
}

#[test]
fn every_token_deleted_or_doubled() {
    for (_, text) in texts() {
        for token in tokens(&text) {
            let (before, after) = (&text[..token.start], &text[token.end..]);
            let word = &text[token.clone()];
            hold(format!("{before}{after}").as_bytes());
            hold(format!("{before}{word}{word}{after}").as_bytes());
            hold(format!("{before}{word} {word}{after}").as_bytes());
        }
    }
}

#[test]
fn tokens_of_one_place_at_another() {
    let mut numbers = Numbers(7);
    for (_, text) in texts() {
        let tokens = tokens(&text);
        for _ in 0..400 {
            let (to, from) = (numbers.below(tokens.len()), numbers.below(tokens.len()));
            let (to, word) = (&tokens[to], &text[tokens[from].clone()]);
            hold(format!("{}{word}{}", &text[..to.start], &text[to.end..]).as_bytes());
        }
    }
}

#[test]
fn random_bytes_flipped() {
    let mut numbers = Numbers(2);
    for (_, text) in texts() {
        for _ in 0..500 {
            let mut bytes = text.clone().into_bytes();
            for _ in 0..=numbers.below(3) {
                let at = numbers.below(bytes.len());
                bytes[at] ^= 1 << numbers.below(8);
            }
            hold(&bytes);
        }
    }
}

/// Puts numbers that no text should contain in the place of every number.
#[test]
fn hostile_numbers_in_every_place() {
    let hostile = [
        "-1",
        "0",
        "2147483648",
        "4294967296",
        "9223372036854775807",
        "-9223372036854775808",
        "18446744073709551616",
        "1e999",
        "nan",
    ];
    for (_, text) in texts() {
        let numbers = tokens(&text);
        let numbers = numbers.iter().filter(|t| text[(*t).clone()].parse::<u64>().is_ok());
        for number in numbers {
            for other in hostile {
                let (before, after) = (&text[..number.start], &text[number.end..]);
                hold(format!("{before}{other}{after}").as_bytes());
            }
        }
    }
}

/// Many commas and sizes, in every list of numbers.
#[test]
fn long_lists_in_every_place() {
    let long = "1,".repeat(2000);
    for (_, text) in texts() {
        let places: Vec<usize> =
            text.match_indices(['[', '{', '(']).map(|(at, _)| at + 1).collect();
        for at in places.into_iter().step_by(3) {
            hold(format!("{}{long}{}", &text[..at], &text[at..]).as_bytes());
        }
    }
}

#[test]
fn invalid_utf8_in_every_line() {
    let wrong: [&[u8]; 5] = [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf8\x88\x80\x80", b"\x80"];
    for (_, text) in texts() {
        let starts = text.match_indices('\n').map(|(at, _)| at);
        for (i, at) in starts.enumerate() {
            let mut bytes = text.clone().into_bytes();
            bytes.splice(at..at, wrong[i % wrong.len()].iter().copied());
            assert_eq!(hold(&bytes), Outcome::Syntax);
        }
        let cut = tilewright_text::parse_bytes(&[text.as_bytes(), b"\xe2\x82"].concat());
        let errors = cut.unwrap_err();
        let lines = text.matches('\n').count() + 1;
        assert_eq!(errors.errors()[0].at.line, lines, "{errors}");
    }
}

/// The verifier gives the same result for a module and for its text, damaged or not.
#[test]
fn verdicts_survive_text() {
    let mut numbers = Numbers(3);
    let mut rejected = 0;
    for (name, text) in texts() {
        let tokens = tokens(&text);
        for _ in 0..300 {
            let at = tokens[numbers.below(tokens.len())].clone();
            let other = ["1", "0", "x", "8", "{0}", "f32"][numbers.below(6)];
            let damaged = format!("{}{other}{}", &text[..at.start], &text[at.end..]);
            match properties::verifier(damaged.as_bytes()) {
                Ok(outcome) => rejected += usize::from(outcome == Outcome::Rejected),
                Err(problem) => panic!("{name}: {problem}\nin\n{damaged}"),
            }
        }
    }
    assert!(rejected > 100, "only {rejected} were read and refused");
}
