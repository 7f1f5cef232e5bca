//! VHLO: StableHLO with a version at each operation, attribute and type, in which portable
//! artifacts are written.
//!
//! Attributes and types are read as StableHLO's and written from them, so that the tree has no
//! VHLO. [`upgrade`] and [`downgrade`] do the same with operations.

mod codes;
mod downgrade;
mod quantized;
mod read;
mod upgrade;

pub(crate) use codes::{SCALARS, code, type_code};
pub(crate) use downgrade::VersionedOp;
pub(crate) use read::{attribute, ty};
pub(crate) use upgrade::upgrade;
