//! Which instructions of a module look alike: a model repeats its layers, and what is decided for
//! one of them holds for all.
//!
//! The colour of an instruction is a hash of its op and shape, and of the colours of its operands
//! and users (B. Weisfeiler and A. Lehman, "The reduction of a graph to canonical form", 1968).
//! After [`STEPS`] refinements, instructions of equal colours have equal surroundings up to that
//! distance. A colour says nothing of names, metadata or numbers of parameters.

use std::hash::{Hash as _, Hasher as _};

use rustc_hash::{FxHashMap, FxHasher};
use tilewright_ir::{CompId, InstId, Module, Op, SecondaryMap};

use super::equivalence::representatives;

/// The steps over which the surroundings of alike instructions are equal.
const STEPS: usize = 3;

/// The colours of a module's instructions.
pub(crate) struct Likeness {
    colours: SecondaryMap<InstId, u64>,
}

impl Likeness {
    /// Colours all instructions of a module, in time that is linear in its instructions.
    pub(crate) fn of(module: &Module) -> Self {
        let same = representatives(module);
        let all: Vec<InstId> =
            module.computations().iter().flat_map(|&of| module.instructions(of)).collect();
        let mut colours = SecondaryMap::new();
        all.iter().for_each(|&id| colours.set(id, own(module, id, &same)));
        for _ in 0..STEPS {
            let mut refined = SecondaryMap::new();
            all.iter().for_each(|&id| refined.set(id, around(module, id, &colours)));
            colours = refined;
        }
        Self { colours }
    }

    /// Returns the colours of these instructions, and the computation of the first.
    pub(crate) fn key(
        &self,
        module: &Module,
        ids: impl Iterator<Item = InstId>,
    ) -> (Option<CompId>, Vec<u64>) {
        let mut ids = ids.peekable();
        let computation = ids.peek().and_then(|&id| module.instruction(id).parent());
        (computation, ids.map(|id| self.colours[id]).collect())
    }
}

/// Returns the hash of an instruction by itself.
fn own(module: &Module, id: InstId, same: &FxHashMap<CompId, CompId>) -> u64 {
    let mut hasher = FxHasher::default();
    let op = module.op(id);
    op.opcode().hash(&mut hasher);
    module.instruction(id).shape_id().hash(&mut hasher);
    let mut calls = false;
    op.for_each_computation(&mut |called| {
        calls = true;
        same.get(&called).unwrap_or(&called).hash(&mut hasher);
    });
    // Parameters differ in their numbers, and the elements of constants decide nothing.
    if !calls && !matches!(op, Op::Parameter(_) | Op::Constant(_)) {
        op.hash(&mut hasher);
    }
    hasher.finish()
}

/// Returns the hash of an instruction with its operands, in order, and its users, in any order.
fn around(module: &Module, id: InstId, colours: &SecondaryMap<InstId, u64>) -> u64 {
    let mut hasher = FxHasher::default();
    colours[id].hash(&mut hasher);
    module.operands(id).iter().for_each(|&operand| colours[operand].hash(&mut hasher));
    let users = module.uses(id).map(|one| colours[one.user]);
    users.fold(0, u64::wrapping_add).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use tilewright_ir::{Builder, ElementType, Opcode, Shape};

    use super::*;

    /// Builds `abs(last(cosine(sine(p))))` for each op `last`; returns the sines.
    fn towers(lasts: &[Opcode]) -> (Module, Vec<InstId>) {
        let mut b = Builder::new("towers");
        let (mut sines, mut tops) = (Vec::new(), Vec::new());
        for (place, &last) in lasts.iter().enumerate() {
            let shape = Shape::array(ElementType::F32, [8]);
            let p = b.parameter(&format!("p{place}"), shape).expect("a parameter");
            let sine = b.unary(Opcode::Sin, p).expect("an op");
            let cosine = b.unary(Opcode::Cos, sine).expect("an op");
            let last = b.unary(last, cosine).expect("an op");
            tops.push(b.unary(Opcode::Abs, last).expect("an op"));
            sines.push(sine);
        }
        let root = b.tuple(&tops).expect("a tuple");
        (b.finish(root).expect("a module").into_inner(), sines)
    }

    #[test]
    fn instructions_with_equal_surroundings_look_alike() {
        let (module, sines) = towers(&[Opcode::Negate, Opcode::Exp, Opcode::Negate]);
        let likeness = Likeness::of(&module);
        let [a, b, c] = [0, 1, 2].map(|n| likeness.key(&module, [sines[n]].into_iter()));
        assert_eq!(a, c);
        // The ops two steps on differ.
        assert_ne!(a, b);
        let both = likeness.key(&module, sines.iter().copied().take(2));
        assert_eq!(both.1, [a.1, b.1].concat());
    }
}
