//! What differs in the headers of two modules.

use std::borrow::Cow;

use tilewright::ir::{Module, ProgramShape, Shape};
use tilewright::text::print_header;

use super::changes::differing;
use super::side::with_explicit_layout;
use super::{Change, Compared, What};

impl Compared<'_, '_> {
    /// Lists what differs in the headers, but for names and tables of stacks.
    pub(super) fn header_changes(&self) -> Vec<Change> {
        let (a, b) = (self.a.module, self.b.module);
        let mut changes = Vec::new();
        differing(print_header(a), print_header(b), &mut changes);
        if let (Some(a), Some(b)) = (entry_layout(a), entry_layout(b)) {
            for (number, (a, b)) in a.parameters.iter().zip(&b.parameters).enumerate() {
                let name = format!("entry_computation_layout, parameter {number}");
                changes.extend(layout_change(name, a, b));
            }
            let name = "entry_computation_layout, result";
            changes.extend(layout_change(name.to_owned(), &a.result, &b.result));
        }
        changes
    }
}

/// Returns the layouts of the entry: those of its instructions if the header has none.
fn entry_layout(module: &Module) -> Option<Cow<'_, ProgramShape>> {
    if let Some(layout) = &module.header.entry_layout {
        return Some(Cow::Borrowed(layout));
    }
    let entry = module.computation(module.entry()?);
    let parameters = entry.parameters().iter().map(|&id| module.shape(id).clone()).collect();
    let result = module.shape(entry.root()?).clone();
    Some(Cow::Owned(ProgramShape { parameters, result }))
}

/// Returns the difference of two layouts of one shape. A difference of dims is one of the
/// instructions, and told of there.
fn layout_change(name: String, a: &Shape, b: &Shape) -> Option<Change> {
    let differ = a.without_layout() == b.without_layout()
        && with_explicit_layout(a) != with_explicit_layout(b);
    differ.then(|| Change::new(What::Layout, name, Some(a.to_string()), Some(b.to_string())))
}
