//! Making kernels piece by piece.

use smol_str::SmolStr;
use tilewright_ir::ElementType;

use super::{Buffer, BufferId, Function, FunctionId, IndexId, Kernel, Register, RegisterId, Space};

/// Adds buffers, registers and indices to a kernel, and finds them names.
#[derive(Clone, Debug, Default)]
pub(crate) struct Build {
    kernel: Kernel,
}

impl Build {
    pub(crate) fn new(name: &str, target: &str) -> Self {
        // Names of kernels and targets stand between blanks.
        let word = |name: &str| -> SmolStr {
            let word: String = name.split_whitespace().collect::<Vec<_>>().join("_");
            if word.is_empty() { "_".into() } else { word.into() }
        };
        let kernel = Kernel { name: word(name), target: word(target), ..Kernel::default() };
        Self { kernel }
    }

    pub(crate) fn buffer(
        &mut self,
        name: &str,
        space: Space,
        element_type: ElementType,
        len: u64,
    ) -> BufferId {
        let name = self.name(name);
        self.kernel.buffers.push(Buffer { name, space, element_type, len });
        BufferId(self.kernel.buffers.len() - 1)
    }

    pub(crate) fn register(
        &mut self,
        name: &str,
        element_type: ElementType,
        len: u64,
    ) -> RegisterId {
        let name = self.name(name);
        self.kernel.registers.push(Register { name, element_type, len });
        RegisterId(self.kernel.registers.len() - 1)
    }

    pub(crate) fn index(&mut self, name: &str) -> IndexId {
        let name = self.name(name);
        self.kernel.indices.push(name);
        IndexId(self.kernel.indices.len() - 1)
    }

    pub(crate) fn function(&mut self, mut function: Function) -> FunctionId {
        function.name = self.name(&function.name);
        self.kernel.functions.push(function);
        FunctionId(self.kernel.functions.len() - 1)
    }

    pub(crate) fn finish(self, body: Vec<super::Statement>) -> Kernel {
        Kernel { body, ..self.kernel }
    }

    /// The name, or the name with the first number that makes it new.
    fn name(&self, wanted: &str) -> SmolStr {
        let legal: String =
            wanted.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let kernel = &self.kernel;
        let taken = |name: &str| {
            RESERVED.contains(&name)
                || kernel.buffers.iter().any(|buffer| buffer.name == name)
                || kernel.registers.iter().any(|register| register.name == name)
                || kernel.functions.iter().any(|function| function.name == name)
                || kernel.indices.iter().any(|index| index == name)
        };
        let starts = legal.starts_with(|c: char| c.is_ascii_alphabetic());
        let first = if starts { legal } else { format!("v{legal}") };
        if !taken(&first) {
            return first.into();
        }
        let numbered = (0u64..).map(|number| format!("{first}{number}")).find(|name| !taken(name));
        numbered.unwrap_or(first).into()
    }
}

/// Words that begin statements and values.
const RESERVED: &[&str] = &[
    "for",
    "when",
    "stream",
    "copy",
    "wait",
    "store",
    "load",
    "gather",
    "each",
    "scalar",
    "splat",
    "positions",
    "call",
    "fold",
    "spread",
    "part",
    "under",
    "min",
    "p",
    "where",
    "else",
    "of",
    "in",
    "by",
    "at",
    "from",
    "fn",
    "return",
    "kernel",
    "out",
    "vmem",
    "workspace",
    "twice",
];
