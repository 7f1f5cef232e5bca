//! Chains of elementwise ops, such as the last part of a norm, as one loop: each op alone would
//! load and store its tile. `plan.rs` makes chains, and `compute.rs` runs them.

use std::collections::BTreeMap;

use smallvec::{SmallVec, smallvec};

use super::aligned_buffer::LINE;
use super::program::{Binary, Unary};
use super::real::{Real, fused_in_f64};
use super::steps::{Action, Along, Arg, Pass, PassStep, uses_of};
use super::tile::TileOperand;
use crate::level::Level;
use crate::vectors::{self, CHAINED, Form, Negated, Prefetch};

/// A chain of elementwise ops.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct FusedChain {
    pub(super) form: Form,
    /// For each operand of the form the index of its argument; 0 if the chain does not have the
    /// operand.
    pub(super) operands: [u8; CHAINED],
    pub(super) negated: Negated,
}

impl FusedChain {
    /// Returns the chain with one more op at the end, whose operand is argument `number`, if the
    /// form has a place for it.
    fn with(mut self, op: Binary, number: usize) -> Option<Self> {
        let free = self.free();
        let place = match (self.form, op) {
            (Form::Product | Form::Quotient, Binary::Subtract) if free <= 1 => free,
            (Form::Product | Form::Quotient, Binary::Multiply) if free <= 3 => free.max(2),
            (Form::Product, Binary::Divide) if free <= 2 => {
                self.form = Form::Quotient;
                2
            }
            (Form::Product | Form::Quotient, Binary::Add) if free <= 4 => 4,
            _ => return None,
        };
        self.operands[place] = u8::try_from(number).ok()?;
        Some(self)
    }

    /// Returns the chain with the exponential at the end, if there is such a form.
    fn exponential(self) -> Option<Self> {
        let can = self.form == Form::Product && self.free() <= 1;
        can.then_some(Self { form: Form::Exponential, ..self })
    }

    /// Returns the place after the last operand that the chain has.
    fn free(self) -> usize {
        self.operands.iter().rposition(|&arg| arg != 0).map_or(0, |last| last + 1)
    }

    /// The places of the operands that the chain has, each with the index of its argument.
    fn present(&self) -> impl Iterator<Item = (usize, usize)> {
        let numbers = self.operands.iter().enumerate();
        numbers.filter(|(_, number)| **number != 0).map(|(place, &number)| (place, number.into()))
    }
}

/// Returns operands that leave each number as it is: 0 is subtracted, 1 multiplies or divides, and
/// -0.0 is added, since a negative zero plus 0.0 would be 0.0.
fn missing<R: Real>(form: Form) -> &'static [R; CHAINED] {
    if form == Form::Terms { R::NO_TERMS } else { R::NO_OPS }
}

/// Makes chains of the steps of passes, which have this many values.
pub(super) fn make(passes: &mut [Pass], values: usize) {
    let uses = uses_of(passes, values);
    for pass in passes {
        // The steps that are left, and for each value the index of the step that makes it.
        let mut left: Vec<Option<PassStep>> = Vec::with_capacity(pass.steps.len());
        let mut maker: BTreeMap<usize, usize> = BTreeMap::new();
        for mut step in pass.steps.drain(..) {
            let before = step.args.iter().filter(|arg| uses.get(arg.value) == Some(&1));
            let mut before = before.filter_map(|arg| maker.get(&arg.value).copied());
            let longer = before.find_map(|at| Some((at, lengthened(left[at].as_ref()?, &step)?)));
            if let Some((at, chain)) = longer {
                left[at] = None;
                step = chain;
            } else if let Some(chain) = alone(&step) {
                step = chain;
            }
            maker.insert(step.out, left.len());
            left.push(Some(step));
        }
        pass.steps = left.into_iter().flatten().collect();
        for step in &mut pass.steps {
            // The step that stores the value counts as a use.
            step.is_only_stored = step.stored.is_some() && uses.get(step.out) == Some(&1);
        }
    }
}

