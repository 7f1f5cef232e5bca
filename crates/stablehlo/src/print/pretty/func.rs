//! `builtin.module`, `func.func` and `stablehlo.while`.

use super::super::{attribute, word};
use super::form::rest;
use super::{Fit, Label, Printer, Unfit};
use crate::mlir::{Attribute, Attributes, FunctionType, Operation, Region, Type, Value};

impl<'p> Printer<'p> {
    /// `@name attributes {...} {...}`.
    pub(super) fn module(&mut self, operation: &'p Operation, depth: usize) -> Fit {
        let [region] = operation.regions.as_slice() else { return Err(Unfit) };
        if !operation.operands.is_empty() || !operation.results.is_empty() {
            return Err(Unfit);
        }
        if let Some(name) = operation.attribute("sym_name") {
            self.out.push_str(" @");
            self.name(name)?;
        }
        self.attribute_list(operation, &["sym_name"]);
        self.out.push(' ');
        self.region(region, depth, Label::Shown, "builtin");
        Ok(())
    }

    /// ` attributes {...}` or nothing.
    fn attribute_list(&mut self, operation: &Operation, without: &[&str]) {
        let rest = rest(operation, |name| without.contains(&name));
        if !rest.is_empty() {
            self.out.push_str(" attributes ");
            attribute::dictionary_of(&mut self.out, &rest, 0);
        }
    }

    fn name(&mut self, name: &Attribute) -> Fit {
        let Attribute::String(bytes) = name else { return Err(Unfit) };
        word(&mut self.out, std::str::from_utf8(bytes).map_err(|_| Unfit)?);
        Ok(())
    }

    /// `private @name(...) -> ... attributes {...} {...}`.
    pub(super) fn function(&mut self, operation: &'p Operation, depth: usize) -> Fit {
        let [region] = operation.regions.as_slice() else { return Err(Unfit) };
        let Some(Attribute::Type(ty)) = operation.attribute("function_type") else {
            return Err(Unfit);
        };
        let Type::Function(ty) = &**ty else { return Err(Unfit) };
        if !operation.operands.is_empty() || !operation.results.is_empty() {
            return Err(Unfit);
        }
        if let Some(visibility) = operation.attribute("sym_visibility") {
            let Attribute::String(word) = visibility else { return Err(Unfit) };
            let known = ["public", "private", "nested"];
            let word = known.into_iter().find(|known| known.as_bytes() == &**word);
            self.out.push_str(&format!(" {}", word.ok_or(Unfit)?));
        }
        self.out.push_str(" @");
        self.name(operation.attribute("sym_name").ok_or(Unfit)?)?;
        self.signature(operation, ty, region)?;
        let without = ["arg_attrs", "function_type", "res_attrs", "sym_name", "sym_visibility"];
        self.attribute_list(operation, &without);
        if !region.blocks.is_empty() {
            self.out.push(' ');
            self.region(region, depth, Label::Hidden, "func");
        }
        Ok(())
    }

    /// `(%arg0: type {...}, ...) -> (type {...}, ...)`.
    fn signature(
        &mut self,
        operation: &'p Operation,
        ty: &'p FunctionType,
        region: &Region,
    ) -> Fit {
        let of_arguments = dictionaries(operation, "arg_attrs", ty.inputs.len())?;
        let of_results = dictionaries(operation, "res_attrs", ty.results.len())?;
        let arguments = region.blocks.first().map(|block| block.arguments.as_slice());
        if let Some(arguments) = arguments {
            let types = arguments.iter().map(|&argument| self.type_of(argument));
            if !types.eq(&ty.inputs) {
                return Err(Unfit);
            }
        }
        self.out.push('(');
        for (at, input) in ty.inputs.iter().enumerate() {
            self.out.push_str(if at > 0 { ", " } else { "" });
            let argument = arguments.and_then(|arguments| arguments.get(at)).copied();
            if let Some(argument) = argument {
                self.value(argument);
                self.out.push_str(": ");
            }
            self.ty(input);
            self.value_attributes(of_arguments.get(at));
            if let Some(argument) = argument {
                self.argument_location(argument);
            }
        }
        self.out.push(')');
        self.function_results(ty, &of_results);
        Ok(())
    }

    fn function_results(&mut self, ty: &FunctionType, attributes: &[&Attributes]) {
        let is_plain = match ty.results.as_slice() {
            [] => return,
            [Type::Function(_)] => false,
            [_] => attributes.first().is_none_or(|entries| entries.is_empty()),
            _ => false,
        };
        self.out.push_str(if is_plain { " -> " } else { " -> (" });
        for (at, result) in ty.results.iter().enumerate() {
            self.out.push_str(if at > 0 { ", " } else { "" });
            self.ty(result);
            self.value_attributes(attributes.get(at));
        }
        self.out.push_str(if is_plain { "" } else { ")" });
    }

    fn value_attributes(&mut self, entries: Option<&&Attributes>) {
        if let Some(entries) = entries.filter(|entries| !entries.is_empty()) {
            self.out.push(' ');
            attribute::dictionary(&mut self.out, entries, 0);
        }
    }

    /// `(%iterArg = %b, ...) : types attributes {...} cond {...} do {...}`.
    pub(super) fn while_loop(&mut self, operation: &'p Operation, depth: usize) -> Fit {
        let [condition, body] = operation.regions.as_slice() else { return Err(Unfit) };
        let types = |values: &[Value]| -> Vec<&Type> {
            values.iter().map(|&value| self.type_of(value)).collect()
        };
        let [of_condition, of_body] = [condition, body].map(|region| match &region.blocks[..] {
            [] => Ok(&[][..]),
            [block] => Ok(block.arguments.as_slice()),
            _ => Err(Unfit),
        });
        let (arguments, of_body) = (of_condition?, of_body?);
        let carried = types(&operation.results);
        let lists = [operation.operands.as_slice(), arguments, of_body];
        if lists.into_iter().any(|values| types(values) != carried) {
            return Err(Unfit);
        }
        self.out.push('(');
        for (at, (&argument, &operand)) in arguments.iter().zip(&operation.operands).enumerate() {
            self.out.push_str(if at > 0 { ", " } else { "" });
            self.value(argument);
            self.out.push_str(" = ");
            self.value(operand);
        }
        self.out.push(')');
        if !carried.is_empty() {
            self.out.push_str(" : ");
            super::super::list(&mut self.out, carried, |out, ty| {
                super::super::types::push(out, ty, 0);
            });
        }
        self.attribute_list(operation, &[]);
        self.out.push('\n');
        self.indent(depth);
        self.out.push_str("cond ");
        self.region(condition, depth, Label::Hidden, "");
        self.out.push_str(" do ");
        self.region(body, depth, Label::Hidden, "");
        Ok(())
    }
}

/// The attributes of each argument or result of a function; an empty list if none has some.
fn dictionaries<'a>(
    operation: &'a Operation,
    name: &str,
    count: usize,
) -> Result<Vec<&'a Attributes>, Unfit> {
    match operation.attribute(name) {
        None => Ok(Vec::new()),
        Some(Attribute::Array(items)) if items.len() == count => items
            .iter()
            .map(|item| match item {
                Attribute::Dictionary(entries) => Ok(entries),
                _ => Err(Unfit),
            })
            .collect(),
        Some(_) => Err(Unfit),
    }
}
