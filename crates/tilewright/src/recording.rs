//! Compares a snapshot's recorded result with the interpreter's.

use tilewright_ir::Verified;
use tilewright_proto::Recording;

use crate::agreement::Agreement;
use crate::check::{CheckOptions, Trial, agreement};
use crate::error::Error;

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
    let inputs = [recording.arguments.clone()];
    let options = options.with_inputs(&inputs);
    let mut trial = Trial::new(module, module, &options)?;
    if trial.devices.count() != Some(1) {
        let message = "a snapshot has the values of one device, but the module runs on several";
        return Err(Error::NotComparable(message.into()));
    }
    trial.recorded = Some(result);
    Ok(Some(agreement(&trial)?))
}
