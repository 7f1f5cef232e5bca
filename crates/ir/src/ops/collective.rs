//! Ops between devices.

use super::attr::{Verbatim, attributes};
use crate::entity::CompId;
use crate::infer::{ShapeError, ShapeQuery, scalar};
use crate::types::element::ElementType;
use crate::types::shape::{Dims, Shape};

attributes! {
    /// Attributes of all collectives; each has some of them.
    pub struct CollectiveAttrs {
        /// The channel, where devices of several partitions take part.
        channel_id: Option<i64> = "channel_id",
        /// Which devices work together.
        replica_groups: Option<Verbatim> = "replica_groups",
        /// Sender and receiver of each transfer.
        source_target_pairs: Option<Verbatim> = "source_target_pairs",
        /// The sizes of the slices sent.
        slice_sizes: Option<Verbatim> = "slice_sizes",
        /// Whether layouts must be kept.
        constrain_layout: bool = "constrain_layout" or false,
        /// Whether the groups number devices rather than replicas.
        use_global_device_ids: bool = "use_global_device_ids" or false,
        /// The dim along which data is joined or split.
        dimensions: Option<Dims> = "dimensions",
        /// Combines elements of different devices.
        to_apply: Option<CompId> = "to_apply",
    }
}

pub(super) fn declared(q: &ShapeQuery<'_>, _attrs: &CollectiveAttrs) -> Result<Shape, ShapeError> {
    q.declared().cloned()
}

/// `partition-id` and `replica-id`.
pub(super) fn device_id(_q: &ShapeQuery<'_>) -> Result<Shape, ShapeError> {
    Ok(scalar(ElementType::U32))
}
