//! Parts of a module: a computation, or the surroundings of an instruction.

use std::collections::{BTreeSet, VecDeque};

use tilewright::ir::{CompId, Module};

use crate::error::ViewError;
use crate::picture::Picture;

/// Finds a computation by its name, with or without `%`.
pub(crate) fn computation(module: &Module, name: &str) -> Result<CompId, ViewError> {
    let bare = name.strip_prefix('%').unwrap_or(name);
    let names = || module.computations().iter().map(|&id| module.computation(id).name());
    let mut ids = module.computations().iter().copied();
    ids.find(|&id| module.computation(id).name() == bare).ok_or_else(|| {
        let name = bare.to_owned();
        ViewError::NoComputation { name, hint: hint(bare, names()) }
    })
}

/// Finds the nodes at most so many edges away from an instruction.
pub(crate) fn near(
    module: &Module,
    picture: &Picture,
    name: &str,
    depth: usize,
) -> Result<BTreeSet<usize>, ViewError> {
    let bare = name.strip_prefix('%').unwrap_or(name);
    let starts = nodes_of(picture, bare);
    if starts.is_empty() {
        let all = || module.computations().iter().flat_map(|&id| module.instructions(id));
        if all().any(|id| module.name_of(id) == bare) {
            let hint = " in the picture; its computation is named in the title of the instruction \
                        that calls it: draw that with --computation NAME";
            return Err(ViewError::NoInstruction { name: bare.to_owned(), hint: hint.to_owned() });
        }
        let hint = hint(bare, all().map(|id| module.name_of(id)));
        return Err(ViewError::NoInstruction { name: bare.to_owned(), hint });
    }
    Ok(within(picture, starts, depth))
}

/// As [`near`], before and after. Where the instruction is only in one of the two, what is drawn of
/// the other has the same names, or the same notes.
pub(crate) fn near_in_both(
    modules: [&Module; 2],
    pictures: &[Picture; 2],
    name: &str,
    depth: usize,
) -> Result<[BTreeSet<usize>; 2], ViewError> {
    let [was, is] = pictures;
    match [near(modules[0], was, name, depth), near(modules[1], is, name, depth)] {
        [Ok(was), Ok(is)] => Ok([was, is]),
        [Ok(near), Err(_)] => Ok([near.clone(), counterparts(was, &near, is)]),
        [Err(_), Ok(near)] => Ok([counterparts(is, &near, was), near]),
        [Err(error), Err(_)] => Err(error),
    }
}

/// The nodes of another picture with the same names or notes.
fn counterparts(picture: &Picture, near: &BTreeSet<usize>, other: &Picture) -> BTreeSet<usize> {
    let nodes = || near.iter().filter_map(|&index| picture.nodes.get(index));
    let names: BTreeSet<&str> = nodes().map(|node| node.name.as_str()).collect();
    let notes: BTreeSet<usize> = nodes().flat_map(|node| node.notes.iter().copied()).collect();
    let all = other.nodes.iter().enumerate();
    let same = all.filter(|(_, node)| {
        names.contains(node.name.as_str()) || node.notes.iter().any(|note| notes.contains(note))
    });
    same.map(|(index, _)| index).collect()
}

/// The nodes of an instruction: its own, or the one that stands for it.
fn nodes_of(picture: &Picture, name: &str) -> Vec<usize> {
    let all = picture.nodes.iter().enumerate();
    let own: Vec<usize> = all.filter(|(_, node)| node.name == name).map(|(i, _)| i).collect();
    if !own.is_empty() {
        return own;
    }
    picture.stands_for.iter().filter(|(other, _)| other == name).map(|(_, node)| *node).collect()
}

/// Returns the nodes at most so many edges away from these.
fn within(picture: &Picture, starts: Vec<usize>, depth: usize) -> BTreeSet<usize> {
    let mut neighbours: Vec<Vec<usize>> = vec![Vec::new(); picture.nodes.len()];
    for edge in &picture.edges {
        neighbours[edge.from].push(edge.to);
        neighbours[edge.to].push(edge.from);
    }
    // What has no operands, such as zeros that much of the module reads, connects nothing.
    let mut is_source = vec![true; picture.nodes.len()];
    for edge in &picture.edges {
        is_source[edge.to] = false;
    }
    let mut found: BTreeSet<usize> = starts.iter().copied().collect();
    let mut queue: VecDeque<(usize, usize)> = starts.into_iter().map(|node| (node, 0)).collect();
    while let Some((node, distance)) = queue.pop_front() {
        if distance == depth || distance > 0 && is_source[node] {
            continue;
        }
        for &next in &neighbours[node] {
            if found.insert(next) {
                queue.push_back((next, distance + 1));
            }
        }
    }
    found
}

/// Returns a picture of some of the nodes, with their boxes. Nodes say how many operands and users
/// are left out.
pub(crate) fn only(picture: &Picture, kept: &BTreeSet<usize>) -> Picture {
    let mut new_node: Vec<Option<usize>> = vec![None; picture.nodes.len()];
    for (new, &old) in kept.iter().enumerate() {
        new_node[old] = Some(new);
    }
    let mut framed = vec![false; picture.boxes.len()];
    for &node in kept {
        let mut frame = Some(picture.nodes[node].frame);
        while let Some(index) = frame.filter(|&index| !framed[index]) {
            framed[index] = true;
            frame = picture.boxes[index].parent;
        }
    }
    let mut new_frame: Vec<Option<usize>> = vec![None; picture.boxes.len()];
    let mut result = Picture::default();
    for (old, frame) in picture.boxes.iter().enumerate().filter(|(old, _)| framed[*old]) {
        new_frame[old] = Some(result.boxes.len());
        let mut frame = frame.clone();
        frame.parent = frame.parent.and_then(|parent| new_frame[parent]);
        frame.owner = frame.owner.and_then(|owner| new_node[owner]);
        result.boxes.push(frame);
    }
    for &old in kept {
        let mut node = picture.nodes[old].clone();
        node.frame = new_frame[node.frame].unwrap_or_default();
        node.calls = node.calls.iter().filter_map(|&frame| new_frame[frame]).collect();
        result.nodes.push(node);
    }
    for edge in &picture.edges {
        match (new_node[edge.from], new_node[edge.to]) {
            (Some(from), Some(to)) => {
                result.edges.push(crate::picture::Edge { from, to, ..edge.clone() });
            }
            (None, Some(to)) => result.nodes[to].hidden[0] += 1,
            (Some(from), None) => result.nodes[from].hidden[1] += 1,
            (None, None) => {}
        }
    }
    let stands = picture.stands_for.iter();
    let stands = stands.filter_map(|(name, node)| Some((name.clone(), new_node[*node]?)));
    result.stands_for = stands.collect();
    result
}

/// Names the most similar name, if one is similar.
fn hint<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> String {
    // A text of many names is compared with the first of them alone.
    let likeness = |other: &'a str| (strsim::jaro_winkler(name, other), other);
    let best = names.take(50_000).map(likeness).max_by(|a, b| a.0.total_cmp(&b.0));
    match best {
        Some((likeness, other)) if likeness > 0.8 => format!("; did you mean `{other}`?"),
        Some(_) | None => "; `tilewright convert IN` shows all names".to_owned(),
    }
}
