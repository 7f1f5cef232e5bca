//! Tests that every fixture reads back as it was written.

use crate::common;
use crate::common::{Message, modules, print};
use tilewright_ir::Module;
use tilewright_proto::{decode, encode, encode_hlo_proto, looks_like_proto};

const FOLDERS: [&str; 5] = ["models", "text/ok", "ops", "rewrite", "real"];

/// Removes the properties that only text can express.
fn without_text_only(mut module: Module) -> Module {
    module.header.replica_count = None;
    module.header.num_partitions = None;
    module.header.alias_passthrough_params = false;
    module.header.allow_sharding_propagation_to_parameters.clear();
    module.header.allow_sharding_propagation_to_output.clear();
    module
}

/// Proto states layouts and makes names unique, which text need not do; text that went through
/// proto once goes through it unchanged.
#[test]
fn text_survives_proto() {
    let modules = modules(&FOLDERS);
    assert!(modules.len() > 700, "{} modules", modules.len());
    let mut unchanged = 0;
    for (name, module) in modules {
        let bytes = encode(&module).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(looks_like_proto(&bytes), "{name}");
        let again = decode(&bytes).unwrap_or_else(|e| panic!("{name}: {e}"));
        let text = print(&again);
        unchanged += usize::from(text == print(&without_text_only(module)));
        let parsed = tilewright_text::parse(&text).expect("our own text").module;
        let twice = decode(&encode(&parsed).expect("proto")).expect("our own proto");
        assert_eq!(print(&twice), text, "{name}");
    }
    // Many texts that XLA printed survive unchanged.
    assert!(unchanged > 90, "only {unchanged} texts came through unchanged");
}

#[test]
fn bytes_are_stable() {
    for (name, module) in modules(&FOLDERS) {
        let bytes = encode(&module).expect("proto");
        let again = encode(&decode(&bytes).expect("a module")).expect("proto");
        assert!(again == bytes, "{name}: the bytes changed");
    }
}

#[test]
fn models_come_through_unchanged() {
    for (name, module) in modules(&["models"]) {
        let again = decode(&encode(&module).expect("proto")).expect("a module");
        assert_eq!(print(&again), print(&module), "{name}");
    }
}

#[test]
fn all_three_messages_are_told_apart() {
    for (name, module) in modules(&["models", "text/ok"]) {
        let text = print(&decode(&encode(&module).expect("proto")).expect("a module"));
        let hlo = encode_hlo_proto(&module).expect("proto");
        // With a buffer assignment behind the module.
        let mut dump = hlo.clone();
        dump.extend(common::Message::new().message(3, &common::Message::new().int(9, 1)).0);
        let snapshot = common::Message::new().bytes(1, &dump).text(4, "cpu").0;
        for bytes in [hlo, dump, snapshot] {
            assert!(looks_like_proto(&bytes), "{name}");
            assert_eq!(print(&decode(&bytes).expect("a module")), text, "{name}");
        }
    }
}

#[test]
fn dynamic_dims() {
    let text = "HloModule m, entry_computation_layout={(f32[?,<=3]{1,0})->f32[?,<=3]{1,0}}\n\n\
        ENTRY %e (x: f32[?,<=3]) -> f32[?,<=3] {\n  %x = f32[?,<=3]{1,0} parameter(0)\n  \
        ROOT %y = f32[?,<=3]{1,0} negate(%x)\n}\n";
    let module = tilewright_text::parse(text).expect("HLO text").module;
    let again = decode(&encode(&module).expect("proto")).expect("a module");
    assert_eq!(print(&again), text);
}

#[test]
fn text_is_not_taken_for_proto() {
    for text in ["HloModule m", "\nHloModule m", "\"a\"", "// comment", "ENTRY e {", "%f {", ""] {
        assert!(!looks_like_proto(text.as_bytes()), "{text}");
    }
}

fn has(bytes: &[u8], part: &Message) -> bool {
    bytes.windows(part.0.len()).any(|window| window == part.0)
}

fn read(lines: &str) -> Module {
    let text = format!("HloModule m\n\nENTRY e {{\n{lines}\n}}\n");
    tilewright_text::parse(&text).expect("a module").module
}

/// Modules of XLA from before there was a field of its own for it.
#[test]
fn groups_of_an_older_xla() {
    let iota = Message::new().int(1, 2).int(2, 4).ints(3, &[4, 2]).ints(4, &[1, 0]);
    let groups = Message::new().message(2, &iota);
    let gather = common::instruction("y", "all-gather", 1)
        .ints(36, &[0])
        .ints(14, &[0])
        .message(87, &groups)
        .int(71, 1);
    let bytes = common::main_of(1, &[common::parameter(), gather]);
    let text = print(&decode(&bytes).expect("a module"));
    assert!(text.contains("replica_groups=[2,4]<=[4,2]T(1,0)"), "{text}");
    let again = encode(&decode(&bytes).expect("a module")).expect("proto");
    assert!(has(&again, &Message::new().message(92, &iota)), "written as newer XLA does");
}

