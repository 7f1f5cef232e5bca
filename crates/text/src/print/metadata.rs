//! What is known about an instruction beyond op, shape and operands.

use tilewright_ir::{Extras, OpMetadata};

use super::number::push_i64;
use super::string::push_quoted;

/// Carried attributes that XLA writes before `sharding`.
const BEFORE_SHARDING: &[&str] = &["parameter_replication"];
/// Carried attributes that XLA writes after `control-predecessors`.
const AFTER_CONTROL: &[&str] = &["statistics", "origin"];

/// Appends `metadata={...}` with a comma before it.
pub(super) fn push_metadata(out: &mut String, metadata: &OpMetadata) {
    out.push_str(", metadata={");
    let strings = [
        ("op_type", &metadata.op_type),
        ("op_name", &metadata.op_name),
        ("source_file", &metadata.source_file),
    ];
    for (name, text) in strings {
        if !text.is_empty() {
            push_quoted(field(out, name), text);
        }
    }
    if metadata.source_line != 0 {
        push_i64(field(out, "source_line"), metadata.source_line);
    }
    let is_last = |name: &str| name == "metadata_payload";
    for (name, text) in metadata.other.iter().filter(|(name, _)| !is_last(name)) {
        field(out, name).push_str(&text.0);
    }
    if metadata.stack_frame_id != 0 {
        push_i64(field(out, "stack_frame_id"), metadata.stack_frame_id);
    }
    for (name, text) in metadata.other.iter().filter(|(name, _)| is_last(name)) {
        field(out, name).push_str(&text.0);
    }
    out.push('}');
}

/// Appends ` name=`, without the space after the opening brace.
fn field<'o>(out: &'o mut String, name: &str) -> &'o mut String {
    if !out.ends_with('{') {
        out.push(' ');
    }
    out.push_str(name);
    out.push('=');
    out
}

/// Appends what stands between the op's own attributes and its control
/// predecessors.
pub(super) fn push_before_control(out: &mut String, extras: &Extras) {
    push_carried(out, extras, |name| BEFORE_SHARDING.contains(&name));
    if let Some(sharding) = &extras.sharding {
        push_attribute(out, "sharding", &sharding.0);
    }
    if let Some(attributes) = &extras.frontend_attributes {
        push_attribute(out, "frontend_attributes", &attributes.0);
    }
    push_carried(out, extras, |name| {
        !BEFORE_SHARDING.contains(&name) && !AFTER_CONTROL.contains(&name)
    });
}

/// Appends what stands between control predecessors and metadata.
pub(super) fn push_after_control(out: &mut String, extras: &Extras) {
    for &wanted in AFTER_CONTROL {
        push_carried(out, extras, |name| name == wanted);
    }
}

fn push_carried(out: &mut String, extras: &Extras, wanted: impl Fn(&str) -> bool) {
    for (name, text) in extras.other.iter().filter(|(name, _)| wanted(name)) {
        push_attribute(out, name, &text.0);
    }
}

/// Appends `, name=text`.
pub(super) fn push_attribute(out: &mut String, name: &str, text: &str) {
    out.push_str(", ");
    out.push_str(name);
    out.push('=');
    out.push_str(text);
}
