//! Computes how often a cost counts in a module that is divided over several devices. The ledger
//! asks.
//!
//! The model charges arithmetic and memory traffic as if one device did the work of all devices.
//! Each device waits for communication and takes the branches of guards by itself, so these cycles
//! count once for each device.

use rustc_hash::FxHashMap;
use tilewright_ir::{CompId, Module};
use tilewright_target::Target;

use super::as_f64;
use crate::analysis::sharding::{DeviceMesh, Flow, Traffic, manual_bodies, with_callees};

/// The devices that a module is divided over.
#[derive(Clone, Debug)]
pub(super) struct Devices {
    mesh: Option<DeviceMesh>,
    /// The manual computations, whose arrays are the parts that devices hold, each with the number
    /// of devices that hold such parts.
    manual: FxHashMap<CompId, u64>,
    /// The manual computations and all computations that they call, each with that number of
    /// devices.
    manual_with_callees: FxHashMap<CompId, u64>,
}

impl Devices {
    /// Finds the devices of a module.
    pub(super) fn of(module: &Module) -> Self {
        let mesh = DeviceMesh::of(module);
        let manual = mesh.as_ref().map(|mesh| manual_bodies(module, mesh)).unwrap_or_default();
        let manual_with_callees = with_callees(module, manual.clone());
        Self { mesh, manual, manual_with_callees }
    }

    /// Finds the manual computations again after computations were added to a module. Returns the
    /// state before, or `None` if the module is not divided.
    pub(super) fn refresh(&mut self, module: &Module) -> Option<Self> {
        self.mesh.is_some().then(|| std::mem::replace(self, Self::of(module)))
    }

    /// Checks whether a computation is manual: whether its arrays are the parts that devices hold.
    pub(super) fn is_manual(&self, computation: CompId) -> bool {
        self.manual.contains_key(&computation)
    }

    /// Returns the number of devices, 1 if the module is not divided.
    fn count(&self) -> u64 {
        self.mesh.as_ref().map_or(1, |mesh| mesh.devices().unsigned_abs().max(1))
    }

    /// Returns how often the cost of a computation counts where the computation is called: once for
    /// each device that holds its own parts of the arrays there.
    pub(super) fn repeats(&self, computation: CompId) -> u64 {
        self.manual.get(&computation).copied().unwrap_or(1)
    }

    /// Checks whether the arrays of a computation are the parts that devices hold.
    pub(super) fn holds_parts(&self, computation: CompId) -> bool {
        self.manual_with_callees.contains_key(&computation)
    }

    /// Returns how often the cost of a computation counts in the module: as often as that of the manual computation
    /// which calls it.
    pub(super) fn repeats_with_callers(&self, computation: CompId) -> u64 {
        self.manual_with_callees.get(&computation).copied().unwrap_or(1)
    }

    /// Returns the factor of a guard's cost in its computation: `devices / repeats`. The repeats of
    /// the computation multiply the cost again, so the guard counts once for each device.
    pub(super) fn guard_factor(&self, computation: CompId) -> f64 {
        let repeats = self.repeats_with_callers(computation);
        as_f64(self.count()) / as_f64(repeats)
    }

    /// Returns the cycles in which devices wait for each other, summed over all devices.
    pub(super) fn waits(&self, module: &Module, target: &Target) -> f64 {
        let waits = self.traffic(module).map_or(0.0, |traffic| traffic.cycles(target));
        as_f64(self.count()) * waits
    }

    /// Returns how much the devices communicate; `None` if the module is not divided.
    pub(super) fn traffic(&self, module: &Module) -> Option<Traffic> {
        Some(Flow::of(module, self.mesh.as_ref()?).exchanges().traffic())
    }
}
