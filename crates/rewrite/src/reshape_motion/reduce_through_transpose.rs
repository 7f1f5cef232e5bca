//! Reduce before a transpose, so that less is transposed.
//!
//! ```text
//! reduce(transpose(X, p), D) = transpose(reduce(X, p[D]), q)
//! ```
//!
//! `q` puts what is left in order; often it is in order, and no transpose is
//! left. Float sums and products are added up in another order, as HLO allows,
//! unless the order must be kept (`--exact`).

use smallvec::{SmallVec, smallvec};
use tilewright_ir::ops::reduce::ReduceAttrs;
use tilewright_ir::ops::shaping::TransposeAttrs;
use tilewright_ir::{Dims, EditError, InstId, Module, Op, Opcode, Patch, Value};

use crate::analysis::reduce::{MonoidReduce, is_plain, shape_like};
use crate::driver::attempt::{Attempt, attempt_each};
use crate::driver::numbers::{Class, FloatMode};
use crate::driver::{Context, Pass};

/// See the module.
pub struct ReduceThroughTranspose;

impl Pass for ReduceThroughTranspose {
    fn name(&self) -> &'static str {
        "reduce-through-transpose"
    }

    fn summary(&self) -> &'static str {
        "reduce before a transpose, so that less is transposed"
    }

    fn class(&self) -> Class {
        Class::Regrouping
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
    let (Op::Reduce(attrs), [transpose, init]) = (module.op(id), module.operands(id)) else {
        return None;
    };
    let (Op::Transpose(order), [source]) = (module.op(*transpose), module.operands(*transpose))
    else {
        return None;
    };
    MonoidReduce::of(module, id, float_mode)?;
    let (from, result) = (module.array_shape(*source)?, module.array_shape(id)?);
    if module.extras(*transpose).is_some() || !is_plain(from) {
        return None;
    }
    let order = &order.dimensions;
    let mut reduced = SmallVec::<[i64; 6]>::new();
    for &dim in &attrs.dimensions {
        reduced.push(*order.get(usize::try_from(dim).ok()?)?);
    }
    reduced.sort_unstable();
    // What is left, as it is wanted and as it comes out of the reduce.
    let wanted: Dims = order.iter().copied().filter(|dim| !reduced.contains(dim)).collect();
    let mut left = wanted.clone();
    left.sort_unstable();
    let size = |&dim: &i64| usize::try_from(dim).ok().and_then(|d| from.dims().get(d)).copied();
    let sizes = left.iter().map(size).collect::<Option<Dims>>()?;
    let mut patch = Patch::new();
    let dimensions = Dims::from_slice(&reduced);
    let reduce = Op::Reduce(Box::new(ReduceAttrs { dimensions, to_apply: attrs.to_apply }));
    let operands = [Value::Old(*source), Value::Old(*init)];
    let mut value = patch.add(id, reduce, shape_like(result, &sizes), operands);
    if wanted != left {
        let place = |dim: &i64| i64::try_from(left.iter().position(|d| d == dim)?).ok();
        let dimensions = wanted.iter().map(place).collect::<Option<Dims>>()?;
        let turn = Op::Transpose(Box::new(TransposeAttrs { dimensions }));
        value = patch.add(id, turn, module.shape(id).clone(), [value]);
    }
    patch.replace(id, value);
    let shape = module.shape(*source).without_layout();
    Some(Attempt {
        patch,
        frees: smallvec![*transpose],
        done: format!("reduced {shape} before it is transposed"),
        would: format!("reducing {shape} before it is transposed"),
    })
}
