//! How a program is divided: slabs, tiles, passes and steps.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use super::chain::{self, Chain};
use super::program::{Binary, Node, Program, Reduction, Unary};
use super::space::{Space, operands_of};

/// The elements of a tile: buffers of so many `f32` stay in the first cache.
const TILE: usize = 2048;
/// The elements of several slabs in one tile. Results of each slab must be repeated then, which pays
/// for short ones alone.
const TOGETHER: usize = 1024;
/// Slabs of at most so many elements fill a tile together.
const SHORT: usize = 128;
/// A slab of at most so many elements is one tile, whose values are computed once.
const MOST_WHOLE: usize = 4096;
/// Axes are fixed outside of a slab only if at least so many elements then lie side by side.
const LEAST_RUN: usize = 64;
/// This many slabs keep threads busy.
const MANY: usize = 64;

/// One step on a tile.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Step {
    pub(super) action: Action,
    /// The buffers that it reads.
    pub(super) args: SmallVec<[usize; 3]>,
    /// The buffer that it writes.
    pub(super) out: usize,
    /// The axes of the tile along which its value varies.
    pub(super) set: u64,
    /// The places, as bits, of the buffers in `args` that hold one element for all.
    pub(super) ones: u8,
    /// The output that its value is.
    pub(super) stored: Option<usize>,
    /// Whether its value is the same in all tiles of a pass, as what is made of the results of
    /// reductions alone often is.
    pub(super) is_kept: bool,
}

impl Step {
    fn new(action: Action, args: SmallVec<[usize; 3]>, set: u64) -> Self {
        Self { action, args, out: usize::MAX, set, ones: 0, stored: None, is_kept: false }
    }
}

/// The work of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Action {
    /// Reads an operand.
    Input(usize),
    Constant(f64),
    /// Reads the results of a reduction, or the squared deviations beside.
    Reduced {
        reduction: usize,
        deviations: bool,
    },
    Unary(Unary),
    Binary(Binary),
    Select,
    /// Several ops, one after the other.
    Chain(Chain),
    /// Repeats a value that varies along fewer axes.
    Expand(u64),
    /// Adds a tile to a reduction, if it is the first one along the axes `first`.
    Fold {
        reduction: usize,
        first: u64,
    },
    /// Writes an output, if the tile is the first one along the axes `first`.
    Store {
        output: usize,
        first: u64,
    },
}

/// One walk through a slab.
#[derive(Debug, Default)]
pub(super) struct Pass {
    /// The axes that it goes along.
    pub(super) axes: u64,
    pub(super) steps: Vec<Step>,
    /// The reductions within a slab that are complete afterwards.
    pub(super) ends: Vec<usize>,
}

/// Where the results of a reduction lie.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) reduction: Reduction,
    /// For each axis the distance of neighbours; 0 where results do not vary.
    pub(super) strides: SmallVec<[usize; 8]>,
    pub(super) len: usize,
    /// Whether it goes on over all slabs.
    pub(super) is_sink: bool,
}

/// How a program runs.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) space: Space,
    /// The axes of which each slab has one index.
    pub(super) outer: u64,
    /// An outer axis of which a slab has several indices, and how many.
    pub(super) group: Option<(usize, usize)>,
    /// The axes of a tile.
    pub(super) tile: u64,
    /// An axis of a tile that is longer, and the indices that a tile has of it.
    pub(super) cut: Option<(usize, usize)>,
    /// The most elements of a tile.
    pub(super) capacity: usize,
    pub(super) passes: Vec<Pass>,
    /// The number of buffers.
    pub(super) buffers: usize,
    /// By number of the reduction; none if nothing needs it.
    pub(super) layouts: Vec<Option<Layout>>,
    /// The outputs that need reductions over all slabs.
    pub(super) later: Vec<usize>,
}

/// The facts that follow from the nodes alone.
struct Facts {
    /// For each node the reductions, by number, that it needs.
    needs: Vec<u64>,
    /// The reductions that only outputs need which vary along no reduced axis.
    sinks: u64,
    /// For each node the reductions within a slab that lie one after the other before it.
    level: Vec<usize>,
}

