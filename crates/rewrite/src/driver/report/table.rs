//! Formats tables of text. All reports of the workspace use it.

use std::borrow::Cow;

/// The number of characters after which a cell of free text is cut.
const LONGEST_CELL: usize = 120;

/// Cuts a text that does not fit a line.
pub fn shortened(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(LONGEST_CELL) {
        None => text.into(),
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or(text)).into(),
    }
}

/// Formats rows in columns, each as wide as its widest cell. Columns for whose number `right`
/// returns true are flush right, as numbers are.
pub fn aligned<const N: usize, T: AsRef<str>>(rows: &[[T; N]], right: fn(usize) -> bool) -> String {
    let mut widths = [0; N];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.as_ref().chars().count());
        }
    }
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
            let gap = if column == 0 { "" } else { "  " };
            let cell = cell.as_ref();
            let blanks = " ".repeat(width.saturating_sub(cell.chars().count()));
            let (before, after) = if right(column) { (&*blanks, "") } else { ("", &*blanks) };
            line.extend([gap, before, cell, after]);
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Formats a count with a noun: `1 output`, `2 outputs`.
pub fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// Formats a count with separated thousands: `1_234_567`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push('_');
        }
        text.push(digit);
    }
    text
}

/// Formats cycles, rounded to whole ones.
pub fn cycles(cycles: f64) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    count(cycles.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::{aligned, count, counted, cycles, shortened};

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["", "n"], ["vectors", "12"], ["é", "7"]];
        assert_eq!(aligned(&rows, |column| column == 1), "          n\nvectors  12\né         7\n");
        assert_eq!(aligned(&rows, |_| false), "         n\nvectors  12\né        7\n");
    }

    #[test]
    fn numbers_are_readable() {
        let counts = [0, 999, 1_000, 1_234_567].map(count);
        assert_eq!(counts, ["0", "999", "1_000", "1_234_567"]);
        assert_eq!([0.4, 1_999.5, f64::NAN].map(cycles), ["0", "2_000", "0"]);
        assert_eq!([counted(1, "output"), counted(2, "output")], ["1 output", "2 outputs"]);
    }

    #[test]
    fn long_cells_are_cut_between_characters() {
        let long = "é".repeat(121);
        assert_eq!(shortened(&long), format!("{}...", "é".repeat(120)));
        assert_eq!(shortened("é"), "é");
    }
}
