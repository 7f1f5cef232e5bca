//! Prints metadata and extras of instructions.

use tilewright_ir::metadata::{FrontendAttributes, Origin, OriginTree, OriginalArray, Statistics};
use tilewright_ir::{Extras, OpMetadata};

use super::attrs::{push_index, separated};
use super::float::push_f64;
use super::number::push_i64;
use super::sharding;
use super::string::push_quoted;
use crate::MAX_DEPTH;

/// Appends `metadata={...}` with a comma before it.
pub(super) fn push_metadata(out: &mut String, metadata: &OpMetadata) {
    out.push_str(", metadata=");
    push_fields(out, metadata);
}

/// Appends `{op_name="..." ...}`.
pub(super) fn push_fields(out: &mut String, metadata: &OpMetadata) {
    out.push('{');
    push_string(out, "op_type", &metadata.op_type);
    push_string(out, "op_name", &metadata.op_name);
    push_string(out, "source_file", &metadata.source_file);
    push_number(out, "source_line", metadata.source_line);
    let rare = metadata.rare.as_deref();
    if let Some(rare) = rare {
        push_number(out, "source_end_line", rare.source_end_line);
        push_number(out, "source_column", rare.source_column);
        push_number(out, "source_end_column", rare.source_end_column);
        if !rare.profile_type.is_empty() {
            push_index(field(out, "profile_type"), &rare.profile_type);
        }
        push_string(out, "deduplicated_name", &rare.deduplicated_name);
        push_string(out, "scheduling_name", &rare.scheduling_name);
    }
    push_number(out, "stack_frame_id", metadata.stack_frame_id);
    if let Some(rare) = rare {
        push_string(out, "metadata_payload", &rare.metadata_payload);
        for (name, text) in &rare.other {
            field(out, name).push_str(&text.0);
        }
    }
    out.push('}');
}

fn push_string(out: &mut String, name: &str, text: &str) {
    if !text.is_empty() {
        push_quoted(field(out, name), text);
    }
}

fn push_number(out: &mut String, name: &str, number: i64) {
    if number != 0 {
        push_i64(field(out, name), number);
    }
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

/// Appends the extras between the op's own attributes and its control predecessors.
pub(super) fn push_before_control(out: &mut String, extras: &Extras) {
    if !extras.parameter_replication.is_empty() {
        push_booleans(attribute(out, "parameter_replication"), &extras.parameter_replication);
    }
    if let Some(sharding) = &extras.sharding {
        sharding::push(attribute(out, "sharding"), sharding);
    }
    push_frontend_attributes(out, &extras.frontend_attributes);
    for (name, text) in &extras.other {
        push_attribute(out, name, &text.0);
    }
}

/// Appends the extras between control predecessors and metadata.
pub(super) fn push_after_control(out: &mut String, extras: &Extras) {
    if let Some(statistics) = &extras.statistics {
        push_statistics(attribute(out, "statistics"), statistics);
    }
    if let Some(origin) = &extras.origin {
        push_origin(attribute(out, "origin"), origin);
    }
}

/// Appends `, frontend_attributes={...}`, unless there are none.
pub(super) fn push_frontend_attributes(out: &mut String, attributes: &FrontendAttributes) {
    if attributes.is_empty() {
        return;
    }
    out.push_str(", frontend_attributes={");
    separated(out, attributes, ",", |out, (name, value)| {
        out.push_str(name);
        out.push('=');
        if is_dict(value) {
            out.push_str(value);
        } else {
            push_quoted(out, value);
        }
    });
    out.push('}');
}

/// Checks whether a text is one value in braces, by the reader's rules: braces in strings of
/// double quotes mean nothing, and there are no comments.
fn is_dict(text: &str) -> bool {
    let mut depth = 0usize;
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'{' if depth < MAX_DEPTH => depth += 1,
            _ if depth == 0 => return false,
            // Too deep to be read back.
            b'{' => return false,
            b'}' if depth == 1 => return bytes.next().is_none(),
            b'}' => depth -= 1,
            b'"' => skip_string(&mut bytes),
            _ => {}
        }
    }
    false
}

/// Moves to the end of a string, or to the end of the text.
fn skip_string(bytes: &mut std::str::Bytes<'_>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return,
            b'\\' => {
                bytes.next();
            }
            _ => {}
        }
    }
}

/// `{true,false}`
pub(super) fn push_booleans(out: &mut String, booleans: &[bool]) {
    out.push('{');
    separated(out, booleans, ",", |out, &b| out.push_str(if b { "true" } else { "false" }));
    out.push('}');
}

fn push_statistics(out: &mut String, statistics: &Statistics) {
    out.push_str("{visualizing_index=");
    push_i64(out, statistics.visualizing_index);
    for (name, value) in &statistics.values {
        out.push(',');
        out.push_str(name);
        out.push('=');
        push_f64(out, value.0);
    }
    out.push('}');
}

fn push_origin(out: &mut String, origin: &Origin) {
    out.push('{');
    match origin {
        Origin::SyntheticCall => out.push_str("[synthetic_call]"),
        Origin::Value(tree) => push_origin_tree(out, tree),
    }
    out.push('}');
}

fn push_origin_tree(out: &mut String, tree: &OriginTree) {
    match tree {
        OriginTree::Array(None) => out.push_str("{}"),
        OriginTree::Array(Some(array)) => push_original_array(out, array),
        OriginTree::Tuple(parts) => {
            out.push('(');
            separated(out, parts, ", ", push_origin_tree);
            out.push(')');
        }
    }
}

/// `{"x" {0}}`
pub(super) fn push_original_array(out: &mut String, array: &OriginalArray) {
    out.push('{');
    push_quoted(out, &array.instruction);
    if !array.part.is_empty() {
        out.push(' ');
        push_index(out, &array.part);
    }
    out.push('}');
}

/// Appends `, name=text`.
pub(super) fn push_attribute(out: &mut String, name: &str, text: &str) {
    attribute(out, name).push_str(text);
}

/// Appends `, name=`.
pub(super) fn attribute<'o>(out: &'o mut String, name: &str) -> &'o mut String {
    out.push_str(", ");
    out.push_str(name);
    out.push('=');
    out
}
