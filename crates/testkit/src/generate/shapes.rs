//! Random dims, and other dims of as many elements.

use tilewright_ir::Dims;

use super::rng::Rng;

/// Sizes with many factors, so that reshapes have much to choose from.
const SIZES: [i64; 14] = [1, 1, 2, 2, 2, 3, 3, 4, 4, 5, 6, 8, 10, 12];

pub(super) fn count(dims: &[i64]) -> i64 {
    dims.iter().product()
}

/// Dims with at most so many elements.
pub(super) fn random_dims(rng: &mut Rng, most: i64, empty_percent: u32) -> Dims {
    let rank = [0, 1, 2, 2, 3, 3, 3, 4, 4, 5][rng.below(10)];
    let mut dims = Dims::new();
    for _ in 0..rank {
        let room = most / count(&dims).max(1);
        dims.push(rng.pick(&SIZES).copied().filter(|&size| size <= room).unwrap_or(1));
    }
    if rank > 0 && rng.chance(empty_percent) {
        let dim = rng.below(rank);
        dims[dim] = 0;
    }
    dims
}

/// Returns the dims of a small image: batch, height, width and channels.
pub(super) fn image_dims(rng: &mut Rng, most: i64) -> Dims {
    let mut dims = Dims::new();
    for sizes in [[1, 2, 2, 3], [2, 4, 4, 6], [2, 4, 3, 4], [4, 6, 8, 12]] {
        let room = most / count(&dims).max(1);
        dims.push(rng.pick(&sizes).copied().filter(|&size| size <= room).unwrap_or(1));
    }
    if rng.chance(30) {
        // Channels before the image.
        dims[1..].rotate_right(1);
    }
    dims
}

/// Other dims of as many elements.
pub(super) fn regrouped(rng: &mut Rng, dims: &[i64]) -> Dims {
    let mut dims = Dims::from_slice(dims);
    match rng.below(8) {
        0..=2 => split(rng, &mut dims),
        3 | 4 => merge(rng, &mut dims),
        5 => {
            for _ in 0..3 {
                if rng.chance(50) {
                    split(rng, &mut dims);
                } else {
                    merge(rng, &mut dims);
                }
            }
        }
        6 => ones(rng, &mut dims),
        _ => dims = factors(rng, count(&dims), 4),
    }
    dims
}

/// Splits one dim in two or three.
pub(super) fn split(rng: &mut Rng, dims: &mut Dims) {
    let Some(dim) = composite(rng, dims) else { return ones(rng, dims) };
    let most = 2 + rng.below(2);
    let parts = factors(rng, dims[dim], most);
    dims.remove(dim);
    dims.insert_many(dim, parts);
}

/// Merges two or three neighbours.
pub(super) fn merge(rng: &mut Rng, dims: &mut Dims) {
    for _ in 0..1 + rng.below(2) {
        if dims.len() > 1 {
            let at = rng.below(dims.len() - 1);
            dims[at] *= dims[at + 1];
            dims.remove(at + 1);
        }
    }
}

/// Puts in or takes out a dim of size 1.
fn ones(rng: &mut Rng, dims: &mut Dims) {
    match dims.iter().position(|&d| d == 1) {
        Some(at) if rng.chance(50) => drop(dims.remove(at)),
        _ => dims.insert(rng.below(dims.len() + 1), 1),
    }
}

/// Returns a dim that can be split.
fn composite(rng: &mut Rng, dims: &[i64]) -> Option<usize> {
    let dims: Vec<usize> = (0..dims.len()).filter(|&d| !divisors(dims[d]).is_empty()).collect();
    rng.pick(&dims).copied()
}

/// Returns the divisors of a number between 1 and itself.
pub(super) fn divisors(number: i64) -> Vec<i64> {
    (2..number).filter(|d| number % d == 0).collect()
}

/// At most `most` factors of a number, in random order.
fn factors(rng: &mut Rng, number: i64, most: usize) -> Dims {
    let mut factors = Dims::from_slice(&[number]);
    while factors.len() < most {
        let Some(at) = composite(rng, &factors) else { break };
        let divisors = divisors(factors[at]);
        let Some(&divisor) = rng.pick(&divisors) else { break };
        factors[at] /= divisor;
        factors.insert(at, divisor);
    }
    factors
}

/// Returns some of the dims, in order; at least one where there is one.
pub(super) fn some_dims(rng: &mut Rng, rank: usize) -> Dims {
    let mut some: Vec<usize> = (0..rank).filter(|_| rng.chance(50)).collect();
    if some.is_empty() && rank > 0 {
        some.push(rng.below(rank));
    }
    some.into_iter().filter_map(|d| i64::try_from(d).ok()).collect()
}

/// `0, 1 ... rank - 1`.
pub(super) fn all_dims(rank: usize) -> Dims {
    (0i64..).take(rank).collect()
}

/// For each dim of `small` one of `large` of the same size, no two the same;
/// `None` where there is no such choice in their order.
pub(super) fn embedding(rng: &mut Rng, small: &[i64], large: &[i64]) -> Option<Dims> {
    let mut found = Dims::new();
    let mut from = 0;
    for (i, &size) in small.iter().enumerate() {
        let rest = small.len() - i - 1;
        let end = large.len().checked_sub(rest)?;
        let fits: Vec<usize> = (from..end).filter(|&d| large[d] == size).collect();
        let at = if rng.chance(60) { fits.first() } else { rng.pick(&fits) };
        let at = *at.or(fits.first())?;
        found.push(i64::try_from(at).ok()?);
        from = at + 1;
    }
    Some(found)
}
