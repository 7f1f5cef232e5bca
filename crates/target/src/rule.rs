//! The valid values of a key in a target file.

use serde::de::DeserializeOwned;
use toml::Value;

use crate::programs::ProgramTime;
use crate::reductions::Reductions;
use crate::slow_ops::SlowOps;

/// The values that one key accepts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rule {
    /// A string that is not empty.
    Text,
    /// The name of an [`Alignment`](crate::Alignment).
    Alignment,
    /// True or false.
    Flag,
    /// A whole number from 1 to this.
    Count(i64),
    /// A power of two between these.
    PowerOfTwo(i64, i64),
    /// Something per cycle: a number that can be divided by.
    Rate,
    /// Cycles: a number that may be zero.
    Cost,
    /// A quotient of times: a number from 1 on.
    Factor,
    /// A table of [`Reductions`]; a file may leave it out.
    Reductions,
    /// A list of [`ProgramTime`]; a file may leave it out.
    Programs,
    /// A list of [`SlowOps`]; a file may leave it out.
    SlowOps,
}

/// The largest number of a rate or cost: far past any machine, yet small
/// enough that no sum of costs becomes infinite.
const MAX: f64 = 1e12;
/// The largest quotient of times.
const MAX_FACTOR: f64 = 1000.0;
/// The smallest rate.
const MIN_RATE: f64 = 1e-6;

impl Rule {
    /// Returns the error of `value`, as the end of a sentence; `None` if it is valid.
    pub(crate) fn fault(self, value: &Value) -> Option<String> {
        match self {
            Self::Reductions => return read(value, "table of reductions", Reductions::fault),
            Self::Programs => {
                return read(value, "list of programs", |times: &Vec<_>| ProgramTime::fault(times));
            }
            Self::SlowOps => {
                return read(value, "list of ops", |list: &Vec<_>| SlowOps::fault(list));
            }
            _ => {}
        }
        let good = match self {
            Self::Text => value.as_str().is_some_and(|s| !s.trim().is_empty()),
            Self::Alignment => matches!(value.as_str(), Some("none" | "tiles")),
            Self::Flag => value.as_bool().is_some(),
            Self::Count(max) => value.as_integer().is_some_and(|n| (1..=max).contains(&n)),
            Self::PowerOfTwo(min, max) => value
                .as_integer()
                .is_some_and(|n| (min..=max).contains(&n) && n.unsigned_abs().is_power_of_two()),
            Self::Rate => number(value).is_some_and(|x| (MIN_RATE..=MAX).contains(&x)),
            Self::Cost => number(value).is_some_and(|x| (0.0..=MAX).contains(&x)),
            Self::Factor => number(value).is_some_and(|x| (1.0..=MAX_FACTOR).contains(&x)),
            Self::Reductions | Self::Programs | Self::SlowOps => true,
        };
        (!good).then(|| format!("is {}; give {}", describe(value), self.wanted()))
    }

    /// Checks whether a file may leave the key out.
    pub(crate) fn is_optional(self) -> bool {
        matches!(self, Self::Reductions | Self::Programs | Self::SlowOps)
    }

    /// Returns the valid values, as the end of a sentence.
    pub(crate) fn wanted(self) -> String {
        match self {
            Self::Text => "a string that is not empty".to_owned(),
            Self::Alignment => "\"none\" or \"tiles\"".to_owned(),
            Self::Flag => "true or false".to_owned(),
            Self::Count(max) => format!("a whole number from 1 to {max}"),
            Self::PowerOfTwo(min, max) => format!("a power of two from {min} to {max}"),
            Self::Rate => format!("a number from {MIN_RATE} to {MAX}"),
            Self::Cost => format!("a number from 0 to {MAX}"),
            Self::Factor => format!("a number from 1 to {MAX_FACTOR}"),
            Self::Reductions => {
                "a table that `benches/calibrate.py` writes, or leave it out".to_owned()
            }
            Self::Programs => "a list of programs with their times, or leave it out".to_owned(),
            Self::SlowOps => "a list of ops with their times, or leave it out".to_owned(),
        }
    }
}

/// Returns what is wrong with a table or list, as the end of a sentence.
fn read<T: DeserializeOwned>(
    value: &Value,
    what: &str,
    fault: impl Fn(&T) -> Option<String>,
) -> Option<String> {
    match value.clone().try_into::<T>() {
        Ok(read) => fault(&read),
        Err(error) => Some(format!("is no {what}: {}", error.message())),
    }
}

/// Returns a number, written with a point or without; NaN is in no range.
#[expect(clippy::cast_precision_loss, reason = "only compared with a range")]
fn number(value: &Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|n| n as f64))
}

fn describe(value: &Value) -> String {
    match value {
        Value::Integer(n) => n.to_string(),
        Value::Float(x) => format!("{x:?}"),
        Value::Boolean(b) => b.to_string(),
        Value::String(s) => format!("the string \"{}\"", shorten(s)),
        Value::Datetime(_) => "a date".to_owned(),
        Value::Array(_) => "an array".to_owned(),
        Value::Table(_) => "a table".to_owned(),
    }
}

/// Returns the text on one short line.
pub(crate) fn shorten(text: &str) -> String {
    const LONGEST: usize = 40;
    let mut short: String = text.chars().take(LONGEST).flat_map(char::escape_debug).collect();
    if text.chars().nth(LONGEST).is_some() {
        short.push_str("...");
    }
    short
}
