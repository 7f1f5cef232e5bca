//! The state of a task: its buffers, accumulators and results, and where it is in each pass. Tasks
//! that end leave it to later ones.

use std::sync::Mutex;

use super::fold::Spare;
use super::plan::{Layout, Plan};
use super::program::Reduction;
use super::real::Real;
use super::room::Buffers;
use super::shape::Shapes;
use super::steps::Pass;
use super::total::{Accumulators, Pending};
use super::walk::{Place, Tiles};

/// The results of each reduction within a slab, by number, and its squared deviations.
pub(super) type Results<R> = Vec<[Vec<R>; 2]>;

/// The state of a task.
pub(super) struct Scratch<R> {
    /// The walk of each pass.
    pub(super) walks: Vec<Walk>,
    pub(super) memory: Memory<R>,
}

/// The memory of a task.
pub(super) struct Memory<R> {
    pub(super) buffers: Buffers<R>,
    pub(super) spare: Spare<R>,
    /// The accumulators of each reduction, by number.
    pub(super) accumulators: Vec<Accumulators>,
    /// The sums of each reduction, by number, that wait to be added to its accumulators.
    pub(super) pending: Vec<Pending<R>>,
    pub(super) results: Results<R>,
}

impl<R: Real> Memory<R> {
    /// Returns the accumulators, with all sums that wait, and puts empty ones in their place.
    pub(super) fn taken(&mut self, plan: &Plan) -> Vec<Accumulators> {
        for (pending, to) in self.pending.iter_mut().zip(&mut self.accumulators) {
            pending.flush(to);
        }
        std::mem::replace(&mut self.accumulators, accumulators(plan))
    }
}

/// How a task goes over the tiles of a pass.
pub(super) struct Walk {
    pub(super) tiles: Tiles,
    /// The tile that was run last; before that, the first one.
    pub(super) place: Place,
    /// The shapes of the steps for that tile.
    pub(super) shapes: Option<Shapes>,
}

impl Walk {
    pub(super) fn of(plan: &Plan, pass: &Pass) -> Self {
        let mut place = Place::default();
        let tiles = Tiles::of(plan, pass, &mut place);
        Self { tiles, place, shapes: None }
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
    pub(super) fn take(&self, plan: &Plan, keeps_results: bool) -> Scratch<R> {
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
    fn new(plan: &Plan, keeps_results: bool) -> Self {
        let folds = plan.layouts.iter().any(Option::is_some);
        Self {
            walks: plan.passes.iter().map(|pass| Walk::of(plan, pass)).collect(),
            memory: Memory {
                buffers: Buffers::new(plan),
                spare: Spare::new(if folds { plan.capacity } else { 0 }),
                accumulators: accumulators(plan),
                pending: plan.layouts.iter().map(|_| Pending::new()).collect(),
                results: if keeps_results { results(plan) } else { Vec::new() },
            },
        }
    }
}

pub(super) fn accumulators(plan: &Plan) -> Vec<Accumulators> {
    let of = |layout: &Option<Layout>| match layout {
        Some(layout) => Accumulators::new(layout.reduction, layout.len),
        None => Accumulators::new(Reduction::Max, 0),
    };
    plan.layouts.iter().map(of).collect()
}

pub(super) fn results<R: Real>(plan: &Plan) -> Results<R> {
    let len = |layout: &Option<Layout>| layout.as_ref().map_or(0, |layout| layout.len);
    plan.layouts
        .iter()
        .map(|layout| [vec![R::ZERO; len(layout)], vec![R::ZERO; len(layout)]])
        .collect()
}
