//! Rules of the house that a compiler does not check.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_owned()
}

fn files_below(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn sources() -> Vec<PathBuf> {
    let mut files = files_below(&root().join("crates"), "rs");
    files.extend(files_below(&root().join("tests"), "rs"));
    files
}

/// What an engine does is data in its file: passes and costs name no engine, version or machine.
#[test]
fn rewrites_name_no_engine() {
    let names = ["XLA:CPU", "XLA:GPU", "XLA:TPU", "LLVM", "EPYC", "Xeon", "jaxlib"];
    let mut found = Vec::new();
    for path in files_below(&root().join("crates/rewrite/src"), "rs") {
        let text = fs::read_to_string(&path).expect("a source");
        let lines = (1..).zip(text.lines());
        let named = lines.filter(|(_, line)| names.iter().any(|name| line.contains(name)));
        found.extend(named.map(|(number, line)| format!("{}:{number}: {line}", path.display())));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Which crates of the house each crate may depend on.
#[test]
fn arrows_point_one_way() {
    let allowed: BTreeMap<&str, &[&str]> = BTreeMap::from([
        ("ir", &[][..]),
        ("text", &["ir"][..]),
        ("target", &["ir"][..]),
        ("rewrite", &["ir", "target"][..]),
        ("interp", &["ir"][..]),
        ("proto", &["ir"][..]),
        ("stablehlo", &["interp", "ir", "proto", "text"][..]),
        ("lower", &["ir", "target"][..]),
        ("sim", &["ir", "lower", "target"][..]),
        (
            "tilewright",
            &[
                "interp",
                "ir",
                "lower",
                "native",
                "proto",
                "rewrite",
                "sim",
                "stablehlo",
                "target",
                "text",
            ][..],
        ),
        ("native", &[][..]),
        ("tools", &["tilewright"][..]),
        ("view", &["tilewright", "tools"][..]),
        ("cli", &["tilewright", "tools", "view"][..]),
        ("python", &["native", "tilewright", "tools", "view"][..]),
        ("testkit", &["interp", "ir", "text", "proto", "stablehlo"][..]),
    ]);
    let folders = fs::read_dir(root().join("crates")).expect("crates");
    for folder in folders.map(|entry| entry.expect("an entry").path()) {
        let name = folder.file_name().and_then(|n| n.to_str()).expect("a name").to_owned();
        let allowed = allowed.get(name.as_str()).unwrap_or_else(|| panic!("{name}: unknown room"));
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).expect("a manifest");
        for dependency in house_dependencies(&manifest) {
            assert!(allowed.contains(&dependency.as_str()), "{name} depends on {dependency}");
        }
    }
}

/// Crates above the facade name what they need of the crates below it by the facade's own names. The graph,
/// its text and its targets are the words that all speak.
#[test]
fn the_facade_is_a_face() {
    let above = ["tools", "view", "cli", "python"];
    let below = ["interp", "lower", "proto", "rewrite", "sim", "stablehlo"];
    let mut found = Vec::new();
    for room in above {
        for path in files_below(&root().join("crates").join(room).join("src"), "rs") {
            let text = fs::read_to_string(&path).expect("a source");
            let through = |name: &str| {
                [format!("tilewright::{name}::"), format!("tilewright_{name}::")]
                    .iter()
                    .any(|path| text.contains(path))
            };
            let named = below.into_iter().filter(|name| through(name));
            found.extend(named.map(|name| format!("{}: {name}", path.display())));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Returns the crates of the house in `[dependencies]`; development ones are free.
fn house_dependencies(manifest: &str) -> Vec<String> {
    let section = manifest.split("\n[").find(|section| section.starts_with("dependencies]"));
    let lines = section.unwrap_or_default().lines().skip(1);
    let names = lines.filter_map(|line| line.split(['.', ' ', '=']).next());
    let short = |name: &str| match name {
        "tilewright" => Some("tilewright".to_owned()),
        _ => name.strip_prefix("tilewright-").map(str::to_owned),
    };
    names.filter_map(short).collect()
}

#[test]
fn files_fit_in_the_head() {
    let generated = |path: &PathBuf| path.parent().is_some_and(|p| p.ends_with("generated"));
    for path in sources().into_iter().filter(|path| !generated(path)) {
        let lines = fs::read_to_string(&path).expect("a source").lines().count();
        assert!(lines <= 600, "{} has {lines} lines: split it", path.display());
    }
}

#[test]
fn files_say_what_they_are() {
    for path in sources() {
        let text = fs::read_to_string(&path).expect("a source");
        assert!(text.starts_with("//!"), "{} does not begin with `//!`", path.display());
    }
}

/// The tests of a crate are one binary, in which a file is a module: one that nobody declares would
/// not be compiled.
#[test]
fn every_file_of_tests_is_compiled() {
    let crates = fs::read_dir(root().join("crates")).expect("crates");
    let crates = crates.map(|entry| entry.expect("an entry").path());
    for folder in crates.chain([root().join("tests")]).filter(|f| f.join("tests").is_dir()) {
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).expect("a manifest");
        let files = files_below(&folder.join("tests"), "rs").into_iter();
        for file in files.filter(|file| !file.ends_with("main.rs")) {
            let module =
                if file.ends_with("mod.rs") { file.parent() } else { Some(file.as_path()) };
            let name = module.and_then(Path::file_stem).and_then(|n| n.to_str()).expect("a name");
            let above = module.and_then(Path::parent).expect("a folder");
            let roots = ["main.rs", "mod.rs"].map(|root| above.join(root));
            let declared =
                roots.iter().filter_map(|root| fs::read_to_string(root).ok()).any(|root| {
                    root.lines().any(|line| {
                        line.trim_start_matches("pub(crate) ") == format!("mod {name};")
                    })
                });
            let path = file.strip_prefix(&folder).expect("a file of the crate").display();
            assert!(
                declared
                    || manifest.contains(&format!("path = \"{path}\""))
                    || manifest.contains(&format!("[[test]]\nname = \"{name}\"")),
                "{}: no `mod {name};` declares it",
                file.display()
            );
        }
    }
}

/// Every path that a document names in backticks or links to exists.
#[test]
fn documents_name_what_exists() {
    let root = root();
    let mut documents = files_below(&root.join("docs"), "md");
    documents.extend(["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(|f| root.join(f)));
    for document in documents {
        let text = fs::read_to_string(&document).expect("a document");
        for path in paths_in(&text) {
            assert!(
                root.join(path).exists() || document.with_file_name(path).exists(),
                "{} names {path}, which does not exist",
                document.display()
            );
        }
    }
}

/// Words in backticks that look like paths of the repository.
fn paths_in(text: &str) -> impl Iterator<Item = &str> {
    let folders = ["crates/", "fixtures/", "docs/", "tests/", "benches/", ".ci/"];
    let words = text.split('`').skip(1).step_by(2);
    words.filter(move |word| {
        folders.iter().any(|folder| word.starts_with(folder))
            && !word.contains(['<', '*', ' ', '{', '$'])
            && !word.contains("my_pass")
    })
}

#[test]
fn architecture_stays_a_map() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("the map");
    assert!(text.lines().count() <= 200, "ARCHITECTURE.md is longer than 200 lines");
}

#[test]
fn fixtures_stay_small() {
    let mut bytes = 0;
    for extension in ["hlo", "npz", "toml"] {
        for path in files_below(&root().join("fixtures"), extension) {
            bytes += fs::metadata(path).expect("a fixture").len();
        }
    }
    assert!(bytes < 20_000_000, "fixtures take {bytes} bytes");
}
