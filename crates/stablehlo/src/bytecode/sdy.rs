//! Shardy's encodings, as the text that MLIR prints for them: a name and what follows it.

use std::fmt::Write as _;

use super::Read;
use super::cursor::Cursor;
use super::entries::Entries;
use crate::mlir::Attribute;

/// The numbers of attributes.
mod code {
    pub(super) const MANUAL_AXES: u64 = 0;
    pub(super) const MESH_AXIS: u64 = 1;
    pub(super) const MESH: u64 = 2;
    pub(super) const PART: u64 = 3;
    pub(super) const AXIS: u64 = 4;
    pub(super) const DIM: u64 = 5;
    pub(super) const SHARDING: u64 = 6;
    pub(super) const SHARDINGS: u64 = 7;
    pub(super) const DIM_MAPPING: u64 = 8;
    pub(super) const TENSOR_MAPPING: u64 = 9;
    pub(super) const RULE: u64 = 10;
    pub(super) const UNREDUCED: u64 = 15;
    pub(super) const UNREDUCED_SHARDINGS: u64 = 16;
    pub(super) const REDUCED: u64 = 17;
}

/// Takes an attribute.
pub(super) fn attribute(entries: &mut Entries<'_>, cursor: &mut Cursor<'_>) -> Read<Attribute> {
    let before = *cursor;
    let number = cursor.varint()?;
    let text = match number {
        code::MANUAL_AXES => {
            let count = cursor.count("axes")?;
            let mut names = Vec::new();
            for _ in 0..count {
                names.push(quoted(&entries.string(cursor)?));
            }
            format!("manual_axes{{{}}}", names.join(", "))
        }
        code::MESH_AXIS => {
            let name = quoted(&entries.file_string(cursor)?);
            format!("mesh_axis{name}={}", cursor.signed()?)
        }
        code::MESH => mesh(entries, cursor)?,
        code::PART => format!("sub_axis_info({}){}", cursor.signed()?, cursor.signed()?),
        code::AXIS => {
            let name = quoted(&entries.file_string(cursor)?);
            let at = *cursor;
            match entries.optional_attribute(cursor)? {
                Some(part) => format!("axis_ref{name}:{}", stripped(&part, &at)?),
                None => format!("axis_ref{name}"),
            }
        }
        code::DIM => dim(entries, cursor)?,
        code::SHARDING | code::UNREDUCED | code::REDUCED => sharding(entries, cursor, number)?,
        code::SHARDINGS | code::UNREDUCED_SHARDINGS => {
            format!("sharding_per_value<[{}]>", list(entries, cursor)?)
        }
        code::DIM_MAPPING => format!("dim_mapping{}", factors(&cursor.signed_list()?)),
        code::TENSOR_MAPPING => tensor_mapping(entries, cursor)?,
        code::RULE => rule(entries, cursor)?,
        _ => {
            let error = before.error(format!("the attribute {number} of Shardy cannot be read"));
            return Err(error.help("write the program as text instead"));
        }
    };
    Ok(Attribute::Opaque { dialect: "sdy".into(), text: text.into() })
}

/// A string in quotes, as MLIR prints it.
fn quoted(name: &[u8]) -> String {
    let mut text = String::from("\"");
    for &byte in name {
        match byte {
            b'\\' => text.push_str("\\\\"),
            b' '..=b'~' if byte != b'"' => text.push(char::from(byte)),
            // Writing to a string does not fail.
            _ => drop(write!(text, "\\{byte:02X}")),
        }
    }
    text.push('"');
    text
}

/// The text of an attribute of Shardy without its name.
fn stripped<'a>(value: &'a Attribute, at: &Cursor<'_>) -> Read<&'a str> {
    match value {
        Attribute::Opaque { dialect, text } if dialect == "sdy" => {
            Ok(text.trim_start_matches(|c: char| c.is_ascii_alphabetic() || c == '_'))
        }
        _ => Err(at.error("this attribute should be one of Shardy's")),
    }
}

/// Takes attributes and separates them by commas.
fn list(entries: &mut Entries<'_>, cursor: &mut Cursor<'_>) -> Read<String> {
    let count = cursor.count("attributes")?;
    let mut text = String::new();
    for index in 0..count {
        let at = *cursor;
        let value = entries.attribute(cursor)?;
        if index > 0 {
            text.push_str(", ");
        }
        text.push_str(stripped(&value, &at)?);
    }
    Ok(text)
}

