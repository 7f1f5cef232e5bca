//! Files to start a target of one's own from.

use std::fmt::Write as _;

use crate::file::{BASE, TargetError};
use crate::target::Target;

impl Target {
    /// Returns a target file that inherits every key from the built-in target of this name: each
    /// key stands in a comment with its meaning, the values that it takes and the one that it has.
    /// [`Target::from_toml`] reads it as that target.
    ///
    /// # Errors
    /// Returns an error if no built-in target has this name; the message lists their names.
    pub fn template(name: &str) -> Result<String, TargetError> {
        let target = Self::builtin(name)?;
        let values = toml::Table::try_from(&target).unwrap_or_default();
        let mut file = format!(
            "# A target with the values of the built-in target `{name}`. To make it your own, take the\n\
             # `#` away before a key and change its value. Every other key keeps the value of `{BASE}`.\n\
             {BASE} = \"{name}\"\n"
        );
        for ((key, rule), meaning) in Self::KEYS.iter().zip(Self::RULES).zip(Self::MEANINGS) {
            file.push('\n');
            for line in *meaning {
                let _ = writeln!(file, "# {}", line.trim());
            }
            let _ = writeln!(file, "# Give {}.", rule.wanted());
            if let Some(value) = values.get(*key).filter(|_| !rule.is_optional()) {
                let _ = writeln!(file, "#{key} = {value}");
            }
        }
        Ok(file)
    }
}
