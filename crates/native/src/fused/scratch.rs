//! The state of a task: its buffers, accumulators and results, and where it is in each pass. Tasks
//! that end leave it to later ones.

use std::sync::Mutex;

use super::aligned_buffer::Buffers;
use super::fold::FoldScratch;
use super::plan::{ResultLayout, TilePlan};
use super::program::Reduction;
use super::real::Real;
use super::shape::Shapes;
use super::steps::Pass;
use super::total::{Pending, TotalAccumulators};
use super::walk::{TileBounds, Tiles};

/// The results of each reduction within a slab, by number, and its squared deviations.
pub(super) type SlabResults<R> = Vec<[Vec<R>; 2]>;

/// The state of a task.
pub(super) struct Scratch<R> {
    /// The cursor of each pass.
    pub(super) cursors: Vec<PassCursor>,
    pub(super) memory: Memory<R>,
}

/// The memory of a task.
pub(super) struct Memory<R> {
    pub(super) buffers: Buffers<R>,
    pub(super) spare: FoldScratch<R>,
    /// The accumulators of each reduction, by number.
    pub(super) accumulators: Vec<TotalAccumulators>,
    /// The sums of each reduction, by number, that wait to be added to its accumulators.
    pub(super) pending: Vec<Pending<R>>,
    pub(super) results: SlabResults<R>,
}

impl<R: Real> Memory<R> {
    /// Returns the accumulators, with all sums that wait, and puts empty ones in their place.
    pub(super) fn taken(&mut self, plan: &TilePlan) -> Vec<TotalAccumulators> {
        for (pending, to) in self.pending.iter_mut().zip(&mut self.accumulators) {
            pending.flush(to);
        }
        std::mem::replace(&mut self.accumulators, accumulators(plan))
    }
}

/// How a task goes over the tiles of a pass.
pub(super) struct PassCursor {
    pub(super) tiles: Tiles,
    /// The tile that was run last; before that, the first one.
    pub(super) bounds: TileBounds,
    /// The shapes of the steps for that tile.
    pub(super) shapes: Option<Shapes>,
}

impl PassCursor {
    pub(super) fn of(plan: &TilePlan, pass: &Pass) -> Self {
        let mut bounds = TileBounds::default();
        let tiles = Tiles::of(plan, pass, &mut bounds);
        Self { tiles, bounds, shapes: None }
    }
}

/// The states of tasks that ended, for later tasks.
pub(super) struct Idle<R>(Mutex<Vec<Scratch<R>>>);

impl<R: Real> Idle<R> {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// Returns the state of a task that ended, or a new one. Either all tasks keep the results of
    /// reductions themselves, or none does.
    pub(super) fn take(&self, plan: &TilePlan, keeps_results: bool) -> Scratch<R> {
        let idle = self.0.lock().ok().and_then(|mut all| all.pop());
        idle.unwrap_or_else(|| Scratch::new(plan, keeps_results))
    }

    pub(super) fn put(&self, scratch: Scratch<R>) {
        if let Ok(mut all) = self.0.lock() {
            all.push(scratch);
        }
    }
}

impl<R: Real> Scratch<R> {
    fn new(plan: &TilePlan, keeps_results: bool) -> Self {
        let folds = plan.layouts.iter().any(Option::is_some);
        Self {
            cursors: plan.passes.iter().map(|pass| PassCursor::of(plan, pass)).collect(),
            memory: Memory {
                buffers: Buffers::new(plan),
                spare: FoldScratch::new(if folds { plan.capacity } else { 0 }),
                accumulators: accumulators(plan),
                pending: plan.layouts.iter().map(|_| Pending::new()).collect(),
                results: if keeps_results { results(plan) } else { Vec::new() },
            },
        }
    }
}

pub(super) fn accumulators(plan: &TilePlan) -> Vec<TotalAccumulators> {
    let of = |layout: &Option<ResultLayout>| match layout {
        Some(layout) => TotalAccumulators::new(layout.reduction, layout.len),
        None => TotalAccumulators::new(Reduction::Max, 0),
    };
    plan.layouts.iter().map(of).collect()
}

pub(super) fn results<R: Real>(plan: &TilePlan) -> SlabResults<R> {
    let len = |layout: &Option<ResultLayout>| layout.as_ref().map_or(0, |layout| layout.len);
    plan.layouts
        .iter()
        .map(|layout| [vec![R::ZERO; len(layout)], vec![R::ZERO; len(layout)]])
        .collect()
}
