//! The steps of a program's passes, and how they are made of nodes. `plan.rs` makes them, and
//! `compute.rs` runs them.

use std::collections::BTreeMap;

use smallvec::{SmallVec, smallvec};

use super::chain::FusedChain;
use super::plan::TilePlan;
use super::products::FusedProducts;
use super::program::{Binary, Program, ProgramNode, Unary};
use super::space::operands_of;

/// The loops over rows repeat an operand if a row has at least this many elements; for shorter rows
/// the operand is expanded in memory.
const LEAST_ROW: usize = 32;

/// One step of a pass: one loop, or a few, over a tile.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PassStep {
    pub(super) action: Action,
    /// The values that the step reads.
    pub(super) args: SmallVec<[Arg; 3]>,
    /// The value that the step makes, or `usize::MAX`; once buffers are assigned, the buffer of the
    /// value.
    pub(super) out: usize,
    /// The axes of the tile along which its value varies.
    pub(super) set: u64,
    /// The innermost axes of `set`, which are a row, if an operand is the same in all rows or has
    /// one element for each row; else all axes of `set`.
    pub(super) row: u64,
    /// The output that the value is, if it is one.
    pub(super) stored: Option<usize>,
    /// Whether only the step that stores the output reads the value.
    pub(super) is_only_stored: bool,
    /// Whether the value is the same in all tiles of a pass, so that it is computed once. Values
    /// that are made of results of reductions alone often are.
    pub(super) is_tile_invariant: bool,
    /// Whether the step prefetches what a later tile reads. The last step that can does so, since a
    /// step that stores results meanwhile waits least.
    pub(super) fetches: bool,
}

impl PassStep {
    fn new(action: Action, args: SmallVec<[Arg; 3]>, set: u64) -> Self {
        Self {
            action,
            args,
            out: usize::MAX,
            set,
            row: set,
            stored: None,
            is_only_stored: false,
            is_tile_invariant: false,
            fetches: false,
        }
    }
}

/// A value that a step reads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Arg {
    /// The value; once buffers are assigned, the buffer of the value.
    pub(super) value: usize,
    pub(super) along: Along,
}

/// How an operand of an elementwise op varies over the elements of the op's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Along {
    /// It has an element for each element of the value.
    Full,
    /// It has the elements of one row, for all rows.
    PerColumn,
    /// It has one element for each row.
    PerRow,
    /// It has one element for the whole value.
    Scalar,
}

impl Along {
    /// The number of elements of an operand, if the value has `len` elements in rows of `row`
    /// elements.
    pub(super) fn len(self, len: usize, row: usize) -> usize {
        match self {
            Self::Full => len,
            Self::PerColumn => row,
            Self::PerRow => len / row.max(1),
            Self::Scalar => 1,
        }
    }

    /// Returns how a value along the axes `own` varies over a value along the axes `set`, and the
    /// axes of a row; `None` if it has neither the elements of a row nor one element for each row.
    fn of(own: u64, set: u64) -> Option<(Self, u64)> {
        let others = set & !own;
        match (own, others) {
            (_, 0) => Some((Self::Full, set)),
            (0, _) => Some((Self::Scalar, set)),
            _ if is_within(own, others) => Some((Self::PerColumn, own)),
            _ if is_within(others, own) => Some((Self::PerRow, others)),
            _ => None,
        }
    }
}

/// Checks whether all axes of `set` lie inside of all axes of `other`. Axes are numbered from the
/// outermost one.
fn is_within(set: u64, other: u64) -> bool {
    set.trailing_zeros() >= u64::BITS - other.leading_zeros()
}

/// The work of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Action {
    /// Reads an operand.
    Input(usize),
    Constant(f64),
    /// Reads the results of a reduction, or its squared deviations.
    Reduced {
        reduction: usize,
        deviations: bool,
    },
    Unary(Unary),
    Binary(Binary),
    Select,
    /// Computes several ops, one after the other, in one loop.
    Chain(FusedChain),
    /// Repeats a value that varies along the axes of this set alone.
    Expand(u64),
    /// Adds a tile to a reduction, if the tile is the first one along the axes `first`.
    Accumulate {
        reduction: usize,
        first: u64,
    },
    /// Adds the products of two factors to a reduction.
    Products(FusedProducts),
    /// Writes an output, if the tile is the first one along the axes `first`.
    Store {
        output: usize,
        first: u64,
    },
}

/// One walk over the tiles of a slab.
#[derive(Debug, Default)]
pub(super) struct Pass {
    /// The set of axes along which the pass goes.
    pub(super) axes: u64,
    pub(super) steps: Vec<PassStep>,
    /// The reductions within a slab that are complete after the pass.
    pub(super) ends: Vec<usize>,
}

/// Returns for each of `values` values the number of arguments of steps that it is.
pub(super) fn uses_of(passes: &[Pass], values: usize) -> Vec<usize> {
    let mut uses = vec![0usize; values];
    for arg in passes.iter().flat_map(|pass| &pass.steps).flat_map(|step| &step.args) {
        if let Some(uses) = uses.get_mut(arg.value) {
            *uses += 1;
        }
    }
    uses
}

/// A reduction or an output that a pass computes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Goal {
    /// The reduction of this number, and the node that it reduces.
    Reduction(usize, usize),
    /// The output of this number, and the node that is written.
    Output(usize, usize),
}

