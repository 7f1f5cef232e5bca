//! Broken bytecode: each error, cut files, changed bytes and hostile sizes.

use std::cell::Cell;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use tilewright_stablehlo::bytecode::{self, Format, Section, Version};
use tilewright_stablehlo::text;
use tilewright_testkit::mlir_properties::{self, Outcome};

fn fixture(name: &str) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/bytecode");
    std::fs::read(format!("{folder}/{name}")).unwrap()
}

/// A number as MLIR writes it, for numbers below 128.
fn small(value: usize) -> u8 {
    assert!(value < 128);
    u8::try_from(value << 1 | 1).unwrap()
}

fn section(number: u8, contents: &[u8]) -> Vec<u8> {
    let mut bytes = vec![number, small(contents.len())];
    bytes.extend_from_slice(contents);
    bytes
}

/// Numbers as MLIR writes them.
macro_rules! numbers {
    ($($value:expr),*) => { [$(small($value)),*].to_vec() };
}

/// A file of version 6 with an attribute and a type of these encodings, and these operations.
/// String 0 is `builtin`, 1 is `module`; the dialect is `builtin`.
fn file(attribute: &[u8], ty: &[u8], operations: &[u8]) -> Vec<u8> {
    file_of("builtin", 1, attribute, ty, operations)
}

/// The same with another dialect, and with the attribute as a text if `custom` is 0.
fn file_of(
    dialect: &str,
    custom: usize,
    attribute: &[u8],
    ty: &[u8],
    operations: &[u8],
) -> Vec<u8> {
    let mut bytes = b"ML\xEFR".to_vec();
    bytes.extend([small(6), 0]);
    let strings = format!("{dialect}\0module\0").into_bytes();
    let strings = [numbers![2, 7, dialect.len() + 1], strings].concat();
    bytes.extend(section(0, &strings));
    // One dialect without a version, one name of an operation that is registered.
    bytes.extend(section(1, &numbers![1, 0, 1, 0, 1, 3]));
    let sizes = numbers![1, 1, 0, 1, attribute.len() << 1 | custom, 0, 1, ty.len() << 1 | 1];
    bytes.extend(section(3, &sizes));
    bytes.extend(section(2, &[attribute, ty].concat()));
    bytes.extend(section(4, operations));
    bytes
}

/// The encoding of an unknown location.
const UNKNOWN: [u8; 1] = [15 << 1 | 1];
/// The encoding of `index`.
const INDEX: [u8; 1] = [1 << 1 | 1];
/// An empty module: a name, its parts, a location.
const MODULE: [u8; 4] = [5, 1, 0, 1];

fn message(bytes: &[u8]) -> String {
    bytecode::read(bytes).unwrap_err().to_string()
}

#[test]
fn a_file_by_hand_is_read() {
    let program = bytecode::read(&file(&UNKNOWN, &INDEX, &MODULE)).unwrap();
    assert_eq!(program.module.name, "builtin.module");
    assert!(program.values.is_empty());
}

