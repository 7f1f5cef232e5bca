//! Facts about a module that passes look up before they change it.

pub mod axes;
pub mod digits;
pub mod equivalence;
pub mod index_range;
pub mod iteration;
pub(crate) mod likeness;
pub mod min_cut;
pub mod reduce;
pub mod region;
pub mod sharding;
pub mod trip_count;
pub mod types;
pub mod whole_number;
