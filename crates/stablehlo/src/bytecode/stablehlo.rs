//! StableHLO's and CHLO's own encodings.

use super::Read;
use super::cursor::Cursor;
use super::entries::Entries;
use super::structures::{dialect, list, number, read_structure, word};
use crate::mlir::{Attribute, Type};

/// The attributes of one word, by their numbers.
pub(crate) const WORDS: &[(u64, &str)] = &[
    (2, "comparison_direction"),
    (3, "comparison_type"),
    (6, "fft_type"),
    (8, "precision"),
    (9, "rng_algorithm"),
    (10, "rng_distribution"),
    (12, "transpose"),
    (16, "result_accuracy_mode"),
];

/// The structures, by their numbers.
pub(crate) const STRUCTURES: &[(u64, &str)] = &[
    (1, "channel_handle"),
    (4, "conv"),
    (5, "dot"),
    (7, "gather"),
    (11, "scatter"),
    (14, "output_operand_alias"),
    (15, "dot_algorithm"),
    (17, "result_accuracy"),
    (19, "sub_axis_info"),
];

/// The numbers of the bounds of dynamic dims and of attributes of meshes.
pub(crate) const BOUNDS: u64 = 13;
pub(crate) const REPLICA_GROUPS: u64 = 18;
pub(crate) const AXIS: u64 = 20;
pub(crate) const MESH_AXIS: u64 = 21;
pub(crate) const MESH: u64 = 22;

/// CHLO's words, by their numbers.
pub(crate) const CHLO_WORDS: &[(u64, &str)] =
    &[(0, "comparison_direction"), (1, "comparison_type")];

/// The numbers of the types.
pub(crate) const TOKEN: u64 = 0;
pub(crate) const FUTURE: u64 = 1;

/// Returns the name that belongs to a number.
pub(crate) fn named(table: &[(u64, &'static str)], number: u64) -> Option<&'static str> {
    table.iter().find(|(known, _)| *known == number).map(|(_, name)| *name)
}

/// Returns the number that belongs to a name.
pub(crate) fn numbered(table: &[(u64, &'static str)], name: &str) -> Option<u64> {
    table.iter().find(|(_, known)| *known == name).map(|(number, _)| *number)
}

pub(super) fn attribute(entries: &mut Entries<'_>, cursor: &mut Cursor<'_>) -> Read<Attribute> {
    let before = *cursor;
    let code = cursor.varint()?;
    if let Some(name) = named(WORDS, code) {
        return word(cursor, "stablehlo", name);
    }
    if let Some(name) = named(STRUCTURES, code) {
        return read_structure(entries, cursor, name);
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
    match named(CHLO_WORDS, code) {
        Some(name) => word(cursor, "chlo", name),
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
    dialect("stablehlo", "bounds", vec![("value".into(), list(values))])
}

/// The groups of devices that axes of a mesh make.
pub(crate) fn replica_groups(mesh: Attribute, axes: Attribute) -> Attribute {
    let parameters = vec![("mesh".into(), mesh), ("axes".into(), axes)];
    dialect("stablehlo", "replica_group_mesh_axes", parameters)
}

/// An axis of a mesh, or a part of one.
pub(crate) fn axis(name: Attribute, part: Option<Attribute>) -> Attribute {
    let mut parameters = vec![("name".into(), name)];
    parameters.extend(part.map(|part| ("sub_axis_info".into(), part)));
    dialect("stablehlo", "axis_ref", parameters)
}

/// The definition of an axis.
pub(crate) fn mesh_axis(name: Attribute, size: i64) -> Attribute {
    let parameters = vec![("name".into(), name), ("size".into(), number(size))];
    dialect("stablehlo", "mesh_axis", parameters)
}

/// A mesh.
pub(crate) fn mesh(axes: Attribute, devices: Option<Attribute>) -> Attribute {
    let mut parameters = vec![("axes".into(), axes)];
    parameters.extend(devices.map(|devices| ("device_ids".into(), devices)));
    dialect("stablehlo", "mesh", parameters)
}
