//! Reads `custom-call-start` and similar opcodes: any opcode made asynchronous.
//!
//! ```text
//! s = ((f32[2]), f32[8], s32[]) custom-call-start(x), custom_call_target="t"
//! d = f32[8] custom-call-done(s)
//! ```
//!
//! stands for an `async-start` that calls a computation of one `custom-call`.

use smol_str::{SmolStr, format_smolstr};
use tilewright_ir::ops::attr::OpAttrs as _;
use tilewright_ir::ops::control::AsyncAttrs;
use tilewright_ir::ops::shaping::ParameterAttrs;
use tilewright_ir::{CompId, InstId, Op, Opcode, ShapeId};

use super::attribute::Attributes;
use super::computation::Scope;
use super::instruction::{Head, Operands};
use super::{Parse, Parser, SyntaxError};

/// Returns the asynchronous opcode that a word means, and the one that it wraps.
pub(super) fn asynchronous(word: &str) -> Option<(Opcode, Opcode)> {
    let (wrapped, suffix) = word.rsplit_once('-')?;
    let opcode = match suffix {
        "start" => Opcode::AsyncStart,
        "update" => Opcode::AsyncUpdate,
        "done" => Opcode::AsyncDone,
        _ => return None,
    };
    Some((opcode, Opcode::from_name(wrapped)?))
}

impl<'s> Parser<'s> {
    /// Returns the `async-start` of a wrapped op whose operands and attributes were read.
    pub(super) fn wrapping(
        &mut self,
        scope: &Scope<'s>,
        head: &Head,
        wrapped: Opcode,
        operands: &[InstId],
        attributes: &mut Attributes<'s>,
    ) -> Parse<Op> {
        let op = match Op::from_attrs(wrapped, &mut attributes.values) {
            Ok(op) => op,
            Err(error) => return self.attribute_error(head, &error, attributes),
        };
        let mut start = match AsyncAttrs::take(&mut attributes.values) {
            Ok(start) => start,
            Err(error) => return self.attribute_error(head, &error, attributes),
        };
        let shape = self.result_of_async(head)?;
        let id = self.module.add_computation_before("async_wrapped", scope.id);
        self.nameless.push((id, "async_wrapped"));
        self.spans.set_computation(id, head.span);
        self.module.set_execution_thread(id, start.async_execution_thread.clone());
        self.wrapped_computation(id, head, op, shape, operands)?;
        start.calls = Some(id);
        Ok(Op::AsyncStart(Box::new(start)))
    }

    /// Sets the thread of an `async-start` on the computations that it runs, including all that
    /// they call, unless they have a thread of their own.
    pub(super) fn hand_on_thread(&mut self, op: &Op) {
        let Op::AsyncStart(attrs) = op else { return };
        let Some(thread) = &attrs.async_execution_thread else { return };
        let mut stack = Vec::from_iter(attrs.calls);
        while let Some(id) = stack.pop() {
            if self.module.computation(id).execution_thread().is_none() {
                self.module.set_execution_thread(id, Some(thread.clone()));
                stack.extend(self.module.callees(id));
            }
        }
    }

    /// Returns the second element of the shape `((operands), result, ...)`.
    fn result_of_async(&mut self, head: &Head) -> Parse<ShapeId> {
        let elements = head.shape.and_then(|shape| self.module.shape_of(shape).as_tuple());
        match elements.and_then(|elements| elements.get(1)).cloned() {
            Some(result) => Ok(self.module.intern_shape(result)),
            None => {
                let error = SyntaxError::new(head.span, "an asynchronous op without its shape")
                    .expected("a shape as `((f32[2]), f32[8], s32[])` before it");
                self.fail(error)
            }
        }
    }

    /// Returns the computation that only contains the wrapped op.
    fn wrapped_computation(
        &mut self,
        id: CompId,
        head: &Head,
        op: Op,
        shape: ShapeId,
        operands: &[InstId],
    ) -> Parse<()> {
        // Each parameter has a shape that the text does not repeat.
        self.pay_for_shapes_of(head, operands)?;
        let scope = Scope::new(id);
        let mut parameters = Operands::new();
        for (number, &operand) in (0i64..).zip(operands) {
            let shape = Some(self.module.instruction(operand).shape_id());
            let head = Head { shape, opcode: Opcode::Parameter, ..*head };
            let op = Op::Parameter(Box::new(ParameterAttrs { number }));
            // The names are those that XLA uses.
            let name = match number {
                0 => SmolStr::new_static("async_param"),
                _ => format_smolstr!("async_param.{number}"),
            };
            parameters.push(self.insert(&scope, &head, op, &[], name)?);
        }
        let head = Head { shape: Some(shape), opcode: op.opcode(), ..*head };
        let name = SmolStr::new_static(head.opcode.name());
        let root = self.insert(&scope, &head, op, &parameters, name)?;
        for &id in parameters.iter().chain([&root]) {
            self.spans.set_instruction(id, head.span);
        }
        Ok(())
    }
}
