//! Merges the lanes of vectors by halves, those of many rows together.

use fearless_simd::prelude::*;
use fearless_simd::{u32x16, u64x8};

use super::lanes::{Mask, Merge, Vector};

/// The first halves of two vectors as one, and their second halves.
#[inline(always)]
pub(super) fn halves<S: Simd, V: Vector<S>>(a: V, b: V) -> (V, V) {
    let (a, b) = (a.bitcast::<u64x8<S>>().split(), b.bitcast::<u64x8<S>>().split());
    (a.0.combine(b.0).bitcast(), a.1.combine(b.1).bitcast())
}

/// The first halves of each half of two vectors as one, and the second halves.
#[inline(always)]
pub(super) fn quarters<S: Simd, V: Vector<S>>(a: V, b: V) -> (V, V) {
    let (a, b) = (a.bitcast::<u64x8<S>>().split(), b.bitcast::<u64x8<S>>().split());
    let (a, b) = ((a.0.split(), a.1.split()), (b.0.split(), b.1.split()));
    let first = a.0.0.combine(a.1.0).combine(b.0.0.combine(b.1.0));
    let second = a.0.1.combine(a.1.1).combine(b.0.1.combine(b.1.1));
    (first.bitcast(), second.bitcast())
}

/// As [`halves`], within each quarter of a vector.
#[inline(always)]
fn eighths<S: Simd, V: Vector<S>>(simd: S, a: V, b: V) -> (V, V) {
    let (a, b) = (a.bitcast::<u64x8<S>>(), b.bitcast::<u64x8<S>>());
    let between = a.slide_within_blocks::<1>(b);
    let even = Mask::<S, u64x8<S>>::from_bitmask(simd, 0x55);
    (even.select(a, between).bitcast(), even.select(between, b).bitcast())
}

/// The first lanes of 32 bits of each 64 bits of two vectors in turn, and the second ones.
#[inline(always)]
fn sixteenths<S: Simd, V: Vector<S>>(simd: S, a: V, b: V) -> (V, V) {
    let even = Mask::<S, u32x16<S>>::from_bitmask(simd, 0x5555);
    let (a, b) = (a.bitcast::<u64x8<S>>(), b.bitcast::<u64x8<S>>());
    let first = even.select(a.bitcast::<u32x16<S>>(), (b << 32).bitcast());
    let second = even.select((a >> 32).bitcast::<u32x16<S>>(), b.bitcast());
    (first.bitcast(), second.bitcast())
}

/// Merges the lanes of vectors to one lane for each row.
#[inline(always)]
pub(super) fn tree<S: Simd, M: Merge<S>, const ROWS: usize>(
    simd: S,
    mut all: [M::Vector; 16],
) -> M::Vector {
    let mut left = M::COUNT / ROWS;
    macro_rules! merge {
        ($n:ident: $first:expr, $second:expr => |$a:ident, $b:ident| $parts:expr) => {
            left /= 2;
            for $n in 0..left {
                let ($a, $b) = (all[$first], all[$second]);
                let (a, b) = $parts;
                all[$n] = M::combine_numbers(a, b);
            }
        };
    }
    if const { ROWS == 1 } {
        merge!(n: 2 * n, 2 * n + 1 => |a, b| halves(a, b));
    }
    if const { ROWS < 4 } {
        merge!(n: 2 * n, 2 * n + 1 => |a, b| quarters(a, b));
    }
    if const { ROWS < 8 } {
        merge!(n: n, n + left => |a, b| eighths(simd, a, b));
    }
    if const { M::COUNT == 16 } {
        merge!(n: n, n + left => |a, b| sixteenths(simd, a, b));
    }
    // The lowest bits of a row's number are the highest of its lane's: two, or three of eight rows.
    for _ in 0..if ROWS == 8 { 3 } else { 2 } {
        all[0] = all[0].zip_low(halves(all[0], all[0]).1);
    }
    all[0]
}

/// Merges the lanes of a vector; the first lane has the result.
#[inline(always)]
pub(super) fn merged_lanes<S: Simd, M: Merge<S>>(simd: S, lanes: M::Vector) -> M::Vector {
    let mut all = M::combine(lanes, halves(lanes, lanes).1);
    all = M::combine(all, quarters(all, all).1);
    all = M::combine(all, eighths(simd, all, all).1);
    if M::COUNT == 16 {
        all = M::combine(all, sixteenths(simd, all, all).1);
    }
    M::finish(all)
}
