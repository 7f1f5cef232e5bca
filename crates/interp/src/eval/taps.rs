//! Windows, tap by tap: for each element of the window, which outputs it
//! contributes to and which inputs it then reads.
//!
//! Along one dim both are arithmetic progressions, with any strides, dilations and padding, so
//! every tap is a strided loop over arrays.

use std::ops::Range;

use tilewright_ir::ops::dims::WindowDim;

use super::Cx;
use crate::error::Outcome;
use crate::limits::Charge;
use crate::strides::{Level, extent};

/// One element of a window along one dim, with the outputs for which it is
/// inside the input (and not in a hole of a dilated one).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tap {
    /// The number of the element of the kernel, after a reversal.
    pub(super) number: usize,
    /// The first output.
    pub(super) output: usize,
    /// The input it reads for that.
    pub(super) input: usize,
    pub(super) count: usize,
    output_step: usize,
    input_step: usize,
}

impl Tap {
    /// Returns the dim's part of a walk over arrays of these strides.
    pub(super) fn level(&self, output: isize, input: isize) -> Level<2> {
        let strides =
            [output * self.output_step.cast_signed(), input * self.input_step.cast_signed()];
        Level { size: self.count, strides }
    }
}

/// The taps of one dim.
pub(super) type Taps = Vec<Tap>;

/// Returns the taps of one dim that reach the input, in the window's order, and the memory they
/// take.
pub(super) fn taps(
    cx: &Cx<'_, '_>,
    window: &WindowDim,
    input: i64,
    output: i64,
) -> Outcome<(Taps, Charge)> {
    let numbers = reaching(window, input, output);
    let count = usize::try_from(numbers.end.saturating_sub(numbers.start)).unwrap_or(0);
    let charge = cx.scratch(size_of::<Tap>(), count)?;
    // A tap is found among as many outputs as the base has holes.
    let tried = extent(window.base_dilation.min(output));
    cx.spend(count.saturating_mul(tried.saturating_mul(16).saturating_add(64)))?;
    let mut list = Vec::with_capacity(count);
    list.extend(numbers.filter_map(|number| tap(window, number, input, output)));
    Ok((list, charge))
}

/// Returns the numbers of the taps that may reach the input.
fn reaching(window: &WindowDim, input: i64, output: i64) -> Range<i64> {
    if input == 0 || output == 0 {
        return 0..0;
    }
    // The offsets, in the padded and dilated input, at which a tap meets both
    // an output and an element.
    let least = i128::from(window.padding_low) - i128::from(output - 1) * i128::from(window.stride);
    let most = i128::from(input - 1) * i128::from(window.base_dilation);
    let most = most + i128::from(window.padding_low);
    let dilation = i128::from(window.window_dilation.max(1));
    let first = div_ceil(least, dilation).max(0);
    let end = (most.div_euclid(dilation) + 1).min(i128::from(window.size));
    match (i64::try_from(first), i64::try_from(end)) {
        (Ok(first), Ok(end)) => first..end,
        _ => 0..0,
    }
}

fn div_ceil(a: i128, b: i128) -> i128 {
    -(-a).div_euclid(b)
}

fn tap(window: &WindowDim, number: i64, input: i64, output: i64) -> Option<Tap> {
    let (stride, dilation) = (i128::from(window.stride), i128::from(window.base_dilation));
    let offset = i128::from(number) * i128::from(window.window_dilation);
    let offset = offset - i128::from(window.padding_low);
    // Output o is at o * stride + offset in the dilated input.
    let first = div_ceil(-offset, stride).max(0);
    let last = (i128::from(input - 1) * dilation - offset).div_euclid(stride);
    let last = last.min(i128::from(output - 1));
    // One output in every `step` does not fall into a hole.
    let step = dilation / gcd(stride, dilation);
    let candidates = first..=last.min(first + step - 1);
    let first = candidates.into_iter().find(|o| (o * stride + offset).rem_euclid(dilation) == 0)?;
    let count = (last - first).checked_div(step)? + 1;
    let narrow = |value: i128| usize::try_from(value).ok();
    let kernel = if window.reversal { window.size - 1 - number } else { number };
    Some(Tap {
        number: usize::try_from(kernel).ok()?,
        output: narrow(first)?,
        input: narrow((first * stride + offset) / dilation)?,
        count: narrow(count)?,
        output_step: narrow(step)?,
        input_step: narrow(stride * step / dilation)?,
    })
}

fn gcd(a: i128, b: i128) -> i128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Calls `f` with one tap of every dim, for all combinations in row-major
/// order.
pub(super) fn walk_taps(dims: &[Taps], f: &mut dyn FnMut(&[Tap]) -> Outcome<()>) -> Outcome<()> {
    let Some(mut chosen) =
        dims.iter().map(|taps| taps.first().copied()).collect::<Option<Vec<_>>>()
    else {
        return Ok(());
    };
    let mut counts = vec![0; dims.len()];
    loop {
        f(&chosen)?;
        let mut dim = dims.len();
        loop {
            let Some(next) = dim.checked_sub(1) else { return Ok(()) };
            dim = next;
            counts[dim] += 1;
            if let Some(tap) = dims[dim].get(counts[dim]) {
                chosen[dim] = *tap;
                break;
            }
            counts[dim] = 0;
            chosen[dim] = dims[dim][0];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the pairs of output and input that a tap joins, the long way.
    fn pairs(window: &WindowDim, number: i64, input: i64, output: i64) -> Vec<(i64, i64)> {
        let mut pairs = Vec::new();
        for o in 0..output {
            let at = o * window.stride + number * window.window_dilation - window.padding_low;
            if at >= 0 && at % window.base_dilation == 0 && at / window.base_dilation < input {
                pairs.push((o, at / window.base_dilation));
            }
        }
        pairs
    }

    #[test]
    fn a_tap_joins_what_the_definition_says() {
        for stride in 1..4 {
            for (base_dilation, window_dilation) in [(1, 1), (2, 1), (3, 2), (4, 3), (6, 1)] {
                for (padding_low, padding_high) in [(0, 0), (2, 1), (-1, 3), (5, -2)] {
                    let window = WindowDim {
                        size: 4,
                        stride,
                        padding_low,
                        padding_high,
                        base_dilation,
                        window_dilation,
                        reversal: false,
                    };
                    let input = 5;
                    let Some(output) = window.output_size(input) else { continue };
                    for number in 0..window.size {
                        let expected = pairs(&window, number, input, output);
                        let tap = tap(&window, number, input, output);
                        let found: Vec<(i64, i64)> = tap.map_or_else(Vec::new, |t| {
                            let at =
                                |first: usize, step: usize, i: usize| (first + step * i) as i64;
                            (0..t.count)
                                .map(|i| {
                                    (at(t.output, t.output_step, i), at(t.input, t.input_step, i))
                                })
                                .collect()
                        });
                        assert_eq!(found, expected, "{window:?} {number}");
                    }
                }
            }
        }
    }
}
