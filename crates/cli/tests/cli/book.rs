//! The commands of the book: each block of a page in the language `console` is run as it stands, and what it prints is
//! what the page says. `TILEWRIGHT_BLESS=1` writes into the pages what it prints instead, where no line stands for several.
//!
//! In a block, `$ ` begins a command, and the lines after it are its output, of both streams. A line `...` stands for
//! any lines, and `...` at the end of a line for any rest of it. Times may differ. Commands of other programs than
//! this one and the shell's are not run: their scripts, options, recipes and examples must exist. What takes a minute
//! stands in a block in the language `console nightly`, which runs where `TILEWRIGHT_NIGHTLY` is 1; what needs other
//! machines in one in the language `sh`, of which only that is checked.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::command;

/// The files that commands name, and where they come from.
const FILES: [(&str, &str); 12] = [
    ("group_norm_nhwc.hlo", "fixtures/models/group_norm_nhwc.hlo"),
    ("group_norm_nhwc.npz", "fixtures/models/group_norm_nhwc.npz"),
    ("group_norm_nhwc_grad.hlo", "fixtures/models/group_norm_nhwc_grad.hlo"),
    ("softmax.mlir", "docs/pictures/softmax.mlir"),
    ("step.mlir", "docs/pictures/step.mlir"),
    ("step.hlo", "fixtures/foreign/gpt2_small_step.hlo"),
    ("in.hlo", "fixtures/models/group_norm_nhwc.hlo"),
    ("module.hlo", "fixtures/models/group_norm_nhwc.hlo"),
    ("before.hlo", "docs/pictures/before.hlo"),
    ("after.hlo", "docs/pictures/after.hlo"),
    ("a.hlo", "docs/pictures/loop.hlo"),
    ("b.hlo", "docs/pictures/loop_wrong.hlo"),
];

/// The programs whose commands are run.
const RUN: [&str; 8] = ["tilewright", "cat", "sed", "diff", "ls", "grep", "for", "mkdir"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A command of a page, with the lines that the page says it prints.
#[derive(Debug)]
struct Step {
    command: String,
    output: Vec<String>,
    /// The first line of the output in the page, counted from 0.
    at: usize,
    /// Whether it is run.
    is_run: bool,
}

/// Returns the commands of a page, in order.
fn steps(page: &str) -> Vec<Step> {
    let mut found: Vec<Step> = Vec::new();
    let (mut language, mut has_command) = (None, false);
    let is_night = std::env::var("TILEWRIGHT_NIGHTLY").is_ok_and(|value| value == "1");
    for (number, line) in page.lines().enumerate() {
        match (language, line.strip_prefix("```")) {
            (None, Some(after)) => (language, has_command) = (Some(after), false),
            (Some(_), Some(_)) => language = None,
            (Some("console" | "console nightly" | "sh"), None) => {
                if let Some(command) = line.strip_prefix("$ ") {
                    let first = command.split(' ').next().unwrap_or_default();
                    let is_due = language == Some("console") || language != Some("sh") && is_night;
                    let is_run = is_due && RUN.contains(&first) && !command.contains("python");
                    let command = command.to_owned();
                    found.push(Step { command, output: Vec::new(), at: number + 1, is_run });
                    has_command = true;
                } else if let Some(step) = found.last_mut().filter(|_| has_command) {
                    step.output.push(line.to_owned());
                }
            }
            _ => {}
        }
    }
    found
}

/// Puts `#` in the place of times.
fn without_times(line: &str) -> String {
    let mut words: Vec<String> = line.trim_end().split(' ').map(str::to_owned).collect();
    for at in 1..words.len() {
        let unit = words[at].trim_end_matches([':', ',', ';', ')', '.']);
        let number = words[at - 1].trim_start_matches('(');
        let is_number =
            !number.is_empty() && number.chars().all(|c| c.is_ascii_digit() || c == '.');
        if is_number && ["ms", "s", "µs"].contains(&unit) {
            words[at - 1] = "#".to_owned();
        }
    }
    words.join(" ")
}

fn line_agrees(said: &str, printed: &str) -> bool {
    let [said, printed] = [said, printed].map(without_times);
    said.strip_suffix("...")
        .map_or(said == printed, |begins| printed.starts_with(begins.trim_end()))
}

/// Checks whether lines are those that a page says, in which `...` stands for any lines.
fn agrees(said: &[String], printed: &[String]) -> bool {
    match (said, printed) {
        ([], printed) => printed.is_empty(),
        ([any, rest @ ..], printed) if any.trim() == "..." => {
            (0..=printed.len()).any(|skipped| agrees(rest, &printed[skipped..]))
        }
        ([one, rest @ ..], [line, more @ ..]) => line_agrees(one, line) && agrees(rest, more),
        (_, []) => false,
    }
}

/// Runs a command as a page has it, and returns what it prints, and whether it succeeds.
fn run(command_line: &str, folder: &Path) -> (Vec<String>, bool) {
    let binary = command();
    let programs = Path::new(binary.get_program()).parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
    let done = Command::new("bash")
        .args(["-c", &format!("exec 2>&1\n{command_line}")])
        .current_dir(folder)
        .env("PATH", path)
        .env("HOME", folder)
        .env("TILEWRIGHT_DECISIONS", folder.join("decisions.jsonl"))
        // What `auto` stands for where there are CPUs alone.
        .env("TILEWRIGHT_TARGET", "xla-cpu-0.12")
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&done.stdout).lines().map(str::to_owned).collect();
    (printed, done.status.success())
}