fn mesh(entries: &mut Entries<'_>, cursor: &mut Cursor<'_>) -> Read<String> {
    let axes = list(entries, cursor)?;
    let devices: Vec<String> = cursor.signed_list()?.iter().map(i64::to_string).collect();
    Ok(match devices.as_slice() {
        [] => format!("mesh<[{axes}]>"),
        devices => format!("mesh<[{axes}], device_ids=[{}]>", devices.join(", ")),
    })
}

/// Takes the axes of a dim, whether it is closed, and a priority.
fn dim(entries: &mut Entries<'_>, cursor: &mut Cursor<'_>) -> Read<String> {
    let axes = list(entries, cursor)?;
    let open = match (cursor.byte()?, axes.is_empty()) {
        (0, true) => "?",
        (0, false) => ", ?",
        _ => "",
    };
    let (priority, prioritized) = cursor.flagged()?;
    let priority = if prioritized { format!("p{priority}") } else { String::new() };
    Ok(format!("dimension_sharding{{{axes}{open}}}{priority}"))
}

fn sharding(entries: &mut Entries<'_>, cursor: &mut Cursor<'_>, number: u64) -> Read<String> {
    let at = *cursor;
    let mesh = match entries.attribute(cursor)? {
        Attribute::Symbol(name) => format!("@{}", name.join("::@")),
        value => format!("mesh{}", stripped(&value, &at)?),
    };
    let mut text = format!("sharding<{mesh}, [{}]", list(entries, cursor)?);
    let replicated = list(entries, cursor)?;
    if !replicated.is_empty() {
        text = format!("{text}, replicated={{{replicated}}}");
    }
    if number != code::SHARDING {
        let unreduced = list(entries, cursor)?;
        let reduction = match number {
            code::REDUCED => reduction(cursor)?,
            _ => "",
        };
        if !unreduced.is_empty() {
            text = format!("{text}, unreduced={reduction}{{{unreduced}}}");
        }
    }
    text.push('>');
    Ok(text)
}

/// Takes the number of a reduction.
fn reduction(cursor: &mut Cursor<'_>) -> Read<&'static str> {
    let before = *cursor;
    match cursor.signed()? {
        0 => Ok(""),
        1 => Ok("max"),
        2 => Ok("min"),
        number => Err(before.error(format!("Shardy has no reduction {number}"))),
    }
}

/// The names of factors, one after the other: `i`, .., `z`, `z_1`.
fn factors(numbers: &[i64]) -> String {
    numbers.iter().map(|&number| factor(number)).collect()
}

fn factor(number: i64) -> String {
    /// The number of `z`.
    const LAST_LETTER: i64 = 17;
    match u8::try_from(number) {
        Ok(letter @ 0..=17) => char::from(b'i' + letter).to_string(),
        _ => format!("z_{}", number.saturating_sub(LAST_LETTER)),
    }
}

/// Takes the factors of each dim. Their names begin as the attribute's does, so that a bracket
/// stands between.
fn tensor_mapping(entries: &mut Entries<'_>, cursor: &mut Cursor<'_>) -> Read<String> {
    const NAME: &str = "dim_mapping";
    let count = cursor.count("dims")?;
    let mut dims = Vec::new();
    for _ in 0..count {
        let at = *cursor;
        match entries.attribute(cursor)? {
            Attribute::Opaque { text, .. } if text.starts_with(NAME) => {
                dims.push(text.get(NAME.len()..).unwrap_or_default().to_owned());
            }
            _ => return Err(at.error("this attribute should be the factors of a dim")),
        }
    }
    Ok(format!("tensor_mapping[{}]", dims.join(", ")))
}

/// Takes a rule that says which factors of operands and results are the same.
fn rule(entries: &mut Entries<'_>, cursor: &mut Cursor<'_>) -> Read<String> {
    let sizes = cursor.signed_list()?;
    let operands = list(entries, cursor)?;
    let results = list(entries, cursor)?;
    let sizes: Vec<String> =
        (0..).zip(&sizes).map(|(index, size)| format!("{}={size}", factor(index))).collect();
    let mut text = format!("op_sharding_rule<({operands})->({results})");
    if !sizes.is_empty() {
        text = format!("{text} {{{}}}", sizes.join(", "));
    }
    for kind in ["reduction", "need_replication", "permutation", "blocked_propagation"] {
        let names: Vec<String> = cursor.signed_list()?.into_iter().map(factor).collect();
        if !names.is_empty() {
            text = format!("{text} {kind}={{{}}}", names.join(", "));
        }
    }
    let custom = if cursor.byte()? != 0 { ", custom" } else { "" };
    Ok(format!("{text}{custom}>"))
}
