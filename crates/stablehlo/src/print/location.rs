//! Locations as text.

use super::{MAX_DEPTH, attribute, list, quoted};
use crate::mlir::Location;

/// The most bytes of a location without aliases: parts may share parts, so that there are 2^n of them.
const MOST_BYTES: usize = 1 << 16;

/// Writes `loc(...)`.
pub(super) fn push(out: &mut String, location: &Location, depth: usize) {
    out.push_str("loc(");
    let most = out.len().saturating_add(MOST_BYTES);
    inner(out, location, depth, most);
    out.push(')');
}

fn inner(out: &mut String, location: &Location, depth: usize, most: usize) {
    if depth > MAX_DEPTH || out.len() > most {
        out.push_str("unknown");
        return;
    }
    match location {
        Location::Unknown => out.push_str("unknown"),
        Location::File { file, start, end } => self::file(out, file, *start, *end),
        Location::Name { name, child } => {
            quoted(out, name.as_bytes());
            if **child != Location::Unknown {
                out.push('(');
                inner(out, child, depth + 1, most);
                out.push(')');
            }
        }
        Location::Call { callee, caller } => {
            out.push_str("callsite(");
            inner(out, callee, depth + 1, most);
            out.push_str(" at ");
            inner(out, caller, depth + 1, most);
            out.push(')');
        }
        Location::Fused { metadata, parts } => {
            out.push_str("fused");
            if let Some(metadata) = metadata {
                out.push('<');
                attribute::push(out, metadata, depth + 1);
                out.push('>');
            }
            out.push('[');
            list(out, parts, |out, part| inner(out, part, depth + 1, most));
            out.push(']');
        }
    }
}

/// Writes `"file.py":10:4 to :8`.
pub(super) fn file(out: &mut String, file: &str, start: (u32, u32), end: (u32, u32)) {
    quoted(out, file.as_bytes());
    out.push_str(&format!(":{}:{}", start.0, start.1));
    if end.0 != start.0 {
        out.push_str(&format!(" to {}:{}", end.0, end.1));
    } else if end != start {
        out.push_str(&format!(" to :{}", end.1));
    }
}
