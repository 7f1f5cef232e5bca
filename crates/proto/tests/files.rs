//! Every form in which XLA writes modules and snapshots is read to the same module and values.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{F32, Message, main_of, parameter, print, shape};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore as _, SeedableRng as _};
use tilewright_ir::{ArrayLiteral, Data, ElementType, Literal};
use tilewright_proto::{
    Recording, decode, decode_recording, encode_text_proto, looks_like_profile, looks_like_proto,
    looks_like_text_proto, modules_of_profile,
};

const PROGRAMS: [&str; 3] =
    ["module_0000.jit_group_scale", "module_0002.jit_table", "module_0004.jit_kinds"];

fn files() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/files")
}

fn bytes(path: &str) -> Vec<u8> {
    fs::read(files().join(path)).expect("a fixture")
}

fn text(path: &str) -> String {
    String::from_utf8(bytes(path)).expect("a text")
}

fn snapshot(program: &str, ending: &str) -> String {
    format!("snapshots/{program}.execution_0000.hlo_unoptimized_snapshot.{ending}")
}

fn recording(bytes: &[u8]) -> Recording {
    decode_recording(bytes).expect("a snapshot").expect("values")
}

/// A module as text. When it is executed, XLA has decided how narrow elements are packed at the
/// entry; when it is dumped, it has not.
fn unpacked(bytes: &[u8]) -> String {
    let text = print(&decode(bytes).expect("a module"));
    text.replace(":E(4)}", "}").replace(":E(2)}", "}")
}

#[test]
fn snapshots_are_what_was_dumped_before() {
    for program in PROGRAMS {
        let dump = bytes(&format!("dump/{program}.before_optimizations.hlo.pb"));
        let expected = unpacked(&dump);
        let binary = bytes(&snapshot(program, "pb"));
        assert!(looks_like_proto(&binary), "{program}");
        assert_eq!(unpacked(&binary), expected, "{program}");
        let text = text(&snapshot(program, "txt"));
        assert!(looks_like_text_proto(&text), "{program}");
        let of_text = encode_text_proto(&text).expect("a text proto");
        assert_eq!(unpacked(&of_text), expected, "{program}");
        assert_eq!(recording(&of_text), recording(&binary), "{program}");
    }
}

/// The arguments are those of `kinds` in `fixtures/generate_files.py`.
#[test]
fn arguments_are_those_of_the_program() {
    use half::{bf16, f16};
    use num_complex::Complex;
    let bits = [true, false, true, true, true, false, false, false, true];
    let array = |element, dims: &[i64], data| {
        Literal::Array(ArrayLiteral::new(element, dims.iter().copied(), data).expect("an array"))
    };
    let expected = [
        array(ElementType::Pred, &[3, 3], Data::Pred(bits.to_vec())),
        array(ElementType::S4, &[5], Data::S8(vec![1, -2, 3, -4, 7])),
        array(ElementType::U4, &[2, 2], Data::U8(vec![1, 15, 7, 8])),
        array(ElementType::S2, &[3], Data::S8(vec![1, -2, 0])),
        array(ElementType::F4E2M1FN, &[3], Data::U8(vec![0x2, 0x4, 0xd])),
        array(ElementType::F8E4M3FN, &[3], Data::U8(vec![0x38, 0x40, 0xc4])),
        array(ElementType::F16, &[2], Data::F16(vec![f16::ONE, f16::from_f32(2.5)])),
        array(ElementType::BF16, &[2], Data::BF16(vec![bf16::ONE, bf16::from_f32(-2.5)])),
        array(ElementType::S32, &[], Data::S32(vec![-5])),
        array(ElementType::U16, &[2], Data::U16(vec![1, 65535])),
        array(
            ElementType::C64,
            &[2],
            Data::C64(vec![Complex::new(1.0, 2.0), Complex::new(3.0, -4.0)]),
        ),
    ];
    let found = recording(&bytes(&snapshot("module_0004.jit_kinds", "pb")));
    assert_eq!(found.arguments, expected);
    assert_eq!((found.others.len(), found.result), (0, None));
}

/// A text of a module, of a dump and of a snapshot, cut from that of XLA.
#[test]
fn every_message_has_a_text() {
    for program in PROGRAMS {
        let whole = text(&snapshot(program, "txt"));
        let expected = print(&decode(&bytes(&snapshot(program, "pb"))).expect("a module"));
        let (dump, values) = whole.split_once("\npartitions {").expect("arguments");
        let module = dump.strip_prefix("hlo_module {").and_then(|text| text.strip_suffix('}'));
        let values = values.trim_end().strip_suffix('}').expect("an end");
        let snapshot = format!("# made\nhlo: <{dump}>\n{values}\nexecution_platform: 'cpu'\n");
        for text in [module.expect("a module"), dump, &snapshot] {
            assert!(looks_like_text_proto(text));
            let bytes = encode_text_proto(text).unwrap_or_else(|e| panic!("{e}: {:?}", e.span));
            assert_eq!(print(&decode(&bytes).expect("a module")), expected, "{program}");
        }
        let bytes = encode_text_proto(&snapshot).expect("a text proto");
        assert_eq!(recording(&bytes), recording(&encode_text_proto(&whole).expect("a text proto")));
    }
}