impl Plan {
    pub(super) fn of(program: &Program, space: Space) -> Self {
        let mut facts = Facts { needs: needs(program, &space), sinks: 0, level: Vec::new() };
        facts.sinks = sinks(program, &space, &facts.needs);
        let outer = outer(&space, &mut facts.sinks);
        facts.level = levels(program, &facts);
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
        plan.choose_tile(facts.sinks != 0);
        plan.layouts = (0..plan.space.reductions.len())
            .map(|number| plan.layout(program, number, facts.sinks >> number & 1 == 1))
            .collect();
        let is_later = |output: &usize| facts.waits(program.outputs[*output].of.0);
        plan.later = (0..program.outputs.len()).filter(is_later).collect();
        plan.make_passes(program, &facts);
        plan
    }

    /// The axes of a slab, without that of a group.
    pub(super) fn inner(&self) -> u64 {
        self.space.all() & !self.outer
    }

    pub(super) fn slab(&self) -> usize {
        self.space.size(self.inner())
    }

    /// The indices of an outer axis that a slab has.
    pub(super) fn part(&self, axis: usize) -> usize {
        self.group.filter(|group| group.0 == axis).map_or(1, |group| group.1)
    }

    /// Whether a slab is one tile.
    pub(super) fn is_whole(&self) -> bool {
        self.inner() & !self.tile == 0 && self.cut.is_none()
    }

