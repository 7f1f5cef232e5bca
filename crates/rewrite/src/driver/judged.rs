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

/// Places that were judged and left at a moment.
#[derive(Debug)]
struct Left {
    at: Moment,
    places: Vec<Place>,
}

/// A place that was judged.
#[derive(Debug)]
struct Place {
    /// The instructions that tell the place from others that share members with it. None if no
    /// other does.
    heads: Vec<InstId>,
    /// The instructions near which an edit may change the judgement.
    members: Vec<InstId>,
}

/// The places that a pass leaves in one walk over a module.
pub(crate) struct Walked {
    now: Left,
    /// One more than the index of the instruction's place among those left before, or 0.
    place_of: SecondaryMap<InstId, usize>,
    /// The indices of the other places of an instruction.
    also_of: FxHashMap<InstId, Vec<usize>>,
    /// The index of the place with these heads.
    headed: FxHashMap<Vec<InstId>, usize>,
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
        let mut walked = Walked {
            now,
            place_of: SecondaryMap::new(),
            also_of: FxHashMap::default(),
            headed: FxHashMap::default(),
            is_known: Vec::new(),
        };
        let Some(Left { at, places }) = before else { return walked };
        let edited = module.edited_since(at);
        if edited.len() > module.instruction_count() / 4 {
            return walked;
        }
        places.iter().enumerate().for_each(|(index, place)| walked.enter(index, place));
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
    /// Notes the place with this index among those left before.
    fn enter(&mut self, index: usize, Place { heads, members }: &Place) {
        if !heads.is_empty() {
            self.headed.insert(heads.clone(), index);
        }
        for &id in members {
            match self.place_of.get_mut(id) {
                place @ 0 => *place = index.saturating_add(1),
                _ => self.also_of.entry(id).or_default().push(index),
            }
        }
    }

    /// Checks whether an instruction belongs to a place that need not be judged.
    pub(crate) fn knows(&self, id: InstId) -> bool {
        let place = self.place_of[id].checked_sub(1);
        place.is_some_and(|place| self.is_known.get(place) == Some(&true))
    }

    /// Checks whether a place with these heads need not be judged.
    pub(crate) fn knows_headed(&self, heads: &[InstId]) -> bool {
        let place = self.headed.get(heads);
        place.is_some_and(|&place| self.is_known.get(place) == Some(&true))
    }

    /// Records that a place was judged and left, which shares no instruction with others.
    pub(crate) fn leave(&mut self, members: Vec<InstId>) {
        self.leave_headed(Vec::new(), members);
    }

    /// Records that the place with these heads was judged and left.
    pub(crate) fn leave_headed(&mut self, heads: Vec<InstId>, members: Vec<InstId>) {
        self.now.places.push(Place { heads, members });
    }

    /// Records edits: the places near these instructions must be judged again.
    pub(crate) fn edited(&mut self, module: &Module, edited: impl IntoIterator<Item = InstId>) {
        for id in near(module, edited) {
            let also = self.also_of.get(&id).into_iter().flatten().copied();
            for place in self.place_of[id].checked_sub(1).into_iter().chain(also) {
                if let Some(is_known) = self.is_known.get_mut(place) {
                    *is_known = false;
                }
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

    #[test]
    fn an_edit_is_near_all_places_of_an_instruction() {
        let (mut module, ids) = chain(40);
        let mut judged = Judged::default();
        // Places from 10 to 13, from 10 to 15, and at 30.
        let places = [(11, 10..14), (12, 10..16), (30, 30..31)];
        let known = |judged: &mut Judged, module: &mut Module| -> Vec<bool> {
            let mut walked = judged.begin("pass", module);
            let known = places.clone().map(|(head, members)| {
                let is_known = walked.knows_headed(&[ids[head]]);
                if !is_known {
                    walked.leave_headed(vec![ids[head]], ids[members].to_vec());
                }
                is_known
            });
            assert!(!walked.knows_headed(&[ids[11], ids[12]]), "heads of two places");
            judged.end("pass", walked);
            known.to_vec()
        };
        assert_eq!(known(&mut judged, &mut module), [false, false, false]);
        assert_eq!(known(&mut judged, &mut module), [true, true, true]);
        module.set_operand(ids[11], 0, ids[9]).expect("an edit");
        assert_eq!(known(&mut judged, &mut module), [false, false, true]);
        assert_eq!(known(&mut judged, &mut module), [true, true, true]);
    }
}
