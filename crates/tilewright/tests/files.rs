//! Every file that XLA writes is read to the module that its text has.

use std::fs;
use std::path::{Path, PathBuf};

use tilewright::{Emit, Error, Loaded, MlirStyle, PrintOptions, load_bytes, load_file};

const NORM: &str = "module_0000.jit_group_scale";
const TABLE: &str = "module_0002.jit_table";
const KINDS: &str = "module_0004.jit_kinds";

fn files() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/files")
}

fn read(path: impl AsRef<Path>) -> Loaded {
    load_file(path.as_ref()).unwrap_or_else(|error| panic!("{}", error.render(false)))
}

/// The text of a module without what a proto does not have.
fn text(loaded: &Loaded) -> String {
    let text = tilewright::print(&loaded.module, &PrintOptions::default()).unwrap();
    let (header, body) = text.split_once('\n').unwrap();
    let end = header.find(", allow_spmd").unwrap_or(header.len());
    format!("{}\n{body}", &header[..end])
}

fn before(program: &str, ending: &str) -> String {
    format!("{program}.before_optimizations.{ending}")
}

fn snapshot(program: &str, ending: &str) -> String {
    format!("{program}.execution_0000.hlo_unoptimized_snapshot.{ending}")
}

#[test]
fn every_format_gives_the_module_of_the_text() {
    let expected = text(&read(files().join("dump").join(before(NORM, "txt"))));
    let snapshots = files().join("snapshots");
    let paths = [
        files().join("dump").join(before(NORM, "hlo.pb")),
        files().join("gzip").join(before(NORM, "hlo.pb.gz")),
        snapshots.join(snapshot(NORM, "pb")),
        snapshots.join(snapshot(NORM, "txt")),
    ];
    for path in paths {
        let loaded = read(&path);
        assert_eq!(text(&loaded), expected, "{}", path.display());
        let is_snapshot = path.starts_with(&snapshots);
        assert_eq!(loaded.recording.is_some(), is_snapshot, "{}", path.display());
        assert!(loaded.notes.is_empty(), "{:?}", loaded.notes);
    }
}

#[test]
fn profiles_have_what_ran() {
    let loaded = read(files().join("profile/group_scale.xplane.pb"));
    let after = read(files().join(format!("dump/{NORM}.cpu_after_optimizations.hlo.pb")));
    assert_eq!(loaded.module.instruction_count(), after.module.instruction_count());
    let [note] = &loaded.notes[..] else { panic!("{:?}", loaded.notes) };
    assert!(note.contains("the module in the profile is `jit_group_scale("), "{note}");
}

/// A folder with these fixtures in it.
fn folder(fixtures: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (fixture, name) in fixtures {
        let from = files().join(fixture).join(name);
        fs::copy(from, folder.path().join(name)).unwrap();
    }
    folder
}

#[test]
fn the_largest_module_of_a_folder_is_read() {
    let (norm, table) = (before(NORM, "txt"), before(TABLE, "txt"));
    let after = format!("{KINDS}.cpu_after_optimizations.txt");
    let dump = folder(&[("dump", &norm), ("dump", &table), ("dump", &after)]);
    let loaded = read(dump.path());
    assert_eq!(loaded.module.name, "jit_group_scale");
    assert!(loaded.source.name.ends_with(&norm), "{}", loaded.source.name);
    let [note] = &loaded.notes[..] else { panic!("{:?}", loaded.notes) };
    assert!(note.contains(&format!("this is the largest, `{norm}`, 22 instructions;")), "{note}");
    assert!(note.ends_with(&format!("the others are\n  {table} (3 instructions)")), "{note}");
}

#[test]
fn a_folder_with_similar_modules_is_refused() {
    let error = load_file(&files().join("dump")).unwrap_err();
    assert!(matches!(&error, Error::Several { .. }), "{error}");
    let error = error.to_string();
    let (norm, table) = (before(NORM, "txt"), before(TABLE, "hlo.pb"));
    assert!(error.contains("modules before optimisation of similar size; name one"), "{error}");
    assert!(error.contains(&norm) && error.contains(&table), "{error}");
}

