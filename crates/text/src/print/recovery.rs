//! Writes how lost arrays of the original program are recovered from others.

use tilewright_ir::Module;
use tilewright_ir::metadata::{MAX_RECOVERY_DEPTH, RecoveryTable};

use super::metadata::{attribute, push_original_array};
use super::{PrintError, Printer};

impl Printer<'_> {
    /// Appends `, origin_recovery_table={...}`, a line for each array, unless it is empty.
    pub(super) fn recovery_table(&mut self, table: &RecoveryTable) -> Result<(), PrintError> {
        if table.is_empty() {
            return Ok(());
        }
        if self.recovery_depth >= MAX_RECOVERY_DEPTH {
            return Err(PrintError::RecoveryDepth);
        }
        attribute(self.out, "origin_recovery_table").push_str("{\n");
        for (lost, recovery) in table {
            self.begin_line();
            self.out.push_str("  ");
            push_original_array(self.out, lost);
            self.out.push_str(" : ");
            push_original_array(self.out, &recovery.replacement);
            if let Some(module) = &recovery.module {
                self.recovery_module(module)?;
            }
            self.out.push('\n');
        }
        self.begin_line();
        self.out.push('}');
        Ok(())
    }

    /// Returns the text of a module as a string that has lines.
    fn recovery_module(&mut self, module: &Module) -> Result<(), PrintError> {
        let mut text = String::new();
        let mut printer = Printer::new(&mut text, module, self.options);
        printer.recovery_depth = self.recovery_depth + 1;
        printer.module()?;
        self.out.push_str(",\n");
        self.begin_line();
        self.out.push_str("  \"\n");
        for part in text.split_inclusive(['"', '\\']) {
            let plain = part.trim_end_matches(['"', '\\']);
            self.out.push_str(plain);
            if plain.len() < part.len() {
                self.out.push('\\');
            }
            self.out.push_str(part.get(plain.len()..).unwrap_or(""));
        }
        self.begin_line();
        self.out.push_str("  \"");
        Ok(())
    }
}
