//! Remembers the places that a pass judged and left, so that it need not judge them in each turn.
//!
//! A turn of a cost-gated group changes a few places of a module. A pass that judges each place by
//! the instructions around it would find nothing new at the others. A place is therefore judged
//! again only after an edit within [`REACH`] steps of it.
//!
//! A judgement may read further than that, so a memory may be stale. The pipeline therefore never
//! stops because of one: when a turn with memories changes nothing, [`super::run`] takes it again
//! without any. Only such a turn leaves notes on what is left, and a stale memory only delays a
//! rewrite.

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::{InstId, Module, Moment, Opcode, SecondaryMap};

/// The steps, from an instruction to an operand or a user, over which an edit is near.
const REACH: usize = 2;

/// The places that passes judged and left.
#[derive(Debug, Default)]
pub(crate) struct Judged {
    left: FxHashMap<&'static str, Left>,
    /// The number of walks that were spared a judgement.
    spared: usize,
}

/// Places that were judged and left at a moment, each a list of instructions.
#[derive(Debug)]
struct Left {
    at: Moment,
    places: Vec<Vec<InstId>>,
}

/// The places that a pass leaves in one walk over a module.
pub(crate) struct Walked {
    now: Left,
    /// One more than the index of the instruction's place among those left before, or 0.
    place_of: SecondaryMap<InstId, usize>,
    /// Whether each of these need not be judged.
    is_known: Vec<bool>,
}

impl Judged {
    /// Begins a walk of a pass, which need not judge the places again that it left when nothing
    /// near them was edited since.
    pub(crate) fn begin(&mut self, pass: &'static str, module: &mut Module) -> Walked {
        let before = self.left.remove(pass);
        // The walk's own edits are later.
        let now = Left { at: module.moment(), places: Vec::new() };
        let mut walked = Walked { now, place_of: SecondaryMap::new(), is_known: Vec::new() };
        let Some(Left { at, places }) = before else { return walked };
        let edited = module.edited_since(at);
        if edited.len() > module.instruction_count() / 4 {
            return walked;
        }
        for (index, place) in (1..).zip(&places) {
            place.iter().for_each(|&id| walked.place_of.set(id, index));
        }
        walked.is_known = vec![true; places.len()];
        walked.now.places = places;
        walked.edited(module, edited);
        self.spared += usize::from(walked.is_known.contains(&true));
        walked
    }

    /// Ends the walk of a pass.
    pub(crate) fn end(&mut self, pass: &'static str, walked: Walked) {
        let Walked { now: Left { at, places }, is_known, .. } = walked;
        let is_known = is_known.into_iter().chain(std::iter::repeat(true));
        let kept = places.into_iter().zip(is_known).filter(|&(_, is_known)| is_known);
        let places = kept.map(|(place, _)| place).collect();
        self.left.insert(pass, Left { at, places });
    }

    /// Returns the number of walks so far that were spared a judgement.
    pub(super) fn spared(&self) -> usize {
        self.spared
    }
}

impl Walked {
    /// Checks whether an instruction belongs to a place that need not be judged.
    pub(crate) fn knows(&self, id: InstId) -> bool {
        let place = self.place_of[id].checked_sub(1);
        place.is_some_and(|place| self.is_known.get(place) == Some(&true))
    }

    /// Records that a place was judged and left.
    pub(crate) fn leave(&mut self, place: Vec<InstId>) {
        self.now.places.push(place);
    }

    /// Records edits: the places near these instructions must be judged again.
    pub(crate) fn edited(&mut self, module: &Module, edited: impl IntoIterator<Item = InstId>) {
        for id in near(module, edited) {
            if let Some(place) = self.place_of[id].checked_sub(1) {
                self.is_known[place] = false;
            }
        }
    }
}

/// Returns the instructions within [`REACH`] steps of edited ones. Constants are not followed to
/// their users: they never change, and most of their users have nothing else in common.
fn near(module: &Module, edited: impl IntoIterator<Item = InstId>) -> FxHashSet<InstId> {
    let mut near: FxHashSet<InstId> = edited.into_iter().collect();
    let mut last: Vec<InstId> = near.iter().copied().collect();
    for _ in 0..REACH {
        let mut next = Vec::new();
        for id in last {
            let is_followed = module.opcode(id) != Opcode::Constant;
            let users = module.uses(id).filter(|_| is_followed).map(|one| one.user);
            let operands = module.operands(id).iter().copied();
            next.extend(operands.chain(users).filter(|&id| near.insert(id)));
        }
        last = next;
    }
    near
}

#[cfg(test)]
mod tests {
    use tilewright_ir::{Builder, ElementType, Position, Shape};

    use super::*;

    /// Returns a chain of this many instructions.
    fn chain(length: usize) -> (Module, Vec<InstId>) {
        let mut b = Builder::new("chain");
        let x = b.parameter("x", Shape::array(ElementType::F32, [8, 128])).expect("a parameter");
        let mut ids = vec![x];
        while let (true, Some(&last)) = (ids.len() < length, ids.last()) {
            ids.push(b.unary(Opcode::Negate, last).expect("an op"));
        }
        let root = *ids.last().expect("a root");
        (b.finish(root).expect("a module").into_inner(), ids)
    }

    /// Walks over the module, leaving each unknown instruction; returns those that were known.
    fn walk(judged: &mut Judged, module: &mut Module, ids: &[InstId]) -> Vec<InstId> {
        let mut walked = judged.begin("pass", module);
        let (known, new): (Vec<InstId>, Vec<InstId>) =
            ids.iter().copied().partition(|&id| walked.knows(id));
        new.into_iter().for_each(|id| walked.leave(vec![id]));
        judged.end("pass", walked);
        known
    }

    #[test]
    fn places_are_known_until_an_edit_near_them() {
        let (mut module, ids) = chain(20);
        let mut judged = Judged::default();
        assert_eq!(walk(&mut judged, &mut module, &ids), []);
        assert_eq!(judged.spared(), 0);
        assert_eq!(walk(&mut judged, &mut module, &ids), ids);
        assert_eq!(judged.spared(), 1);
        // The second instruction gets a user, at the end of the order.
        let (shape, last) = (module.shape(ids[1]).clone(), ids[19]);
        let position = Position::Before(last);
        module.insert(position, tilewright_ir::Op::Negate, shape, &[ids[1]], "n").expect("an op");
        // Its neighbours in the order of the computation count as edited, too.
        assert_eq!(walk(&mut judged, &mut module, &ids), ids[4..16]);
        assert_eq!(walk(&mut judged, &mut module, &ids), ids);
        assert_eq!(walk(&mut judged, &mut module.clone(), &ids), ids, "a clone is the same");
    }
}
