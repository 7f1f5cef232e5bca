//! Fourier transforms of any length, over up to all minor dims, in `f64`.

use num_complex::Complex;
use rustfft::{Fft, FftDirection, FftPlanner};
use tilewright_ir::Data;
use tilewright_ir::ops::linalg::{FftAttrs, FftType};

use super::linalg::{as_complex, rounded};
use super::{Cx, unsupported};
use crate::error::{Fault, Outcome};
use crate::limits::Charge;
use crate::strides::extent;
use crate::value::Value;

type Number = Complex<f64>;

/// The numbers that the transform of a line needs besides the line, for each number of the
/// line: tables of roots and scratch. A line of prime length needs two lines of more than twice
/// its length.
const TABLES: usize = 16;

pub(super) fn fft(cx: &mut Cx<'_, '_>, attrs: &FftAttrs) -> Outcome<Value> {
    if let Some(empty) = cx.empty_result()? {
        return Ok(empty);
    }
    let sizes = Sizes::new(cx, attrs)?;
    let _charge = sizes.charge(cx)?;
    let direction = match attrs.fft_type {
        FftType::Ifft | FftType::Irfft => FftDirection::Inverse,
        FftType::Fft | FftType::Rfft => FftDirection::Forward,
    };
    let mut planner = FftPlanner::new();
    let mut values = as_complex(cx.array(0)?)?;
    let mut stride = sizes.stored;
    for &n in sizes.others.iter().rev() {
        along(&mut values, stride, &*planner.plan_fft(n, direction))?;
        stride *= n;
    }
    if attrs.fft_type == FftType::Irfft {
        values = complete(&values, sizes.stored, sizes.last);
    }
    along(&mut values, 1, &*planner.plan_fft(sizes.last, direction))?;
    if direction == FftDirection::Inverse {
        let length = sizes.others.iter().product::<usize>() * sizes.last;
        values.iter_mut().for_each(|v| *v /= length as f64);
    }
    match attrs.fft_type {
        FftType::Fft | FftType::Ifft => rounded(cx, 0, &Data::C128(values)),
        FftType::Rfft => {
            let lines = values.chunks(sizes.last);
            let kept = lines.flat_map(|line| line.iter().take(sizes.yielded).copied());
            rounded(cx, 0, &Data::C128(kept.collect()))
        }
        FftType::Irfft => rounded(cx, 0, &Data::F64(values.iter().map(|v| v.re).collect())),
    }
}

/// The sizes of a transform that has elements.
struct Sizes {
    /// The lengths of the transformed dims but the last.
    others: Vec<usize>,
    /// The length of the last.
    last: usize,
    /// The number of elements that the operand and the result have of it.
    stored: usize,
    yielded: usize,
    /// The number of lines along it.
    lines: usize,
}

impl Sizes {
    fn new(cx: &Cx<'_, '_>, attrs: &FftAttrs) -> Outcome<Self> {
        let mut others: Vec<usize> = attrs.fft_length.iter().map(|&l| extent(l)).collect();
        let last = others.pop().ok_or(Fault::Internal("it transforms no dims"))?;
        let half = last / 2 + 1;
        let (stored, yielded) = match attrs.fft_type {
            FftType::Fft | FftType::Ifft => (last, last),
            FftType::Rfft => (last, half),
            FftType::Irfft => (half, last),
        };
        let operand = cx.array(0)?;
        let dims: Vec<usize> = operand.dims().iter().map(|&d| extent(d)).collect();
        let transformed = dims.len().checked_sub(others.len() + 1).and_then(|at| dims.get(at..));
        let fits = transformed.is_some_and(|dims| {
            dims.split_last() == Some((&stored, others.as_slice())) && !dims.contains(&0)
        });
        if !fits {
            return Err(unsupported(format!("dims {dims:?} are not of the transform's length")));
        }
        Ok(Self { lines: operand.len() / stored, others, last, stored, yielded })
    }

    /// Counts the work, and reserves the most numbers alive at one time: the values before and
    /// after the last dim, the kept part of them, and the tables for one length.
    fn charge(&self, cx: &Cx<'_, '_>) -> Outcome<Charge> {
        let elements = self.lines.saturating_mul(self.last);
        let longest = self.others.iter().copied().fold(self.last, usize::max);
        for n in self.others.iter().chain([&self.last]) {
            // A prime length takes two transforms of more than twice the length.
            let rounds = n.checked_ilog2().unwrap_or(0) as usize + 1;
            cx.spend(elements.saturating_mul(rounds.saturating_mul(6)))?;
        }
        let numbers = elements.saturating_mul(3).saturating_add(longest.saturating_mul(TABLES));
        cx.scratch(size_of::<Number>(), numbers)
    }
}

/// Returns the second half of a real signal's spectrum: the mirrored first half. Elements that
/// must be real are taken as real.
fn complete(values: &[Number], half: usize, last: usize) -> Vec<Number> {
    let mut full = Vec::with_capacity(values.len() / half * last);
    for line in values.chunks(half) {
        full.extend((0..last).map(|k| {
            let value = if k < half { line[k] } else { line[last - k].conj() };
            if 2 * k % last == 0 { Number::new(value.re, 0.0) } else { value }
        }));
    }
    full
}

/// Transforms every line along a dim of the plan's length and this stride.
fn along(values: &mut [Number], stride: usize, plan: &dyn Fft<f64>) -> Outcome<()> {
    let n = plan.len();
    if n < 2 {
        return Ok(());
    }
    if !values.len().is_multiple_of(n.saturating_mul(stride)) || stride == 0 {
        return Err(Fault::Internal("a transform has lines of different lengths"));
    }
    let mut scratch = vec![Number::default(); plan.get_inplace_scratch_len()];
    if stride == 1 {
        plan.process_with_scratch(values, &mut scratch);
        return Ok(());
    }
    let mut line = vec![Number::default(); n];
    for block in values.chunks_mut(n * stride) {
        for first in 0..stride {
            for (slot, value) in line.iter_mut().zip(block[first..].iter().step_by(stride)) {
                *slot = *value;
            }
            plan.process_with_scratch(&mut line, &mut scratch);
            for (value, slot) in line.iter().zip(block[first..].iter_mut().step_by(stride)) {
                *slot = *value;
            }
        }
    }
    Ok(())
}