#[test]
fn errors_say_where_and_what() {
    let module = |rest: &[u8]| [&[5, 1][..], rest].concat();
    let of = |operations: &[u8]| message(&file(&UNKNOWN, &INDEX, operations));
    let attribute = |bytes: &[u8]| message(&file(bytes, &INDEX, &MODULE));
    let cases = [
        message(b"HLO"),
        message(b"ML\xEFR\x0F\0"),
        message(b"ML\xEFR\x0D"),
        message(b"ML\xEFR\x0D\0"),
        message(b"ML\xEFR\x0D\0\x1F\x01"),
        message(b"ML\xEFR\x0D\0\0\x03\x01\0\x03\x01"),
        message(b"ML\xEFR\x0D\0\0\x07\x03\x05\x61\x61"),
        message(b"ML\xEFR\x0D\0\x80\x03\x07\x01"),
        of(&[1]),
        of(&module(&[0, 3])),
        of(&[5, 3, 0, 1]),
        of(&module(&[64, 1, 1])),
        of(&module(&[4, 1, 3, 1])),
        of(&module(&[8, 1])),
        of(&module(&[2, 1, 3, 3])),
        of(&module(&[1, 1, 1])),
        of(&module(&[16, 1, 7])),
        of(&module(&[16, 1, 7, 1, 1])),
        of(&module(&[16, 1, 5, 3, 7, 1])),
        of(&[5, 1, 0, 1, 0]),
        attribute(&numbers![99]),
        attribute(&numbers![20]),
        attribute(&numbers![21]),
        attribute(&numbers![2, 9]),
        attribute(&numbers![7]),
        attribute(&numbers![7, 7]),
        attribute(&numbers![14, 0, 0]),
        attribute(&numbers![8, 0, 0]),
        attribute(&numbers![18, 0, 0]),
        attribute(&numbers![9, 0, 0]),
        attribute(&numbers![16, 0, 0]),
        attribute(&numbers![6, 9]),
    ];
    insta::assert_snapshot!(cases.join("\n"));
}

#[test]
fn errors_of_types_say_what() {
    let ty = |bytes: &[u8]| {
        // An integer of the type, so that the type is read.
        message(&file(&numbers![8, 0, 0], bytes, &MODULE))
    };
    let cases = [
        ty(&numbers![99]),
        ty(&numbers![0, 3]),
        ty(&[1, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0]),
        ty(&numbers![9, 0]),
        ty(&numbers![13, 1, 3, 0]),
        ty(&numbers![13, 9, 3, 0]),
    ];
    insta::assert_snapshot!(cases.join("\n"));
}

#[test]
fn errors_of_dialects_say_what() {
    let attribute =
        |dialect: &str, bytes: &[u8]| message(&file_of(dialect, 1, bytes, &INDEX, &MODULE));
    let text = |text: &[u8]| message(&file_of("sdy", 0, text, &INDEX, &MODULE));
    let cases = [
        attribute("vhlo", &numbers![99]),
        attribute("vhlo", &numbers![3, 9]),
        attribute("stablehlo", &numbers![99]),
        attribute("stablehlo", &numbers![10, 0]),
        attribute("chlo", &numbers![9]),
        attribute("sdy", &numbers![12]),
        attribute("other", &numbers![0]),
        message(&file_of("vhlo", 1, &numbers![17, 0], &numbers![99], &MODULE)),
        message(&file_of("stablehlo", 1, &numbers![15, 0], &numbers![99], &MODULE)),
        text(b"#sdy.mesh<\0"),
        text(b"#sdy.mesh<>"),
        text(b"\xFF\0"),
    ];
    insta::assert_snapshot!(cases.join("\n"));
}

/// A number as MLIR writes it in two bytes.
fn wide(value: usize) -> [u8; 2] {
    u16::try_from(value << 2 | 2).unwrap().to_le_bytes()
}

#[test]
fn deep_attributes_are_an_error() {
    let mut bytes = b"ML\xEFR".to_vec();
    bytes.extend([small(6), 0]);
    let strings = [numbers![2, 7, 8], b"builtin\0module\0".to_vec()].concat();
    bytes.extend(section(0, &strings));
    bytes.extend(section(1, &numbers![1, 0, 1, 0, 1, 3]));
    // Each attribute is an array of the next one.
    let count = 200;
    let mut sizes = [&wide(count)[..], &numbers![0, 0], &wide(count)].concat();
    let mut encodings = Vec::new();
    for index in 0..count {
        let encoding = [&numbers![0, 1][..], &wide(index + 1)].concat();
        sizes.push(small(encoding.len() << 1 | 1));
        encodings.extend(encoding);
    }
    for (number, contents) in [(3, &sizes), (2, &encodings)] {
        bytes.push(number);
        bytes.extend(wide(contents.len()));
        bytes.extend(contents);
    }
    bytes.extend(section(4, &MODULE));
    assert!(message(&bytes).contains("attributes are nested too deeply"), "{}", message(&bytes));
}