/// Text calls the users' side the entry, proto the operand's side.
#[test]
fn sides_of_a_domain() {
    let module = read(
        "  a = f32[8] parameter(0)\n  ROOT d = f32[8] domain(a), \
         domain={kind=\"sharding\", entry={maximal device=3}, exit={maximal device=5}}",
    );
    let bytes = encode(&module).expect("proto");
    for (field, device) in [(54, 5), (55, 3)] {
        let sharding = Message::new().int(1, 1).ints(4, &[device]);
        assert!(has(&bytes, &Message::new().message(field, &sharding)), "{field}: {device}");
    }
    let again = decode(&bytes).expect("a module");
    assert!(print(&again).contains("entry={maximal device=3}, exit={maximal device=5}"));
}

/// XLA takes no outfeed without it, though text may leave it out.
#[test]
fn outfeeds_say_what_they_send() {
    let module = read(
        "  a = f32[8,4]{0,1} parameter(0)\n  t = token[] after-all()\n  ROOT o = token[] outfeed(a, t)",
    );
    let again = decode(&encode(&module).expect("proto")).expect("a module");
    assert!(print(&again).contains("outfeed_shape=f32[8,4]{0,1}"), "{}", print(&again));
}

/// Elements that are packed on the device take whole bytes in a literal.
#[test]
fn literals_are_not_packed() {
    let module = read("  ROOT c = s4[2]{0:E(4)} constant({1, 2})");
    let bytes = encode(&module).expect("proto");
    let literal = Message::new().message(1, &common::shape(21, &[2]).ints(6, &[0]));
    assert!(has(&bytes, &literal));
    assert!(print(&decode(&bytes).expect("a module")).contains("s4[2]{0:E(4)} constant({1, 2})"));
}

/// XLA's rule: a text without the attribute is certain that the scan is not associative, which
/// a proto may leave open.
#[test]
fn whether_a_scan_is_associative() {
    let text = include_str!("../../../fixtures/text/ok/scan.hlo");
    let module = tilewright_text::parse(text).expect("a fixture").module;
    let bytes = encode(&module).expect("proto");
    let said = |module: &Module| {
        let text = print(module);
        ["is_associative=true", "is_associative=false"].map(|word| text.matches(word).count())
    };
    assert_eq!(said(&module), [1, 0]);
    assert_eq!(said(&decode(&bytes).expect("a module")), [1, 2]);
    // Field 96 of three instructions.
    let mut open = bytes.clone();
    for value in [1, 2] {
        while let Some(at) = open.windows(3).position(|w| w == [0x80, 0x06, value]) {
            open[at + 2] = 0;
        }
    }
    let again = encode(&decode(&open).expect("a module")).expect("proto");
    assert_eq!(said(&decode(&again).expect("a module")), [0, 0]);
}

/// XLA refuses literals of packed elements, so the layout of the constant states their width,
/// and that of its value does not.
#[test]
fn values_of_packed_constants_are_not_packed() {
    let text = "HloModule packed

ENTRY main {
  a = s4[3]{0:E(4)} constant({-8, 0, 7})
  b = u2[2,2]{0,1:E(2)} constant({ { 0, 1 }, { 2, 3 } })
  c = s4[]{:E(4)} constant(-1)
  ROOT all = (s4[3]{0:E(4)}, u2[2,2]{0,1:E(2)}, s4[]{:E(4)}) tuple(a, b, c)
}";
    let bytes = encode(&tilewright_text::parse(text).expect("text").module).expect("proto");
    let inner = |bytes: &[u8], path: &[u32]| -> Vec<Vec<u8>> {
        path.iter().fold(vec![bytes.to_vec()], |messages, &number| {
            let fields = messages.iter().flat_map(|message| common::fields(message));
            let found = fields.filter(|&(at, ..)| at == number);
            found.filter_map(|(_, payload, _)| payload.map(<[u8]>::to_vec)).collect()
        })
    };
    let says = |path: &[u32]| {
        let layouts = inner(&bytes, path);
        layouts.iter().filter(|layout| common::fields(layout).iter().any(|f| f.0 == 7)).count()
    };
    // computations.instructions.shape.layout, ...literal.shape.layout
    assert_eq!(says(&[3, 2, 3, 5]), 3);
    assert_eq!(inner(&bytes, &[3, 2, 8, 1, 5]).len(), 3);
    assert_eq!(says(&[3, 2, 8, 1, 5]), 0);
}
