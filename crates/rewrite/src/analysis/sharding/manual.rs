//! Shardings where a program begins and ends to say itself what each device does.
//!
//! Shardy's custom calls lead from whole arrays to the parts that devices have, and back. Axes that
//! the program handles itself are *manual*: on the inside they divide nothing, because each device
//! has an array of its own.

use rustc_hash::FxHashMap;
use tilewright_ir::metadata::Extras;
use tilewright_ir::ops::control::CustomCallAttrs;
use tilewright_ir::{CompId, Module, Op};

use super::mesh::{DeviceMesh, Stated};
use super::spread::{Axes, Spread};

const IN_SHARDINGS: &str = "xla.sdy.in_shardings";
const OUT_SHARDINGS: &str = "xla.sdy.out_shardings";

const TO_PARTS: &str = "xla.sdy.GlobalToLocalShape";
const TO_WHOLE: &str = "xla.sdy.LocalToGlobalShape";

/// Finds the computations whose arrays are the parts that devices have along manual axes: those that are called
/// between the two custom calls. Returns each with the number of devices along these axes.
pub fn manual_bodies(module: &Module, mesh: &DeviceMesh) -> FxHashMap<CompId, u64> {
    let mut bodies = FxHashMap::default();
    for id in module.computations().iter().flat_map(|&of| module.instructions(of)) {
        let (Op::CustomCall(attrs), Some(extras)) = (module.op(id), module.extras(id)) else {
            continue;
        };
        let axes = mesh.manual_axes(extras).filter(|_| &*attrs.custom_call_target == TO_WHOLE);
        let Some(axes) = axes else { continue };
        for &result in module.operands(id) {
            let call = match (module.op(result), module.operands(result)) {
                (Op::GetTupleElement(_), &[call]) => call,
                _ => result,
            };
            if let Op::Call(attrs) = module.op(call) {
                bodies.insert(attrs.to_apply, mesh.parts(&axes).unsigned_abs().max(1));
            }
        }
    }
    bodies
}

/// The direction of a custom call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    ToParts,
    ToWhole,
}

/// Returns how the results of a custom call lie over devices, given that of its operands: `None` for
/// a result of which that is not certain. Returns `None` if the custom call is no such one.
pub(super) fn crossed<'a>(
    mesh: &DeviceMesh,
    attrs: &CustomCallAttrs,
    extras: &Extras,
    operands: impl Iterator<Item = Option<&'a Spread>>,
) -> Option<Vec<Option<Spread>>> {
    let (way, key) = match &*attrs.custom_call_target {
        TO_PARTS => (Way::ToParts, IN_SHARDINGS),
        TO_WHOLE => (Way::ToWhole, OUT_SHARDINGS),
        _ => return None,
    };
    let stated = mesh.stated_per_value(extras, key)?;
    let manual = mesh.manual_axes(extras)?;
    let result = |(stated, from): (Option<Stated>, Option<&Spread>)| match way {
        Way::ToParts => parts(&stated?, from, &manual),
        Way::ToWhole => whole(&stated?, from, &manual),
    };
    Some(stated.into_iter().zip(operands).map(result).collect())
}

/// Returns how each device's part of an array lies along the axes that are not manual.
fn parts(stated: &Stated, from: Option<&Spread>, manual: &[u8]) -> Option<Spread> {
    let inside = |dims: &mut dyn Iterator<Item = &Axes>| {
        let is_left = |axis: &u8| !manual.contains(axis);
        let dims: Vec<Axes> =
            dims.map(|axes| axes.iter().copied().filter(is_left).collect()).collect();
        Spread::new(dims)
    };
    if stated.is_closed {
        return Some(inside(&mut stated.dims.iter()));
    }
    // XLA may divide an open dim as the operand is divided.
    let from = from.filter(|from| from.iter().len() == stated.dims.len())?;
    let is_kept = from.iter().zip(&stated.dims).all(|(from, stated)| from.starts_with(stated));
    is_kept.then(|| inside(&mut from.iter()))
}

/// Returns how an array lies that consists of the parts of all devices.
fn whole(stated: &Stated, from: Option<&Spread>, manual: &[u8]) -> Option<Spread> {
    if stated.is_closed {
        return Some(Spread::new(stated.dims.iter().cloned()));
    }
    let from = from.filter(|from| from.iter().len() == stated.dims.len())?;
    let join = |(from, stated): (&Axes, &Axes)| {
        let outer = stated.iter().copied().filter(|axis| manual.contains(axis));
        outer.chain(from.iter().copied()).collect::<Axes>()
    };
    let joined = Spread::new(from.iter().zip(&stated.dims).map(join).collect::<Vec<_>>());
    let is_kept = joined.iter().zip(&stated.dims).all(|(axes, stated)| axes.starts_with(stated));
    Some(joined).filter(|joined| is_kept && joined.uses_each_axis_once())
}
