//! `order=` of a comparison, as XLA writes it since it left `type=`.

use tilewright_ir::element::NumberClass;
use tilewright_ir::ops::attr::AttrValue;
use tilewright_ir::{InstId, Opcode};

use super::attribute::Attributes;
use super::instruction::Head;
use super::{Parse, Parser, SyntaxError};

/// The name of the attribute here.
const ORDER: &str = "order";

impl Parser<'_> {
    /// Turns `order=TOTAL` of a comparison of floats into the ir's `type=TOTALORDER`; otherwise
    /// the order is the type's own.
    ///
    /// `order := "PARTIAL" | "TOTAL"`
    pub(super) fn comparison_order(
        &mut self,
        head: &Head,
        operands: &[InstId],
        attributes: &mut Attributes<'_>,
    ) -> Parse<()> {
        if head.wrapped.unwrap_or(head.opcode) != Opcode::Compare {
            return Ok(());
        }
        let Some(order) = attributes.take_other(ORDER) else { return Ok(()) };
        if attributes.span_of("type").is_some() {
            let error = SyntaxError::new(head.span, "a comparison has `type=` or `order=`");
            return self.fail(error.help("leave one of them out"));
        }
        let is_total = match order.0.as_ref() {
            "TOTAL" => true,
            "PARTIAL" => false,
            _ => {
                let message = "`order` must be PARTIAL or TOTAL";
                return self.fail(SyntaxError::new(head.span, message));
            }
        };
        let operand = operands.first().and_then(|&id| self.module.array_shape(id));
        let of_floats = operand.is_some_and(|array| {
            matches!(array.element_type.class(), NumberClass::Float | NumberClass::Complex)
        });
        if is_total && of_floats {
            attributes.values.insert("type", AttrValue::Word("TOTALORDER".into()));
        }
        Ok(())
    }
}
