//! Boxes for the scopes of the framework's program, and for parts of what is still long, so that no
//! box of a page has more than about fifty things in it.

use std::collections::HashMap;

use crate::picture::{Frame, FrameKind, Picture};

/// A box with at most so many things is left as it is.
const FEW: usize = 40;
/// A box with more things is cut into parts.
const MANY: usize = 48;
/// The things of a part.
const PART: usize = 24;
/// A scope with fewer things gets no box.
const LEAST: usize = 4;
/// Scopes within scopes are told apart up to this depth.
const DEEPEST: usize = 12;

/// A thing in a box: a node, or another box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Item {
    Node(usize),
    Frame(usize),
}

/// Returns the picture with boxes for scopes and parts.
pub(crate) fn scoped(picture: &Picture) -> Picture {
    let mut result = picture.clone();
    let mut items: Vec<Vec<Item>> = vec![Vec::new(); picture.boxes.len()];
    // A box stands where the instruction stands that calls it.
    let mut framed = vec![false; picture.boxes.len()];
    for (index, node) in picture.nodes.iter().enumerate() {
        let mut frame = node.frame;
        let mut item = Item::Node(index);
        loop {
            items[frame].push(item);
            let Some(parent) = picture.boxes[frame].parent else { break };
            if std::mem::replace(&mut framed[frame], true) {
                break;
            }
            item = Item::Frame(frame);
            frame = parent;
        }
    }
    let neighbours = first_neighbours(picture);
    for (frame, items) in items.iter().enumerate() {
        if items.len() > FEW {
            Scopes::new(&mut result, &neighbours, items).divide(frame);
        }
    }
    ordered(result)
}

/// The first reader and the first operand of each node.
fn first_neighbours(picture: &Picture) -> Neighbours {
    let mut neighbours = vec![[None, None]; picture.nodes.len()];
    for edge in &picture.edges {
        neighbours[edge.from][0].get_or_insert(edge.to);
        neighbours[edge.to][1].get_or_insert(edge.from);
    }
    neighbours
}

type Neighbours = Vec<[Option<usize>; 2]>;

/// The scopes of some nodes in order. An instruction whose name has no scope, such as one of an
/// inlined function, belongs to the first one that reads it, or else to its first operand.
fn paths(
    picture: &Picture,
    neighbours: &Neighbours,
    nodes: &[usize],
) -> HashMap<usize, Vec<String>> {
    let mut paths: HashMap<usize, Vec<String>> = HashMap::new();
    for &node in nodes {
        let path = path(&picture.nodes[node].origin.op_name);
        if !path.is_empty() {
            paths.insert(node, path);
        }
    }
    // The result of a computation is for all of its parts.
    let is_result = |node: usize| picture.nodes[node].is_result;
    let inherit = |paths: &mut HashMap<usize, Vec<String>>, node: usize, from: usize| {
        if !paths.contains_key(&node)
            && !is_result(node)
            && let Some(path) = neighbours[node][from].and_then(|other| paths.get(&other))
        {
            paths.insert(node, path.clone());
        }
    };
    nodes.iter().rev().for_each(|&node| inherit(&mut paths, node, 0));
    nodes.iter().for_each(|&node| inherit(&mut paths, node, 1));
    paths
}

/// A scope: its name, the scopes and things in it, and how many things are in all of these.
#[derive(Debug, Default)]
struct Scope {
    name: String,
    things: Vec<Thing>,
    count: usize,
}

#[derive(Clone, Copy, Debug)]
enum Thing {
    Item(Item),
    Scope(usize),
}

struct Scopes<'a> {
    picture: &'a mut Picture,
    /// The scopes; the first is the whole box.
    all: Vec<Scope>,
}

impl<'a> Scopes<'a> {
    fn new(picture: &'a mut Picture, neighbours: &Neighbours, items: &[Item]) -> Self {
        let mut all = vec![Scope::default()];
        // Only looked up, so its order is not observable.
        let mut known: HashMap<(usize, String), usize> = HashMap::new();
        let node_of = |item: &Item| match *item {
            Item::Node(node) => Some(node),
            Item::Frame(frame) => picture.boxes[frame].owner,
        };
        let nodes: Vec<usize> = items.iter().filter_map(node_of).collect();
        let paths = paths(picture, neighbours, &nodes);
        for item in items {
            let mut scope = 0;
            let path = node_of(item).and_then(|node| paths.get(&node));
            for name in path.into_iter().flatten() {
                all[scope].count += 1;
                let next = all.len();
                let inner = *known.entry((scope, name.clone())).or_insert(next);
                if inner == next {
                    all.push(Scope { name: name.clone(), ..Scope::default() });
                    all[scope].things.push(Thing::Scope(inner));
                }
                scope = inner;
            }
            all[scope].count += 1;
            all[scope].things.push(Thing::Item(*item));
        }
        Self { picture, all }
    }

