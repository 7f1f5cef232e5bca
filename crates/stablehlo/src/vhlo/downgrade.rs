//! Operations of StableHLO as VHLO's of a version.

use smol_str::{SmolStr, format_smolstr};

use crate::dialect::{
    self, Attr, Field, Initial, Newer, Op, Parameter, ValueKind, Version, api_version,
};
use crate::mlir::{Attribute, Attributes, DialectAttribute, Operation, Type, value_of};

/// The operation of VHLO that an operation of StableHLO becomes in a version.
pub(crate) struct VersionedOp {
    op: &'static Op,
    /// The version of the op.
    version: usize,
}

impl VersionedOp {
    /// Returns the operation for that of StableHLO with this name. `None`: the version has none.
    pub(crate) fn of(name: &str, version: Version) -> Option<Self> {
        let op = dialect::op(name)?;
        Some(Self { op, version: op.version_in(version)? })
    }

    /// The name with its version.
    pub(crate) fn name(&self) -> SmolStr {
        format_smolstr!("{}_v{}", self.op.base_name(), self.version)
    }

    /// Checks that the version of the op has all parts that an operation has.
    pub(crate) fn check(&self, operation: &Operation, version: Version) -> Result<(), String> {
        let (major, minor) = version;
        match self.op.newer.filter(|(newer, _)| self.version < *newer) {
            Some((_, Newer::Operands)) if operation.operands.len() != 1 => {
                Err(format!("StableHLO {major}.{minor} has it with one operand only"))
            }
            Some((_, Newer::Regions)) if !operation.regions.is_empty() => {
                Err(format!("StableHLO {major}.{minor} has it without regions only"))
            }
            _ => Ok(()),
        }
    }

    /// Converts the attributes of an operation. An attribute of VHLO alone has the dialect `vhlo`.
    pub(crate) fn attributes(&self, attributes: &Attributes) -> Result<Attributes, String> {
        let mut converted = Attributes::new();
        for (name, value) in attributes {
            let attr = self.op.attribute(name);
            let structure = attr.and_then(Attr::structure);
            let is_channel = attr.is_some_and(|attr| matches!(attr.kind, ValueKind::Channel));
            if structure.is_none() && !is_channel {
                converted
                    .push((name.clone(), attr.map_or(value.clone(), |attr| plain(attr, value))));
                continue;
            }
            let Attribute::Dialect(given) = value else {
                return Err(format!("the attribute `{name}` should be a structure"));
            };
            match structure {
                Some(structure) => {
                    for parameter in structure.parameters {
                        converted.push((parameter.vhlo.into(), self::parameter(given, parameter)?));
                    }
                }
                None => {
                    let handle = value_of(&given.parameters, "handle");
                    let handle = handle.ok_or("`channel_handle` has no parameter `handle`")?;
                    converted.push(("channel_id".into(), handle.clone()));
                }
            }
        }
        self.add_initials(&mut converted)?;
        self.remove_newer(&mut converted)?;
        Ok(converted)
    }

    /// Adds the attributes that StableHLO leaves out.
    fn add_initials(&self, attributes: &mut Attributes) -> Result<(), String> {
        for (name, attr) in self.op.names_of(self.version) {
            if value_of(attributes, name).is_some() {
                continue;
            }
            let value = match attr.initial() {
                Some(initial) => initial.value(attributes)?,
                None if matches!(attr.kind, ValueKind::Algorithm) => {
                    Attribute::Type(Box::new(Type::None))
                }
                None => return Err(format!("the attribute `{name}` is missing")),
            };
            attributes.push((name.into(), value));
        }
        Ok(())
    }

    /// Removes the attributes that newer versions have, if they say nothing.
    fn remove_newer(&self, attributes: &mut Attributes) -> Result<(), String> {
        let own = self.op.names_of(self.version);
        let newest = self.op.names_of(self.op.versions.len());
        let newer = newest.iter().filter(|(name, _)| own.iter().all(|(known, _)| known != name));
        for (name, attr) in newer {
            let Some(value) = value_of(attributes, name) else { continue };
            let is_silent = match attr.initial() {
                Some(initial) => initial.is(value, attributes),
                None => *value == Attribute::i64s([]),
            };
            if !is_silent {
                let message = format!("the attribute `{name}` needs a newer version of StableHLO");
                return Err(message);
            }
            attributes.retain(|(known, _)| known != name);
        }
        Ok(())
    }
}

/// Converts an attribute that is one in VHLO, too.
fn plain(attr: &Attr, value: &Attribute) -> Attribute {
    match (attr.kind, attr.initial(), value) {
        (ValueKind::Unit, _, Attribute::Unit) => Attribute::Bool(true),
        (_, Some(Initial::OriginalApi), Attribute::Integer(version, _)) => {
            api_version(i64::try_from(*version).unwrap_or(i64::MAX))
        }
        _ => value.clone(),
    }
}

/// Returns a parameter of a structure, or the value that its text leaves out.
fn parameter(structure: &DialectAttribute, parameter: &Parameter) -> Result<Attribute, String> {
    match (value_of(&structure.parameters, parameter.name), parameter.field) {
        (Some(value), _) => Ok(value.clone()),
        (None, Field::ListUnlessEmpty) => Ok(Attribute::i64s([])),
        (None, Field::NumberUnlessZero) => Ok(Attribute::i64(0)),
        (None, _) => Err(format!("`{}` has no parameter `{}`", structure.name, parameter.name)),
    }
}
