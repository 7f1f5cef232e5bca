//! The difference of two modules with names and places, for people and for JSON.

use serde::Serialize;
use tilewright::Loaded;
use tilewright::ir::{CompId, InstId, Module};
use tilewright::text::span::LineIndex;
use tilewright::text::{SourceMap, print_instruction};

use super::{Change, ComputationDiff, DiffOptions, Lone, ModuleDiff, Pair, diff};

/// The differences of two modules.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct DiffReport {
    /// Whether nothing differs but names and order.
    pub same: bool,
    /// The first module.
    pub a: ModuleName,
    /// The second module.
    pub b: ModuleName,
    /// How many instructions there are of each kind.
    pub counts: Counts,
    /// What differs in the header.
    pub header: Vec<Change>,
    /// The computations that differ: the entry first, then callers before callees.
    pub computations: Vec<ComputationChanges>,
    /// Instructions that stand in another computation than before.
    pub moved: Vec<ChangedInstruction>,
}

/// Where a module comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ModuleName {
    /// The file.
    pub source: String,
    /// Its name.
    pub module: String,
}

/// Numbers of instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Counts {
    /// Those that do not differ from their partners.
    pub unchanged: usize,
    /// Those that differ.
    pub changed: usize,
    /// Those that only the second module has.
    pub added: usize,
    /// Those that only the first module has.
    pub removed: usize,
    /// Those that stand in another computation.
    pub moved: usize,
}

/// What differs in a computation.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ComputationChanges {
    /// Its name in the first module; `None` if it was added.
    pub a: Option<String>,
    /// Its name in the second module; `None` if it was removed.
    pub b: Option<String>,
    /// What differs in the computation as a whole.
    pub changes: Vec<Change>,
    /// How many instructions do not differ.
    pub unchanged: usize,
    /// Instructions that differ.
    pub changed: Vec<ChangedInstruction>,
    /// Instructions of the first module alone.
    pub removed: Vec<LoneInstruction>,
    /// Instructions of the second module alone.
    pub added: Vec<LoneInstruction>,
}

/// Two instructions that belong together and differ.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ChangedInstruction {
    /// That of the first module.
    pub a: NamedInstruction,
    /// That of the second module.
    pub b: NamedInstruction,
    /// What differs.
    pub changes: Vec<Change>,
}

/// An instruction that one module has alone.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LoneInstruction {
    /// The instruction.
    #[serde(flatten)]
    pub instruction: NamedInstruction,
    /// The instruction of the other module that computes the same value, if there is one.
    pub same_as: Option<String>,
}

/// An instruction.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct NamedInstruction {
    /// Its name.
    pub name: String,
    /// The name of its computation.
    pub computation: String,
    /// The instruction without metadata and large constants.
    pub text: String,
    /// Its effect in words, if it only moves or renames elements; `None` for other ops.
    pub meaning: Option<String>,
    /// The line of the file, from 1; `None` if the file is no HLO text.
    pub line: Option<usize>,
    #[serde(skip)]
    pub(super) id: InstId,
}

impl DiffReport {
    /// Compares two modules.
    pub fn new(a: &Loaded, b: &Loaded, options: &DiffOptions) -> Self {
        Self::of(&diff(&a.module, &b.module, options), a, b)
    }

    /// Names what differs.
    pub fn of(found: &ModuleDiff, a: &Loaded, b: &Loaded) -> Self {
        let names = [Names::new(a), Names::new(b)];
        let differing = found.computations.iter().filter(|of| !of.is_same());
        Self {
            same: found.is_same(),
            a: module_name(a),
            b: module_name(b),
            counts: counts(found),
            header: found.header.clone(),
            computations: differing.map(|of| computation(of, &names)).collect(),
            moved: found.moved.iter().map(|pair| changed(pair, &names)).collect(),
        }
    }

    /// Returns how the modules differ, in one line.
    pub fn summary(&self) -> String {
        let Counts { unchanged, changed, added, removed, moved } = self.counts;
        if self.same {
            let instructions = tilewright::report::counted(unchanged, "instruction");
            return format!("same: {instructions} in both");
        }
        let mut parts = vec![format!("{unchanged} unchanged")];
        let more = [(changed, "changed"), (added, "added"), (removed, "removed"), (moved, "moved")];
        let present = more.iter().filter(|(count, _)| *count > 0);
        parts.extend(present.map(|(count, what)| format!("{count} {what}")));
        if !self.header.is_empty() {
            parts.push("another header".to_owned());
        }
        format!("different: {}", parts.join(", "))
    }
}

fn counts(found: &ModuleDiff) -> Counts {
    let sum = |count: fn(&ComputationDiff) -> usize| found.computations.iter().map(count).sum();
    Counts {
        unchanged: sum(|of| of.unchanged),
        changed: sum(|of| of.changed.len()),
        added: sum(|of| of.added.len()),
        removed: sum(|of| of.removed.len()),
        moved: found.moved.len(),
    }
}

fn module_name(loaded: &Loaded) -> ModuleName {
    ModuleName { source: loaded.source.name.clone(), module: loaded.module.name.to_string() }
}

fn computation(of: &ComputationDiff, names: &[Names<'_>; 2]) -> ComputationChanges {
    let [a, b] = names;
    let name = |names: &Names<'_>, id: Option<CompId>| {
        id.map(|id| names.module.computation(id).name().to_owned())
    };
    let lone = |lone: &Lone, own: &Names<'_>, other: &Names<'_>| LoneInstruction {
        instruction: own.instruction(lone.id),
        same_as: lone.same_as.map(|id| other.module.name_of(id).to_owned()),
    };
    ComputationChanges {
        a: name(a, of.a),
        b: name(b, of.b),
        changes: of.changes.clone(),
        unchanged: of.unchanged,
        changed: of.changed.iter().map(|pair| changed(pair, names)).collect(),
        removed: of.removed.iter().map(|of| lone(of, a, b)).collect(),
        added: of.added.iter().map(|of| lone(of, b, a)).collect(),
    }
}

fn changed(pair: &Pair, [a, b]: &[Names<'_>; 2]) -> ChangedInstruction {
    let changes = pair.changes.clone();
    ChangedInstruction { a: a.instruction(pair.a), b: b.instruction(pair.b), changes }
}

/// What names and places are looked up in.
struct Names<'l> {
    module: &'l Module,
    spans: &'l SourceMap,
    lines: LineIndex<'l>,
}

impl<'l> Names<'l> {
    fn new(loaded: &'l Loaded) -> Self {
        let lines = LineIndex::new(&loaded.source.text);
        Self { module: &loaded.module, spans: &loaded.spans, lines }
    }

    fn instruction(&self, id: InstId) -> NamedInstruction {
        let parent = self.module.instruction(id).parent();
        let computation = parent.map_or("", |parent| self.module.computation(parent).name());
        let span = self.spans.instruction(id);
        NamedInstruction {
            name: self.module.name_of(id).to_owned(),
            computation: computation.to_owned(),
            text: print_instruction(self.module, id),
            meaning: tilewright::report::meaning(self.module, id),
            line: span.map(|span| self.lines.at(span.range().start).line),
            id,
        }
    }
}
