//! Builds kernels.

use rustc_hash::{FxHashMap, FxHashSet};
use smol_str::SmolStr;
use tilewright_ir::ElementType;

use super::{Buffer, BufferId, Function, FunctionId, IndexId, Kernel, Register, RegisterId, Space};

/// Adds buffers, registers and indices with unique names to a kernel.
#[derive(Clone, Debug, Default)]
pub(crate) struct Build {
    kernel: Kernel,
    taken: FxHashSet<SmolStr>,
    /// For each name, the first number that may make it unique.
    numbers: FxHashMap<SmolStr, u64>,
}

impl Build {
    pub(crate) fn new(name: &str, target: &str) -> Self {
        // In the text of a kernel, names are separated by blanks.
        let word = |name: &str| -> SmolStr {
            let word: String = name.split_whitespace().collect::<Vec<_>>().join("_");
            if word.is_empty() { "_".into() } else { word.into() }
        };
        let kernel = Kernel { name: word(name), target: word(target), ..Kernel::default() };
        Self { kernel, ..Self::default() }
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

    /// Returns the name, or the name with the first number that makes it unique.
    fn name(&mut self, wanted: &str) -> SmolStr {
        let legal: String =
            wanted.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let starts = legal.starts_with(|c: char| c.is_ascii_alphabetic());
        let first: SmolStr = if starts { legal } else { format!("v{legal}") }.into();
        if !RESERVED.contains(&first.as_str()) && self.taken.insert(first.clone()) {
            return first;
        }
        let number = self.numbers.entry(first.clone()).or_default();
        loop {
            let name: SmolStr = format!("{first}{number}").into();
            *number = number.saturating_add(1);
            if !RESERVED.contains(&name.as_str()) && self.taken.insert(name.clone()) {
                return name;
            }
        }
    }
}

/// Keywords that begin statements and values.
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