/// Returns the chain of `before` with the op of `step` at its end. Only `step` may use the value of
/// `before`.
fn lengthened(before: &PassStep, step: &PassStep) -> Option<PassStep> {
    if before.set != step.set
        || before.stored.is_some()
        || before.is_tile_invariant
        || step.is_tile_invariant
    {
        return None;
    }
    let row = match (before.row == before.set, step.row == step.set) {
        (true, _) => step.row,
        (_, true) => before.row,
        _ if before.row == step.row => step.row,
        _ => return None,
    };
    let (chain, mut args) = chain_of(before)?;
    let chain = match step.action {
        Action::Unary(Unary::Exp) => chain.exponential()?,
        Action::Binary(op) => {
            let number = args.len();
            args.push(other(step, before.out)?);
            chain.with(op, number)?
        }
        _ => return None,
    };
    Some(PassStep { action: Action::Chain(chain), args, row, ..step.clone() })
}

/// Returns a step as a chain of one op, if that is faster: SIMD loops compute the op better, or the
/// value may be stored past the caches.
fn alone(step: &PassStep) -> Option<PassStep> {
    let (chain, args) = chain_of(step).filter(|_| !step.is_tile_invariant)?;
    let gains = chain.form != Form::Product || step.stored.is_some();
    gains.then(|| PassStep { action: Action::Chain(chain), args, ..step.clone() })
}

/// Returns a step as a chain, with the arguments.
fn chain_of(step: &PassStep) -> Option<(FusedChain, SmallVec<[Arg; 3]>)> {
    let op = match step.action {
        Action::Chain(chain) => return Some((chain, step.args.clone())),
        Action::Unary(Unary::Exp) => {
            return Some((FusedChain::default().exponential()?, step.args.clone()));
        }
        Action::Binary(op) => op,
        _ => return None,
    };
    let &[a, b] = step.args.as_slice() else { return None };
    let chain = FusedChain::default().with(op, 1)?;
    if a.along == Along::Full {
        Some((chain, smallvec![a, b]))
    } else if b.along == Along::Full && !matches!(op, Binary::Subtract | Binary::Divide) {
        Some((chain, smallvec![b, a]))
    } else {
        None
    }
}

/// Returns the other operand of an op that has `value` as an operand, with an element for each.
fn other(step: &PassStep, value: usize) -> Option<Arg> {
    let &[a, b] = step.args.as_slice() else { return None };
    let is_value = |arg: Arg| arg.value == value && arg.along == Along::Full;
    match step.action {
        Action::Binary(_) if is_value(a) && b.value != value => Some(b),
        Action::Binary(Binary::Multiply | Binary::Add) if is_value(b) && a.value != value => {
            Some(a)
        }
        _ => None,
    }
}

/// The elements that a chain begins with, and those that it writes.
pub(super) struct Elements<'a, R> {
    pub(super) x: &'a [R],
    /// The number of elements of a row.
    pub(super) row: usize,
    pub(super) out: &'a mut [R],
}

/// Computes a chain; `operand` returns the operand that is the argument of an index. The SIMD loops
/// store the results past the caches if `is_non_temporal`, and prefetch the memory of `prefetch`.
#[inline]
pub(super) fn run<'a, R: Real>(
    level: Level,
    chain: &FusedChain,
    Elements { x, row, out }: Elements<'_, R>,
    operand: impl Fn(usize) -> TileOperand<'a, R>,
    (is_non_temporal, prefetch): (bool, [Prefetch; 2]),
) {
    let rows = out.len() / row;
    let mut places = missing(chain.form).each_ref().map(|one| (std::ptr::from_ref(one), 0));
    let (mut per_element, mut has_all) = (0, x.len() >= out.len());
    for (place, number) in chain.present() {
        let operand = operand(number);
        has_all &= operand.has_all(rows, row);
        per_element |= u16::from(operand.per_element()) << place;
        places[place] = operand.place();
    }
    let fills_vector = row * size_of::<R>() >= LINE;
    let of_form = level.zip(vectors::chains_of::<R>(chain.form));
    let Some((vectors, compute)) = of_form.filter(|_| has_all && fills_vector) else {
        return one_by_one(chain, Elements { x, row, out }, operand);
    };
    let chain = vectors::Chain {
        form: chain.form,
        negated: chain.negated,
        x: x.as_ptr(),
        operands: places,
        per_element,
        rows,
        len: row,
        non_temporal: is_non_temporal && fills_lines(out, row),
        prefetch,
        out: out.as_mut_ptr(),
    };
    // SAFETY: each row fills a vector. `has_all` says that `x` has `rows * row` elements and each operand has all that these rows
    // read; an operand that is missing has one element for all. `out` is borrowed mutably.
    unsafe { compute(vectors, &chain) };
}

