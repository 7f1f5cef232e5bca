//! Divides a program into slabs, tiles, passes and steps, and assigns buffers to values. `run.rs`
//! runs the plan.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use super::factors::Definitions;
use super::program::{Program, ProgramNode, Reduction};
use super::space::{Space, operands_of};
use super::steps::{Action, Goal, Pass, PassBuilder, PassStep, uses_of};
use super::{chain, products, terms};

/// The number of elements of a tile: buffers of this many `f32` stay in the first cache.
const TILE: usize = 2048;
/// A slab of at most this many elements is one tile, whose values are computed once. Several small
/// slabs are one tile together.
const MOST_WHOLE: usize = 8192;
/// An axis that lies inside of others is fixed in a slab only if at least this many elements inside
/// of it are contiguous.
const LEAST_RUN: usize = 64;
/// This many slabs are enough to keep all threads busy.
const MANY: usize = 64;

/// Where the results of a reduction lie: those of one slab, or those of all slabs if it is a sink.
#[derive(Clone, Debug)]
pub(super) struct ResultLayout {
    pub(super) reduction: Reduction,
    /// For each axis the stride in the results; 0 where results do not vary.
    pub(super) strides: SmallVec<[usize; 8]>,
    /// The number of results.
    pub(super) len: usize,
    /// Whether the reduction is a sink, which goes on over all slabs.
    pub(super) is_sink: bool,
}

/// How a program is divided.
#[derive(Debug)]
pub(super) struct TilePlan {
    pub(super) space: Space,
    /// The set of axes outside of slabs: a slab has one index of each, but several of a group's
    /// axis.
    pub(super) outer: u64,
    /// The axis outside of slabs of which a slab has several indices, and their number.
    pub(super) group: Option<(usize, usize)>,
    /// The set of axes of a tile.
    pub(super) tile: u64,
    /// The axis of a tile that is longer than the tile, and the number of its indices in a tile.
    pub(super) cut: Option<(usize, usize)>,
    /// The most elements of a tile.
    pub(super) capacity: usize,
    pub(super) passes: Vec<Pass>,
    /// The number of buffers that the values of a tile need.
    pub(super) buffers: usize,
    /// For each reduction, by number, where its results lie; `None` if no output needs it.
    pub(super) layouts: Vec<Option<ResultLayout>>,
    /// The outputs that need sinks, so that they are computed after all slabs.
    pub(super) later: Vec<usize>,
}

/// The facts that follow from the nodes alone.
struct Facts {
    /// For each node the set of reductions, by number, that it needs.
    needs: Vec<u64>,
    /// The set of reductions that are added up over all slabs: see [`sinks`].
    sinks: u64,
    /// For each node the number of reductions within a slab that precede it, one after the other.
    depth: Vec<usize>,
}

impl TilePlan {
    pub(super) fn of(program: &Program, space: Space) -> Self {
        let mut facts = Facts { needs: needs(program, &space), sinks: 0, depth: Vec::new() };
        facts.sinks = sinks(program, &space, &facts.needs);
        let outer = outer(&space, &mut facts.sinks);
        facts.depth = depths(program, &facts);
        let mut plan = Self {
            space,
            outer,
            group: None,
            tile: 0,
            cut: None,
            capacity: 1,
            passes: Vec::new(),
            buffers: 0,
            layouts: Vec::new(),
            later: Vec::new(),
        };
        plan.choose_tile();
        plan.layouts = (0..plan.space.reductions.len())
            .map(|number| plan.layout(program, number, facts.sinks >> number & 1 == 1))
            .collect();
        let is_later = |output: &usize| facts.waits(program.outputs[*output].of.0);
        plan.later = (0..program.outputs.len()).filter(is_later).collect();
        plan.make_passes(program, &facts);
        plan
    }

    /// The set of axes of a slab, without the axis of a group.
    pub(super) fn inner(&self) -> u64 {
        self.space.all() & !self.outer
    }

    /// The number of elements of a slab, for one index of a group.
    pub(super) fn slab(&self) -> usize {
        self.space.size(self.inner())
    }

    /// The number of indices that a slab has of an axis outside.
    pub(super) fn part(&self, axis: usize) -> usize {
        self.group.filter(|group| group.0 == axis).map_or(1, |group| group.1)
    }