/// Makes the folder in which the commands of a page run.
fn prepared() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, source) in FILES {
        fs::copy(root().join(source), folder.path().join(name))
            .unwrap_or_else(|e| panic!("{source}: {e}"));
    }
    fs::create_dir_all(folder.path().join("DIR")).unwrap();
    let module = root().join("fixtures/models/group_norm_nhwc.hlo");
    fs::copy(module, folder.path().join("DIR/module_0001.jit_f.before_optimizations.txt")).unwrap();
    fs::create_dir_all(folder.path().join("dump")).unwrap();
    let step = root().join("fixtures/foreign/gpt2_small_step.hlo");
    let small = "HloModule jit_convert\nENTRY main {\n  x = f32[8] parameter(0)\n  ROOT y = bf16[8] convert(x)\n}\n";
    let dumped =
        |name: &str| folder.path().join(format!("dump/module_{name}.before_optimizations.txt"));
    fs::copy(step, dumped("0031.jit_step")).unwrap();
    fs::write(dumped("0002.jit_convert"), small).unwrap();
    for made in [".local/share/bash-completion/completions", ".local/share/man"] {
        fs::create_dir_all(folder.path().join(made)).unwrap();
    }
    folder
}

/// Returns the pages of the book, and the readme.
fn pages() -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let mut pages: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|end| end == "md")).collect();
    pages.push(root().join("README.md"));
    pages.sort();
    pages
}

#[test]
fn the_commands_of_the_book_print_what_it_says() {
    let is_blessing = std::env::var_os("TILEWRIGHT_BLESS").is_some();
    let (mut wrong, mut count) = (String::new(), 0);
    for path in pages() {
        let page = fs::read_to_string(&path).unwrap();
        let steps = steps(&page);
        if steps.iter().all(|step| !step.is_run) {
            continue;
        }
        let folder = prepared();
        let mut lines: Vec<String> = page.lines().map(str::to_owned).collect();
        // From the last to the first, so that the places of the others stay.
        let mut blessed: Vec<(usize, usize, Vec<String>)> = Vec::new();
        for step in steps.iter().filter(|step| step.is_run) {
            count += 1;
            let (printed, succeeds) = run(&step.command, folder.path());
            let is_broken =
                |line: &String| line.contains("panicked") || line.contains("command not found");
            let is_as_said = match step.output.is_empty() {
                true => succeeds,
                false => agrees(&step.output, &printed),
            };
            if is_as_said && !printed.iter().any(is_broken) {
                continue;
            }
            if is_blessing && !step.output.iter().any(|line| line.ends_with("...")) {
                blessed.push((step.at, step.output.len(), printed));
                continue;
            }
            let name = path.file_name().unwrap_or_default().display();
            let _ = writeln!(wrong, "\n{name}: {}\n{}", step.command, printed.join("\n"));
        }
        for (at, len, printed) in blessed.into_iter().rev() {
            lines.splice(at..at + len, printed);
        }
        if is_blessing {
            fs::write(&path, lines.join("\n") + "\n").unwrap();
        }
    }
    assert!(wrong.is_empty(), "these commands print something else than the pages say:{wrong}");
    assert!(count > 30, "only {count} commands are run");
}

/// Returns the names of options in a command.
fn options(words: &[&str]) -> Vec<String> {
    let long = words
        .iter()
        .take_while(|word| !word.starts_with('#'))
        .filter(|word| word.starts_with("--"));
    long.map(|word| word.split('=').next().unwrap_or_default().to_owned())
        .filter(|word| word.len() > 2)
        .collect()
}

/// Says what is wrong with a command that is not run.
fn fault(line: &str) -> Option<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let after = |word: &str| {
        words.iter().position(|one| *one == word).and_then(|at| words.get(at + 1).copied())
    };
    let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
    if let Some(script) = words
        .iter()
        .find(|word| word.starts_with("benches/") || word.starts_with("fixtures/generate"))
    {
        let text = read(&root().join(script));
        if text.is_empty() {
            return Some(format!("there is no {script}"));
        }
        let unknown = |option: &String| !text.contains(option.as_str());
        return options(&words)
            .iter()
            .find(|option| unknown(option))
            .map(|option| format!("{script} has no {option}"));
    }
    if let Some(name) = after("--example") {
        let path = root().join(format!("crates/tilewright/examples/{name}.rs"));
        return (!path.exists()).then(|| format!("there is no example {name}"));
    }
    if words.first() == Some(&"just") {
        let recipe = format!("\n{}", words.get(1)?);
        return (!read(&root().join("justfile")).contains(&recipe))
            .then(|| format!("there is no recipe {recipe}"));
    }
    None
}

#[test]
fn scripts_of_the_book_are_there() {
    let mut wrong = Vec::new();
    for path in pages() {
        let page = fs::read_to_string(&path).unwrap();
        let all = steps(&page).into_iter().filter(|step| !step.is_run);
        wrong.extend(all.filter_map(|step| {
            Some(format!("{}: {}: {}", path.display(), step.command, fault(&step.command)?))
        }));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(fault("python benches/nothing.py").is_some() && fault("just nothing").is_some());
    assert!(fault("python benches/tuned.py --nothing").is_some());
}

#[test]
fn outputs_are_compared_line_by_line() {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    assert!(agrees(&lines("a\n...\nd"), &lines("a\nb\nc\nd")));
    assert!(agrees(&lines("took 1.2 ms, and"), &lines("took 30.25 ms, and")));
    assert!(agrees(&lines("begins ..."), &lines("begins with more")));
    for (said, printed) in
        [("a", "b"), ("a", "a\nb"), ("a\nb", "a"), ("1.2 m", "1.3 m"), ("a\n...\nd", "a\nb")]
    {
        assert!(!agrees(&lines(said), &lines(printed)), "{said} | {printed}");
    }
}
