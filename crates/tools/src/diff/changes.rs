//! What differs between two instructions that belong together.

use serde::Serialize;
use tilewright::ir::ops::attr::AttrValue;
use tilewright::ir::{CompId, InstId, Literal, Module, Op};
use tilewright::text::{print_attribute, print_constant, print_metadata};

use super::Compared;
use super::side::{
    Attributes, attributes, control_predecessors, placed_metadata, with_explicit_layout,
};

/// The part of an instruction that a [`Change`] is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum What {
    /// The opcode: another op stands in the same place.
    Op,
    /// An operand; [`Change::name`] is its number, from 0.
    Operand,
    /// The value of a constant.
    Value,
    /// An attribute of the op, of the instruction, of a computation or of the header; `name` is
    /// its name.
    Attribute,
    /// Element types or dims.
    Shape,
    /// The layout of the result in memory; the shapes are equal without it.
    Layout,
    /// A sharding.
    Sharding,
    /// The instructions that must run before.
    ControlPredecessors,
    /// Metadata, which is compared only if asked.
    Metadata,
    /// The root of a computation.
    Root,
}

/// One difference between two things that belong together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Change {
    /// The part that it is about.
    pub what: What,
    /// Which one of several: the number of an operand, the name of an attribute; else empty.
    pub name: String,
    /// The text in the first module; `None` if it has none.
    pub before: Option<String>,
    /// The text in the second module; `None` if it has none.
    pub after: Option<String>,
    /// Of operands and roots: whether both instructions compute the same value, as a duplicate
    /// does, or a fusion in place of what went into it.
    pub same_value: bool,
}

impl Change {
    pub(super) fn new(
        what: What,
        name: impl Into<String>,
        before: Option<String>,
        after: Option<String>,
    ) -> Self {
        Self { what, name: name.into(), before, after, same_value: false }
    }

    /// The same difference, seen from the other module.
    #[must_use]
    pub fn mirrored(self) -> Self {
        Self { before: self.after, after: self.before, ..self }
    }
}

impl Compared<'_, '_> {
    /// Lists what differs between an instruction of the first module and its partner.
    pub(super) fn changes(&self, x: InstId, y: InstId) -> Vec<Change> {
        let (a, b) = (self.a.module, self.b.module);
        let mut changes = Vec::new();
        self.operand_changes(x, y, &mut changes);
        if a.opcode(x) == b.opcode(y) {
            self.op_changes(x, y, &mut changes);
        } else {
            let name = |module: &Module, id| Some(module.opcode(id).name().to_owned());
            changes.push(Change::new(What::Op, "", name(a, x), name(b, y)));
        }
        self.shape_changes(x, y, &mut changes);
        let attributes_a = attributes(a, x, self.a.metadata);
        let attributes_b = attributes(b, y, self.b.metadata);
        differing(attributes_a, attributes_b, &mut changes);
        self.control_changes(x, y, &mut changes);
        if self.a.metadata {
            let text = |module, id| placed_metadata(module, id).map(|of| print_metadata(&of));
            let (before, after) = (text(a, x), text(b, y));
            if before != after {
                changes.push(Change::new(What::Metadata, "", before, after));
            }
        }
        changes.sort_by_key(|change| change.what);
        changes
    }

    fn operand_changes(&self, x: InstId, y: InstId, changes: &mut Vec<Change>) {
        let (of_x, of_y) = (self.a.module.operands(x), self.b.module.operands(y));
        let has_moved = self.is_moved(x, y);
        for at in 0..of_x.len().max(of_y.len()) {
            let (p, q) = (of_x.get(at).copied(), of_y.get(at).copied());
            let same_value = p.zip(q).is_some_and(|(p, q)| self.same_value(p, q));
            let is_same = p.zip(q).is_some_and(|(p, q)| self.matching.b_of(p) == Some(q));
            // What moved takes its operands through other parameters and fusions.
            if is_same || has_moved && same_value {
                continue;
            }
            let before = p.map(|id| self.a.module.name_of(id).to_owned());
            let after = q.map(|id| self.b.module.name_of(id).to_owned());
            let change = Change::new(What::Operand, at.to_string(), before, after);
            changes.push(Change { same_value, ..change });
        }
    }

