//! `stablehlo.reduce`.

use std::sync::Arc;

use super::super::error::SyntaxError;
use super::super::operation::Draft;
use super::super::region::Argument;
use super::super::{Parse, Parser};
use crate::dialect::Types;
use crate::mlir::{
    Attribute, Block, DenseArray, Operation, Region, Scalar, Span, TensorType, Type, Value,
};

impl<'s> Parser<'s> {
    /// `(%a init: %b), ... applies stablehlo.add across dimensions = [0] : type`, or without
    /// `applies`, and the region after the type.
    pub(super) fn reduce(&mut self, draft: &mut Draft) -> Parse<()> {
        let mut inits = Vec::new();
        loop {
            self.expect("(")?;
            draft.operands.push(self.operand()?);
            self.expect_word("init")?;
            self.expect(":")?;
            inits.push(self.operand()?);
            self.expect(")")?;
            if !self.accept(",") {
                break;
            }
        }
        draft.operands.extend(inits);
        let mut inner = None;
        if self.accept_word("applies") {
            self.skip();
            let start = self.position;
            let name = self.word("an operation, as `stablehlo.add`")?;
            inner = Some((name, self.span_since(start)));
        }
        self.expect_word("across")?;
        self.expect_word("dimensions")?;
        self.expect("=")?;
        let dimensions = self.integers()?;
        draft.set("dimensions", Attribute::DenseArray(DenseArray::I64(dimensions)));
        self.optional_dictionary(draft)?;
        self.expect(":")?;
        self.form_types(Types::Function, draft)?;
        draft.location = self.any_location()?;
        match inner {
            Some((name, place)) => self.short_reducer(name, place, draft),
            None => self.reducer(draft),
        }
    }

    /// `reducer(%a: type, %b: type) (...) {...}`.
    fn reducer(&mut self, draft: &mut Draft) -> Parse<()> {
        self.expect_word("reducer")?;
        let mut arguments: Vec<Argument<'s>> = Vec::new();
        let mut accumulated = Vec::new();
        while self.accept("(") {
            arguments.push(self.argument()?);
            self.expect(",")?;
            accumulated.push(self.argument()?);
            self.expect(")")?;
        }
        arguments.extend(accumulated);
        let region = self.region(&arguments)?;
        draft.regions.push(region);
        Ok(())
    }

    /// Makes the region that applies one operation to scalars.
    fn short_reducer(&mut self, name: &str, place: Span, draft: &mut Draft) -> Parse<()> {
        let element = draft.operands.first().and_then(|&value| self.type_of(value));
        let element = match element {
            Some(Type::Tensor(tensor)) => tensor.element.clone(),
            Some(Type::UnrankedTensor(element)) => element.clone(),
            _ => return Err(SyntaxError::new(place, "the first operand is no tensor")),
        };
        let dialect = draft.dialect();
        if !name.starts_with(dialect.as_str()) {
            let message = format!("`{name}` is no operation of `{dialect}`");
            return Err(SyntaxError::new(place, message));
        }
        // The location stands at the end of the operation, and is that of the inner ones, too.
        if draft.location.is_none() {
            draft.location = self.any_location()?;
        }
        let scalar = |element: &Scalar| {
            let element = element.clone();
            Type::Tensor(TensorType { dims: Default::default(), element, encoding: None })
        };
        let arguments = vec![self.value(scalar(&element)), self.value(scalar(&element))];
        let result = self.value(scalar(&element));
        if let Some(location) = &draft.location {
            for &argument in &arguments {
                self.argument_locations.insert(argument, Arc::clone(location));
            }
        }
        let inner = |name: String, operands: &[Value], results: &[Value]| Operation {
            name: name.into(),
            operands: operands.iter().copied().collect(),
            results: results.iter().copied().collect(),
            attributes: Vec::new(),
            regions: Vec::new(),
            location: draft.location.clone(),
            span: place,
        };
        let operations = vec![
            inner(name.to_owned(), &arguments, &[result]),
            inner(format!("{dialect}.return"), &[result], &[]),
        ];
        draft.regions.push(Region { blocks: vec![Block { arguments, operations }] });
        Ok(())
    }
}
