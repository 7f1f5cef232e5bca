//! Tables of text, used by all reports of the workspace.

use std::borrow::Cow;

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, ContentArrangement, Table};

/// Number of characters after which a cell of free text is cut.
const LONGEST_CELL: usize = 120;

/// Shortens a text that does not fit a line.
pub fn shortened(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(LONGEST_CELL) {
        None => text.into(),
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or(text)).into(),
    }
}

/// Lays out rows in columns, each as wide on a terminal as its widest cell. Columns for whose number
/// `right` is true are flush right, as numbers are.
pub fn aligned<const N: usize, T: AsRef<str>>(rows: &[[T; N]], right: fn(usize) -> bool) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut table = Table::new();
    table.load_preset(NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    for row in rows {
        table.add_row(row.iter().map(AsRef::as_ref));
    }
    for (number, column) in table.column_iter_mut().enumerate() {
        let side = if right(number) { CellAlignment::Right } else { CellAlignment::Left };
        column.set_padding((0, 2)).set_cell_alignment(side);
    }
    table.trim_fmt() + "\n"
}

/// Returns a count with a noun: `1 output`, `2 outputs`.
pub fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// Returns a count with its thousands apart: `1_234_567`.
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

/// Returns a number of bytes with a unit.
#[expect(clippy::cast_precision_loss, reason = "a size to show")]
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let power = (bytes.max(1).ilog2() / 10).min(5);
    let unit = UNITS.get(power as usize).unwrap_or(&"B");
    let scaled = bytes as f64 / (1_u64 << (10 * power)) as f64;
    if power == 0 || scaled >= 100.0 {
        format!("{scaled:.0} {unit}")
    } else {
        format!("{scaled:.1} {unit}")
    }
}

/// Says what a ratio of modelled cycles on a target is worth, given its `ratio_error`.
pub fn ratio_words(target: &str, ratio_error: f64) -> String {
    format!(
        "A model, not a measurement: for nine programs in ten, {target}'s own figures give a ratio within \
         {ratio_error} times the modelled one."
    )
}

/// Returns cycles, rounded to whole ones.
pub fn cycles(cycles: f64) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    count(cycles.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::{aligned, bytes, count, counted, cycles, shortened};

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["", "n"], ["vectors", "12"], ["é", "7"]];
        assert_eq!(aligned(&rows, |column| column == 1), "          n\nvectors  12\né         7\n");
        assert_eq!(aligned(&rows, |_| false), "         n\nvectors  12\né        7\n");
        // A wide letter takes two places on a terminal.
        assert_eq!(aligned(&[["幅", "1"], ["abc", "2"]], |_| false), "幅   1\nabc  2\n");
        assert_eq!(aligned(&[["  in", ""], ["", "b"]], |_| false), "  in\n      b\n");
        assert_eq!(aligned::<2, &str>(&[], |_| false), "");
    }

    #[test]
    fn numbers_are_readable() {
        let counts = [0, 999, 1_000, 1_234_567].map(count);
        assert_eq!(counts, ["0", "999", "1_000", "1_234_567"]);
        assert_eq!([0.4, 1_999.5, f64::NAN].map(cycles), ["0", "2_000", "0"]);
        assert_eq!([counted(1, "output"), counted(2, "output")], ["1 output", "2 outputs"]);
    }

    #[test]
    fn sizes_have_three_digits() {
        let sizes = [0, 1023, 1024, 1536, 102_400, 40 << 20, u64::MAX];
        let shown = ["0 B", "1023 B", "1.0 KiB", "1.5 KiB", "100 KiB", "40.0 MiB", "16384 PiB"];
        assert_eq!(sizes.map(bytes), shown);
    }

    #[test]
    fn long_cells_are_cut_between_characters() {
        let long = "é".repeat(121);
        assert_eq!(shortened(&long), format!("{}...", "é".repeat(120)));
        assert_eq!(shortened("é"), "é");
    }
}
