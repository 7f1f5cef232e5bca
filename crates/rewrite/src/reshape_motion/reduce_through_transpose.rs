//! Reduce before a transpose, so that less is transposed.
//!
//! ```text
//! reduce(transpose(X, p), D) = transpose(reduce(X, p[D]), q)
//! ```
//!
//! `q` restores the order of the remaining dims; often they are in order, and no transpose is left.
//! Float sums and products are regrouped, as HLO allows, unless `--exact` is given.

use std::sync::LazyLock;

use tilewright_ir::ops::shaping::TransposeAttrs;
use tilewright_ir::{Dims, Op};

use super::class_of_reduce;
use crate::driver::numbers::Class;
use crate::pattern::{Rule, any, reduce, transpose};

/// The rule of the pass.
pub static REDUCE_THROUGH_TRANSPOSE: LazyLock<Rule> = LazyLock::new(|| {
    let transpose = transpose(any("x").row_major()).named("transpose");
    Rule::new("reduce-through-transpose", reduce(transpose, any("init")).named("reduce"))
        .with_summary("reduce before a transpose, so that less is transposed")
        .with_law("reduce(transpose(x)) = transpose(reduce(x))")
        .with_class(Class::Regrouping)
        .with_class_of(|found| class_of_reduce(found, Class::Regrouping))
        .replace(|found, new| {
            let Op::Reduce(attrs) = found.op("reduce")? else { return None };
            let Op::Transpose(order) = found.op("transpose")? else { return None };
            let order = &order.dimensions;
            let source = |&dim: &i64| order.get(usize::try_from(dim).ok()?).copied();
            let reduced = attrs.dimensions.iter().map(source).collect::<Option<Dims>>()?;
            // The remaining dims, in the order of the result and in that of the new reduce.
            let wanted: Dims = order.iter().copied().filter(|dim| !reduced.contains(dim)).collect();
            let mut left = wanted.clone();
            left.sort_unstable();
            let (x, init) = (found.get("x")?, found.get("init")?);
            let sum = new.reduce(x, init, &reduced, attrs.to_apply)?;
            if wanted == left {
                return Some(sum);
            }
            let place = |dim: &i64| i64::try_from(left.iter().position(|d| d == dim)?).ok();
            let dimensions = wanted.iter().map(place).collect::<Option<Dims>>()?;
            new.op_like_root(Op::Transpose(Box::new(TransposeAttrs { dimensions })), [sum])
        })
        .say(|found| {
            let what = format!("{} before it is transposed", found.shape("x")?.without_layout());
            Some([format!("reduced {what}"), format!("reducing {what}")])
        })
});
