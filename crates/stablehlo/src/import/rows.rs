//! Operations as instructions, by their rows in the tables.

use std::sync::OnceLock;

use rustc_hash::FxHashMap;
use tilewright_ir::ops::attr::AttrValue;
use tilewright_ir::ops::elementwise::CompareOrder;
use tilewright_ir::{Op, Opcode, Shape};

use super::body::Body;
use super::error::{Import, ImportError};
use super::{
    asynchronous, calls, control, custom_call, einsum, forms, functions, special, transfer,
};
use crate::mlir::Operation;
use crate::rows::{ROWS, Row};

/// Converts an operation.
type Convert = for<'p> fn(&mut Body<'_, 'p>, &'p Operation) -> Import<()>;

/// The operations that are more than one instruction, or whose parts lie elsewhere in HLO.
const SPECIAL: &[(&str, Convert)] = &[
    ("func.call", calls::call),
    ("stablehlo.composite", calls::composite),
    ("stablehlo.case", control::case),
    ("stablehlo.if", control::if_else),
    ("stablehlo.while", control::while_loop),
    ("stablehlo.constant", special::constant),
    ("stablehlo.custom_call", custom_call::custom_call),
    ("stablehlo.all_reduce", special::all_reduce),
    ("stablehlo.all_to_all", special::all_to_all),
    ("stablehlo.async_done", asynchronous::done),
    ("stablehlo.async_start", asynchronous::start),
    ("stablehlo.broadcast_in_dim", special::broadcast_in_dim),
    ("stablehlo.clamp", special::ternary),
    ("stablehlo.convert", special::convert),
    ("stablehlo.dot", special::dot),
    ("stablehlo.einsum", einsum::einsum),
    ("stablehlo.dynamic_reshape", special::dynamic_reshape),
    ("stablehlo.infeed", special::infeed),
    ("stablehlo.optimization_barrier", special::optimization_barrier),
    ("stablehlo.outfeed", special::outfeed),
    ("stablehlo.recv", transfer::recv),
    ("stablehlo.rng", special::rng),
    ("stablehlo.select", special::ternary),
    ("stablehlo.send", transfer::send),
    ("mhlo.bitcast", special::bitcast),
    ("mhlo.domain", special::domain),
    ("mhlo.fusion", special::fusion),
    ("mhlo.ragged_dot", special::ragged_dot),
    ("chlo.ragged_dot", special::ragged_dot),
    ("mhlo.scan", special::scan),
    ("chlo.scan", special::scan),
    ("sdy.mesh", special::nothing),
];

/// Where an operation is defined.
#[derive(Clone, Copy)]
enum Rule {
    Row(&'static Row),
    Special(Convert),
}

fn rule(name: &str) -> Option<Rule> {
    static RULES: OnceLock<FxHashMap<&'static str, Rule>> = OnceLock::new();
    let rules = RULES.get_or_init(|| {
        let rows = ROWS.iter().map(|row| (row.name, Rule::Row(row)));
        let special = SPECIAL.iter().map(|&(name, convert)| (name, Rule::Special(convert)));
        rows.chain(special).collect()
    });
    rules.get(name).copied()
}

/// Checks whether StableHLO has an op of this name that is read here.
pub(super) fn is_op(name: &str) -> bool {
    rule(name).is_some() || DYNAMIC.contains(&name) || functions::has(name)
}

/// Operations that HLO has for constant sizes only, or for known dims.
const DYNAMIC: &[&str] = &[
    "stablehlo.compute_reshape_shape",
    "stablehlo.dynamic_broadcast_in_dim",
    "stablehlo.dynamic_conv",
    "stablehlo.dynamic_gather",
    "stablehlo.dynamic_iota",
    "stablehlo.dynamic_pad",
    "stablehlo.real_dynamic_slice",
];

/// The advice to a user whose program has an operation that is not converted.
fn why_not(name: &str) -> &'static str {
    if DYNAMIC.contains(&name) {
        return UNKNOWN_DIMS;
    }
    match name.split_once('.') {
        Some(("stablehlo", op)) if op.starts_with("uniform_") => {
            "is quantised; make it one of floats first (`stablehlo-opt --stablehlo-legalize-quant-to-math`)"
        }
        Some(("stablehlo" | "mhlo" | "sdy", _)) => "is not read here yet; write it by other ops",
        Some(("chlo", _)) => {
            "is not read here, or not of these types; legalize it first (`stablehlo-opt --chlo-legalize-to-stablehlo`)"
        }
        _ => "is of a dialect that XLA does not convert; lower it to StableHLO first",
    }
}

