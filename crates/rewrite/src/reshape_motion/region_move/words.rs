//! The text of notes about moves of regions.

use tilewright_ir::{InstId, Module};

use super::plan::Move;
use crate::analysis::region::{Blocked, LiveOut, Region};
use crate::driver::Place;
use crate::driver::candidate::{Candidate, Cycles, Scope};

/// The most blocked instructions named in a note.
const MOST_NAMED: usize = 3;

/// Returns the reason why a region with an array of dynamic dims stays.
pub(super) fn why_dynamic(module: &Module, id: InstId) -> String {
    format!("`{}` has dynamic dims, so what is computed with it keeps them", module.name_of(id))
}

/// Returns the place of a region in its computation.
pub(super) fn region_place(module: &Module, region: &Region) -> Place {
    let first = region.interior.first().copied();
    let last = region.interior.last().copied();
    match (first, last) {
        (Some(first), Some(last)) if first != last => {
            Place::of(module, first).to(&Place::of(module, last))
        }
        (Some(only), _) => Place::of(module, only),
        _ => {
            let live_in = region.live_ins.first();
            live_in.map_or_else(Place::default, |live_in| Place::of(module, live_in.id))
        }
    }
}

/// Returns a move in words: its savings, the uses that still need the old dims, and the blocked
/// members.
pub(super) fn candidate(module: &Module, region: &Region, best: &Move, place: Place) -> Candidate {
    let forced: Vec<String> =
        best.forced.iter().map(|live_out| forced_use(module, live_out)).collect();
    let forced = match forced.as_slice() {
        [] => String::new(),
        uses => format!("; still reshaped to {} for {}", list(&region.dims), uses.join(", ")),
    };
    let kept = match region.blocked.as_slice() {
        [] => String::new(),
        _ => format!("; {}", kept(module, region)),
    };
    let ops = moved_ops(region, best);
    let cycles = Cycles { before: best.before, after: best.after, of: Scope::Instructions };
    let (done, would) = (format!("moved {ops}"), format!("moving {ops}"));
    Candidate { place, done, would, also: format!("{forced}{kept}"), cycles }
}

/// Returns the number of moved ops, and the old and new dims.
fn moved_ops(region: &Region, best: &Move) -> String {
    let ops = match (best.ops, region.interior.len()) {
        (0, _) => "values".to_owned(),
        (1, 1) => "1 elementwise op".to_owned(),
        (some, all) if some < all => format!("{some} of {all} elementwise ops"),
        (_, all) => format!("{all} elementwise ops"),
    };
    format!("{ops} from {} to {}", list(&region.dims), list(&best.dims))
}

/// Returns the first few blocked members, each with its reason.
pub(super) fn kept(module: &Module, region: &Region) -> String {
    let say = |blocked: &Blocked| {
        format!(
            "`{}` keeps its dims: it {}",
            module.name_of(blocked.id),
            blocked.reason.of_instruction()
        )
    };
    let mut parts: Vec<String> = region.blocked.iter().take(MOST_NAMED).map(say).collect();
    let more = region.blocked.len().saturating_sub(MOST_NAMED);
    if more > 0 {
        parts.push(format!("and {more} more keep theirs"));
    }
    parts.join("; ")
}

fn forced_use(module: &Module, live_out: &LiveOut) -> String {
    match live_out.user {
        Some(user) => format!("{} {}", module.opcode(user), Place::of(module, user)),
        None => "the result of the computation".into(),
    }
}

fn list(dims: &[i64]) -> String {
    let sizes: Vec<String> = dims.iter().map(i64::to_string).collect();
    format!("[{}]", sizes.join(","))
}
