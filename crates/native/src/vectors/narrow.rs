//! Where the elements of short rows lie that are read as vectors.

/// Where a word of a column lies, counted over rows of `LEN` elements of `WIDE` words that lie side by
/// side.
pub(super) const fn word_of_column<const LEN: usize, const WIDE: usize>(
    column: usize,
    word: usize,
) -> usize {
    (word / WIDE * LEN + column) * WIDE + word % WIDE
}

/// For each column and each vector, the words of 32 bits that go to the column, by their places in the
/// vector; -1 where the word of the column comes from another vector.
///
/// `LEN` vectors of `WORDS` words hold rows of `LEN` elements side by side; a column has one element
/// of each. An element has `WIDE` words.
#[cfg(target_arch = "x86_64")]
pub(super) struct Columns<const LEN: usize, const WORDS: usize, const WIDE: usize>;

#[cfg(target_arch = "x86_64")]
impl<const LEN: usize, const WORDS: usize, const WIDE: usize> Columns<LEN, WORDS, WIDE> {
    pub(super) const PLACES: [[[i32; WORDS]; LEN]; LEN] = Self::places();

    #[expect(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "few words")]
    const fn places() -> [[[i32; WORDS]; LEN]; LEN] {
        let mut all = [[[-1; WORDS]; LEN]; LEN];
        let mut column = 0;
        while column < LEN {
            let mut word = 0;
            while word < WORDS {
                let from = word_of_column::<LEN, WIDE>(column, word);
                all[column][from / WORDS][word] = (from % WORDS) as i32;
                word += 1;
            }
            column += 1;
        }
        all
    }
}
