//! The difference of two modules as one page, side by side.

use askama::Template;
use tilewright::text::Span;
use tilewright::text::part::part;

use super::Change;
use super::report::{
    ChangedInstruction, ComputationChanges, DiffReport, LoneInstruction, ModuleName,
    NamedInstruction,
};
use super::text::{heading, line, part_of};

/// The page; it refers to nothing outside of itself.
#[derive(Template)]
#[template(path = "diff.html")]
struct Page<'r> {
    summary: String,
    a: &'r ModuleName,
    b: &'r ModuleName,
    sections: Vec<Section>,
    left_out: usize,
}

/// The header, a computation, or what moved.
#[derive(Default)]
struct Section {
    title: String,
    faint: String,
    notes: Vec<String>,
    rows: Vec<Row>,
}

/// An instruction, two that belong together, or what differs in them.
struct Row {
    a: Option<Side>,
    b: Option<Side>,
    notes: Vec<String>,
}

/// The text of an instruction; a part of it is marked.
struct Side {
    before: String,
    marked: String,
    after: String,
    place: String,
}

impl DiffReport {
    /// Writes at most `limit` differences as an HTML page.
    pub fn html(&self, limit: usize) -> String {
        let mut page = Pages { left: limit, left_out: 0 };
        let mut sections = Vec::new();
        if !self.header.is_empty() {
            let notes = page.notes(&self.header);
            sections.push(Section { title: "header".to_owned(), notes, ..Section::default() });
        }
        sections.extend(self.computations.iter().map(|of| page.computation(of)));
        if !self.moved.is_empty() {
            let title = "moved to other computations".to_owned();
            let rows = page.pairs(&self.moved);
            sections.push(Section { title, rows, ..Section::default() });
        }
        let (summary, left_out) = (self.summary(), page.left_out);
        let page = Page { summary, a: &self.a, b: &self.b, sections, left_out };
        // Writing to a string fails only if a value cannot be displayed, and all here are texts.
        page.render().unwrap_or_default()
    }
}

/// Makes the rows, as long as there is room.
struct Pages {
    left: usize,
    left_out: usize,
}

impl Pages {
    fn has_room(&mut self) -> bool {
        let has_room = self.left > 0;
        self.left = self.left.saturating_sub(1);
        self.left_out += usize::from(!has_room);
        has_room
    }

    fn notes(&mut self, changes: &[Change]) -> Vec<String> {
        changes.iter().filter(|_| self.has_room()).map(line).collect()
    }

    fn computation(&mut self, of: &ComputationChanges) -> Section {
        let (title, faint) = heading(of);
        let notes = self.notes(&of.changes);
        let mut rows = self.pairs(&of.changed);
        rows.extend(of.removed.iter().filter(|_| self.has_room()).map(|of| Row {
            a: Some(side(&of.instruction, None)),
            b: None,
            notes: notes_on(of),
        }));
        rows.extend(of.added.iter().filter(|_| self.has_room()).map(|of| Row {
            a: None,
            b: Some(side(&of.instruction, None)),
            notes: notes_on(of),
        }));
        Section { title, faint, notes, rows }
    }

    fn pairs(&mut self, pairs: &[ChangedInstruction]) -> Vec<Row> {
        let pairs = pairs.iter().filter(|_| self.has_room());
        let rows = pairs.map(|pair| {
            let change = pair.changes.first();
            let (a, b) = (Some(side(&pair.a, change)), Some(side(&pair.b, change)));
            Row { a, b, notes: pair.changes.iter().map(line).collect() }
        });
        rows.collect()
    }
}

fn notes_on(of: &LoneInstruction) -> Vec<String> {
    let same = of.same_as.iter().map(|name| format!("of the same value as {name}"));
    of.instruction.meaning.iter().cloned().chain(same).collect()
}

fn side(instruction: &NamedInstruction, change: Option<&Change>) -> Side {
    let text = instruction.text.as_str();
    let wanted = change.and_then(part_of);
    let whole = Span::new(0, text.len());
    let marked = wanted.and_then(|wanted| part(text, whole, wanted));
    let range = marked.map_or(0..0, Span::range);
    let cut = |range: std::ops::Range<usize>| text.get(range).unwrap_or_default().to_owned();
    let place = match instruction.line {
        Some(line) => format!("{}, line {line}", instruction.computation),
        None => instruction.computation.clone(),
    };
    Side {
        before: cut(0..range.start),
        marked: cut(range.clone()),
        after: cut(range.end..text.len()),
        place,
    }
}
