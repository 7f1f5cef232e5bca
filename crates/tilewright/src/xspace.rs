//! Modules in profiles.

use tilewright_proto::modules_of_profile;

use crate::choice::Candidates;
use crate::error::Error;
use crate::module::{Loaded, load_proto};

/// Reads the largest module in an `XSpace`: a profile has no other names to choose by.
pub(crate) fn load(name: &str, bytes: &[u8]) -> Result<Loaded, Error> {
    let mut candidates = Candidates::default();
    for module in modules_of_profile(bytes) {
        candidates.add(module.name.to_owned(), load_proto(name, module.proto));
    }
    let none = || Error::NoModule {
        name: name.to_owned(),
        problem: "this profile has no modules in it; profile a program that runs on a device",
    };
    candidates.largest(name, "in the profile").unwrap_or_else(|| Err(none()))
}
