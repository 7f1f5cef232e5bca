//! The aliases of locations, by MLIR's rules: `#loc3 = loc("f.py":1:2)`.

use std::collections::HashMap;
use std::sync::Arc;

use rustc_hash::{FxBuildHasher, FxHashMap};

use super::{MAX_DEPTH, attribute, location, quoted};
use crate::mlir::Location;

/// The locations of a program, each once, and their aliases.
#[derive(Default)]
pub(super) struct Aliases {
    nodes: Vec<LocationNode>,
    known: HashMap<Key, usize, FxBuildHasher>,
    /// The node of a location by its address, so that a part of many locations is read once.
    seen: FxHashMap<*const Location, usize>,
    /// The nodes in the order in which they are met.
    order: Vec<usize>,
}

/// A location, whose parts are other nodes.
struct LocationNode {
    /// The text, in pieces between which the parts go.
    pieces: Vec<String>,
    parts: Vec<usize>,
    depth: usize,
    is_met: bool,
    /// Whether the alias may stand at the end of the text.
    is_deferred: bool,
    number: usize,
}

/// The key of a location: its text without its parts, and the parts.
type Key = (Vec<String>, Vec<usize>);

impl Aliases {
    /// Notes that a location will be written; its alias must stand before it if it `is_argument`'s.
    pub(super) fn meet(&mut self, location: &Arc<Location>, is_argument: bool) {
        let node = self.node(location, 0);
        self.visit(node, !is_argument);
    }

    /// Gives numbers to all locations that were met: those without parts come first.
    pub(super) fn number(&mut self) {
        let mut order = std::mem::take(&mut self.order);
        order.sort_by_key(|&at| self.nodes.get(at).map(|node| node.depth));
        for (number, &at) in order.iter().enumerate() {
            if let Some(node) = self.nodes.get_mut(at) {
                node.number = number;
            }
        }
        self.order = order;
    }

    /// Writes the definitions of the aliases that stand before the program, or after it.
    pub(super) fn definitions(&self, out: &mut String, are_deferred: bool) {
        for &at in &self.order {
            let Some(node) = self.nodes.get(at) else { continue };
            if node.is_deferred == are_deferred {
                alias(out, node.number);
                out.push_str(" = loc(");
                self.contents(out, at);
                out.push_str(")\n");
            }
        }
    }

    /// Writes `loc(#loc3)`, or what the alias stands for.
    pub(super) fn push(&self, out: &mut String, location: &Arc<Location>, is_alias: bool) {
        let Some(&at) = self.seen.get(&Arc::as_ptr(location)) else { return };
        out.push_str(" loc(");
        match self.nodes.get(at).filter(|_| is_alias) {
            Some(node) => alias(out, node.number),
            None => self.contents(out, at),
        }
        out.push(')');
    }

    /// Writes a location with the aliases of its parts.
    fn contents(&self, out: &mut String, at: usize) {
        let Some(node) = self.nodes.get(at) else { return };
        let mut parts = node.parts.iter();
        for piece in &node.pieces {
            out.push_str(piece);
            if let Some(part) = parts.next().and_then(|&part| self.nodes.get(part)) {
                alias(out, part.number);
            }
        }
    }

    /// Returns the node of a location.
    fn node(&mut self, location: &Arc<Location>, depth: usize) -> usize {
        let address = Arc::as_ptr(location);
        if let Some(&node) = self.seen.get(&address) {
            return node;
        }
        let parts: Vec<usize> = match &**location {
            _ if depth > MAX_DEPTH => Vec::new(),
            Location::Unknown | Location::File { .. } => Vec::new(),
            Location::Name { child, .. } if **child == Location::Unknown => Vec::new(),
            Location::Name { child, .. } => vec![self.node(child, depth + 1)],
            Location::Call { callee, caller } => {
                vec![self.node(callee, depth + 1), self.node(caller, depth + 1)]
            }
            Location::Fused { parts, .. } => {
                parts.iter().map(|part| self.node(part, depth + 1)).collect()
            }
        };
        let is_deep = depth > MAX_DEPTH;
        let pieces = if is_deep { vec!["unknown".to_owned()] } else { pieces(location) };
        let key = (pieces, parts);
        let node = match self.known.get(&key) {
            Some(&node) => node,
            None => self.add(key),
        };
        self.seen.insert(address, node);
        node
    }

    fn add(&mut self, (pieces, parts): Key) -> usize {
        let deepest = parts.iter().filter_map(|&part| self.nodes.get(part)).map(|part| part.depth);
        let depth = deepest.max().map_or(0, |depth| depth + 1);
        let at = self.nodes.len();
        self.known.insert((pieces.clone(), parts.clone()), at);
        let (is_met, is_deferred, number) = (false, true, 0);
        self.nodes.push(LocationNode { pieces, parts, depth, is_met, is_deferred, number });
        at
    }

    fn visit(&mut self, at: usize, is_deferred: bool) {
        let Some(node) = self.nodes.get_mut(at) else { return };
        let is_known = std::mem::replace(&mut node.is_met, true);
        if is_known && (is_deferred || !node.is_deferred) {
            return;
        }
        node.is_deferred = is_deferred;
        let parts = node.parts.clone();
        if !is_known {
            self.order.push(at);
        }
        for part in parts {
            self.visit(part, is_deferred);
        }
    }
}

fn alias(out: &mut String, number: usize) {
    out.push_str("#loc");
    if number > 0 {
        out.push_str(&number.to_string());
    }
}

/// The text of a location, in pieces between which its parts go.
fn pieces(location: &Location) -> Vec<String> {
    let mut out = String::new();
    match location {
        Location::Unknown => out.push_str("unknown"),
        Location::File { file, start, end } => location::file(&mut out, file, *start, *end),
        Location::Name { name, child } => {
            quoted(&mut out, name.as_bytes());
            if **child != Location::Unknown {
                out.push('(');
                return vec![out, ")".to_owned()];
            }
        }
        Location::Call { .. } => return ["callsite(", " at ", ")"].map(str::to_owned).to_vec(),
        Location::Fused { metadata, parts } => {
            out.push_str("fused");
            if let Some(metadata) = metadata {
                out.push('<');
                attribute::push(&mut out, metadata, 0);
                out.push('>');
            }
            out.push('[');
            let mut pieces = vec![out];
            pieces.extend((1..parts.len()).map(|_| ", ".to_owned()));
            match parts.is_empty() {
                true => pieces.iter_mut().for_each(|piece| piece.push(']')),
                false => pieces.push("]".to_owned()),
            }
            return pieces;
        }
    }
    vec![out]
}
