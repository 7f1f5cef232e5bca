//! Chains of elementwise ops, such as the last part of a norm, as one loop: each op alone would load
//! and store its tile.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use super::plan::{Action, Pass, Step};
use super::program::Binary;
use super::real::Real;
use crate::level::Task;

/// The operands of a chain besides the first: `((((x - 0) - 1) * 2) * 3) + 4`, by their numbers.
const OPERANDS: usize = 5;

/// Which of its arguments each operand of a chain is; 0 if the chain lacks it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Chain([u8; OPERANDS]);

impl Chain {
    /// The number of the operand that an op adds to the end.
    fn next(self, op: Binary) -> Option<usize> {
        let free = self.0.iter().rposition(|&arg| arg != 0).map_or(0, |last| last + 1);
        match op {
            Binary::Subtract if free <= 1 => Some(free),
            Binary::Multiply if free <= 3 => Some(free.max(2)),
            Binary::Add if free <= 4 => Some(4),
            _ => None,
        }
    }

    /// The operands, each a tile or one element for all. Those that are missing change nothing.
    pub(super) fn operands<'a, R: Real>(
        self,
        arg: impl Fn(usize) -> &'a [R],
        missing: &'a [R; OPERANDS],
    ) -> [&'a [R]; OPERANDS] {
        let mut operands = missing.each_ref().map(std::slice::from_ref);
        for (operand, &number) in operands.iter_mut().zip(&self.0) {
            if number != 0 {
                *operand = arg(usize::from(number));
            }
        }
        operands
    }
}

/// Operands that change no number: two are subtracted, two multiply, one is added. A negative zero
/// stays one only if a negative zero is added.
pub(super) fn missing<R: Real>() -> [R; OPERANDS] {
    [R::ZERO, R::ZERO, R::ONE, R::ONE, -R::ZERO]
}

/// Makes chains of the steps of passes, which have this many values.
pub(super) fn make(passes: &mut [Pass], values: usize) {
    let mut uses = vec![0usize; values];
    for arg in passes.iter().flat_map(|pass| &pass.steps).flat_map(|step| &step.args) {
        if let Some(uses) = uses.get_mut(*arg) {
            *uses += 1;
        }
    }
    for pass in passes {
        // The steps that are left, and for each value the one that makes it.
        let mut left: Vec<Option<Step>> = Vec::with_capacity(pass.steps.len());
        let mut maker: BTreeMap<usize, usize> = BTreeMap::new();
        for mut step in pass.steps.drain(..) {
            let before = step.args.iter().filter(|&&arg| uses.get(arg) == Some(&1));
            let mut before = before.filter_map(|arg| maker.get(arg).copied());
            let longer = before.find_map(|at| Some((at, lengthened(left[at].as_ref()?, &step)?)));
            if let Some((at, chain)) = longer {
                left[at] = None;
                step = chain;
            }
            maker.insert(step.out, left.len());
            left.push(Some(step));
        }
        pass.steps = left.into_iter().flatten().collect();
    }
}

/// Returns a chain with one more op at the end, which alone uses the value of the step before.
fn lengthened(before: &Step, step: &Step) -> Option<Step> {
    if before.set != step.set || before.stored.is_some() || before.is_kept || step.is_kept {
        return None;
    }
    let (mut chain, mut args, mut ones) = chain_of(before)?;
    let Action::Binary(op) = step.action else { return None };
    let (operand, is_one) = other(step, before.out)?;
    let slot = chain.next(op)?;
    chain.0[slot] = u8::try_from(args.len()).ok()?;
    ones |= u8::from(is_one) << args.len();
    args.push(operand);
    Some(Step { action: Action::Chain(chain), args, ones, ..step.clone() })
}

/// A step as a chain.
fn chain_of(step: &Step) -> Option<(Chain, SmallVec<[usize; 3]>, u8)> {
    let op = match step.action {
        Action::Chain(chain) => return Some((chain, step.args.clone(), step.ones)),
        Action::Binary(op) => op,
        _ => return None,
    };
    let &[a, b] = step.args.as_slice() else { return None };
    let mut chain = Chain::default();
    chain.0[chain.next(op)?] = 1;
    match step.ones {
        0 | 2 => Some((chain, SmallVec::from_slice(&[a, b]), step.ones)),
        1 if op != Binary::Subtract => Some((chain, SmallVec::from_slice(&[b, a]), 2)),
        _ => None,
    }
}

