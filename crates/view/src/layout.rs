//! Lays out a picture: each box is a graph of its own, laid out by dagre, and a node in the graph of
//! the box around it. A value that crosses the border of a box does so at a *port*: all its readers
//! within share one line from the border.
//!
//! `assets/layout.js` does the same on a page, with the boxes that are open.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use dagre::graph::{Graph, GraphOptions};
use dagre::layout::types::LabelPos;
use dagre::{EdgeLabel, LayoutOptions, NodeLabel, Ranker};

use crate::error::ViewError;
use crate::picture::{EdgeKind, Picture};

/// The height of a box's heading.
pub(crate) const HEAD: f64 = 24.0;
/// The room between a box's border and its things.
const GAP: f64 = 12.0;
/// With more things in a box, ranks are found by a faster method.
const MANY: usize = 40;

/// A width and a height.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Size {
    pub(crate) width: f64,
    pub(crate) height: f64,
}

/// A place: the upper left corner.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct At {
    pub(crate) x: f64,
    pub(crate) y: f64,
}

impl At {
    fn plus(self, other: Self) -> Self {
        Self { x: self.x + other.x, y: self.y + other.y }
    }
}

/// A line of the drawing: an edge, or a part of several ones.
#[derive(Clone, Debug)]
pub(crate) struct DrawnLine {
    pub(crate) points: Vec<At>,
    pub(crate) kind: EdgeKind,
    pub(crate) width: f64,
    pub(crate) is_large: bool,
    /// The label and its middle.
    pub(crate) label: Option<(String, At)>,
    /// Whether it ends at a reader and not at the border of a box.
    pub(crate) ends: bool,
}

/// The places of all nodes, boxes and lines.
#[derive(Clone, Debug, Default)]
pub(crate) struct Laid {
    pub(crate) size: Size,
    pub(crate) nodes: Vec<At>,
    pub(crate) boxes: Vec<(At, Size)>,
    pub(crate) lines: Vec<DrawnLine>,
}

/// What a box is to its surroundings, with places relative to its corner.
#[derive(Clone, Debug, Default)]
struct Inner {
    size: Size,
    items: Vec<(Item, At)>,
    lines: Vec<DrawnLine>,
    /// Where the value of a node comes in at the top, and goes out at the bottom.
    top: BTreeMap<usize, f64>,
    bottom: BTreeMap<usize, f64>,
}

/// A thing in the graph of a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Item {
    Node(usize),
    Frame(usize),
    /// Where the value of a node comes in.
    In(usize),
    /// Where the value of a node goes out.
    Out(usize),
    Top,
    Bottom,
}

impl Item {
    fn key(self) -> String {
        match self {
            Self::Node(i) => format!("n{i}"),
            Self::Frame(i) => format!("b{i}"),
            Self::In(i) => format!("i{i}"),
            Self::Out(i) => format!("o{i}"),
            Self::Top => "T".to_owned(),
            Self::Bottom => "B".to_owned(),
        }
    }
}

/// Edges between two things of a box that are drawn as one line.
#[derive(Clone, Debug)]
struct Link {
    kind: EdgeKind,
    label: String,
    width: f64,
    is_large: bool,
    /// The node whose value it is.
    value: usize,
}

/// Lays out a picture whose nodes and headings have these sizes.
///
/// # Errors
/// Returns an error if the layout library fails.
pub(crate) fn lay_out(
    picture: &Picture,
    sizes: &[Size],
    headings: &[f64],
) -> Result<Laid, ViewError> {
    let links = Links::of(picture);
    let mut inner: Vec<Inner> = vec![Inner::default(); picture.boxes.len()];
    // Each box stands after the one around it.
    for frame in (0..picture.boxes.len()).rev() {
        inner[frame] = one_box(picture, frame, &links, sizes, headings[frame], &inner)?;
    }
    Ok(assemble(picture, inner))
}

