//! Walks over computations and the call graph, through petgraph's traits.
//!
//! The traits work on the module itself: nothing is copied, and a walk sees
//! every edit made before it.

use petgraph::visit::{DfsPostOrder, GraphBase, GraphRef, IntoNeighbors, VisitMap, Visitable};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::entity::{CompId, Entity, InstId};
use crate::module::Module;
use crate::ops::Op;

/// The nodes that a walk has visited. Its size depends on the walk and not on the module, so
/// that many small walks over a large module stay cheap.
#[derive(Clone, Debug)]
pub struct Visited<K: Entity>(FxHashSet<K>);

impl<K: Entity> Default for Visited<K> {
    fn default() -> Self {
        Self(FxHashSet::default())
    }
}

impl<K: Entity> VisitMap<K> for Visited<K> {
    fn visit(&mut self, node: K) -> bool {
        self.0.insert(node)
    }
    fn is_visited(&self, node: &K) -> bool {
        self.0.contains(node)
    }
    fn unvisit(&mut self, node: K) -> bool {
        self.0.remove(&node)
    }
}

/// A computation as a graph whose edges lead from users to operands, so that
/// a post-order visits producers first.
#[derive(Clone, Copy)]
pub struct OperandGraph<'a>(pub &'a Module);

impl GraphBase for OperandGraph<'_> {
    type NodeId = InstId;
    type EdgeId = (InstId, usize);
}

impl GraphRef for OperandGraph<'_> {}

impl<'a> IntoNeighbors for OperandGraph<'a> {
    type Neighbors = std::iter::Copied<std::slice::Iter<'a, InstId>>;
    fn neighbors(self, id: InstId) -> Self::Neighbors {
        self.0.operands(id).iter().copied()
    }
}

impl Visitable for OperandGraph<'_> {
    type Map = Visited<InstId>;
    fn visit_map(&self) -> Self::Map {
        Visited::default()
    }
    fn reset_map(&self, map: &mut Self::Map) {
        map.0.clear();
    }
}

/// The call graph: edges lead from callers to callees.
#[derive(Clone, Copy)]
pub struct CallGraph<'a> {
    callees: &'a FxHashMap<CompId, Vec<CompId>>,
}

impl GraphBase for CallGraph<'_> {
    type NodeId = CompId;
    type EdgeId = (CompId, usize);
}

impl GraphRef for CallGraph<'_> {}

impl<'a> IntoNeighbors for CallGraph<'a> {
    type Neighbors = std::iter::Copied<std::slice::Iter<'a, CompId>>;
    fn neighbors(self, id: CompId) -> Self::Neighbors {
        self.callees.get(&id).map_or(&[][..], Vec::as_slice).iter().copied()
    }
}

impl Visitable for CallGraph<'_> {
    type Map = Visited<CompId>;
    fn visit_map(&self) -> Self::Map {
        Visited::default()
    }
    fn reset_map(&self, map: &mut Self::Map) {
        map.0.clear();
    }
}

impl Module {
    /// `root` and all its transitive operands, operands before users.
    pub fn post_order(&self, root: InstId) -> Vec<InstId> {
        let graph = OperandGraph(self);
        let mut walk = DfsPostOrder::new(graph, root);
        std::iter::from_fn(|| walk.next(graph)).collect()
    }

    /// `root` and all computations that it calls transitively, callees before callers.
    pub fn call_order(&self, root: CompId) -> Vec<CompId> {
        let callees: FxHashMap<CompId, Vec<CompId>> =
            self.order.iter().map(|&c| (c, self.callees(c))).collect();
        let graph = CallGraph { callees: &callees };
        let mut walk = DfsPostOrder::new(graph, root);
        std::iter::from_fn(|| walk.next(graph)).collect()
    }

    /// Returns the computations called by the instructions of one, each once, in order.
    pub fn callees(&self, computation: CompId) -> Vec<CompId> {
        let mut seen = FxHashSet::default();
        let mut callees = Vec::new();
        for id in self.instructions(computation) {
            self.op(id).for_each_computation(&mut |callee| {
                if seen.insert(callee) {
                    callees.push(callee);
                }
            });
        }
        callees
    }

    /// Returns the computations with side effects, in themselves or in computations that they
    /// call.
    pub fn effectful_computations(&self) -> FxHashSet<CompId> {
        let mut effectful = FxHashSet::default();
        // Callees precede callers, so one pass is enough.
        for &computation in &self.order {
            if self.instructions(computation).any(|id| self.has_side_effect(id, &effectful)) {
                effectful.insert(computation);
            }
        }
        effectful
    }

    /// Checks whether an instruction has side effects, given the
    /// [`Module::effectful_computations`].
    pub fn has_side_effect(&self, id: InstId, effectful: &FxHashSet<CompId>) -> bool {
        let op = self.op(id);
        let acts = match op {
            Op::CustomCall(attrs) => attrs.custom_call_has_side_effect,
            // As in XLA, where all devices run one program. Only a collective that keeps layouts
            // may meet one of another program.
            Op::AllGather(attrs) => attrs.constrain_layout,
            Op::AllReduce(attrs) => attrs.constrain_layout,
            Op::AllToAll(attrs) => attrs.constrain_layout,
            Op::ReduceScatter(attrs) => attrs.constrain_layout,
            op => op.opcode().has_side_effect(),
        };
        if acts {
            return true;
        }
        let mut found = false;
        op.for_each_computation(&mut |callee| found |= effectful.contains(&callee));
        found
    }
}
