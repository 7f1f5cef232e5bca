//! Moves elementwise regions to the dims of their reshapes, where that pays:
//! the mechanism of [`super::reshape_out_of_region`] and [`super::degenerate`].

mod placement;
mod plan;

use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use tilewright_ir::{Dims, EditError, InstId, Module, Opcode};

use crate::analysis::cost::{CostModel, pays};
use crate::analysis::region::{Exit, ExitKind, LeafKind, Region, unseen_region_around};
use crate::pass::Context;
use crate::report::{Note, Verdict, place_of};
use plan::{Move, Planner};

/// More dims than this are not tried for one region.
const MOST_CANDIDATES: usize = 4;

/// Whether two lists of dims differ only by dims of size 1.
pub(super) fn same_but_ones(from: &[i64], to: &[i64]) -> bool {
    from.iter().filter(|&&d| d != 1).eq(to.iter().filter(|&&d| d != 1))
}

/// What a sweep looks for.
struct Sweep<'a, 'b> {
    cx: &'a mut Context<'b>,
    pass: &'static str,
    /// Whether a region of the second dims may move to the first.
    admits: fn(&[i64], &[i64]) -> bool,
    seen: FxHashSet<InstId>,
}

/// Moves every region around a reshape for which that pays, once; the number
/// of moves.
pub(super) fn sweep(
    module: &mut Module,
    cx: &mut Context<'_>,
    pass: &'static str,
    admits: fn(&[i64], &[i64]) -> bool,
) -> Result<usize, EditError> {
    let mut sweep = Sweep { cx, pass, admits, seen: FxHashSet::default() };
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
                changes += usize::from(sweep.rewrite_around(module, start)?);
            }
        }
    }
    Ok(changes)
}

fn is_live(module: &Module, id: InstId) -> bool {
    module.instruction(id).use_count() > 0 || module.is_root(id)
}

impl Sweep<'_, '_> {
    fn rewrite_around(&mut self, module: &mut Module, start: InstId) -> Result<bool, EditError> {
        let region = unseen_region_around(module, start, &mut self.seen);
        let Some(region) = region else { return Ok(false) };
        let candidates = self.candidates(module, &region);
        if candidates.is_empty() {
            return Ok(false);
        }
        if let Some(blocked) = &region.blocked {
            let name = module.name_of(blocked.id);
            let text = format!("`{name}` keeps its dims: {}", blocked.reason);
            self.note(module, &region, Verdict::Left, text);
            return Ok(false);
        }
        let Some(best) = self.best(module, &region, &candidates) else { return Ok(false) };
        let pays = pays(best.before, best.after);
        let text = explain(module, &region, &best, &self.cx.target.name);
        if !pays {
            // What would change nothing is not worth a word.
            if !region.interior.is_empty() && best.after > best.before {
                self.note(module, &region, Verdict::Left, text);
            }
            return Ok(false);
        }
        if !self.cx.spend() {
            return Ok(false);
        }
        self.note(module, &region, Verdict::Done, text);
        // What was made waits for the next sweep.
        self.seen.extend(best.patch.apply(module)?);
        remove_unused(module, &region, &best)?;
        Ok(true)
    }

    /// The dims that the region's reshapes offer, each once.
    fn candidates(&self, module: &Module, region: &Region) -> SmallVec<[Dims; MOST_CANDIDATES]> {
        let sources = region.leaves.iter().filter_map(|leaf| match leaf.kind {
            LeafKind::Reshape(source) => Some(source),
            LeafKind::Broadcast(_) | LeafKind::Iota | LeafKind::Other => None,
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
        let exact = self.cx.exact;
        let moves = candidates.iter().flat_map(|dims| moves(module, region, dims, &model, exact));
        moves.min_by(|a, b| (a.after - a.before).total_cmp(&(b.after - b.before)))
    }

    fn note(&mut self, module: &Module, region: &Region, verdict: Verdict, text: String) {
        let place = place_of_region(module, region);
        self.cx.notes.push(Note { pass: self.pass, verdict, place, text });
    }
}

/// The move of all of a region to other dims, and that of the part of it which
/// is best to move.
fn moves(
    module: &Module,
    region: &Region,
    dims: &Dims,
    model: &CostModel<'_>,
    exact: bool,
) -> SmallVec<[Move; 2]> {
    let Some(whole) = Planner::plan(module, region, dims, exact) else { return SmallVec::new() };
    let planned = whole.planned(model);
    let part = placement::part_to_move(&whole, model, &planned)
        .map(|part| region.part(module, |id| part.contains(&id)))
        .and_then(|part| {
            let part = Planner::plan(module, &part, dims, exact)?;
            let planned = part.planned(model);
            Some(part.weighed(model, &planned))
        })
        .filter(|part| pays(part.before, part.after));
    [whole.weighed(model, &planned)].into_iter().chain(part).collect()
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

fn place_of_region(module: &Module, region: &Region) -> String {
    let first = region.interior.first().copied();
    let last = region.interior.last().copied();
    match (first, last) {
        (Some(first), Some(last)) if first != last => {
            let (first, last) = (place_of(module, first), place_of(module, last));
            if first == last { first } else { format!("{first} to {last}") }
        }
        (Some(only), _) => place_of(module, only),
        _ => region.leaves.first().map_or_else(String::new, |leaf| place_of(module, leaf.id)),
    }
}

fn explain(module: &Module, region: &Region, best: &Move, target: &str) -> String {
    let ops = match (best.ops, region.interior.len()) {
        (_, 0) => "values".to_owned(),
        (1, 1) => "1 elementwise op".to_owned(),
        (some, all) if some < all => format!("{some} of {all} elementwise ops"),
        (_, all) => format!("{all} elementwise ops"),
    };
    let (from, to) = (list(&region.dims), list(&best.dims));
    let costs = format!("{:.0} cycles instead of {:.0} on {target}", best.after, best.before);
    if !pays(best.before, best.after) {
        return format!("moving {ops} from {from} to {to} would cost {costs}");
    }
    let forced: Vec<String> = best.forced.iter().map(|exit| forced_use(module, exit)).collect();
    let forced = match forced.as_slice() {
        [] => String::new(),
        uses => format!("; still reshaped to {from} for {}", uses.join(", ")),
    };
    format!("moved {ops} from {from} to {to}: {costs}{forced}")
}

fn forced_use(module: &Module, exit: &Exit) -> String {
    match exit.user {
        Some(user) => format!("{} {}", module.opcode(user), place_of(module, user)),
        None => "the result of the computation".into(),
    }
}

fn list(dims: &[i64]) -> String {
    let sizes: Vec<String> = dims.iter().map(i64::to_string).collect();
    format!("[{}]", sizes.join(","))
}
