//! Locations.

use std::sync::Arc;

use super::Read;
use super::builtin::code;
use super::cursor::Cursor;
use super::entries::Entries;
use crate::mlir::Location;

/// Takes the location with this number; `None` if the number is no location's.
pub(super) fn location(
    entries: &mut Entries<'_>,
    cursor: &mut Cursor<'_>,
    number: u64,
) -> Read<Option<Location>> {
    Ok(Some(match number {
        code::CALL => {
            Location::Call { callee: entries.location(cursor)?, caller: entries.location(cursor)? }
        }
        code::FILE => {
            let file = entries.name(cursor)?;
            let start = (small(cursor)?, small(cursor)?);
            Location::File { file, start, end: start }
        }
        code::FILE_RANGE => range(entries, cursor)?,
        code::FUSED => Location::Fused { metadata: None, parts: parts(entries, cursor)? },
        code::FUSED_WITH_METADATA => {
            let parts = parts(entries, cursor)?;
            Location::Fused { metadata: Some(Box::new(entries.attribute(cursor)?)), parts }
        }
        code::NAME => {
            Location::Name { name: entries.name(cursor)?, child: entries.location(cursor)? }
        }
        code::UNKNOWN => Location::Unknown,
        _ => return Ok(None),
    }))
}

fn parts(entries: &mut Entries<'_>, cursor: &mut Cursor<'_>) -> Read<Vec<Arc<Location>>> {
    let count = cursor.count("locations")?;
    (0..count).map(|_| entries.location(cursor)).collect()
}

/// Takes a line or a column.
fn small(cursor: &mut Cursor<'_>) -> Read<u32> {
    let before = *cursor;
    let value = cursor.varint()?;
    u32::try_from(value).map_err(|_| before.error(format!("there is no line or column {value}")))
}

/// Takes a file and up to four numbers: a line, its columns, and the line and column of the end.
fn range(entries: &mut Entries<'_>, cursor: &mut Cursor<'_>) -> Read<Location> {
    let file = entries.name(cursor)?;
    let before = *cursor;
    let count = cursor.count("lines and columns")?;
    let numbers = (0..count).map(|_| small(cursor)).collect::<Read<Vec<u32>>>()?;
    let (start, end) = match *numbers.as_slice() {
        [] => ((0, 0), (0, 0)),
        [line] => ((line, 0), (line, 0)),
        [line, column] => ((line, column), (line, column)),
        [line, column, end] => ((line, column), (line, end)),
        [line, column, end_line, end] => ((line, column), (end_line, end)),
        _ => return Err(before.error("a location has more than four numbers")),
    };
    Ok(Location::File { file, start, end })
}
