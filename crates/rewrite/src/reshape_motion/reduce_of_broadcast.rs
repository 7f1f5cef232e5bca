//! Reductions of what a broadcast repeats.
//!
//! ```text
//! sum of n copies of x = n * x        max, min, and, or of them = x
//! reduce(broadcast(X, d), D, init) = f(init, repeat_n(reduce(X, D within X)))
//! ```
//!
//! `n` is how often the reduce meets each element of X: the product of the
//! reduced dims that X lacks. For a sum `n` must be a number of the type, which
//! in bf16 not every one is. Products and exclusive ors are left alone. The
//! product rounds once where the sum of copies rounds often, so float sums stay
//! where their order must be kept (`--exact`).

use smallvec::smallvec;
use tilewright_ir::ops::reduce::ReduceAttrs;
use tilewright_ir::ops::shaping::BroadcastAttrs;
use tilewright_ir::reducer::Monoid;
use tilewright_ir::{
    ArrayLiteral, ArrayShape, Dims, EditError, InstId, Literal, Module, Op, Opcode, Patch, Shape,
    Value,
};

use crate::analysis::reduce::{MonoidReduce, is_plain, shape_like};
use crate::analysis::whole_number::whole_number;
use crate::driver::attempt::{Attempt, attempt_each};
use crate::driver::numbers::{Class, FloatMode};
use crate::driver::{Context, Pass};

/// See the module.
pub struct ReduceOfBroadcast;

impl Pass for ReduceOfBroadcast {
    fn name(&self) -> &'static str {
        "reduce-of-broadcast"
    }

    fn summary(&self) -> &'static str {
        "reduce what is broadcast before it is: the sum of n copies is n times one"
    }

    fn class(&self) -> Class {
        Class::Bounded
    }

    fn is_cost_gated(&self) -> bool {
        true
    }

    fn run(&self, module: &mut Module, cx: &mut Context<'_>) -> Result<usize, EditError> {
        attempt_each(self, Opcode::Reduce, module, cx, |module, id, float_mode| {
            plan(module, id, float_mode).map(Ok)
        })
    }
}

fn plan(module: &Module, id: InstId, float_mode: FloatMode) -> Option<Attempt> {
    let (Op::Reduce(attrs), [broadcast, init]) = (module.op(id), module.operands(id)) else {
        return None;
    };
    let (Op::Broadcast(places), [source]) = (module.op(*broadcast), module.operands(*broadcast))
    else {
        return None;
    };
    let monoid = MonoidReduce::of(module, id, float_mode)?.reducer.monoid()?;
    let (from, wide) = (module.array_shape(*source)?, module.array_shape(*broadcast)?);
    if module.extras(*broadcast).is_some() || !is_plain(from) || !is_plain(wide) {
        return None;
    }
    let copies = copies(wide, &attrs.dimensions, &places.dimensions)?;
    let mut build = Build { module, id, monoid, init: *init, patch: Patch::new() };
    let value = build.whole(attrs, *source, &places.dimensions, copies)?;
    let mut patch = build.patch;
    patch.replace(id, value);
    let shape = module.shape(*source).without_layout();
    Some(Attempt {
        patch,
        frees: smallvec![*broadcast],
        done: format!("reduced {shape} rather than {copies} copies of it"),
        would: format!("reducing {shape} rather than {copies} copies of it"),
    })
}

/// How often the reduce meets each element of what was broadcast: above 1.
fn copies(wide: &ArrayShape, reduced: &[i64], places: &[i64]) -> Option<i64> {
    let lacking = reduced.iter().filter(|dim| !places.contains(dim));
    let mut sizes = lacking.map(|&dim| wide.dims().get(usize::try_from(dim).ok()?).copied());
    let copies = sizes.try_fold(1i64, |product, size| product.checked_mul(size?));
    copies.filter(|&copies| copies > 1)
}

struct Build<'a> {
    module: &'a Module,
    id: InstId,
    monoid: Monoid,
    init: InstId,
    patch: Patch,
}

