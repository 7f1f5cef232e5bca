//! Every fixture in `fixtures/lower/`: its kernels are a snapshot, and what is in no
//! kernel is so for the reasons that its header gives.
//!
//! ```text
//! // One sentence on what it tests.
//! // target: linear              (tpu-like unless said)
//! // vector-memory: 524288       (bytes, where the target's would hold too much)
//! // vector-registers: 1         (where the target has too many)
//! // strategy: looped            (fused unless said)
//! // expect: kernels             (there are some, as the snapshot says)
//! // expect: host-call NAME PART (a part of the reason why the host runs NAME)
//! // error: NAME KIND PART       (the same, where the reason is an error of this kind)
//! HloModule ...
//! ```
//!
//! The module is lowered as it stands. Kinds are `unsupported`, `too-large` and `no-room`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking, and says what it counted"
)]

use libtest_mimic::{Arguments, Failed, Trial};
use tilewright_lower::{ErrorKind, HostCall, HostReason, Lowered, Strategy, kernel, lower};
use tilewright_target::Target;
use tilewright_testkit::fixture::{Header, Language, fixtures};
use tilewright_text::parse_and_verify;

/// The language of the headers.
const LANGUAGE: Language = Language {
    flags: &[],
    once: &["target", "vector-memory", "vector-registers", "strategy"],
    many: &["expect", "error"],
};

fn main() {
    let arguments = Arguments::from_args();
    let files = fixtures("lower").expect("a folder of fixtures");
    let trials = files.into_iter().map(|file| {
        Trial::test(file.name.clone(), move || {
            if let Some(npz) = &file.npz {
                return Err(format!("nothing reads {}", npz.display()).into());
            }
            check(&file.name, &file.text()?)
        })
    });
    libtest_mimic::run(&arguments, trials.collect()).exit();
}

fn check(name: &str, source: &str) -> Result<(), Failed> {
    let header = Header::read(source, &LANGUAGE)?;
    if !header.sentence.ends_with('.') {
        return Err("it does not begin with a sentence on what it tests".into());
    }
    let target = target(&header)?;
    let strategy: Strategy = header.value("strategy").unwrap_or("fused").parse()?;
    let module = parse_and_verify(source).map_err(|error| format!("{error}"))?;
    let lowered = lower(&module, &target, strategy)?;
    let texts = kernels(&lowered, &target)?;
    let is_kernels = |expected: &str| expected == "kernels";
    if header.values("expect").any(is_kernels) == texts.is_empty() {
        return Err(format!("it has {} kernels", texts.len()).into());
    }
    let calls = header.values("expect").filter(|expected| !is_kernels(expected));
    let calls: Vec<Expected<'_>> = calls
        .map(Expected::call)
        .chain(header.values("error").map(Expected::error))
        .collect::<Result<_, _>>()?;
    check_host_calls(&lowered.host_calls, &calls)?;
    if !texts.is_empty() {
        snapshot(name, &header, &texts.join("\n"));
    }
    Ok(())
}

fn target(header: &Header) -> Result<Target, Failed> {
    let mut target = Target::builtin(header.value("target").unwrap_or(Target::DEFAULT))?;
    if let Some(bytes) = header.value("vector-memory") {
        target.vector_memory_bytes = bytes.parse()?;
    }
    if let Some(registers) = header.value("vector-registers") {
        target.vector_registers = registers.parse()?;
    }
    Ok(target)
}

/// Returns the texts of all kernels: those of several instructions, then those of one. Each is
/// without flaws and reads back.
fn kernels(lowered: &Lowered, target: &Target) -> Result<Vec<String>, Failed> {
    let module = &lowered.module;
    let computations = module.computations().iter();
    let fusions = computations.flat_map(|&computation| module.instructions(computation));
    let fusions = fusions.filter_map(|id| lowered.kernels.get(&id));
    let alone = lowered.alone.iter().filter_map(|(_, lowered)| lowered.as_ref().ok());
    let alone = alone.flat_map(|sequence| sequence.stages.iter().map(|stage| &stage.kernel));
    let mut texts = Vec::new();
    for made in fusions.chain(alone) {
        let text = made.to_string();
        if let Some(flaw) = kernel::check(made, target).first() {
            return Err(format!("{flaw}\n{text}").into());
        }
        if kernel::parse(&text)?.to_string() != text {
            return Err(format!("it does not read back:\n{text}").into());
        }
        texts.push(text);
    }
    Ok(texts)
}

/// An instruction that the host should run.
struct Expected<'a> {
    name: &'a str,
    /// The kind of the error that is the reason, if it is one.
    kind: Option<&'a str>,
    part: &'a str,
}

impl<'a> Expected<'a> {
    fn call(line: &'a str) -> Result<Self, String> {
        let rest = line.strip_prefix("host-call ").and_then(|rest| rest.split_once(' '));
        let (name, part) = rest.ok_or_else(|| format!("`// expect: {line}` is none"))?;
        Ok(Self { name, kind: None, part })
    }

    fn error(line: &'a str) -> Result<Self, String> {
        let mut words = line.splitn(3, ' ');
        match (words.next(), words.next(), words.next()) {
            (Some(name), kind @ Some(_), Some(part)) => Ok(Self { name, kind, part }),
            _ => Err(format!("`// error: {line}` is none")),
        }
    }

    fn is(&self, call: &HostCall) -> bool {
        let kind = match &call.reason {
            HostReason::Refused(error) => Some(word(&error.kind)),
            _ => None,
        };
        call.name == self.name && kind == self.kind && call.to_string().contains(self.part)
    }
}

fn word(kind: &ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Unsupported(_) => "unsupported",
        ErrorKind::TooLarge(_) => "too-large",
        ErrorKind::NoRoom(_) => "no-room",
        _ => "internal",
    }
}

/// Asserts that the host runs exactly the expected instructions, each for its reason.
fn check_host_calls(calls: &[HostCall], expected: &[Expected<'_>]) -> Result<(), Failed> {
    let found: String = calls.iter().map(|call| format!("{call}\n")).collect();
    let each = expected.iter().all(|expected| calls.iter().any(|call| expected.is(call)));
    if !each || calls.len() != expected.len() {
        return Err(format!("the host runs\n{found}").into());
    }
    Ok(())
}

fn snapshot(name: &str, header: &Header, kernels: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.set_description(&header.sentence);
    settings.bind(|| insta::assert_snapshot!(name.replace('/', "__"), kernels));
}
