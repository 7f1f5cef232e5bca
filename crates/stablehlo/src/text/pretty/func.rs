//! `builtin.module` and `func.func`.

use super::super::operation::Draft;
use super::super::region::Argument;
use super::super::{Parse, Parser};
use crate::mlir::{Attribute, Attributes, FunctionType, Region, Type};

/// The arguments of a function.
#[derive(Default)]
struct Signature<'s> {
    arguments: Vec<Argument<'s>>,
    ty: FunctionType,
    argument_attributes: Vec<Attributes>,
    result_attributes: Vec<Attributes>,
}

impl<'s> Parser<'s> {
    /// `@name attributes {...} {...}`.
    pub(super) fn module(&mut self, draft: &mut Draft) -> Parse<()> {
        if self.peek() == b'@' {
            let name = self.symbol_name()?;
            draft.set("sym_name", Attribute::text(&name));
        }
        self.attribute_list(draft)?;
        let region = self.isolated(|parser| parser.region(&[]))?;
        draft.regions.push(region);
        Ok(())
    }

    /// `attributes {...}` or nothing.
    fn attribute_list(&mut self, draft: &mut Draft) -> Parse<()> {
        if self.accept_word("attributes") {
            self.dictionary_into(&mut draft.attributes)?;
        }
        Ok(())
    }

    /// `private @name(...) -> ... attributes {...} {...}`.
    pub(super) fn function(&mut self, draft: &mut Draft) -> Parse<()> {
        let visibility = self.peek_word();
        if matches!(visibility, "public" | "private" | "nested") {
            self.position += visibility.len();
        }
        let name = self.symbol_name()?;
        let mut signature = Signature::default();
        self.list(("(", ")"), |parser| parser.function_argument(&mut signature))?;
        if self.accept("->") {
            self.function_results(&mut signature)?;
        }
        let Signature { arguments, ty, argument_attributes, result_attributes } = signature;
        set_dictionaries(draft, "arg_attrs", argument_attributes);
        draft.set("function_type", Attribute::Type(Box::new(Type::Function(ty))));
        set_dictionaries(draft, "res_attrs", result_attributes);
        draft.set("sym_name", Attribute::text(&name));
        if matches!(visibility, "public" | "private" | "nested") {
            draft.set("sym_visibility", Attribute::text(visibility));
        }
        self.attribute_list(draft)?;
        let region = match self.peek() {
            b'{' => self.isolated(|parser| parser.region(&arguments))?,
            _ => Region::default(),
        };
        draft.regions.push(region);
        Ok(())
    }

    /// `%name: type {...} loc(...)`, or without the name.
    fn function_argument(&mut self, signature: &mut Signature<'s>) -> Parse<()> {
        self.skip();
        let start = self.position;
        let mut name = None;
        if self.byte(0) == b'%' {
            name = Some(self.value_name()?);
            self.expect(":")?;
        }
        let ty = self.ty()?;
        signature.ty.inputs.push(ty.clone());
        let attributes = self.maybe_dictionary()?;
        signature.argument_attributes.push(attributes);
        let location = self.any_location()?;
        if let Some(name) = name {
            signature.arguments.push(Argument { name, start, ty, location });
        }
        Ok(())
    }

    fn function_results(&mut self, signature: &mut Signature<'s>) -> Parse<()> {
        if self.peek() != b'(' {
            signature.ty.results.push(self.ty()?);
            return Ok(());
        }
        self.list(("(", ")"), |parser| {
            signature.ty.results.push(parser.ty()?);
            let attributes = parser.maybe_dictionary()?;
            signature.result_attributes.push(attributes);
            Ok(())
        })
    }

    fn maybe_dictionary(&mut self) -> Parse<Attributes> {
        if self.peek() == b'{' { self.dictionary() } else { Ok(Attributes::new()) }
    }
}

/// Adds the attributes of arguments or results if there are some.
fn set_dictionaries(draft: &mut Draft, name: &'static str, dictionaries: Vec<Attributes>) {
    if dictionaries.iter().any(|dictionary| !dictionary.is_empty()) {
        let items = dictionaries.into_iter().map(Attribute::Dictionary).collect();
        draft.set(name, Attribute::Array(items));
    }
}
