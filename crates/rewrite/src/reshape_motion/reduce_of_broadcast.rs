//! Reduce the operand of a broadcast instead of the broadcast.
//!
//! ```text
//! sum of n copies of x = n * x        max, min, and, or of them = x
//! reduce(broadcast(X, d), D, init) = f(init, repeat_n(reduce(X, D within X)))
//! ```
//!
//! `n` is the number of times that the reduce reads each element of X: the product of the reduced
//! dims that X lacks. For a sum the type must represent `n` exactly, which bf16 does not always.
//! Products and exclusive ors are not rewritten. `n * x` rounds once where the sum of copies rounds
//! often, so float sums stay unchanged under `--exact`.
//!
//! `n * x` may overflow where a sum that begins with a large init of the other sign does not. So the
//! init of a float sum must be a constant so small that adding it to the largest number changes
//! nothing: then `n * x` overflows only where the sum of copies does, with the init or without.

use std::sync::LazyLock;

use half::{bf16, f16};
use tilewright_ir::ops::reduce::ReduceAttrs;
use tilewright_ir::ops::shaping::BroadcastAttrs;
use tilewright_ir::reducer::Monoid;
use tilewright_ir::{ArrayLiteral, Dims, ElementType, InstId, Literal, Op, Opcode, Value};

use super::class_of_reduce;
use crate::analysis::whole_number::whole_number;
use crate::driver::numbers::Class;
use crate::pattern::{Match, Replacement, Rule, any, broadcast, reduce};

/// The rule of the pass.
pub static REDUCE_OF_BROADCAST: LazyLock<Rule> = LazyLock::new(|| {
    let broadcast = broadcast(any("x").row_major()).named("broadcast").row_major();
    Rule::new("reduce-of-broadcast", reduce(broadcast, any("init")).named("reduce"))
        .with_summary("reduce what is broadcast before it is: the sum of n copies is n times one")
        .with_law("sum of n copies of x = n * x")
        .with_class(Class::Bounded)
        .with_class_of(|found| class_of_reduce(found, Class::Bounded))
        .when("have an init that cannot keep the sum finite", |found| {
            Parts::of(found).is_some_and(|parts| parts.has_harmless_init())
        })
        .replace(|found, new| Parts::of(found)?.replacement(new))
        .say(|found| {
            let (shape, copies) = (found.shape("x")?.without_layout(), Parts::of(found)?.copies);
            let what = format!("{shape} rather than {copies} copies of it");
            Some([format!("reduced {what}"), format!("reducing {what}")])
        })
});

/// A reduce of a broadcast.
struct Parts<'m> {
    found: &'m Match<'m>,
    x: InstId,
    init: InstId,
    attrs: &'m ReduceAttrs,
    /// For each dim of `x`, the dim of the broadcast.
    places: &'m [i64],
    monoid: Monoid,
    /// The number of times that the reduce reads each element of `x`: above 1.
    copies: i64,
}

impl<'m> Parts<'m> {
    fn of(found: &'m Match<'m>) -> Option<Self> {
        let Op::Reduce(attrs) = found.op("reduce")? else { return None };
        let Op::Broadcast(broadcast) = found.op("broadcast")? else { return None };
        let (wide, places) = (found.array("broadcast")?.dims(), &broadcast.dimensions);
        let lacking = attrs.dimensions.iter().filter(|dim| !places.contains(dim));
        let mut sizes = lacking.map(|&dim| wide.get(usize::try_from(dim).ok()?).copied());
        let copies = sizes.try_fold(1i64, |product, size| product.checked_mul(size?));
        Some(Self {
            found,
            x: found.get("x")?,
            init: found.get("init")?,
            attrs,
            places,
            monoid: Monoid::of(found.module(), attrs.to_apply)?,
            copies: copies.filter(|&copies| copies > 1)?,
        })
    }

    /// Checks whether the copies overflow without the init only where they do with it.
    fn has_harmless_init(&self) -> bool {
        let Monoid { opcode, element_type } = self.monoid;
        if opcode != Opcode::Add || self.monoid.regroups_exactly() {
            return true;
        }
        let Some(init) = self.found.module().constant(self.init) else { return false };
        let size = || init.as_array()?.scalar_as_f64().map(f64::abs);
        let is_lost = || Some(size()? <= half_ulp_of_largest(element_type)?);
        self.monoid.is_neutral(init) || is_lost().unwrap_or(false)
    }

