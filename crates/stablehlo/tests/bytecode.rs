//! Bytecode written by jaxlib against the text of the same program written by jaxlib.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tilewright_stablehlo::bytecode::{Format, Version};
use tilewright_stablehlo::mlir::{
    Attribute, Attributes, Block, Location, Operation, Program, Span,
};
use tilewright_stablehlo::{bytecode, text};

/// Removes what text and bytecode say differently: the order of attributes, and places.
fn normalize(operation: &mut Operation) {
    operation.span = Span::default();
    sort(&mut operation.attributes);
    for block in operation.regions.iter_mut().flat_map(|region| &mut region.blocks) {
        block.operations.iter_mut().for_each(normalize);
    }
}

fn sort(attributes: &mut Attributes) {
    attributes.sort_by(|a, b| a.0.cmp(&b.0));
    attributes.iter_mut().for_each(|(_, value)| sort_in(value));
}

fn sort_in(value: &mut Attribute) {
    match value {
        Attribute::Dictionary(attributes) => sort(attributes),
        Attribute::Dialect(attribute) => sort(&mut attribute.parameters),
        Attribute::Array(items) => items.iter_mut().for_each(sort_in),
        _ => {}
    }
}

/// Describes the first operation in which two trees differ.
fn difference(read: &Operation, expected: &Operation) -> Option<String> {
    let shallow = |operation: &Operation| {
        let mut operation = operation.clone();
        operation.regions.clear();
        operation
    };
    if shallow(read) != shallow(expected) {
        return Some(format!("read:\n{:?}\nexpected:\n{:?}", shallow(read), shallow(expected)));
    }
    let blocks = |operation: &Operation| -> Vec<_> {
        operation.regions.iter().flat_map(|region| region.blocks.clone()).collect()
    };
    let (read, expected) = (blocks(read), blocks(expected));
    if read.len() != expected.len() {
        return Some(format!("{} blocks, not {}", read.len(), expected.len()));
    }
    read.iter().zip(&expected).find_map(|(a, b)| {
        if a.arguments != b.arguments || a.operations.len() != b.operations.len() {
            let names = |block: &Block| -> Vec<_> {
                block.operations.iter().map(|operation| operation.name.clone()).collect()
            };
            return Some(format!("block with {:?}, not {:?}", names(a), names(b)));
        }
        a.operations.iter().zip(&b.operations).find_map(|(a, b)| difference(a, b))
    })
}

fn compare(mut read: Program, mut expected: Program, path: &Path) -> Result<(), String> {
    normalize(&mut read.module);
    normalize(&mut expected.module);
    // Bytecode leaves unknown locations of arguments out.
    expected.argument_locations.retain(|_, location| **location != Location::Unknown);
    let path = path.display();
    if let Some(difference) = difference(&read.module, &expected.module) {
        return Err(format!("{path}: {difference}"));
    }
    if read != expected {
        return Err(format!("{path}: types of values or locations of arguments differ"));
    }
    Ok(())
}

/// Readers of StableHLO before 1.9 know no end of a location.
fn drop_ends(program: &mut Program) {
    fn of(location: &Arc<Location>) -> Arc<Location> {
        Arc::new(match &**location {
            Location::Unknown => Location::Unknown,
            Location::File { file, start, .. } => {
                Location::File { file: file.clone(), start: *start, end: *start }
            }
            Location::Name { name, child } => {
                Location::Name { name: name.clone(), child: of(child) }
            }
            Location::Call { callee, caller } => {
                Location::Call { callee: of(callee), caller: of(caller) }
            }
            Location::Fused { metadata, parts } => Location::Fused {
                metadata: metadata.clone(),
                parts: parts.iter().map(of).collect(),
            },
        })
    }
    fn within(operation: &mut Operation) {
        operation.location = operation.location.as_ref().map(of);
        for block in operation.regions.iter_mut().flat_map(|region| &mut region.blocks) {
            block.operations.iter_mut().for_each(within);
        }
    }
    within(&mut program.module);
    for location in program.argument_locations.values_mut() {
        *location = of(location);
    }
}

