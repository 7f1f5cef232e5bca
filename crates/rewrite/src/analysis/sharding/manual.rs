//! Shardings where a program begins and ends to say itself what each device does.
//!
//! Shardy's custom calls lead from whole arrays to the parts that devices have, and back. Axes that
//! the program handles itself are *manual*: on the inside they divide nothing, because each device
//! has an array of its own.

use rustc_hash::FxHashMap;
use tilewright_ir::metadata::Extras;
use tilewright_ir::ops::control::{Crossing, CustomCallAttrs};
use tilewright_ir::{CompId, Module, Op};

use super::mesh::{DeviceMesh, MANUAL_AXES, Stated};
use super::spread::{Axes, Spread};

const IN_SHARDINGS: &str = "xla.sdy.in_shardings";
const OUT_SHARDINGS: &str = "xla.sdy.out_shardings";

/// Finds the computations whose arrays are the parts that devices have along manual axes: those that are called
/// between the two custom calls. Returns each with the number of devices along these axes.
pub fn manual_bodies(module: &Module, mesh: &DeviceMesh) -> FxHashMap<CompId, u64> {
    let mut bodies = FxHashMap::default();
    for id in module.computations().iter().flat_map(|&of| module.instructions(of)) {
        let (Op::CustomCall(attrs), Some(extras)) = (module.op(id), module.extras(id)) else {
            continue;
        };
        let leaves = attrs.crossing() == Some(Crossing::ToWholes);
        let Some(axes) = mesh.manual_axes(extras).filter(|_| leaves) else { continue };
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

/// Adds the computations that [manual bodies](manual_bodies) call, each with the same number of devices.
pub fn with_callees(module: &Module, bodies: FxHashMap<CompId, u64>) -> FxHashMap<CompId, u64> {
    let mut within = bodies;
    // Computations stand before their callers.
    for &computation in module.computations().iter().rev() {
        let Some(&devices) = within.get(&computation) else { continue };
        for id in module.instructions(computation) {
            module.op(id).for_each_computation(&mut |callee| {
                within.entry(callee).or_insert(devices);
            });
        }
    }
    within
}

/// The instructions that call a manual computation along all axes.
#[derive(Clone, Debug)]
pub struct ManualCalls {
    /// The beginning of the name of the computation that is called.
    pub body: &'static str,
    /// The custom call that takes whole arrays to a tuple of parts.
    pub to_parts: (Op, Extras),
    /// The extras of the call, by which XLA inlines it only when it has read the custom calls.
    pub call: Extras,
    /// The custom call that takes the parts of results to whole arrays.
    pub to_whole: (Op, Extras),
}

impl DeviceMesh {
    /// Returns the calls for arguments and results of these spreads; `None` if the mesh has no names.
    pub fn manual_calls(&self, arguments: &[&Spread], results: &[&Spread]) -> Option<ManualCalls> {
        let axes = self.axis_names()?;
        let crossing = |target: &str, key: &str, spreads: &[&Spread]| {
            let attrs = CustomCallAttrs {
                custom_call_target: target.into(),
                custom_call_has_side_effect: true,
                ..CustomCallAttrs::default()
            };
            let mut extras = Extras::default();
            let axes = format!("#sdy<manual_axes{{{axes}}}>").into_boxed_str();
            let spreads = self.per_value(spreads)?.into_boxed_str();
            extras.frontend_attributes = vec![(MANUAL_AXES.into(), axes), (key.into(), spreads)];
            Some((Op::CustomCall(Box::new(attrs)), extras))
        };
        let mut call = Extras::default();
        call.frontend_attributes = vec![("inlineable".into(), "xla_late".into())];
        Some(ManualCalls {
            body: "xla.sdy.manual_computation_body",
            to_parts: crossing(CustomCallAttrs::TO_SHARDS, IN_SHARDINGS, arguments)?,
            call,
            to_whole: crossing(CustomCallAttrs::TO_WHOLES, OUT_SHARDINGS, results)?,
        })
    }
}

/// Returns how the results of a custom call lie over devices, given that of its operands: `None` for
/// a result of which that is not certain. Returns `None` if the custom call is no such one.
pub(super) fn crossed<'a>(
    mesh: &DeviceMesh,
    attrs: &CustomCallAttrs,
    extras: &Extras,
    operands: impl Iterator<Item = Option<&'a Spread>>,
) -> Option<Vec<Option<Spread>>> {
    let way = attrs.crossing()?;
    let key = match way {
        Crossing::ToShards => IN_SHARDINGS,
        Crossing::ToWholes => OUT_SHARDINGS,
    };
    let stated = mesh.stated_per_value(extras, key)?;
    let manual = mesh.manual_axes(extras)?;
    let result = |(stated, from): (Option<Stated>, Option<&Spread>)| match way {
        Crossing::ToShards => parts(&stated?, from, &manual),
        Crossing::ToWholes => whole(&stated?, from, &manual),
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
