//! Writes programs as bytecode.

mod attributes;
mod emitter;
mod mesh;
mod operations;
mod tables;
mod types;

use std::fmt;

use rustc_hash::FxHashMap;

use super::MAGIC;
use super::error::WriteError;
use crate::mlir::Program;

use emitter::Emitter;
use tables::Tables;

/// A version of StableHLO.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Version {
    /// The major number.
    pub major: u32,
    /// The minor number.
    pub minor: u32,
}

impl Version {
    /// The oldest version that can be written.
    pub const OLDEST: Self = Self { major: 1, minor: 0 };
    /// The newest version that can be written.
    pub const NEWEST: Self = Self { major: 1, minor: 20 };
}

impl Default for Version {
    /// Version 1.7, which is that of jaxlib 0.4.35 from October 2024 and older than those of all
    /// later ones: they read it.
    fn default() -> Self {
        Self { major: 1, minor: 7 }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.0", self.major, self.minor)
    }
}

/// How a program is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// With the operations of StableHLO, for readers of about the same age as this crate.
    Plain,
    /// As a portable artifact that readers of StableHLO of this version or a newer one take.
    Portable(Version),
}

impl Default for Format {
    fn default() -> Self {
        Self::Portable(Version::default())
    }
}

/// Writes a program as MLIR's bytecode.
///
/// # Errors
///
/// Returns an operation that the format lacks, or that has an attribute or a type which it lacks.
/// Portable artifacts with quantized types or buffers are not written.
pub fn write(program: &Program, format: Format) -> Result<Vec<u8>, WriteError> {
    if let Format::Portable(version) = format
        && !(Version::OLDEST..=Version::NEWEST).contains(&version)
    {
        let (oldest, newest) = (Version::OLDEST, Version::NEWEST);
        return Err(WriteError {
            operation: program.module.name.to_string(),
            message: format!("StableHLO {version} is not between {oldest} and {newest}"),
        });
    }
    let mut writer = Writer {
        program,
        format,
        tables: Tables::default(),
        locations: FxHashMap::default(),
        plans: FxHashMap::default(),
        values: FxHashMap::default(),
    };
    let operations = writer.outermost()?;
    Ok(assemble(&operations, &mut writer.tables, format))
}

/// The state of the writer.
struct Writer<'p> {
    program: &'p Program,
    format: Format,
    tables: Tables,
    /// The numbers of locations by their addresses.
    locations: FxHashMap<usize, u64>,
    plans: FxHashMap<smol_str::SmolStr, Option<std::sync::Arc<crate::vhlo::VersionedOp>>>,
    /// The numbers of the values that can be used here.
    values: FxHashMap<crate::mlir::Value, u64>,
}

/// Puts the sections together.
fn assemble(operations: &Emitter, tables: &mut Tables, format: Format) -> Vec<u8> {
    /// The newest version of the format of bytecode.
    const BYTECODE: u64 = 6;
    let mut file = Emitter { bytes: MAGIC.to_vec() };
    file.varint(BYTECODE);
    match format {
        Format::Plain => file.text("Tilewright"),
        Format::Portable(version) => file.text(&format!("StableHLO_v{version}")),
    }
    let (sizes, encodings) = tables.entries();
    let (resource_sizes, resources) = tables.resources();
    let dialects = tables.dialects();
    file.section(1, &dialects);
    file.section(3, &sizes);
    file.section(2, &encodings);
    file.section(4, operations);
    file.section(6, &resource_sizes);
    file.section(5, &resources);
    file.section(0, &tables.strings());
    let mut properties = Emitter::default();
    properties.count(0);
    file.section(8, &properties);
    file.bytes
}
