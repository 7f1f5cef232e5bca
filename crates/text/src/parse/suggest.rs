//! Guesses the intended word.

/// Returns the candidate with the fewest changed letters, if they are few; the first in order
/// of the alphabet among equals.
pub(super) fn nearest<'a>(
    word: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    const LONGEST: usize = 64;
    if word.len() > LONGEST {
        return None;
    }
    let most = 1 + word.len() / 4;
    candidates
        .filter(|candidate| candidate.len().abs_diff(word.len()) <= most)
        .map(|candidate| (distance(word.as_bytes(), candidate.as_bytes()), candidate))
        .filter(|&(distance, _)| distance <= most)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Returns how many letters must be inserted, removed or replaced.
fn distance(a: &[u8], b: &[u8]) -> usize {
    // One row of the table of distances between prefixes.
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, &x) in a.iter().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        if let Some(first) = row.first_mut() {
            *first = left;
        }
        for (slot, &y) in row.iter_mut().skip(1).zip(b) {
            let replaced = diagonal + usize::from(x != y);
            diagonal = *slot;
            left = replaced.min(diagonal + 1).min(left + 1);
            *slot = left;
        }
    }
    row.last().copied().unwrap_or(0)
}
