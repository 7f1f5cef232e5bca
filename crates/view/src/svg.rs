//! Writes a picture as SVG. Boxes are all open; `layout.rs` has the places.

use std::fmt::Write as _;

use askama::Template;

use crate::dot::wrapped;
use crate::error::ViewError;
use crate::layout::{At, DrawnLine, Laid, Size, lay_out};
use crate::picture::{Change, EdgeKind, FrameKind, Node, NodeKind, Picture};
use crate::scene::Scene;

/// The width of a character, the height of a line, and the room around text, in pixels.
const CHAR: f64 = 6.65;
const LINE: f64 = 14.0;
const PAD: f64 = 7.0;
/// How much wider the bold title is.
const BOLD: f64 = 1.06;

#[derive(Template)]
#[template(path = "picture.svg")]
struct Drawing {
    title: String,
    subtitle: String,
    style: &'static str,
    width: f64,
    height: f64,
    sides: Vec<SideDrawing>,
    notes: Vec<TextLine>,
}

struct SideDrawing {
    title: String,
    x: f64,
    y: f64,
    frames: Vec<FrameDrawing>,
    lines: Vec<LineDrawing>,
    nodes: Vec<NodeDrawing>,
}

struct FrameDrawing {
    title: String,
    class: &'static str,
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

struct LineDrawing {
    class: String,
    path: String,
    width: f64,
    heads: Vec<String>,
    label: Option<(String, At)>,
}

struct TextLine {
    text: String,
    class: &'static str,
    y: f64,
}

struct NodeDrawing {
    class: String,
    x: f64,
    y: f64,
    width: f64,
    height: f64,
    text: String,
    is_slanted: bool,
    round: f64,
    /// How opaque the warm colour is, and how tall its bar.
    warmth: Option<(f64, f64)>,
    is_woven: bool,
    /// The ground of the text on woven nodes: its left end, width and height.
    back: Option<(f64, f64, f64)>,
    has_inner: bool,
    is_result: bool,
    lines: Vec<TextLine>,
    /// The bar of padded memory: its left end, its width, and the width of the part in use.
    bar: Option<(f64, f64, f64)>,
    sign: Option<&'static str>,
}

/// Writes a scene.
///
/// # Errors
/// Returns an error if the layout fails.
pub(crate) fn print(scene: &Scene) -> Result<String, ViewError> {
    let top = if scene.sides.len() > 1 { 76.0 } else { 52.0 };
    let (mut x, mut height) = (12.0, 0.0_f64);
    let mut sides = Vec::new();
    for side in &scene.sides {
        let sizes: Vec<Size> = side.picture.nodes.iter().map(size).collect();
        let headings: Vec<f64> =
            side.picture.boxes.iter().map(|frame| text_width(&frame.title) + 40.0).collect();
        let laid = lay_out(&side.picture, &sizes, &headings)?;
        sides.push(side_drawing(
            scene,
            &side.title,
            &side.picture,
            &laid,
            &sizes,
            At { x, y: top },
        ));
        x += laid.size.width + 48.0;
        height = height.max(laid.size.height);
    }
    let subtitle = scene.full_subtitle();
    let title = text_width(&scene.title).max(text_width(&subtitle)) + 60.0;
    let width = (x - 36.0).max(title).ceil();
    let notes = notes(scene, top + height + 30.0, width);
    let bottom = notes.last().map_or(top + height, |line| line.y);
    let drawing = Drawing {
        title: clean(&scene.title),
        subtitle: clean(&subtitle),
        style: include_str!("../assets/picture.css"),
        width,
        height: (bottom + 14.0).ceil(),
        sides,
        notes,
    };
    drawing.render().map_err(|error| ViewError::Page(error.to_string()))
}

/// Estimates the width of a text in a font whose characters are all as wide.
pub(crate) fn text_width(text: &str) -> f64 {
    text.chars().map(|c| if c > '\u{2e7f}' { 2.0 * CHAR } else { CHAR }).sum()
}

/// Replaces what XML cannot express.
fn clean(text: &str) -> String {
    let is_odd = |c: char| (c.is_control() && c != '\n') || matches!(c, '\u{fffe}' | '\u{ffff}');
    text.replace(is_odd, "\u{fffd}")
}

/// The lines of text in a node, with their classes.
fn lines(node: &Node) -> Vec<(String, &'static str)> {
    let mut lines = vec![(node.title.clone(), "name")];
    lines.push((format!("%{}", node.name), "faint"));
    lines.push((node.shape.clone(), "shape"));
    lines.extend(node.inlined.iter().map(|line| (line.clone(), "faint")));
    lines.extend(node.marks().into_iter().map(|mark| (mark, "mark")));
    lines
}

fn widest(lines: &[(String, &'static str)]) -> f64 {
    let width = |(text, class): &(String, &str)| {
        text_width(text) * if *class == "name" { BOLD } else { 1.0 }
    };
    lines.iter().map(width).fold(0.0, f64::max)
}

#[expect(clippy::cast_precision_loss, reason = "a number of lines")]
fn size(node: &Node) -> Size {
    let lines = lines(node);
    let slant = match node.kind {
        NodeKind::Reduction => 22.0,
        NodeKind::Input => 14.0,
        _ => 0.0,
    };
    let bar = if node.memory.is_padded { 9.0 } else { 0.0 };
    let width = widest(&lines).max(60.0) + 2.0 * PAD + slant;
    Size { width, height: lines.len() as f64 * LINE + 2.0 * PAD + bar }
}

fn side_drawing(
    scene: &Scene,
    title: &str,
    picture: &Picture,
    laid: &Laid,
    sizes: &[Size],
    at: At,
) -> SideDrawing {
    let frames = picture.boxes.iter().zip(&laid.boxes).map(|(frame, (at, size))| {
        let class = match frame.kind {
            FrameKind::Entry => "entry",
            FrameKind::Shared => "shared",
            FrameKind::Call => "call deep",
            FrameKind::Role => "role",
            FrameKind::Scope => "scope",
            FrameKind::Part => "part",
        };
        let entry = if frame.kind == FrameKind::Entry { "ENTRY " } else { "" };
        let title = clean(&format!("{entry}{}", frame.title));
        let (Size { width, height }, At { x, y }) = (*size, *at);
        FrameDrawing { title, class, x: r(x), y: r(y), width: r(width), height: r(height) }
    });
    let nodes = picture.nodes.iter().zip(sizes).zip(&laid.nodes);
    let is_weighted = scene.weights.is_some();
    SideDrawing {
        title: clean(title),
        x: r(at.x),
        y: r(at.y),
        frames: frames.collect(),
        lines: laid.lines.iter().map(line_drawing).collect(),
        nodes: nodes
            .map(|((node, size), at)| node_drawing(node, *size, *at, is_weighted))
            .collect(),
    }
}

/// Rounds to a tenth, so that the file is short and the same everywhere.
fn r(x: f64) -> f64 {
    (x * 10.0).round() / 10.0
}

/// The class of a kind in `picture.css`.
fn kind_class(kind: NodeKind) -> &'static str {
    match kind {
        NodeKind::Input => "input",
        NodeKind::Constant => "constant",
        NodeKind::Elementwise => "elementwise",
        NodeKind::Contraction => "contraction",
        NodeKind::Reduction => "reduction",
        NodeKind::Moves => "moves",
        NodeKind::Exchanges => "exchanges",
        NodeKind::Free => "free",
        NodeKind::Control => "control",
        NodeKind::Other => "other",
    }
}

/// The classes of a change in `picture.css`, and the sign in its badge.
fn change_class(change: Change) -> (&'static str, Option<&'static str>) {
    match change {
        Change::None => ("", None),
        Change::Added => (" changed added", Some("+")),
        Change::Removed => (" changed removed", Some("−")),
        Change::Edited => (" changed edited", Some("~")),
    }
}

#[expect(clippy::cast_precision_loss, reason = "numbers of lines and bytes")]
fn node_drawing(node: &Node, size: Size, at: At, is_weighted: bool) -> NodeDrawing {
    let (change, sign) = change_class(node.change);
    let lines = lines(node);
    let wide = widest(&lines);
    let is_slanted = node.kind == NodeKind::Reduction;
    let is_woven = matches!(node.kind, NodeKind::Moves | NodeKind::Exchanges);
    let full = size.width - 2.0 * PAD - if is_slanted { 22.0 } else { 0.0 };
    let share = node.weight.as_ref().map(|weight| weight.share).filter(|share| *share >= 0.001);
    let tall = |share: f64| (size.height * share).max(2.0);
    let texts = lines.iter().enumerate().map(|(i, (text, class))| TextLine {
        text: clean(text),
        class,
        y: PAD + 11.0 + i as f64 * LINE,
    });
    NodeDrawing {
        class: format!(
            "{}{}{change}",
            kind_class(node.kind),
            if is_weighted { " weighted" } else { "" }
        ),
        x: r(at.x),
        y: r(at.y),
        width: r(size.width),
        height: r(size.height),
        text: clean(&node.tooltip()),
        is_slanted,
        round: match node.kind {
            NodeKind::Input => 22.0,
            NodeKind::Control => 10.0,
            NodeKind::Free => 8.0,
            _ => 3.0,
        },
        warmth: share.map(|share| (r(7.5 * share.sqrt()) / 10.0, r(tall(share)))),
        is_woven,
        back: (is_woven && !is_weighted).then(|| {
            let left = (size.width - wide) / 2.0 - 3.0;
            (r(left), r(wide + 6.0), lines.len() as f64 * LINE + 1.0)
        }),
        has_inner: matches!(node.kind, NodeKind::Exchanges | NodeKind::Contraction),
        is_result: node.is_result,
        lines: texts.collect(),
        bar: node.memory.is_padded.then(|| {
            let used = (full / node.memory.padding()).max(1.5);
            (r((size.width - full) / 2.0), r(full), r(used))
        }),
        sign,
    }
}

fn line_drawing(line: &DrawnLine) -> LineDrawing {
    let kind = match line.kind {
        EdgeKind::Data => "",
        EdgeKind::Result => "result",
        EdgeKind::Order => "order",
    };
    let large = if line.is_large { " large" } else { "" };
    LineDrawing {
        class: format!("{kind}{large}").trim().to_owned(),
        path: path(&line.points),
        width: r(line.width),
        heads: heads(line),
        label: line.label.as_ref().map(|(text, at)| (clean(text), At { x: r(at.x), y: r(at.y) })),
    }
}

/// A line that leaves and arrives upright.
fn path(points: &[At]) -> String {
    let mut path = String::new();
    let Some(first) = points.first() else { return path };
    let _ = write!(path, "M{:.1},{:.1}", first.x, first.y);
    for pair in points.windows(2) {
        let (a, b) = (pair[0], pair[1]);
        let middle = (a.y + b.y) / 2.0;
        let _ =
            write!(path, "C{:.1},{middle:.1} {:.1},{middle:.1} {:.1},{:.1}", a.x, b.x, b.x, b.y);
    }
    path
}

/// The arrow heads: two for the reading of a large array, none at the border of a box.
fn heads(line: &DrawnLine) -> Vec<String> {
    let [.., before, end] = line.points.as_slice() else { return Vec::new() };
    if !line.ends {
        return Vec::new();
    }
    let size = 4.0 + line.width;
    let down = if end.y >= before.y { 1.0 } else { -1.0 };
    let head = |y: f64| {
        let (half, back) = (size / 1.6, size * down);
        format!("M{:.1},{y:.1}l{:.1},{:.1}h{:.1}z", end.x, -half, -back, 2.0 * half)
    };
    let second = line.is_large.then(|| head(end.y - size * down));
    std::iter::once(head(end.y)).chain(second).collect()
}

/// The lines of the notes, as wide as the drawing.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a number of characters"
)]
fn notes(scene: &Scene, mut y: f64, width: f64) -> Vec<TextLine> {
    let characters = ((width - 24.0) / CHAR / BOLD).max(20.0) as usize;
    let mut lines = Vec::new();
    for (index, note) in scene.notes.iter().enumerate() {
        let title = format!("note {}: {} at {}", index + 1, note.pass, note.place);
        for (text, class) in [(&title, "name"), (&note.text, "faint")] {
            for text in wrapped(&crate::words::cut_at(text, 600), characters).lines() {
                lines.push(TextLine { text: clean(text), class, y });
                y += LINE;
            }
        }
        y += 6.0;
    }
    lines
}
