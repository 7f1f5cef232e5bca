//! The attributes of dot products.

use super::super::operation::Draft;
use super::super::{Parse, Parser};
use crate::mlir::{Attribute, Attributes, DenseArray};

/// The words of a form, and the parameters that they stand for.
const DIMS: &[(&str, &str, &str)] = &[
    ("batching_dims", "lhs_batching_dimensions", "rhs_batching_dimensions"),
    ("contracting_dims", "lhs_contracting_dimensions", "rhs_contracting_dimensions"),
];

impl Parser<'_> {
    /// `batching_dims = [0] x [0], contracting_dims = [2] x [1]`.
    pub(super) fn dot_dims(&mut self, draft: &mut Draft) -> Parse<()> {
        let mut parameters = Attributes::new();
        let list = |values| Attribute::DenseArray(DenseArray::I64(values));
        for &(word, lhs, rhs) in DIMS {
            let is_last = word == "contracting_dims";
            if !is_last && !self.accept_word(word) {
                continue;
            }
            if is_last {
                self.expect_word(word)?;
            }
            self.expect("=")?;
            let left = self.integers()?;
            self.expect_word("x")?;
            let right = self.integers()?;
            for (name, values) in [(lhs, left), (rhs, right)] {
                // MLIR leaves out empty lists, too.
                if !values.is_empty() {
                    parameters.push((name.into(), list(values)));
                }
            }
            if !is_last {
                self.expect(",")?;
            }
        }
        // The order of the generic form.
        parameters.sort_by_key(|(name, _)| {
            (name.ends_with("contracting_dimensions"), name.starts_with("rhs"))
        });
        let dims = Attribute::structure(&draft.dialect(), "dot", parameters);
        draft.set("dot_dimension_numbers", dims);
        Ok(())
    }

    /// `, precision = [DEFAULT, DEFAULT], algorithm = <...>`, each of which may be missing.
    pub(super) fn precision(&mut self, draft: &mut Draft) -> Parse<()> {
        let dialect = draft.dialect();
        while self.accept(",") {
            if self.accept_word("precision") {
                self.expect("=")?;
                let mut items = Vec::new();
                self.list(("[", "]"), |parser| {
                    let word = parser.word("`DEFAULT`, `HIGH` or `HIGHEST`")?;
                    items.push(Attribute::word(&dialect, "precision", word));
                    Ok(())
                })?;
                draft.set("precision_config", Attribute::Array(items));
            } else if self.accept_word("algorithm") {
                self.expect("=")?;
                let algorithm = self.parameters(&dialect, "dot_algorithm")?;
                draft.set("algorithm", algorithm);
            } else {
                return Err(self.unexpected("`precision` or `algorithm`"));
            }
        }
        Ok(())
    }
}
