//! Random numbers.
//!
//! `rng-bit-generator` yields the same bits as XLA's expansion of it. The numbers of `rng` are
//! not specified: here they come from a generator that starts anew with every evaluation, so
//! that the results are reproducible. `rng-get-and-update-state` counts from the same number as
//! XLA:CPU, each instruction by itself.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore as _, SeedableRng as _};
use rustc_hash::FxHashMap;
use tilewright_ir::ops::random::{
    Distribution, RngAlgorithm, RngAttrs, RngBitGeneratorAttrs, RngStateAttrs,
};
use tilewright_ir::{ArrayShape, Data, ElementType, InstId};

use super::bits::reinterpret;
use super::linalg::widened;
use super::random_bits::{Generator, Philox, ThreeFry};
use super::{Cx, elementwise, tuple, unsupported};
use crate::error::{Fault, Outcome, WRONG_STORAGE};
use crate::value::{Array, Value};

/// The state that random numbers leave for the next ones of an evaluation.
pub(crate) struct Source {
    draws: ChaCha8Rng,
    states: FxHashMap<InstId, u128>,
}

/// The initial state of `rng-get-and-update-state`, as in XLA:CPU.
const FIRST_STATE: u128 = 0x0701_2395;

impl Source {
    /// The same in every evaluation.
    pub(crate) fn new() -> Self {
        Self { draws: ChaCha8Rng::seed_from_u64(0), states: FxHashMap::default() }
    }

    /// Returns a number from 0 to 1, without 1.
    fn unit(&mut self) -> f64 {
        (self.draws.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Normally distributed, by Box and Muller's method.
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * libm::log(1.0 - self.unit())).sqrt();
        radius * libm::cos(std::f64::consts::TAU * self.unit())
    }

    /// Returns a number from 0 to `limit - 1`; the bias, of less than 2^-64, is left.
    fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.draws.next_u64()) * u128::from(limit)) >> 64) as u64
    }
}

/// Any numbers of the distribution.
pub(super) fn rng(cx: &mut Cx<'_, '_>, attrs: &RngAttrs) -> Outcome<Value> {
    let result = cx.allocate_result()?;
    let element_type = result.element_type;
    let _scratch = cx.scratch(2 * size_of::<i128>(), result.len)?;
    let data = match attrs.distribution {
        Distribution::Normal => {
            let (mean, deviation) = (real(cx, 0)?, real(cx, 1)?);
            draw(cx, result.len, |random| mean + deviation * random.normal())
        }
        Distribution::Uniform if element_type.is_float() => {
            let (low, high) = (real(cx, 0)?, real(cx, 1)?);
            let drawn = draw(cx, result.len, |random| low + (high - low) * random.unit());
            let near = converted(&Data::F64(drawn), ElementType::F64, element_type)?;
            let Data::F64(mut near) = converted(&near, element_type, ElementType::F64)? else {
                return Err(WRONG_STORAGE);
            };
            // Rounded to the type it may be the upper bound, which is excluded.
            for value in near.iter_mut().filter(|value| low < high && **value >= high) {
                *value = low;
            }
            near
        }
        Distribution::Uniform => {
            let (low, high) = (integer(cx, 0)?, integer(cx, 1)?);
            let size = u64::try_from(high - low).unwrap_or(1).max(1);
            let drawn = draw(cx, result.len, |random| low + i128::from(random.below(size)));
            let drawn = drawn.into_iter().map(|value| value as i64).collect();
            return result.with(converted(&Data::S64(drawn), ElementType::S64, element_type)?);
        }
    };
    result.with(converted(&Data::F64(data), ElementType::F64, element_type)?)
}

fn draw<T>(cx: &mut Cx<'_, '_>, count: usize, mut one: impl FnMut(&mut Source) -> T) -> Vec<T> {
    (0..count).map(|_| one(&mut cx.evaluator.random)).collect()
}

fn converted(data: &Data, from: ElementType, to: ElementType) -> Outcome<Data> {
    let mut out = Data::zeros(to, 0);
    if from == to {
        return Ok(data.clone());
    }
    elementwise::convert_kernel(from, to)?(&[data], data.len(), &mut out)?;
    Ok(out)
}

