//! What random sums of arrays have in common.

use crate::common::passes;
use tilewright_interp::{Limits, evaluate};
use tilewright_ir::{ArrayLiteral, Data, Literal, Verified};
use tilewright_rewrite::Options;

/// What is computed beside a program, to judge it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Judge {
    /// The program itself.
    None,
    /// In f64, but with what sums are multiplied by, or about, as f32 rounds it.
    Exact,
    /// The same, with the absolute values of the terms.
    Sizes,
}

/// The dims of arrays, each with whether it is summed.
#[derive(Clone, Debug)]
pub(crate) struct Dims(pub(crate) Vec<(i64, bool)>);

impl Dims {
    /// The number of values that each sum adds.
    pub(crate) fn values(&self) -> i64 {
        self.0.iter().filter(|(_, summed)| *summed).map(|(size, _)| size).product()
    }

    /// The places of the dims that are summed, or of the others.
    pub(crate) fn places(&self, summed: bool) -> String {
        let places = (0..).zip(&self.0).filter(|(_, dim)| dim.1 == summed);
        let places: Vec<String> = places.map(|(place, _): (i64, _)| place.to_string()).collect();
        places.join(",")
    }

    /// The shape of an array with some of the dims.
    pub(crate) fn shape(&self, element_type: &str, of: impl Fn(bool) -> bool) -> String {
        let sizes = self.0.iter().filter(|(_, summed)| of(*summed));
        let sizes: Vec<String> = sizes.map(|(size, _)| size.to_string()).collect();
        format!("{element_type}[{}]", sizes.join(","))
    }
}

/// Returns options for a pass under which no array of 64 elements stays on chip, only main memory costs cycles,
/// and nothing is padded.
pub(crate) fn in_main_memory(pass: &str) -> Options {
    let mut options = passes(&[pass, "cse", "dce"], "linear", false);
    options.target.shares_sweeps = true;
    options.target.vector_memory_bytes = 64 * 255;
    options.target.hbm_bytes_per_cycle = 0.01;
    options
}

pub(crate) fn floats(literal: &Literal) -> Vec<f64> {
    match literal.as_array().map(ArrayLiteral::data) {
        Some(Data::F32(values)) => values.iter().map(|&value| f64::from(value)).collect(),
        Some(Data::F64(values)) => values.clone(),
        other => panic!("{other:?}"),
    }
}

/// Returns the results of a module, a tuple.
pub(crate) fn results(module: &Verified, inputs: &[Literal]) -> Vec<Vec<f64>> {
    match evaluate(module, inputs, &Limits::default()).expect("values") {
        Literal::Tuple(parts) => parts.iter().map(floats).collect(),
        other => panic!("{other:?}"),
    }
}
