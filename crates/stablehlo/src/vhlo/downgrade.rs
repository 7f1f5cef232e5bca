//! Operations of StableHLO as VHLO's of a version.

use std::sync::Arc;

use super::rules::{Conversion, Initial, Rules};
use super::table::{ROWS, Row};
use crate::bytecode::structures::{Field, dialect, list, number, string};
use crate::mlir::{
    Attribute, Attributes, DenseArray, DenseElements, DialectAttribute, Elements, Scalar, Sign,
    TensorType, Type, value_of,
};

/// The operation of VHLO that an operation of StableHLO becomes in a version.
pub(crate) struct Plan {
    row: &'static Row,
    /// The attributes of all versions of the operation.
    known: Vec<&'static str>,
    rules: Rules,
}

impl Plan {
    /// Returns the operation for the name without its dialect. `None`: the version has none.
    pub(crate) fn of(base: &str, version: (u32, u32)) -> Option<Self> {
        let of_base = |row: &&Row| row.name.rsplit_once("_v").is_some_and(|(name, _)| name == base);
        let all = ROWS.iter().filter(of_base);
        let known = all.clone().flat_map(|row| row.attributes.split_ascii_whitespace()).collect();
        let row = all.clone().find(|row| row.since <= version && version <= row.until)?;
        Some(Self { row, known, rules: Rules::of(base) })
    }

    /// The name with its version.
    pub(crate) fn name(&self) -> &'static str {
        self.row.name
    }

    /// Converts the attributes of an operation. An attribute of VHLO alone has the dialect `vhlo`.
    pub(crate) fn attributes(&self, attributes: &Attributes) -> Result<Attributes, String> {
        let mut converted = Attributes::new();
        for (name, value) in attributes {
            let group = self.rules.groups.iter().find(|group| group.attribute == name);
            if let Some(group) = group {
                let Attribute::Dialect(structure) = value else {
                    return Err(format!("the attribute `{name}` should be a structure"));
                };
                for (vhlo, name, field) in group.fields() {
                    converted.push((vhlo.into(), parameter(structure, name, field)?));
                }
            } else if self.rules.has_channel && name == "channel_handle" {
                let Attribute::Dialect(structure) = value else {
                    return Err("the attribute `channel_handle` should be a structure".into());
                };
                converted
                    .push(("channel_id".into(), parameter(structure, "handle", Field::Number)?));
            } else {
                converted.push((name.clone(), self.value(name, value)));
            }
        }
        self.add_initials(&mut converted)?;
        self.remove_newer(&mut converted)?;
        Ok(converted)
    }

    fn value(&self, name: &str, value: &Attribute) -> Attribute {
        if self.rules.conversion(name) == Some(Conversion::Unit) && *value == Attribute::Unit {
            return Attribute::Bool(true);
        }
        match (self.rules.initial(name), value) {
            (Some(Initial::OriginalApi), Attribute::Integer(version, _)) => api(*version),
            _ => value.clone(),
        }
    }

    /// Adds the attributes that StableHLO leaves out.
    fn add_initials(&self, attributes: &mut Attributes) -> Result<(), String> {
        for name in self.row.attributes.split_ascii_whitespace() {
            if value_of(attributes, name).is_some() {
                continue;
            }
            let in_algorithm =
                self.rules.groups.iter().any(|group| {
                    group.optional() && group.fields().any(|(field, ..)| field == name)
                });
            let value = match self.rules.initial(name) {
                Some(initial) => initial_value(initial, attributes)?,
                None if in_algorithm => Attribute::Type(Box::new(Type::None)),
                None if self.rules.drops_padding && name == "padding" => {
                    initial_value(Initial::Padding, attributes)?
                }
                None => return Err(format!("the attribute `{name}` is missing")),
            };
            attributes.push((name.into(), value));
        }
        Ok(())
    }

    /// Removes the attributes that newer versions have, if they say nothing.
    fn remove_newer(&self, attributes: &mut Attributes) -> Result<(), String> {
        let has = |name: &str| self.row.attributes.split_ascii_whitespace().any(|own| own == name);
        let newer = |name: &str| self.known.contains(&name) && !has(name);
        let all = attributes.clone();
        for (name, value) in all.iter().filter(|(name, _)| newer(name)) {
            let silent = match self.rules.initial(name) {
                Some(initial) => initial.is(value, &all),
                None => *value == list(Vec::new()),
            };
            if !silent {
                let message = format!("the attribute `{name}` needs a newer version of StableHLO");
                return Err(message);
            }
        }
        attributes.retain(|(name, _)| !newer(name));
        Ok(())
    }
}