/// The operand of an op beside a value, and whether it is one element for all.
fn other(step: &Step, value: usize) -> Option<(usize, bool)> {
    match (step.action, step.args.as_slice()) {
        (Action::Binary(_), &[a, b]) if a == value && b != value => Some((b, step.ones & 2 != 0)),
        (Action::Binary(Binary::Multiply | Binary::Add), &[a, b]) if b == value && a != value => {
            Some((a, step.ones & 1 != 0))
        }
        _ => None,
    }
}

/// A chain for each element of a tile.
pub(super) struct RunChain<'a, R> {
    pub(super) x: &'a [R],
    pub(super) operands: [&'a [R]; OPERANDS],
    pub(super) out: &'a mut [R],
}

impl<R: Real> Task for RunChain<'_, R> {
    #[inline(always)]
    fn run(self) {
        let n = self.out.len();
        let tiles = self.operands.iter().enumerate().fold(0u8, |tiles, (number, operand)| {
            tiles | u8::from(operand.len() == n && n > 1) << number
        });
        macro_rules! by_tiles {
            ($($tiles:literal)*) => {
                match tiles {
                    $($tiles => self.each::<$tiles>(),)*
                    _ => self.each::<31>(),
                }
            };
        }
        by_tiles!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30);
    }
}

impl<R: Real> RunChain<'_, R> {
    /// Computes all elements; the bits of `TILES` are those of the operands that are tiles.
    #[inline(always)]
    fn each<const TILES: u8>(self) {
        let n = self.out.len();
        let (x, out) = (&self.x[..n], &mut self.out[..n]);
        let [a, b, c, d, e] = self.operands;
        let part = |number: usize| if TILES >> number & 1 == 1 { n } else { 1 };
        let (a, b, c) = (&a[..part(0)], &b[..part(1)], &c[..part(2)]);
        let (d, e) = (&d[..part(3)], &e[..part(4)]);
        let ones = [a[0], b[0], c[0], d[0], e[0]];
        for i in 0..n {
            let at = |number: usize, operand: &[R]| {
                if TILES >> number & 1 == 1 { operand[i] } else { ones[number] }
            };
            out[i] = ((x[i] - at(0, a)) - at(1, b)) * at(2, c) * at(3, d) + at(4, e);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{OPERANDS, RunChain, missing};
    use crate::level::Task;

    /// Chains with any of their operands give the bits of one op after the other.
    #[test]
    fn what_is_missing_changes_nothing() {
        let x = [-0.0f32, 0.0, 1.5, -2.25, f32::INFINITY, 1e-41, f32::NAN, 3.4e38, -1.0];
        let rows: [Vec<f32>; OPERANDS] = [0.5, -3.0, 0.1, -7.0, 1e-3]
            .map(|by: f32| (0..x.len()).map(|n| by * n as f32).collect());
        for (present, tiles) in (0..32u8).flat_map(|present| (0..32u8).map(move |t| (present, t))) {
            let nothing = missing::<f32>();
            let mut operands = nothing.each_ref().map(std::slice::from_ref);
            for (number, operand) in operands.iter_mut().enumerate() {
                if present >> number & 1 == 1 {
                    let is_tile = tiles >> number & 1 == 1;
                    *operand = if is_tile { &rows[number] } else { &rows[number][1..2] };
                }
            }
            let mut out = [0.0; 9];
            RunChain { x: &x, operands, out: &mut out }.run();
            for (n, (&x, &y)) in x.iter().zip(&out).enumerate() {
                let mut expected = x;
                for (number, operand) in operands.iter().enumerate() {
                    if present >> number & 1 == 0 {
                        continue;
                    }
                    let other = if operand.len() == 1 { operand[0] } else { operand[n] };
                    expected = match number {
                        0 | 1 => expected - other,
                        2 | 3 => expected * other,
                        _ => expected + other,
                    };
                }
                let same = y.to_bits() == expected.to_bits() || y.is_nan() && expected.is_nan();
                assert!(same, "{x} becomes {y}, not {expected}: {present:b}, {tiles:b}");
            }
        }
    }
}
