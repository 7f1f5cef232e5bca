//! Chooses one of two sides for each of many nodes at the least total cost: a minimum cut.

use petgraph::algo::dinics;
use petgraph::graph::{DiGraph, EdgeIndex, NodeIndex};
use petgraph::visit::EdgeRef as _;

/// A node that is moved or left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node(NodeIndex);

/// A set of nodes, each of which is either moved or left, with the costs of both choices.
///
/// Costs are kept in multiples of 1/1024 cycle, so that their sums are exact and the choice is the
/// same on every machine.
#[derive(Debug)]
pub struct Cut {
    /// An edge is cut, and its weight paid, if its tail is moved and its head is left.
    graph: DiGraph<(), u64>,
    /// The source of the flow, on the moved side.
    moved: NodeIndex,
    /// The sink of the flow, on the left side.
    left: NodeIndex,
}

/// Cost units in a cycle.
const STEPS: f64 = 1024.0;
/// The weight of an edge that must not be cut: 2^20 times the largest cost, and thus more than any
/// sum of costs.
const NEVER: u64 = 1 << 62;
/// The largest cost, in units.
const GREATEST: f64 = (1u64 << 42) as f64;

impl Default for Cut {
    fn default() -> Self {
        let mut graph = DiGraph::new();
        let (moved, left) = (graph.add_node(()), graph.add_node(()));
        Self { graph, moved, left }
    }
}

impl Cut {
    /// Adds a node.
    pub fn node(&mut self) -> Node {
        Node(self.graph.add_node(()))
    }

    /// Sets the costs of moving a node and of leaving it; either may be negative.
    pub fn costs(&mut self, node: Node, if_moved: f64, if_left: f64) {
        if if_moved > if_left {
            self.edge(node.0, self.left, steps(if_moved - if_left));
        } else {
            self.edge(self.moved, node.0, steps(if_left - if_moved));
        }
    }

    /// Adds a cost that is paid if one node is moved and the other is left.
    pub fn apart(&mut self, moved: Node, left: Node, cost: f64) {
        self.edge(moved.0, left.0, steps(cost));
    }

    /// Forces a node to move.
    pub fn always_moved(&mut self, node: Node) {
        self.edge(self.moved, node.0, NEVER);
    }

    /// Forces the second node to move if the first is moved.
    pub fn together(&mut self, first: Node, second: Node) {
        self.edge(first.0, second.0, NEVER);
    }

    fn edge(&mut self, from: NodeIndex, to: NodeIndex, steps: u64) {
        if steps > 0 {
            self.graph.add_edge(from, to, steps);
        }
    }

    /// Returns the nodes to move for the least total cost; of equal choices, the one that moves
    /// fewest nodes.
    ///
    /// By the max-flow min-cut theorem of Ford and Fulkerson, no choice costs less than the maximum
    /// flow, and this one costs as much.
    pub fn solve(&self) -> Moved {
        let (_, flows) = dinics(&self.graph, self.moved, self.left);
        let flow = |edge: EdgeIndex| flows.get(edge.index()).copied().unwrap_or(0);
        let mut reached = vec![false; self.graph.node_count()];
        let mut next = vec![self.moved];
        while let Some(node) = next.pop() {
            if std::mem::replace(&mut reached[node.index()], true) {
                continue;
            }
            let outgoing = self.graph.edges(node);
            next.extend(outgoing.filter(|e| flow(e.id()) < *e.weight()).map(|e| e.target()));
            let incoming = self.graph.edges_directed(node, petgraph::Direction::Incoming);
            next.extend(incoming.filter(|e| flow(e.id()) > 0).map(|e| e.source()));
        }
        Moved(reached)
    }
}

/// The moved nodes.
#[derive(Clone, Debug)]
pub struct Moved(Vec<bool>);

impl Moved {
    /// Checks whether a node is moved.
    pub fn has(&self, node: Node) -> bool {
        self.0.get(node.0.index()).copied().unwrap_or(false)
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within bounds")]
fn steps(cost: f64) -> u64 {
    (cost * STEPS).round().clamp(0.0, GREATEST) as u64
}

#[cfg(test)]
mod tests {
    use super::{Cut, Node};

    /// Returns the least cost over all choices, by enumeration.
    fn least(nodes: usize, cost: impl Fn(&[bool]) -> f64) -> f64 {
        let choices = (0..1u32 << nodes).map(|bits| {
            let moved: Vec<bool> = (0..nodes).map(|n| bits & (1 << n) != 0).collect();
            cost(&moved)
        });
        choices.fold(f64::INFINITY, f64::min)
    }

    #[test]
    fn no_choice_costs_less() {
        let mut state = 7u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        for _ in 0..200 {
            let nodes = 1 + random(8) as usize;
            let own: Vec<(f64, f64)> =
                (0..nodes).map(|_| (random(20) as f64 - 5.0, random(20) as f64 - 5.0)).collect();
            let pairs: Vec<(usize, usize, f64)> = (0..2 * nodes)
                .map(|_| {
                    let (a, b) = (random(nodes as u64), random(nodes as u64));
                    (a as usize, b as usize, random(10) as f64 / 4.0)
                })
                .collect();
            let cost = |moved: &[bool]| {
                let own: f64 = own.iter().zip(moved).map(|(c, &m)| if m { c.0 } else { c.1 }).sum();
                let apart = pairs.iter().filter(|(a, b, _)| moved[*a] && !moved[*b]);
                own + apart.map(|(_, _, c)| c).sum::<f64>()
            };
            let mut cut = Cut::default();
            let ids: Vec<Node> = (0..nodes).map(|_| cut.node()).collect();
            for (&id, &(moved, left)) in ids.iter().zip(&own) {
                cut.costs(id, moved, left);
            }
            for &(a, b, c) in &pairs {
                cut.apart(ids[a], ids[b], c);
            }
            let moved = cut.solve();
            let chosen: Vec<bool> = ids.iter().map(|&id| moved.has(id)).collect();
            assert_eq!(cost(&chosen), least(nodes, cost));
        }
    }

    #[test]
    fn forced_nodes_are_moved() {
        let mut cut = Cut::default();
        let (a, b, c) = (cut.node(), cut.node(), cut.node());
        cut.costs(a, 10.0, 0.0);
        cut.costs(b, 10.0, 0.0);
        cut.always_moved(a);
        cut.together(a, b);
        let moved = cut.solve();
        assert!(moved.has(a) && moved.has(b) && !moved.has(c), "what costs the same stays");
    }
}
