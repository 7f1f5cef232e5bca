//! The difference of two modules as text, by computation, with carets in both texts.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use tilewright::Loaded;
use tilewright::text::Span;
use tilewright::text::part::{Part, part};
use tilewright::text::render::{Renderer, Shown};
use tilewright::text::span::LineIndex;

use super::report::{
    ChangedInstruction, ComputationChanges, DiffReport, LoneInstruction, NamedInstruction,
};
use super::{Change, What};

/// The style of what only the first module has, of what only the second has, and of headings.
const REMOVED: Style = AnsiColor::Red.on_default();
const ADDED: Style = AnsiColor::Green.on_default();
const HEADING: Style = Style::new().bold();

impl DiffReport {
    /// Writes at most `limit` differences, with carets in the texts that the modules were read
    /// from, and the summary last. `colour` is for terminals.
    pub fn text(&self, a: &Loaded, b: &Loaded, limit: usize, colour: bool) -> String {
        let sources = [Source::new(a), Source::new(b)];
        let mut text = Text { out: String::new(), sources, colour, left: limit, left_out: 0 };
        text.report(self);
        text.out
    }
}

/// A change in one line: `operand 1: x -> y`.
pub(super) fn line(change: &Change) -> String {
    let Change { what, name, before, after, same_value } = change;
    let what = match what {
        What::Op => "op",
        What::Operand => "operand",
        What::Value => "value",
        What::Attribute => "",
        What::Shape => "shape",
        What::Layout => "layout",
        What::Sharding => "sharding",
        What::ControlPredecessors => "control-predecessors",
        What::Metadata => "metadata",
        What::Root => "root",
    };
    let space = if what.is_empty() || name.is_empty() { "" } else { " " };
    let side = |text: &Option<String>| shortened(text.as_deref().unwrap_or("(none)"));
    // Another instruction of the same name.
    let other = if what == "root" && before == after { "another " } else { "" };
    let same = if *same_value { ", of the same value" } else { "" };
    format!("{what}{space}{name}: {} -> {other}{}{same}", side(before), side(after))
}

/// The most characters of a value that are shown.
const SHOWN: usize = 200;

fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// A module with the text that it was read from.
struct Source<'l> {
    loaded: &'l Loaded,
    lines: LineIndex<'l>,
}

impl<'l> Source<'l> {
    fn new(loaded: &'l Loaded) -> Self {
        Self { loaded, lines: LineIndex::new(&loaded.source.text) }
    }

    /// Returns an instruction with the place of a change in it.
    fn shown<'s>(
        &'s self,
        instruction: &'s NamedInstruction,
        change: Option<&Change>,
    ) -> Shown<'s> {
        let wanted = change.and_then(part_of);
        let within = |source: &str, span: Span| {
            wanted.and_then(|wanted| part(source, span, wanted)).unwrap_or(span)
        };
        let name = self.loaded.source.name.as_str();
        let source: &str = &self.loaded.source.text;
        match self.loaded.spans.instruction(instruction.id) {
            Some(span) => {
                let span = within(source, span);
                Shown::Place { name, source, span, at: self.lines.at(span.range().start) }
            }
            None => {
                let text = instruction.text.as_str();
                Shown::Printed { name, text, span: within(text, Span::new(0, text.len())) }
            }
        }
    }
}

/// Returns the part of an instruction that a change is in.
pub(super) fn part_of(change: &Change) -> Option<Part<'_>> {
    match change.what {
        What::Op => Some(Part::Opcode),
        What::Operand => change.name.parse().ok().map(Part::Operand),
        What::Value => Some(Part::Arguments),
        What::Attribute if change.name == "parameter_number" => Some(Part::Arguments),
        What::Attribute => Some(Part::Attribute(&change.name)),
        What::Shape | What::Layout => Some(Part::Shape),
        What::Sharding => Some(Part::Attribute("sharding")),
        What::ControlPredecessors => Some(Part::Attribute("control-predecessors")),
        What::Metadata => Some(Part::Attribute("metadata")),
        What::Root => None,
    }
}

struct Text<'l> {
    out: String,
    sources: [Source<'l>; 2],
    colour: bool,
    /// How many differences may still be written.
    left: usize,
    left_out: usize,
}

