//! StableHLO's and CHLO's own encodings.

use super::Read;
use super::cursor::Cursor;
use super::entries::Entries;
use super::structures::{read_structure, word};
use crate::dialect::{self, Words};
use crate::mlir::{Attribute, Type};

/// The numbers of the bounds of dynamic dims and of attributes of meshes.
pub(crate) const BOUNDS: u64 = 13;
pub(crate) const REPLICA_GROUPS: u64 = 18;
pub(crate) const AXIS: u64 = 20;
pub(crate) const MESH_AXIS: u64 = 21;
pub(crate) const MESH: u64 = 22;

/// The number of a word of CHLO; its first words are StableHLO's.
pub(crate) fn chlo_code(words: &Words) -> Option<u64> {
    let at = dialect::WORDS.iter().position(|known| known.name == words.name)?;
    (at < CHLO_WORDS).then_some(at as u64)
}

/// How many of StableHLO's enumerations CHLO has.
const CHLO_WORDS: usize = 2;

/// The numbers of the types.
pub(crate) const TOKEN: u64 = 0;
pub(crate) const FUTURE: u64 = 1;

pub(super) fn attribute(entries: &mut Entries<'_>, cursor: &mut Cursor<'_>) -> Read<Attribute> {
    let before = *cursor;
    let code = cursor.varint()?;
    if let Some(words) = dialect::WORDS.iter().find(|words| words.codes.0 == code) {
        return word(cursor, "stablehlo", words);
    }
    if let Some(structure) = dialect::structure(|known| known.codes.0 == Some(code)) {
        return read_structure(entries, cursor, structure);
    }
    match code {
        BOUNDS => Ok(bounds(cursor.signed_list()?)),
        REPLICA_GROUPS => {
            let mesh = entries.attribute(cursor)?;
            let axes = Attribute::Array(entries.attributes(cursor)?);
            Ok(replica_groups(mesh, axes))
        }
        AXIS => {
            let name = Attribute::String(entries.file_string(cursor)?);
            let part = if cursor.byte()? != 0 { Some(entries.attribute(cursor)?) } else { None };
            Ok(axis(name, part))
        }
        MESH_AXIS => {
            let name = Attribute::String(entries.file_string(cursor)?);
            Ok(mesh_axis(name, cursor.signed()?))
        }
        MESH => {
            let axes = entries.attribute(cursor)?;
            let devices = if cursor.byte()? != 0 { Some(entries.attribute(cursor)?) } else { None };
            Ok(mesh(axes, devices))
        }
        _ => Err(before.error(format!("StableHLO has no attribute {code}"))),
    }
}

pub(super) fn chlo_attribute(cursor: &mut Cursor<'_>) -> Read<Attribute> {
    let before = *cursor;
    let code = cursor.varint()?;
    match dialect::WORDS.iter().find(|words| chlo_code(words) == Some(code)) {
        Some(words) => word(cursor, "chlo", words),
        None => Err(before.error(format!("CHLO has no attribute {code}"))),
    }
}

pub(super) fn ty(entries: &mut Entries<'_>, cursor: &mut Cursor<'_>) -> Read<Type> {
    let before = *cursor;
    match cursor.varint()? {
        TOKEN => Ok(Type::Token),
        FUTURE => Ok(Type::Future(entries.types(cursor)?)),
        code => Err(before.error(format!("StableHLO has no type {code}"))),
    }
}

/// `#stablehlo.bounds<...>`.
pub(crate) fn bounds(values: Vec<i64>) -> Attribute {
    Attribute::structure("stablehlo", "bounds", vec![("value".into(), Attribute::i64s(values))])
}

/// The groups of devices that axes of a mesh make.
pub(crate) fn replica_groups(mesh: Attribute, axes: Attribute) -> Attribute {
    let parameters = vec![("mesh".into(), mesh), ("axes".into(), axes)];
    Attribute::structure("stablehlo", "replica_group_mesh_axes", parameters)
}

/// An axis of a mesh, or a part of one.
pub(crate) fn axis(name: Attribute, part: Option<Attribute>) -> Attribute {
    let mut parameters = vec![("name".into(), name)];
    parameters.extend(part.map(|part| ("sub_axis_info".into(), part)));
    Attribute::structure("stablehlo", "axis_ref", parameters)
}

/// The definition of an axis.
pub(crate) fn mesh_axis(name: Attribute, size: i64) -> Attribute {
    let parameters = vec![("name".into(), name), ("size".into(), Attribute::i64(size))];
    Attribute::structure("stablehlo", "mesh_axis", parameters)
}

/// A mesh.
pub(crate) fn mesh(axes: Attribute, devices: Option<Attribute>) -> Attribute {
    let mut parameters = vec![("axes".into(), axes)];
    parameters.extend(devices.map(|devices| ("device_ids".into(), devices)));
    Attribute::structure("stablehlo", "mesh", parameters)
}
