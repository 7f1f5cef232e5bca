//! Moves elementwise regions to the dims of their reshapes, where that pays:
//! the mechanism of [`super::reshape_out_of_region`] and [`super::degenerate`].

mod placement;
mod plan;
#[cfg(test)]
mod tests;
mod words;

use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use tilewright_ir::{Dims, EditError, InstId, Module, Opcode};

use crate::analysis::cost::CostModel;
use crate::analysis::region::{ExitKind, LeafKind, Region, unseen_region_around};
use crate::pass::Context;
use crate::report::{Note, Verdict};
use plan::{Move, Planner};

/// More dims than this are not tried for one region.
const MOST_CANDIDATES: usize = 4;

/// Larger regions are cut piece by piece.
const MOST_MEMBERS: usize = 1024;

/// Whether a region of the second dims may move to the first.
type Admits = fn(&[i64], &[i64]) -> bool;

/// Whether two lists of dims differ only by dims of size 1.
pub(super) fn same_but_ones(from: &[i64], to: &[i64]) -> bool {
    from.iter().filter(|&&d| d != 1).eq(to.iter().filter(|&&d| d != 1))
}

/// Moves every region around a reshape for which that pays, once; the number
/// of moves.
pub(super) fn sweep(
    module: &mut Module,
    cx: &mut Context<'_>,
    pass: &'static str,
    admits: Admits,
) -> Result<usize, EditError> {
    Sweep { cx, pass, admits, cuts: true, seen: FxHashSet::default() }.run(module)
}

/// What a sweep looks for.
struct Sweep<'a, 'b> {
    cx: &'a mut Context<'b>,
    pass: &'static str,
    admits: Admits,
    /// Whether parts of regions may move.
    cuts: bool,
    seen: FxHashSet<InstId>,
}

/// Whether a region is too large for one cut, which takes more than linear time.
fn is_large(region: &Region) -> bool {
    region.members.len() > MOST_MEMBERS
}

fn is_live(module: &Module, id: InstId) -> bool {
    module.instruction(id).use_count() > 0 || module.is_root(id)
}

impl Sweep<'_, '_> {
    fn run(mut self, module: &mut Module) -> Result<usize, EditError> {
        let mut changes = 0;
        for computation in module.computations().to_vec() {
            let seeds: Vec<InstId> = module.instructions(computation).collect();
            for id in seeds {
                if module.opcode(id) != Opcode::Reshape || !is_live(module, id) {
                    continue;
                }
                let Some(&operand) = module.operands(id).first() else { continue };
                // The reshape leads into one region and out of another.
                for start in [operand, id] {
                    changes += self.rewrite_around(module, start)?;
                }
            }
        }
        Ok(changes)
    }

    /// Moves the region around an instruction, if it is the first in the sweep
    /// to lead there; the number of moves.
    fn rewrite_around(&mut self, module: &mut Module, start: InstId) -> Result<usize, EditError> {
        let region = unseen_region_around(module, start, &mut self.seen);
        let Some(region) = region else { return Ok(0) };
        let candidates = self.candidates(module, &region);
        if candidates.is_empty() {
            return Ok(0);
        }
        if let Some(dynamic) = region.dynamic {
            self.note(module, &region, Verdict::Left, words::why_dynamic(module, dynamic));
            return Ok(0);
        }
        let rest = (!region.blocked.is_empty()).then(|| region.movable(module));
        let movable = rest.as_ref().unwrap_or(&region);
        let best = self.best(module, movable, &candidates);
        if best.as_ref().is_none_or(|best| !best.pays()) && self.cuts && is_large(movable) {
            return self.move_pieces(module, movable, &candidates);
        }
        Ok(usize::from(self.make(module, &region, movable, best)?))
    }

    /// Moves pieces of a region that is too large for one cut, one after the
    /// other, so that each meets those before it where they are now.
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

