//! Finds modules in profiles (`XSpace`), which hold the `HloProto` of every program that ran.
//!
//! ```text
//! XSpace { planes: XPlane {
//!   name: "/host:metadata"
//!   event_metadata: { value: XEventMetadata { name: "jit_f(1)"  stats: { bytes_value: HloProto }}}
//! }}
//! ```

use crate::form::holds_module;
use crate::wire::{fields, first};

/// A module in a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProfiledModule<'a> {
    /// The name of the program in the profile.
    pub name: &'a str,
    /// An `HloProto`, which [`decode`](crate::decode) reads.
    pub proto: &'a [u8],
}

/// The plane of what is known about programs.
const METADATA: &[u8] = b"/host:metadata";

const PLANES: u32 = 1;
const PLANE_NAME: u32 = 2;
const EVENT_METADATA: u32 = 4;
const ENTRY_VALUE: u32 = 2;
const EVENT_NAME: u32 = 2;
const EVENT_STATS: u32 = 5;
const STAT_BYTES: u32 = 6;

/// Checks whether bytes are a profile with a plane of metadata.
pub fn looks_like_profile(bytes: &[u8]) -> bool {
    metadata(bytes).next().is_some()
}

/// Returns the modules in a profile, in its order. What is damaged in it is left out.
pub fn modules_of_profile(bytes: &[u8]) -> Vec<ProfiledModule<'_>> {
    let entries = metadata(bytes).flat_map(|plane| payloads(plane, EVENT_METADATA));
    entries.filter_map(|entry| first(entry, ENTRY_VALUE)).filter_map(module).collect()
}

fn metadata(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    payloads(bytes, PLANES).filter(|plane| first(plane, PLANE_NAME) == Some(METADATA))
}

fn module(event: &[u8]) -> Option<ProfiledModule<'_>> {
    let mut values = payloads(event, EVENT_STATS).filter_map(|stat| first(stat, STAT_BYTES));
    let proto = values.find(|value| holds_module(value))?;
    let name = first(event, EVENT_NAME).and_then(|name| std::str::from_utf8(name).ok());
    Some(ProfiledModule { name: name.unwrap_or_default(), proto })
}

/// Returns the fields of this number that hold bytes.
fn payloads(message: &[u8], number: u32) -> impl Iterator<Item = &[u8]> {
    let found = fields(message).map_while(Result::ok).filter(move |field| field.number == number);
    found.filter_map(|field| field.payload)
}
