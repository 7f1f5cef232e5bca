//! Evaluates calls of unknown functions, each as one deterministic function.
//!
//! To compare two programs it is enough that a call returns equal results for equal operands.
//! Its results depend on its target, its options, every bit of its integer operands, and
//! smoothly on the floats: a rounding error before it stays a rounding error after it.

use std::hash::{Hash as _, Hasher as _};

use rustc_hash::FxHasher;
use tilewright_ir::ops::control::CustomCallAttrs;
use tilewright_ir::{ArrayShape, Data, ElementType, Shape};

use crate::error::Outcome;
use crate::eval::{Cx, tuple, unsupported};
use crate::strides::{Level, Nest, collect, extent, row_major};
use crate::value::{Array, Value};

/// Returns the results of an unknown call.
pub(super) fn evaluate(cx: &mut Cx<'_, '_>, attrs: &CustomCallAttrs) -> Outcome<Value> {
    let mut hasher = FxHasher::default();
    attrs.custom_call_target.hash(&mut hasher);
    let extras = cx.module().extras(cx.id);
    extras.map(|extras| format!("{:?}", extras.backend_config)).hash(&mut hasher);
    let mut sum = Sum::default();
    for index in 0..cx.operands.len() {
        take_in(cx.operand(index)?, &mut hasher, &mut sum);
    }
    let mut unknown = Unknown { seed: hasher.finish(), floats: sum.mean(), next: 0 };
    made(cx, cx.shape(), &mut unknown)
}

/// The floats of all operands, combined to one number.
#[derive(Default)]
struct Sum {
    total: f64,
    count: u64,
}

impl Sum {
    /// Each float has a weight of its own and counts for at most 1.
    fn add(&mut self, number: f64) {
        let weight = part(mixed(self.count ^ GOLDEN)) * 2.0 - 1.0;
        let tame = if number.is_nan() { 1.0 } else { number / (1.0 + number.abs()) };
        let tame = if number.is_infinite() { number.signum() } else { tame };
        self.total += weight * tame;
        self.count = self.count.wrapping_add(1);
    }

    fn mean(&self) -> f64 {
        self.total / (self.count.max(1) as f64).sqrt()
    }
}

fn take_in(value: &Value, hasher: &mut FxHasher, sum: &mut Sum) {
    match value {
        Value::Tuple(elements) => elements.iter().for_each(|e| take_in(e, hasher, sum)),
        Value::Token => {}
        Value::Array(array) => {
            array.dims().hash(hasher);
            match array.data() {
                Data::F16(v) => v.iter().for_each(|x| sum.add(x.to_f64())),
                Data::BF16(v) => v.iter().for_each(|x| sum.add(x.to_f64())),
                Data::F32(v) => v.iter().for_each(|&x| sum.add(x.into())),
                Data::F64(v) => v.iter().for_each(|&x| sum.add(x)),
                Data::C64(v) => v.iter().for_each(|x| {
                    sum.add(x.re.into());
                    sum.add(x.im.into());
                }),
                Data::C128(v) => v.iter().for_each(|x| {
                    sum.add(x.re);
                    sum.add(x.im);
                }),
                Data::Pred(v) => v.hash(hasher),
                Data::S8(v) => v.hash(hasher),
                Data::S16(v) => v.hash(hasher),
                Data::S32(v) => v.hash(hasher),
                Data::S64(v) => v.hash(hasher),
                Data::U8(v) => v.hash(hasher),
                Data::U16(v) => v.hash(hasher),
                Data::U32(v) => v.hash(hasher),
                Data::U64(v) => v.hash(hasher),
            }
        }
    }
}

/// The source of results.
struct Unknown {
    seed: u64,
    floats: f64,
    next: u64,
}

impl Unknown {
    /// From -1 to 1, as smooth in the floats of the operands as a sine.
    fn float(&mut self) -> f64 {
        let bits = self.bits();
        libm::sin(std::f64::consts::TAU * part(bits) + self.floats)
    }

    fn bits(&mut self) -> u64 {
        self.next = self.next.wrapping_add(1);
        mixed(self.seed ^ self.next.wrapping_mul(GOLDEN))
    }

    /// 0 or 1, which fits all integers.
    fn bit(&mut self) -> u8 {
        u8::from(self.bits() >> 63 == 1)
    }
}

