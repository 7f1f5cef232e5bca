//! Evaluates modules as a snapshot recorded it, and compares the recorded result with the
//! interpreter's.

use tilewright_interp::Devices;
use tilewright_ir::Verified;
use tilewright_proto::Recording;

use crate::agreement::Agreement;
use crate::check::{CheckOptions, Trial, agreement};
use crate::error::Error;
use crate::run::devices_of;

/// Evaluates a module on the recorded arguments of a snapshot and compares the outputs with the
/// recorded result, with the tolerances for a second module. `None` if no result was recorded.
///
/// # Errors
/// Returns an error if the module's parameter or result shapes differ from the recorded ones,
/// it runs on several devices, or it cannot be evaluated.
pub fn check_recording(
    module: &Verified,
    recording: &Recording,
    options: &CheckOptions<'_>,
) -> Result<Option<Agreement>, Error> {
    let Some(result) = &recording.result else { return Ok(None) };
    let inputs = recording.inputs();
    let options = options.with_inputs(&inputs);
    let mut trial = Trial::new(module, module, &options)?;
    if trial.devices.count() != Some(1) {
        let message = "a snapshot has the values of one device, but the module runs on several";
        return Err(Error::NotComparable(message.into()));
    }
    trial.recorded = Some(result);
    Ok(Some(agreement(&trial)?))
}

/// Returns the devices that a snapshot recorded arguments of, if these are several: those that the
/// module names if they are as many, or else as many partitions. A proto does not say.
pub fn recorded_devices(module: &Verified, recording: &Recording) -> Option<Devices> {
    let count = recording.others.len().checked_add(1).filter(|&count| count > 1)?;
    let named = devices_of(module);
    let as_many = named.count() == Some(count);
    Some(if as_many { named } else { Devices { replicas: 1, partitions: count } })
}
