//! The folds of `u8`, whose accumulators are lanes of 32 bits.

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use fearless_simd::prelude::*;
use fearless_simd::{u8x16, u32x16};

use super::lanes::{Extremum, Lanes, Merge, first};

/// A fold of lanes of 32 bits, whose elements have 8.
pub(super) struct OfBytes<M>(PhantomData<M>);

/// The lanes of 16 elements.
#[inline(always)]
fn wide<S: Simd>(elements: u8x16<S>) -> u32x16<S> {
    // The first part of a whole vector is one instruction.
    let elements = elements.combine(elements);
    elements.combine(elements).widen().0.widen().0
}

/// Writes the elements of lanes.
#[inline(always)]
fn store<S: Simd>(lanes: u32x16<S>, to: &mut [MaybeUninit<u8>]) {
    for (to, lane) in to[..16].iter_mut().zip(lanes.to_array()) {
        // A sum wraps.
        to.write(lane as u8);
    }
}

impl<S: Simd, M: Merge<S, Vector = u32x16<S>>> Merge<S> for OfBytes<M> {
    type Vector = u32x16<S>;

    #[inline(always)]
    fn start(simd: S) -> u32x16<S> {
        M::start(simd)
    }
    #[inline(always)]
    fn combine(a: u32x16<S>, b: u32x16<S>) -> u32x16<S> {
        M::combine(a, b)
    }
}

impl<S: Simd, M: Merge<S, Vector = u32x16<S>>> Lanes<S> for OfBytes<M> {
    type Element = u8;
    type Accumulator = u8;

    #[inline(always)]
    unsafe fn load(simd: S, from: *const u8) -> u32x16<S> {
        // SAFETY: the caller promises the elements.
        wide(u8x16::load_array(simd, unsafe { from.cast::<[u8; 16]>().read_unaligned() }))
    }
    #[inline(always)]
    unsafe fn load_first(simd: S, from: &[u8], count: usize) -> u32x16<S> {
        let all = match from.first_chunk::<16>() {
            Some(all) => *all,
            None => {
                let mut room = [0; 16];
                room[..count].copy_from_slice(&from[..count]);
                room
            }
        };
        let elements = wide(u8x16::load_array(simd, all));
        first::<S, u32x16<S>>(simd, count).select(elements, M::start(simd))
    }
    #[inline(always)]
    fn store(lanes: u32x16<S>, to: &mut [MaybeUninit<u8>]) {
        store(lanes, to);
    }
}

impl<S: Simd, M: Merge<S, Vector = u32x16<S>>> Extremum<S> for OfBytes<M> {
    type Compared = u32x16<S>;
    type Numbers = M;

    #[inline(always)]
    unsafe fn elements(simd: S, from: *const u8) -> u32x16<S> {
        // SAFETY: the caller promises the elements.
        unsafe { Self::load(simd, from) }
    }
    #[inline(always)]
    unsafe fn first_elements(simd: S, from: &[u8], count: usize) -> u32x16<S> {
        // SAFETY: the caller promises the elements.
        unsafe { Self::load_first(simd, from, count) }
    }
    #[inline(always)]
    fn numbers(lanes: u32x16<S>) -> u32x16<S> {
        lanes
    }
    #[inline(always)]
    fn store_elements(lanes: u32x16<S>, to: &mut [MaybeUninit<u8>]) {
        store(lanes, to);
    }
    #[inline(always)]
    fn store_numbers(numbers: u32x16<S>, to: &mut [MaybeUninit<u8>]) {
        store(numbers, to);
    }
}
