//! Checks that the rows of call stacks refer to existing rows.
//!
//! Text without tables may still refer to frames, because XLA drops the tables.

use super::Report;
use crate::diag::DiagnosticPlace;
use crate::metadata::{OpMetadata, StackTables};
use crate::module::Module;

pub(super) fn check(module: &Module, report: &mut Report) {
    let Some(tables) = &module.header.stack_tables else { return };
    if let Some(message) = wrong_tables(tables) {
        report.add(super::FRAMES, DiagnosticPlace::Module, message);
    }
    for &computation in module.computations() {
        for id in module.instructions(computation) {
            let frame = module.metadata(id).map_or(0, |m: &OpMetadata| m.stack_frame_id);
            // 0 means that the value is not set.
            if frame != 0 && !is_row(frame, tables.stack_frames.len()) {
                let message = format!(
                    "stack_frame_id is {frame}, but StackFrames has {} rows",
                    tables.stack_frames.len()
                );
                report.add(super::FRAMES, DiagnosticPlace::Instruction(id), message);
            }
        }
    }
}

fn is_row(id: i64, rows: usize) -> bool {
    usize::try_from(id).is_ok_and(|id| (1..=rows).contains(&id))
}

fn wrong_tables(tables: &StackTables) -> Option<String> {
    let wrong = |table: &str, row: usize, field: &str, id: i64| {
        Some(format!("row {row} of {table} has {field}={id}, which is no row"))
    };
    for (row, location) in (1..).zip(&tables.file_locations) {
        if !is_row(location.file_name_id, tables.file_names.len()) {
            return wrong("FileLocations", row, "file_name_id", location.file_name_id);
        }
        if !is_row(location.function_name_id, tables.function_names.len()) {
            return wrong("FileLocations", row, "function_name_id", location.function_name_id);
        }
    }
    for (row, frame) in (1..).zip(&tables.stack_frames) {
        if !is_row(frame.file_location_id, tables.file_locations.len()) {
            return wrong("StackFrames", row, "file_location_id", frame.file_location_id);
        }
        // Text has the caller's number plus 1, and 1 without a caller.
        let parent = frame.parent_frame_id;
        if parent != 1 && !is_row(parent.saturating_sub(1), tables.stack_frames.len()) {
            return wrong("StackFrames", row, "parent_frame_id", parent);
        }
    }
    None
}