/// Checks whether rows fill most of the cache lines that they lie in, so that they can be stored
/// past the caches.
fn fills_lines<R>(out: &[R], row: usize) -> bool {
    /// Rows of at least this many bytes need not begin at cache lines.
    const LONG: usize = 1024;
    let bytes = row * size_of::<R>();
    bytes >= LONG || bytes.is_multiple_of(LINE) && out.as_ptr().align_offset(LINE) == 0
}

/// Computes a chain element by element, without SIMD.
#[cold]
fn one_by_one<'a, R: Real>(
    chain: &FusedChain,
    Elements { x, row, out }: Elements<'_, R>,
    operand: impl Fn(usize) -> TileOperand<'a, R>,
) {
    let mut operands = missing(chain.form).each_ref().map(TileOperand::one);
    for (place, number) in chain.present() {
        operands[place] = operand(number);
    }
    for (number, (x, out)) in x.chunks_exact(row).zip(out.chunks_exact_mut(row)).enumerate() {
        for (i, (x, out)) in x.iter().zip(out).enumerate() {
            let operand = |n: usize| operands[n].at(number, i);
            let signed = |x: R, n: usize| if chain.negated[n] { -x } else { x };
            let apart = *x - operand(0);
            *out = match chain.form {
                Form::Product => (apart - operand(1)) * operand(2) * operand(3) + operand(4),
                Form::Quotient => (apart - operand(1)) / operand(2) * operand(3) + operand(4),
                Form::Exponential => apart.exp(fused_in_f64),
                Form::Terms => {
                    let second = (operand(3) - operand(4)) * operand(5) * operand(6);
                    let sum = apart * operand(1) * operand(2) + signed(operand(7), 0);
                    (sum + signed(second, 1) + signed(operand(8), 2)) * operand(9)
                }
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CHAINED, Elements, Form, FusedChain, Negated, Real, TileOperand, run};
    use crate::fused::steps::Along;
    use crate::level::all;
    use crate::vectors::Prefetch;

    /// Computes the ops of a chain on an element, one after the other.
    fn expected(
        (form, negated): (Form, Negated),
        x: f32,
        operand: impl Fn(usize) -> Option<f32>,
    ) -> f32 {
        if form == Form::Terms {
            let factor = |x: f32, from: usize| {
                let x = operand(from).map_or(x, |other| x - other);
                let x = operand(from + 1).map_or(x, |other| x * other);
                operand(from + 2).map_or(x, |other| x * other)
            };
            let second = operand(3).map(|y| factor(y, 4));
            let terms = [operand(7), second, operand(8)].into_iter().zip(negated);
            let sum = terms.fold(factor(x, 0), |sum, (term, is_negated)| match term {
                Some(term) if is_negated => sum - term,
                Some(term) => sum + term,
                None => sum,
            });
            return operand(9).map_or(sum, |times| sum * times);
        }
        let ops = (0..5).filter_map(|number| Some((number, operand(number)?)));
        let x = ops.fold(x, |x, (number, other)| match (number, form) {
            (0 | 1, _) => x - other,
            (2, Form::Quotient) => x / other,
            (2 | 3, _) => x * other,
            _ => x + other,
        });
        if form == Form::Exponential { Real::exp(x, f32::mul_add) } else { x }
    }

    /// Checks chains of a form that have the operands for which `present` has bits. The operands
    /// for which `rows` has bits have an element for each element of a row; others have one for
    /// each row, or one for all.
    fn check(form: Form, negated: Negated, present: u16, rows: u16) {
        let lens: &[usize] = if cfg!(miri) { &[3, 32, 37] } else { &[3, 16, 37, 272] };
        let special = [-0.0f32, 0.0, 1.5, -2.25, f32::INFINITY, 1e-41, f32::NAN, 3.4e38, -1.0];
        for [narrow, wide] in [[Along::Scalar, Along::Full], [Along::PerRow, Along::PerColumn]] {
            let along = |number: usize| if rows >> number & 1 == 1 { wide } else { narrow };
            let is_present = |number: usize| present >> number & 1 == 1;
            for (&level, len, is_non_temporal) in all()
                .iter()
                .flat_map(|level| lens.iter().map(move |&len| (level, len)))
                .flat_map(|(level, len)| [(level, len, false), (level, len, !cfg!(miri))])
            {
                let x: Vec<f32> = special.into_iter().cycle().take(3 * len).collect();
                let data: [Vec<f32>; CHAINED] =
                    [0.5, -3.0, 0.1, -7.0, 1e-3, 2.0, -0.25, 11.0, -0.7, 3.0]
                        .map(|by: f32| (0..x.len()).map(|n| by * n as f32).collect());
                let mut out = vec![0.0; x.len()];
                let number = |place: usize| if is_present(place) { place as u8 + 1 } else { 0 };
                let chain = FusedChain { form, negated, operands: std::array::from_fn(number) };
                let operand = |n: usize| TileOperand::new(&data[n - 1][..], along(n - 1), len);
                let elements = Elements { x: &x, row: len, out: &mut out };
                run(level, &chain, elements, operand, (is_non_temporal, [Prefetch::NONE; 2]));
                for (n, (&x, &y)) in x.iter().zip(&out).enumerate() {
                    let at = |number: usize| match along(number) {
                        Along::Full => n,
                        Along::PerColumn => n % len,
                        Along::PerRow => n / len,
                        Along::Scalar => 0,
                    };
                    let other =
                        |number: usize| is_present(number).then(|| data[number][at(number)]);
                    let wanted = expected((form, negated), x, other);
                    let same = y.to_bits() == wanted.to_bits() || y.is_nan() && wanted.is_nan();
                    assert!(same, "{x} becomes {y}, not {wanted}: {form:?}, {present:b}, {rows:b}");
                }
            }
        }
    }

    /// Chains with any of their operands, repeated or not, give the bits of one op after the other,
    /// stored past the caches or not, also where rows begin within a cache line. Miri knows no
    /// stores past the caches.
    #[test]
    fn what_is_missing_changes_nothing() {
        let few = if cfg!(miri) { 401 } else { 1 };
        let cases = (0..32u16).flat_map(|present| (0..32u16).map(move |rows| (present, rows)));
        for (present, rows) in cases.step_by(few) {
            let forms = [Form::Product, Form::Quotient, Form::Exponential];
            for form in forms.into_iter().take(if present <= 1 { 3 } else { 2 }) {
                check(form, Negated::default(), present, rows);
            }
        }
    }

    /// Sums of two products give the bits of one op after the other, too.
    #[test]
    fn terms_that_are_missing_change_nothing() {
        let few = if cfg!(miri) { 401 } else { 1 };
        // A sum always has its second product, which begins with operand 3.
        for present in (0..1u16 << CHAINED).step_by(few).map(|present| present | 1 << 3) {
            let has = |number: usize| present >> number & 1 == 1;
            let odd = |n: usize| present.count_ones() >> n & 1 == 1;
            let negated = [has(7) && odd(0), odd(1), has(8) && odd(0)];
            for rows in [0, 1 << 3, 1 << 3 | 1 << 1, present.rotate_left(3), u16::MAX] {
                check(Form::Terms, negated, present, rows);
            }
        }
    }

    /// The exponential of SIMD loops has the bits of the scalar one.
    #[test]
    fn exponentials_are_alike() {
        let count = if cfg!(miri) { 64 } else { 1 << 16 };
        let x: Vec<f32> =
            (0..count).map(|n: u32| f32::from_bits(n.wrapping_mul(u32::MAX / count))).collect();
        for level in all() {
            let mut out = vec![0.0; x.len()];
            let chain = FusedChain { form: Form::Exponential, ..FusedChain::default() };
            let elements = Elements { x: &x, row: x.len(), out: &mut out };
            let operand = |_| TileOperand::one(&0.0);
            run(level, &chain, elements, operand, (false, [Prefetch::NONE; 2]));
            for (&x, &y) in x.iter().zip(&out) {
                let wanted = Real::exp(x, f32::mul_add);
                let same = y.to_bits() == wanted.to_bits() || y.is_nan() && wanted.is_nan();
                assert!(same, "exp({x}) is {y}, not {wanted}");
            }
        }
    }
}
