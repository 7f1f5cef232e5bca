//! Where a note is about, in the user's words.

use std::fmt;

use smol_str::SmolStr;
use tilewright_ir::metadata::OpMetadata;
use tilewright_ir::{InstId, Module};

/// Folders whose files a user did not write.
const INSTALLED: [&str; 2] = ["/site-packages/", "/dist-packages/"];

/// The part of a program that a note is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Place {
    /// The words of the note: framework name and source line of an instruction, else its name in
    /// the text; or of the first and the last instruction.
    pub text: String,
    /// The framework's name of the first instruction, such as `jit(step)/layer1/norm/add`; empty if
    /// it has none.
    pub op_name: SmolStr,
    /// The file and the line of the first instruction in what the user wrote, if that is known.
    pub source: Option<(SmolStr, i64)>,
}

impl Place {
    /// Returns the place of an instruction.
    pub fn of(module: &Module, id: InstId) -> Self {
        let name = module.name_of(id);
        let Some(metadata) = module.metadata(id) else { return format!("`{name}`").into() };
        let source = source(module, metadata);
        let op_name = metadata.op_name.clone();
        let known = if op_name.is_empty() { name } else { &op_name };
        let text = match &source {
            Some((file, line)) => format!("`{known}` ({file}:{line})"),
            None => format!("`{known}`"),
        };
        Self { text, op_name, source }
    }

    /// Returns the place from one to another, with the framework's name of the first.
    pub(crate) fn to(self, last: &Self) -> Self {
        if self.text == last.text {
            return self;
        }
        Self { text: format!("{} to {last}", self.text), ..self }
    }
}

/// Returns the file and line of an instruction: the innermost call that is not in an installed
/// package, if the calls are known, or else the innermost call.
fn source(module: &Module, metadata: &OpMetadata) -> Option<(SmolStr, i64)> {
    let tables = module.header.stack_tables.as_ref();
    let frames = tables.into_iter().flat_map(|tables| tables.sources_of(metadata.stack_frame_id));
    let mut innermost = None;
    for (file, line) in frames {
        if !INSTALLED.iter().any(|folder| file.contains(folder)) {
            return Some((file.into(), line));
        }
        innermost = innermost.or(Some((file, line)));
    }
    let stated = || {
        let file = metadata.source_file.clone();
        (!file.is_empty()).then_some((file, metadata.source_line))
    };
    innermost.map(|(file, line)| (file.into(), line)).or_else(stated)
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<String> for Place {
    fn from(text: String) -> Self {
        Self { text, ..Self::default() }
    }
}

impl From<&str> for Place {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}
