//! Factors: values that loops compute while they read what the values are made of, so that no step
//! stores them. `products.rs` and `terms.rs` look for them.

use smallvec::{SmallVec, smallvec};

use super::program::Binary;
use super::steps::{Action, Along, Arg, Pass, PassStep};

/// The most ops of a factor.
const OPS: usize = 3;

/// A value as `((x - 0) * 1) * 2`, where 0 to 2 are operands that have fewer elements than the
/// value. An operand that is missing changes nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Factor {
    pub(super) x: usize,
    pub(super) operands: [Option<Arg>; OPS],
    /// The axes of a row that the operands need; all axes of the value if they need none.
    pub(super) row: u64,
}

/// For each value the step that makes it.
pub(super) struct Definitions(Vec<Option<PassStep>>);

impl Definitions {
    pub(super) fn of(passes: &[Pass], values: usize) -> Self {
        let mut definitions = vec![None; values];
        for step in passes.iter().flat_map(|pass| &pass.steps) {
            if let Some(definition) = definitions.get_mut(step.out) {
                *definition = Some(step.clone());
            }
        }
        Self(definitions)
    }

    /// Returns the op that makes a value along the axes `set`, its operands and the axes of its
    /// rows, if a loop may compute the value itself.
    pub(super) fn op(&self, value: usize, set: u64) -> Option<(Binary, [Arg; 2], u64)> {
        let step = self.0.get(value)?.as_ref()?;
        let may_be_left_out = step.set == set && !step.is_tile_invariant && step.stored.is_none();
        match (step.action, step.args.as_slice()) {
            (Action::Binary(op), &[a, b]) if may_be_left_out => Some((op, [a, b], step.row)),
            _ => None,
        }
    }

    /// Returns a value along the axes `set` as a factor.
    pub(super) fn factor(&self, value: usize, set: u64) -> Factor {
        self.factor_of(value, set, OPS)
    }

    /// Returns a value as a factor of at most `most` ops.
    fn factor_of(&self, value: usize, set: u64, most: usize) -> Factor {
        let whole = Factor { x: value, operands: [None; OPS], row: set };
        let Some((op, [a, b], row)) = self.op(value, set).filter(|_| most > 0) else {
            return whole;
        };
        let (of, operand) = match (a.along, b.along) {
            (Along::Full, Along::Full) => return whole,
            (Along::Full, _) => (a, b),
            (_, Along::Full) if op == Binary::Multiply => (b, a),
            _ => return whole,
        };
        let inner = self.factor_of(of.value, set, most - 1);
        let place = match op {
            Binary::Subtract if inner.operands == [None; OPS] => 0,
            Binary::Multiply if inner.operands[1].is_none() => 1,
            Binary::Multiply if inner.operands[2].is_none() => 2,
            _ => return whole,
        };
        let Some(row) = joined(set, inner.row, row) else { return whole };
        let mut operands = inner.operands;
        operands[place] = Some(operand);
        Factor { x: inner.x, operands, row }
    }

    /// Checks whether two values, perhaps of different passes, are computed in the same way.
    pub(super) fn are_same(&self, a: usize, b: usize) -> bool {
        if a == b {
            return true;
        }
        let of = |value: usize| self.0.get(value).and_then(Option::as_ref);
        let (Some(a), Some(b)) = (of(a), of(b)) else { return false };
        let are_read = matches!(
            (a.action, b.action),
            (Action::Input(a), Action::Input(b)) if a == b
        );
        let is_op = matches!(a.action, Action::Binary(_) | Action::Unary(_) | Action::Constant(_));
        let pairs = || a.args.iter().zip(&b.args);
        a.set == b.set
            && (are_read
                || a.action == b.action
                    && (is_op || matches!(a.action, Action::Reduced { .. }))
                    && a.args.len() == b.args.len()
                    && pairs().all(|(a, b)| a.along == b.along && self.are_same(a.value, b.value)))
    }

    /// Returns the last operand that `longer` multiplies by, if it is `factor` apart from that, and
    /// `Some(None)` if both are the same.
    pub(super) fn times(&self, longer: &Factor, factor: &Factor) -> Option<Option<Arg>> {
        if !self.are_same(longer.x, factor.x) {
            return None;
        }
        let same = |a: Option<Arg>, b: Option<Arg>| match (a, b) {
            (Some(a), Some(b)) => a.along == b.along && self.are_same(a.value, b.value),
            (None, None) => true,
            _ => false,
        };
        let last = longer.operands.iter().rposition(Option::is_some);
        let are_alike = |without: Option<usize>| {
            (0..OPS).all(|n| {
                let own = longer.operands[n].filter(|_| Some(n) != without);
                same(own, factor.operands[n])
            })
        };
        match last {
            _ if are_alike(None) => Some(None),
            Some(last @ 1..) if are_alike(Some(last)) => Some(longer.operands[last]),
            _ => None,
        }
    }
}

/// Returns the axes of a row that suit the operands of two values along the axes `set`, if there
/// are such.
pub(super) fn joined(set: u64, row: u64, other: u64) -> Option<u64> {
    match (row == set, other == set) {
        (true, _) => Some(other),
        (_, true) => Some(row),
        _ => (row == other).then_some(row),
    }
}

/// The arguments of a step that is made.
pub(super) struct Args(SmallVec<[Arg; 3]>);

impl Args {
    /// Begins with an argument that has an element for each element of the value.
    pub(super) fn new(first: usize) -> Self {
        Self(smallvec![Arg { value: first, along: Along::Full }])
    }

    /// Adds an argument unless it is there, and returns its index; 0 if it is missing.
    pub(super) fn number(&mut self, arg: Option<Arg>) -> Option<u8> {
        let Some(arg) = arg else { return Some(0) };
        let known = self.0.iter().skip(1).position(|&other| other == arg);
        let number = known.map_or(self.0.len(), |place| place + 1);
        if known.is_none() {
            self.0.push(arg);
        }
        u8::try_from(number).ok()
    }

    pub(super) fn into_all(self) -> SmallVec<[Arg; 3]> {
        self.0
    }
}

/// Changes the number of uses of each argument of a step.
pub(super) fn count_uses(uses: &mut [usize], step: &PassStep, change: impl Fn(usize) -> usize) {
    for arg in &step.args {
        if let Some(uses) = uses.get_mut(arg.value) {
            *uses = change(*uses);
        }
    }
}
