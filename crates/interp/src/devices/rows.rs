//! The values of several devices as the rows of one: row `i` is device `i`'s.

use tilewright_ir::{ArrayLiteral, ArrayShape, Data, Literal, LiteralError, Shape};

use crate::lanes::append;

/// Returns the shape with a row for each device: every array has one more dim, its first.
pub fn shape_of_rows(shape: &Shape, devices: usize) -> Shape {
    match shape {
        Shape::Array(array) => {
            let count = i64::try_from(devices).unwrap_or(i64::MAX);
            let dims = std::iter::once(count).chain(array.dims().iter().copied());
            Shape::Array(ArrayShape::new(array.element_type, dims))
        }
        Shape::Tuple(elements) => {
            Shape::Tuple(elements.iter().map(|shape| shape_of_rows(shape, devices)).collect())
        }
        other => other.clone(),
    }
}

/// Returns the value of each device.
///
/// # Errors
/// Returns an error if an array does not have this many rows.
pub fn split_rows(value: &Literal, devices: usize) -> Result<Vec<Literal>, LiteralError> {
    let array = match value {
        Literal::Array(array) => array,
        Literal::Tuple(elements) => {
            let elements = elements.iter().map(|element| split_rows(element, devices));
            let elements = elements.collect::<Result<Vec<_>, _>>()?;
            let of = |device: usize| {
                Literal::Tuple(elements.iter().filter_map(|e| e.get(device).cloned()).collect())
            };
            return Ok((0..devices).map(of).collect());
        }
        other => return Ok(vec![other.clone(); devices]),
    };
    let (rows, dims) = array.dims().split_first().unwrap_or((&1, &[]));
    if usize::try_from(*rows) != Ok(devices) {
        let dims = array.dims().into();
        return Err(LiteralError::Count { elements: devices, dims });
    }
    let size = array.len() / devices.max(1);
    let row = |device: usize| {
        let places = device * size..(device + 1) * size;
        let data = array.data().gather(places);
        Ok(ArrayLiteral::new(array.element_type(), dims.iter().copied(), data)?.into())
    };
    (0..devices).map(row).collect()
}

/// Returns the values of all devices as one.
///
/// # Errors
/// Returns an error if they do not have the same shape.
pub fn join_rows(values: &[&Literal]) -> Result<Literal, LiteralError> {
    let Some(first) = values.first() else { return Ok(Literal::Tuple(Vec::new())) };
    match first {
        Literal::Array(array) => {
            let mut data = Data::zeros(array.element_type(), 0);
            for value in values {
                let row = value.as_array().filter(|row| row.dims() == array.dims());
                let row = row.ok_or(LiteralError::NotStatic)?;
                append(&mut data, row.data(), 0, row.len())
                    .map_err(|_| LiteralError::Storage(array.element_type()))?;
            }
            let count = i64::try_from(values.len()).unwrap_or(i64::MAX);
            let dims = std::iter::once(count).chain(array.dims().iter().copied());
            Ok(ArrayLiteral::new(array.element_type(), dims, data)?.into())
        }
        Literal::Tuple(elements) => {
            let joined = (0..elements.len()).map(|at| {
                let of_all = values.iter().filter_map(|value| match value {
                    Literal::Tuple(elements) => elements.get(at),
                    _ => None,
                });
                join_rows(&of_all.collect::<Vec<_>>())
            });
            Ok(Literal::Tuple(joined.collect::<Result<_, _>>()?))
        }
        other => Ok((*other).clone()),
    }
}
