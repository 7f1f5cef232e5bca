//! `stablehlo.send` and `stablehlo.recv`: a start and its done, by which several values are one tuple.

use tilewright_ir::ops::control::TransferAttrs;
use tilewright_ir::{ElementType, InstId, Op, Shape};

use super::attributes::{integer, missing, optional_bool, pairs, parameter};
use super::body::Body;
use super::error::{Import, ImportError};
use crate::mlir::{Attribute, Operation};

/// The frontend attribute that says which devices exchange.
const PAIRS: &str = "_xla_send_recv_source_target_pairs";

impl Body<'_, '_> {
    /// Reads the channel; the pairs of devices become a frontend attribute.
    fn transfer(&mut self, operation: &Operation) -> Import<TransferAttrs> {
        let handle = match operation.attribute("channel_handle") {
            Some(Attribute::Dialect(handle)) => parameter(handle, "handle").and_then(integer),
            _ => return Err(missing(operation, "channel_handle")),
        };
        let is_host_transfer = optional_bool(operation, "is_host_transfer")?.unwrap_or(false);
        let pairs = pairs(operation, "source_target_pairs")?.unwrap_or_default();
        if !pairs.is_empty() {
            let pairs: Vec<String> =
                pairs.iter().map(|(from, to)| format!("{{{from},{to}}}")).collect();
            let text = format!("{{{}}}", pairs.join(","));
            self.scope.attributes.push((PAIRS.into(), text.into_boxed_str()));
        }
        Ok(TransferAttrs { channel_id: handle, is_host_transfer })
    }
}

fn started(data: Shape) -> Shape {
    Shape::Tuple(vec![data, Shape::scalar(ElementType::U32), Shape::Token])
}

/// Converts `stablehlo.send`.
pub(crate) fn send<'p>(body: &mut Body<'_, 'p>, operation: &'p Operation) -> Import<()> {
    let operands = body.operands(operation)?;
    let Some((&token, data)) = operands.split_last() else {
        return Err(ImportError::malformed(operation, "takes a token"));
    };
    let data: InstId = body.together(data)?;
    let attrs = body.transfer(operation)?;
    let shape = started(body.importer.module.shape(data).clone());
    let start = body.emit(Op::Send(Box::new(attrs.clone())), shape, &[data, token])?;
    let done = body.emit(Op::SendDone(Box::new(attrs)), Shape::Token, &[start])?;
    body.bind(operation, done)
}

/// Converts `stablehlo.recv`.
pub(crate) fn recv<'p>(body: &mut Body<'_, 'p>, operation: &'p Operation) -> Import<()> {
    let operands = body.operands(operation)?;
    let (&[token], Some((&last, data))) = (operands.as_slice(), operation.results.split_last())
    else {
        return Err(ImportError::malformed(operation, "takes a token and yields one"));
    };
    let shapes = data.iter().map(|&value| body.shape_of(operation, value));
    let shapes = shapes.collect::<Import<Vec<_>>>()?;
    let is_one = shapes.len() == 1;
    let shape = match shapes.as_slice() {
        [only] => only.clone(),
        _ => Shape::Tuple(shapes),
    };
    let attrs = body.transfer(operation)?;
    let start = body.emit(Op::Recv(Box::new(attrs.clone())), started(shape.clone()), &[token])?;
    let whole = Shape::Tuple(vec![shape, Shape::Token]);
    let done = body.emit(Op::RecvDone(Box::new(attrs)), whole, &[start])?;
    let received = body.element(done, 0)?;
    for (index, &value) in data.iter().enumerate() {
        let element = if is_one { received } else { body.element(received, index)? };
        body.values.insert(value, element);
    }
    let token = body.element(done, 1)?;
    body.values.insert(last, token);
    Ok(())
}
