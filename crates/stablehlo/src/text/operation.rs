//! Operations: the outermost one, the generic form, results and locations.

use std::sync::Arc;

use smallvec::SmallVec;
use smol_str::SmolStr;

use super::cursor::span;
use super::error::SyntaxError;
use super::{Parse, Parser};
use crate::mlir::{
    Attribute, Attributes, Block, FunctionType, Location, Operation, Region, Scalar, Span, Type,
    Value,
};

/// Operations whose regions do not see the values around them.
const ISOLATED: &[&str] = &["builtin.module", "func.func"];

/// An operation that is not complete.
pub(super) struct Draft {
    pub(super) name: SmolStr,
    pub(super) operands: SmallVec<[Value; 4]>,
    /// The place of the first operand.
    pub(super) place: Span,
    pub(super) attributes: Attributes,
    pub(super) regions: Vec<Region>,
    /// The types of the results.
    pub(super) results: Vec<Type>,
    pub(super) location: Option<Arc<Location>>,
}

impl Draft {
    pub(super) fn new(name: impl Into<SmolStr>, place: Span) -> Self {
        Self {
            name: name.into(),
            operands: SmallVec::new(),
            place,
            attributes: Attributes::new(),
            regions: Vec::new(),
            results: Vec::new(),
            location: None,
        }
    }

    /// The dialect in the name.
    pub(super) fn dialect(&self) -> SmolStr {
        self.name.split_once('.').map_or("", |(dialect, _)| dialect).into()
    }

    pub(super) fn set(&mut self, name: &'static str, value: Attribute) {
        self.attributes.push((SmolStr::new_static(name), value));
    }
}

/// Checks whether a type, or that of its elements, is kept as text, so that it cannot be compared.
fn is_other(ty: &Type) -> bool {
    match ty {
        Type::Other { .. } | Type::UnrankedTensor(Scalar::Other(_)) => true,
        Type::Tensor(tensor) => matches!(tensor.element, Scalar::Other(_)),
        _ => false,
    }
}

/// The names of results: `%0:2`.
struct ResultNames<'s> {
    name: &'s str,
    start: usize,
    count: usize,
}

impl<'s> Parser<'s> {
    /// Takes the whole text: a module, or operations that a module is made for.
    pub(super) fn outermost(&mut self) -> Parse<Operation> {
        let mut operations = Vec::new();
        while !self.at_end() {
            if !self.skip_alias() && !self.skip_resources() {
                operations.push(self.operation()?);
            }
        }
        if let [operation] = operations.as_slice()
            && operation.name == "builtin.module"
        {
            return operations.pop().ok_or_else(|| self.unexpected("a module"));
        }
        if operations.is_empty() {
            return Err(self.unexpected("a module, as `module { ... }`"));
        }
        let block = Block { arguments: Vec::new(), operations };
        Ok(Operation {
            name: "builtin.module".into(),
            operands: SmallVec::new(),
            results: SmallVec::new(),
            attributes: Attributes::new(),
            regions: vec![Region { blocks: vec![block] }],
            location: None,
            span: span(0, self.source.len()),
        })
    }

    /// Takes an operation and defines its results.
    pub(super) fn operation(&mut self) -> Parse<Operation> {
        self.skip();
        let start = self.position;
        let names = self.result_names()?;
        let mut draft = match self.peek() {
            b'"' => self.generic()?,
            _ => self.pretty()?,
        };
        let mut end = self.end_of_token(self.position);
        if let Some(location) = self.any_location()? {
            draft.location = Some(location);
            end = self.position;
        }
        let place = span(start, end);
        self.complete(draft, &names, place)
    }

    /// `%0:2, %1 =` or nothing.
    fn result_names(&mut self) -> Parse<SmallVec<[ResultNames<'s>; 1]>> {
        let mut names = SmallVec::new();
        if self.peek() != b'%' {
            return Ok(names);
        }
        loop {
            self.skip();
            let start = self.position;
            let name = self.value_name()?;
            let mut count = 1;
            if self.accept(":") {
                count = self.small_number("the number of results")? as usize;
            }
            names.push(ResultNames { name, start, count });
            if self.accept("=") {
                return Ok(names);
            }
            self.expect(",")?;
        }
    }