/// Makes the steps of a pass.
pub(super) struct PassBuilder<'a> {
    pub(super) plan: &'a TilePlan,
    pub(super) program: &'a Program,
    /// The values that were made, by node and set of axes of the tile.
    pub(super) values: &'a mut BTreeMap<(usize, u64), usize>,
    /// The number of values that were made.
    pub(super) made: usize,
    pub(super) pass: Pass,
}

impl PassBuilder<'_> {
    /// Makes the steps that compute the nodes of `goals`, and the values that these need.
    pub(super) fn values_of(&mut self, goals: &[Goal]) {
        let mut open: Vec<usize> = goals
            .iter()
            .map(|&goal| match goal {
                Goal::Reduction(_, of) | Goal::Output(_, of) => of,
            })
            .collect();
        let mut wanted = vec![false; self.program.nodes.len()];
        while let Some(place) = open.pop() {
            if wanted[place] || self.values.contains_key(&(place, self.set(place))) {
                continue;
            }
            wanted[place] = true;
            if !matches!(
                self.program.nodes[place],
                ProgramNode::Reduce(..) | ProgramNode::Deviations(_)
            ) {
                open.extend(operands_of(&self.program.nodes[place]).iter().map(|of| of.0));
            }
        }
        for (place, _) in wanted.iter().enumerate().filter(|(_, wanted)| **wanted) {
            self.value(place);
        }
    }

    /// The axes of a tile along which a node varies.
    fn set(&self, place: usize) -> u64 {
        self.plan.space.varies[place] & self.plan.tile
    }

    /// Makes the step that computes a node.
    fn value(&mut self, place: usize) {
        let set = self.set(place);
        let number = |node: usize| self.plan.space.number(node);
        let action = match self.program.nodes[place] {
            ProgramNode::Input(input) => Action::Input(input),
            ProgramNode::Constant(value) => Action::Constant(value),
            ProgramNode::Unary(op, _) => Action::Unary(op),
            ProgramNode::Binary(op, ..) => Action::Binary(op),
            ProgramNode::Select(..) => Action::Select,
            ProgramNode::Reduce(..) => {
                Action::Reduced { reduction: number(place), deviations: false }
            }
            ProgramNode::Deviations(of) => {
                Action::Reduced { reduction: number(of.0), deviations: true }
            }
        };
        let (mut args, mut row) = (SmallVec::new(), set);
        if !matches!(action, Action::Reduced { .. }) {
            for of in operands_of(&self.program.nodes[place]) {
                let may_repeat = matches!(action, Action::Binary(_));
                let own = if may_repeat { self.repeated(of.0, set) } else { set };
                let (mut along, part) = Along::of(own, set).unwrap_or((Along::Full, set));
                // The rows of both operands must be the same.
                let splits = matches!(along, Along::PerColumn | Along::PerRow);
                let is_long = self.plan.space.size(part) >= LEAST_ROW;
                if splits && is_long && (row == set || row == part) {
                    row = part;
                } else if splits {
                    along = Along::Full;
                }
                let own = if along == Along::Full { set } else { own };
                args.push(Arg { value: self.along(of.0, own), along });
            }
        }
        self.push(place, PassStep { row, ..PassStep::new(action, args, set) });
    }

    /// The axes along which an operand must have elements so that a step along `set` can repeat it
    /// by rows: its own axes, or all axes of `set` from its outermost one inward.
    fn repeated(&self, place: usize, set: u64) -> u64 {
        let own = self.set(place);
        if Along::of(own, set).is_some() {
            return own;
        }
        set & (u64::MAX << own.trailing_zeros())
    }

    /// Adds a step that makes a new value of a node, and returns the value.
    fn push(&mut self, place: usize, step: PassStep) -> usize {
        let out = self.made;
        self.made += 1;
        self.values.insert((place, step.set), out);
        self.pass.steps.push(PassStep { out, ..step });
        out
    }

    /// Returns the value of a node along the axes `set`, and expands the value that was made if it
    /// varies along fewer axes.
    fn along(&mut self, place: usize, set: u64) -> usize {
        if let Some(&value) = self.values.get(&(place, set)) {
            return value;
        }
        let own = self.set(place);
        let narrow = self.values.get(&(place, own)).copied().unwrap_or(usize::MAX);
        let args = smallvec![Arg { value: narrow, along: Along::Scalar }];
        self.push(place, PassStep::new(Action::Expand(own), args, set))
    }

    /// Makes the step that accumulates or stores a goal.
    pub(super) fn end(&mut self, goal: Goal) {
        let space = &self.plan.space;
        let (action, of, axes) = match goal {
            Goal::Reduction(reduction, of) => {
                let is_sink =
                    self.plan.layouts[reduction].as_ref().is_some_and(|layout| layout.is_sink);
                let axes = space.varies[of] | space.reduced(reduction);
                let among = if is_sink { space.all() } else { self.plan.inner() };
                if !is_sink {
                    self.pass.ends.push(reduction);
                }
                (Action::Accumulate { reduction, first: among & !axes }, of, axes)
            }
            Goal::Output(output, of) => {
                let axes = space.output_axes(output);
                (Action::Store { output, first: space.all() & !axes }, of, axes)
            }
        };
        self.pass.axes |= axes;
        let set = axes & self.plan.tile;
        let value = self.along(of, set);
        let args = smallvec![Arg { value, along: Along::Full }];
        if let Action::Store { output, first: 0 } = action {
            let makes = |step: &&mut PassStep| step.out == value && step.set == set;
            if let Some(maker) = self.pass.steps.iter_mut().find(makes) {
                maker.stored = Some(output);
            }
        }
        self.pass.steps.push(PassStep::new(action, args, set));
    }
}
