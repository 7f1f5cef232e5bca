//! The examples of the documents: what they quote is a file that compiles, and what they say
//! a command prints is what it prints.

use std::fs;
use std::path::{Path, PathBuf};

use tilewright::{Form, Options, PrintOptions};

#[allow(dead_code, reason = "it is a program, too")]
#[path = "../../crates/tilewright/examples/custom_rule.rs"]
mod custom_rule;

#[path = "../../crates/tilewright/examples/attention.rs"]
mod attention;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_owned()
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns the fenced blocks of a document in a language.
fn blocks(document: &str, language: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut lines = document.lines();
    while let Some(line) = lines.next() {
        let Some(fence) = line.strip_prefix("```") else { continue };
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        if fence == language {
            found.push(block.join("\n") + "\n");
        }
    }
    found
}

/// Returns a source without the comment about the file.
fn without_header(source: &str) -> String {
    let lines = source.lines().skip_while(|line| line.starts_with("//!") || line.is_empty());
    lines.map(|line| format!("{line}\n")).collect()
}

/// Returns the instructions of the entry computation, without indentation.
fn entry(module: &str) -> String {
    let lines = module.lines().skip_while(|line| !line.starts_with("ENTRY")).skip(1);
    lines.take_while(|line| *line != "}").map(|line| format!("{}\n", line.trim())).collect()
}

#[test]
fn the_readme_quotes_its_program() {
    let readme = read("README.md");
    let program = without_header(&read("crates/tilewright/examples/readme.rs"));
    assert_eq!(blocks(&readme, "rust"), [program.as_str()]);
    assert!(program.lines().count() <= 15, "the program of README.md is longer than 15 lines");
    assert!(readme.lines().count() <= 110, "README.md is longer than 110 lines");
}

#[test]
fn the_readme_says_what_opt_prints() {
    let source = read("crates/tilewright/examples/group_sums.hlo");
    let target = tilewright::target("tpu-like").expect("a target");
    let module = tilewright::parse(&source).expect("a module");
    let better = tilewright::optimize(module, &Options::new(target)).expect("a pipeline").module;
    let short = PrintOptions::new().with_form(Form::Short);
    let better = tilewright::print(&better, &short).expect("a text");
    assert_eq!(blocks(&read("README.md"), "text"), [entry(&source), entry(&better)]);
}

#[test]
fn a_rule_from_outside_is_quoted_with_its_output() {
    let page = read("docs/write-a-rule.md");
    let program = without_header(&read("crates/tilewright/examples/custom_rule.rs"));
    assert!(blocks(&page, "rust").contains(&program), "docs/write-a-rule.md has another program");
    let shown = custom_rule::shown().expect("it runs");
    assert!(blocks(&page, "text").contains(&shown), "it prints:\n{shown}");
}

#[test]
fn a_module_from_outside_is_quoted() {
    let page = read("docs/build-modules.md");
    let program = without_header(&read("crates/tilewright/examples/attention.rs"));
    assert!(
        blocks(&page, "rust,ignore").contains(&program),
        "docs/build-modules.md has another program"
    );
    attention::main().expect("it runs");
}

/// Returns every document: those in the root and those of the book.
fn documents() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"]
            .map(|name| root().join(name))
            .into();
    for folder in ["docs", "docs/decisions"] {
        let entries = fs::read_dir(root().join(folder)).expect("a folder");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        found.extend(paths.filter(|path| path.extension().is_some_and(|end| end == "md")));
    }
    found.sort();
    found
}

/// Returns the targets of the links in a text; code is left out.
fn links(text: &str) -> Vec<String> {
    let prose = text.split("```").step_by(2).collect::<String>();
    let prose: String = prose.split('`').step_by(2).collect();
    let ends = prose.split("](").skip(1);
    ends.filter_map(|rest| Some(rest.split_once(')')?.0.to_owned())).collect()
}

/// Returns the anchors of a document's headings, as GitHub and mdBook make them.
fn anchors(text: &str) -> Vec<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let kept = |c: char| match c {
        ' ' => Some('-'),
        '-' | '_' => Some(c),
        _ => c.is_alphanumeric().then(|| c.to_ascii_lowercase()),
    };
    headings
        .map(|line| line.trim_start_matches('#').trim().chars().filter_map(kept).collect())
        .collect()
}

/// Checks whether a path that exists lies below a folder.
fn is_below(path: &Path, folder: &Path) -> bool {
    let path = path.canonicalize();
    path.is_ok_and(|path| folder.canonicalize().is_ok_and(|folder| path.starts_with(folder)))
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut dead = Vec::new();
    for document in documents() {
        let text = fs::read_to_string(&document).expect("a document");
        for link in links(&text).into_iter().filter(|link| !link.contains("://")) {
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let path = match file {
                "" => document.clone(),
                file => document.with_file_name(file),
            };
            // A page of the book cannot link to what is outside of it.
            let folder = root().join("docs");
            let leaves = document.starts_with(&folder) && !is_below(&path, &folder);
            let leads = match fs::read_to_string(&path) {
                Ok(text) => anchor.is_empty() || anchors(&text).iter().any(|one| one == anchor),
                // A folder, or a picture.
                Err(_) => anchor.is_empty() && path.exists(),
            };
            let leads = leads && !leaves;
            if !leads {
                dead.push(format!("{}: {link}", document.display()));
            }
        }
    }
    assert!(dead.is_empty(), "links that lead nowhere:\n{}", dead.join("\n"));
}

#[test]
fn the_book_has_every_page() {
    let listed = links(&read("docs/SUMMARY.md"));
    let docs = root().join("docs");
    for page in documents().iter().filter_map(|path| path.strip_prefix(&docs).ok()) {
        let name = page.to_str().expect("a name");
        let found = name == "SUMMARY.md" || listed.iter().any(|link| link == name);
        assert!(found, "docs/SUMMARY.md does not list {name}");
    }
}
