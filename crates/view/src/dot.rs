//! Writes a picture in the language of Graphviz.

use std::fmt::Write as _;

use crate::picture::{Change, EdgeKind, FrameKind, Node, NodeKind, Picture};
use crate::scene::Scene;

/// The colours on white: of what moves data in memory and between devices, and of what is padded.
const MOVES: &str = "#f6c26b";
const EXCHANGES: &str = "#e9c7f5";
const PADDED: &str = "#2166ac";

/// Writes a scene.
pub(crate) fn print(scene: &Scene) -> String {
    let mut out = Writer { out: String::new(), indent: 0, weighted: scene.weights.is_some() };
    out.line(&format!("digraph {} {{", quoted(&scene.title)));
    out.indent += 1;
    let label = format!("{}\n{}", scene.title, scene.full_subtitle());
    out.line(&format!("label={} labelloc=t fontname=\"Helvetica\"", quoted(&label)));
    out.line("compound=true ranksep=0.35 nodesep=0.25");
    out.line("node [shape=box style=filled fillcolor=white fontname=\"Helvetica\" fontsize=10]");
    out.line("edge [fontname=\"Helvetica\" fontsize=9 arrowsize=0.6]");
    for (number, side) in scene.sides.iter().enumerate() {
        let is_alone = scene.sides.len() == 1;
        if !is_alone {
            out.line(&format!("subgraph cluster_side{number} {{"));
            out.indent += 1;
            out.line(&format!("label={} style=bold", quoted(&side.title)));
        }
        out.picture(number, &side.picture);
        if !is_alone {
            out.close();
        }
    }
    out.notes(scene);
    out.close();
    out.out
}

struct Writer {
    out: String,
    indent: usize,
    weighted: bool,
}

/// A step of the walk over boxes.
enum BoxVisit {
    Open(usize),
    Close,
}

impl Writer {
    fn line(&mut self, text: &str) {
        let indent = 2 * self.indent.min(20);
        let _ = writeln!(self.out, "{:indent$}{text}", "");
    }

    fn close(&mut self) {
        self.indent = self.indent.saturating_sub(1);
        self.line("}");
    }

    fn picture(&mut self, side: usize, picture: &Picture) {
        let mut inner: Vec<Vec<usize>> = vec![Vec::new(); picture.boxes.len()];
        let mut nodes: Vec<Vec<usize>> = vec![Vec::new(); picture.boxes.len()];
        let mut steps = Vec::new();
        for (index, frame) in picture.boxes.iter().enumerate() {
            match frame.parent {
                Some(parent) => inner[parent].push(index),
                None => steps.push(BoxVisit::Open(index)),
            }
        }
        for (index, node) in picture.nodes.iter().enumerate() {
            nodes[node.frame].push(index);
        }
        steps.reverse();
        while let Some(step) = steps.pop() {
            let BoxVisit::Open(frame) = step else {
                self.close();
                continue;
            };
            self.open(side, frame, picture);
            for &node in &nodes[frame] {
                self.node(side, node, &picture.nodes[node]);
            }
            steps.push(BoxVisit::Close);
            steps.extend(inner[frame].iter().rev().map(|&frame| BoxVisit::Open(frame)));
        }
        self.edges(side, picture, &nodes);
    }

    fn open(&mut self, side: usize, index: usize, picture: &Picture) {
        let frame = &picture.boxes[index];
        self.line(&format!("subgraph cluster_{side}_{index} {{"));
        self.indent += 1;
        let style = match frame.kind {
            FrameKind::Entry => "style=solid color=gray60",
            FrameKind::Shared => "style=dashed color=black",
            _ => "style=\"rounded,filled\" fillcolor=gray95 color=gray40",
        };
        self.line(&format!("label={} {style}", quoted(&frame.title)));
    }

    fn node(&mut self, side: usize, index: usize, node: &Node) {
        let mut label = format!("{}\n%{}", node.title, node.name);
        for line in node.lines() {
            label.push('\n');
            label += line;
        }
        for mark in node.marks() {
            let _ = write!(label, "\n[{mark}]");
        }
        let style = self.style(node);
        let (label, tip) = (quoted(&label), quoted(&node.tooltip()));
        self.line(&format!("n{side}_{index} [label={label} tooltip={tip}{style}]"));
    }

