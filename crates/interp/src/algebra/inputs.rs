//! Inputs over the field: random elements for floats, the usual ones for the rest.

use tilewright_ir::{ArrayLiteral, Data, Literal, Verified};

use super::field::{hash, random};
use super::function::ELEMENT;
use crate::inputs::{InputKind, RandomInputs};
use crate::limits::Limits;

/// Returns the parameters' values; of two modules with the same parameters the same.
pub(super) fn inputs(
    module: &Verified,
    seed: u64,
    kind: InputKind,
    limits: &Limits,
) -> Result<Vec<Literal>, String> {
    let inputs = RandomInputs::new(seed, kind).limits(*limits).generate(module);
    let inputs = inputs.map_err(|error| error.to_string())?.pop().unwrap_or_default();
    let numbers = (0..).map(|number: u64| hash([seed, number]));
    let elements = inputs.iter().zip(numbers);
    elements.map(|(input, key)| over_field(input, key).map_err(|e| e.to_string())).collect()
}

fn over_field(input: &Literal, key: u64) -> Result<Literal, tilewright_ir::LiteralError> {
    match input {
        Literal::Array(array) => {
            let element_type = array.element_type();
            if !element_type.is_float() && !element_type.is_complex() {
                return Ok(input.clone());
            }
            let count = u64::try_from(array.len()).unwrap_or(u64::MAX);
            let elements = (0..count).map(|i| f64::from_bits(random([key, i])));
            let data = Data::F64(elements.collect());
            ArrayLiteral::new(ELEMENT, array.dims().iter().copied(), data).map(Literal::Array)
        }
        Literal::Tuple(elements) => {
            let keys = (0..).map(|number: u64| hash([key, number]));
            let elements = elements.iter().zip(keys).map(|(e, key)| over_field(e, key));
            elements.collect::<Result<_, _>>().map(Literal::Tuple)
        }
        Literal::Token | Literal::Elided(_) => Ok(input.clone()),
    }
}
