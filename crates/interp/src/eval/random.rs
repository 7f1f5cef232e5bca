//! Random numbers. No generator is implemented; every op says why.

use tilewright_ir::ops::random::{RngAlgorithm, RngAttrs, RngBitGeneratorAttrs, RngStateAttrs};

use super::{Cx, unsupported};
use crate::error::Outcome;
use crate::value::Value;

pub(super) fn rng(_cx: &mut Cx<'_, '_>, _attrs: &RngAttrs) -> Outcome<Value> {
    Err(unsupported("its numbers are not the same from run to run"))
}

pub(super) fn rng_bit_generator(
    _cx: &mut Cx<'_, '_>,
    attrs: &RngBitGeneratorAttrs,
) -> Outcome<Value> {
    Err(unsupported(match attrs.algorithm {
        RngAlgorithm::Default => "the backend chooses its algorithm",
        RngAlgorithm::ThreeFry | RngAlgorithm::Philox => "its algorithm is not implemented",
    }))
}

pub(super) fn rng_state(_cx: &mut Cx<'_, '_>, _attrs: &RngStateAttrs) -> Outcome<Value> {
    Err(unsupported("there is no state between runs"))
}