#[test]
fn errors_of_constants_say_what() {
    let of = |attribute: &[u8], ty: &[u8]| message(&file(attribute, ty, &MODULE));
    let long = [numbers![0], wide(64 << 2).to_vec()].concat();
    let wide = [numbers![0], wide(200 << 2).to_vec()].concat();
    let cases = [
        of(&numbers![17, 0, 2, 8, 0], &long),
        of(&[&numbers![17, 0, 1, 8][..], &[0; 8], &[9]].concat(), &INDEX),
        of(&numbers![8, 0, 3, 0, 0, 0], &wide),
        of(&numbers![18, 0, 1, 0], &long),
        of(&numbers![19, 0, 0], &long),
        // One string for all elements of a type that has none.
        of(&numbers![19, 0, 1, 0], &long),
        of(&numbers![12, 1, 9], &INDEX),
        of(&numbers![11, 9, 0, 0], &INDEX),
        of(&numbers![4, 9], &INDEX),
    ];
    insta::assert_snapshot!(cases.join("\n"));
}

#[test]
fn tables_that_do_not_fit_are_errors() {
    let with = |number: u8, contents: &[u8]| {
        let mut bytes = b"ML\xEFR".to_vec();
        bytes.extend([small(6), 0]);
        let strings = [numbers![2, 7, 8], b"builtin\0module\0".to_vec()].concat();
        let parts: [(u8, Vec<u8>); 5] = [
            (0, strings),
            (1, numbers![1, 0, 1, 0, 1, 3]),
            (3, numbers![0, 0]),
            (2, Vec::new()),
            (4, MODULE.to_vec()),
        ];
        for (known, usual) in parts {
            bytes.extend(section(known, if known == number { contents } else { &usual }));
        }
        if number > 4 {
            bytes.extend(section(number, contents));
        }
        message(&bytes)
    };
    let cases = [
        with(0, &numbers![1, 0]),
        with(0, &[numbers![1, 1], vec![0, 0]].concat()),
        with(0, &[numbers![1, 2], vec![0xFF, 0]].concat()),
        with(1, &numbers![1, 18]),
        with(1, &numbers![1, 0, 1, 7, 1, 3]),
        with(3, &numbers![1, 0, 0, 2, 0, 0]),
        with(3, &numbers![1, 0, 0, 1, 9]),
        with(3, &numbers![0, 0, 0]),
        with(8, &numbers![1, 5]),
        with(8, &numbers![0, 0]),
        with(6, &numbers![0, 7, 0]),
        with(6, &[numbers![0, 0, 1, 0, 9], vec![0]].concat()),
    ];
    insta::assert_snapshot!(cases.join("\n"));
}

#[test]
fn an_error_knows_its_section_and_offset() {
    let error = bytecode::read(&file(&numbers![99], &INDEX, &MODULE)).unwrap_err();
    assert_eq!(error.section, Section::Attributes);
    let bytes = file(&numbers![99], &INDEX, &MODULE);
    assert_eq!(bytes.get(error.offset), Some(&small(99)));
}

#[test]
fn cut_files_are_errors() {
    for name in ["pool.mlirbc", "pool.0.9.0.vhlo", "sharded.1.22.0.vhlo"] {
        let bytes = fixture(name);
        let mut errors = 0;
        for end in 0..bytes.len() {
            // Sections that may be missing stand at the end.
            match bytecode::read(&bytes[..end]) {
                Ok(program) => {
                    assert_eq!(program, bytecode::read(&bytes).unwrap(), "{name} up to {end}");
                }
                Err(_) => errors += 1,
            }
        }
        println!("{name}: {errors} of {} beginnings are errors", bytes.len());
        assert!(errors * 2 >= bytes.len(), "{name}: {errors} errors");
    }
}