    /// Checks whether each slab is one tile.
    pub(super) fn is_whole(&self) -> bool {
        self.inner() & !self.tile == 0 && self.cut.is_none()
    }

    /// Chooses the axes of a tile, the group and the cut.
    fn choose_tile(&mut self) {
        let (inner, slab) = (self.inner(), self.slab());
        let axes = self.space.axes.iter().enumerate().rev();
        let mut outer = axes.clone().filter(|(i, _)| self.outer >> i & 1 == 1);
        if let Some((axis, Some(len))) = outer.next().map(|(i, axis)| (i, Some(axis.len)))
            && MOST_WHOLE / slab.max(1) >= 2
        {
            let len = len.min(MOST_WHOLE / slab.max(1));
            self.group = Some((axis, len));
            self.capacity = len;
            self.tile |= 1 << axis;
        }
        let whole = slab <= MOST_WHOLE;
        for (i, axis) in axes.filter(|(i, _)| inner >> i & 1 == 1) {
            let part = if whole { axis.len } else { (TILE / self.capacity).min(axis.len) };
            if part < 2 {
                return;
            }
            self.tile |= 1 << i;
            self.capacity *= part;
            if part < axis.len {
                self.cut = Some((i, part));
                return;
            }
        }
    }

    /// Returns where the results of a reduction lie, if an output needs it.
    fn layout(&self, program: &Program, number: usize, is_sink: bool) -> Option<ResultLayout> {
        let node = *self.space.reductions.get(number)?;
        let Some(&ProgramNode::Reduce(reduction, ..)) = program.nodes.get(node) else {
            return None;
        };
        if !self.space.needed[node] {
            return None;
        }
        let mut strides = SmallVec::from_elem(0, self.space.axes.len());
        let mut len = 1usize;
        for (i, axis) in self.space.axes.iter().enumerate().rev() {
            let is_outer = self.outer >> i & 1 == 1;
            let extent = if is_outer && !is_sink { self.part(i) } else { axis.len };
            if self.space.varies[node] >> i & 1 == 1 && extent > 1 {
                strides[i] = len;
                len *= extent;
            }
        }
        Some(ResultLayout { reduction, strides, len, is_sink })
    }

    /// Makes the passes, lets their steps take in others, and assigns buffers.
    fn make_passes(&mut self, program: &Program, facts: &Facts) {
        let now = |node: usize, depth: usize| !facts.waits(node) && facts.depth[node] == depth;
        let last = facts.depth.iter().max().copied().unwrap_or(0);
        let mut values = BTreeMap::new();
        let mut made = 0;
        for depth in 0..=last {
            if !self.is_whole() {
                values.clear();
            }
            let mut builder = PassBuilder {
                plan: self,
                program,
                values: &mut values,
                made,
                pass: Pass::default(),
            };
            let mut goals = Vec::new();
            for (number, &node) in builder.plan.space.reductions.iter().enumerate() {
                if let ProgramNode::Reduce(_, of, _) = program.nodes[node]
                    && builder.plan.space.needed[node]
                    && now(of.0, depth)
                {
                    goals.push(Goal::Reduction(number, of.0));
                }
            }
            for (output, wanted) in program.outputs.iter().enumerate() {
                let of = wanted.of.0;
                // Small outputs are stored in the last pass, so that a sum that only they need can
                // be computed together with a later sum that reads the same elements
                // (`products.rs`).
                let is_now = if self.is_small(of) { depth == last } else { now(of, depth) };
                if is_now && !facts.waits(of) {
                    goals.push(Goal::Output(output, of));
                }
            }
            builder.values_of(&goals);
            for &goal in &goals {
                builder.end(goal);
            }
            let pass = std::mem::take(&mut builder.pass);
            made = builder.made;
            self.passes.push(pass);
        }
        self.mark_tile_invariants(made);
        let definitions = Definitions::of(&self.passes, made);
        let mut uses = uses_of(&self.passes, made);
        products::make(self, &definitions, &mut uses);
        terms::make(&mut self.passes, &definitions, &mut uses);
        chain::make(&mut self.passes, made);
        self.mark_fetches();
        self.share_buffers(made);
    }

