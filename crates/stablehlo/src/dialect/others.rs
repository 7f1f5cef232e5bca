//! The dialects around StableHLO: functions, and what its tests are written with.

use tilewright_ir::Opcode;

use super::Initial::{EmptyArray, EmptyString};
use super::Part::{
    Attribute, Dictionary, Maybe, Operand, Operands, Own as Parts, SomeOperands, Text, Types,
};
use super::ValueKind::{Any, Float, Name, Symbol, Text as Quoted};
use super::form::{BINARY, COLON, COMMA, EQUAL, FUNCTION};
use super::{Attr, FIRST, Op, Own, Part, Types as Rule, ValueKind};
use crate::import::convert;
use crate::mlir::Sign;

const TOLERANCE: Attr = attr("tolerance", Float(64)).optional();
const VALUE: Attr = attr("value", Any);
const ULPS: ValueKind = ValueKind::Integer(64, Sign::Unsigned);
const SAID: Part = Maybe(&[COMMA, Text("tolerance"), EQUAL, Attribute("tolerance")]);

const fn attr(name: &'static str, kind: ValueKind) -> Attr {
    Attr::new(name, kind)
}

const fn op(name: &'static str) -> Op {
    Op::new(name)
}

const fn binary(name: &'static str, opcode: Opcode) -> Op {
    op(name).form(BINARY).is(opcode)
}

/// The ops.
#[rustfmt::skip]
pub(super) const OPS: &[Op] = &[
    binary("arith.addf", Opcode::Add),
    binary("arith.addi", Opcode::Add),
    op("arith.constant").by(convert::constant).with(&[VALUE]).form(&[Parts(Own::Constant)]),
    binary("arith.divf", Opcode::Divide),
    binary("arith.mulf", Opcode::Multiply),
    binary("arith.muli", Opcode::Multiply),
    binary("arith.subf", Opcode::Subtract),
    binary("arith.subi", Opcode::Subtract),
    op("builtin.module")
        .with(&[attr("sym_name", Any).optional(), attr("sym_visibility", Any).optional()])
        .form(&[Parts(Own::Module)]),
    op("builtin.unrealized_conversion_cast")
        .form(&[Operands, Dictionary, COLON, Types(Rule::To)]),
    op("check.expect_almost_eq").with(&[TOLERANCE])
        .form(&[Operand, COMMA, Operand, SAID, Dictionary, COLON, Types(Rule::SameOperands)]),
    op("check.expect_almost_eq_const").with(&[TOLERANCE, VALUE])
        .form(&[Operand, COMMA, Attribute("value"), SAID, Dictionary]),
    op("check.expect_close")
        .with(&[attr("max_ulp_difference", ULPS), attr("min_ulp_difference", ULPS).optional()])
        .form(&[Operand, COMMA, Operand, COMMA, Text("max_ulp_difference"), EQUAL,
            Attribute("max_ulp_difference"),
            Maybe(&[COMMA, Text("min_ulp_difference"), EQUAL, Attribute("min_ulp_difference")]), COLON,
            Dictionary, Types(Rule::Operands)]),
    op("check.expect_eq")
        .form(&[Operand, COMMA, Operand, Dictionary, COLON, Types(Rule::SameOperands)]),
    op("check.expect_eq_const").with(&[VALUE])
        .form(&[Operand, COMMA, Attribute("value"), Dictionary]),
    op("check.expect_serialized_eq")
        .with(&[attr("iteration", ValueKind::Integer(32, Sign::Unsigned)).optional(),
            attr("probe_id", Quoted)])
        .form(&[Operand, COMMA, Text("probe_id"), EQUAL, Attribute("probe_id"),
            Maybe(&[COMMA, Text("iter"), EQUAL, Attribute("iteration")]), Dictionary, COLON,
            Types(Rule::Operands)]),
    op("func.call").by(convert::call).since(FIRST)
        .with(&[attr("arg_attrs", Any).optional().not_in_vhlo(), attr("callee", Symbol),
            attr("no_inline", Any).optional().not_in_vhlo(),
            attr("res_attrs", Any).optional().not_in_vhlo()])
        .added(&[&["arg_attrs", "res_attrs"], &["arg_attrs", "no_inline", "res_attrs"]])
        .form(&[Attribute("callee"), Text("("), Operands, Text(")"), Dictionary, COLON, FUNCTION]),
    op("func.call_indirect")
        .with(&[attr("arg_attrs", Any).optional(), attr("res_attrs", Any).optional()]),
    op("func.constant").with(&[attr("value", Symbol)]).yields(&["f"])
        .form(&[Attribute("value"), Dictionary, COLON, Types(Rule::Results)]),
    op("func.func").since(FIRST)
        .with(&[attr("arg_attrs", Any).or(EmptyArray), attr("function_type", Any),
            attr("no_inline", Any).optional().not_in_vhlo(), attr("res_attrs", Any).or(EmptyArray),
            attr("sym_name", Name), attr("sym_visibility", Any).or(EmptyString)])
        .added(&[&["no_inline"]]).form(&[Parts(Own::Function)]),
    op("func.return").since(FIRST)
        .form(&[Dictionary, SomeOperands, Maybe(&[COLON, Types(Rule::Operands)])]),
    op("interpreter.print").form(&[Operand, Dictionary, COLON, Types(Rule::Operands)]),
    op("interpreter.probe").with(&[attr("probe_id", Quoted)])
        .form(&[Operand, COMMA, Text("probe_id"), EQUAL, Attribute("probe_id"), Dictionary, COLON,
            Types(Rule::Unary)]),
    op("shape.const_shape").by(convert::const_shape).with(&[attr("shape", ValueKind::Dims)])
        .form(&[Attribute("shape"), Dictionary, COLON, Types(Rule::Results)]),
    op("tensor.cast").by(convert::same).form(&[Operand, Dictionary, COLON, Types(Rule::To)]),
    op("tensor.empty").by(convert::empty)
        .form(&[Text("("), Text(")"), Dictionary, COLON, Types(Rule::Results)]),
];
