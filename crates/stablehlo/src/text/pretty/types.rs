//! The types after a pretty form, which say less than those of the generic form.

use super::super::error::SyntaxError;
use super::super::operation::Draft;
use super::super::{Parse, Parser};
use crate::dialect::Types;
use crate::mlir::{FunctionType, Scalar, TensorType, Type};

/// The types of the operands.
enum Inputs {
    Each(Vec<Type>),
    /// One type of all: it is not copied, since types and lists of operands may be long.
    All(Type),
}

impl Parser<'_> {
    /// Takes the types of a form and checks them.
    pub(super) fn form_types(&mut self, types: Types, draft: &mut Draft) -> Parse<()> {
        self.skip();
        let start = self.position;
        let (inputs, results) = match types {
            Types::Function => function(self.function_type()?),
            Types::Arrow | Types::Brackets => self.arrow("->")?,
            Types::To => self.arrow("to")?,
            Types::Results => (Inputs::Each(Vec::new()), self.bare_types()?),
            Types::Operands => (Inputs::Each(self.bare_types()?), Vec::new()),
            Types::SameOperands => (Inputs::All(self.ty()?), Vec::new()),
            Types::Pairwise | Types::Unary => {
                let inputs = self.bare_types()?;
                (Inputs::Each(inputs.clone()), inputs)
            }
            Types::Same | Types::Complex | Types::Tuple => self.one_or_function(types)?,
            Types::Select => self.select_types()?,
        };
        draft.results = results;
        match &inputs {
            Inputs::Each(inputs) => self.check_operands(draft, inputs.iter(), start),
            Inputs::All(input) => {
                let inputs = std::iter::repeat_n(input, draft.operands.len());
                self.check_operands(draft, inputs, start)
            }
        }
    }

    /// `a, b -> c`, or another word for the arrow.
    fn arrow(&mut self, arrow: &str) -> Parse<(Inputs, Vec<Type>)> {
        let inputs = if self.peek() == b'(' { self.type_list()? } else { self.bare_types()? };
        self.expect(arrow)?;
        let results = if self.peek() == b'(' { self.type_list()? } else { self.bare_types()? };
        Ok((Inputs::Each(inputs), results))
    }

    /// The type of the result, which tells those of the operands, or a function type.
    fn one_or_function(&mut self, types: Types) -> Parse<(Inputs, Vec<Type>)> {
        self.skip();
        let start = self.position;
        let result = match self.ty()? {
            Type::Function(ty) => return Ok(function(ty)),
            other => other,
        };
        let (inputs, message) = match (types, &result) {
            (Types::Tuple, Type::Tuple(parts)) => (Some(Inputs::Each(parts.clone())), ""),
            (Types::Tuple, _) => (None, "this is no tuple"),
            (Types::Complex, _) => {
                (real(&result).map(Inputs::All), "this is no tensor of complex numbers")
            }
            _ => (Some(Inputs::All(result.clone())), ""),
        };
        let error = || SyntaxError::new(self.span_since(start), message);
        Ok((inputs.ok_or_else(error)?, vec![result]))
    }

    /// `condition, result`, or a function type.
    fn select_types(&mut self) -> Parse<(Inputs, Vec<Type>)> {
        let condition = match self.ty()? {
            Type::Function(ty) => return Ok(function(ty)),
            other => other,
        };
        self.expect(",")?;
        let result = self.ty()?;
        let inputs = vec![condition, result.clone(), result.clone()];
        Ok((Inputs::Each(inputs), vec![result]))
    }
}

fn function(ty: FunctionType) -> (Inputs, Vec<Type>) {
    (Inputs::Each(ty.inputs), ty.results)
}

/// The type of the parts of complex numbers.
fn real(ty: &Type) -> Option<Type> {
    let of = |element: &Scalar| match element {
        Scalar::Complex(part) => Some((**part).clone()),
        _ => None,
    };
    match ty {
        Type::Tensor(tensor) => {
            let element = of(&tensor.element)?;
            Some(Type::Tensor(TensorType { element, ..tensor.clone() }))
        }
        Type::UnrankedTensor(element) => of(element).map(Type::UnrankedTensor),
        _ => None,
    }
}