/// Returns a scalar operand.
fn real(cx: &Cx<'_, '_>, operand: usize) -> Outcome<f64> {
    match widened(cx.array(operand)?, ElementType::F64)? {
        Data::F64(values) => values.first().copied().ok_or(WRONG_STORAGE),
        _ => Err(WRONG_STORAGE),
    }
}

fn integer(cx: &Cx<'_, '_>, operand: usize) -> Outcome<i128> {
    let array = cx.array(operand)?;
    if let Data::U64(values) = array.data() {
        return values.first().map(|&value| i128::from(value)).ok_or(WRONG_STORAGE);
    }
    match widened(array, ElementType::S64)? {
        Data::S64(values) => values.first().map(|&value| i128::from(value)).ok_or(WRONG_STORAGE),
        _ => Err(WRONG_STORAGE),
    }
}

/// XLA:CPU's default is Philox.
pub(super) fn rng_bit_generator(
    cx: &mut Cx<'_, '_>,
    attrs: &RngBitGeneratorAttrs,
) -> Outcome<Value> {
    let state = cx.array(0)?;
    let is_tuple = cx.shape().as_tuple().is_some();
    let shape = cx.leaf_shape(usize::from(is_tuple))?;
    let words = state_words(state)?;
    let (state, result) = match attrs.algorithm {
        RngAlgorithm::ThreeFry => bits(cx, shape, ThreeFry::new(words, shape.dims())?)?,
        RngAlgorithm::Philox | RngAlgorithm::Default => bits(cx, shape, Philox::new(words)?)?,
    };
    if !is_tuple {
        return Ok(result);
    }
    let new_state = cx.allocate(cx.leaf_shape(0)?)?.of(state)?;
    Ok(tuple([new_state, result]))
}

fn state_words(state: &Array) -> Outcome<&[u64]> {
    if state.element_type() != ElementType::U64 || state.rank() != 1 {
        return Err(unsupported(format!(
            "its state is {}{:?}; give it as u64[2] or, for Philox, u64[3]",
            state.element_type(),
            state.dims()
        )));
    }
    state.slice::<u64>()
}

/// Returns the new state and the bits of an array.
fn bits(
    cx: &Cx<'_, '_>,
    shape: &ArrayShape,
    generator: impl Generator,
) -> Outcome<(Vec<u64>, Value)> {
    let result = cx.allocate(shape)?;
    let _scratch = cx.scratch(2 * size_of::<u64>(), result.len)?;
    cx.spend(result.len.saturating_mul(8))?;
    let element_type = result.element_type;
    let indices = 0..result.len;
    let (data, from) = match element_type.bits() {
        _ if element_type == ElementType::Pred || element_type.is_complex() => {
            return Err(unsupported(format!("XLA makes no random bits of {element_type}")));
        }
        64 => (Data::U64(indices.map(|i| generator.word64(i)).collect()), ElementType::U64),
        32 => (Data::U32(indices.map(|i| generator.word32(i)).collect()), ElementType::U32),
        16 => {
            let words = indices.map(|i| generator.word32(i) as u16);
            (Data::U16(words.collect()), ElementType::U16)
        }
        bits => {
            let mask = u8::MAX >> (8 - bits.clamp(1, 8));
            let words = indices.map(|i| generator.word32(i) as u8 & mask).collect();
            let unsigned = [ElementType::U1, ElementType::U2, ElementType::U4, ElementType::U8];
            let unsigned = unsigned.into_iter().find(|t| t.bits() == bits);
            (Data::U8(words), unsigned.unwrap_or(element_type))
        }
    };
    let state = generator.next_state(result.len, element_type.bits() == 64);
    Ok((state, result.with(reinterpret(&data, from, element_type)?)?))
}

/// Returns the state of 128 bits, the lower half first, before it advances.
pub(super) fn rng_state(cx: &mut Cx<'_, '_>, attrs: &RngStateAttrs) -> Outcome<Value> {
    let state = cx.evaluator.random.states.entry(cx.id).or_insert(FIRST_STATE);
    let now = *state;
    *state = now.wrapping_add_signed(i128::from(attrs.delta));
    let result = cx.allocate_result()?;
    if result.len != 2 {
        return Err(Fault::Internal("a state is not two numbers"));
    }
    result.of(vec![now as u64, (now >> 64) as u64])
}
