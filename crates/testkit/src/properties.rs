//! Defines properties that hold for every text and proto, however wrong: the tests of hostile
//! input and the fuzzers call the same functions.
//!
//! A property that does not hold is an `Err` that says so; a panic is another.
//! Nothing here looks at a clock: what a text may cost is bounded by the size
//! of what comes out of it.

use tilewright_ir::verify::{self, MAX_DIAGNOSTICS, Verified};
use tilewright_ir::{DiagnosticPlace, Module};
use tilewright_text::render::Renderer;
use tilewright_text::{
    Form, LayoutPadding, MAX_ERRORS, Parsed, PrintOptions, SyntaxErrors, parse, parse_bytes, print,
};

/// The most bytes that one error may take, drawn.
const DRAWN: usize = 1 << 14;

/// The result of reading a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is no HLO.
    Syntax,
    /// It is HLO that the verifier refuses.
    Rejected,
    /// It is a module.
    Verified,
}

/// Parses, prints and verifies bytes.
///
/// # Errors
/// Returns an error with the property that does not hold.
pub fn text(bytes: &[u8]) -> Result<Outcome, String> {
    match parse_bytes(bytes) {
        Err(errors) => {
            errors_are_useful(&String::from_utf8_lossy(bytes), &errors)?;
            Ok(Outcome::Syntax)
        }
        Ok(parsed) => {
            prints_and_reads_back(bytes.len(), &parsed.module)?;
            verdict(&String::from_utf8_lossy(bytes), parsed)
        }
    }
}

/// Verifies bytes, twice and through text: the verdicts must agree.
///
/// # Errors
/// Returns an error with the property that does not hold.
pub fn verifier(bytes: &[u8]) -> Result<Outcome, String> {
    let Ok(parsed) = parse_bytes(bytes) else { return Ok(Outcome::Syntax) };
    let found = codes(&parsed.module);
    if codes(&parsed.module) != found {
        return Err("a second look at the module finds other errors".into());
    }
    let printed = printed(&parsed.module, Form::Default)?;
    let again = parse(&printed).map_err(|errors| format!("does not read back: {errors}"))?;
    if codes(&again.module) != found {
        return Err(format!("verified {found:?}, but as text {:?}", codes(&again.module)));
    }
    Ok(if found.is_empty() { Outcome::Verified } else { Outcome::Rejected })
}

/// Returns the codes that a module breaks and where, by name.
fn codes(module: &Module) -> Vec<(String, String)> {
    let name = |place| match place {
        DiagnosticPlace::Module => String::new(),
        DiagnosticPlace::Computation(id) => module.computation(id).name().to_owned(),
        DiagnosticPlace::Instruction(id) => module.name_of(id).to_owned(),
    };
    verify::check(module).into_iter().map(|d| (d.code.to_string(), name(d.place))).collect()
}

fn errors_are_useful(source: &str, errors: &SyntaxErrors) -> Result<(), String> {
    if errors.errors().is_empty() || errors.errors().len() > MAX_ERRORS {
        return Err(format!("{} errors", errors.errors().len()));
    }
    for error in errors.errors() {
        let inside = error.span.start as usize <= source.len() && error.at.line > 0;
        if !inside || error.message.is_empty() {
            return Err(format!("no place or message: {error:?}"));
        }
    }
    fits(source, &Renderer::new().syntax_errors("x.hlo", source, errors))
}

/// Messages repeat parts of the text, and each is short besides.
fn fits(source: &str, drawn: &str) -> Result<(), String> {
    let allowed = MAX_ERRORS.saturating_mul(DRAWN).saturating_add(source.len().saturating_mul(4));
    if drawn.is_empty() || drawn.len() > allowed {
        return Err(format!("{} bytes of messages for {} of text", drawn.len(), source.len()));
    }
    Ok(())
}

fn verdict(source: &str, parsed: Parsed) -> Result<Outcome, String> {
    let Parsed { module, spans } = parsed;
    let rejected = match tilewright_ir::verify(module) {
        Ok(verified) => return verified_stays(&verified).map(|()| Outcome::Verified),
        Err(rejected) => rejected,
    };
    let found = &rejected.diagnostics;
    if found.is_empty() || found.len() > MAX_DIAGNOSTICS {
        return Err(format!("{} diagnostics", found.len()));
    }
    let placeless = |place| match place {
        // Text without a header has no place for it.
        DiagnosticPlace::Module => false,
        DiagnosticPlace::Computation(_) | DiagnosticPlace::Instruction(_) => {
            spans.place(place).is_none()
        }
    };
    if let Some(found) = found.iter().find(|d| d.message.is_empty() || placeless(d.place)) {
        return Err(format!("no place or message: {found:?}"));
    }
    let drawn = Renderer::new().rejected("x.hlo", Some((source, &spans)), &rejected);
    fits(source, &drawn)?;
    Ok(Outcome::Rejected)
}

/// Checks that a verified module also verifies after it is printed and read.
fn verified_stays(module: &Verified) -> Result<(), String> {
    let printed = printed(module, Form::Default)?;
    match tilewright_text::parse_and_verify(&printed) {
        Ok(_) => Ok(()),
        Err(invalid) => Err(format!("verified, but not as text: {invalid}\n{}", start(&printed))),
    }
}

/// Checks that a module prints in every form, and that the text reads back to the same print.
fn prints_and_reads_back(length: usize, module: &Module) -> Result<(), String> {
    for form in [Form::Default, Form::Short] {
        let first = printed(module, form)?;
        // As much as may be inferred, and some bytes for each part of it.
        let allowed = length.saturating_mul(2).saturating_add(1 << 20).saturating_mul(256);
        if first.len() > allowed {
            return Err(format!("{} bytes printed for {length} read", first.len()));
        }
        let again = parse(&first).map_err(|errors| {
            format!("{form:?} print does not read back: {errors}\n{}", start(&first))
        })?;
        let second = printed(&again.module, form)?;
        if first != second {
            return Err(format!("{form:?} prints differ:\n{}", difference(&first, &second)));
        }
    }
    Ok(())
}

fn printed(module: &Module, form: Form) -> Result<String, String> {
    let options = PrintOptions::new().with_form(form).with_padding(LayoutPadding::Keep);
    print(module, &options).map_err(|error| format!("does not print: {error}"))
}

fn start(text: &str) -> String {
    text.chars().take(2000).collect()
}

/// Returns the first lines that differ.
fn difference(a: &str, b: &str) -> String {
    let differ = a.lines().zip(b.lines()).find(|(a, b)| a != b);
    let (a, b) = differ.unwrap_or(("one is longer", ""));
    format!("{}\n{}", start(a), start(b))
}

/// Reads bytes as a proto and, where they are a module, writes it and reads it
/// back; whether they are a module that verifies.
///
/// # Errors
/// Returns an error if what is written is not what was read.
pub fn proto(bytes: &[u8]) -> Result<bool, String> {
    let Ok(module) = tilewright_proto::decode(bytes) else { return Ok(false) };
    let _ = print(&module, &PrintOptions::new());
    let Ok(module) = verify::verify(module) else { return Ok(false) };
    let Ok(written) = tilewright_proto::encode(&module) else { return Ok(false) };
    let again = tilewright_proto::decode(&written)
        .map_err(|error| format!("what was written is not read back: {error}"))?;
    match tilewright_proto::encode(&again) {
        Ok(twice) if twice == written => Ok(true),
        Ok(_) => Err("what was written is read as something else".into()),
        Err(error) => Err(format!("what was written is not written again: {error}")),
    }
}