    /// Checks whether a node has few elements in comparison with the whole space.
    fn is_small(&self, node: usize) -> bool {
        const TIMES: usize = 16;
        let elements = self.space.size(self.space.varies[node]);
        elements.saturating_mul(TIMES) <= self.space.size(self.space.all())
    }

    /// Finds the steps whose values are the same in all tiles of a pass over a slab. If each slab
    /// is one tile, the values must be the same in all slabs.
    fn mark_tile_invariants(&mut self, made: usize) {
        let cut = self.cut.map_or(0, |(axis, _)| 1 << axis);
        let inner = self.inner() & (!self.tile | cut);
        let is_whole = self.is_whole();
        let mut is_tile_invariant = vec![false; made];
        for pass in &mut self.passes {
            let along = if is_whole { self.outer } else { pass.axes & inner };
            let axes = || (0..self.space.axes.len()).filter(|axis| along >> axis & 1 == 1);
            for step in &mut pass.steps {
                step.is_tile_invariant = match step.action {
                    Action::Input(input) => axes().all(|i| self.space.axes[i].inputs[input] == 0),
                    Action::Constant(_) => true,
                    Action::Reduced { reduction, .. } => match &self.layouts[reduction] {
                        Some(layout) if !is_whole => axes().all(|axis| layout.strides[axis] == 0),
                        _ => false,
                    },
                    Action::Unary(_) | Action::Binary(_) | Action::Select | Action::Expand(_) => {
                        step.args.iter().all(|arg| is_tile_invariant.get(arg.value) == Some(&true))
                    }
                    Action::Chain(_)
                    | Action::Accumulate { .. }
                    | Action::Products(_)
                    | Action::Store { .. } => false,
                };
                if let Some(kept) = is_tile_invariant.get_mut(step.out) {
                    *kept = step.is_tile_invariant;
                }
            }
        }
    }

    /// Finds the steps that prefetch: one of each pass, or one of all passes if each slab is one
    /// tile.
    fn mark_fetches(&mut self) {
        let (tile, is_whole) = (self.tile, self.is_whole());
        for pass in self.passes.iter_mut().rev() {
            let set = pass.axes & tile;
            let can = |step: &&mut PassStep| {
                step.set == set && matches!(step.action, Action::Chain(_) | Action::Products(_))
            };
            if let Some(last) = pass.steps.iter_mut().rev().find(can) {
                last.fetches = true;
                if is_whole {
                    return;
                }
            }
        }
    }

    /// Assigns buffers, so that values that are not needed at the same time share one.
    fn share_buffers(&mut self, made: usize) {
        let mut last = vec![0; made];
        let steps = self.passes.iter().flat_map(|pass| &pass.steps);
        for (now, step) in steps.enumerate() {
            let values = step.args.iter().map(|arg| arg.value).chain([step.out]);
            for value in values.filter(|&value| value < made) {
                last[value] = now;
            }
        }
        let mut at = vec![0; made];
        let mut free: Vec<usize> = Vec::new();
        let mut now = 0;
        let is_whole = self.is_whole();
        // A value that is kept from tile to tile shares its buffer with no other.
        let mut kept: Vec<usize> = Vec::new();
        for pass in &mut self.passes {
            for step in &mut pass.steps {
                let mut ended: SmallVec<[usize; 4]> =
                    step.args.iter().map(|arg| arg.value).collect();
                if step.out < made {
                    let shared = if step.is_tile_invariant { None } else { free.pop() };
                    at[step.out] = shared.unwrap_or(self.buffers);
                    self.buffers = self.buffers.max(at[step.out] + 1);
                    ended.push(step.out);
                    kept.extend(step.is_tile_invariant.then_some(at[step.out]));
                }
                ended.sort_unstable();
                ended.dedup();
                let ended = ended.iter().filter(|&&value| last[value] == now);
                free.extend(ended.map(|&value| at[value]).filter(|buffer| !kept.contains(buffer)));
                step.args.iter_mut().for_each(|arg| arg.value = at[arg.value]);
                step.out = at.get(step.out).copied().unwrap_or(usize::MAX);
                now += 1;
            }
            if !is_whole {
                free.append(&mut kept);
            }
        }
    }
}

