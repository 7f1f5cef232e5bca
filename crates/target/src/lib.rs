//! Describes vector machines and the memory that a shape occupies on them.
//!
//! A [`Target`] is read from TOML. On one that aligns to tiles, an array is
//! stored in whole vectors: the minor-most dim is padded to the lanes, the
//! second-minor to the sublanes, and every major index starts new vectors.
//! `f32[2,3,5]` on a machine of 4 lanes and 2 sublanes takes 8 vectors:
//!
//! ```text
//!                 dim 2: 5 -> 8 = 2 vectors
//!              +---------+---------+
//!            / | a b c d | e . . . |  \
//!           |  | f g h i | j . . . |   |  dim 1: 3 -> 4 = 2 vectors
//!  dim 0: 2 |  +---------+---------+   |
//!           |  | k l m n | o . . . |   |  30 elements in 64 places:
//!            \ | . . . . | . . . . |  /   padded 2.13x
//!              +---------+---------+
//! ```
//!
//! This *aligned footprint* is the one cost that rules all decisions: how many
//! vectors a shape occupies ([`Target::footprint`]) and how many of them a
//! reshape or transpose must take apart ([`Target::reshape_cost`],
//! [`Target::transpose_cost`]). On a linear memory a reshape takes apart none.
//!
//! ```
//! use tilewright_ir::{element::ElementType, shape::ArrayShape};
//! use tilewright_target::{MoveKind, Target};
//!
//! let tpu = Target::builtin("tpu-like")?;
//! // Group norm: 320 channels in 32 groups of 10.
//! let x = ArrayShape::new(ElementType::F32, [4, 64, 64, 320]);
//! let grouped = ArrayShape::new(ElementType::F32, [4, 64, 64, 32, 10]);
//! assert_eq!(tpu.footprint(&x).vectors, 6_144);
//! assert_eq!(tpu.footprint(&grouped).vectors, 65_536);
//! assert_eq!(tpu.footprint(&grouped).padding(), 12.8);
//! assert_eq!(tpu.reshape_cost(&x, &grouped).kind, MoveKind::Realigns);
//!
//! let linear = Target::builtin("linear")?;
//! assert_eq!(linear.reshape_cost(&x, &grouped).kind, MoveKind::Free);
//! # Ok::<(), tilewright_target::TargetError>(())
//! ```
//!
//! Costs are a model. `docs/targets.md` gives the source of each number.

mod address;
mod file;
mod footprint;
mod physical;
pub mod programs;
pub mod reductions;
mod reshape;
mod rule;
pub mod slow_ops;
mod target;
mod template;

pub use file::{Problem, TargetError};
pub use footprint::Footprint;
pub use physical::{Digit, Physical};
pub use reshape::{MoveKind, ReshapeCost, TransposeCost};
pub use target::{Alignment, Target};
