//! The header of a fixture in `fixtures/rewrite/<pass>/`.
//!
//! ```text
//! // One sentence on what it tests.
//! // pass: reduce-through-reshape,dce
//! // exact                       (only where float sums must keep their order)
//! // fast-math                   (only where float sums may become differences)
//! // target: linear              (tpu-like unless said)
//! // form: folds                 (`cpu`, whose table says that this form is the fastest)
//! // vector-memory: 524288       (bytes, where the target's would hold too much)
//! // expect: fires               (or: unchanged)
//! // shown                       (a snapshot shows what it becomes; a few for each pass)
//! // note: --exact keeps         (part of a note that must be made; any number)
//! // not-run: why                (only where the interpreter refuses the module)
//! HloModule ...
//! ```

use tilewright_rewrite::Options;
use tilewright_rewrite::numbers::FloatMode;
use tilewright_target::Target;
use tilewright_target::reductions::Form;
use tilewright_testkit::fixture::{Header, Language};

use super::forms::rewarding;
use super::passes;

/// The keys of a header.
const LANGUAGE: Language = Language {
    flags: &["exact", "fast-math", "shown"],
    once: &["pass", "target", "form", "vector-memory", "expect", "not-run"],
    many: &["note"],
};

/// The effect that a fixture expects from the pass of its folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expect {
    /// The pass changes the module.
    Fires,
    /// Nothing changes, to the byte.
    Unchanged,
}

/// A fixture.
#[derive(Clone, Debug)]
pub(crate) struct Fixture {
    /// The sentence that says what the fixture tests.
    pub(crate) sentence: String,
    /// The passes to run until nothing changes.
    pub(crate) passes: Vec<String>,
    /// Whether float sums keep their order.
    pub(crate) exact: bool,
    /// Whether sums of differences may become differences of sums.
    pub(crate) fast_math: bool,
    /// The target's name.
    pub(crate) target: String,
    /// The form of reductions that its table rewards, if it is not its own.
    pub(crate) form: Option<Form>,
    /// Its vector memory, if it differs from the target's own.
    pub(crate) vector_memory: Option<u64>,
    /// The effect expected.
    pub(crate) expect: Expect,
    /// Whether a snapshot shows what it becomes.
    pub(crate) shown: bool,
    /// Parts of notes that must be made.
    pub(crate) notes: Vec<String>,
    /// The reason why the module cannot be evaluated.
    pub(crate) not_run: Option<String>,
    /// The text of the file.
    pub(crate) source: String,
}

impl Fixture {
    /// Reads a fixture of `pass`; anything in its header that is not
    /// understood is an error.
    pub(crate) fn read(pass: &str, source: &str) -> Result<Self, String> {
        let header = Header::read(source, &LANGUAGE).map_err(|error| error.to_string())?;
        let parsed = |bytes: &str| bytes.parse().map_err(|error| format!("{bytes}: {error}"));
        let form = header.value("form");
        let target = form.map(|_| "cpu").or(header.value("target"));
        let fixture = Self {
            sentence: header.sentence.clone(),
            passes: header.value("pass").unwrap_or("").split(',').map(str::to_owned).collect(),
            exact: header.flag("exact"),
            fast_math: header.flag("fast-math"),
            target: target.unwrap_or(Target::DEFAULT).into(),
            form: form.map(form_called).transpose()?,
            vector_memory: header.value("vector-memory").map(parsed).transpose()?,
            expect: match header.value("expect") {
                Some("fires") => Expect::Fires,
                Some("unchanged") => Expect::Unchanged,
                _ => return Err("there is no `// expect: fires` or `// expect: unchanged`".into()),
            },
            shown: header.flag("shown"),
            notes: header.values("note").map(str::to_owned).collect(),
            not_run: header.value("not-run").map(str::to_owned),
            source: source.into(),
        };
        fixture.check(pass)?;
        Ok(fixture)
    }

    /// Options for these passes, by name, under the fixture's conditions.
    pub(crate) fn options(&self, names: &[&str], exact: bool) -> Options {
        let mut options = passes(names, &self.target, exact);
        if let Some(form) = self.form {
            options.target = rewarding(form);
        }
        if self.fast_math && !exact {
            options.float_mode = FloatMode::Fast;
        }
        if let Some(bytes) = self.vector_memory {
            options.target.vector_memory_bytes = bytes;
        }
        options
    }

    fn check(&self, pass: &str) -> Result<(), String> {
        if !self.sentence.ends_with('.') {
            return Err("it does not begin with a sentence on what it tests".into());
        }
        if self.passes.first().map(String::as_str) != Some(pass) {
            return Err(format!("`// pass:` does not begin with `{pass}`, as its folder does"));
        }
        match self.expect {
            Expect::Unchanged if self.passes.len() > 1 => {
                Err("only the pass itself is run where nothing may change".into())
            }
            Expect::Fires | Expect::Unchanged => Ok(()),
        }
    }
}

fn form_called(name: &str) -> Result<Form, String> {
    let found = Form::ALL.iter().copied().find(|form| form.name() == name);
    found.ok_or_else(|| format!("`{name}` is no form of a reduction"))
}