    fn style(&self, node: &Node) -> String {
        let (shape, line) = match node.kind {
            NodeKind::Input => ("oval", "filled"),
            NodeKind::Constant => ("note", "filled"),
            NodeKind::Elementwise | NodeKind::Other => ("box", "filled"),
            NodeKind::Contraction => ("box3d", "filled"),
            NodeKind::Reduction => ("invtrapezium", "filled"),
            NodeKind::Moves => ("box", "filled,bold,diagonals"),
            NodeKind::Exchanges => ("doubleoctagon", "filled,bold"),
            NodeKind::Free => ("box", "filled,rounded,dashed"),
            NodeKind::Control => ("box", "filled,rounded"),
        };
        let mut style = format!(" shape={shape} style={}", quoted(line));
        if node.kind == NodeKind::Reduction {
            style += " margin=\"0,0\"";
        }
        match &node.weight {
            Some(weight) if self.weighted => {
                // The hotter, the darker; text stays black.
                let saturation = 0.75 * weight.share.sqrt();
                let _ = write!(style, " fillcolor=\"0.05 {saturation:.3} 1.0\"");
            }
            Some(_) | None => {
                let fill = match node.kind {
                    NodeKind::Moves => MOVES,
                    NodeKind::Exchanges => EXCHANGES,
                    _ => "white",
                };
                if fill != "white" && !self.weighted {
                    let _ = write!(style, " fillcolor={}", quoted(fill));
                }
            }
        }
        if node.memory.is_padded {
            let _ = write!(style, " color={} penwidth=3", quoted(PADDED));
        }
        if node.is_result {
            style += " peripheries=2";
        }
        match node.change {
            Change::None => {}
            Change::Removed => style += " fontcolor=\"#8c1d18\"",
            Change::Added => style += " fontcolor=\"#0b6623\"",
            Change::Edited => style += " fontcolor=\"#5b3a8e\"",
        }
        style
    }

    fn edges(&mut self, side: usize, picture: &Picture, nodes: &[Vec<usize>]) {
        for edge in &picture.edges {
            let mut attributes = Vec::new();
            let text = edge.text();
            if !text.is_empty() {
                attributes.push(format!("label={}", quoted(&text)));
            }
            match edge.kind {
                EdgeKind::Data => attributes.push(format!("penwidth={:.2}", edge.width())),
                EdgeKind::Result => attributes.push("style=dashed".to_owned()),
                EdgeKind::Order => attributes.push("style=dotted arrowhead=open".to_owned()),
            }
            if edge.is_large {
                attributes.push("arrowhead=normalnormal".to_owned());
            }
            let (from, to) = (edge.from, edge.to);
            self.line(&format!("n{side}_{from} -> n{side}_{to} [{}]", attributes.join(" ")));
        }
        for (index, node) in picture.nodes.iter().enumerate() {
            for &frame in &node.calls {
                if let Some(first) = nodes.get(frame).and_then(|nodes| nodes.first()) {
                    let head = format!("lhead=cluster_{side}_{frame}");
                    let style = "style=dotted arrowhead=empty label=calls constraint=false";
                    self.line(&format!("n{side}_{index} -> n{side}_{first} [{head} {style}]"));
                }
            }
        }
    }

    fn notes(&mut self, scene: &Scene) {
        for (index, note) in scene.notes.iter().enumerate() {
            let text =
                format!("note {}: {} at {}: {}", index + 1, note.pass, note.place, note.text);
            let text = wrapped(&crate::words::cut_at(&text, 400), 70);
            self.line(&format!(
                "note{index} [shape=note fillcolor=\"#fffbe6\" label={}]",
                quoted(&text)
            ));
        }
    }
}

/// Breaks a text at spaces into lines of about so many characters.
pub(crate) fn wrapped(text: &str, width: usize) -> String {
    let mut lines: Vec<String> = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last().map_or(0, |line| line.chars().count());
        match lines.last_mut() {
            Some(last) if line == 0 => last.push_str(word),
            Some(last) if line + word.chars().count() < width => {
                last.push(' ');
                last.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}

/// Quotes a text for Graphviz: no part of it is an escape or the end of the string.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            // Graphviz reads entities in labels.
            '&' => out.push_str("&amp;"),
            c if c.is_control() => out.push(char::REPLACEMENT_CHARACTER),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::{quoted, wrapped};

    #[test]
    fn a_quoted_text_is_one_string() {
        assert_eq!(quoted("a \"b\" \\N\n&lt;\t"), "\"a \\\"b\\\" \\\\N\\n&amp;lt;\u{fffd}\"");
    }

    #[test]
    fn lines_are_broken_at_spaces() {
        assert_eq!(wrapped("one two  three", 9), "one two\nthree");
        assert_eq!(wrapped("incomprehensible", 4), "incomprehensible");
    }
}
