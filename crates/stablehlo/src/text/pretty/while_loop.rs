//! `stablehlo.while`.

use super::super::operation::Draft;
use super::super::region::Argument;
use super::super::{Parse, Parser};

impl<'s> Parser<'s> {
    /// `(%a = %b, ...) : types attributes {...} cond {...} do {...}`.
    pub(super) fn while_loop(&mut self, draft: &mut Draft) -> Parse<()> {
        let mut names = Vec::new();
        self.list(("(", ")"), |parser| {
            parser.skip();
            let start = parser.position;
            names.push((parser.value_name()?, start));
            parser.expect("=")?;
            draft.operands.push(parser.operand()?);
            Ok(())
        })?;
        if !names.is_empty() {
            self.expect(":")?;
            self.skip();
            let start = self.position;
            draft.results = self.bare_types()?;
            self.check_operands(draft, draft.results.iter(), start)?;
        }
        if self.accept_word("attributes") {
            self.dictionary_into(&mut draft.attributes)?;
        }
        let arguments: Vec<Argument<'_>> = names
            .into_iter()
            .zip(&draft.results)
            .map(|((name, start), ty)| Argument { name, start, ty: ty.clone(), location: None })
            .collect();
        for word in ["cond", "do"] {
            self.expect_word(word)?;
            let region = self.region(&arguments)?;
            draft.regions.push(region);
        }
        Ok(())
    }
}
