//! Sums of products of two factors, as one step: the SIMD loops that add up products compute the
//! factors, too, so that no tile of them is stored. The sum of one factor may be computed in the
//! same loop. `plan.rs` makes these steps, and `add_products.rs` runs them.

use super::factors::{Args, Definitions, Factor, count_uses, joined};
use super::plan::TilePlan;
use super::program::{Binary, Reduction};
use super::real::Real;
use super::steps::{Action, Along, Arg, Pass, PassStep};
use super::tile::TileOperand;
use crate::vectors::FACTORED;

/// The number of operands: three of each factor, and the one that multiplies the first factor for
/// its own sum.
pub(super) const OPERANDS: usize = FACTORED;

/// Adds up `x y`, where `x` and `y` are factors, and perhaps `x r`, where `r` is an operand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FusedProducts {
    pub(super) reduction: usize,
    /// The reduction that adds up `x r`, if there is one.
    pub(super) factor_sum: Option<usize>,
    /// The tile must be the first one along these axes: see [`Action::Accumulate`].
    pub(super) first: u64,
    /// The argument that the second factor begins with; the first factor begins with argument 0.
    pub(super) second: u8,
    /// For each operand the index of its argument; 0 if the operand is missing.
    pub(super) operands: [u8; OPERANDS],
}

impl FusedProducts {
    /// Returns the operands, and bits for those that are there; the others are those of `missing`.
    pub(super) fn operands<'a, R: Real>(
        self,
        arg: impl Fn(usize) -> TileOperand<'a, R>,
        missing: &'a [R; OPERANDS],
    ) -> ([TileOperand<'a, R>; OPERANDS], u8) {
        let mut operands = missing.each_ref().map(TileOperand::one);
        let mut present = 0;
        for (n, (operand, &number)) in operands.iter_mut().zip(&self.operands).enumerate() {
            if number != 0 {
                *operand = arg(usize::from(number));
                present |= 1 << n;
            }
        }
        (operands, present)
    }
}

/// Returns operands that leave each number as it is: see [`Factors`](crate::vectors::Factors).
pub(super) fn missing<R: Real>() -> [R; OPERANDS] {
    let (zero, one) = (R::ZERO, R::ONE);
    [zero, one, one, zero, one, one, one]
}

/// The steps of each pass; `None` where another step replaced one.
type Steps = [Vec<Option<PassStep>>];

/// Replaces each sum of products in a plan's passes by a step that computes the products. `uses`
/// counts the uses of each value.
pub(super) fn make(plan: &mut TilePlan, definitions: &Definitions, uses: &mut [usize]) {
    let all = plan.passes.iter_mut().map(|pass| pass.steps.drain(..).map(Some).collect());
    let mut all: Vec<Vec<Option<PassStep>>> = all.collect();
    for pass in 0..all.len() {
        for at in 0..all[pass].len() {
            let Some(step) = &all[pass][at] else { continue };
            let Some(factors) = factors_of(plan, definitions, uses, step) else { continue };
            let factor_sum = factor_sum(plan, definitions, &all, (pass, step), &factors);
            let Some(sum) = products(step, &factors, factor_sum.as_ref()) else { continue };
            count_uses(uses, &sum, |uses| uses + 1);
            if let Some(step) = all[pass][at].replace(sum) {
                count_uses(uses, &step, |uses| uses - 1);
            }
            if let Some(FactorSum { reduction, place: (from, place), .. }) = factor_sum {
                if let Some(step) = all[from][place].take() {
                    count_uses(uses, &step, |uses| uses - 1);
                }
                move_end(&mut plan.passes, (from, pass), reduction);
            }
        }
    }
    for (pass, steps) in plan.passes.iter_mut().zip(all) {
        pass.steps = steps.into_iter().flatten().collect();
    }
}

/// Returns the two factors whose products a step adds up, if it does so.
fn factors_of(
    plan: &TilePlan,
    definitions: &Definitions,
    uses: &[usize],
    step: &PassStep,
) -> Option<[Factor; 2]> {
    let value = added_up(plan, step)?.1;
    let (op, [a, b], _) =
        definitions.op(value, step.set).filter(|_| uses.get(value) == Some(&1))?;
    let are_all = a.along == Along::Full && b.along == Along::Full;
    let is_product = op == Binary::Multiply && are_all;
    is_product.then(|| [a, b].map(|arg| definitions.factor(arg.value, step.set)))
}

