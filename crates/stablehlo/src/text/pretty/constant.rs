//! `stablehlo.constant`.

use super::super::attribute::integer_type;
use super::super::operation::Draft;
use super::super::{Parse, Parser};
use crate::mlir::Attribute;

impl Parser<'_> {
    /// `{attributes} value`, or the generic form without quotes.
    pub(super) fn constant(&mut self, draft: &mut Draft) -> Parse<()> {
        if self.peek() == b'(' {
            return self.generic_rest(draft);
        }
        self.optional_dictionary(draft)?;
        self.skip();
        let start = self.position;
        let value = self.attribute()?;
        let has_scalars = draft.dialect() == "arith";
        match &value {
            Attribute::Dense(dense) => draft.results.push((*dense.ty).clone()),
            Attribute::Resource { ty, .. } => draft.results.push((**ty).clone()),
            Attribute::Integer(_, ty) | Attribute::Float(_, ty) if has_scalars => {
                draft.results.push(ty.clone());
            }
            Attribute::Bool(_) if has_scalars => draft.results.push(integer_type(1)),
            _ => {
                self.position = start;
                return Err(self.unexpected("a constant, as `dense<0> : tensor<i32>`"));
            }
        }
        draft.set("value", value);
        Ok(())
    }
}