    fn choose_tile(&mut self, has_sinks: bool) {
        let (inner, slab) = (self.inner(), self.slab());
        let axes = self.space.axes.iter().enumerate().rev();
        // Results over all slabs take larger tiles: accumulators are added to once for each.
        let wanted = match (has_sinks, slab <= SHORT) {
            (true, _) => MOST_WHOLE,
            (false, true) => TILE,
            (false, false) => TOGETHER,
        };
        let mut outer = axes.clone().filter(|(i, _)| self.outer >> i & 1 == 1);
        if let Some((axis, Some(len))) = outer.next().map(|(i, axis)| (i, Some(axis.len)))
            && wanted / slab.max(1) >= 2
        {
            let len = len.min(wanted / slab.max(1));
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

    fn layout(&self, program: &Program, number: usize, is_sink: bool) -> Option<Layout> {
        let node = *self.space.reductions.get(number)?;
        let Some(&Node::Reduce(reduction, ..)) = program.nodes.get(node) else { return None };
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
        Some(Layout { reduction, strides, len, is_sink })
    }

    fn make_passes(&mut self, program: &Program, facts: &Facts) {
        let now = |node: usize, level: usize| !facts.waits(node) && facts.level[node] == level;
        let last = facts.level.iter().max().copied().unwrap_or(0);
        let mut values = BTreeMap::new();
        let mut made = 0;
        for level in 0..=last {
            if !self.is_whole() {
                values.clear();
            }
            let mut maker =
                Maker { plan: self, program, values: &mut values, made, pass: Pass::default() };
            let mut roots = Vec::new();
            for (number, &node) in maker.plan.space.reductions.iter().enumerate() {
                if let Node::Reduce(_, of, _) = program.nodes[node]
                    && maker.plan.space.needed[node]
                    && now(of.0, level)
                {
                    roots.push(Root::Reduction(number, of.0));
                }
            }
            for (output, wanted) in program.outputs.iter().enumerate() {
                if now(wanted.of.0, level) {
                    roots.push(Root::Output(output, wanted.of.0));
                }
            }
            maker.values_of(&roots);
            for &root in &roots {
                maker.end(root);
            }
            let pass = std::mem::take(&mut maker.pass);
            made = maker.made;
            self.passes.push(pass);
        }
        if !self.is_whole() {
            self.mark_kept(made);
        }
        chain::make(&mut self.passes, made);
        self.share_buffers(made);
    }

    /// Finds the steps whose values are the same in all tiles of a pass.
    fn mark_kept(&mut self, made: usize) {
        let cut = self.cut.map_or(0, |(axis, _)| 1 << axis);
        let inner = self.inner() & (!self.tile | cut);
        let mut is_kept = vec![false; made];
        for pass in &mut self.passes {
            let along = pass.axes & inner;
            let axes = || (0..self.space.axes.len()).filter(|axis| along >> axis & 1 == 1);
            for step in &mut pass.steps {
                step.is_kept = match step.action {
                    Action::Input(input) => axes().all(|i| self.space.axes[i].inputs[input] == 0),
                    Action::Constant(_) => true,
                    Action::Reduced { reduction, .. } => match &self.layouts[reduction] {
                        Some(layout) => axes().all(|axis| layout.strides[axis] == 0),
                        None => false,
                    },
                    Action::Unary(_) | Action::Binary(_) | Action::Select | Action::Expand(_) => {
                        step.args.iter().all(|&arg| is_kept.get(arg) == Some(&true))
                    }
                    Action::Chain(_) | Action::Fold { .. } | Action::Store { .. } => false,
                };
                if let Some(kept) = is_kept.get_mut(step.out) {
                    *kept = step.is_kept;
                }
            }
        }
    }

    /// Lets values whose times do not meet lie in one buffer.
    fn share_buffers(&mut self, made: usize) {
        let mut last = vec![0; made];
        let steps = self.passes.iter().flat_map(|pass| &pass.steps);
        for (now, step) in steps.enumerate() {
            for &arg in step.args.iter().chain([&step.out]).filter(|&&arg| arg < made) {
                last[arg] = now;
            }
        }
        let mut at = vec![0; made];
        let mut free: Vec<usize> = Vec::new();
        let mut now = 0;
        for pass in &mut self.passes {
            // Buffers of values that are kept from tile to tile are theirs alone.
            let mut kept: Vec<usize> = Vec::new();
            for step in &mut pass.steps {
                let mut ended: SmallVec<[usize; 4]> = step.args.iter().copied().collect();
                if step.out < made {
                    let shared = if step.is_kept { None } else { free.pop() };
                    at[step.out] = shared.unwrap_or(self.buffers);
                    self.buffers = self.buffers.max(at[step.out] + 1);
                    ended.push(step.out);
                    kept.extend(step.is_kept.then_some(at[step.out]));
                }
                ended.sort_unstable();
                ended.dedup();
                let ended = ended.iter().filter(|&&value| last[value] == now);
                free.extend(ended.map(|&value| at[value]).filter(|buffer| !kept.contains(buffer)));
                step.args.iter_mut().for_each(|arg| *arg = at[*arg]);
                step.out = at.get(step.out).copied().unwrap_or(usize::MAX);
                now += 1;
            }
            free.append(&mut kept);
        }
    }
}

impl Facts {
    /// Checks whether a node needs a reduction over all slabs.
    fn waits(&self, node: usize) -> bool {
        self.needs[node] & self.sinks != 0
    }
}

fn needs(program: &Program, space: &Space) -> Vec<u64> {
    let mut needs: Vec<u64> = Vec::with_capacity(program.nodes.len());
    for (place, node) in program.nodes.iter().enumerate() {
        let own = u64::from(matches!(node, Node::Reduce(..))) << space.number(place);
        needs.push(operands_of(node).iter().fold(own, |set, of| set | needs[of.0]));
    }
    needs
}

/// The reductions that are computed over all slabs: no other reduction needs them, no needed value
/// that is made of them varies along an axis that they reduce, and none is made of others as well.
fn sinks(program: &Program, space: &Space, needs: &[u64]) -> u64 {
    let mut sinks = space.used();
    // For each node the reductions that it is made of, without those behind them.
    let mut made_of: Vec<u64> = Vec::with_capacity(program.nodes.len());
    for (place, node) in program.nodes.iter().enumerate() {
        let own = match node {
            Node::Reduce(..) => 1 << space.number(place),
            _ => operands_of(node).iter().fold(0, |set, of| set | made_of[of.0]),
        };
        made_of.push(own);
        if !space.needed[place] {
            continue;
        }
        if let Node::Reduce(_, of, _) = node {
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

/// The axes that are fixed in a slab. Sinks that do not go along these become reductions within
/// slabs.
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

/// Leaves axes out of a set whose indices lie between those of others, in short runs.
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

fn levels(program: &Program, facts: &Facts) -> Vec<usize> {
    let mut levels: Vec<usize> = Vec::with_capacity(program.nodes.len());
    for (place, node) in program.nodes.iter().enumerate() {
        let before = operands_of(node).iter().map(|of| levels[of.0]).max().unwrap_or(0);
        let counts = matches!(node, Node::Reduce(..)) && !facts.waits(place);
        levels.push(before + usize::from(counts));
    }
    levels
}

/// The purpose of a pass.
#[derive(Clone, Copy, Debug)]
enum Root {
    /// A reduction, by number, of a node.
    Reduction(usize, usize),
    /// An output that is a node.
    Output(usize, usize),
}

/// Makes the steps of a pass.
struct Maker<'a> {
    plan: &'a Plan,
    program: &'a Program,
    /// The values that there are: nodes, along sets of axes of the tile.
    values: &'a mut BTreeMap<(usize, u64), usize>,
    /// The number of values.
    made: usize,
    pass: Pass,
}

impl Maker<'_> {
    /// Makes the steps that compute nodes.
    fn values_of(&mut self, roots: &[Root]) {
        let mut open: Vec<usize> = roots
            .iter()
            .map(|&root| match root {
                Root::Reduction(_, of) | Root::Output(_, of) => of,
            })
            .collect();
        let mut wanted = vec![false; self.program.nodes.len()];
        while let Some(place) = open.pop() {
            if wanted[place] || self.values.contains_key(&(place, self.set(place))) {
                continue;
            }
            wanted[place] = true;
            if !matches!(self.program.nodes[place], Node::Reduce(..) | Node::Deviations(_)) {
                open.extend(operands_of(&self.program.nodes[place]).iter().map(|of| of.0));
            }
        }
        for (place, _) in wanted.iter().enumerate().filter(|(_, wanted)| **wanted) {
            self.value(place);
        }
    }

    fn set(&self, place: usize) -> u64 {
        self.plan.space.varies[place] & self.plan.tile
    }

    fn value(&mut self, place: usize) {
        let set = self.set(place);
        let number = |node: usize| self.plan.space.number(node);
        let action = match self.program.nodes[place] {
            Node::Input(input) => Action::Input(input),
            Node::Constant(value) => Action::Constant(value),
            Node::Unary(op, _) => Action::Unary(op),
            Node::Binary(op, ..) => Action::Binary(op),
            Node::Select(..) => Action::Select,
            Node::Reduce(..) => Action::Reduced { reduction: number(place), deviations: false },
            Node::Deviations(of) => Action::Reduced { reduction: number(of.0), deviations: true },
        };
        let (mut args, mut ones) = (SmallVec::new(), 0);
        if !matches!(action, Action::Reduced { .. }) {
            for (n, of) in operands_of(&self.program.nodes[place]).into_iter().enumerate() {
                let is_one = self.set(of.0) == 0 && action != Action::Select;
                ones |= u8::from(is_one) << n;
                args.push(self.along(of.0, if is_one { 0 } else { set }));
            }
        }
        self.push(place, Step { ones, ..Step::new(action, args, set) });
    }

    fn push(&mut self, place: usize, step: Step) -> usize {
        let out = self.made;
        self.made += 1;
        self.values.insert((place, step.set), out);
        self.pass.steps.push(Step { out, ..step });
        out
    }

    /// The value of a node that was made, along more axes.
    fn along(&mut self, place: usize, set: u64) -> usize {
        if let Some(&value) = self.values.get(&(place, set)) {
            return value;
        }
        let own = self.set(place);
        let narrow = self.values.get(&(place, own)).copied().unwrap_or(usize::MAX);
        let args = SmallVec::from_slice(&[narrow]);
        self.push(place, Step::new(Action::Expand(own), args, set))
    }

    /// Makes the step that a pass is for.
    fn end(&mut self, root: Root) {
        let space = &self.plan.space;
        let (action, of, axes) = match root {
            Root::Reduction(reduction, of) => {
                let is_sink =
                    self.plan.layouts[reduction].as_ref().is_some_and(|layout| layout.is_sink);
                let axes = space.varies[of] | space.reduced(reduction);
                let among = if is_sink { space.all() } else { self.plan.inner() };
                if !is_sink {
                    self.pass.ends.push(reduction);
                }
                (Action::Fold { reduction, first: among & !axes }, of, axes)
            }
            Root::Output(output, of) => {
                let axes = space.output_axes(output);
                (Action::Store { output, first: space.all() & !axes }, of, axes)
            }
        };
        self.pass.axes |= axes;
        let set = axes & self.plan.tile;
        let value = self.along(of, set);
        let args = SmallVec::from_slice(&[value]);
        if let Action::Store { output, first: 0 } = action {
            let makes = |step: &&mut Step| step.out == value && step.set == set;
            if let Some(maker) = self.pass.steps.iter_mut().find(makes) {
                maker.stored = Some(output);
            }
        }
        self.pass.steps.push(Step::new(action, args, set));
    }
}