impl Text<'_> {
    fn report(&mut self, report: &DiffReport) {
        if !report.same {
            self.styled(REMOVED, &format!("--- {}", report.a.source));
            self.styled(ADDED, &format!("+++ {}", report.b.source));
        }
        if !report.header.is_empty() {
            self.heading("header");
            self.changes(&report.header);
        }
        for computation in &report.computations {
            self.computation(computation);
        }
        self.moved(&report.moved);
        if self.left_out > 0 {
            let more = tilewright::report::counted(self.left_out, "more difference");
            self.heading(&format!("... and {more}"));
        }
        if !self.out.is_empty() {
            self.out.push('\n');
        }
        let summary = report.summary();
        self.styled(HEADING, &summary);
    }

    fn computation(&mut self, of: &ComputationChanges) {
        let (name, counts) = heading(of);
        let colon = if counts.is_empty() { "" } else { ": " };
        self.heading(&format!("{name}{colon}{counts}"));
        self.changes(&of.changes);
        self.lone('-', REMOVED, &of.removed);
        self.lone('+', ADDED, &of.added);
        for pair in &of.changed {
            if self.may_write() {
                self.changed(pair);
            }
        }
    }

    fn lone(&mut self, sign: char, style: Style, lone: &[LoneInstruction]) {
        let is_alike = |x: &LoneInstruction, y: &LoneInstruction| {
            tuple_taken(x).is_some_and(|tuple| tuple_taken(y) == Some(tuple))
        };
        for run in lone.chunk_by(is_alike) {
            match (run, run.first().and_then(tuple_taken)) {
                ([_, _, _, ..], Some(tuple)) if self.may_write() => {
                    let text = format!("{sign} {} elements of {tuple}", run.len());
                    self.styled(style, &format!("{text}{}", lines(run)));
                }
                ([_, _, _, ..], Some(_)) => {}
                _ => self.each_lone(sign, style, run),
            }
        }
    }

    fn each_lone(&mut self, sign: char, style: Style, lone: &[LoneInstruction]) {
        for LoneInstruction { instruction, same_as } in lone {
            if !self.may_write() {
                continue;
            }
            let mut notes: Vec<String> = instruction.meaning.clone().into_iter().collect();
            notes.extend(instruction.line.map(|line| format!("line {line}")));
            notes.extend(same_as.as_ref().map(|name| format!("same value as {name}")));
            let comment = if notes.is_empty() { "" } else { "  // " };
            let text = shortened(&instruction.text);
            self.styled(style, &format!("{sign} {text}{comment}{}", notes.join(", ")));
        }
    }

    fn changed(&mut self, pair: &ChangedInstruction) {
        let [a, b] = &self.sources;
        let change = pair.changes.first();
        let (a, b) = (a.shown(&pair.a, change), b.shown(&pair.b, change));
        let notes: Vec<String> = pair.changes.iter().map(line).collect();
        let renderer = Renderer::new().with_colour(self.colour);
        let drawn = renderer.compared("changed", &title(pair), [&a, &b], &notes);
        self.out.push_str(&drawn);
        self.out.push('\n');
    }

    fn moved(&mut self, moved: &[ChangedInstruction]) {
        let mut between = None;
        for pair in moved {
            if !self.may_write() {
                continue;
            }
            let computations = (&pair.a.computation, &pair.b.computation);
            if between != Some(computations) {
                self.heading(&format!("moved from {} to {}", computations.0, computations.1));
                between = Some(computations);
            }
            let lines = pair.a.line.zip(pair.b.line);
            let lines = lines.map(|(from, to)| format!("  // line {from} -> {to}"));
            let text = shortened(&pair.b.text);
            let _ = writeln!(self.out, "> {text}{}", lines.unwrap_or_default());
            for change in &pair.changes {
                let _ = writeln!(self.out, "      {}", line(change));
            }
        }
    }

    fn changes(&mut self, changes: &[Change]) {
        for change in changes {
            if self.may_write() {
                let _ = writeln!(self.out, "  {}", line(change));
            }
        }
    }

    /// Counts a difference, and checks whether it is within the limit.
    fn may_write(&mut self) -> bool {
        if self.left == 0 {
            self.left_out += 1;
            return false;
        }
        self.left -= 1;
        true
    }

    fn heading(&mut self, text: &str) {
        if !self.out.is_empty() {
            self.out.push('\n');
        }
        self.styled(HEADING, text);
    }

    fn styled(&mut self, style: Style, text: &str) {
        // Writing to a string cannot fail.
        let _ = match self.colour {
            true => writeln!(self.out, "{style}{text}{style:#}"),
            false => writeln!(self.out, "{text}"),
        };
    }
}

/// The tuple that an instruction takes an element of. Passes that take tuples apart and put them
/// together again add hundreds of these in a row, which say little one by one.
fn tuple_taken(lone: &LoneInstruction) -> Option<&str> {
    let (_, rest) = lone.instruction.text.split_once(" get-tuple-element(")?;
    rest.split_once(')').map(|(tuple, _)| tuple)
}

/// The lines of the first and the last instruction of several, as a comment.
fn lines(of: &[LoneInstruction]) -> String {
    let line = |lone: Option<&LoneInstruction>| lone.and_then(|lone| lone.instruction.line);
    match (line(of.first()), line(of.last())) {
        (Some(first), Some(last)) if first == last => format!("  // line {first}"),
        (Some(first), Some(last)) => format!("  // lines {first} to {last}"),
        _ => String::new(),
    }
}

/// The names of two instructions, once if they are equal.
pub(super) fn title(pair: &ChangedInstruction) -> String {
    let (a, b) = (&pair.a.name, &pair.b.name);
    if a == b { a.clone() } else { format!("{a} -> {b}") }
}

/// The name of a computation, and how many instructions of each kind it has.
pub(super) fn heading(of: &ComputationChanges) -> (String, String) {
    let name = match (&of.a, &of.b) {
        (Some(a), Some(b)) if a == b => format!("computation {a}"),
        (Some(a), Some(b)) => format!("computation {a} -> {b}"),
        (Some(a), None) => format!("computation {a}, removed"),
        (None, b) => format!("computation {}, added", b.as_deref().unwrap_or_default()),
    };
    let counts = [
        (of.unchanged, "unchanged"),
        (of.changed.len(), "changed"),
        (of.removed.len(), "removed"),
        (of.added.len(), "added"),
    ];
    let present = counts.iter().filter(|(count, _)| *count > 0);
    let counts: Vec<String> = present.map(|(count, what)| format!("{count} {what}")).collect();
    (name, counts.join(", "))
}
