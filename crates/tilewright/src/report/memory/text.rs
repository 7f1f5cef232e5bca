//! The report as text.

use std::fmt;

use tilewright_rewrite::table::{aligned, bytes, counted, shortened};

use super::{ArrayMemory, MemoryReport};

/// The most arrays that are shown.
const MOST_ARRAYS: usize = 12;
/// The most readers of an array that are named.
const MOST_READERS: usize = 2;

impl fmt::Display for MemoryReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { module, target, peak, .. } = self;
        let of = self
            .devices
            .map(|devices| format!(", on each of {devices} devices"))
            .unwrap_or_default();
        write!(
            f,
            "{module} on {target}{of}. A model: a compiler may order and reuse memory in another way.\n\n\
             At most {} are in use at once",
            bytes(peak.padded_bytes)
        )?;
        if peak.instruction.is_empty() {
            return f.write_str(".");
        }
        write!(f, ", at {}: ", peak.place)?;
        if peak.bytes < peak.padded_bytes {
            write!(f, "{} of elements, the rest padding; ", bytes(peak.bytes))?;
        }
        write!(f, "{} are arguments.\n\n", bytes(peak.argument_bytes))?;
        if self.counted_whole > 0 {
            let arrays = counted(self.counted_whole, "array");
            write!(f, "Nothing tells how {arrays} would be divided: they count whole.\n\n")?;
        }
        self.table(f)?;
        let on_arrays = self.shown().filter_map(|(number, array)| {
            array.advice.as_ref().map(|advice| format!("{number}: {advice}"))
        });
        let advice: Vec<String> = self.advice.iter().cloned().chain(on_arrays).collect();
        if !advice.is_empty() {
            f.write_str("\n\nWhat would help:")?;
        }
        advice.iter().try_for_each(|advice| write!(f, "\n  - {advice}"))
    }
}

impl MemoryReport {
    fn shown(&self) -> impl Iterator<Item = (usize, &ArrayMemory)> {
        (1..).zip(self.arrays.iter().take(MOST_ARRAYS))
    }

    fn table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const HEADER: [&str; 8] =
            ["", "in memory", "elements", "factor", "at peak", "array", "made by", "read by"];
        let row = |(number, array): (usize, &ArrayMemory)| {
            [
                format!("{number}"),
                bytes(array.padded_bytes),
                bytes(array.bytes),
                format!("{:.1}x", array.padding),
                if array.is_at_peak { "yes" } else { "no" }.to_owned(),
                shortened(&array.shape).into_owned(),
                array.maker(),
                array.read_by(),
            ]
        };
        let mut rows = vec![HEADER.map(str::to_owned)];
        rows.extend(self.shown().map(row));
        f.write_str(aligned(&rows, |column| (1..4).contains(&column)).trim_end())?;
        match self.arrays.len().saturating_sub(MOST_ARRAYS) {
            0 => Ok(()),
            more => write!(f, "\nand {more} smaller ones, or not at the peak."),
        }
    }
}

impl ArrayMemory {
    fn maker(&self) -> String {
        let what = match &self.meaning {
            _ if self.is_argument => " (argument)".to_owned(),
            Some(meaning) => format!(" ({meaning})"),
            None => String::new(),
        };
        format!("{}{what}{}", self.name, at(self.source.as_deref()))
    }

    fn read_by(&self) -> String {
        let named = self.readers.iter().take(MOST_READERS);
        let named = named.map(|reader| format!("{}{}", reader.name, at(reader.source.as_deref())));
        let mut readers: Vec<String> = named.collect();
        if let Some(more) = self.readers.len().checked_sub(MOST_READERS).filter(|&more| more > 0) {
            readers.push(format!("{more} more"));
        }
        if readers.is_empty() { "the caller".to_owned() } else { readers.join(", ") }
    }
}

/// Returns the last part of a place in the source, after a space.
fn at(source: Option<&str>) -> String {
    let file = source.map(|source| source.rsplit('/').next().unwrap_or(source));
    file.map(|file| format!(" {file}")).unwrap_or_default()
}
