//! Tests that unknown fields and ids survive, and keep their place when the module is edited.

use crate::common;
use std::path::Path;

use crate::common::{Message, computation, instruction, module, modules, parameter};
use protox::prost_reflect::prost_types::DescriptorProto;
use tilewright_ir::{Module, Op, Opcode, PaddingValue, Position};
use tilewright_proto::{decode, encode, lost_in_proto, lost_in_text};

/// Returns a module with an unknown field 200 at every level, each with its own value.
fn newer() -> Vec<u8> {
    let new = |value: i64| Message::new().int(200, value);
    let metadata = Message(new(1).0).text(2, "f");
    let layout = Message::new().ints(1, &[0]).int(16, 1);
    let shape = Message::new()
        .int(2, common::F32)
        .ints(3, &[2])
        .message(5, &Message([layout.0, new(2).0].concat()))
        .ints(6, &[0]);
    let y = Message::new()
        .text(1, "y")
        .text(2, "negate")
        .message(3, &shape)
        .message(7, &metadata)
        .int(35, 1 << 40)
        .ints(36, &[0])
        .text(200, "an attribute")
        .message(201, &new(3));
    let main = computation("main", 0, 1 << 40, &[parameter(), y]).int(200, 4);
    module(&[main])
        .int(5, 77)
        .message(19, &new(5))
        .message(12, &Message::new().int(1, 4))
        .text(21, "TPU v9")
        .0
}