impl Build<'_> {
    fn whole(
        &mut self,
        attrs: &ReduceAttrs,
        source: InstId,
        places: &[i64],
        copies: i64,
    ) -> Option<Value> {
        let from = self.module.array_shape(source)?;
        let (mut dims, mut sizes, mut kept) = (Dims::new(), Dims::new(), Dims::new());
        for (dim, (place, &size)) in (0i64..).zip(places.iter().zip(from.dims())) {
            if attrs.dimensions.contains(place) {
                dims.push(dim);
            } else {
                sizes.push(size);
                kept.push(*place);
            }
        }
        // An init that is neutral may be met by every copy: `0.0` then still
        // makes of `-0.0` what it made before.
        let value = self.module.constant(self.init);
        let neutral = value.is_some_and(|value| self.monoid.is_neutral(value));
        let identity = value.is_some() && value == self.monoid.identity().as_ref();
        let one = if dims.is_empty() {
            Value::Old(source)
        } else {
            let init = if neutral { Value::Old(self.init) } else { self.identity()? };
            let reduce = ReduceAttrs { dimensions: dims.clone(), to_apply: attrs.to_apply };
            let shape = shape_like(self.module.array_shape(self.id)?, &sizes);
            self.patch.add(self.id, Op::Reduce(Box::new(reduce)), shape, [Value::Old(source), init])
        };
        let all = self.repeated(one, copies)?;
        let all = self.spread(all, &attrs.dimensions, &kept)?;
        let has_init = identity || (neutral && !dims.is_empty());
        if has_init { Some(all) } else { self.with_init(all) }
    }

    fn identity(&mut self) -> Option<Value> {
        let identity = Op::Constant(Box::new(self.monoid.identity()?));
        let scalar = Shape::scalar(self.monoid.element_type);
        Some(self.patch.add(self.id, identity, scalar, []))
    }

    /// What `copies` of a value come to.
    fn repeated(&mut self, value: Value, copies: i64) -> Option<Value> {
        match self.monoid.opcode {
            Opcode::Maximum | Opcode::Minimum | Opcode::And | Opcode::Or => Some(value),
            Opcode::Add => {
                let count = whole_number(self.monoid.element_type, copies)?;
                let count = ArrayLiteral::new(self.monoid.element_type, [], count).ok()?;
                let count = Op::Constant(Box::new(Literal::Array(count)));
                let scalar = Shape::scalar(self.monoid.element_type);
                let count = self.patch.add(self.id, count, scalar, []);
                let shape = self.patch.shape(self.module, value).clone();
                let count = self.patch.add(self.id, everywhere(), shape.clone(), [count]);
                Some(self.patch.add(self.id, Op::Multiply, shape, [value, count]))
            }
            _ => None,
        }
    }

    /// The value in the dims of the result, of which it may lack some.
    fn spread(&mut self, value: Value, reduced: &[i64], kept: &[i64]) -> Option<Value> {
        // A dim of the result is one of the broadcast, less those reduced before it.
        let place = |&dim: &i64| {
            let before = reduced.iter().filter(|&&other| other < dim).count();
            dim.checked_sub(i64::try_from(before).ok()?)
        };
        let places = kept.iter().map(place).collect::<Option<Dims>>()?;
        let result = self.module.array_shape(self.id)?;
        if places.len() == result.rank() && places.windows(2).all(|pair| pair[0] < pair[1]) {
            return Some(value);
        }
        let op = Op::Broadcast(Box::new(BroadcastAttrs { dimensions: places }));
        Some(self.patch.add(self.id, op, self.module.shape(self.id).clone(), [value]))
    }

    /// The reduce's own init, applied once.
    fn with_init(&mut self, value: Value) -> Option<Value> {
        let shape = self.module.shape(self.id).clone();
        let init = [Value::Old(self.init)];
        let init = self.patch.add(self.id, everywhere(), shape.clone(), init);
        Some(self.patch.add(self.id, self.monoid.op()?, shape, [init, value]))
    }
}

fn everywhere() -> Op {
    Op::Broadcast(Box::new(BroadcastAttrs { dimensions: Dims::new() }))
}
