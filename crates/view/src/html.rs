//! Writes a picture as a page that needs no network.
//!
//! The page has the picture as JSON. Its script (`assets/page.js`) lays out and draws the boxes that
//! are open.

use std::collections::HashMap;

use askama::Template;
use serde::Serialize;

use crate::error::ViewError;
use crate::picture::{Change, Edge, EdgeKind, Frame, FrameKind, Node, NodeKind, Picture};
use crate::scene::{Scene, Side};
use crate::scopes;

#[derive(Template)]
#[template(path = "page.html")]
struct Page<'a> {
    title: &'a str,
    /// The style of the drawing, and that of the page around it.
    styles: [&'static str; 2],
    vendor: &'static str,
    layout: &'static str,
    script: &'static str,
    data: String,
}

/// Writes a scene as a page.
///
/// # Errors
/// Returns an error if the page cannot be written, which does not happen.
pub(crate) fn print(scene: &Scene) -> Result<String, ViewError> {
    let page = Page {
        title: &scene.title,
        styles: [include_str!("../assets/picture.css"), include_str!("../assets/page.css")],
        vendor: include_str!("../assets/vendor/vendor.min.js"),
        layout: include_str!("../assets/layout.js"),
        script: include_str!("../assets/page.js"),
        data: data(scene)?,
    };
    page.render().map_err(|error| ViewError::Page(error.to_string()))
}

/// The scene as JSON that can stand in a `<script>`: no text in it ends the element.
fn data(scene: &Scene) -> Result<String, ViewError> {
    let pictures: Vec<Picture> =
        scene.sides.iter().map(|side| scopes::scoped(&side.picture)).collect();
    let mut strings = Strings::default();
    let sides = scene.sides.iter().zip(&pictures);
    let sides = sides.map(|(side, picture)| SideData::new(side, picture, &mut strings)).collect();
    let notes = scene.notes.iter();
    let notes =
        notes.map(|note| [note.pass, note.place.text.as_str(), note.text.as_str()]).collect();
    let data = SceneData {
        title: &scene.title,
        subtitle: &scene.subtitle,
        weights: scene.weights,
        sides,
        notes,
        strings: strings.all,
    };
    let json = serde_json::to_string(&data).map_err(|error| ViewError::Page(error.to_string()))?;
    Ok(json.replace('<', "\\u003c"))
}

/// Texts that many nodes share, once each.
#[derive(Default)]
struct Strings<'a> {
    all: Vec<&'a str>,
    index: HashMap<&'a str, usize>,
}

impl<'a> Strings<'a> {
    fn add(&mut self, text: &'a str) -> usize {
        let next = self.all.len();
        let index = *self.index.entry(text).or_insert(next);
        if index == next {
            self.all.push(text);
        }
        index
    }
}

#[derive(Serialize)]
struct SceneData<'a> {
    title: &'a str,
    subtitle: &'a str,
    weights: Option<&'static str>,
    sides: Vec<SideData<'a>>,
    notes: Vec<[&'a str; 3]>,
    strings: Vec<&'a str>,
}

#[derive(Serialize)]
struct SideData<'a> {
    title: &'a str,
    boxes: Vec<BoxData<'a>>,
    nodes: Vec<NodeData<'a>>,
    edges: Vec<EdgeData<'a>>,
    /// Names of instructions without nodes, with the nodes that stand for them.
    names: &'a [(String, usize)],
}

#[derive(Serialize)]
struct BoxData<'a> {
    title: &'a str,
    kind: FrameKind,
    parent: Option<usize>,
    owner: Option<usize>,
}

#[derive(Serialize)]
struct NodeData<'a> {
    name: &'a str,
    /// The index of a string: the name of its computation.
    computation: usize,
    op: &'a str,
    #[serde(rename = "box")]
    frame: usize,
    kind: NodeKind,
    title: &'a str,
    shape: &'a str,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    inlined: &'a [String],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    marks: Vec<String>,
    #[serde(skip_serializing_if = "is_false")]
    result: bool,
    bytes: u64,
    padded: u64,
    #[serde(rename = "isPadded", skip_serializing_if = "is_false")]
    is_padded: bool,
    #[serde(rename = "isStored", skip_serializing_if = "is_false")]
    is_stored: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    share: Option<f64>,
    /// Indices of strings: the framework's name, and the file with its line.
    #[serde(rename = "opName")]
    op_name: usize,
    file: usize,
    line: i64,
    text: &'a str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    details: &'a [(&'static str, String)],
    #[serde(skip_serializing_if = "<[usize]>::is_empty")]
    calls: &'a [usize],
    #[serde(skip_serializing_if = "is_same")]
    change: Change,
    #[serde(skip_serializing_if = "<[usize]>::is_empty")]
    notes: &'a [usize],
}

/// An edge: from, to, kind, label, width.
#[derive(Serialize)]
struct EdgeData<'a>(usize, usize, EdgeKind, &'a str, f64, bool);

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_false(flag: &bool) -> bool {
    !flag
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_same(change: &Change) -> bool {
    *change == Change::None
}

impl<'a> SideData<'a> {
    fn new(side: &'a Side, picture: &'a Picture, strings: &mut Strings<'a>) -> Self {
        Self {
            title: &side.title,
            boxes: picture.boxes.iter().map(box_data).collect(),
            nodes: picture.nodes.iter().map(|node| node_data(node, strings)).collect(),
            edges: picture.edges.iter().map(edge_data).collect(),
            names: &picture.stands_for,
        }
    }
}

fn box_data(frame: &Frame) -> BoxData<'_> {
    let Frame { title, kind, parent, owner } = frame;
    BoxData { title, kind: *kind, parent: *parent, owner: *owner }
}

fn node_data<'a>(node: &'a Node, strings: &mut Strings<'a>) -> NodeData<'a> {
    NodeData {
        name: &node.name,
        computation: strings.add(&node.computation),
        op: node.op,
        frame: node.frame,
        kind: node.kind,
        title: &node.title,
        shape: &node.shape,
        inlined: &node.inlined,
        marks: node.marks(),
        result: node.is_result,
        bytes: node.memory.bytes,
        padded: node.memory.padded_bytes,
        is_padded: node.memory.is_padded,
        is_stored: node.memory.is_stored,
        share: node.weight.as_ref().map(|weight| weight.share),
        op_name: strings.add(&node.origin.op_name),
        file: strings.add(&node.origin.file),
        line: node.origin.line,
        text: &node.text,
        details: &node.details,
        calls: &node.calls,
        change: node.change,
        notes: &node.notes,
    }
}

fn edge_data(edge: &Edge) -> EdgeData<'_> {
    EdgeData(edge.from, edge.to, edge.kind, &edge.label, edge.width(), edge.is_large)
}
