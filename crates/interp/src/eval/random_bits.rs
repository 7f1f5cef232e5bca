//! The two counter-based generators of `rng-bit-generator`: Salmon et al.,
//! "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).
//!
//! The layout of their words in an array is part of XLA's specification: every word is a
//! function of the state and of its index.

use tilewright_ir::Dims;

use super::unsupported;
use crate::error::Outcome;
use crate::strides::extent;

/// Words by their row-major index.
pub(super) trait Generator {
    fn word32(&self, index: usize) -> u32;
    fn word64(&self, index: usize) -> u64;
    /// Returns the state after `count` words.
    fn next_state(&self, count: usize, wide: bool) -> Vec<u64>;
}

/// Returns the lower and the upper half.
fn halves(word: u64) -> [u32; 2] {
    [word as u32, (word >> 32) as u32]
}

fn whole(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

/// ThreeFry-2x32 of 20 rounds. The state is key and counter.
pub(super) struct ThreeFry {
    key: u64,
    counter: u64,
    /// The array as `[outer, split, inner]`: neighbours along the middle one
    /// are the two words of a block.
    split: usize,
    inner: usize,
    /// Blocks that make 32-bit words.
    blocks: usize,
}

impl ThreeFry {
    /// Creates the generator for an array of these dims. It is split along the first even dim
    /// or, if there is none, along the first of the largest ones.
    pub(super) fn new(state: &[u64], dims: &[i64]) -> Outcome<Self> {
        let &[key, counter] = state else {
            return Err(unsupported("ThreeFry's state is u64[2]: key and counter"));
        };
        let largest = dims.iter().copied().max();
        let at = dims
            .iter()
            .position(|dim| dim % 2 == 0)
            .or_else(|| dims.iter().position(|&dim| Some(dim) == largest));
        let mut sizes: Dims = dims.into();
        let (split, inner) = match at {
            Some(at) => (extent(dims[at]), &dims[at + 1..]),
            None => (1, dims),
        };
        if let Some(size) = at.and_then(|at| sizes.get_mut(at)) {
            *size = (*size + 1) / 2;
        }
        let product = |dims: &[i64]| dims.iter().map(|&d| extent(d)).fold(1, usize::saturating_mul);
        Ok(Self { key, counter, split, inner: product(inner), blocks: product(&sizes) })
    }

    fn block(&self, number: usize) -> [u32; 2] {
        let counter = self.counter.wrapping_add(number as u64);
        three_fry(halves(self.key), halves(counter))
    }
}

impl Generator for ThreeFry {
    fn word32(&self, index: usize) -> u32 {
        let (rest, inner) = (index / self.inner, index % self.inner);
        let (outer, at) = (rest / self.split, rest % self.split);
        let block = (outer * self.split.div_ceil(2) + at / 2) * self.inner + inner;
        self.block(block)[at % 2]
    }

    fn word64(&self, index: usize) -> u64 {
        let [low, high] = self.block(index);
        whole(low, high)
    }

    fn next_state(&self, count: usize, wide: bool) -> Vec<u64> {
        let blocks = if wide { count } else { self.blocks };
        vec![self.key, self.counter.wrapping_add(blocks as u64)]
    }
}

fn three_fry(key: [u32; 2], counter: [u32; 2]) -> [u32; 2] {
    const ROTATIONS: [[u32; 4]; 2] = [[13, 15, 26, 6], [17, 29, 16, 24]];
    const PARITY: u32 = 0x1bd1_1bda;
    let keys = [key[0], key[1], PARITY ^ key[0] ^ key[1]];
    let [mut a, mut b] = counter;
    a = a.wrapping_add(keys[0]);
    b = b.wrapping_add(keys[1]);
    for turn in 0..5u32 {
        for rotation in ROTATIONS[turn as usize % 2] {
            a = a.wrapping_add(b);
            b = a ^ b.rotate_left(rotation);
        }
        let next = turn as usize + 1;
        a = a.wrapping_add(keys[next % 3]);
        b = b.wrapping_add(keys[(next + 1) % 3]).wrapping_add(turn + 1);
    }
    [a, b]
}

/// Philox-4x32 of 10 rounds. The state is a key and a counter of 128 bits; of a
/// state of two words the key is the upper half of the counter, too.
pub(super) struct Philox {
    key: u64,
    counter: u128,
    /// Words of the state.
    words: usize,
}

impl Philox {
    pub(super) fn new(state: &[u64]) -> Outcome<Self> {
        let (key, low, high) = match *state {
            [key, low] => (key, low, key),
            [key, low, high] => (key, low, high),
            _ => return Err(unsupported("Philox's state is u64[2] or u64[3]: key and counter")),
        };
        let counter = u128::from(high) << 64 | u128::from(low);
        Ok(Self { key, counter, words: state.len() })
    }

    fn block(&self, number: usize) -> [u32; 4] {
        let counter = self.counter.wrapping_add(number as u128);
        let [a, b] = halves(counter as u64);
        let [c, d] = halves((counter >> 64) as u64);
        philox(halves(self.key), [a, b, c, d])
    }
}

impl Generator for Philox {
    fn word32(&self, index: usize) -> u32 {
        self.block(index / 4)[index % 4]
    }

    fn word64(&self, index: usize) -> u64 {
        let [a, b, c, d] = self.block(index / 2);
        if index.is_multiple_of(2) { whole(a, b) } else { whole(c, d) }
    }

    fn next_state(&self, count: usize, wide: bool) -> Vec<u64> {
        let blocks = count.div_ceil(if wide { 2 } else { 4 });
        let counter = self.counter.wrapping_add(blocks as u128);
        let state = [self.key, counter as u64, (counter >> 64) as u64];
        state.into_iter().take(self.words).collect()
    }
}

fn philox(mut key: [u32; 2], counter: [u32; 4]) -> [u32; 4] {
    let product = |a: u32, b: u32| halves(u64::from(a) * u64::from(b));
    let [mut a, mut b, mut c, mut d] = counter;
    for _ in 0..10 {
        let [low_a, high_a] = product(a, 0xd251_1f53);
        let [low_c, high_c] = product(c, 0xcd9e_8d57);
        [a, b, c, d] = [high_c ^ b ^ key[0], low_c, high_a ^ d ^ key[1], low_a];
        key = [key[0].wrapping_add(0x9e37_79b9), key[1].wrapping_add(0xbb67_ae85)];
    }
    [a, b, c, d]
}
