//! The devices that a module is divided over, as its costs count them.
//!
//! The costs of arrays are those of one device that does the work of all. Each device waits and chooses branches by
//! itself, so that these costs count for each.

use rustc_hash::FxHashMap;
use tilewright_ir::{CompId, Module};
use tilewright_target::Target;

use super::as_f64;
use crate::analysis::sharding::{DeviceMesh, Flow, Traffic, manual_bodies, with_callees};

/// The devices of a module.
#[derive(Clone, Debug)]
pub(super) struct Devices {
    mesh: Option<DeviceMesh>,
    /// The computations whose arrays are parts, each with the number of devices that have such parts.
    bodies: FxHashMap<CompId, u64>,
    /// The same for what is called within these computations.
    within: FxHashMap<CompId, u64>,
}

impl Devices {
    pub(super) fn of(module: &Module) -> Self {
        let mesh = DeviceMesh::of(module);
        let bodies = mesh.as_ref().map(|mesh| manual_bodies(module, mesh)).unwrap_or_default();
        let within = with_callees(module, bodies.clone());
        Self { mesh, bodies, within }
    }

    /// Finds the computations again in a module of several devices to which computations were added; returns what was
    /// known before.
    pub(super) fn follow(&mut self, module: &Module) -> Option<Self> {
        self.mesh.is_some().then(|| std::mem::replace(self, Self::of(module)))
    }

    /// Checks whether the arrays of a computation are parts.
    pub(super) fn is_body(&self, computation: CompId) -> bool {
        self.bodies.contains_key(&computation)
    }

    /// Returns the number of devices.
    fn count(&self) -> u64 {
        self.mesh.as_ref().map_or(1, |mesh| mesh.devices().unsigned_abs().max(1))
    }

    /// Returns how often the cost of a computation counts where it is called: for each device that has parts of its
    /// own there.
    pub(super) fn repeats(&self, computation: CompId) -> u64 {
        self.bodies.get(&computation).copied().unwrap_or(1)
    }

    /// Returns how often the branch of a guard counts in its computation. With the repeats of that computation, it
    /// counts once for each device.
    pub(super) fn of_guard(&self, computation: CompId) -> f64 {
        let repeats = self.within.get(&computation).copied().unwrap_or(1);
        as_f64(self.count()) / as_f64(repeats)
    }

    /// Returns the cycles in which all devices wait for each other.
    pub(super) fn waits(&self, module: &Module, target: &Target) -> f64 {
        let waits = self.traffic(module).map_or(0.0, |traffic| traffic.cycles(target));
        as_f64(self.count()) * waits
    }

    /// Returns how much they communicate; `None` if the module is not divided.
    pub(super) fn traffic(&self, module: &Module) -> Option<Traffic> {
        Some(Flow::of(module, self.mesh.as_ref()?).exchanges().traffic())
    }
}
