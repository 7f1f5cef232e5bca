//! What the costs of a module count for each of its devices.
//!
//! The costs of arrays are those of one device that does the work of all. What each device does by itself, such as
//! to wait or to choose a branch, counts for each.

use tilewright_ir::{CompId, Module};
use tilewright_target::Target;

use super::as_f64;
use crate::analysis::sharding::{DeviceMesh, Flow, Traffic, is_manual};

/// The devices of a module.
#[derive(Clone, Debug)]
pub(super) struct Devices(Option<DeviceMesh>);

impl Devices {
    pub(super) fn of(module: &Module) -> Self {
        Self(DeviceMesh::of(module))
    }

    /// Returns their number.
    fn count(&self) -> u64 {
        self.0.as_ref().map_or(1, |mesh| mesh.devices().unsigned_abs().max(1))
    }

    /// Returns how many of them do the work of a computation, whose arrays are the parts that they have; 1 if its
    /// arrays are those of all devices together.
    pub(super) fn repeats(&self, module: &Module, computation: CompId) -> u64 {
        if is_manual(module, computation) { self.count() } else { 1 }
    }

    /// Returns how often a guard of a computation counts beside its arrays.
    pub(super) fn of_guard(&self, module: &Module, computation: CompId) -> f64 {
        as_f64(self.count() / self.repeats(module, computation))
    }

    /// Returns the cycles in which they wait for each other.
    pub(super) fn waits(&self, module: &Module, target: &Target) -> f64 {
        let waits = self.traffic(module).map_or(0.0, |traffic| traffic.cycles(target));
        as_f64(self.count()) * waits
    }

    /// Returns how much they communicate; `None` if the module is not divided.
    pub(super) fn traffic(&self, module: &Module) -> Option<Traffic> {
        Some(Flow::of(module, self.0.as_ref()?).exchanges().traffic())
    }
}
