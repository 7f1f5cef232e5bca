//! Parts of a module as text, each by its name: for tools that compare modules.

use tilewright_ir::metadata::Header;
use tilewright_ir::{Extras, Literal, Module, OpMetadata};

use super::metadata::{push_after_control, push_booleans, push_fields};
use super::string::push_quoted;
use super::{PrintOptions, Printer, literal, sharding};

/// The attributes that any instruction can have, by name, as they stand in text after `=`.
/// Frontend attributes are listed one by one, as `frontend_attributes.NAME`. Control predecessors,
/// metadata and the rest of the binary form are left out.
pub fn print_extras(extras: &Extras) -> Vec<(String, String)> {
    let mut parts = Vec::new();
    let mut part = |name: &str, text: String| parts.push((name.to_owned(), text));
    if !extras.parameter_replication.is_empty() {
        part(
            "parameter_replication",
            text(|out| push_booleans(out, &extras.parameter_replication)),
        );
    }
    if let Some(sharding) = &extras.sharding {
        part("sharding", text(|out| sharding::push(out, sharding)));
    }
    for (name, value) in &extras.frontend_attributes {
        part(&format!("frontend_attributes.{name}"), text(|out| push_quoted(out, value)));
    }
    for (name, value) in &extras.other {
        part(name, value.0.to_string());
    }
    if let Some(config) = &extras.backend_config {
        part("backend_config", config.0.to_string());
    }
    parts.sort();
    parts
}

/// The attributes of an instruction that say where it comes from, and numbers to display beside
/// it: `origin` and `statistics`, by name.
pub fn print_provenance(extras: &Extras) -> Vec<(String, String)> {
    let (mut origin, mut statistics) = (Extras::default(), Extras::default());
    origin.origin.clone_from(&extras.origin);
    statistics.statistics.clone_from(&extras.statistics);
    let print = |extras: Extras| named(&text(|out| push_after_control(out, &extras)));
    [origin, statistics].into_iter().filter_map(print).collect()
}

/// The metadata of an instruction as it stands in text after `metadata=`.
pub fn print_metadata(metadata: &OpMetadata) -> String {
    text(|out| push_fields(out, metadata))
}

/// A constant as it stands between its parentheses; arrays of more than ten elements are elided.
pub fn print_constant(value: &Literal) -> String {
    // A token has no text, and nothing to tell apart.
    text(|out| drop(literal::push(out, value, true)))
}

/// The attributes of a module's header by name, as they stand in text after `=`. The layouts of
/// the entry, what tells where values come from, and the rest of the binary form are left out.
pub fn print_header(module: &Module) -> Vec<(String, String)> {
    let of = &module.header;
    let mut headers = vec![
        Header { is_scheduled: of.is_scheduled, ..Header::default() },
        Header { input_output_alias: of.input_output_alias.clone(), ..Header::default() },
        Header { buffer_donors: of.buffer_donors.clone(), ..Header::default() },
        Header { alias_passthrough_params: of.alias_passthrough_params, ..Header::default() },
        Header {
            allow_sharding_propagation_to_parameters: of
                .allow_sharding_propagation_to_parameters
                .clone(),
            ..Header::default()
        },
        Header {
            allow_sharding_propagation_to_output: of.allow_sharding_propagation_to_output.clone(),
            ..Header::default()
        },
        Header { replica_count: of.replica_count, ..Header::default() },
        Header { num_partitions: of.num_partitions, ..Header::default() },
    ];
    let other = |part: &(_, _)| Header { other: vec![part.clone()], ..Header::default() };
    headers.extend(of.other.iter().map(other));
    let print = |header: &Header| {
        let mut out = String::new();
        // Only an entry layout and a recovery table can fail, and no header here has one.
        let _ = Printer::new(&mut out, module, PrintOptions::new()).header(header);
        named(&out)
    };
    let mut parts: Vec<(String, String)> = headers.iter().filter_map(print).collect();
    for (name, value) in &of.frontend_attributes {
        let name = format!("frontend_attributes.{name}");
        parts.push((name, text(|out| push_quoted(out, value))));
    }
    parts.sort();
    parts
}

fn text(push: impl FnOnce(&mut String)) -> String {
    let mut out = String::new();
    push(&mut out);
    out
}

/// Takes `, name=text` apart.
fn named(text: &str) -> Option<(String, String)> {
    let (name, value) = text.strip_prefix(", ")?.split_once('=')?;
    Some((name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_part_by_part() {
        let text = "HloModule m, is_scheduled=true, input_output_alias={ {}: (0, {}, may-alias) }, \
                    replica_count=2, frontend_attributes={b=\"2\",a=\"1\"}\n\n\
                    ENTRY e {\n  ROOT x = f32[2] parameter(0)\n}\n";
        let module = crate::parse(text).map(|parsed| parsed.module).unwrap_or_default();
        let parts = print_header(&module);
        let parts: Vec<(&str, &str)> = parts.iter().map(|(a, b)| (&**a, &**b)).collect();
        let expected = [
            ("frontend_attributes.a", "\"1\""),
            ("frontend_attributes.b", "\"2\""),
            ("input_output_alias", "{ {}: (0, {}, may-alias) }"),
            ("is_scheduled", "true"),
            ("replica_count", "2"),
        ];
        assert_eq!(parts, expected);
    }

    #[test]
    fn extras_part_by_part() {
        let text = "HloModule m\n\nENTRY e {\n  ROOT x = f32[2] parameter(0), sharding={replicated}, \
                    frontend_attributes={k=\"v\"}, origin={{\"y\"}}, backend_config={\"a\":1}\n}\n";
        let module = crate::parse(text).map(|parsed| parsed.module).unwrap_or_default();
        let root = module.entry().and_then(|entry| module.computation(entry).root());
        let extras = root.and_then(|root| module.extras(root)).cloned().unwrap_or_default();
        let parts: Vec<String> =
            print_extras(&extras).iter().map(|(name, text)| format!("{name}={text}")).collect();
        let expected =
            ["backend_config={\"a\":1}", "frontend_attributes.k=\"v\"", "sharding={replicated}"];
        assert_eq!(parts, expected);
        let origin = ("origin".to_owned(), "{{\"y\"}}".to_owned());
        assert_eq!(print_provenance(&extras), [origin]);
    }
}
