//! Reduce before a transpose, so that less is transposed.
//!
//! ```text
//! reduce(transpose(X, p), D) = transpose(reduce(X, p[D]), q)
//! convert(transpose(X, p))   = transpose(convert(X), p)
//! ```
//!
//! `q` restores the order of the remaining dims; often they are in order, and no transpose is left.
//! Front ends convert 16-bit floats and narrow integers before they add, so a conversion may stand
//! between the two, through which compilers do not see: the sum of such a transpose may take 35 times as
//! long as that of the array. Float sums and products are
//! regrouped, as HLO allows, unless `--exact` is given.

use std::sync::LazyLock;

use tilewright_ir::ops::shaping::TransposeAttrs;
use tilewright_ir::{Dims, Op, Value};

use super::class_of_reduce;
use crate::driver::numbers::Class;
use crate::pattern::{Match, Pattern, Replacement, Rule, RuleSet, any, convert, reduce, transpose};

/// The rules of the pass.
pub static REDUCE_THROUGH_TRANSPOSE: LazyLock<RuleSet> = LazyLock::new(|| {
    let transposed = || transpose(any("x").row_major()).named("transpose");
    let rules = [
        rule("reduce-of-transpose", transposed())
            .with_law("reduce(transpose(x)) = transpose(reduce(x))"),
        rule("reduce-of-converted-transpose", convert(transposed()).named("convert"))
            .with_law("reduce(convert(transpose(x))) = transpose(reduce(convert(x)))"),
    ];
    RuleSet::new(
        "reduce-through-transpose",
        "reduce before a transpose, so that less is transposed",
        rules,
    )
});

fn rule(name: &'static str, operand: Pattern) -> Rule {
    Rule::new(name, reduce(operand, any("init")).named("reduce"))
        .with_class(Class::Regrouping)
        .with_class_of(|found| class_of_reduce(found, Class::Regrouping))
        .replace(reduced_first)
        .say(|found| {
            let what = format!("{} before it is transposed", found.shape("x")?.without_layout());
            Some([format!("reduced {what}"), format!("reducing {what}")])
        })
}

/// Reduces what is transposed, and transposes the result if its dims are out of order.
fn reduced_first(found: &Match<'_>, new: &mut Replacement<'_>) -> Option<Value> {
    let Op::Reduce(attrs) = found.op("reduce")? else { return None };
    let Op::Transpose(order) = found.op("transpose")? else { return None };
    let order = &order.dimensions;
    let source = |&dim: &i64| order.get(usize::try_from(dim).ok()?).copied();
    let reduced = attrs.dimensions.iter().map(source).collect::<Option<Dims>>()?;
    // The remaining dims, in the order of the result and in that of the new reduce.
    let wanted: Dims = order.iter().copied().filter(|dim| !reduced.contains(dim)).collect();
    let mut left = wanted.clone();
    left.sort_unstable();
    let (x, init) = (found.value("x")?, found.get("init")?);
    let x = match found.array("convert") {
        Some(converted) => new.convert(x, converted.element_type)?,
        None => x,
    };
    let sum = new.reduce(x, init, &reduced, attrs.to_apply)?;
    if wanted == left {
        return Some(sum);
    }
    let place = |dim: &i64| i64::try_from(left.iter().position(|d| d == dim)?).ok();
    let dimensions = wanted.iter().map(place).collect::<Option<Dims>>()?;
    new.op_like_root(Op::Transpose(Box::new(TransposeAttrs { dimensions })), [sum])
}