/// MLIR keeps an `i4` in a byte and ignores the upper half of it.
#[test]
fn unused_bits_of_elements_are_ignored() {
    let program = |elements| {
        let constant = format!("stablehlo.constant dense<{elements}> : tensor<4xi4>");
        let function = format!(
            "func.func @f() -> tensor<4xi4> {{ %0 = {constant} return %0 : tensor<4xi4> }}"
        );
        text::parse(&format!("module {{ {function} }}")).unwrap()
    };
    let mut bytes = bytecode::write(&program("[5, -3, 5, -3]"), Format::Plain).unwrap();
    let at = bytes.windows(4).position(|window| window == [0x5, 0xD, 0x5, 0xD]).unwrap();
    bytes[at..at + 4].copy_from_slice(&[0x25, 0x95, 0x15, 0xF5]);
    let print = tilewright_stablehlo::print(&bytecode::read(&bytes).unwrap());
    assert!(print.contains("dense<5> : tensor<4xi4>"), "{print}");
    let print = tilewright_stablehlo::print(&program("\"0x259515F5\""));
    assert!(print.contains("dense<5> : tensor<4xi4>"), "{print}");
}

#[test]
fn a_name_of_two_attributes_is_an_error() {
    let body = "func.func private @f() attributes {aa = 1 : i32, ab = 2 : i32}";
    let program = text::parse(&format!("module {{ {body} }}")).unwrap();
    let mut bytes = bytecode::write(&program, Format::Plain).unwrap();
    let at = bytes.windows(3).position(|window| window == b"ab\0").unwrap();
    bytes[at + 1] = b'a';
    assert!(message(&bytes).contains("the attribute `aa` is here twice"), "{}", message(&bytes));
}

#[test]
fn deep_regions_are_an_error() {
    let mut inner = MODULE[1..].to_vec();
    for _ in 0..100 {
        // A module with a region of a block of one operation.
        inner = [&[1, 16, 1, 5, 3, 1, 5][..], &inner].concat();
    }
    let mut bytes = file(&UNKNOWN, &INDEX, &[]);
    bytes.truncate(bytes.len() - 2);
    let size = u16::try_from(inner.len() + 1).unwrap();
    // A number of two bytes.
    bytes.push(4);
    bytes.extend((size << 2 | 2).to_le_bytes());
    bytes.push(5);
    bytes.extend(inner);
    assert!(message(&bytes).contains("regions are nested too deeply"), "{}", message(&bytes));
}

#[test]
fn repeated_attributes_are_bounded() {
    // Attribute 1 is an array of two of attribute 2, and so on: 2^30 copies.
    let mut bytes = b"ML\xEFR".to_vec();
    bytes.extend([small(6), 0]);
    let strings = [numbers![2, 7, 8], b"builtin\0module\0".to_vec()].concat();
    bytes.extend(section(0, &strings));
    bytes.extend(section(1, &numbers![1, 0, 1, 0, 1, 3]));
    let count = 30;
    let mut sizes = numbers![count, 0, 0, count];
    let mut encodings = Vec::new();
    for index in 0..count {
        let encoding = match index {
            0 => numbers![0, 2, 1, 1],
            _ if index + 1 == count => numbers![7],
            _ => numbers![0, 2, index + 1, index + 1],
        };
        sizes.push(small(encoding.len() << 1 | 1));
        encodings.extend(encoding);
    }
    bytes.extend(section(3, &sizes));
    bytes.extend(section(2, &encodings));
    bytes.extend(section(4, &MODULE));
    assert!(message(&bytes).contains("repeated too often"), "{}", message(&bytes));
}