    /// Makes the results of an operation and names them.
    fn complete(
        &mut self,
        mut draft: Draft,
        names: &[ResultNames<'s>],
        place: Span,
    ) -> Parse<Operation> {
        let named = names.iter().fold(0_usize, |sum, name| sum.saturating_add(name.count));
        let count = draft.results.len();
        if named != count && !names.is_empty() {
            let place = Span { end: draft.place.end.max(place.start), ..place };
            let message = format!("{named} results are named, but the operation has {count}");
            return Err(SyntaxError::new(place, message));
        }
        let results: SmallVec<[Value; 1]> =
            draft.results.into_iter().map(|ty| self.value(ty)).collect();
        let mut first = 0;
        for name in names {
            let value = results.get(first).copied().unwrap_or(Value(u32::MAX));
            self.define(name.name, name.start, value, name.count)?;
            first += name.count;
        }
        if draft.name == "builtin.module" {
            // MLIR's printer leaves out a block without operations.
            let empty = draft.regions.iter_mut().filter(|region| region.blocks.is_empty());
            empty.for_each(|region| region.blocks.push(Block::default()));
        }
        Ok(Operation {
            name: draft.name,
            operands: draft.operands,
            results,
            attributes: draft.attributes,
            regions: draft.regions,
            location: draft.location,
            span: place,
        })
    }

    /// `"name"(operands) <{properties}> (regions) {attributes} : type`.
    fn generic(&mut self) -> Parse<Draft> {
        let start = self.position;
        let name = self.string_text("the name of an operation")?;
        let mut draft = Draft::new(name, self.span_since(start));
        self.generic_rest(&mut draft)?;
        Ok(draft)
    }

    /// The generic form after the name.
    pub(super) fn generic_rest(&mut self, draft: &mut Draft) -> Parse<()> {
        self.list(("(", ")"), |parser| {
            draft.operands.push(parser.operand()?);
            Ok(())
        })?;
        if self.peek() == b'[' {
            let error = self.error_here("operations with successors cannot be read");
            return Err(error.help("a region of StableHLO has one block"));
        }
        if self.accept("<") {
            self.dictionary_into(&mut draft.attributes)?;
            self.expect(">")?;
        }
        if self.peek() == b'(' {
            self.generic_regions(draft)?;
        }
        if self.peek() == b'{' {
            self.dictionary_into(&mut draft.attributes)?;
        }
        self.expect(":")?;
        self.skip();
        let start = self.position;
        let FunctionType { inputs, results } = self.function_type()?;
        draft.results = results;
        self.check_operands(draft, inputs.iter(), start)
    }

    /// Regions in parentheses.
    pub(super) fn generic_regions(&mut self, draft: &mut Draft) -> Parse<()> {
        let isolated = ISOLATED.contains(&draft.name.as_str());
        self.list(("(", ")"), |parser| {
            let region = match isolated {
                true => parser.isolated(|parser| parser.region(&[])),
                false => parser.region(&[]),
            };
            draft.regions.push(region?);
            Ok(())
        })
    }

    /// Compares the types of the operands with those of their definitions. The types begin at
    /// `start`.
    pub(super) fn check_operands<'t>(
        &self,
        draft: &Draft,
        types: impl ExactSizeIterator<Item = &'t Type>,
        start: usize,
    ) -> Parse<()> {
        let place = self.span_since(start);
        if types.len() != draft.operands.len() {
            let (operands, types) = (draft.operands.len(), types.len());
            let message = format!("there are {operands} operands, but {types} types");
            return Err(SyntaxError::new(place, message));
        }
        for (index, (operand, ty)) in draft.operands.iter().zip(types).enumerate() {
            if !self.type_of(*operand).is_some_and(|known| known == ty || is_other(ty)) {
                let message = format!("operand {index} was defined with another type");
                let help = "write the type that the operand has where it is defined";
                return Err(SyntaxError::new(place, message).help(help));
            }
        }
        Ok(())
    }

    pub(super) fn type_of(&self, value: Value) -> Option<&Type> {
        self.types.get(value.0 as usize)
    }
}