#[test]
fn other_texts_are_no_text_protos() {
    for text in
        ["HloModule name", "name(x: f32[])", "ENTRY {", "main { x }", "# name: 1", "\"name\":", ""]
    {
        assert!(!looks_like_text_proto(text), "{text}");
    }
}

#[test]
fn errors_in_texts_have_places() {
    let wrong = |text: &str| {
        let error = encode_text_proto(text).expect_err("an error");
        (text.get(error.span.clone()).map(str::to_owned), error.message)
    };
    let (place, message) = wrong("name: 'm'\ncomputation { }");
    assert_eq!(place.as_deref(), Some("computation"));
    assert_eq!(message, "field 'computation' not found for message 'xla.HloModuleProto'");
    let (place, _) = wrong("hlo_module { name: 'm' is_dynamic: 2 }");
    assert_eq!(place.as_deref(), Some("2"));
    let (place, message) = wrong("hlo_module { name: 'm'");
    assert_eq!((place.as_deref(), message.contains("end of input")), (Some(""), true));
    let deep = format!("host_program_shape {{ result {}", "{ tuple_shapes ".repeat(1 << 16));
    let (place, message) = wrong(&deep);
    assert_eq!((place.as_deref(), message.contains("100 deep")), (Some("{"), true));
}

// --- two partitions

/// A message of one array, as it stands after a snapshot.
fn raw(values: &[f32]) -> Vec<u8> {
    let shape = shape(F32, &[values.len() as i64]).0;
    let mut bytes = (shape.len() as u64).to_le_bytes().to_vec();
    bytes.extend(shape);
    bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    bytes
}

fn descriptor(size: usize) -> Message {
    Message::new().message(2, &Message::new().int(2, size as i64))
}

/// A snapshot of two partitions, with this after the message.
fn delimited(message: &Message, values: &[u8]) -> Vec<u8> {
    // A field of its number 1 has the same length, after a byte.
    let field = Message::new().message(1, message).0;
    [&field[1..], values].concat()
}

fn of_two(first: usize, second: usize) -> Message {
    let module = Message(main_of(0, &[parameter()]));
    Message::new()
        .message(1, &module)
        .message(2, &descriptor(first))
        .message(2, &descriptor(second))
}

fn f32s(values: &[f32]) -> Literal {
    let data = Data::F32(values.to_vec());
    Literal::Array(ArrayLiteral::new(ElementType::F32, [values.len() as i64], data).expect("one"))
}

#[test]
fn partitions_have_their_own_arguments() {
    let (a, b) = (raw(&[1.0, 2.0]), raw(&[3.0, -4.0]));
    let expected = Recording {
        arguments: vec![f32s(&[1.0, 2.0])],
        others: vec![vec![f32s(&[3.0, -4.0])]],
        result: None,
    };
    let bytes = delimited(&of_two(a.len(), b.len()), &[a.clone(), b].concat());
    assert_eq!(recording(&bytes), expected);
    assert_eq!(expected.inputs(), [vec![f32s(&[1.0, 2.0])], vec![f32s(&[3.0, -4.0])]]);
    let literal = |values: &[f32]| {
        let values: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let literal = Message::new().message(1, &shape(F32, &[2])).bytes(8, &values);
        Message::new().message(1, &literal)
    };
    let plain = Message::new()
        .message(1, &Message(main_of(0, &[parameter()])))
        .message(2, &literal(&[1.0, 2.0]))
        .message(2, &literal(&[3.0, -4.0]));
    assert_eq!(recording(&plain.0), expected);
}

#[test]
fn errors_in_snapshots_say_where() {
    let (a, b) = (raw(&[1.0, 2.0]), raw(&[3.0, -4.0]));
    let error = |bytes: &[u8]| decode_recording(bytes).expect_err("an error").to_string();
    let says = |bytes: &[u8], expected: &str| {
        let error = error(bytes);
        assert!(error.starts_with(expected) && error.contains("; "), "{error}");
    };
    let message = of_two(a.len(), b.len());
    let both = [&a[..], &b[..]].concat();
    says(
        &delimited(&message, &both[..both.len() - 1]),
        "partitions[1].arguments[0]: the end of it is missing",
    );
    says(
        &delimited(&message, &[&both[..], b"?"].concat()),
        "partitions: 1 bytes follow the last argument",
    );
    let longer = of_two(a.len() + 1, b.len() - 1);
    says(&delimited(&longer, &both), "partitions[0].arguments[0]: 1 bytes follow the last element");
    let shorter = of_two(a.len() - 4, b.len() + 4);
    says(&delimited(&shorter, &both), "partitions[0].arguments[0]: it is shorter than its shape");
    says(&delimited(&message.clone().int(3, 1), &both), "version: there is no version 1");
    let newer = Message::new().message(2, &Message::new().int(1, 7).int(2, a.len() as i64));
    let newer = Message::new().message(1, &Message(main_of(0, &[parameter()]))).message(2, &newer);
    says(&delimited(&newer, &a), "partitions[0].arguments[0].version: there is no version 7");
}

