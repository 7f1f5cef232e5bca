//! Attributes of meshes.

use super::emitter::Emitter;
use super::types::Encoded;
use super::{Format, Version, Writer};
use crate::bytecode::stablehlo;
use crate::mlir::{Attribute, DialectAttribute, value_of};
use crate::vhlo;

/// The first version that has these attributes.
const SINCE: Version = Version { major: 1, minor: 16 };

impl Writer<'_> {
    /// Returns the number of an attribute of meshes; `None` if the attribute is another one.
    pub(super) fn mesh(
        &mut self,
        attribute: &DialectAttribute,
        format: Format,
    ) -> Result<Option<u64>, String> {
        let name = attribute.name.as_str();
        let own = attribute.dialect == "stablehlo";
        if !own || !matches!(name, "axis_ref" | "mesh_axis" | "mesh" | "replica_group_mesh_axes") {
            return Ok(None);
        }
        if let Format::Portable(version) = format
            && version < SINCE
        {
            return Err(format!("the attribute `#stablehlo.{name}` needs StableHLO {SINCE}"));
        }
        let portable = format != Format::Plain;
        let mut to = Emitter::default();
        match name {
            "axis_ref" => {
                to.varint(if portable { vhlo::code::AXIS } else { stablehlo::AXIS });
                self.mesh_name(attribute, format, &mut to)?;
                let part = value_of(&attribute.parameters, "sub_axis_info");
                match portable {
                    true => to.count(part.iter().len()),
                    false => to.byte(u8::from(part.is_some())),
                }
                if let Some(part) = part {
                    to.varint(self.attribute(part, format)?);
                }
            }
            "mesh_axis" => {
                to.varint(if portable { vhlo::code::MESH_AXIS } else { stablehlo::MESH_AXIS });
                self.mesh_name(attribute, format, &mut to)?;
                match value_of(&attribute.parameters, "size") {
                    Some(Attribute::Integer(size, _)) => {
                        to.signed(i64::try_from(*size).map_err(|_| "an axis is too great")?);
                    }
                    _ => return Err("an axis has no `size`".into()),
                }
            }
            "mesh" => {
                to.varint(if portable { vhlo::code::MESH } else { stablehlo::MESH });
                to.varint(self.parameter(attribute, "axes", format)?);
                let devices = value_of(&attribute.parameters, "device_ids");
                let number = devices.map(|ids| self.attribute(ids, format)).transpose()?;
                match portable {
                    true => to.varint(number.map_or(0, |number| number << 1 | 1)),
                    false => {
                        to.byte(u8::from(number.is_some()));
                        number.into_iter().for_each(|number| to.varint(number));
                    }
                }
            }
            _ => self.replica_groups(attribute, format, &mut to)?,
        }
        Ok(Some(self.intern(if portable { "vhlo" } else { "stablehlo" }, to)))
    }

    fn parameter(&mut self, of: &DialectAttribute, name: &str, format: Format) -> Encoded {
        let value = value_of(&of.parameters, name);
        let value = value.ok_or_else(|| format!("`{}` has no parameter `{name}`", of.name))?;
        self.attribute(value, format)
    }

    fn mesh_name(
        &mut self,
        of: &DialectAttribute,
        format: Format,
        to: &mut Emitter,
    ) -> Result<(), String> {
        let name = value_of(&of.parameters, "name");
        let Some(Attribute::String(name)) = name else {
            return Err(format!("`{}` has no `name`", of.name));
        };
        to.varint(match format {
            Format::Plain => self.tables.string(name),
            Format::Portable(_) => self.attribute(&Attribute::String(name.clone()), format)?,
        });
        Ok(())
    }

    fn replica_groups(
        &mut self,
        of: &DialectAttribute,
        format: Format,
        to: &mut Emitter,
    ) -> Result<(), String> {
        if format != Format::Plain {
            to.varint(vhlo::code::REPLICA_GROUPS);
            to.varint(self.parameter(of, "mesh", format)?);
            to.varint(self.parameter(of, "axes", format)?);
            return Ok(());
        }
        to.varint(stablehlo::REPLICA_GROUPS);
        to.varint(self.parameter(of, "mesh", format)?);
        match value_of(&of.parameters, "axes") {
            Some(Attribute::Array(axes)) => self.attributes(axes, format, to),
            _ => Err("a group of replicas has no `axes`".into()),
        }
    }
}