    /// Puts the things of a box into boxes of their scopes.
    fn divide(&mut self, frame: usize) {
        let mut open = vec![(0_usize, frame)];
        while let Some((scope, frame)) = open.pop() {
            let scope = self.only_scope_within(scope);
            let mut items = Vec::new();
            for thing in self.flat(scope) {
                match thing {
                    Thing::Item(item) => items.push(item),
                    Thing::Scope(inner) => {
                        let title = self.title(inner);
                        let new = self.frame(title, FrameKind::Scope, frame);
                        open.push((inner, new));
                        items.push(Item::Frame(new));
                    }
                }
            }
            self.fill(frame, items);
        }
    }

    /// The things of a scope, with those of small scopes among them.
    fn flat(&self, scope: usize) -> Vec<Thing> {
        let mut flat = Vec::new();
        let mut open: Vec<Thing> = self.all[scope].things.iter().rev().copied().collect();
        while let Some(thing) = open.pop() {
            match thing {
                Thing::Scope(inner) if self.is_among_others(inner, scope) => {
                    open.extend(self.all[inner].things.iter().rev());
                }
                thing => flat.push(thing),
            }
        }
        flat
    }

    /// Checks whether the things of a scope are drawn among those of the scope around it: there are
    /// too few of them for a box, or most of them all.
    fn is_among_others(&self, inner: usize, scope: usize) -> bool {
        let [count, all] = [inner, scope].map(|scope| self.all[scope].count);
        count < LEAST || (count > all / 2 && all <= MANY) || count > all / 10 * 9
    }

    /// Skips scopes that have one scope and nothing else in them.
    fn only_scope_within(&self, mut scope: usize) -> usize {
        while let [Thing::Scope(inner)] = self.all[scope].things.as_slice() {
            scope = *inner;
        }
        scope
    }

    fn title(&self, mut scope: usize) -> String {
        let mut title = self.all[scope].name.clone();
        while let [Thing::Scope(inner)] = self.all[scope].things.as_slice() {
            scope = *inner;
            title = format!("{title}/{}", self.all[scope].name);
        }
        crate::words::cut(&title)
    }

    fn frame(&mut self, title: String, kind: FrameKind, parent: usize) -> usize {
        let frame = Frame { title, kind, parent: Some(parent), owner: None };
        self.picture.boxes.push(frame);
        self.picture.boxes.len() - 1
    }

    /// Puts things into a box, in parts if there are many.
    fn fill(&mut self, frame: usize, mut items: Vec<Item>) {
        while items.len() > MANY {
            let mut parts = Vec::new();
            for part in items.chunks(PART) {
                let title = self.part_title(part);
                let new = self.frame(title, FrameKind::Part, frame);
                part.iter().for_each(|&item| self.put(item, new));
                parts.push(Item::Frame(new));
            }
            items = parts;
        }
        items.into_iter().for_each(|item| self.put(item, frame));
    }

    fn put(&mut self, item: Item, frame: usize) {
        match item {
            Item::Node(node) => self.picture.nodes[node].frame = frame,
            Item::Frame(inner) => self.picture.boxes[inner].parent = Some(frame),
        }
    }

    fn part_title(&self, part: &[Item]) -> String {
        let name = |item: Option<&Item>| match item {
            Some(Item::Node(node)) => self.picture.nodes[*node].name.as_str(),
            Some(Item::Frame(frame)) => self.picture.boxes[*frame].title.as_str(),
            None => "",
        };
        let title = |name: &str| {
            let name = name.split(" … ").next().unwrap_or(name);
            crate::words::cut_at(name, 24)
        };
        let last = name(part.last()).rsplit(" … ").next().unwrap_or_default();
        format!("{} … {}", title(name(part.first())), crate::words::cut_at(last, 24))
    }
}

/// The scopes in a framework's name: `jit(f)/net/add` is in `net` in `jit(f)`.
fn path(op_name: &str) -> Vec<String> {
    let mut names: Vec<String> = op_name.split('/').map(str::to_owned).collect();
    names.pop();
    names.truncate(DEEPEST);
    names
}

/// Numbers boxes anew, so that each stands after the one around it.
fn ordered(picture: Picture) -> Picture {
    let mut inner: Vec<Vec<usize>> = vec![Vec::new(); picture.boxes.len()];
    let mut open = Vec::new();
    for (index, frame) in picture.boxes.iter().enumerate() {
        match frame.parent {
            Some(parent) => inner[parent].push(index),
            None => open.push(index),
        }
    }
    open.reverse();
    let mut order = Vec::with_capacity(picture.boxes.len());
    let mut new = vec![0; picture.boxes.len()];
    while let Some(frame) = open.pop() {
        new[frame] = order.len();
        order.push(frame);
        open.extend(inner[frame].iter().rev());
    }
    let boxes = order.iter().map(|&old| {
        let frame = picture.boxes[old].clone();
        Frame { parent: frame.parent.map(|parent| new[parent]), ..frame }
    });
    let boxes = boxes.collect();
    let nodes = picture.nodes.into_iter().map(|mut node| {
        node.frame = new[node.frame];
        node.calls.iter_mut().for_each(|frame| *frame = new[*frame]);
        node
    });
    Picture { boxes, nodes: nodes.collect(), ..picture }
}