#[test]
fn what_a_value_claims_is_not_allocated() {
    let claim = |shape: Message| {
        let mut value = (shape.0.len() as u64).to_le_bytes().to_vec();
        value.extend(&shape.0);
        value.extend([0; 16]);
        let message = of_two(value.len(), 0);
        decode_recording(&delimited(&message, &value)).expect_err("an error").to_string()
    };
    for dims in [&[1 << 40][..], &[1 << 40, 1 << 40], &[5]] {
        let error = claim(shape(F32, dims));
        assert!(error.contains("it is shorter than its shape says"), "{error}");
    }
    let dynamic = claim(shape(F32, &[4]).ints(6, &[1]));
    assert!(dynamic.contains("record arrays of static sizes"), "{dynamic}");
    let mut deep = shape(F32, &[]);
    while deep.0.len() < 100_000 {
        deep = Message::new().int(2, 13).message(4, &deep);
    }
    assert!(claim(deep).contains("recursion limit"));
    let error = claim(Message::new().int(2, 14));
    assert!(error.contains("there are no values of opaque"), "{error}");
}

// --- profiles

#[test]
fn profiles_have_modules() {
    let profile = bytes("profile/group_scale.xplane.pb");
    assert!(
        looks_like_profile(&profile) && !looks_like_profile(&bytes(&snapshot(PROGRAMS[0], "pb")))
    );
    let modules = modules_of_profile(&profile);
    let [module] = &modules[..] else { panic!("{} modules", modules.len()) };
    assert!(module.name.starts_with("jit_group_scale("), "{}", module.name);
    let after = bytes(&format!("dump/{}.cpu_after_optimizations.hlo.pb", PROGRAMS[0]));
    let expected = decode(&after).expect("a module");
    let found = decode(module.proto).expect("a module");
    assert_eq!(found.instruction_count(), expected.instruction_count());
}

// --- damaged files

fn swallow(bytes: &[u8]) -> bool {
    let module = decode(bytes).is_ok();
    module && decode_recording(bytes).is_ok()
}

#[test]
fn truncated_files_are_errors() {
    for program in PROGRAMS {
        let whole = bytes(&snapshot(program, "pb"));
        for end in 0..whole.len() {
            assert!(!swallow(&whole[..end]), "{program}: {end} of {}", whole.len());
        }
        assert!(swallow(&whole), "{program}");
    }
    let profile = bytes("profile/group_scale.xplane.pb");
    for end in 0..profile.len() {
        assert!(modules_of_profile(&profile[..end]).is_empty(), "{end}");
    }
}

#[test]
fn flipped_bytes() {
    let mut random = ChaCha8Rng::seed_from_u64(3);
    let mut flipped = |bytes: &[u8]| {
        let mut bytes = bytes.to_vec();
        for _ in 0..1 + random.next_u32() % 3 {
            let at = random.next_u32() as usize % bytes.len();
            bytes[at] = random.next_u32() as u8;
        }
        bytes
    };
    let profile = bytes("profile/group_scale.xplane.pb");
    for program in PROGRAMS {
        let whole = bytes(&snapshot(program, "pb"));
        for _ in 0..1_000 {
            swallow(&flipped(&whole));
            for module in modules_of_profile(&flipped(&profile)) {
                swallow(module.proto);
            }
        }
    }
}

#[test]
fn damaged_texts() {
    let mut random = ChaCha8Rng::seed_from_u64(5);
    let signs = b"{}<>[]:;,#\"'\\-+.0987axeEfiX_ \n/\xc3";
    for program in [PROGRAMS[1], PROGRAMS[2]] {
        let whole = text(&snapshot(program, "txt"));
        for end in (0..whole.len()).step_by(97) {
            let read = encode_text_proto(&whole[..end]);
            let is_whole = whole[end..].starts_with("\npartitions");
            assert!(is_whole || read.is_err() || read.is_ok_and(|bytes| !swallow(&bytes)), "{end}");
        }
        for _ in 0..1_000 {
            let mut bytes = whole.clone().into_bytes();
            for _ in 0..1 + random.next_u32() % 3 {
                let at = random.next_u32() as usize % bytes.len();
                bytes[at] = signs[random.next_u32() as usize % signs.len()];
            }
            let text = String::from_utf8_lossy(&bytes);
            looks_like_text_proto(&text);
            match encode_text_proto(&text) {
                Ok(bytes) => drop(swallow(&bytes)),
                Err(error) => assert!(error.span.start <= text.len(), "{error}"),
            }
        }
    }
}