    fn replacement(&self, new: &mut Replacement<'_>) -> Option<Value> {
        let places = (0i64..).zip(self.places);
        let (reduced, kept): (Vec<_>, Vec<_>) =
            places.partition(|(_, place)| self.attrs.dimensions.contains(place));
        let dims: Dims = reduced.iter().map(|&(dim, _)| dim).collect();
        let kept: Dims = kept.iter().map(|&(_, &place)| place).collect();
        // A neutral init may be combined with every copy: `0.0` still turns `-0.0` into `0.0`, as
        // before.
        let value = self.found.module().constant(self.init);
        let neutral = value.is_some_and(|value| self.monoid.is_neutral(value));
        let identity = value.is_some() && value == self.monoid.identity().as_ref();
        let one = if dims.is_empty() {
            self.x.into()
        } else {
            let init =
                if neutral { self.init.into() } else { new.constant(self.monoid.identity()?)? };
            new.reduce(self.x, init, &dims, self.attrs.to_apply)?
        };
        let all = self.repeated(new, one)?;
        let all = self.spread(new, all, &kept)?;
        let has_init = identity || (neutral && !dims.is_empty());
        if has_init { Some(all) } else { self.with_init(new, all) }
    }

    /// Returns the reduction of `copies` equal values.
    fn repeated(&self, new: &mut Replacement<'_>, value: Value) -> Option<Value> {
        match self.monoid.opcode {
            Opcode::Maximum | Opcode::Minimum | Opcode::And | Opcode::Or => Some(value),
            Opcode::Add => {
                let element_type = self.monoid.element_type;
                let count = whole_number(element_type, self.copies)?;
                let count = ArrayLiteral::new(element_type, [], count).ok()?;
                let count = new.constant(Literal::Array(count))?;
                let shape = new.shape(value)?.clone();
                let count = new.op_with_shape(everywhere(), shape.clone(), [count])?;
                new.op_with_shape(Op::Multiply, shape, [value, count])
            }
            _ => None,
        }
    }

    /// Returns the value broadcast to the dims of the result.
    fn spread(&self, new: &mut Replacement<'_>, value: Value, kept: &[i64]) -> Option<Value> {
        // Reduced dims shift the dims after them.
        let place = |&dim: &i64| {
            let before = self.attrs.dimensions.iter().filter(|&&other| other < dim).count();
            dim.checked_sub(i64::try_from(before).ok()?)
        };
        let dimensions = kept.iter().map(place).collect::<Option<Dims>>()?;
        let rank = self.found.array("reduce")?.rank();
        if dimensions.len() == rank && dimensions.windows(2).all(|pair| pair[0] < pair[1]) {
            return Some(value);
        }
        new.op_like_root(Op::Broadcast(Box::new(BroadcastAttrs { dimensions })), [value])
    }

    /// Returns the reduce's own init, applied once.
    fn with_init(&self, new: &mut Replacement<'_>, value: Value) -> Option<Value> {
        let init = new.op_like_root(everywhere(), [self.init])?;
        new.op_like_root(self.monoid.op()?, [init, value])
    }
}

/// Half the distance between the two largest numbers of a type.
fn half_ulp_of_largest(element_type: ElementType) -> Option<f64> {
    let (largest_exponent, digits) = match element_type {
        ElementType::F16 => (f16::MAX_EXP, f16::MANTISSA_DIGITS.cast_signed()),
        ElementType::BF16 => (bf16::MAX_EXP, bf16::MANTISSA_DIGITS.cast_signed()),
        ElementType::F32 => (f32::MAX_EXP, f32::MANTISSA_DIGITS.cast_signed()),
        ElementType::F64 => (f64::MAX_EXP, f64::MANTISSA_DIGITS.cast_signed()),
        _ => return None,
    };
    Some(2.0f64.powi(largest_exponent - digits - 1))
}

fn everywhere() -> Op {
    Op::Broadcast(Box::new(BroadcastAttrs { dimensions: Dims::new() }))
}
