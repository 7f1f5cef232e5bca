//! Inputs that differ from given ones in the last place, to measure how much a program magnifies
//! rounding.

use tilewright_interp::{Movable, Move, nudged};

use crate::check::Inputs;

/// Inputs that differ from the given ones in the last place; each number moves independently.
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

/// Largest number of runs on moved inputs. Each number moves up or down at random. A combined
/// effect shows only if certain numbers move in opposite directions, which is almost certain in
/// this many runs.
pub(crate) const NUDGES: u64 = 24;
/// The allowed ratio of the difference of two programs to the difference of those runs. Sums in
/// another order round at every step, while moved inputs partly cancel.
pub(crate) const EXCUSED: f64 = 64.0;
/// An element that moved in none of these runs may differ by 16 times the median movement of those that moved, in
/// units of [`EXCUSED`].
pub(crate) const UNMOVED: f64 = 16.0 / EXCUSED;
