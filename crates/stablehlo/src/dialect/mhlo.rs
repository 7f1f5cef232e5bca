//! MHLO's ops that StableHLO does not have, or has with fewer attributes.

use tilewright_ir::Opcode;

use super::Part::{Attribute, Dictionary, Maybe, Operand, Own as Parts, Text};
use super::ValueKind::{Any, Bool, OneDim, Text as Quoted, Word};
use super::attribute::kind;
use super::form::{ARROW, COLON, COMMA, EQUAL, PLAIN, UNARY};
use super::initial::Initial;
use super::stablehlo::PRECISION;
use super::{Attr, Op, Own, Part, ValueKind};
use crate::import::convert;
use crate::mlir::Sign;

const I64: ValueKind = ValueKind::Integer(64, Sign::Signless);

const fn unary(name: &'static str, opcode: Opcode) -> Op {
    Op::new(name).form(UNARY).is(opcode)
}

/// The form of `topk`.
pub(super) const LARGEST: &[Part] = &[
    Text("("),
    Operand,
    COMMA,
    Text("k"),
    EQUAL,
    Attribute("k"),
    Maybe(&[COMMA, Text("largest"), EQUAL, Attribute("largest")]),
    Maybe(&[COMMA, Text("is_stable"), EQUAL, Attribute("is_stable")]),
    Text(")"),
    Dictionary,
    COLON,
    ARROW,
];

/// The attributes of a product of rows in groups.
pub(super) const RAGGED_DOT: &[Attr] =
    &[PRECISION, Attr::new("ragged_dot_dimension_numbers", kind::RAGGED_DOT)];

/// The attributes of a scan.
pub(super) const SCAN: &[Attr] = &[
    Attr::new("dimension", OneDim).hlo("dimensions"),
    Attr::new("is_associative", Bool).hlo("is_associative").optional(),
    Attr::new("is_reverse", Bool).hlo("is_reverse"),
    Attr::new("scan_dim_size", I64).optional(),
];

#[rustfmt::skip]
pub(super) const OPS: &[Op] = &[
    unary("mhlo.acos", Opcode::Acos),
    unary("mhlo.acosh", Opcode::Acosh),
    Op::new("mhlo.add_dependency").form(PLAIN).is(Opcode::AddDependency),
    unary("mhlo.asin", Opcode::Asin),
    unary("mhlo.asinh", Opcode::Asinh),
    Op::new("mhlo.async_start").like("stablehlo.async_start").by(convert::async_start)
        .with(&[Attr::new("called_computation", Any), Attr::new("execution_thread", Any)]),
    unary("mhlo.atanh", Opcode::Atanh),
    Op::new("mhlo.bitcast").form(PLAIN).by(convert::bitcast),
    unary("mhlo.copy", Opcode::Copy).with(&[Attr::new("cross_program_prefetch_index", Any).optional()]),
    unary("mhlo.cosh", Opcode::Cosh),
    Op::new("mhlo.custom_call").like("stablehlo.custom_call").by(convert::custom_call)
        .with(&[Attr::new("custom_call_schedule", Any).optional()])
        .form(super::stablehlo::CUSTOM_CALL),
    Op::new("mhlo.domain").by(convert::domain)
        .with(&[Attr::new("entry_metadata", Any), Attr::new("exit_metadata", Any),
            Attr::new("kind", Any)]),
    unary("mhlo.erf", Opcode::Erf),
    Op::new("mhlo.exp2").with(&[Attr::new("result_accuracy", ValueKind::Accuracy)]),
    Op::new("mhlo.fusion").is(Opcode::Fusion)
        .with(&[Attr::new("fusion_kind", Word("fusion_kind")).hlo("kind"),
            Attr::new("output_operand_aliases", Any).optional()])
        .calls(&["calls"]),
    Op::new("mhlo.log2").with(&[Attr::new("result_accuracy", ValueKind::Accuracy)]),
    Op::new("mhlo.ragged_dot").by(convert::ragged_dot)
        .with(RAGGED_DOT),
    Op::new("mhlo.scan").form(&[Parts(Own::Scan)]).by(convert::scan).with(SCAN).calls(&["to_apply"]),
    unary("mhlo.sinh", Opcode::Sinh),
    Op::new("mhlo.stochastic_convert").is(Opcode::StochasticConvert),
    Op::new("mhlo.topk").is(Opcode::TopK).by(convert::tupled)
        .with(&[Attr::new("is_stable", Bool).default(Initial::True), Attr::new("k", I64).hlo("k"),
            Attr::new("largest", Bool).hlo("largest").default(Initial::True)])
        .form(LARGEST).yields(&["values", "indices"]),
    Op::new("mhlo.trace").by(convert::nothing).with(&[Attr::new("tag", Quoted)]),
    Op::new("mhlo.xla.rng_get_and_update_state").is(Opcode::RngGetAndUpdateState)
        .with(&[Attr::new("delta", I64).hlo("delta")])
        .form(&[Dictionary, Parts(Own::GeneratorState)]),
];