#[test]
fn a_text_without_its_constants_is_left_for_another_form() {
    // The table has 16 elements, of which XLA prints none.
    let (text, proto) = (before(TABLE, "txt"), before(TABLE, "hlo.pb"));
    let alone = read(folder(&[("dump", &text)]).path());
    assert!(alone.source.text.contains("constant({...})"));
    for other in [("dump", proto.as_str()), ("snapshots", &snapshot(TABLE, "pb"))] {
        let loaded = read(folder(&[("dump", &text), other]).path());
        assert!(loaded.notes[0].contains(other.1), "{:?}", loaded.notes);
    }
    let gzip = read(folder(&[("dump", &text), ("gzip", &before(TABLE, "hlo.pb.gz"))]).path());
    assert!(gzip.notes[0].contains("hlo.pb.gz"), "{:?}", gzip.notes);
    // All of it is in the text.
    let norm = folder(&[("dump", &before(NORM, "txt")), ("dump", &before(NORM, "hlo.pb"))]);
    assert!(read(norm.path()).notes[0].contains(&before(NORM, "txt")));
}

#[test]
fn what_is_damaged_in_a_folder_is_listed() {
    let (norm, table) = (before(NORM, "txt"), before(TABLE, "txt"));
    let dump = folder(&[("dump", &norm), ("dump", &table)]);
    fs::write(dump.path().join(&table), "HloModule").unwrap();
    let loaded = read(dump.path());
    assert!(loaded.notes[0].ends_with(&format!("{table} (cannot be read)")), "{:?}", loaded.notes);
    fs::write(dump.path().join(&norm), "HloModule").unwrap();
    let error = load_file(dump.path()).unwrap_err();
    assert!(matches!(&error, Error::Syntax { .. }), "{error}");
}

#[test]
fn folders_without_modules_say_what_is_missing() {
    let dump = folder(&[("dump", &format!("{NORM}.cpu_after_optimizations.txt"))]);
    let error = load_file(dump.path()).unwrap_err().to_string();
    assert!(error.contains("it is a folder without a module before optimisation"), "{error}");
    // A folder of that name is no module.
    let empty = tempfile::tempdir().unwrap();
    fs::create_dir(empty.path().join(before(NORM, "txt"))).unwrap();
    assert!(matches!(load_file(empty.path()), Err(Error::NoModule { .. })));
}

/// A program that JAX lowers, as StableHLO.
const STABLEHLO: &str = r#"module @jit_f attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2xf32>) -> (tensor<2xf32> {jax.result_info = "result"}) {
    %0 = stablehlo.add %arg0, %arg0 : tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}
"#;

#[test]
fn stablehlo_is_read_and_written() {
    let module = load_bytes("f.mlir", STABLEHLO.into()).unwrap().module;
    let entry = module.entry().unwrap();
    let opcodes: Vec<_> = module.instructions(entry).map(|id| module.opcode(id).name()).collect();
    assert_eq!(opcodes, ["parameter", "add"]);
    assert_eq!(module.name, "jit_f");
    let text = tilewright::print_stablehlo(&module, MlirStyle::default()).unwrap();
    let again = load_bytes("g.mlir", text.into()).unwrap().module;
    let print = |module| tilewright::print(module, &PrintOptions::default()).unwrap();
    assert_eq!(print(&again), print(&module));
    assert_eq!(Emit::of_path("out.mlir".as_ref()).unwrap(), Emit::Stablehlo);
    let bytecode = tilewright::encode_stablehlo(&module).unwrap();
    let again = load_bytes("g.mlirbc", bytecode.clone()).unwrap().module;
    assert_eq!(print(&again), print(&module));
    assert_eq!(Emit::of_path("out.mlirbc".as_ref()).unwrap(), Emit::StablehloBytecode);
    // A file of `jax.export` has it as a vector of a FlatBuffer, after its length.
    let length = u32::try_from(bytecode.len()).unwrap().to_le_bytes();
    let exported = [&16u32.to_le_bytes()[..], &[0; 12], &length, &bytecode, &[0; 4]].concat();
    let again = load_bytes("f.jax", exported.clone()).unwrap().module;
    assert_eq!(print(&again), print(&module));
    // Cut short, it is no such file.
    assert!(load_bytes("f.jax", exported[..exported.len() - 8].to_vec()).is_err());
}

#[test]
fn names_of_stablehlo_become_names_of_hlo() {
    let text = STABLEHLO.replace("@jit_f", "@\"<lambda> of 2\"");
    let module = load_bytes("f.mlir", text.into()).unwrap().module;
    let printed = tilewright::print(&module, &PrintOptions::default()).unwrap();
    assert!(printed.starts_with("HloModule _lambda__of_2,"), "{printed}");
}

#[test]
fn broken_bytecode_is_named_with_its_place() {
    let module = load_bytes("f.mlir", STABLEHLO.into()).unwrap().module;
    let bytecode = tilewright::encode_stablehlo(&module).unwrap();
    let mut broken = 0;
    for length in 4..bytecode.len() {
        // The last section may be missing.
        if let Err(error) = load_bytes("f.mlirbc", bytecode[..length].to_vec()) {
            broken += 1;
            assert!(error.to_string().starts_with("f.mlirbc: byte "), "{length}: {error}");
        }
    }
    assert!(broken * 10 > bytecode.len() * 9, "{broken} of {}", bytecode.len());
}

