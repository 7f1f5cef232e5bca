//! Metadata as locations.

use std::sync::Arc;

use tilewright_ir::metadata::StackFrame;
use tilewright_ir::{Module, OpMetadata, StackTables};

use crate::mlir::Location;

/// The longest call stack that is written.
const MAX_FRAMES: usize = 256;

/// Returns the location that says what metadata says.
pub(super) fn location(module: &Module, metadata: &OpMetadata) -> Option<Arc<Location>> {
    let tables = module.header.stack_tables.as_ref();
    let stack = tables.and_then(|tables| stack(tables, metadata.stack_frame_id));
    let mut location = stack.or_else(|| file(metadata)).unwrap_or(Location::Unknown);
    if !metadata.op_name.is_empty() {
        location = Location::Name { name: metadata.op_name.clone(), child: location.into() };
    }
    if !metadata.op_type.is_empty() {
        let name = format!("{}:", metadata.op_type).into();
        location = Location::Name { name, child: location.into() };
    }
    (location != Location::Unknown).then(|| location.into())
}

fn file(metadata: &OpMetadata) -> Option<Location> {
    let place = |value: i64| u32::try_from(value).unwrap_or(0);
    let rare = metadata.rare.as_deref();
    let column = rare.map_or(0, |rare| place(rare.source_column));
    let start = (place(metadata.source_line), column);
    let end =
        rare.map_or(start, |rare| (place(rare.source_end_line), place(rare.source_end_column)));
    let file = metadata.source_file.clone();
    let end = if end == (0, 0) { start } else { end };
    (!file.is_empty()).then_some(Location::File { file, start, end })
}

/// Returns the call stack of a frame, as JAX writes it.
fn stack(tables: &StackTables, frame: i64) -> Option<Location> {
    let nth = |id: i64| usize::try_from(id.checked_sub(1)?).ok();
    let mut frames: Vec<Location> = Vec::new();
    let mut id = frame;
    while let Some(frame) = nth(id).and_then(|at| tables.stack_frames.get(at)) {
        let StackFrame { file_location_id, parent_frame_id } = *frame;
        let place = tables.file_locations.get(nth(file_location_id)?)?;
        let number = |value: i64| u32::try_from(value).unwrap_or(0);
        let file = tables.file_names.get(nth(place.file_name_id)?)?.clone();
        let start = (number(place.line), number(place.column));
        let end = (number(place.end_line), number(place.end_column));
        let name = tables.function_names.get(nth(place.function_name_id)?)?.clone();
        frames.push(Location::Name { name, child: Location::File { file, start, end }.into() });
        id = parent_frame_id.saturating_sub(1);
        if frames.len() >= MAX_FRAMES {
            break;
        }
    }
    let outermost = frames.pop()?;
    Some(frames.into_iter().rev().fold(outermost, |caller, callee| Location::Call {
        callee: callee.into(),
        caller: caller.into(),
    }))
}
