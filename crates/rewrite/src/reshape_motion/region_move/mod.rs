//! Moves elementwise regions to other dims if that pays: the mechanism of
//! [`super::reshape_out_of_region`] and [`super::unit_dims`].

mod placement;
mod plan;
mod words;

use std::cell::OnceCell;

use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use tilewright_ir::{Dims, EditError, InstId, Module, Op};

use crate::analysis::region::{Blocked, LiveInKind, LiveOutKind, Region, unseen_region_around};
use crate::analysis::sharding::DeviceMesh;
use crate::cost::CostModel;
use crate::driver::Context;
use crate::driver::reason::{Reason, Refusal};
use plan::{Move, Planner, Setting};

/// The most lists of dims tried for one region.
const MOST_CANDIDATES: usize = 4;

/// The most members in one cut; larger regions are cut piece by piece.
const MOST_MEMBERS: usize = 1024;

/// The lists of dims to which a region may move.
pub(super) type CandidateDims = SmallVec<[Dims; MOST_CANDIDATES]>;

/// Checks whether two lists of dims differ only by dims of size 1.
pub(super) fn same_but_ones(from: &[i64], to: &[i64]) -> bool {
    from.iter().filter(|&&d| d != 1).eq(to.iter().filter(|&&d| d != 1))
}

/// The regions that a pass searches for, and the dims to which they may move.
#[derive(Clone, Copy)]
pub(super) struct MoveSearch {
    /// The name of the pass.
    pub(super) pass: &'static str,
    /// The values around which to look for regions, given an instruction.
    pub(super) starts: fn(&Module, InstId) -> SmallVec<[InstId; 2]>,
    /// The dims to which a region may move.
    pub(super) candidates: fn(&Module, &Region) -> CandidateDims,
    /// Whether parts of regions may move.
    pub(super) cuts: bool,
}

/// Moves every region that a search finds, once, if that pays; returns the number of moves.
pub(super) fn move_regions(
    module: &mut Module,
    cx: &mut Context<'_>,
    search: MoveSearch,
) -> Result<usize, EditError> {
    let (seen, mesh) = (FxHashSet::default(), OnceCell::new());
    RegionMover { cx, search, seen, mesh }.run(module)
}

/// Returns the operand and the result of a reshape: the regions before and after it are
/// candidates.
pub(super) fn around_reshape(module: &Module, id: InstId) -> SmallVec<[InstId; 2]> {
    match (module.op(id), module.operands(id)) {
        (Op::Reshape(_), &[operand]) => SmallVec::from([operand, id]),
        _ => SmallVec::new(),
    }
}

/// Returns the dims of the reshapes around a region that a pass admits, without duplicates;
/// `admits` compares them with the region's dims.
pub(super) fn dims_of_reshapes(
    module: &Module,
    region: &Region,
    admits: impl Fn(&[i64], &[i64]) -> bool,
) -> CandidateDims {
    let sources = region.live_ins.iter().filter_map(|live_in| match live_in.kind {
        LiveInKind::Reshape(source) => Some(source),
        LiveInKind::Broadcast(_)
        | LiveInKind::Transpose(_)
        | LiveInKind::Iota
        | LiveInKind::Constant
        | LiveInKind::Other => None,
    });
    let live_outs =
        region.live_outs.iter().filter(|live_out| live_out.kind == LiveOutKind::Reshape);
    let mut candidates = CandidateDims::new();
    for id in sources.chain(live_outs.filter_map(|live_out| live_out.user)) {
        let Some(shape) = module.array_shape(id) else { continue };
        let known = shape.dims() == region.dims.as_slice()
            || candidates.iter().any(|dims| dims.as_slice() == shape.dims());
        let admitted = !known && admits(shape.dims(), &region.dims);
        if admitted && candidates.len() < MOST_CANDIDATES {
            candidates.push(shape.dims().into());
        }
    }
    candidates
}

/// Moves the regions of a module.
struct RegionMover<'a, 'b> {
    cx: &'a mut Context<'b>,
    search: MoveSearch,
    seen: FxHashSet<InstId>,
    /// The module's mesh, once a region with constraints asked for it.
    mesh: OnceCell<Option<DeviceMesh>>,
}

/// Checks whether a region is too large for one cut, which takes more than linear time.
fn is_large(region: &Region) -> bool {
    region.members.len() > MOST_MEMBERS
}

impl RegionMover<'_, '_> {
    fn run(&mut self, module: &mut Module) -> Result<usize, EditError> {
        let mut changes = 0;
        for computation in module.computations().to_vec() {
            let seeds: Vec<InstId> = module.instructions(computation).collect();
            for id in seeds {
                if !module.is_live(id) {
                    continue;
                }
                for start in (self.search.starts)(module, id) {
                    changes += self.rewrite_around(module, start)?;
                }
            }
        }
        Ok(changes)
    }

    /// Moves the region around an instruction, unless it was visited; returns the number of
    /// moves.
    fn rewrite_around(&mut self, module: &mut Module, start: InstId) -> Result<usize, EditError> {
        match unseen_region_around(module, start, &mut self.seen) {
            Some(mut region) => self.rewrite(module, &mut region),
            None => Ok(0),
        }
    }

