//! Shardy.

use super::Part::{
    Attribute, Dictionary, Glued, Maybe, Operand, Operands, Own as Parts, SomeOperands, Text, Types,
};
use super::ValueKind::{Any, Name, Sharding, Shardings, Text as Quoted};
use super::form::{COLON, EQUAL, FUNCTION, GLUED};
use super::{Attr, Op, Own, Part, Types as Rule, ValueKind};
use crate::import::convert;
use crate::mlir::Sign;

const DIRECTION: ValueKind = ValueKind::Number(&["NONE", "FORWARD", "BACKWARD", "BOTH"]);
const ONE_TYPE: Part = Types(Rule::Unary);

const OUT: Attr = attr("out_sharding", Sharding("sharding"));
const LISTS: ValueKind = Sharding("list_of_axis_ref_lists");

/// `out_sharding=<@mesh, [{}]> {..} : type`, after what a form begins with.
macro_rules! to_sharding {
    ($($part:expr),*) => {
        &[$($part,)* Operand, Text("out_sharding"), GLUED, Attribute("out_sharding"), Dictionary, COLON,
            ONE_TYPE]
    };
}

const fn attr(name: &'static str, kind: ValueKind) -> Attr {
    Attr::new(name, kind)
}

const fn op(name: &'static str) -> Op {
    Op::new(name)
}

/// An op that states a sharding.
const fn states(name: &'static str) -> Op {
    const SHARDING: &[Attr] = &[attr("sharding", Sharding("sharding"))];
    op(name).with(SHARDING).form(&[Operand, Attribute("sharding"), Dictionary, COLON, ONE_TYPE])
}

/// The ops.
#[rustfmt::skip]
pub(super) const OPS: &[Op] = &[
    op("sdy.all_gather").by(convert::along_no_axes).with(&[attr("gathering_axes", LISTS), OUT])
        .form(to_sharding!(Attribute("gathering_axes"))),
    op("sdy.all_reduce").by(convert::along_no_axes)
        .with(&[OUT, attr("reduction_axes", Sharding("axis_ref_list")),
            attr("reduction_op", Any).optional()])
        .form(to_sharding!(Parts(Own::ReductionKind), Attribute("reduction_axes"))),
    op("sdy.all_slice").by(convert::along_no_axes).with(&[OUT, attr("slicing_axes", LISTS)])
        .form(to_sharding!(Attribute("slicing_axes"))),
    op("sdy.all_to_all").with(&[OUT, attr("params", Sharding("all_to_all_param_list"))])
        .form(to_sharding!(Attribute("params"))),
    op("sdy.collective_permute").with(&[OUT]).form(to_sharding!()),
    op("sdy.constant").by(convert::constant).with(&[attr("value", Any)])
        .form(&[Parts(Own::Constant)]),
    op("sdy.data_flow_edge").with(&[attr("sharding", Sharding("sharding")).optional()])
        .form(&[Operand, Maybe(&[Text("sharding"), GLUED, Attribute("sharding")]), Dictionary, COLON,
            ONE_TYPE]),
    op("sdy.func_data_flow_edge").form(&[Operand, Dictionary, COLON, ONE_TYPE]),
    op("sdy.manual_computation")
        .with(&[attr("in_shardings", Shardings), attr("manual_axes", Sharding("manual_axes")),
            attr("out_shardings", Shardings)])
        .form(&[Text("("), Operands, Text(")"), Text("in_shardings"), GLUED, Attribute("in_shardings"),
            Text("out_shardings"), GLUED, Attribute("out_shardings"), Text("manual_axes"), GLUED,
            Attribute("manual_axes"), Parts(Own::LabelledRegion), Dictionary, COLON, FUNCTION]),
    op("sdy.mesh").by(convert::nothing)
        .with(&[attr("mesh", Sharding("mesh")), attr("sym_name", Name)])
        .form(&[Attribute("sym_name"), EQUAL, Attribute("mesh"), Dictionary]),
    op("sdy.named_computation")
        .with(&[attr("in_shardings", Shardings).optional(), attr("name", Quoted),
            attr("out_shardings", Shardings).optional()])
        .form(&[Text("<"), Attribute("name"), Text(">"), Glued("("), Operands, Text(")"),
            Maybe(&[Text("in_shardings"), GLUED, Attribute("in_shardings")]),
            Maybe(&[Text("out_shardings"), GLUED, Attribute("out_shardings")]),
            Parts(Own::LabelledRegion), Dictionary, COLON, FUNCTION]),
    op("sdy.propagation_barrier").with(&[attr("allowed_direction", DIRECTION)])
        .form(&[Operand, Text("allowed_direction"), GLUED, Attribute("allowed_direction"), Dictionary,
            COLON, ONE_TYPE]),
    op("sdy.reduce_scatter").by(convert::along_no_axes)
        .with(&[OUT, attr("reduce_scatter_axes", LISTS), attr("reduction_op", Any).optional()])
        .form(to_sharding!(Parts(Own::ReductionKind), Attribute("reduce_scatter_axes"))),
    op("sdy.replicated_to_unreduced").with(&[attr("axes", Sharding("axis_ref_list")), OUT])
        .form(to_sharding!(Attribute("axes"))),
    states("sdy.reshard"),
    op("sdy.return").form(&[Dictionary, SomeOperands, Maybe(&[COLON, Types(Rule::Operands)])]),
    op("sdy.sharded_to_unreduced").with(&[attr("axes", LISTS), OUT])
        .form(to_sharding!(Attribute("axes"))),
    states("sdy.sharding_constraint"),
    op("sdy.sharding_group").with(&[attr("group_id", ValueKind::Integer(64, Sign::Signless))])
        .form(&[Operand, Text("group_id"), GLUED, Attribute("group_id"), Dictionary, COLON,
            Types(Rule::Operands)]),
];