/// Returns the reduction and the value, if a step adds up a value.
fn added_up(plan: &TilePlan, step: &PassStep) -> Option<(usize, usize)> {
    let Action::Accumulate { reduction, .. } = step.action else { return None };
    let layout = plan.layouts.get(reduction).and_then(Option::as_ref)?;
    let is_sum = layout.reduction == Reduction::Sum;
    is_sum.then_some((reduction, step.args.first()?.value))
}

/// A sum of one of two factors, which is computed in the same loop as the sum of their products.
struct FactorSum {
    reduction: usize,
    /// The pass of the step that adds it up, and the index of the step.
    place: (usize, usize),
    /// The index of the factor, and the operand that multiplies it.
    factor: usize,
    times: Option<Arg>,
    /// The axes of a row that the operands of the sum need.
    row: u64,
}

/// Finds a step that adds up one of the factors, in pass `pass` or before it, if no step up to that
/// pass reads its result.
fn factor_sum(
    plan: &TilePlan,
    definitions: &Definitions,
    all: &Steps,
    (pass, step): (usize, &PassStep),
    factors: &[Factor; 2],
) -> Option<FactorSum> {
    let (own, _) = added_up(plan, step)?;
    let first = |step: &PassStep| match step.action {
        Action::Accumulate { first, .. } => Some(first),
        _ => None,
    };
    let is_sink = |reduction: usize| plan.layouts[reduction].as_ref().map(|layout| layout.is_sink);
    let mut places = (0..=pass).flat_map(|from| (0..all[from].len()).map(move |at| (from, at)));
    places.find_map(|place| {
        let other = all[place.0][place.1].as_ref()?;
        let (reduction, value) = added_up(plan, other).filter(|(other, _)| *other != own)?;
        let is_alike = other.set == step.set
            && first(other) == first(step)
            && plan.space.reduced(reduction) == plan.space.reduced(own)
            && is_sink(reduction) == is_sink(own);
        let is_read = |step: &PassStep| matches!(step.action, Action::Reduced { reduction: of, .. } if of == reduction);
        let mut until = all[..=pass].iter().flatten().flatten();
        if !is_alike || until.any(is_read) {
            return None;
        }
        let sum = definitions.factor(value, step.set);
        (0..2).find_map(|factor| {
            let times = definitions.times(&sum, &factors[factor])?;
            // The values of another pass are gone, unless each slab is one tile.
            let is_there = times.is_none() || place.0 == pass || plan.is_whole();
            is_there.then_some(FactorSum { reduction, place, factor, times, row: sum.row })
        })
    })
}

/// Returns the step that adds up the products of two factors, and the sum of one factor if there is
/// one.
fn products(
    step: &PassStep,
    factors: &[Factor; 2],
    factor_sum: Option<&FactorSum>,
) -> Option<PassStep> {
    let Action::Accumulate { reduction, first } = step.action else { return None };
    let (x, y) = match factor_sum {
        Some(FactorSum { factor: 1, .. }) => (&factors[1], &factors[0]),
        _ => (&factors[0], &factors[1]),
    };
    let row =
        joined(step.set, joined(step.set, x.row, y.row)?, factor_sum.map_or(step.set, |b| b.row))?;
    let times = factor_sum.and_then(|factor_sum| factor_sum.times);
    let mut args = Args::new(x.x);
    let second = args.number(Some(Arg { value: y.x, along: Along::Full }))?;
    let mut operands = [0; OPERANDS];
    let all = x.operands.into_iter().chain(y.operands).chain([times]);
    for (place, arg) in operands.iter_mut().zip(all) {
        *place = args.number(arg)?;
    }
    let factor_sum = factor_sum.map(|factor_sum| factor_sum.reduction);
    let action = Action::Products(FusedProducts { reduction, factor_sum, first, second, operands });
    Some(PassStep { action, args: args.into_all(), row, ..step.clone() })
}

/// Moves the end of a reduction from one pass to another.
fn move_end(passes: &mut [Pass], (from, to): (usize, usize), reduction: usize) {
    let ends = &mut passes[from].ends;
    if let Some(at) = ends.iter().position(|&end| end == reduction) {
        ends.remove(at);
        passes[to].ends.push(reduction);
    }
}
