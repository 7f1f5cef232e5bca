//! Places in source text.

use tilewright_ir::{CompId, DiagnosticPlace, InstId, SecondaryMap};

/// A range of bytes of the source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The first byte.
    pub start: u32,
    /// The first byte past the end.
    pub end: u32,
}

impl Span {
    /// The range between two byte offsets. Sources are shorter than 4 GiB, so
    /// offsets fit.
    pub fn new(start: usize, end: usize) -> Self {
        let narrow = |offset| u32::try_from(offset).unwrap_or(u32::MAX);
        Self { start: narrow(start), end: narrow(end.max(start)) }
    }

    /// Returns the range as `usize`, for slicing.
    pub fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }

    /// Checks whether the span is empty.
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }
}

/// A place as people count it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LineColumn {
    /// The line, from 1.
    pub line: usize,
    /// The character of the line, from 1.
    pub column: usize,
}

impl LineColumn {
    /// The place after more bytes.
    fn after(self, bytes: &[u8]) -> Self {
        let newlines = bytes.iter().filter(|&&b| b == b'\n').count();
        let (column, tail) = match bytes.iter().rposition(|&b| b == b'\n') {
            Some(newline) => (1, bytes.get(newline + 1..).unwrap_or_default()),
            None => (self.column, bytes),
        };
        // Bytes that continue a character do not count.
        let characters = tail.iter().filter(|&&b| b & 0xC0 != 0x80).count();
        Self { line: self.line + newlines, column: column + characters }
    }
}

impl std::fmt::Display for LineColumn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// Line and column of a byte offset; of many, ask a [`LineIndex`].
pub fn line_column(source: &str, offset: usize) -> LineColumn {
    let before = source.as_bytes().get(..offset).unwrap_or(source.as_bytes());
    LineColumn { line: 1, column: 1 }.after(before)
}

/// The lines and columns of a source, to be asked for many offsets: each answer
/// costs the same, however long the source and its lines are.
#[derive(Clone, Debug)]
pub struct LineIndex<'s> {
    source: &'s str,
    /// The line and column of every [`STRIDE`]th byte.
    marks: Vec<LineColumn>,
}

const STRIDE: usize = 1024;

impl<'s> LineIndex<'s> {
    /// Looks through a source once.
    pub fn new(source: &'s str) -> Self {
        let mut at = LineColumn { line: 1, column: 1 };
        let marks = source.as_bytes().chunks(STRIDE).map(|chunk| {
            let mark = at;
            at = at.after(chunk);
            mark
        });
        Self { source, marks: marks.collect() }
    }

    /// Like [`line_column`].
    pub fn at(&self, offset: usize) -> LineColumn {
        let offset = offset.min(self.source.len());
        // An offset at the very end may have no chunk of its own.
        let chunk = (offset / STRIDE).min(self.marks.len().saturating_sub(1));
        let mark = self.marks.get(chunk).copied().unwrap_or(LineColumn { line: 1, column: 1 });
        mark.after(self.source.as_bytes().get(chunk * STRIDE..offset).unwrap_or_default())
    }
}

/// The positions of a parsed module's instructions and computations.
#[derive(Clone, Debug, Default)]
pub struct SourceMap {
    module: Span,
    instructions: SecondaryMap<InstId, Span>,
    computations: SecondaryMap<CompId, Span>,
}

impl SourceMap {
    /// Returns the name of the module; `None` if the text has no header.
    pub fn module(&self) -> Option<Span> {
        Some(self.module).filter(|span| !span.is_empty())
    }

    /// Returns the span from the name of an instruction to the end of its own attributes;
    /// `None` if it does not come from text.
    pub fn instruction(&self, id: InstId) -> Option<Span> {
        Some(self.instructions[id]).filter(|span| !span.is_empty())
    }

    /// Returns the name of a computation, or the brace that opens it if it has none; `None` if
    /// it does not come from text.
    pub fn computation(&self, id: CompId) -> Option<Span> {
        Some(self.computations[id]).filter(|span| !span.is_empty())
    }

    /// Returns the position of a diagnostic's place, if it has one.
    pub fn place(&self, place: DiagnosticPlace) -> Option<Span> {
        match place {
            DiagnosticPlace::Module => self.module(),
            DiagnosticPlace::Computation(id) => self.computation(id),
            DiagnosticPlace::Instruction(id) => self.instruction(id),
        }
    }

    pub(crate) fn reserve(&mut self, instructions: usize) {
        self.instructions.reserve(instructions);
    }

    pub(crate) fn set_module(&mut self, span: Span) {
        self.module = span;
    }

    pub(crate) fn set_instruction(&mut self, id: InstId, span: Span) {
        self.instructions.set(id, span);
    }

    pub(crate) fn set_computation(&mut self, id: CompId, span: Span) {
        self.computations.set(id, span);
    }
}