/// Checks whether `part` stands in `bytes`.
fn has(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

fn pieces() -> Vec<Vec<u8>> {
    let new = |value: i64| Message::new().int(200, value).0;
    let mut pieces: Vec<Vec<u8>> = (1..=5).map(new).collect();
    pieces.push(Message::new().text(200, "an attribute").0);
    pieces.push(Message::new().text(21, "TPU v9").0);
    pieces.push(Message::new().int(5, 77).0);
    pieces.push(Message::new().message(12, &Message::new().int(1, 4)).0);
    pieces
}

#[test]
fn unknown_fields_come_through() {
    let bytes = newer();
    let once = encode(&decode(&bytes).expect("a module")).expect("proto");
    for piece in pieces() {
        assert!(has(&once, &piece), "{piece:?} is lost");
    }
    // Each field occurs once, however often the module is rewritten.
    let twice = encode(&decode(&once).expect("a module")).expect("proto");
    assert_eq!(twice, once);
}

#[test]
fn what_text_loses_is_told() {
    let module = decode(&newer()).expect("a module");
    let expected = [
        "the unknown field 200 of computation `main`",
        "the unknown field 200 of instruction `y`",
        "the unknown field 201 of instruction `y`",
        "what is unknown within field 3 of instruction `y`",
        "the unknown field 200 of the metadata of `y`",
        "`spmd_output_sharding` of the module",
        "what is unknown within field 19 of the module",
    ];
    assert_eq!(lost_in_text(&module), expected);
    assert_eq!(lost_in_proto(&module), [""; 0]);
    // Ids and the device that it was compiled for are in nearly every proto.
    let usual = common::module(&[computation("main", 0, 0, &[parameter()])]);
    let usual = decode(&usual.int(5, 77).text(21, "TPU v9").0).expect("a module");
    assert_eq!(lost_in_text(&usual), [""; 0]);
}

#[test]
fn more_of_a_kind_are_counted() {
    let y = |id: i64| instruction(&format!("y{id}"), "negate", id).ints(36, &[0]).int(45, 7);
    let main = computation("main", 0, 3, &[parameter(), y(1), y(2), y(3)]);
    let module = decode(&module(&[main]).0).expect("a module");
    assert_eq!(lost_in_text(&module), ["`all_reduce_id` of instruction `y1` and 2 more"]);
}

#[test]
fn what_proto_loses_is_told() {
    let header = |attributes: &str| {
        let text =
            format!("HloModule m{attributes}\nENTRY e {{\n  ROOT x = f32[] parameter(0)\n}}\n");
        lost_in_proto(&tilewright_text::parse(&text).expect("a module").module)
    };
    assert_eq!(
        header(", replica_count=2, num_partitions=4, alias_passthrough_params=true"),
        ["`replica_count=2`", "`num_partitions=4`", "`alias_passthrough_params=true`"]
    );
    assert_eq!(
        header(
            ", num_partitions=4, allow_spmd_sharding_propagation_to_output={true}, \
             allow_spmd_sharding_propagation_to_parameters={false,true}"
        ),
        [
            "`num_partitions=4`",
            "`allow_spmd_sharding_propagation_to_parameters`",
            "`allow_spmd_sharding_propagation_to_output`"
        ]
    );
    // JAX writes this for every module.
    let usual = ", is_scheduled=true, allow_spmd_sharding_propagation_to_output={true}";
    assert_eq!(header(usual), [""; 0]);
    assert_eq!(header(", replica_count=1, num_partitions=1"), [""; 0]);
}

fn find(module: &Module, name: &str) -> tilewright_ir::InstId {
    let entry = module.entry().expect("an entry");
    module.instructions(entry).find(|&id| module.name_of(id) == name).expect("an instruction")
}

#[test]
fn a_copy_takes_it_along_but_gets_its_own_id() {
    let mut module = decode(&newer()).expect("a module");
    let y = find(&module, "y");
    let copy = module.copy_instruction(y, Position::Before(y), |_| None).expect("a copy");
    assert_eq!(module.extras(copy), module.extras(y));
    assert_eq!(module.unique_id(copy), None);
    let bytes = encode(&module).expect("proto");
    let again = decode(&bytes).expect("a module");
    assert_eq!(again.unique_id(find(&again, "y")), Some(1 << 40));
    let ids: std::collections::BTreeSet<_> = again
        .instructions(again.entry().expect("an entry"))
        .map(|id| again.unique_id(id).expect("an id"))
        .collect();
    assert_eq!(ids.len(), 3);
}

#[test]
fn what_is_removed_takes_it_away() {
    let mut module = decode(&newer()).expect("a module");
    let (x, y) = (find(&module, "x"), find(&module, "y"));
    module.replace_uses(y, x).expect("the same shape");
    module.remove(y).expect("no users");
    let bytes = encode(&module).expect("proto");
    assert!(!has(&bytes, b"an attribute"));
    assert!(has(&bytes, b"TPU v9"));
}

/// A pass must not rewrite an instruction with unknown fields.
#[test]
fn an_unknown_attribute_is_an_extra() {
    let module = decode(&newer()).expect("a module");
    assert!(module.extras(find(&module, "y")).is_some());
    assert!(module.extras(find(&module, "x")).is_none());
}

#[test]
fn the_schedule_follows_edits() {
    let sequence = Message::new().message(2, &Message::new().ints(1, &[0, 1]));
    let schedule = Message::new().message(1, &sequence);
    let y = instruction("y", "negate", 1).ints(36, &[0]);
    let main = computation("main", 0, 1, &[parameter(), y]);
    let mut module = decode(&module(&[main]).message(7, &schedule).0).expect("a module");
    let (x, y) = (find(&module, "x"), find(&module, "y"));
    let shape = module.shape(x).clone();
    let op = Op::from_attrs(Opcode::Copy, &mut Default::default()).expect("no attributes");
    let copy = module.insert(Position::Before(y), op, shape, &[x], "z").expect("an instruction");
    module.set_operand(y, 0, copy).expect("an operand");
    let again = decode(&encode(&module).expect("proto")).expect("a sound schedule");
    let entry = again.entry().expect("an entry");
    let names: Vec<&str> = again.instructions(entry).map(|id| again.name_of(id)).collect();
    assert_eq!(names, ["x", "z", "y"]);
    assert!(again.header.is_scheduled);
}

/// Text knows no ids: new ones are XLA's, the computation's in the upper half.
#[test]
fn new_ids_are_those_of_xla() {
    for (name, module) in modules(&["models"]).into_iter().take(5) {
        let module = decode(&encode(&module).expect("proto")).expect("a module");
        for (at, &computation) in (0i64..).zip(module.computations()) {
            assert_eq!(module.computation(computation).unique_id(), Some(at), "{name}");
            for (local, id) in (0i64..).zip(module.instructions(computation)) {
                assert_eq!(module.unique_id(id), Some(at << 32 | local), "{name}");
            }
        }
    }
}

/// Fields of very old dumps, with the numbers that `xla_data.proto` had in
/// TensorFlow 1.12, and that it has reserved since: `padded_dimensions` 2,
/// `padding_value` 3; and the numbers of its `enum PaddingValue`.
#[test]
fn padding_of_old_dumps() {
    for (number, value) in [
        (0, PaddingValue::Unknown),
        (1, PaddingValue::Zero),
        (2, PaddingValue::One),
        (3, PaddingValue::Lowest),
        (4, PaddingValue::Highest),
        (5, PaddingValue::Unknown),
    ] {
        let layout = Message::new().ints(1, &[0, 1]).ints(2, &[3, 5]).int(3, number);
        let shape = Message::new().int(2, common::F32).ints(3, &[2, 3]).message(5, &layout);
        let x = Message::new().text(1, "x").text(2, "parameter").message(3, &shape);
        let module = decode(&common::main_of(0, &[x])).expect("a module");
        let again = decode(&encode(&module).expect("proto")).expect("a module");
        for module in [module, again] {
            let shape = module.array_shape(find(&module, "x")).expect("an array");
            let padding = shape.layout.as_ref().and_then(|layout| layout.padding.as_deref());
            let padding = padding.expect("padding");
            assert_eq!((&padding.dims[..], padding.value), (&[3, 5][..], value), "{number}");
            assert!(common::print(&module).contains("x = f32[2,3]{0,1:P(3,5"));
        }
    }
}

/// The form before `oneof replica_group_list`.
#[test]
fn deprecated_replica_groups() {
    let reducer = computation(
        "add",
        1,
        2,
        &[
            Message::new().text(1, "a").text(2, "parameter").message(3, &common::shape(11, &[])),
            instruction("b", "parameter", 1).int(9, 1).message(3, &common::shape(11, &[])),
            instruction("c", "add", 2).ints(36, &[0, 1]).message(3, &common::shape(11, &[])),
        ],
    );
    let group = |ids: &[i64]| Message::new().ints(1, ids);
    let reduce = instruction("y", "all-reduce", 1)
        .ints(36, &[0])
        .ints(38, &[1])
        .message(49, &group(&[0, 1]))
        .message(49, &group(&[2, 3]));
    let main = computation("main", 0, 1, &[parameter(), reduce]);
    let module = decode(&module(&[reducer, main]).0).expect("a module");
    assert!(common::print(&module).contains("replica_groups={{0,1},{2,3}}"));
}

/// Every message of a module gets an unknown field: all of them survive, each in its place.
#[test]
fn an_unknown_field_of_any_message_comes_through() {
    let schema = Schema::load();
    let mut messages = 0;
    for (name, module) in modules(&["models", "text/ok", "sharded", "real"]) {
        let known = encode(&module).expect("proto");
        let mut next = 0;
        let bytes = schema.with_unknown("HloModuleProto", &known, &mut next);
        let again = encode(&decode(&bytes).unwrap_or_else(|e| panic!("{name}: {e}")));
        assert!(again.expect("proto") == bytes, "{name}: an unknown field was lost or moved");
        messages += next;
    }
    assert!(messages > 100_000, "only {messages} messages");
}

/// The declared messages, with which bytes can be walked.
struct Schema(Vec<DescriptorProto>);

impl Schema {
    fn load() -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("proto");
        let mut files = protox::compile([folder.join("hlo.proto")], [folder]).expect("a schema");
        Self(files.file.pop().expect("one file").message_type)
    }

    /// Returns the message that a field holds, by its name; the schema has computations and
    /// instructions as bytes.
    fn inner(&self, message: &str, number: u32) -> Option<String> {
        match (message, number) {
            ("HloModuleProto", 3) => return Some("HloComputationProto".into()),
            ("HloComputationProto", 2) => return Some("HloInstructionProto".into()),
            _ => {}
        }
        let field = self.descriptor(message)?.field.iter().find(|f| f.number() as u32 == number)?;
        let name = field.type_name().strip_prefix(".xla.")?;
        // The type of a map's entries has no place of its own.
        (!name.ends_with("Entry")).then(|| name.to_owned())
    }

    fn descriptor(&self, name: &str) -> Option<&DescriptorProto> {
        let mut names = name.split('.');
        let first = names.next()?;
        let outer = self.0.iter().find(|message| message.name() == first)?;
        names.try_fold(outer, |outer, name| outer.nested_type.iter().find(|m| m.name() == name))
    }

    /// Returns the message with field 5000 added at every level, numbered.
    fn with_unknown(&self, name: &str, bytes: &[u8], next: &mut i64) -> Vec<u8> {
        let mut out = Message::new();
        for (number, payload, whole) in common::fields(bytes) {
            match self.inner(name, number).zip(payload) {
                Some((inner, payload)) => {
                    let payload = self.with_unknown(&inner, payload, next);
                    out = out.bytes(number.into(), &payload);
                }
                None => out.0.extend_from_slice(whole),
            }
        }
        *next += 1;
        out.int(5000, *next).0
    }
}
