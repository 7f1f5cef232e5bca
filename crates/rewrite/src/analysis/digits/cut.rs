//! Cuts the row-major index into digits.

use std::cmp::Ordering;
use std::ops::Range;

use super::Digit;
use super::side::Side;
use crate::analysis::index_range::IndexRange;

/// Returns the digits of a reshape, major to minor.
pub(super) fn digits_between(from: &Side, to: &Side) -> Vec<Digit> {
    let (from, to) = (from.minor_to_major(), to.minor_to_major());
    let (mut from, mut to) = (&from[..], &to[..]);
    let mut digits = Vec::new();
    while let Some((from_count, to_count)) = to_common_end(from, to) {
        let (from_group, to_group);
        (from_group, from) = from.split_at(from_count);
        (to_group, to) = to.split_at(to_count);
        digits.extend(exact_digits(from_group, to_group).unwrap_or_else(|| {
            let size = from_group.iter().map(|(_, range)| range.size()).product();
            vec![Digit { size, from: dim_numbers(from_group), to: dim_numbers(to_group) }]
        }));
    }
    digits.reverse();
    digits
}

/// Returns the number of dims of each side up to the next end that both share; `None` if no
/// dims are left.
fn to_common_end(
    from: &[(usize, IndexRange)],
    to: &[(usize, IndexRange)],
) -> Option<(usize, usize)> {
    let (mut i, mut j) = (0, 0);
    loop {
        let (from_high, to_high) = (from.get(i)?.1.high, to.get(j)?.1.high);
        match from_high.cmp(&to_high) {
            Ordering::Less => i += 1,
            Ordering::Greater => j += 1,
            Ordering::Equal => return Some((i + 1, j + 1)),
        }
    }
}

/// Returns the digits of dims between shared ends, minor to major; `None` if an end does not
/// divide the next.
fn exact_digits(from: &[(usize, IndexRange)], to: &[(usize, IndexRange)]) -> Option<Vec<Digit>> {
    let (mut from, mut to) = (from.iter().peekable(), to.iter().peekable());
    let mut low = from.peek()?.1.low;
    let mut digits = Vec::new();
    while let (Some(&&(from_dim, from_range)), Some(&&(to_dim, to_range))) =
        (from.peek(), to.peek())
    {
        let high = from_range.high.min(to_range.high);
        if high % low != 0 {
            return None;
        }
        digits.push(Digit {
            size: high / low,
            from: from_dim..from_dim + 1,
            to: to_dim..to_dim + 1,
        });
        from.next_if(|(_, range)| range.high == high);
        to.next_if(|(_, range)| range.high == high);
        low = high;
    }
    Some(digits)
}

/// Returns the dim numbers that a group spans.
fn dim_numbers(minor_to_major: &[(usize, IndexRange)]) -> Range<usize> {
    let first = minor_to_major.last().map_or(0, |&(dim, _)| dim);
    let last = minor_to_major.first().map_or(first, |&(dim, _)| dim);
    first..last + 1
}
