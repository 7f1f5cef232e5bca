//! Inputs next to given ones, to learn how much a program magnifies rounding.

use tilewright_interp::{Movable, Move, nudged};

use crate::check::Inputs;

/// Inputs next to the given ones; each number moves on its own.
pub(crate) fn nudged_all(inputs: &Inputs, seed: u64) -> Inputs {
    let mut seeds = (0u64..).map(|i| i.wrapping_mul(NUDGES).wrapping_add(seed));
    let mut moved = |input| {
        let seed = seeds.next().unwrap_or(seed);
        nudged(input, &|Movable { place, .. }| {
            Move::by_chance(u64::try_from(place).unwrap_or(u64::MAX), seed)
        })
    };
    inputs.iter().map(|inputs| inputs.iter().map(&mut moved).collect()).collect()
}

/// How many times a program is run on inputs next to the given ones, at most.
/// Each number moves up or down by chance: what two of them make of it shows
/// only where they move apart, which this often they all but surely do.
pub(crate) const NUDGES: u64 = 24;
/// How much further apart than those runs two programs may be: sums in another
/// order round at every step, inputs that move do so by chance in both ways.
pub(crate) const EXCUSED: f64 = 64.0;