    /// Makes the best move of what is movable of a region, if it pays.
    fn make(
        &mut self,
        module: &mut Module,
        region: &Region,
        movable: &Region,
        best: Option<Move>,
    ) -> Result<bool, EditError> {
        let target = &self.cx.target.name;
        let Some(done) = best.as_ref().filter(|best| best.pays()) else {
            if let Some(text) = words::why_left(module, region, best.as_ref(), target) {
                self.note(module, region, Verdict::Left, text);
            }
            return Ok(false);
        };
        let text = words::explain(module, region, done, target);
        if !self.cx.is_worthwhile(module, &done.patch) || !self.cx.spend() {
            return Ok(false);
        }
        self.note(module, region, Verdict::Done, text);
        // What was made waits for the next sweep.
        self.seen.extend(done.patch.apply(module)?);
        remove_unused(module, movable, done)?;
        Ok(true)
    }

    /// The dims that the region's reshapes offer, each once.
    fn candidates(&self, module: &Module, region: &Region) -> SmallVec<[Dims; MOST_CANDIDATES]> {
        let sources = region.leaves.iter().filter_map(|leaf| match leaf.kind {
            LeafKind::Reshape(source) => Some(source),
            LeafKind::Broadcast(_)
            | LeafKind::Transpose(_)
            | LeafKind::Iota
            | LeafKind::Constant
            | LeafKind::Other => None,
        });
        let exits = region.exits.iter().filter(|exit| exit.kind == ExitKind::Reshape);
        let mut candidates: SmallVec<[Dims; MOST_CANDIDATES]> = SmallVec::new();
        for id in sources.chain(exits.filter_map(|exit| exit.user)) {
            let Some(shape) = module.array_shape(id) else { continue };
            let known = shape.dims() == region.dims.as_slice()
                || candidates.iter().any(|dims| dims.as_slice() == shape.dims());
            let admitted = !known && (self.admits)(shape.dims(), &region.dims);
            if admitted && candidates.len() < MOST_CANDIDATES {
                candidates.push(shape.dims().into());
            }
        }
        candidates
    }

    /// The move that saves most.
    fn best(&self, module: &Module, region: &Region, candidates: &[Dims]) -> Option<Move> {
        let model = CostModel { target: self.cx.target };
        let moves = candidates.iter().flat_map(|dims| self.moves(module, region, dims, &model));
        moves.min_by(|a, b| (a.after - a.before).total_cmp(&(b.after - b.before)))
    }

    /// The move of all of a region to other dims, and that of the part of it
    /// which is best to move.
    fn moves(
        &self,
        module: &Module,
        region: &Region,
        dims: &Dims,
        model: &CostModel<'_>,
    ) -> SmallVec<[Move; 2]> {
        let numbers = self.cx.numbers;
        let Some(whole) = Planner::plan(module, region, dims, model, numbers) else {
            return SmallVec::new();
        };
        let planned = whole.planned();
        let part = (self.cuts && !is_large(region))
            .then(|| placement::part_to_move(&whole, &planned))
            .flatten()
            .map(|part| region.part(module, |id| part.contains(&id)))
            .and_then(|part| {
                let part = Planner::plan(module, &part, dims, model, numbers)?;
                let planned = part.planned();
                Some(part.weighed(&planned))
            })
            .filter(Move::pays);
        [whole.weighed(&planned)].into_iter().chain(part).collect()
    }

    fn note(&mut self, module: &Module, region: &Region, verdict: Verdict, text: String) {
        let place = words::place_of(module, region);
        self.cx.notes.push(Note { pass: self.pass, verdict, place, text });
    }
}

/// Removes what a move leaves without use: a dead region would be found and
/// moved again, as often as the pass is run.
fn remove_unused(module: &mut Module, region: &Region, done: &Move) -> Result<(), EditError> {
    let leaves = region.leaves.iter().filter(|leaf| leaf.kind != LeafKind::Other);
    let interior = leaves.map(|leaf| leaf.id).chain(region.interior.iter().copied());
    let ends = done.patch.replaced().iter().map(|&(old, _)| old);
    // Users before operands.
    for id in interior.chain(ends).rev() {
        if module.is_removable(id) {
            module.remove(id)?;
        }
    }
    Ok(())
}