/// Puts the boxes into each other, and boxes that are in none below each other.
fn assemble(picture: &Picture, inner: Vec<Inner>) -> Laid {
    let mut laid = Laid {
        nodes: vec![At::default(); picture.nodes.len()],
        boxes: vec![(At::default(), Size::default()); picture.boxes.len()],
        ..Laid::default()
    };
    let mut y = 0.0;
    for (frame, one) in inner.into_iter().enumerate() {
        if picture.boxes[frame].parent.is_none() {
            laid.boxes[frame].0 = At { x: 0.0, y };
            y += one.size.height + 2.0 * GAP;
            laid.size.width = laid.size.width.max(one.size.width);
            laid.size.height = y - 2.0 * GAP;
        }
        let corner = laid.boxes[frame].0;
        laid.boxes[frame].1 = one.size;
        for (item, at) in one.items {
            match item {
                Item::Node(node) => laid.nodes[node] = corner.plus(at),
                Item::Frame(inner) => laid.boxes[inner].0 = corner.plus(at),
                Item::In(_) | Item::Out(_) | Item::Top | Item::Bottom => {}
            }
        }
        laid.lines.extend(one.lines.into_iter().map(|mut line| {
            line.points.iter_mut().for_each(|point| *point = corner.plus(*point));
            line.label = line.label.map(|(text, at)| (text, corner.plus(at)));
            line
        }));
    }
    laid
}

/// The lines in each box.
struct Links {
    of: Vec<BTreeMap<(Item, Item, String), Link>>,
}

impl Links {
    fn of(picture: &Picture) -> Self {
        let mut links = Self { of: vec![BTreeMap::new(); picture.boxes.len()] };
        let mut depths = vec![0_usize; picture.boxes.len()];
        for (index, frame) in picture.boxes.iter().enumerate() {
            depths[index] = frame.parent.map_or(0, |parent| depths[parent] + 1);
        }
        let depth = |frame: Option<usize>| frame.map_or(0, |frame| depths[frame] + 1);
        let around = |frame: Option<usize>| frame.and_then(|frame| picture.boxes[frame].parent);
        for (number, edge) in picture.edges.iter().enumerate() {
            let (mut from, mut to) = (Item::Node(edge.from), Item::Node(edge.to));
            let mut out = Some(picture.nodes[edge.from].frame);
            let mut into = Some(picture.nodes[edge.to].frame);
            while out != into {
                let [above, below] = [depth(out), depth(into)];
                if let Some(frame) = out.filter(|_| above >= below) {
                    links.add(picture, frame, from, Item::Out(edge.from), number);
                    (from, out) = (Item::Frame(frame), around(out));
                }
                if let Some(frame) = into.filter(|_| below >= above) {
                    links.add(picture, frame, Item::In(edge.from), to, number);
                    (to, into) = (Item::Frame(frame), around(into));
                }
            }
            if let Some(frame) = out {
                links.add(picture, frame, from, to, number);
            }
        }
        links
    }

    fn add(&mut self, picture: &Picture, frame: usize, from: Item, to: Item, edge: usize) {
        let edge = &picture.edges[edge];
        let is_port = |item: Item| matches!(item, Item::In(_) | Item::Out(_));
        // The label stands once, outside of the boxes.
        let label = if is_port(from) || is_port(to) { String::new() } else { edge.text() };
        let value = edge.from;
        let name = format!("{value} {:?} {label}", edge.kind);
        let (kind, width, is_large) = (edge.kind, edge.width(), edge.is_large);
        let link = Link { kind, label, width, is_large, value };
        self.of[frame].entry((from, to, name)).or_insert(link);
    }
}

