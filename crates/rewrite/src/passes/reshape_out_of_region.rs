//! **T2: compute in the dims from which an elementwise region was reshaped.**
//!
//! ```text
//! reshape(f(reshape(X), broadcast(Y))) = f(X, broadcast(reshape(broadcast(Y))))
//!
//!      X[B,H,W,C]                                X[B,H,W,C]
//!          │ reshape                                 │
//!      [B,H,W,G,K]   Y[B,G]                          │      Y[B,G]
//!          │        ⁄ broadcast                      │        │ broadcast [B,G,K]
//!          f ──────────── reduce [B,G]   becomes     │        │ reshape   [B,C]
//!          │ reshape                                 │      ⁄ broadcast [B,H,W,C]
//!      [B,H,W,C]                                     f ──────────── T1 ── [B,G]
//! ```
//!
//! `f` is any DAG of elementwise ops. What goes in: reshapes (of X, which is
//! then used itself), broadcasts (Y is broadcast only over the missing digits
//! of dims that the reshape mixes, reshaped while small, then broadcast to
//! full size), iotas (as broadcasts of one dim), anything else (reshaped at
//! full size, which costs). What comes out: reshapes back (gone), reduces (by
//! T1), anything else (reshaped at full size).
//!
//! All of a region moves or nothing; of all dims that its reshapes offer, those
//! are chosen that cost least on the target, and only if that is less than it
//! costs now. So a patch norm, whose inner broadcast would be as large as the
//! image, stays as it is.
//!
//! Source: the patent application "Reshape and broadcast optimizations to avoid
//! unnecessary data movement" (B. A. Hechtman, filed 2020-04-30), the pattern
//! `reshape(f(reshape(X), broadcast(Y)))`; generalised to regions with several
//! leaves and exits.

mod plan;

use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use tilewright_ir::{Dims, EditError, InstId, Module, Opcode};

use crate::analysis::cost::{CostModel, pays};
use crate::analysis::region::{Exit, ExitKind, LeafKind, Region, region_around};
use crate::pass::{Context, Pass};
use crate::report::{Note, Verdict, place_of};
use plan::Move;

const NAME: &str = "reshape-out-of-region";

/// More dims than this are not tried for one region.
const MOST_CANDIDATES: usize = 4;

/// See the module.
pub struct ReshapeOutOfRegion;

impl Pass for ReshapeOutOfRegion {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "T2: compute elementwise regions in the dims they were reshaped from"
    }

    fn is_heart(&self) -> bool {
        true
    }

    fn run(&self, module: &mut Module, cx: &mut Context<'_>) -> Result<usize, EditError> {
        let mut changes = 0;
        for computation in module.computations().to_vec() {
            let seeds: Vec<InstId> = module.instructions(computation).collect();
            let mut visited = FxHashSet::default();
            for id in seeds {
                if module.opcode(id) != Opcode::Reshape || !is_live(module, id) {
                    continue;
                }
                let Some(&operand) = module.operands(id).first() else { continue };
                // The reshape leads into one region and out of another.
                for start in [operand, id] {
                    if !visited.contains(&start) {
                        changes += usize::from(rewrite_around(module, start, &mut visited, cx)?);
                    }
                }
            }
        }
        Ok(changes)
    }
}

fn is_live(module: &Module, id: InstId) -> bool {
    module.instruction(id).use_count() > 0 || module.is_root(id)
}

fn rewrite_around(
    module: &mut Module,
    start: InstId,
    visited: &mut FxHashSet<InstId>,
    cx: &mut Context<'_>,
) -> Result<bool, EditError> {
    let Some(region) = region_around(module, start) else { return Ok(false) };
    visited.insert(start);
    visited.extend(region.interior.iter().copied());
    visited.extend(reshape_leaves(&region));
    let candidates = candidates(module, &region);
    if candidates.is_empty() {
        return Ok(false);
    }
    let place = place_of_region(module, &region);
    if let Some(blocked) = &region.blocked {
        let text = format!("`{}` keeps its dims: {}", module.name_of(blocked.id), blocked.reason);
        cx.notes.push(Note { pass: NAME, verdict: Verdict::Left, place, text });
        return Ok(false);
    }
    let model = CostModel { target: cx.target };
    let moves =
        candidates.iter().filter_map(|dims| Move::plan(module, &region, dims, &model, cx.exact));
    let Some(best) = moves.min_by(|a, b| (a.after - a.before).total_cmp(&(b.after - b.before)))
    else {
        return Ok(false);
    };
    let pays = pays(best.before, best.after);
    let text = explain(module, &region, &best, cx.target.name.as_str());
    let verdict = if pays { Verdict::Done } else { Verdict::Left };
    if pays && !cx.spend() {
        return Ok(false);
    }
    cx.notes.push(Note { pass: NAME, verdict, place, text });
    if pays {
        best.patch.apply(module)?;
    }
    Ok(pays)
}

fn reshape_leaves(region: &Region) -> impl Iterator<Item = InstId> + '_ {
    let reshapes = region.leaves.iter().filter(|leaf| matches!(leaf.kind, LeafKind::Reshape(_)));
    reshapes.map(|leaf| leaf.id)
}

/// The dims that the region's reshapes offer, each once.
fn candidates(module: &Module, region: &Region) -> SmallVec<[Dims; MOST_CANDIDATES]> {
    let sources = region.leaves.iter().filter_map(|leaf| match leaf.kind {
        LeafKind::Reshape(source) => Some(source),
        LeafKind::Broadcast(_) | LeafKind::Iota | LeafKind::Other => None,
    });
    let results =
        region.exits.iter().filter(|e| e.kind == ExitKind::Reshape).filter_map(|exit| exit.user);
    let mut candidates: SmallVec<[Dims; MOST_CANDIDATES]> = SmallVec::new();
    for id in sources.chain(results) {
        let Some(shape) = module.array_shape(id) else { continue };
        let known = shape.dims() == region.dims.as_slice()
            || candidates.iter().any(|dims| dims.as_slice() == shape.dims());
        if !known && candidates.len() < MOST_CANDIDATES {
            candidates.push(shape.dims().into());
        }
    }
    candidates
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
    let ops = match region.interior.len() {
        0 => "values".to_owned(),
        1 => "1 elementwise op".to_owned(),
        n => format!("{n} elementwise ops"),
    };
    let (from, to) = (list(&region.dims), list(&best.dims));
    let costs = format!("{:.0} cycles instead of {:.0} on {target}", best.after, best.before);
    if !pays(best.before, best.after) {
        return format!("{ops} on {from} would cost {costs} on {to}");
    }
    let forced: Vec<String> = best.forced.iter().map(|exit| forced_use(module, exit)).collect();
    let forced = match forced.as_slice() {
        [] => String::new(),
        uses => format!("; still reshaped to {from} for {}", uses.join(", ")),
    };
    format!("{ops} on {from} now work on {to}: {costs}{forced}")
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