/// Why an operation on dims without bounds is no instruction.
pub(super) const UNKNOWN_DIMS: &str = "has sizes that only a run tells, which XLA does not convert; \
     refine the shapes first (`stablehlo-opt --stablehlo-refine-shapes`), or export the program \
     with dims that are numbers";

impl<'p> Body<'_, 'p> {
    /// Converts an operation and binds its results.
    pub(super) fn convert(&mut self, operation: &'p Operation) -> Import<()> {
        match rule(&operation.name) {
            Some(Rule::Row(row)) => self.by_row(row, operation),
            Some(Rule::Special(convert)) => convert(self, operation),
            None => Err(ImportError::unsupported(operation, why_not(&operation.name))),
        }
    }

    fn by_row(&mut self, row: &Row, operation: &'p Operation) -> Import<()> {
        let op = self.op_of_row(row, operation)?;
        let mut shape = self.result_shape(operation)?;
        if op.opcode() == Opcode::RngBitGenerator || op.opcode() == Opcode::TopK {
            shape = tuple(shape);
        }
        let operands = self.operands(operation)?;
        if let (Op::SetDimensionSize(attrs), Some(&of)) = (&op, operands.first()) {
            // The bound is the size that the dim had, whether the type says so or not. A dim of its whole bound
            // is static.
            let module = &self.importer.module;
            if let (Some(from), Some(&dim)) = (module.array_shape(of), attrs.dimensions.first()) {
                let dim = usize::try_from(dim).unwrap_or(usize::MAX);
                let bound = from.dims().get(dim).copied().unwrap_or(0);
                let size = operands
                    .get(1)
                    .and_then(|&size| module.constant(size)?.as_array()?.scalar_as_f64());
                let is_whole = size.is_some_and(|size| size == bound as f64);
                if is_whole && !from.dim_is_dynamic(dim) {
                    return self.bind(operation, of);
                }
                shape = Shape::Array(from.without_layout().with_dim(dim, bound, !is_whole));
            }
        }
        if let (Op::GetTupleElement(attrs), &[tuple]) = (&op, operands.as_slice()) {
            // The element keeps its layout.
            let index = usize::try_from(attrs.index).unwrap_or(usize::MAX);
            let id = self.element(tuple, index)?;
            return self.bind(operation, id);
        }
        let id = self.emit(op, shape, &operands)?;
        self.bind(operation, id)
    }

    /// Reads the op of an operation: its attributes and regions.
    pub(super) fn op_of_row(&mut self, row: &Row, operation: &'p Operation) -> Import<Op> {
        let mut values = forms::read(self.importer.program, row, operation)?;
        if row.regions.len() != operation.regions.len() {
            let why = format!("has {} regions, not {}", row.regions.len(), operation.regions.len());
            return Err(ImportError::malformed(operation, &why));
        }
        for (attribute, region) in row.regions.iter().zip(&operation.regions) {
            let computation = self.region(operation, region)?;
            values.insert(attribute, AttrValue::Computation(computation));
        }
        let op = Op::from_attrs(row.opcode, &mut values)
            .map_err(|error| ImportError::malformed(operation, &error.to_string()))?;
        self.adjusted(operation, op)
    }

    /// Attributes that HLO leaves out if they are the default for the operands.
    fn adjusted(&self, operation: &Operation, mut op: Op) -> Import<Op> {
        let first = match operation.operands.first() {
            Some(&first) => self.shape_of(operation, first)?,
            None => return Ok(op),
        };
        let Shape::Array(first) = first else { return Ok(op) };
        match &mut op {
            // A sign says nothing about integers, whose types have it, and means the total order of floats.
            Op::Compare(attrs) => match (attrs.order, special::default_order(first.element_type)) {
                (Some(CompareOrder::Signed | CompareOrder::Unsigned), CompareOrder::Float) => {
                    attrs.order = Some(CompareOrder::TotalOrder);
                }
                (Some(CompareOrder::Signed | CompareOrder::Unsigned), _) => attrs.order = None,
                (order, default) if order == Some(default) => attrs.order = None,
                _ => {}
            },
            Op::Sort(attrs) => {
                let rank = i64::try_from(first.rank()).unwrap_or(i64::MAX);
                attrs.dimensions.iter_mut().filter(|dim| **dim < 0).for_each(|dim| *dim += rank);
            }
            _ => {}
        }
        Ok(op)
    }
}

fn tuple(shape: Shape) -> Shape {
    match shape {
        Shape::Tuple(_) => shape,
        other => Shape::Tuple(vec![other]),
    }
}
