//! Fourier transforms of any length, over up to all minor dims.

use num_complex::Complex;
use tilewright_ir::Data;
use tilewright_ir::ops::linalg::{FftAttrs, FftType};

use super::linalg::{as_complex, rounded};
use super::{Cx, unsupported};
use crate::error::Outcome;
use crate::strides::extent;
use crate::value::Value;

type Number = Complex<f64>;

pub(super) fn fft(cx: &mut Cx<'_, '_>, attrs: &FftAttrs) -> Outcome<Value> {
    let operand = cx.array(0)?;
    let lengths: Vec<usize> = attrs.fft_length.iter().map(|&l| extent(l)).collect();
    let Some((&last, others)) = lengths.split_last() else { return cx.take(0) };
    let dims: Vec<usize> = operand.dims().iter().map(|&d| extent(d)).collect();
    let half = last / 2 + 1;
    let stored = if attrs.fft_type == FftType::Irfft { half } else { last };
    let minor = dims.len() - lengths.len();
    let yielded = if attrs.fft_type == FftType::Rfft { half } else { last };
    let result: Vec<usize> = cx.array_shape()?.dims().iter().map(|&d| extent(d)).collect();
    let fits = dims[minor..dims.len() - 1] == *others
        && dims[dims.len() - 1] == stored
        && result.split_last() == Some((&yielded, &dims[..dims.len() - 1]));
    if !fits {
        return Err(unsupported(format!("dims {dims:?} are not of the transform's length")));
    }
    let length: usize = lengths.iter().product();
    let _scratch = cx.scratch(3 * size_of::<Number>(), operand.len().saturating_mul(2))?;
    cx.spend(operand.len().saturating_mul(64))?;
    let inverse = matches!(attrs.fft_type, FftType::Ifft | FftType::Irfft);
    let mut values = as_complex(operand)?;
    let mut stride = stored;
    for &n in others.iter().rev() {
        along(&mut values, n, stride, inverse);
        stride *= n;
    }
    values = match attrs.fft_type {
        FftType::Irfft => complete(&values, half, last),
        FftType::Fft | FftType::Ifft | FftType::Rfft => values,
    };
    along(&mut values, last, 1, inverse);
    if inverse {
        values.iter_mut().for_each(|v| *v /= length.max(1) as f64);
    }
    match attrs.fft_type {
        FftType::Fft | FftType::Ifft => rounded(cx, 0, &Data::C128(values)),
        FftType::Rfft => {
            let kept = values.chunks(last.max(1)).flat_map(|line| line.iter().take(half).copied());
            rounded(cx, 0, &Data::C128(kept.collect()))
        }
        FftType::Irfft => rounded(cx, 0, &Data::F64(values.iter().map(|v| v.re).collect())),
    }
}

/// The second half of a real signal's spectrum: the first half mirrored. What
/// must be real is taken to be.
fn complete(values: &[Number], half: usize, last: usize) -> Vec<Number> {
    let mut full = Vec::with_capacity(values.len() / half.max(1) * last);
    for line in values.chunks(half.max(1)) {
        full.extend((0..last).map(|k| {
            let value = if k < half { line[k] } else { line[last - k].conj() };
            if 2 * k % last.max(1) == 0 { Number::new(value.re, 0.0) } else { value }
        }));
    }
    full
}

/// Transforms every line along a dim of this size and stride.
fn along(values: &mut [Number], n: usize, stride: usize, inverse: bool) {
    if n < 2 || stride == 0 {
        return;
    }
    let sign = if inverse { 1.0 } else { -1.0 };
    let roots: Vec<Number> = (0..n)
        .map(|k| {
            let angle = sign * std::f64::consts::TAU * k as f64 / n as f64;
            Number::new(libm::cos(angle), libm::sin(angle))
        })
        .collect();
    let mut line = vec![Number::default(); n];
    let mut out = vec![Number::default(); n];
    for block in values.chunks_mut(n * stride) {
        for first in 0..stride {
            for (i, slot) in line.iter_mut().enumerate() {
                *slot = block[first + i * stride];
            }
            transform(&line, 1, &mut out, &roots, 1);
            for (i, value) in out.iter().enumerate() {
                block[first + i * stride] = *value;
            }
        }
    }
}

/// Writes the transform of every `step`-th element of `x`. A length of `p * m`
/// is done as `p` transforms of length `m`; `turns` is how many of the roots
/// make one of this length's.
fn transform(x: &[Number], step: usize, out: &mut [Number], roots: &[Number], turns: usize) {
    let n = out.len();
    let p = (2..=n).find(|p| n.is_multiple_of(*p)).unwrap_or(1);
    if n <= 1 {
        if let (Some(slot), Some(value)) = (out.first_mut(), x.first()) {
            *slot = *value;
        }
        return;
    }
    let m = n / p;
    for (i, part) in out.chunks_mut(m).enumerate() {
        transform(&x[i * step..], step * p, part, roots, turns * p);
    }
    let parts = out.to_vec();
    for (k, slot) in out.iter_mut().enumerate() {
        let root = |i: usize| roots[(i * k % n) * turns];
        *slot = (0..p).map(|i| root(i) * parts[i * m + k % m]).sum();
    }
}
