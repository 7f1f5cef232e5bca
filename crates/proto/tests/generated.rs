//! The checked-in code and descriptors are what the schemas say. After a change in `proto`, run
//! this with `BLESS=1`.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use prost::Message as _;
use protox::prost_reflect::prost_types::field_descriptor_proto::{Label, Type};
use protox::prost_reflect::prost_types::{DescriptorProto, FieldDescriptorProto, MessageOptions};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

#[test]
fn code_is_that_of_the_schema() {
    let schema = folder().join("proto");
    let files = protox::compile([schema.join("hlo.proto")], [schema]).expect("a schema");
    let [file] = &files.file[..] else { panic!("one file") };
    let known = known_fields(&file.message_type);
    let mut config = prost_build::Config::new();
    config.btree_map(["."]).format(true);
    let module = prost_build::Module::from_protobuf_package_name("xla");
    let requests = files.file.into_iter().map(|file| (module.clone(), file)).collect();
    let code = config.generate(requests).expect("code");
    let header = "//! Generated from `proto/hlo.proto`: do not edit, see `tests/generated.rs`.\n\n";
    compare("xla.rs", format!("{header}{}", code[&module]));
    compare("known.rs", format!("{header}{known}"));
}

#[test]
fn descriptors_are_those_of_the_schema() {
    let schema = folder().join("proto");
    let mut files = protox::compile([schema.join("text.proto")], [schema]).expect("a schema");
    files.file.iter_mut().for_each(|file| file.source_code_info = None);
    compare("text.binpb", files.encode_to_vec());
}

fn compare(name: &str, expected: impl AsRef<[u8]>) {
    let expected = expected.as_ref();
    let path = folder().join("src/generated").join(name);
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, expected).expect("a writable file");
    }
    let found = fs::read(&path).unwrap_or_default();
    assert!(found == expected, "{} is stale: run this test with BLESS=1", path.display());
}

/// For each message, the numbers of its fields, and the messages that are
/// fields of it: unknown fields are looked for there too.
fn known_fields(messages: &[DescriptorProto]) -> String {
    let mut out = String::from(
        "use crate::residue::{Known, Known::Leaf, Known::Message, Known::Repeated};\n",
    );
    for message in messages {
        push_message(&mut out, "", message);
    }
    out
}

fn push_message(out: &mut String, outer: &str, message: &DescriptorProto) {
    if message.options.as_ref().is_some_and(MessageOptions::map_entry) {
        return;
    }
    let name = format!("{outer}{}", message.name());
    let constant = constant_of(&name);
    let _ = writeln!(
        out,
        "\n/// `{name}`\npub(crate) static {constant}: [(u32, Known); {}] = [",
        message.field.len()
    );
    let mut fields: Vec<&FieldDescriptorProto> = message.field.iter().collect();
    fields.sort_by_key(|field| field.number());
    for field in fields {
        let _ = writeln!(out, "    ({}, {}),", field.number(), kind(message, field));
    }
    out.push_str("];\n");
    for nested in &message.nested_type {
        push_message(out, &format!("{name}."), nested);
    }
}

fn kind(message: &DescriptorProto, field: &FieldDescriptorProto) -> String {
    let is_entry = |name: &str| {
        let nested = message.nested_type.iter().find(|nested| name.ends_with(nested.name()));
        nested.and_then(|nested| nested.options.as_ref()).is_some_and(MessageOptions::map_entry)
    };
    // The type of a map's entries gets no table of its own.
    if field.r#type() != Type::Message || is_entry(field.type_name()) {
        return "Leaf".to_owned();
    }
    let name = field.type_name().trim_start_matches(".xla.");
    let kind = if field.label() == Label::Repeated { "Repeated" } else { "Message" };
    format!("{kind}(&{})", constant_of(name))
}

/// `MeshProto.IotaTransform` -> `MESH_PROTO_IOTA_TRANSFORM`
fn constant_of(name: &str) -> String {
    let mut constant = String::new();
    for (at, letter) in name.char_indices() {
        if letter == '.' {
            constant.push('_');
            continue;
        }
        if letter.is_ascii_uppercase() && at > 0 && !constant.ends_with('_') {
            constant.push('_');
        }
        constant.push(letter.to_ascii_uppercase());
    }
    constant
}