fn one_box(
    picture: &Picture,
    frame: usize,
    links: &Links,
    sizes: &[Size],
    heading: f64,
    inner: &[Inner],
) -> Result<Inner, ViewError> {
    let links = &links.of[frame];
    let mut graph: Graph<NodeLabel, EdgeLabel> =
        Graph::with_options(GraphOptions { directed: true, multigraph: true, compound: false });
    let nodes = picture.nodes.iter().enumerate().filter(|(_, node)| node.frame == frame);
    let nodes = nodes.map(|(index, _)| (Item::Node(index), sizes[index]));
    let boxes = picture.boxes.iter().enumerate().filter(|(_, one)| one.parent == Some(frame));
    let boxes = boxes.map(|(index, _)| (Item::Frame(index), inner[index].size));
    let mut items: Vec<(Item, Size)> = nodes.chain(boxes).collect();
    let things = items.len();
    let ports = links.keys().flat_map(|(from, to, _)| [*from, *to]);
    let mut ports: Vec<Item> =
        ports.filter(|item| matches!(item, Item::In(_) | Item::Out(_))).collect();
    ports.sort_unstable();
    ports.dedup();
    items.extend(ports.iter().map(|&port| (port, Size { width: 1.0, height: 1.0 })));
    for (item, Size { width, height }) in &items {
        let label = NodeLabel { width: *width, height: *height, ..NodeLabel::default() };
        graph.set_node(item.key(), Some(label));
    }
    for ((from, to, name), link) in links {
        graph.set_edge(from.key(), to.key(), Some(edge_label(link)), Some(name));
    }
    pin(&mut graph, &items, &ports);
    let options = LayoutOptions {
        nodesep: 18.0,
        edgesep: 8.0,
        ranksep: 26.0,
        ranker: if things > MANY { Ranker::TightTree } else { Ranker::NetworkSimplex },
        ..LayoutOptions::default()
    };
    catch_unwind(AssertUnwindSafe(|| dagre::layout(&mut graph, Some(options))))
        .map_err(|_| ViewError::Layout)?;
    let (shift, rows) = (At::default(), BTreeMap::new());
    let mut found = PlacedGraph { graph: &graph, inner, items: &items, shift, rows };
    found.rows = found.heights()?;
    found.shift = found.shift_for(links)?;
    found.collect(links, &ports, heading)
}

fn edge_label(link: &Link) -> EdgeLabel {
    if link.label.is_empty() {
        return EdgeLabel::default();
    }
    let width = crate::svg::text_width(&link.label);
    let labelpos = LabelPos::Right;
    EdgeLabel { width, height: 12.0, labelpos, label_offset: 5.0, ..EdgeLabel::default() }
}

/// Ties ports to the top and the bottom of a box: values come in above and leave below.
fn pin(graph: &mut Graph<NodeLabel, EdgeLabel>, items: &[(Item, Size)], ports: &[Item]) {
    let tie = |weight| Some(EdgeLabel { weight, ..EdgeLabel::default() });
    let point = || Some(NodeLabel { width: 1.0, height: 1.0, ..NodeLabel::default() });
    let things: Vec<Item> =
        items.iter().map(|(item, _)| *item).filter(|item| !ports.contains(item)).collect();
    let none = |keys: Option<Vec<String>>| keys.is_none_or(|keys| keys.is_empty());
    if ports.iter().any(|port| matches!(port, Item::In(_))) {
        let first: Vec<Item> =
            things.iter().copied().filter(|item| none(graph.predecessors(&item.key()))).collect();
        graph.set_node(Item::Top.key(), point());
        for port in ports.iter().filter(|port| matches!(port, Item::In(_))) {
            graph.set_edge(Item::Top.key(), port.key(), tie(20), Some("pin"));
        }
        for item in first {
            graph.set_edge(Item::Top.key(), item.key(), tie(0), Some("pin"));
        }
    }
    if ports.iter().any(|port| matches!(port, Item::Out(_))) {
        let last: Vec<Item> =
            things.iter().copied().filter(|item| none(graph.successors(&item.key()))).collect();
        graph.set_node(Item::Bottom.key(), point());
        for port in ports.iter().filter(|port| matches!(port, Item::Out(_))) {
            graph.set_edge(port.key(), Item::Bottom.key(), tie(20), Some("pin"));
        }
        for item in last {
            graph.set_edge(item.key(), Item::Bottom.key(), tie(0), Some("pin"));
        }
    }
}

/// A place in tenths of a pixel, as a key.
#[expect(clippy::cast_possible_truncation, reason = "saturates")]
fn tenths(y: f64) -> i64 {
    (y * 10.0).round() as i64
}

/// The graph of a box with the places that were found.
struct PlacedGraph<'a> {
    graph: &'a Graph<NodeLabel, EdgeLabel>,
    inner: &'a [Inner],
    items: &'a [(Item, Size)],
    /// What is added to the places that were found.
    shift: At,
    /// The heights of the rows of things, by the tenths of their middles.
    rows: BTreeMap<i64, f64>,
}

