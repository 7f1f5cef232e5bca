//! Decides which names are valid, and which need a `%`.

use tilewright_ir::ElementType;

const START: u8 = 1;
const REST: u8 = 2;

const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let b = byte as u8;
        if b.is_ascii_alphabetic() || b == b'_' {
            classes[byte] = START | REST;
        } else if b.is_ascii_digit() || b == b'.' || b == b'-' {
            classes[byte] = REST;
        }
        byte += 1;
    }
    classes
};

/// Checks whether XLA's lexer takes this, after `%`, for one name.
pub(super) fn is_name(name: &str) -> bool {
    let is = |byte: u8, class: u8| CLASSES[usize::from(byte)] & class != 0;
    name.as_bytes().first().is_some_and(|&first| is(first, START))
        && name.bytes().all(|byte| is(byte, REST))
}

/// Checks whether XLA's parser takes this for the name of an instruction.
pub(super) fn is_instruction_name(name: &str) -> bool {
    is_name(name) && may_name_instruction(name)
}

/// Checks whether XLA's parser takes a word for the name of an instruction.
pub(crate) fn may_name_instruction(word: &str) -> bool {
    !word.starts_with("__") && !is_type(word)
}

/// Checks whether a name without `%` is a word of the grammar.
pub(super) fn is_reserved(name: &str) -> bool {
    matches!(
        name,
        "nan"
            | "inf"
            | "true"
            | "false"
            | "HloModule"
            | "ENTRY"
            | "ROOT"
            | "FileNames"
            | "FunctionNames"
            | "FileLocations"
            | "StackFrames"
            | "maximal"
            | "replicated"
            | "manual"
            | "last_tile_dim_replicate"
            | "shard_as"
            | "shard_like"
            | "unknown"
            | "unreduced"
    ) || is_type(name)
}

fn is_type(name: &str) -> bool {
    // All types have short names, most instructions long ones.
    name.len() <= 14
        && (matches!(name, "token" | "opaque") || ElementType::from_name(name).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_words() {
        for name in ["a", "_a", "a.1-b_c", "F32", "tuple", "buffer", "inf", "ROOT"] {
            assert!(is_instruction_name(name), "{name}");
        }
        for name in ["", "1a", ".a", "-a", "a b", "a\u{e9}", "__a", "f32", "token", "opaque"] {
            assert!(!is_instruction_name(name), "{name}");
        }
        for name in ["inf", "ROOT", "replicated", "f8e4m3b11fnuz", "pred"] {
            assert!(is_reserved(name), "{name}");
        }
        assert!(!is_reserved("add.1"));
        assert!(ElementType::ALL.iter().all(|t| is_reserved(t.name())));
    }
}