    fn op_changes(&self, x: InstId, y: InstId, changes: &mut Vec<Change>) {
        let (a, b) = (self.a.module, self.b.module);
        if let (Op::Constant(of_a), Op::Constant(of_b)) = (a.op(x), b.op(y)) {
            if of_a != of_b {
                let (before, after) = values(of_a, of_b);
                changes.push(Change::new(What::Value, "", Some(before), Some(after)));
            }
            return;
        }
        if a.called(x).is_empty() && b.called(y).is_empty() && a.op(x) == b.op(y) {
            return;
        }
        let list = |op: &Op| {
            let mut list: Vec<(&'static str, AttrValue)> = Vec::new();
            op.for_each_attr(&mut |name, value| list.push((name, value)));
            list
        };
        let (of_a, of_b) = (list(a.op(x)), list(b.op(y)));
        let find = |of: &[(&'static str, AttrValue)], name: &str| {
            of.iter().find(|(other, _)| *other == name).map(|(_, value)| value.clone())
        };
        let only_b = of_b.iter().filter(|(name, _)| find(&of_a, name).is_none());
        for (name, _) in of_a.iter().chain(only_b) {
            let (before, after) = (find(&of_a, name), find(&of_b, name));
            if !self.attributes_agree(before.as_ref(), after.as_ref()) {
                let before = before.map(|value| print_attribute(a, &value));
                let after = after.map(|value| print_attribute(b, &value));
                changes.push(Change::new(What::Attribute, *name, before, after));
            }
        }
    }

    fn attributes_agree(&self, a: Option<&AttrValue>, b: Option<&AttrValue>) -> bool {
        match (a, b) {
            (Some(AttrValue::Computation(c)), Some(AttrValue::Computation(d))) => {
                self.computations_agree(*c, *d)
            }
            (Some(AttrValue::Computations(c)), Some(AttrValue::Computations(d))) => {
                c.len() == d.len() && c.iter().zip(d).all(|(&c, &d)| self.computations_agree(c, d))
            }
            _ => a == b,
        }
    }

    /// Checks whether two computations are partners or isomorphic.
    fn computations_agree(&self, c: CompId, d: CompId) -> bool {
        self.matching.computation_b(c) == Some(d) || self.a.body.get(&c) == self.b.body.get(&d)
    }

    fn shape_changes(&self, x: InstId, y: InstId, changes: &mut Vec<Change>) {
        let (of_x, of_y) = (self.a.module.shape(x), self.b.module.shape(y));
        if of_x == of_y {
            return;
        }
        let what = if of_x.without_layout() != of_y.without_layout() {
            What::Shape
        } else if with_explicit_layout(of_x) != with_explicit_layout(of_y) {
            What::Layout
        } else {
            return;
        };
        let shapes = (Some(of_x.to_string()), Some(of_y.to_string()));
        changes.push(Change::new(what, "", shapes.0, shapes.1));
    }

    fn control_changes(&self, x: InstId, y: InstId, changes: &mut Vec<Change>) {
        let of_x = control_predecessors(self.a.module, x);
        let mut of_y = control_predecessors(self.b.module, y);
        let mut partners: Vec<Option<InstId>> =
            of_x.iter().map(|&id| self.matching.b_of(id)).collect();
        partners.sort_unstable();
        of_y.sort_unstable();
        if partners.iter().copied().eq(of_y.iter().map(|&id| Some(id))) {
            return;
        }
        let names = |module: &Module, ids: &[InstId]| {
            let mut names: Vec<&str> = ids.iter().map(|&id| module.name_of(id)).collect();
            names.sort_unstable();
            (!names.is_empty()).then(|| format!("{{{}}}", names.join(", ")))
        };
        let (before, after) = (names(self.a.module, &of_x), names(self.b.module, &of_y));
        changes.push(Change::new(What::ControlPredecessors, "", before, after));
    }
}

/// Lists the attributes that differ, by name.
pub(super) fn differing(of_a: Attributes, of_b: Attributes, changes: &mut Vec<Change>) {
    if of_a == of_b {
        return;
    }
    let find = |of: &Attributes, name: &str| {
        of.iter().find(|(other, _)| other == name).map(|(_, text)| text.clone())
    };
    let only_b = of_b.iter().filter(|(name, _)| find(&of_a, name).is_none());
    for (name, _) in of_a.iter().chain(only_b) {
        let (before, after) = (find(&of_a, name), find(&of_b, name));
        if before != after {
            let (what, name) =
                if name == "sharding" { (What::Sharding, "") } else { (What::Attribute, &**name) };
            changes.push(Change::new(what, name, before, after));
        }
    }
}

/// Returns two constants that differ as texts that differ: of long ones, the first element that
/// does, with its index in row-major order.
fn values(a: &Literal, b: &Literal) -> (String, String) {
    let (text_a, text_b) = (print_constant(a), print_constant(b));
    if text_a != text_b {
        return (text_a, text_b);
    }
    let element = |of: &Literal, at: usize| -> Option<String> {
        let array = of.as_array()?;
        let one = array.data().gather(std::iter::once(at));
        let one = tilewright::ir::ArrayLiteral::new(array.element_type(), [], one).ok()?;
        Some(print_constant(&Literal::Array(one)))
    };
    let first = first_difference(a, b).and_then(|at| Some((at, element(a, at)?, element(b, at)?)));
    match first {
        Some((at, a, b)) => {
            (format!("{{...}}, element {at} is {a}"), format!("{{...}}, element {at} is {b}"))
        }
        None => (text_a, text_b),
    }
}

/// Finds the first element that differs by halving: blocks of elements are compared whole.
fn first_difference(a: &Literal, b: &Literal) -> Option<usize> {
    let (a, b) = (a.as_array()?, b.as_array()?);
    let (mut low, mut high) = (0, a.len().min(b.len()));
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if a.data().gather(low..middle) == b.data().gather(low..middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low < high).then_some(low)
}