impl Facts {
    /// Checks whether a node needs a sink.
    fn waits(&self, node: usize) -> bool {
        self.needs[node] & self.sinks != 0
    }
}

/// Returns for each node the set of reductions that it needs; a reduction needs itself.
fn needs(program: &Program, space: &Space) -> Vec<u64> {
    let mut needs: Vec<u64> = Vec::with_capacity(program.nodes.len());
    for (place, node) in program.nodes.iter().enumerate() {
        let own = u64::from(matches!(node, ProgramNode::Reduce(..))) << space.number(place);
        needs.push(operands_of(node).iter().fold(own, |set, of| set | needs[of.0]));
    }
    needs
}

/// Returns the reductions that can be sinks, which are added up over all slabs. No other reduction
/// needs a sink, no needed value that is made of a sink varies along an axis that the sink reduces,
/// and no needed value is made of a sink and of another reduction.
fn sinks(program: &Program, space: &Space, needs: &[u64]) -> u64 {
    let mut sinks = space.used();
    // For each node the reductions that it is made of, without those that these are made of.
    let mut made_of: Vec<u64> = Vec::with_capacity(program.nodes.len());
    for (place, node) in program.nodes.iter().enumerate() {
        let own = match node {
            ProgramNode::Reduce(..) => 1 << space.number(place),
            _ => operands_of(node).iter().fold(0, |set, of| set | made_of[of.0]),
        };
        made_of.push(own);
        if !space.needed[place] {
            continue;
        }
        if let ProgramNode::Reduce(_, of, _) = node {
            sinks &= !needs[of.0];
        }
        for number in (0..space.reductions.len()).filter(|number| own >> number & 1 == 1) {
            if space.varies[place] & space.reduced(number) != 0 {
                sinks &= !(1 << number);
            }
        }
    }
    loop {
        let needed = made_of.iter().zip(&space.needed).filter(|(_, needed)| **needed);
        let mixed = needed.filter(|(set, _)| **set & sinks != 0 && **set & !sinks != 0);
        let mixed = mixed.fold(0, |all, (set, _)| all | set);
        if mixed & sinks == 0 {
            return sinks;
        }
        sinks &= !mixed;
    }
}

/// Returns the axes that are fixed in a slab. If the axes that no reduction reduces make enough
/// slabs, or sinks would not add any, there are no sinks: all reductions are within slabs.
fn outer(space: &Space, sinks: &mut u64) -> u64 {
    let kept = |set: u64| {
        let numbers = (0..space.reductions.len()).filter(|number| set >> number & 1 == 1);
        side_by_side(space, space.all() & !numbers.fold(0, |all, n| all | space.reduced(n)))
    };
    let (by_all, by_inner) = (kept(space.used()), kept(space.used() & !*sinks));
    if by_all == by_inner || space.size(by_all) >= MANY {
        *sinks = 0;
        return by_all;
    }
    by_inner
}

/// Removes from a set the axes inside of which fewer than [`LEAST_RUN`] elements are contiguous.
/// The outermost axes of the set stay; if all axes are in the set, only the innermost one is
/// removed.
fn side_by_side(space: &Space, mut set: u64) -> u64 {
    let rank = space.axes.len();
    let Some(first) = (0..rank).find(|axis| set >> axis & 1 == 0) else {
        return set & !(1 << rank.saturating_sub(1));
    };
    let mut run = 1;
    for axis in (first..rank).rev() {
        if set >> axis & 1 == 1 && run >= LEAST_RUN {
            continue;
        }
        set &= !(1 << axis);
        run *= space.axes[axis].len;
    }
    set
}

/// Returns for each node the number of reductions within a slab that precede it, one after the
/// other.
fn depths(program: &Program, facts: &Facts) -> Vec<usize> {
    let mut depths: Vec<usize> = Vec::with_capacity(program.nodes.len());
    for (place, node) in program.nodes.iter().enumerate() {
        let before = operands_of(node).iter().map(|of| depths[of.0]).max().unwrap_or(0);
        let counts = matches!(node, ProgramNode::Reduce(..)) && !facts.waits(place);
        depths.push(before + usize::from(counts));
    }
    depths
}
