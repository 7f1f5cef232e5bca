//! The types after a pretty form.

use super::super::{list, types};
use super::{Fit, Printer, Unfit};
use crate::dialect::Types;
use crate::mlir::{Operation, Scalar, TensorType, Type, Value};

impl<'p> Printer<'p> {
    /// Writes the types of an operation by the rule of its form.
    pub(super) fn form_types(&mut self, rule: Types, operation: &Operation) -> Fit {
        let inputs = self.types(&operation.operands);
        let results = self.types(&operation.results);
        match (rule, results.as_slice()) {
            (Types::Function | Types::Brackets, _) => {
                self.function_type(operation);
                Ok(())
            }
            (Types::Arrow, _) => self.arrow(&inputs, "->", &results),
            (Types::To, _) => self.arrow(&inputs, "to", &results),
            (Types::Same, [result]) => {
                let is_same = inputs.iter().all(|input| input == result);
                self.one_or_function(is_same, result, operation)
            }
            (Types::Complex, [result]) => {
                let part = real(result);
                let is_same = inputs.iter().all(|input| Some(*input) == part.as_ref());
                self.one_or_function(is_same, result, operation)
            }
            (Types::Tuple, [result]) => {
                let is_same =
                    matches!(result, Type::Tuple(parts) if parts.iter().eq(inputs.iter().copied()));
                self.one_or_function(is_same, result, operation)
            }
            (Types::Select, [result]) => self.select_types(&inputs, result, operation),
            (Types::Results, [_, ..]) if inputs.is_empty() => self.bare(&results),
            (Types::Operands, []) => self.bare(&inputs),
            (Types::SameOperands, []) => match inputs.split_first() {
                Some((first, rest)) if rest.iter().all(|ty| ty == first) => self.bare(&[first]),
                _ => Err(Unfit),
            },
            (Types::Pairwise, _) if inputs == results => self.bare(&inputs),
            (Types::Unary, [result]) if inputs == [*result] => self.bare(&inputs),
            _ => Err(Unfit),
        }
    }

    fn types(&self, values: &[Value]) -> Vec<&'p Type> {
        values.iter().map(|&value| self.type_of(value)).collect()
    }

    fn bare(&mut self, list_of: &[&Type]) -> Fit {
        list(&mut self.out, list_of, |out, ty| types::push(out, ty, 0));
        Ok(())
    }

    fn arrow(&mut self, inputs: &[&Type], arrow: &str, results: &[&Type]) -> Fit {
        let has_function = inputs.iter().chain(results).any(|ty| matches!(ty, Type::Function(_)));
        if inputs.is_empty() || has_function {
            return Err(Unfit);
        }
        self.bare(inputs)?;
        self.out.push_str(&format!(" {arrow} "));
        let is_plain = results.len() == 1;
        self.out.push_str(if is_plain { "" } else { "(" });
        self.bare(results)?;
        self.out.push_str(if is_plain { "" } else { ")" });
        Ok(())
    }

    /// The type of the result, if it tells those of the operands.
    fn one_or_function(&mut self, is_enough: bool, result: &Type, operation: &Operation) -> Fit {
        match (is_enough, result) {
            (true, Type::Function(_)) => Err(Unfit),
            (true, _) => self.bare(&[result]),
            (false, _) => {
                self.function_type(operation);
                Ok(())
            }
        }
    }

    fn select_types(&mut self, inputs: &[&Type], result: &Type, operation: &Operation) -> Fit {
        match inputs {
            [condition, on_true, on_false] if *on_true == result && *on_false == result => {
                match condition {
                    Type::Function(_) => Err(Unfit),
                    _ => self.bare(&[condition, result]),
                }
            }
            _ => {
                self.function_type(operation);
                Ok(())
            }
        }
    }
}

/// The type of the parts of complex numbers.
fn real(ty: &Type) -> Option<Type> {
    let Type::Tensor(tensor) = ty else { return None };
    let Scalar::Complex(part) = &tensor.element else { return None };
    Some(Type::Tensor(TensorType { element: (**part).clone(), ..tensor.clone() }))
}
