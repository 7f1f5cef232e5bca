//! Recovery tables: whole modules within a module.

use crate::common;
use crate::common::{Message, computation, main_of, module, parameter};
use tilewright_ir::metadata::MAX_RECOVERY_DEPTH;
use tilewright_proto::{decode, encode, lost_in_proto, lost_in_text};

const TABLE: u64 = 20;

fn array(name: &str, part: &[i64]) -> Message {
    let array = Message::new().text(1, name);
    if part.is_empty() { array } else { array.ints(2, part) }
}

fn entry(lost: &str, replacement: &str) -> Message {
    Message::new().message(1, &array(lost, &[])).message(2, &array(replacement, &[2, 0]))
}

/// Returns a module with this recovery table.
fn with_table(entries: &[Message]) -> Vec<u8> {
    let entries = entries.iter().fold(Message::new(), |table, entry| table.message(1, entry));
    main_with(&entries)
}

fn main_with(table: &Message) -> Vec<u8> {
    module(&[computation("main", 0, 0, &[parameter()])]).message(TABLE, table).0
}

fn table_of(bytes: &[u8]) -> Vec<u8> {
    let found = common::fields(bytes).into_iter().find(|(number, ..)| *number == 20);
    found.and_then(|(_, table, _)| table).expect("a table").to_vec()
}

#[test]
fn tables_come_through_byte_by_byte() {
    let within = encode(&decode(&main_of(0, &[parameter()])).expect("a module")).expect("proto");
    // Its number among the modules of a process, and fields of a newer XLA.
    let within = [within, Message::new().int(5, 77).int(200, 1).0].concat();
    let entries = [
        entry("a", "c").bytes(3, &encode(&decode(&within).expect("a module")).expect("proto")),
        entry("b", "a").int(200, 2),
    ];
    let table = Message::new().message(1, &entries[0]).message(1, &entries[1]).int(200, 3);
    let module = decode(&main_with(&table)).expect("a module");
    assert_eq!(table_of(&encode(&module).expect("proto")), table.0);
    assert_eq!(
        lost_in_text(&module),
        [
            "the unknown field 200 of the module `m`",
            "what is unknown within field 20 of the module",
            "the unknown field 200 of the recovery of `b`",
        ]
    );
}

/// They are written in the order of the arrays that are lost, as XLA does.
#[test]
fn unknown_fields_stay_with_their_array() {
    let (a, b) = (entry("a", "x").int(200, 1), entry("b", "y").int(201, 2));
    let module = decode(&with_table(&[b.clone(), a.clone()])).expect("a module");
    let written = encode(&module).expect("proto");
    assert_eq!(table_of(&written), Message::new().message(1, &a).message(1, &b).0);
}

#[test]
fn the_last_way_to_an_array_is_kept() {
    let module = decode(&with_table(&[entry("a", "x"), entry("a", "y")])).expect("a module");
    let written = encode(&module).expect("proto");
    assert_eq!(table_of(&written), Message::new().message(1, &entry("a", "y")).0);
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let says = |bytes: &[u8], expected: &str| {
        let found = decode(bytes).expect_err("something is wrong with it").to_string();
        assert!(found.starts_with(expected), "{found}");
    };
    let empty = with_table(&[entry("a", "x"), entry("b", "y").bytes(3, &[])]);
    says(
        &empty,
        "original_value_recovery_table.entries[1].recovery_module.entry_computation_id: \
         there is no computation 0",
    );
    let damaged = Message::new().bytes(1, &[10, 5, 1]);
    says(&main_with(&damaged), "original_value_recovery_table.entries[0]: ");
}

#[test]
fn tables_nest_to_a_limited_depth() {
    let nest = |inner: &[u8]| with_table(&[entry("a", "x").bytes(3, inner)]);
    let mut bytes = main_of(0, &[parameter()]);
    for _ in 0..MAX_RECOVERY_DEPTH {
        bytes = nest(&bytes);
    }
    let module = decode(&bytes).expect("a module");
    let written = encode(&module).expect("proto");
    assert_eq!(encode(&decode(&written).expect("a module")).expect("proto"), written);
    // Nor deeper ones, however deep.
    for _ in 0..100 {
        bytes = nest(&bytes);
        let found = decode(&bytes).expect_err("it nests too deep").to_string();
        assert!(found.contains("recovery tables nest more than 4 deep here"), "{found}");
    }
    let mut outer = decode(&main_of(0, &[parameter()])).expect("a module");
    outer.header.origin_recovery = module.header.origin_recovery.clone();
    let recovery = outer.header.origin_recovery.values_mut().next().expect("one");
    recovery.module = Some(Box::new(module));
    assert!(encode(&outer).expect_err("it nests too deep").to_string().contains("more than 4"));
}

#[test]
fn what_proto_loses_is_told_of_modules_within() {
    let text = "HloModule m, origin_recovery_table={ {\"a\"} : {\"b\"}, \"HloModule q, \
                num_partitions=3\n ENTRY r { ROOT p = f32[2] parameter(0) }\" }\n\
                ENTRY e {\n  ROOT x = f32[] parameter(0)\n}\n";
    let module = tilewright_text::parse(text).expect("a module").module;
    assert_eq!(lost_in_proto(&module), ["`num_partitions=3` of the recovery module `q`"]);
}
