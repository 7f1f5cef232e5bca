//! The types after a pretty form, which say less than those of the generic form.

use super::super::error::SyntaxError;
use super::super::operation::Draft;
use super::super::{Parse, Parser};
use crate::mlir::{FunctionType, Scalar, TensorType, Type};

/// Which types a form gives.
#[derive(Clone, Copy)]
pub(super) enum Types {
    /// `(a, b) -> c`.
    Function,
    /// `a, b -> c`, with or without parentheses.
    Arrow,
    /// `a, b to c`.
    To,
    /// One type of all operands and of the result, or `(a, b) -> c`.
    Same,
    /// The types of the results.
    Results,
    /// The types of the operands; there are no results.
    Operands,
    /// The type of each operand; there are no results.
    SameOperands,
    /// The types of the operands, which are also those of the results.
    Pairwise,
    /// The type of the only operand, which is that of the result, too.
    Unary,
    /// The condition and the result of a `select`, or `(a, b, b) -> b`.
    Select,
    /// A tensor of complex numbers; those of the operands are real.
    Complex,
    /// A tuple of the types of the operands.
    Tuple,
}

impl Parser<'_> {
    /// Takes the types of a form and checks them.
    pub(super) fn form_types(&mut self, types: Types, draft: &mut Draft) -> Parse<()> {
        self.skip();
        let start = self.position;
        let FunctionType { inputs, results } = match types {
            Types::Function => self.function_type()?,
            Types::Arrow => self.arrow()?,
            Types::To => {
                let inputs = self.bare_types()?;
                self.expect_word("to")?;
                FunctionType { inputs, results: self.bare_types()? }
            }
            Types::Results => FunctionType { inputs: Vec::new(), results: self.bare_types()? },
            Types::Operands => FunctionType { inputs: self.bare_types()?, results: Vec::new() },
            Types::SameOperands => {
                let inputs = vec![self.ty()?; draft.operands.len()];
                FunctionType { inputs, results: Vec::new() }
            }
            Types::Pairwise | Types::Unary => {
                let inputs = self.bare_types()?;
                FunctionType { results: inputs.clone(), inputs }
            }
            Types::Same | Types::Complex | Types::Tuple => self.one_or_function(types, draft)?,
            Types::Select => self.select_types()?,
        };
        draft.results = results;
        self.check_operands(draft, &inputs, start)
    }

    /// `a, b -> c`.
    fn arrow(&mut self) -> Parse<FunctionType> {
        let inputs = if self.peek() == b'(' { self.type_list()? } else { self.bare_types()? };
        self.expect("->")?;
        let results = if self.peek() == b'(' { self.type_list()? } else { self.bare_types()? };
        Ok(FunctionType { inputs, results })
    }

    /// The type of the result, which tells those of the operands, or a function type.
    fn one_or_function(&mut self, types: Types, draft: &Draft) -> Parse<FunctionType> {
        self.skip();
        let start = self.position;
        let result = match self.ty()? {
            Type::Function(function) => return Ok(function),
            other => other,
        };
        let count = draft.operands.len();
        let inputs = match (types, &result) {
            (Types::Tuple, Type::Tuple(parts)) => Some(parts.clone()),
            (Types::Tuple, _) => None,
            (Types::Complex, _) => real(&result).map(|real| vec![real; count]),
            _ => Some(vec![result.clone(); count]),
        };
        let Some(inputs) = inputs else {
            let message = match types {
                Types::Tuple => "this is no tuple",
                _ => "this is no tensor of complex numbers",
            };
            return Err(SyntaxError::new(self.span_since(start), message));
        };
        Ok(FunctionType { inputs, results: vec![result] })
    }

    /// `condition, result`, or a function type.
    fn select_types(&mut self) -> Parse<FunctionType> {
        let condition = match self.ty()? {
            Type::Function(function) => return Ok(function),
            other => other,
        };
        self.expect(",")?;
        let result = self.ty()?;
        let inputs = vec![condition, result.clone(), result.clone()];
        Ok(FunctionType { inputs, results: vec![result] })
    }
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
