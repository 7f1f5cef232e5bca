//! Guesses the word that was meant, for the help of messages.

/// The longest word for which a guess is made, in bytes: messages about hostile inputs stay cheap.
const LONGEST: usize = 64;

/// Returns the candidate that is most like a word, if it is like enough: letters that are added,
/// left out, replaced or swapped with a neighbour are at most a third of the word, and at least one
/// letter stays. Upper and lower case are the same. Among equals, the first in order of the alphabet
/// is returned.
///
/// ```
/// let opcodes = ["add", "and", "iota", "parameter", "transpose"];
/// assert_eq!(tilewright_ir::similar("parametr", opcodes), Some("parameter"));
/// assert_eq!(tilewright_ir::similar("Total", opcodes), None);
/// ```
pub fn similar<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > LONGEST {
        return None;
    }
    let folded = word.to_lowercase();
    let letters = folded.chars().count();
    let most = (letters.max(3) / 3).min(letters.saturating_sub(1));
    let near = |candidate: &&str| {
        candidate.len() <= 2 * LONGEST && candidate.chars().count().abs_diff(letters) <= most
    };
    candidates
        .into_iter()
        .filter(near)
        .map(|candidate| (strsim::osa_distance(&folded, &candidate.to_lowercase()), candidate))
        .filter(|&(distance, _)| distance <= most)
        .min()
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::similar;
    use crate::ops::Opcode;

    fn opcode(word: &str) -> Option<&'static str> {
        similar(word, Opcode::ALL.iter().map(|opcode| opcode.name()))
    }

    #[test]
    fn slips_of_the_pen_are_seen_through() {
        let slips = [
            ("parametr", "parameter"),
            ("transposed", "transpose"),
            ("Transpose", "transpose"),
            ("ADD", "add"),
            ("ad", "add"),
            ("addd", "add"),
            ("dto", "dot"),
            ("substract", "subtract"),
            ("broadcats", "broadcast"),
            ("reduce_window", "reduce-window"),
        ];
        for (word, meant) in slips {
            assert_eq!(opcode(word), Some(meant), "{word}");
        }
    }

    #[test]
    fn other_words_are_no_slips() {
        for word in ["Total", "total", "sum", "mean", "relu", "xyz", "q", "", "softmax", "é"] {
            assert_eq!(opcode(word), None, "{word}");
        }
    }

    #[test]
    fn one_letter_is_no_likeness() {
        assert_eq!(similar("y", ["x", "xy"]), None);
        assert_eq!(similar("p9", ["p0", "p1", "x9z"]), Some("p0"));
        assert_eq!(similar("Y", ["x", "y"]), Some("y"));
    }

    #[test]
    fn long_words_are_not_compared() {
        let long = "a".repeat(65);
        assert_eq!(similar(&long, [long.as_str()]), None);
    }
}
