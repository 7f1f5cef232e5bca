//! Defines properties that hold for every MLIR text and bytecode, however wrong: the tests of
//! hostile input and the fuzzers call the same functions.
//!
//! A property that does not hold is an `Err` that says so; a panic is another.

use tilewright_stablehlo::bytecode::{self, Format};
use tilewright_stablehlo::mlir::Program;
use tilewright_stablehlo::{export, import, print, text};

/// Reads bytes as MLIR's text; whether they are a program that becomes a module.
///
/// # Errors
/// Returns an error with the property that does not hold.
pub fn text(bytes: &[u8]) -> Result<bool, String> {
    let Ok(source) = std::str::from_utf8(bytes) else { return Ok(false) };
    match text::parse(source) {
        Err(error) => {
            let (start, end) = (error.span.start as usize, error.span.end as usize);
            let is_useful = !error.message.is_empty() && error.at.line > 0;
            if start > end || start > source.len() || !is_useful {
                return Err(format!("no place or message: {error:?}"));
            }
            Ok(false)
        }
        Ok(program) => stays(&program),
    }
}

/// Reads bytes as MLIR's bytecode; whether they are a program that becomes a module.
///
/// # Errors
/// Returns an error with the property that does not hold.
pub fn code(bytes: &[u8]) -> Result<bool, String> {
    let program = match bytecode::read(bytes) {
        Ok(program) => program,
        Err(error) if error.message.is_empty() || error.offset > bytes.len() => {
            return Err(format!("no place or message: {error:?}"));
        }
        Err(_) => return Ok(false),
    };
    // Writing sorts attributes, so what is compared was written before.
    let Ok(written) = bytecode::write(&program, Format::Plain) else { return Ok(false) };
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
/// a program of which a module is made again; whether there is a module. What is no module may have
/// parts for which MLIR has no text.
fn stays(program: &Program) -> Result<bool, String> {
    let Ok(module) = import(program) else { return Ok(false) };
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
    let Ok(exported) = export(&module) else { return Ok(true) };
    match import(&exported) {
        Ok(_) => Ok(true),
        Err(error) => Err(format!("what was exported is not read back: {error:?}")),
    }
}
