//! The header of a fixture in `fixtures/rewrite/<pass>/`.
//!
//! ```text
//! // One sentence on what it tests.
//! // pass: reduce-through-reshape,dce
//! // exact                       (only where float sums must keep their order)
//! // fast-math                   (only where float sums may become differences)
//! // target: linear              (tpu-like unless said)
//! // vector-memory: 524288       (bytes, where the target's would hold too much)
//! // expect: fires               (or: unchanged)
//! // note: --exact keeps         (part of a note that must be made; any number)
//! // not-run: why                (only where the interpreter refuses the module)
//! HloModule ...
//! ```

use tilewright_rewrite::Options;
use tilewright_rewrite::numbers::FloatMode;
use tilewright_target::Target;

use super::passes;

/// What a fixture expects of the pass whose folder it is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expect {
    /// The pass changes the module, as the snapshot says.
    Fires,
    /// Nothing changes, to the byte.
    Unchanged,
}

/// A fixture.
#[derive(Clone, Debug)]
pub(crate) struct Fixture {
    /// What it tests.
    pub(crate) sentence: String,
    /// The passes to run until nothing changes.
    pub(crate) passes: Vec<String>,
    /// Whether float sums keep their order.
    pub(crate) exact: bool,
    /// Whether sums of differences may become differences of sums.
    pub(crate) fast_math: bool,
    /// The target's name.
    pub(crate) target: String,
    /// Its vector memory, if not as it is.
    pub(crate) vector_memory: Option<u64>,
    /// What should happen.
    pub(crate) expect: Expect,
    /// Parts of notes that must be made.
    pub(crate) notes: Vec<String>,
    /// Why the module cannot be evaluated.
    pub(crate) not_run: Option<String>,
    /// All of the file.
    pub(crate) source: String,
}

impl Fixture {
    /// Reads a fixture of `pass`; anything in its header that is not
    /// understood is an error.
    pub(crate) fn read(pass: &str, source: &str) -> Result<Self, String> {
        let header = source.lines().map_while(|line| line.strip_prefix("//")).map(str::trim);
        let mut fixture = Self {
            sentence: String::new(),
            passes: Vec::new(),
            exact: false,
            fast_math: false,
            target: Target::DEFAULT.into(),
            vector_memory: None,
            expect: Expect::Fires,
            notes: Vec::new(),
            not_run: None,
            source: source.into(),
        };
        let mut expect = None;
        for line in header {
            match line.split_once(": ") {
                _ if line == "exact" => fixture.exact = true,
                _ if line == "fast-math" => fixture.fast_math = true,
                Some(("pass", names)) => {
                    fixture.passes = names.split(',').map(str::to_owned).collect();
                }
                Some(("target", name)) => fixture.target = name.into(),
                Some(("vector-memory", bytes)) => {
                    let bytes = bytes.parse().map_err(|error| format!("{bytes}: {error}"))?;
                    fixture.vector_memory = Some(bytes);
                }
                Some(("expect", "fires")) => expect = Some(Expect::Fires),
                Some(("expect", "unchanged")) => expect = Some(Expect::Unchanged),
                Some(("note", part)) => fixture.notes.push(part.into()),
                Some(("not-run", why)) => fixture.not_run = Some(why.into()),
                _ if expect.is_none() && fixture.passes.is_empty() => {
                    let space = if fixture.sentence.is_empty() { "" } else { " " };
                    fixture.sentence = format!("{}{space}{line}", fixture.sentence);
                }
                _ => return Err(format!("`// {line}` is no directive")),
            }
        }
        fixture.expect =
            expect.ok_or("there is no `// expect: fires` or `// expect: unchanged`")?;
        fixture.check(pass)?;
        Ok(fixture)
    }

    /// Options for these passes, by name, under the fixture's conditions.
    pub(crate) fn options(&self, names: &[&str], exact: bool) -> Options {
        let mut options = passes(names, &self.target, exact);
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
