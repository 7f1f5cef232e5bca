//! Which nodes an optimisation changed, and which notes explain them.

use std::collections::{HashMap, VecDeque};

use tilewright::Note;

use crate::picture::{Change, Node, Picture};

/// The most notes of a node. A name that is not unique may be that of many notes.
const MOST_NOTES: usize = 16;

/// Marks the nodes that differ between the pictures before and after, and gives them the numbers of
/// the notes on their place. Changed nodes that no note names get the notes of the nearest changed
/// ones that edges lead to.
pub(crate) fn mark(sides: &mut [Picture; 2], notes: &[Note]) {
    let [was, is] = sides;
    let before = changes(was, is, Change::Removed);
    let after = changes(is, was, Change::Added);
    for (picture, changes) in [(&mut *was, before), (&mut *is, after)] {
        for (node, change) in picture.nodes.iter_mut().zip(changes) {
            node.change = change;
        }
        name_notes(picture, notes);
        spread_notes(picture);
    }
    // New instructions may have no name in the framework: they stand where the old ones stood.
    hand_notes(was, is);
    hand_notes(is, was);
}

/// Gives changed nodes without notes those of the node of the same name in the other picture, or
/// those of the changed neighbours that an unchanged neighbour has there.
fn hand_notes(from: &Picture, to: &mut Picture) {
    let mut there: HashMap<Name<'_>, Vec<usize>> = HashMap::new();
    let mut add = |node, notes: &[usize]| {
        let all: &mut Vec<usize> = there.entry(name(node)).or_default();
        all.extend(notes.iter().take(MOST_NOTES.saturating_sub(all.len())));
    };
    for node in &from.nodes {
        add(node, &node.notes);
    }
    for edge in &from.edges {
        let [a, b] = [&from.nodes[edge.from], &from.nodes[edge.to]];
        for (same, changed) in [(a, b), (b, a)] {
            if same.change == Change::None {
                add(same, &changed.notes);
            }
        }
    }
    for notes in there.values_mut() {
        notes.sort_unstable();
        notes.dedup();
    }
    let mut found: Vec<Vec<usize>> = vec![Vec::new(); to.nodes.len()];
    let known = |node: &Node| there.get(&name(node)).cloned().unwrap_or_default();
    for (found, node) in found.iter_mut().zip(&to.nodes) {
        *found = known(node);
    }
    for edge in &to.edges {
        for (same, changed) in [(edge.from, edge.to), (edge.to, edge.from)] {
            if to.nodes[same].change == Change::None && found[changed].is_empty() {
                found[changed] = known(&to.nodes[same]);
            }
        }
    }
    for (node, found) in to.nodes.iter_mut().zip(found) {
        if node.change != Change::None && node.notes.is_empty() {
            node.notes = found;
        }
    }
    spread_notes(to);
}

/// What tells nodes apart: the names of the computation and of the instruction.
type Name<'a> = (&'a str, &'a str);

fn name(node: &Node) -> Name<'_> {
    (&node.computation, &node.name)
}

fn changes(picture: &Picture, other: &Picture, alone: Change) -> Vec<Change> {
    let same_name: HashMap<Name<'_>, &Node> =
        other.nodes.iter().map(|node| (name(node), node)).collect();
    let change = |node: &Node| match same_name.get(&name(node)) {
        Some(other) if other.text == node.text => Change::None,
        Some(other) if other.op == node.op => Change::Edited,
        // Another instruction that took the name.
        Some(_) | None => alone,
    };
    picture.nodes.iter().map(change).collect()
}

/// Gives changed nodes the notes whose place has their name or their name in the framework.
fn name_notes(picture: &mut Picture, notes: &[Note]) {
    let mut by_name: HashMap<&str, Vec<usize>> = HashMap::new();
    for (index, note) in notes.iter().enumerate() {
        for word in note.place.text.split('`').skip(1).step_by(2) {
            by_name.entry(word).or_default().push(index);
        }
    }
    for node in picture.nodes.iter_mut().filter(|node| node.change != Change::None) {
        let names = [node.name.as_str(), node.origin.op_name.as_str()];
        let found = names.iter().filter_map(|name| by_name.get(name));
        let mut found: Vec<usize> = found.flatten().copied().collect();
        found.sort_unstable();
        found.dedup();
        found.truncate(MOST_NOTES);
        node.notes = found;
    }
}

fn spread_notes(picture: &mut Picture) {
    let mut neighbours: Vec<Vec<usize>> = vec![Vec::new(); picture.nodes.len()];
    for edge in &picture.edges {
        neighbours[edge.from].push(edge.to);
        neighbours[edge.to].push(edge.from);
    }
    let noted = |node: &Node| !node.notes.is_empty();
    let all = picture.nodes.iter().enumerate();
    let mut queue: VecDeque<usize> = all.filter(|(_, n)| noted(n)).map(|(i, _)| i).collect();
    while let Some(index) = queue.pop_front() {
        let notes = picture.nodes[index].notes.clone();
        for &next in &neighbours[index] {
            let node = &mut picture.nodes[next];
            if node.change != Change::None && node.notes.is_empty() {
                node.notes.clone_from(&notes);
                queue.push_back(next);
            }
        }
    }
}
