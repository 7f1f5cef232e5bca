//! Chains of elementwise ops, such as the last part of a norm, as one loop: each op alone would load
//! and store its tile.

use std::collections::BTreeMap;

use smallvec::{SmallVec, smallvec};

use super::program::Binary;
use super::real::Real;
use super::room::LINE;
use super::steps::{Action, Along, Arg, Pass, Step};
use super::tile::Operand;
use crate::level::Level;
use crate::vectors::{self, Ahead, CHAINED};

/// Which of its arguments each operand of a chain, see [`vectors::Chain`], is; 0 if the chain lacks it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Chain([u8; CHAINED]);

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
        missing: &'a [R; CHAINED],
    ) -> [Operand<'a, R>; CHAINED] {
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
pub(super) fn missing<R: Real>() -> [R; CHAINED] {
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
        for step in &mut pass.steps {
            // `uses` counts the step that stores the value.
            step.is_only_stored = step.stored.is_some() && uses.get(step.out) == Some(&1);
        }
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
    pub(super) operands: [Operand<'a, R>; CHAINED],
    /// The elements of a row.
    pub(super) row: usize,
    pub(super) out: &'a mut [R],
}

/// Computes a chain. Vectors write its results past the caches if `is_past`, and fetch what lies ahead.
pub(super) fn run<R: Real>(
    level: Level,
    chain: RunChain<'_, R>,
    (is_past, ahead): (bool, [Ahead; 2]),
) {
    let RunChain { x, operands, row, out } = &chain;
    let rows = out.len() / row;
    let has_all = x.len() >= out.len() && operands.iter().all(|one| one.has_all(rows, *row));
    let fills_vector = *row * size_of::<R>() >= LINE;
    let vectors = vectors::chains_of::<R>(level).filter(|_| has_all && fills_vector);
    let Some(vectors) = vectors else { return chain.run() };
    let has_rows = |set: u8, (number, operand): (usize, &Operand<'_, R>)| {
        set | u8::from(operand.has_rows()) << number
    };
    let chain = vectors::Chain {
        x: x.as_ptr(),
        operands: operands.each_ref().map(Operand::place),
        has_rows: operands.iter().enumerate().fold(0, has_rows),
        rows,
        len: *row,
        past: is_past && fills_lines(chain.out, *row),
        ahead,
        out: chain.out.as_mut_ptr(),
    };
    // SAFETY: the level, which was detected, has this function. All elements are there, and nobody else
    // has those of `out`.
    unsafe { vectors(&chain) };
}

/// Checks whether rows fill most lines of a cache that they lie in.
fn fills_lines<R>(out: &[R], row: usize) -> bool {
    /// The bytes of rows that need not begin at lines.
    const LONG: usize = 1024;
    let bytes = row * size_of::<R>();
    bytes >= LONG || bytes.is_multiple_of(LINE) && out.as_ptr().align_offset(LINE) == 0
}

impl<R: Real> RunChain<'_, R> {
    /// Computes all elements without vectors.
    fn run(self) {
        let Self { x, operands, row, out } = self;
        for (number, (x, out)) in x.chunks_exact(row).zip(out.chunks_exact_mut(row)).enumerate() {
            for (i, (x, out)) in x.iter().zip(out).enumerate() {
                let [a, b, c, d, e] = operands.each_ref().map(|one| one.at(number, i));
                *out = ((*x - a) - b) * c * d + e;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CHAINED, Operand, RunChain, missing, run};
    use crate::fused::steps::Along;
    use crate::level::Level;
    use crate::vectors::Ahead;

    /// Chains with any of their operands, repeated or not, give the bits of one op after the other, past
    /// the caches or not; also where rows begin between two lines of a cache. Miri knows no stores past
    /// the caches.
    #[test]
    fn what_is_missing_changes_nothing() {
        let special = [-0.0f32, 0.0, 1.5, -2.25, f32::INFINITY, 1e-41, f32::NAN, 3.4e38, -1.0];
        let kinds = [[Along::One, Along::All], [Along::Rows, Along::Row]];
        let few = if cfg!(miri) { 331 } else { 1 };
        let cases = (0..32u8).flat_map(|present| (0..32u8).map(move |rows| (present, rows)));
        for ((present, rows), [narrow, wide]) in
            cases.step_by(few).flat_map(|case| kinds.map(|kinds| (case, kinds)))
        {
            for (&level, len, is_past) in Level::all()
                .iter()
                .flat_map(|level| [3, 16, 37, 272].map(|len| (level, len)))
                .flat_map(|(level, len)| [(level, len, false), (level, len, !cfg!(miri))])
            {
                let x: Vec<f32> = special.into_iter().cycle().take(3 * len).collect();
                let data: [Vec<f32>; CHAINED] = [0.5, -3.0, 0.1, -7.0, 1e-3]
                    .map(|by: f32| (0..x.len()).map(|n| by * n as f32).collect());
                let along = |number: usize| if rows >> number & 1 == 1 { wide } else { narrow };
                let is_present = |number: usize| present >> number & 1 == 1;
                let nothing = missing::<f32>();
                let mut operands = nothing.each_ref().map(Operand::one);
                for (number, operand) in operands.iter_mut().enumerate() {
                    if is_present(number) {
                        *operand = Operand::new(&data[number], along(number), len);
                    }
                }
                let mut out = vec![0.0; x.len()];
                let chain = RunChain { x: &x, operands, row: len, out: &mut out };
                run(level, chain, (is_past, [Ahead::NONE; 2]));
                for (n, (&x, &y)) in x.iter().zip(&out).enumerate() {
                    let mut expected = x;
                    for number in (0..CHAINED).filter(|&number| is_present(number)) {
                        let at = match along(number) {
                            Along::All => n,
                            Along::Row => n % len,
                            Along::Rows => n / len,
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
                    assert!(same, "{x} becomes {y}, not {expected}: {present:b}, {rows:b}, {len}");
                }
            }
        }
    }
}
