//! Defines properties that hold for every MLIR text and bytecode, however wrong: the tests of
//! hostile input and the fuzzers call the same functions.
//!
//! A property that does not hold is an `Err` that says so; a panic is another.

use tilewright_interp::{
    Devices, Evaluation, InputKind, RandomInputs, Tolerances, compare, tells_devices_apart,
};
use tilewright_ir::Verified;
use tilewright_stablehlo::bytecode::{self, Format};
use tilewright_stablehlo::mlir::Program;
use tilewright_stablehlo::{export, import, print, text};

/// How far bytes come on the way to a module and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// They are no program.
    Unread,
    /// They are a program that is not written as bytecode.
    Unwritten,
    /// They are a program that becomes no module.
    Program,
    /// They are a program that becomes a module, which does not become a program again.
    Module,
    /// The module becomes a program again.
    Exported,
}

/// Reads bytes as MLIR's text; how far they come.
///
/// # Errors
/// Returns an error with the property that does not hold.
pub fn text(bytes: &[u8]) -> Result<Outcome, String> {
    let Ok(source) = std::str::from_utf8(bytes) else { return Ok(Outcome::Unread) };
    match text::parse(source) {
        Err(error) => {
            let (start, end) = (error.span.start as usize, error.span.end as usize);
            let is_useful = !error.message.is_empty() && error.at.line > 0;
            if start > end || start > source.len() || !is_useful {
                return Err(format!("no place or message: {error:?}"));
            }
            Ok(Outcome::Unread)
        }
        Ok(program) => stays(&program),
    }
}

/// Reads bytes as MLIR's bytecode; how far they come.
///
/// # Errors
/// Returns an error with the property that does not hold.
pub fn code(bytes: &[u8]) -> Result<Outcome, String> {
    let program = match bytecode::read(bytes) {
        Ok(program) => program,
        Err(error) if error.message.is_empty() || error.offset > bytes.len() => {
            return Err(format!("no place or message: {error:?}"));
        }
        Err(_) => return Ok(Outcome::Unread),
    };
    // Writing sorts attributes, so what is compared was written before.
    let Ok(written) = bytecode::write(&program, Format::Plain) else {
        return Ok(Outcome::Unwritten);
    };
    let again = rewritten(&written)?;
    let twice = bytecode::write(&again, Format::Plain)
        .map_err(|error| format!("what was written is not written again: {error}"))?;
    let (first, second) = (print(&again), print(&rewritten(&twice)?));
    if first != second {
        let differ = first.lines().zip(second.lines()).find(|(a, b)| a != b).unwrap_or_default();
        return Err(format!("what was written is read as something else: {differ:?}"));
    }
    stays(&program)
}

fn rewritten(bytes: &[u8]) -> Result<Program, String> {
    bytecode::read(bytes).map_err(|error| format!("what was written is not read back: {error}"))
}

/// Checks that a program that becomes a module reads back from its text, and that the module becomes
/// a program of which a module is made again; how far it comes. What is no module may have parts for
/// which MLIR has no text.
fn stays(program: &Program) -> Result<Outcome, String> {
    let Ok(module) = import(program) else { return Ok(Outcome::Program) };
    let printed = print(program);
    let again = text::parse(&printed).map_err(|error| {
        let line = printed.lines().nth(error.at.line.saturating_sub(1)).unwrap_or_default();
        format!("the print does not read back: {error}\n{line}")
    })?;
    let second = print(&again);
    if printed != second {
        let differ = printed.lines().zip(second.lines()).find(|(a, b)| a != b).unwrap_or_default();
        return Err(format!("the prints differ: {differ:?}"));
    }
    let Ok(exported) = export(&module) else { return Ok(Outcome::Module) };
    match import(&exported) {
        Ok(_) => Ok(Outcome::Exported),
        Err(error) => Err(format!("what was exported is not read back: {error:?}")),
    }
}

/// Runs two modules on the same random inputs; whether the first can be run here.
///
/// # Errors
/// Returns an error if the second cannot be run, or computes something else.
pub fn compute_the_same(module: &Verified, other: &Verified) -> Result<bool, String> {
    let devices =
        if tells_devices_apart(module) { Devices::of(module) } else { Devices::default() };
    let inputs = RandomInputs::new(1, InputKind::Normal).devices(devices.count().unwrap_or(1));
    let Ok(inputs) = inputs.generate(module) else { return Ok(false) };
    let Ok(expected) = Evaluation::new(module).devices(devices).run(&inputs) else {
        return Ok(false);
    };
    let found = Evaluation::new(other).devices(devices).run(&inputs);
    let found = found.map_err(|error| format!("only the first can be run: {error}"))?;
    let tolerances = Tolerances::of_module(module);
    for (expected, found) in expected.iter().zip(&found) {
        let (expected, found) = (&expected.output, &found.output);
        let compared = compare(expected, found, |element_type| tolerances.of(element_type));
        let compared = compared.map_err(|error| error.to_string())?;
        if let Some(worst) = compared.into_iter().find(|comparison| !comparison.equal) {
            return Err(format!("the results differ: {worst:?}"));
        }
    }
    Ok(true)
}
