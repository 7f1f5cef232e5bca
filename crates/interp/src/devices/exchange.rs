//! The exchange of values between devices.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;
use tilewright_ir::InstId;

use super::Parcel;
use crate::error::{Fault, Outcome};

/// The label of a parcel: where it is handed over, and the number of times (`turn`) that its sender
/// came there before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Label {
    pub(crate) handover: Handover,
    pub(crate) turn: u64,
    /// The device that hands it out.
    pub(crate) from: usize,
}

/// The place in a program at which parcels are handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Handover {
    /// A collective.
    Collective(InstId),
    /// The sends to one device over a channel.
    Channel { channel: i64, to: usize },
}

/// The parcels that were handed out and not taken yet.
pub(crate) struct Exchange {
    state: Mutex<Parcels>,
    changed: Condvar,
}

/// Parcels on their way, and who waits for them.
struct Parcels {
    parcels: FxHashMap<Label, (Parcel, usize)>,
    /// Devices that neither wait nor have ended.
    running: usize,
    /// The labels that waiting devices wait for.
    wanted: FxHashMap<usize, Vec<Label>>,
    stopped: Option<Stop>,
}

/// The reason why waiting has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    /// All running devices wait for each other, or for one that has ended.
    Deadlock,
    /// A device failed.
    Failure,
}

impl Exchange {
    /// Creates an exchange for this many devices, all of which run.
    pub(crate) fn new(devices: usize) -> Self {
        let state = Parcels {
            parcels: FxHashMap::default(),
            running: devices,
            wanted: FxHashMap::default(),
            stopped: None,
        };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Locks the state. Every change of the state is complete, so the state of a device that
    /// panicked is valid, too.
    fn lock(&self) -> MutexGuard<'_, Parcels> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands out a parcel that this many devices will take.
    pub(crate) fn put(&self, label: Label, parcel: Parcel, takers: usize) {
        if takers > 0 {
            self.lock().parcels.insert(label, (parcel, takers));
            self.changed.notify_all();
        }
    }

    /// Takes parcels, each once it is there.
    pub(crate) fn take(&self, device: usize, labels: &[Label]) -> Outcome<Vec<Parcel>> {
        let mut state = self.lock();
        if !state.has_all(labels) {
            state.running -= 1;
            state.wanted.insert(device, labels.to_vec());
            self.look_for_deadlock(&mut state);
            while !state.has_all(labels) && state.stopped.is_none() {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            state.wanted.remove(&device);
            state.running += 1;
        }
        match state.stopped {
            Some(Stop::Failure) => Err(Fault::Abandoned),
            Some(Stop::Deadlock) => Err(Fault::Deadlock),
            None => labels.iter().map(|label| state.take(label)).collect(),
        }
    }

    /// A device has ended, well or not.
    pub(crate) fn end(&self, failed: bool) {
        let mut state = self.lock();
        state.running -= 1;
        if failed {
            state.stopped.get_or_insert(Stop::Failure);
            self.changed.notify_all();
        }
        self.look_for_deadlock(&mut state);
    }

    fn look_for_deadlock(&self, state: &mut Parcels) {
        let stuck = state.running == 0
            && !state.wanted.is_empty()
            && state.wanted.values().all(|labels| !state.has_all(labels));
        if stuck {
            state.stopped.get_or_insert(Stop::Deadlock);
            self.changed.notify_all();
        }
    }
}

impl Parcels {
    fn has_all(&self, labels: &[Label]) -> bool {
        labels.iter().all(|label| self.parcels.contains_key(label))
    }

    fn take(&mut self, label: &Label) -> Outcome<Parcel> {
        let missing = Fault::Internal("a parcel was taken twice");
        let Some((parcel, takers)) = self.parcels.get_mut(label) else { return Err(missing) };
        let parcel = parcel.clone();
        *takers -= 1;
        if *takers == 0 {
            self.parcels.remove(label);
        }
        Ok(parcel)
    }
}