    /// Moves a region; returns the number of moves.
    fn rewrite(&mut self, module: &mut Module, region: &mut Region) -> Result<usize, EditError> {
        let candidates = (self.search.candidates)(module, region);
        if candidates.is_empty() {
            return Ok(0);
        }
        if let Some(dynamic) = region.dynamic {
            let place = words::region_place(module, region);
            let why =
                Refusal { reason: Reason::DynamicDims, text: words::why_dynamic(module, dynamic) };
            self.cx.refuse(self.search.pass, place, why);
            return Ok(0);
        }
        self.keep_constraints(module, region, &candidates);
        let rest = (!region.blocked.is_empty()).then(|| region.movable(module));
        let movable = rest.as_ref().unwrap_or(region);
        let best = self.best(module, movable, &candidates);
        if best.as_ref().is_none_or(|best| !best.pays()) && self.search.cuts && is_large(movable) {
            return self.move_pieces(module, movable, &candidates);
        }
        Ok(usize::from(self.make(module, region, movable, best)?))
    }

    /// Blocks the constraints of a region whose sharding cannot be stated in all of these dims.
    fn keep_constraints(&self, module: &Module, region: &mut Region, candidates: &[Dims]) {
        let is_constraint = |id: &InstId| module.op(*id).is_sharding_constraint();
        let constraints: Vec<InstId> =
            region.interior.iter().copied().filter(is_constraint).collect();
        if constraints.is_empty() {
            return;
        }
        let mesh = self.mesh.get_or_init(|| DeviceMesh::of(module));
        for id in constraints {
            let moves = |dims: &Dims| mesh.as_ref()?.constraint_in(module, id, dims);
            let is_blocked = region.blocked.iter().any(|blocked| blocked.id == id);
            if !is_blocked && !candidates.iter().all(|dims| moves(dims).is_some()) {
                region.blocked.push(Blocked { id, reason: Reason::Constraint });
            }
        }
    }

    /// Moves the pieces of a region that is too large for one cut, one after the other, so that
    /// each sees the earlier ones in their new dims.
    fn move_pieces(
        &mut self,
        module: &mut Module,
        region: &Region,
        candidates: &[Dims],
    ) -> Result<usize, EditError> {
        let mut moves = 0;
        for members in region.interior.chunks(MOST_MEMBERS) {
            let piece = Region::of(module, region.dims.clone(), members);
            let best = self.best(module, &piece, candidates);
            moves += usize::from(self.make(module, &piece, &piece, best)?);
        }
        Ok(moves)
    }

    /// Applies the best move of the movable part of a region, if it pays.
    fn make(
        &mut self,
        module: &mut Module,
        region: &Region,
        movable: &Region,
        best: Option<Move>,
    ) -> Result<bool, EditError> {
        let (pass, place) = (self.search.pass, words::region_place(module, region));
        let Some(done) = best.filter(|best| best.pays() || region.blocked.is_empty()) else {
            let laid_out = &self.cx.laid_out;
            let tells =
                |one: &&Blocked| one.reason != Reason::Layout || !laid_out.contains(&one.id);
            if let Some(&Blocked { reason, .. }) = region.blocked.iter().find(tells) {
                let why = Refusal { reason, text: words::kept(module, region) };
                self.cx.refuse(pass, place, why);
            }
            return Ok(false);
        };
        // Moves that would change nothing get no note.
        let changes = done.ops > 0 && done.after > done.before;
        if !done.pays() && !changes || done.pays() && !self.cx.is_worthwhile(module, &done.patch) {
            return Ok(false);
        }
        if !self.cx.accept(pass, words::candidate(module, region, &done, place)) {
            return Ok(false);
        }
        let made = done.patch.apply(module)?;
        remove_unused(module, movable, &done)?;
        // The next run visits the new instructions.
        self.seen.extend(made);
        Ok(true)
    }

    /// Returns the move that saves most.
    fn best(&self, module: &Module, region: &Region, candidates: &[Dims]) -> Option<Move> {
        let model = self.cx.model();
        let moves = candidates.iter().flat_map(|dims| self.moves(module, region, dims, &model));
        moves.min_by(|a, b| (a.after - a.before).total_cmp(&(b.after - b.before)))
    }

    /// Returns the move of a whole region to other dims, and the move of the best part of it.
    fn moves(
        &self,
        module: &Module,
        region: &Region,
        dims: &Dims,
        model: &CostModel<'_>,
    ) -> SmallVec<[Move; 2]> {
        let mesh = self.mesh.get().and_then(Option::as_ref);
        let setting = Setting { model, float_mode: self.cx.float_mode, mesh };
        let Some(whole) = Planner::plan(module, region, dims, setting) else {
            return SmallVec::new();
        };
        let planned = whole.patch_costs();
        let part = (self.search.cuts && !is_large(region))
            .then(|| placement::part_to_move(&whole, &planned))
            .flatten()
            .map(|part| region.part(module, |id| part.contains(&id)))
            .and_then(|part| {
                let part = Planner::plan(module, &part, dims, setting)?;
                let planned = part.patch_costs();
                Some(part.weighed(&planned))
            })
            .filter(Move::pays);
        [whole.weighed(&planned)].into_iter().chain(part).collect()
    }
}

/// Removes instructions that a move leaves without users: a dead region would be found and moved
/// again each time the pass runs.
fn remove_unused(module: &mut Module, region: &Region, done: &Move) -> Result<(), EditError> {
    let live_ins = region.live_ins.iter().filter(|live_in| live_in.kind != LiveInKind::Other);
    let interior = live_ins.map(|live_in| live_in.id).chain(region.interior.iter().copied());
    let ends = done.patch.replaced().iter().map(|&(old, _)| old);
    // Users before operands.
    for id in interior.chain(ends).rev() {
        if module.is_removable(id) {
            module.remove(id)?;
        }
    }
    Ok(())
}
