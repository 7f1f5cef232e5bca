//! Ops from an opcode, operands and HLO text of attributes.

use tilewright::ir::metadata::Extras;
use tilewright::ir::{CompId, InstId, Module as Graph, Op, OpMetadata, Opcode, Shape as Type};
use tilewright::text::parse_expression;

use pyo3::prelude::*;

use crate::error::{ExceptionKind, plain, usage};

/// The op, attributes and shape of an instruction that is to be made.
#[derive(Debug)]
pub(crate) struct Expression {
    pub(crate) op: Op,
    pub(crate) shape: Type,
    pub(crate) extras: Option<Extras>,
    pub(crate) metadata: Option<OpMetadata>,
}

/// An op as Python asks for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    pub(crate) opcode: Opcode,
    /// Attributes as HLO text: `dimensions={0}`.
    pub(crate) attributes: &'a str,
    /// The shape of the result; inferred if there is none.
    pub(crate) shape: Option<&'a Type>,
}

/// The opcode of a name in HLO text.
pub(crate) fn opcode(name: &str) -> PyResult<Opcode> {
    Opcode::from_name(name)
        .ok_or_else(|| usage(format!("there is no op `{name}`; `tilewright ops` lists them")))
}

impl Request<'_> {
    /// Reads the op. The module is left as it was, but for computations that attributes have in
    /// braces.
    ///
    /// # Errors
    /// The errors of the text, for [`misread`].
    pub(crate) fn read(
        self,
        graph: &mut Graph,
        computation: CompId,
        operands: &[InstId],
    ) -> Result<Expression, String> {
        let (id, expression) = self.added(graph, computation, operands)?;
        graph.remove(id).map_err(|error| error.to_string())?;
        Ok(expression)
    }

    /// Reads the op, and leaves it in the module as an instruction without a name.
    ///
    /// # Errors
    /// The errors of the text, for [`misread`].
    pub(crate) fn added(
        self,
        graph: &mut Graph,
        computation: CompId,
        operands: &[InstId],
    ) -> Result<(InstId, Expression), String> {
        let Self { opcode, attributes, shape } = self;
        if matches!(opcode, Opcode::Parameter | Opcode::Constant) {
            return Err(format!("a `{opcode}` has no operands; `constant` and `Builder` make one"));
        }
        let names: Vec<String> = (0..operands.len()).map(|at| format!("operand.{at}")).collect();
        let values: Vec<(&str, InstId)> =
            names.iter().map(String::as_str).zip(operands.iter().copied()).collect();
        let shape = shape.map(|shape| format!("{shape:#} ")).unwrap_or_default();
        let mut text = format!("{shape}{opcode}({})", names.join(", "));
        let attributes = attributes.trim().trim_start_matches(',');
        if !attributes.is_empty() {
            text += ", ";
            text += attributes;
        }
        let id = parse_expression(&text, graph, computation, &values)
            .map_err(|errors| format!("{errors}\n  in: {text}"))?;
        // The parser gives layouts as XLA does, to modules that have some.
        let given = operands.iter().flat_map(|&id| graph.shape(id).leaves());
        let has_layouts = given
            .filter_map(Type::as_array)
            .any(|array| array.layout.is_some() && array.rank() > 0);
        let inferred = graph.shape(id);
        let keeps = has_layouts || operands.is_empty() || !shape.is_empty();
        let shape = if keeps { inferred.clone() } else { inferred.without_layout() };
        let expression = Expression {
            op: graph.op(id).clone(),
            shape,
            extras: graph.extras(id).cloned(),
            metadata: graph.metadata(id).cloned(),
        };
        Ok((id, expression))
    }
}

/// The exception of a text that is no op.
pub(crate) fn misread(message: String) -> PyErr {
    plain(ExceptionKind::Parse, message)
}
