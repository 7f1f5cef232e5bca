//! Inputs next to given ones, most of which keep ties: equal numbers stay equal.

use tilewright_interp::{Movable, Move};
use tilewright_ir::Literal;

/// In one of so many turns equal numbers move apart. A program that gives zero because all
/// its numbers are equal shows only then how inexact it is next to them.
const APART: u64 = 4;

/// Returns the value with every float moved to the next number, up or down as its bits and
/// `turn` decide, and in some turns its place.
pub(super) fn nudged(value: &Literal, turn: u64) -> Literal {
    let apart = turn.is_multiple_of(APART);
    tilewright_interp::nudged(value, &|Movable { place, bits, .. }| {
        let place = if apart { u64::try_from(place).unwrap_or(0) << 32 } else { 0 };
        Move::by_chance(bits ^ place, turn)
    })
}