/// The version of the interface of a custom call.
fn api(version: i128) -> Attribute {
    let version = i64::try_from(version).unwrap_or(i64::MAX);
    dialect("vhlo", "api_version", vec![("value".into(), number(version))])
}

/// Returns a parameter of a structure, or the value that its text leaves out.
fn parameter(structure: &DialectAttribute, name: &str, field: Field) -> Result<Attribute, String> {
    match (value_of(&structure.parameters, name), field) {
        (Some(value), _) => Ok(value.clone()),
        (None, Field::ListUnlessEmpty) => Ok(list(Vec::new())),
        (None, Field::NumberUnlessZero) => Ok(number(0)),
        (None, _) => Err(format!("`{}` has no parameter `{name}`", structure.name)),
    }
}

/// The value of an attribute that StableHLO leaves out.
fn initial_value(initial: Initial, attributes: &Attributes) -> Result<Attribute, String> {
    let default = |name: &str| vec![("value".into(), string(name))];
    Ok(match initial {
        Initial::False => Attribute::Bool(false),
        Initial::Zero => number(0),
        Initial::MinusOne => number(-1),
        Initial::EmptyArray | Initial::EmptyLayouts => Attribute::Array(Vec::new()),
        Initial::EmptyString | Initial::Config => string(""),
        Initial::EmptyDictionary => Attribute::Dictionary(Attributes::new()),
        Initial::EmptyConfig => empty_config(attributes),
        Initial::EmptyTensor => list(Vec::new()),
        Initial::Ones => list(vec![1; rank(attributes)?]),
        Initial::Falses => Attribute::DenseArray(DenseArray::Bool(vec![false; rank(attributes)?])),
        Initial::Padding => padding(rank(attributes)?),
        Initial::Precision => {
            let word = dialect("stablehlo", "precision", default("DEFAULT"));
            Attribute::Array(vec![word.clone(), word])
        }
        Initial::NoType => dialect("stablehlo", "comparison_type", default("NOTYPE")),
        Initial::OriginalApi => api(1),
        Initial::Accuracy => {
            let mode = dialect("stablehlo", "result_accuracy_mode", default("DEFAULT"));
            dialect("stablehlo", "result_accuracy", vec![("mode".into(), mode)])
        }
    })
}

/// Calls with typed parameters have a dictionary as their configuration.
fn empty_config(attributes: &Attributes) -> Attribute {
    /// The number of this interface.
    const TYPED: i128 = 4;
    match value_of(attributes, "api_version") {
        Some(version) if *version == api(TYPED) => Attribute::Dictionary(Attributes::new()),
        _ => string(""),
    }
}

/// The number of dims of a window.
fn rank(attributes: &Attributes) -> Result<usize, String> {
    let dims = ["window_dimensions", "input_spatial_dimensions"];
    match dims.iter().find_map(|name| value_of(attributes, name)) {
        Some(Attribute::DenseArray(DenseArray::I64(dims))) => Ok(dims.len()),
        _ => Err("the dims of the window are missing".into()),
    }
}

/// Pairs of zeros.
fn padding(rank: usize) -> Attribute {
    let dims = [i64::try_from(rank).ok(), Some(2)].into_iter().collect();
    let element = Scalar::Integer { bits: 64, sign: Sign::Signless };
    let ty = Type::Tensor(TensorType { dims, element, encoding: None });
    let bytes: Arc<[u8]> = vec![0; rank.saturating_mul(16)].into();
    Attribute::Dense(DenseElements { ty: Box::new(ty), elements: Elements::Bytes(bytes) })
}
