//! The header of an `.npy` file: a Python dictionary of three entries.

use std::io::{self, Read};

use tilewright_ir::Dims;

/// The header of an array.
pub(super) struct Header {
    /// The type without its byte order, as `f4`.
    pub(super) kind: String,
    pub(super) big_endian: bool,
    /// Whether the first dim is the fastest-varying.
    pub(super) fortran_order: bool,
    pub(super) dims: Dims,
}

/// More than NumPy writes for any array of its at most 64 dims.
const MAX_LENGTH: u32 = 1 << 14;

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("its header is malformed: {what}"))
}

impl Header {
    /// Reads up to where the elements begin.
    pub(super) fn read(reader: &mut impl Read) -> io::Result<Self> {
        let mut start = [0; 8];
        read_exactly(reader, &mut start)?;
        let [magic @ .., major, _minor] = start;
        if &magic != b"\x93NUMPY" {
            return Err(malformed("it does not begin as an .npy file"));
        }
        let length = if major == 1 {
            let mut length = [0; 2];
            read_exactly(reader, &mut length)?;
            u32::from(u16::from_le_bytes(length))
        } else {
            let mut length = [0; 4];
            read_exactly(reader, &mut length)?;
            u32::from_le_bytes(length)
        };
        if length > MAX_LENGTH || !(1..=3).contains(&major) {
            return Err(malformed("it is too long, or of an unknown version"));
        }
        let mut text = vec![0; length as usize];
        read_exactly(reader, &mut text)?;
        let text = str::from_utf8(&text).map_err(|_| malformed("it is not text"))?;
        Self::parse(text)
    }

    fn parse(text: &str) -> io::Result<Self> {
        let text = text.trim();
        let inside = text.strip_prefix('{').and_then(|t| t.strip_suffix('}'));
        let mut rest = inside.ok_or_else(|| malformed("it is not a dictionary"))?;
        let (mut descr, mut fortran_order, mut dims) = (None, None, None);
        while let Some((key, value)) = entry(&mut rest)? {
            match key {
                "descr" => descr = Some(string(value)?),
                "fortran_order" => fortran_order = Some(boolean(value)?),
                "shape" => dims = Some(shape(value)?),
                _ => return Err(malformed("it has an unknown entry")),
            }
        }
        let (Some(descr), Some(fortran_order), Some(dims)) = (descr, fortran_order, dims) else {
            return Err(malformed("`descr`, `fortran_order` or `shape` is missing"));
        };
        let kind = descr.trim_start_matches(['<', '>', '|', '=']);
        let big_endian = descr.starts_with('>');
        Ok(Self { kind: kind.to_owned(), big_endian, fortran_order, dims })
    }
}

/// Like `read_exact`, but reports a premature end as one.
fn read_exactly(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<()> {
    reader.read_exact(buffer).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => malformed("the file ends within it"),
        _ => error,
    })
}

/// Takes `'key': value,` off the front; values nest one pair of parentheses.
fn entry<'a>(rest: &mut &'a str) -> io::Result<Option<(&'a str, &'a str)>> {
    if rest.trim().is_empty() {
        return Ok(None);
    }
    let (key, after) = rest.split_once(':').ok_or_else(|| malformed("an entry has no value"))?;
    let after = after.trim_start();
    let end = match after.strip_prefix('(') {
        Some(inside) => inside.find(')').map(|at| at + 2),
        None => Some(after.find(',').unwrap_or(after.len())),
    };
    let end = end.ok_or_else(|| malformed("a parenthesis is not closed"))?;
    let (value, after) = after.split_at(end);
    let after = after.trim_start();
    *rest = after.strip_prefix(',').unwrap_or(after);
    Ok(Some((string(key)?, value.trim())))
}

fn string(text: &str) -> io::Result<&str> {
    let text = text.trim();
    let quoted = |quote| text.strip_prefix(quote).and_then(|t| t.strip_suffix(quote));
    let inside = quoted('\'').or_else(|| quoted('"'));
    inside.ok_or_else(|| malformed("a string is not quoted; record types are not supported"))
}

fn boolean(text: &str) -> io::Result<bool> {
    match text {
        "True" => Ok(true),
        "False" => Ok(false),
        _ => Err(malformed("`fortran_order` is neither True nor False")),
    }
}

fn shape(text: &str) -> io::Result<Dims> {
    let inside = text.strip_prefix('(').and_then(|t| t.strip_suffix(')'));
    let inside = inside.ok_or_else(|| malformed("the shape is not a tuple"))?;
    let sizes = inside.split(',').map(str::trim).filter(|size| !size.is_empty());
    let sizes = sizes.map(|size| size.parse::<i64>().ok().filter(|&size| size >= 0));
    sizes.collect::<Option<_>>().ok_or_else(|| malformed("a size is not a number"))
}