impl PlacedGraph<'_> {
    fn collect(
        &self,
        links: &BTreeMap<(Item, Item, String), Link>,
        ports: &[Item],
        heading: f64,
    ) -> Result<Inner, ViewError> {
        let mut found =
            Inner { size: Size { width: heading + 3.0 * GAP, height: HEAD }, ..Inner::default() };
        for (item, size) in self.items {
            let at = self.corner(*item)?;
            // Ports lie on lines.
            found.size.width = found.size.width.max(at.x + size.width + GAP);
            found.size.height = found.size.height.max(at.y + size.height + GAP);
            found.items.push((*item, at));
        }
        for &port in ports {
            let line = self.trunk(port, links, found.size.height)?;
            match port {
                Item::In(value) => {
                    found.top.insert(value, line.points.first().map_or(0.0, |p| p.x))
                }
                Item::Out(value) => {
                    found.bottom.insert(value, line.points.last().map_or(0.0, |p| p.x))
                }
                _ => None,
            };
            found.lines.push(line);
        }
        for ((from, to, name), link) in links {
            let line = self.line(*from, *to, name, link)?;
            let right = line.points.iter().fold(0.0_f64, |right, point| right.max(point.x));
            found.size.width = found.size.width.max(right + GAP / 2.0);
            found.lines.push(line);
        }
        Ok(found)
    }

    /// Finds the shift that puts the topmost thing below the heading, and the leftmost thing or line
    /// beside the border.
    fn shift_for(&self, links: &BTreeMap<(Item, Item, String), Link>) -> Result<At, ViewError> {
        let (mut left, mut top) = (0.0_f64, f64::INFINITY);
        for (item, _) in self.items {
            let corner = self.corner(*item)?;
            (left, top) = (left.min(corner.x), top.min(corner.y));
        }
        for (from, to, name) in links.keys() {
            left =
                self.points(*from, *to, name)?.iter().fold(left, |left, point| left.min(point.x));
        }
        let top = if top.is_finite() { top } else { 0.0 };
        Ok(At { x: GAP - left, y: HEAD + GAP / 2.0 - top })
    }

    /// Finds the heights of the rows of things.
    fn heights(&self) -> Result<BTreeMap<i64, f64>, ViewError> {
        let mut rows: BTreeMap<i64, f64> = BTreeMap::new();
        for (item, size) in self.items {
            let (_, at) = self.node(*item)?;
            let height = rows.entry(tenths(at.y)).or_default();
            *height = height.max(size.height);
        }
        Ok(rows)
    }

    /// Lets a line pass between the things of a row upright, so that it is slanted in the gaps
    /// between rows alone.
    fn upright(&self, points: &[At]) -> Vec<At> {
        let mut all = Vec::new();
        for (index, &At { x, y }) in points.iter().enumerate() {
            let height = self.rows.get(&tenths(y)).copied().unwrap_or(0.0);
            let is_end = index == 0 || index + 1 == points.len();
            if is_end || height < 2.0 {
                all.push(At { x, y });
            } else {
                let is_down = points[index - 1].y < y;
                let half = if is_down { height / 2.0 } else { -height / 2.0 };
                all.extend([At { x, y: y - half }, At { x, y: y + half }]);
            }
        }
        all
    }

    fn node(&self, item: Item) -> Result<(&NodeLabel, At), ViewError> {
        let node = self.graph.node(&item.key()).ok_or(ViewError::Layout)?;
        let (x, y) = node.x.zip(node.y).ok_or(ViewError::Layout)?;
        let is_sane = x.is_finite() && y.is_finite();
        if is_sane { Ok((node, At { x, y })) } else { Err(ViewError::Layout) }
    }

    fn corner(&self, item: Item) -> Result<At, ViewError> {
        let (node, at) = self.node(item)?;
        let half = At { x: -node.width / 2.0, y: -node.height / 2.0 };
        Ok(at.plus(half).plus(self.shift))
    }

    fn points(&self, from: Item, to: Item, name: &str) -> Result<Vec<At>, ViewError> {
        let edge = self.graph.edge(&from.key(), &to.key(), Some(name)).ok_or(ViewError::Layout)?;
        let points = edge.points.iter();
        let points: Vec<At> = points.map(|point| At { x: point.x, y: point.y }).collect();
        let points: Vec<At> =
            self.upright(&points).iter().map(|point| point.plus(self.shift)).collect();
        if points.len() < 2 { Err(ViewError::Layout) } else { Ok(points) }
    }

    /// The line between a port and the border.
    fn trunk(
        &self,
        port: Item,
        links: &BTreeMap<(Item, Item, String), Link>,
        bottom: f64,
    ) -> Result<DrawnLine, ViewError> {
        let (_, at) = self.node(port)?;
        let at = at.plus(self.shift);
        let is_in = matches!(port, Item::In(_));
        let ends = if is_in { (Item::Top, port) } else { (port, Item::Bottom) };
        let mut points = self.points(ends.0, ends.1, "pin")?;
        let last = points.len() - 1;
        let bend = if last > 1 { Some(points[if is_in { 1 } else { last - 1 }].x) } else { None };
        let x = bend.unwrap_or(at.x);
        let border = At { x, y: if is_in { 0.0 } else { bottom } };
        let (outer, inner) = if is_in { (0, last) } else { (last, 0) };
        points[outer] = border;
        points[inner] = at;
        let carried = links.iter().filter(|((from, to, _), _)| *from == port || *to == port);
        let carried: Vec<&Link> = carried.map(|(_, link)| link).collect();
        Ok(DrawnLine {
            points,
            kind: carried.first().map_or(EdgeKind::Data, |link| link.kind),
            width: carried.iter().fold(1.0, |width, link| link.width.max(width)),
            is_large: carried.iter().any(|link| link.is_large),
            label: None,
            ends: false,
        })
    }

    /// Where a line leaves a thing below and arrives at one above, nearest to where it comes from.
    fn ends(&self, from: Item, to: Item, points: &[At]) -> Result<(At, At), ViewError> {
        let last = points.len() - 1;
        let near = |item: Item, x: f64, below: bool| {
            let (node, _) = self.node(item)?;
            let corner = self.corner(item)?;
            let inset = (node.width / 2.0).min(14.0);
            let x = x.clamp(corner.x + inset, corner.x + node.width - inset);
            Ok(At { x, y: if below { corner.y + node.height } else { corner.y } })
        };
        // Without a bend, it aims at the middle of the other end.
        let middle = |item: Item| self.node(item).map(|(_, at)| at.x + self.shift.x);
        let out = if last > 1 { points[1].x } else { middle(to)? };
        let into = if last > 1 { points[last - 1].x } else { middle(from)? };
        Ok((near(from, out, true)?, near(to, into, false)?))
    }

    fn line(&self, from: Item, to: Item, name: &str, link: &Link) -> Result<DrawnLine, ViewError> {
        let mut points = self.points(from, to, name)?;
        let last = points.len() - 1;
        // A line that was turned around goes up, from side to side.
        if points[0].y <= points[last].y {
            (points[0], points[last]) = self.ends(from, to, &points)?;
            if let Item::Frame(frame) = from
                && let Some(x) = self.inner[frame].bottom.get(&link.value)
            {
                let corner = self.corner(from)?;
                points[0] = At { x: corner.x + x, y: corner.y + self.inner[frame].size.height };
            }
            if let Item::Frame(frame) = to
                && let Some(x) = self.inner[frame].top.get(&link.value)
            {
                let corner = self.corner(to)?;
                points[last] = At { x: corner.x + x, y: corner.y };
            }
        }
        let edge = self.graph.edge(&from.key(), &to.key(), Some(name));
        let place = edge.and_then(|edge| edge.x.zip(edge.y));
        let label = place
            .filter(|_| !link.label.is_empty())
            .map(|(x, y)| (link.label.clone(), At { x, y }.plus(self.shift)));
        let ends = matches!(to, Item::Node(_));
        let Link { kind, width, is_large, .. } = *link;
        Ok(DrawnLine { points, kind, width, is_large, label, ends })
    }
}
