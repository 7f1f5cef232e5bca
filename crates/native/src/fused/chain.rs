//! Chains of elementwise ops, such as the last part of a norm, as one loop: each op alone would load
//! and store its tile.

use std::collections::BTreeMap;

use smallvec::{SmallVec, smallvec};

use super::program::Binary;
use super::real::Real;
use super::steps::{Action, Along, Arg, Pass, Step};
use super::tile::Operand;
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

    /// The operands. Those that are missing change nothing.
    pub(super) fn operands<'a, R: Real>(
        self,
        arg: impl Fn(usize) -> Operand<'a, R>,
        missing: &'a [R; OPERANDS],
    ) -> [Operand<'a, R>; OPERANDS] {
        let mut operands = missing.each_ref().map(Operand::one);
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
        if let Some(uses) = uses.get_mut(arg.value) {
            *uses += 1;
        }
    }
    for pass in passes {
        // The steps that are left, and for each value the one that makes it.
        let mut left: Vec<Option<Step>> = Vec::with_capacity(pass.steps.len());
        let mut maker: BTreeMap<usize, usize> = BTreeMap::new();
        for mut step in pass.steps.drain(..) {
            let before = step.args.iter().filter(|arg| uses.get(arg.value) == Some(&1));
            let mut before = before.filter_map(|arg| maker.get(&arg.value).copied());
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
    let row = match (before.row == before.set, step.row == step.set) {
        (true, _) => step.row,
        (_, true) => before.row,
        _ if before.row == step.row => step.row,
        _ => return None,
    };
    let (mut chain, mut args) = chain_of(before)?;
    let Action::Binary(op) = step.action else { return None };
    let operand = other(step, before.out)?;
    let slot = chain.next(op)?;
    chain.0[slot] = u8::try_from(args.len()).ok()?;
    args.push(operand);
    Some(Step { action: Action::Chain(chain), args, row, ..step.clone() })
}

/// A step as a chain: the chain and its arguments.
fn chain_of(step: &Step) -> Option<(Chain, SmallVec<[Arg; 3]>)> {
    let op = match step.action {
        Action::Chain(chain) => return Some((chain, step.args.clone())),
        Action::Binary(op) => op,
        _ => return None,
    };
    let &[a, b] = step.args.as_slice() else { return None };
    let mut chain = Chain::default();
    chain.0[chain.next(op)?] = 1;
    if a.along == Along::All {
        Some((chain, smallvec![a, b]))
    } else if b.along == Along::All && op != Binary::Subtract {
        Some((chain, smallvec![b, a]))
    } else {
        None
    }
}

/// The operand of an op beside a value that has an element for each of the op.
fn other(step: &Step, value: usize) -> Option<Arg> {
    let &[a, b] = step.args.as_slice() else { return None };
    let is_value = |arg: Arg| arg.value == value && arg.along == Along::All;
    match step.action {
        Action::Binary(_) if is_value(a) && b.value != value => Some(b),
        Action::Binary(Binary::Multiply | Binary::Add) if is_value(b) && a.value != value => {
            Some(a)
        }
        _ => None,
    }
}

/// A chain for each element of a tile.
pub(super) struct RunChain<'a, R> {
    pub(super) x: &'a [R],
    pub(super) operands: [Operand<'a, R>; OPERANDS],
    /// The elements of a row.
    pub(super) row: usize,
    pub(super) out: &'a mut [R],
}

impl<R: Real> Task for RunChain<'_, R> {
    #[inline(always)]
    fn run(self) {
        let tiles =
            self.operands.iter().enumerate().fold(0u8, |tiles, (number, operand)| {
                tiles | u8::from(operand.has_rows()) << number
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
    /// Computes all elements; the bits of `TILES` are those of the operands that have several
    /// elements in a row.
    #[inline(always)]
    fn each<const TILES: u8>(self) {
        let Self { x, operands, row, out } = self;
        let [a, b, c, d, e] = operands;
        let part = |number: usize| if TILES >> number & 1 == 1 { row } else { 1 };
        for number in 0..out.len() / row {
            let range = number * row..(number + 1) * row;
            let (x, out) = (&x[range.clone()], &mut out[range]);
            let (a, b) = (a.part(number, part(0)), b.part(number, part(1)));
            let (c, d) = (c.part(number, part(2)), d.part(number, part(3)));
            let e = e.part(number, part(4));
            let ones = [a[0], b[0], c[0], d[0], e[0]];
            for i in 0..row {
                let at = |number: usize, operand: &[R]| {
                    if TILES >> number & 1 == 1 { operand[i] } else { ones[number] }
                };
                out[i] = ((x[i] - at(0, a)) - at(1, b)) * at(2, c) * at(3, d) + at(4, e);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{OPERANDS, Operand, RunChain, missing};
    use crate::fused::steps::Along;
    use crate::level::Task;

    /// The elements of a row.
    const ROW: usize = 3;

    /// Chains with any of their operands, repeated or not, give the bits of one op after the other.
    #[test]
    fn what_is_missing_changes_nothing() {
        let x = [-0.0f32, 0.0, 1.5, -2.25, f32::INFINITY, 1e-41, f32::NAN, 3.4e38, -1.0];
        let data: [Vec<f32>; OPERANDS] = [0.5, -3.0, 0.1, -7.0, 1e-3]
            .map(|by: f32| (0..x.len()).map(|n| by * n as f32).collect());
        let kinds = [[Along::One, Along::All], [Along::Rows, Along::Row]];
        let cases = (0..32u8).flat_map(|present| (0..32u8).map(move |tiles| (present, tiles)));
        for ((present, tiles), [narrow, wide]) in
            cases.flat_map(|case| kinds.map(|kinds| (case, kinds)))
        {
            let along = |number: usize| if tiles >> number & 1 == 1 { wide } else { narrow };
            let is_present = |number: usize| present >> number & 1 == 1;
            let nothing = missing::<f32>();
            let mut operands = nothing.each_ref().map(Operand::one);
            for (number, operand) in operands.iter_mut().enumerate() {
                if is_present(number) {
                    *operand = Operand::new(&data[number], along(number), ROW);
                }
            }
            let mut out = [0.0; 9];
            RunChain { x: &x, operands, row: ROW, out: &mut out }.run();
            for (n, (&x, &y)) in x.iter().zip(&out).enumerate() {
                let mut expected = x;
                for number in (0..OPERANDS).filter(|&number| is_present(number)) {
                    let at = match along(number) {
                        Along::All => n,
                        Along::Row => n % ROW,
                        Along::Rows => n / ROW,
                        Along::One => 0,
                    };
                    let other = data[number][at];
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
