//! Random numbers.

use tilewright_ir::ops::random::{RngAttrs, RngBitGeneratorAttrs, RngStateAttrs};

use super::{Cx, unsupported};
use crate::error::Outcome;
use crate::value::Value;

pub(super) fn rng(_cx: &mut Cx<'_, '_>, _attrs: &RngAttrs) -> Outcome<Value> {
    Err(unsupported("its numbers are not the same from run to run"))
}

pub(super) fn rng_bit_generator(
    _cx: &mut Cx<'_, '_>,
    _attrs: &RngBitGeneratorAttrs,
) -> Outcome<Value> {
    Err(unsupported("no algorithm is implemented"))
}

pub(super) fn rng_state(_cx: &mut Cx<'_, '_>, _attrs: &RngStateAttrs) -> Outcome<Value> {
    Err(unsupported("there is no state between runs"))
}