#[test]
fn errors_in_stablehlo_have_carets() {
    let cases = [
        ("stablehlo.add %arg0, %arg1", "%arg1"),
        ("stablehlo.ad %arg0, %arg0", "stablehlo.ad"),
        ("stablehlo.uniform_quantize %arg0", "stablehlo.uniform_quantize"),
    ];
    for (wrong, marked) in cases {
        let text = STABLEHLO.replace("stablehlo.add %arg0, %arg0", wrong);
        let error = load_bytes("f.mlir", text.into()).unwrap_err();
        let drawn = error.render(false);
        assert!(drawn.contains("f.mlir:3:"), "{drawn}");
        assert!(drawn.contains(&"^".repeat(marked.len())), "{drawn}");
    }
    let error = tilewright::parse("module {\n}").unwrap_err().to_string();
    assert!(error.contains("no function `main`"), "{error}");
}

#[test]
fn errors_in_text_protos_have_carets() {
    let path = files().join("snapshots").join(snapshot(TABLE, "txt"));
    let wrong = fs::read_to_string(path).unwrap().replacen("opcode:", "opkode:", 1);
    let error = load_bytes("m.txt", wrong.into_bytes()).unwrap_err();
    let place = error.place().unwrap();
    let line = error.problems()[0].line.unwrap();
    assert_eq!(place, format!("m.txt:{line}:7"));
    assert!(error.to_string().starts_with(&format!("{place}: field 'opkode' not found")));
    let drawn = error.render(false);
    let expected = format!("\n{line} |       opkode: \"parameter\"\n  |       ^^^^^^\n");
    assert!(drawn.contains(&expected) && drawn.contains("= help: "), "{drawn}");
}

#[test]
fn texts_are_of_any_form() {
    let path = files().join("snapshots").join(snapshot(NORM, "txt"));
    let text = fs::read_to_string(path).unwrap();
    assert_eq!(tilewright::parse(&text).unwrap().name, "jit_group_scale");
    // What looks like bytes is HLO that is damaged.
    let error = tilewright::parse("\n\u{1}HloModule m").unwrap_err();
    assert!(matches!(error, Error::Syntax { .. }), "{error}");
}

#[test]
fn modules_after_optimisation_are_recognised() {
    let note = |path: String| tilewright::after_optimization(&read(files().join(path)).module);
    for program in [NORM, TABLE, KINDS] {
        assert_eq!(note(format!("dump/{}", before(program, "txt"))), None);
        let note = note(format!("dump/{program}.cpu_after_optimizations.txt")).unwrap();
        assert!(note.starts_with("the module is scheduled"), "{note}");
        assert!(
            note.contains("as_text(\"hlo\", debug_info=True)")
                && note.contains("_get_xla_tensors_hlo")
        );
    }
    let profile = note("profile/group_scale.xplane.pb".into()).unwrap();
    assert!(profile.starts_with("the module is scheduled and has 2 fusions"), "{profile}");
}

/// Bytes of every form, cut and changed, are modules or errors.
#[test]
fn damaged_files_are_errors() {
    let sources = [
        ("gzip", before(TABLE, "hlo.pb.gz")),
        ("profile", "group_scale.xplane.pb".into()),
        ("snapshots", snapshot(TABLE, "pb")),
        ("snapshots", snapshot(TABLE, "txt")),
    ];
    let mut state = 1u64;
    for (folder, name) in sources {
        let whole = fs::read(files().join(folder).join(&name)).unwrap();
        if let Err(error) = load_bytes("m", whole.clone()) {
            panic!("{name}: {}", error.render(false));
        }
        let (mut cut, mut errors) = (0, 0);
        for end in (0..whole.len()).step_by(13) {
            cut += 1;
            if let Err(error) = load_bytes("m", whole[..end].to_vec()) {
                assert!(!error.render(false).is_empty());
                errors += 1;
            }
        }
        println!("{name}: {errors} of {cut} beginnings are errors");
        assert!(errors * 2 >= cut, "{name}: {errors} of {cut} beginnings are errors");
        for _ in 0..300 {
            let mut bytes = whole.clone();
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = (state >> 33) as usize % bytes.len();
            bytes[at] = (state >> 24) as u8;
            if let Err(error) = load_bytes("m", bytes) {
                assert!(!error.render(false).is_empty());
            }
        }
    }
}
