//! The turns of cost-gated groups, and those that were rolled back.

use rustc_hash::FxHashMap;

/// The rewrites that the passes of a cost-gated group made in one run.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Turn {
    /// The index of the group.
    pub(super) group: usize,
    pub(super) changes: usize,
    /// The rewrites that the passes noted, as text.
    pub(super) made: Vec<String>,
}

/// The turns that were rolled back because the module cost no less after them.
///
/// A group that repeats a turn is not judged again at once, although the module may have changed in
/// between: each rewrite saves as many cycles by itself as it did then. Before the pipeline stops,
/// [`Refusals::expire`] lets the groups try such turns once more on the final module.
#[derive(Default)]
pub(super) struct Refusals {
    /// The number of turns kept when each turn was refused.
    turns: FxHashMap<Turn, usize>,
    /// The number of turns kept so far.
    kept: usize,
}

impl Refusals {
    /// Records that a turn was kept.
    pub(super) fn keep(&mut self) {
        self.kept += 1;
    }

    /// Records that a turn was rolled back.
    pub(super) fn refuse(&mut self, turn: Turn) {
        self.turns.insert(turn, self.kept);
    }

    /// Checks whether a turn repeats a refused one. Turns without notes cannot be told apart.
    pub(super) fn cover(&self, turn: &Turn) -> bool {
        !turn.made.is_empty() && self.turns.contains_key(turn)
    }

    /// Forgets the turns that were refused before the last turn kept. Returns whether there were
    /// any.
    pub(super) fn expire(&mut self) -> bool {
        let before = self.turns.len();
        self.turns.retain(|_, at| *at == self.kept);
        self.turns.len() < before
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::{Note, Verdict};
    use super::*;

    fn turn(group: usize) -> Turn {
        let note = Note {
            pass: "reshape",
            verdict: Verdict::Done,
            place: "`x`".into(),
            cycles: None,
            text: "merged".into(),
        };
        Turn { group, changes: 1, made: vec![note.to_string()] }
    }

    #[test]
    fn a_turn_is_refused_until_another_one_is_kept_and_the_refusal_expires() {
        let mut refusals = Refusals::default();
        refusals.keep();
        refusals.refuse(turn(0));
        assert!(refusals.cover(&turn(0)));
        assert!(!refusals.cover(&turn(1)));
        assert!(!refusals.expire(), "nothing was kept since");
        assert!(refusals.cover(&turn(0)));

        refusals.keep();
        refusals.refuse(turn(1));
        assert!(refusals.cover(&turn(0)), "not judged at once");
        assert!(refusals.expire());
        assert!(!refusals.cover(&turn(0)));
        assert!(refusals.cover(&turn(1)));
    }
}