/// An odd number whose multiples are spread evenly.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// Well mixed bits (the finalizer of SplitMix64).
fn mixed(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

/// Bits as a number from 0 to 1.
fn part(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

fn made(cx: &Cx<'_, '_>, shape: &Shape, unknown: &mut Unknown) -> Outcome<Value> {
    match shape {
        Shape::Token => Ok(Value::Token),
        Shape::Tuple(elements) => {
            let elements = elements.iter().map(|element| made(cx, element, unknown));
            Ok(tuple(elements.collect::<Outcome<Vec<_>>>()?))
        }
        Shape::Array(array) if array.is_static() => made_array(cx, array, unknown),
        Shape::Array(_) | Shape::Buffer(_) | Shape::Opaque => {
            Err(unsupported(format!("an unknown call makes no {}", shape.without_layout())))
        }
    }
}

fn made_array(cx: &Cx<'_, '_>, shape: &ArrayShape, unknown: &mut Unknown) -> Outcome<Value> {
    let allocation = cx.allocate(shape)?;
    cx.spend(allocation.len)?;
    let data = elements(shape.element_type, allocation.len, unknown);
    allocation.with(data)
}

fn elements(element_type: ElementType, len: usize, unknown: &mut Unknown) -> Data {
    use half::{bf16, f16};
    use num_complex::Complex;
    fn many<T>(len: usize, mut one: impl FnMut() -> T) -> Vec<T> {
        (0..len).map(|_| one()).collect()
    }
    match Data::zeros(element_type, 0) {
        Data::Pred(_) => Data::Pred(many(len, || unknown.bit() == 1)),
        Data::S8(_) => Data::S8(many(len, || unknown.bit().cast_signed())),
        Data::S16(_) => Data::S16(many(len, || unknown.bit().into())),
        Data::S32(_) => Data::S32(many(len, || unknown.bit().into())),
        Data::S64(_) => Data::S64(many(len, || unknown.bit().into())),
        Data::U8(_) => Data::U8(many(len, || unknown.bit())),
        Data::U16(_) => Data::U16(many(len, || unknown.bit().into())),
        Data::U32(_) => Data::U32(many(len, || unknown.bit().into())),
        Data::U64(_) => Data::U64(many(len, || unknown.bit().into())),
        Data::F16(_) => Data::F16(many(len, || f16::from_f64(unknown.float()))),
        Data::BF16(_) => Data::BF16(many(len, || bf16::from_f64(unknown.float()))),
        Data::F32(_) => Data::F32(many(len, || unknown.float() as f32)),
        Data::F64(_) => Data::F64(many(len, || unknown.float())),
        Data::C64(_) => {
            Data::C64(many(len, || Complex::new(unknown.float() as f32, unknown.float() as f32)))
        }
        Data::C128(_) => Data::C128(many(len, || Complex::new(unknown.float(), unknown.float()))),
    }
}

/// Returns the result of a call between the shapes of the whole and of a shard: for a dim that
/// shrinks, the first part; for one that grows, its elements repeated. One operand for each
/// result.
pub(super) fn between_shards(cx: &mut Cx<'_, '_>) -> Outcome<Value> {
    match cx.shape() {
        Shape::Array(to) => between(cx, cx.array(0)?, to),
        Shape::Tuple(shapes) => {
            let part = |(index, shape): (usize, &Shape)| match shape {
                Shape::Array(to) => between(cx, cx.array(index)?, to),
                Shape::Token => Ok(Value::Token),
                other => Err(unsupported(format!("a shard that is {other}"))),
            };
            Ok(tuple(shapes.iter().enumerate().map(part).collect::<Outcome<Vec<_>>>()?))
        }
        other => Err(unsupported(format!("a shard that is {other}"))),
    }
}

fn between(cx: &Cx<'_, '_>, from: &Array, to: &ArrayShape) -> Outcome<Value> {
    let fits = from.rank() == to.rank() && from.element_type() == to.element_type;
    let divides = |(a, b): (&i64, &i64)| *a > 0 && *b > 0 && (a % b == 0 || b % a == 0);
    if !fits || !from.dims().iter().zip(to.dims()).all(divides) {
        return Err(unsupported(format!("its operand is no whole number of shards of {to}")));
    }
    let allocation = cx.allocate(to)?;
    cx.spend(allocation.len)?;
    // A dim that grows is two dims: the repetition, with stride 0, and the original dim.
    let strides = row_major(from.dims());
    let dims = from.dims().iter().zip(to.dims()).zip(strides);
    let levels = dims.flat_map(|((&from, &to), stride)| {
        let (times, size) = (extent((to / from).max(1)), extent(from.min(to)));
        [Level { size: times, strides: [0] }, Level { size, strides: [stride] }]
    });
    let data = collect(from.data(), &Nest::new(levels), 0);
    allocation.with(data)
}
