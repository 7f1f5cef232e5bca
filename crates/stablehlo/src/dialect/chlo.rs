//! CHLO: functions that XLA expands, or for which HLO has an op.

use tilewright_ir::Opcode;

use super::Part::{Attribute, Dictionary, Maybe, Operand, Own as Parts, Text, Types};
use super::ValueKind::{Any, Bool, Dims, Word};
use super::form::{ARROW, COLON, COMMA, EQUAL};
use super::initial::Initial;
use super::mhlo::{RAGGED_DOT, SCAN};
use super::{Attr, Op, Own, Part, Types as Rule, ValueKind};
use crate::import::{Function, convert, functions};
use crate::mlir::Sign;

const UNARY: &[Part] = &[Operand, Dictionary, COLON, ARROW];
const BINARY: &[Part] = &[Operand, COMMA, Operand, Dictionary, COLON, ARROW];

const fn op(name: &'static str) -> Op {
    Op::new(name)
}

const fn unary(name: &'static str) -> Op {
    op(name).form(UNARY)
}

/// A function of one value that HLO does not have for all types, and the formula.
const fn function(name: &'static str, function: Function) -> Op {
    unary(name).computes(function)
}

const fn binary(name: &'static str) -> Op {
    op(name).form(BINARY)
}

const BROADCAST: Attr = Attr::new("broadcast_dimensions", Dims).optional();

/// An op that broadcasts its two operands first.
const fn broadcast(name: &'static str) -> Op {
    op(name).by(convert::elementwise).with(&[BROADCAST]).form(&[
        Operand,
        COMMA,
        Operand,
        Dictionary,
        COLON,
        Types(Rule::Brackets),
    ])
}

/// The ops.
#[rustfmt::skip]
pub(super) const OPS: &[Op] = &[
    unary("chlo._asin_acos_kernel"),
    function("chlo.acos", functions::ACOS).is(Opcode::Acos).composite(),
    function("chlo.acosh", functions::ACOSH).is(Opcode::Acosh).composite(),
    unary("chlo.asin").is(Opcode::Asin).composite(),
    function("chlo.asinh", functions::ASINH).is(Opcode::Asinh).composite(),
    function("chlo.atan", functions::ATAN).composite(),
    function("chlo.atanh", functions::ATANH).is(Opcode::Atanh).composite(),
    function("chlo.bessel_i1e", functions::BESSEL_I1E),
    broadcast("chlo.broadcast_add"),
    broadcast("chlo.broadcast_and"),
    broadcast("chlo.broadcast_atan2"),
    broadcast("chlo.broadcast_compare")
        .with(&[BROADCAST, Attr::new("compare_type", Word("comparison_type")).optional(),
            Attr::new("comparison_direction", Word("comparison_direction"))]),
    broadcast("chlo.broadcast_complex"),
    broadcast("chlo.broadcast_divide"),
    broadcast("chlo.broadcast_maximum"),
    broadcast("chlo.broadcast_minimum"),
    broadcast("chlo.broadcast_multiply"),
    broadcast("chlo.broadcast_next_after"),
    broadcast("chlo.broadcast_or"),
    broadcast("chlo.broadcast_polygamma"),
    broadcast("chlo.broadcast_power"),
    broadcast("chlo.broadcast_remainder"),
    op("chlo.broadcast_select").by(convert::elementwise)
        .form(&[Operand, COMMA, Operand, COMMA, Operand, Dictionary, COLON, Types(Rule::Brackets)]),
    broadcast("chlo.broadcast_shift_left"),
    broadcast("chlo.broadcast_shift_right_arithmetic"),
    broadcast("chlo.broadcast_shift_right_logical"),
    broadcast("chlo.broadcast_subtract"),
    broadcast("chlo.broadcast_xor"),
    broadcast("chlo.broadcast_zeta"),
    function("chlo.conj", functions::CONJ),
    op("chlo.constant").by(convert::constant).with(&[Attr::new("value", Any)])
        .form(&[Parts(Own::Constant)]),
    op("chlo.constant_like").by(convert::constant_like).with(&[Attr::new("value", Any)]),
    function("chlo.cosh", functions::COSH).is(Opcode::Cosh).composite(),
    function("chlo.digamma", functions::DIGAMMA),
    unary("chlo.erf").is(Opcode::Erf).composite(),
    function("chlo.erf_inv", functions::ERF_INV).composite(),
    function("chlo.erfc", functions::ERFC).composite(),
    function("chlo.is_inf", functions::IS_INF),
    function("chlo.is_neg_inf", functions::IS_NEG_INF),
    function("chlo.is_pos_inf", functions::IS_POS_INF),
    function("chlo.lgamma", functions::LGAMMA),
    binary("chlo.mulhi").is(Opcode::Mulhi).composite(),
    binary("chlo.next_after").computes(functions::NEXT_AFTER),
    binary("chlo.polygamma").computes(functions::POLYGAMMA),
    op("chlo.ragged_dot").by(convert::ragged_dot).composite()
        .with(RAGGED_DOT),
    op("chlo.scan").form(&[Parts(Own::Scan)]).by(convert::scan).with(SCAN).calls(&["to_apply"])
        .composite(),
    function("chlo.sinh", functions::SINH).is(Opcode::Sinh).composite(),
    function("chlo.square", functions::SQUARE).composite(),
    unary("chlo.tan").is(Opcode::Tan).composite(),
    op("chlo.top_k").is(Opcode::TopK).by(convert::tupled).composite()
        .with(&[Attr::new("is_stable", Bool).default(Initial::True),
            Attr::new("k", ValueKind::Integer(64, Sign::Signless)).hlo("k")])
        .form(&[Text("("), Operand, COMMA, Text("k"), EQUAL, Attribute("k"),
            Maybe(&[COMMA, Text("is_stable"), EQUAL, Attribute("is_stable")]), Text(")"), Dictionary,
            COLON, ARROW])
        .yields(&["values", "indices"]),
    binary("chlo.zeta").computes(functions::ZETA),
];