#[test]
fn programs_that_a_version_lacks_are_named() {
    let parse = |body: &str| text::parse(&format!("module {{ {body} }}")).unwrap();
    let error = |body: &str, format| bytecode::write(&parse(body), format).unwrap_err().to_string();
    let (oldest, default) = (Format::Portable(Version::OLDEST), Format::default());
    let function = |types: &str, operation: &str| {
        format!("func.func @f(%a: {types}) -> {types} {{ %0 = {operation} return %0 : {types} }}")
    };
    let tan = "stablehlo.tan %a : tensor<f32>";
    let unknown = "\"stablehlo.unknown\"(%a) : (tensor<f32>) -> tensor<f32>";
    let quantized = "tensor<2x!quant.uniform<i8:f32, 1.0>>";
    let cases = [
        error(&function("tensor<f32>", tan), oldest),
        error(&function("tensor<f32>", unknown), default),
        error("func.func private @f(tensor<f4E2M1FN>)", default),
        error(&format!("func.func private @f({quantized})"), default),
        error("", Format::Portable(Version { major: 9, minor: 0 })),
        error("\"stablehlo.transpose\"() : () -> ()", default),
    ];
    insta::assert_snapshot!(cases.join("\n"));
}

/// Files of programs whose bytes are changed.
const PROGRAMS: [&str; 4] =
    ["control.mlirbc", "indices.0.9.0.vhlo", "sharded.1.22.0.vhlo", "constants.1.22.0.vhlo"];

#[test]
fn bytes_as_they_are_become_modules_and_bytes_again() {
    let outcomes = PROGRAMS.map(|name| {
        let bytes = fixture(name);
        let program = bytecode::read(&bytes).unwrap();
        if name != "sharded.1.22.0.vhlo" {
            // Older versions of StableHLO have no groups of replicas by the axes of a mesh.
            assert!(bytecode::write(&program, Format::default()).is_ok(), "{name}");
        }
        mlir_properties::code(&bytes).unwrap_or_else(|problem| panic!("{name}: {problem}"))
    });
    println!("{PROGRAMS:?}: {outcomes:?}");
    assert!(outcomes.iter().all(|outcome| *outcome > Outcome::Unwritten), "{outcomes:?}");
    assert_eq!(outcomes[0], Outcome::Exported, "{}", PROGRAMS[0]);
    let exported = outcomes.iter().filter(|outcome| **outcome == Outcome::Exported).count();
    assert!(exported >= 2, "{outcomes:?}");
}

fn count(counter: &Cell<u32>, is_counted: bool) {
    counter.set(counter.get() + u32::from(is_counted));
}

#[test]
fn changed_bytes_do_not_panic() {
    let change = (any::<prop::sample::Index>(), any::<u8>());
    let strategy = (prop::sample::select(PROGRAMS.to_vec()), prop::collection::vec(change, 1..6));
    let [tried, read, portable, written, exported] = [const { Cell::new(0_u32) }; 5];
    let config =
        ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() };
    let result = TestRunner::new(config).run(&strategy, |(name, changes)| {
        let mut bytes = fixture(name);
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        count(&tried, true);
        if let Ok(program) = bytecode::read(&bytes) {
            count(&read, true);
            if let Ok(artifact) = bytecode::write(&program, Format::default()) {
                count(&portable, true);
                prop_assert!(bytecode::is_bytecode(&artifact));
            }
        }
        let outcome = mlir_properties::code(&bytes).map_err(TestCaseError::fail)?;
        count(&written, outcome > Outcome::Unwritten);
        count(&exported, outcome == Outcome::Exported);
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
    let [tried, read, portable, written, exported] =
        [tried, read, portable, written, exported].map(Cell::into_inner);
    println!(
        "of {tried}, {read} are read, {portable} written as an artifact, {written} as they are, \
         {exported} exported"
    );
    assert!(read * 50 >= tried, "{read} of {tried} are read");
    assert!(written * 2 >= read, "{written} of {read} are written");
    assert!(portable * 10 >= read, "{portable} of {read} are written as an artifact");
    assert!(exported * 20 >= read, "{exported} of {read} are exported");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_bytes_do_not_panic(rest in prop::collection::vec(any::<u8>(), 0..200)) {
        let bytes = [b"ML\xEFR\x0D\0".as_slice(), &rest].concat();
        prop_assert!(bytecode::read(&bytes).is_err());
    }
}