/// The text beside a file of bytecode.
fn text_of(path: &Path) -> Option<PathBuf> {
    match path.extension()?.to_str()? {
        "mlirbc" => Some(path.with_extension("mlir")),
        "vhlo" => Some(PathBuf::from(format!("{}.mlir", path.display()))),
        _ => None,
    }
}

fn check(folder: &Path) -> (usize, Vec<String>) {
    let mut failures = Vec::new();
    let mut count = 0;
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        let Some(text) = text_of(&path) else { continue };
        let expected = text::parse(&std::fs::read_to_string(&text).unwrap())
            .unwrap_or_else(|error| panic!("{}: {error}", text.display()));
        count += 1;
        match bytecode::read(&std::fs::read(&path).unwrap()) {
            Ok(read) => failures.extend(compare(read, expected, &path).err()),
            Err(error) => failures.push(format!("{}: {error}", path.display())),
        }
    }
    (count, failures)
}

/// The folder with bytecode and its text: the fixtures, or others that someone wants to compare.
fn folder() -> PathBuf {
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/bytecode");
    std::env::var_os("BYTECODE_PAIRS").map_or_else(|| fixtures.into(), PathBuf::from)
}

#[test]
fn bytecode_is_the_tree_of_the_text() {
    let (count, failures) = check(&folder());
    assert!(count > 20, "{count} files");
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// Why a version of StableHLO has no form of a program, in the writer's words; other tests have them.
const LACKING: &[&str] = &[
    "needs StableHLO",
    "needs a newer version of StableHLO",
    "has no such operation",
    "portable artifacts have no",
    "has it with one operand only",
    "has it without regions only",
];

/// Returns what is read of a written program; `None` if nobody knows.
fn expected(program: &Program, format: Format, path: &Path) -> Option<Program> {
    let is_plain = path.extension().is_some_and(|extension| extension == "mlirbc");
    if !is_plain || format == Format::Plain {
        return Some(program.clone());
    }
    // A portable artifact does not say which default values were written out, and jaxlib read one of
    // the same program.
    let artifact = path.with_extension("1.22.0.vhlo.mlir");
    let source = std::fs::read_to_string(artifact).ok()?;
    Some(text::parse(&source).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}

/// How many programs have a form in a format.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    written: usize,
    compared: usize,
}

/// Writes a program and compares what is read from the bytes.
fn write_and_read(
    program: &Program,
    format: Format,
    path: &Path,
    counts: &mut Counts,
) -> Result<(), String> {
    let failed = |error: String| format!("{} as {format:?}: {error}", path.display());
    let written = match bytecode::write(program, format) {
        Ok(written) => written,
        Err(error) => {
            let is_lacking = LACKING.iter().any(|why| error.message.contains(why));
            let may_lack = format != Format::Plain && is_lacking;
            return if may_lack { Ok(()) } else { Err(failed(error.to_string())) };
        }
    };
    counts.written += 1;
    let read = bytecode::read(&written).map_err(|error| failed(error.to_string()))?;
    let Some(mut expected) = expected(program, format, path) else { return Ok(()) };
    if let Format::Portable(version) = format
        && version < (Version { major: 1, minor: 9 })
    {
        drop_ends(&mut expected);
    }
    counts.compared += 1;
    compare(read, expected, path).map_err(failed)
}

#[test]
fn written_bytecode_is_read_back() {
    let formats = [
        Format::Plain,
        Format::default(),
        Format::Portable(Version::NEWEST),
        Format::Portable(Version::OLDEST),
    ];
    let mut all = [Counts::default(); 4];
    let mut failures = Vec::new();
    let mut files = 0;
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        if text_of(&path).is_none() {
            continue;
        }
        files += 1;
        let program = bytecode::read(&std::fs::read(&path).unwrap()).unwrap();
        for (counts, format) in all.iter_mut().zip(formats) {
            failures.extend(write_and_read(&program, format, &path, counts).err());
        }
    }
    println!("of {files} files: {all:?}");
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    assert!(files > 20, "{files} files");
    assert_eq!((all[0].written, all[0].compared), (files, files), "as plain bytecode");
    for counts in all {
        assert!(counts.written * 3 >= files && counts.compared * 3 >= files, "{files}: {all:?}");
    }
}
