//! The program that a call asks for.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use tilewright::ir::ElementType;
use tilewright::native::CallProgram;
use tilewright_native::Pool;
use tilewright_native::fused::{Operand, ValuesMut};

use super::Refusal;
use super::frame::{Buffer, ProgramCall};

/// The most programs that are remembered.
const MOST_REMEMBERED: usize = 1024;

/// The programs that were read, by their texts.
static REMEMBERED: LazyLock<Mutex<HashMap<String, Arc<CallProgram>>>> =
    LazyLock::new(Mutex::default);

/// Runs the program of a call.
///
/// # Errors
/// If its text is no program, buffers are not those of the program or lie where they cannot, or a
/// task panicked.
pub(crate) fn run(mut call: ProgramCall<'_>, pool: &dyn Pool) -> Result<(), Refusal> {
    let program = program(call.text)?;
    let inputs = program.inputs().iter().map(|shape| (shape.element_type, shape.dims()));
    check("argument", &call.arguments, inputs)?;
    let outputs = program.outputs().iter().map(|(kind, dims)| (*kind, dims.as_slice()));
    check("result", &call.results, outputs)?;
    let operands = call.arguments.iter().enumerate();
    let operands = operands.map(|(number, buffer)| Ok(program.operand(number, elements(buffer)?)?));
    let operands: Vec<Operand<'_>> = operands.collect::<Result<_, Refusal>>()?;
    let rooms = call.results.iter_mut().map(|buffer| {
        // SAFETY: `ProgramCall::read` found that no other buffer of the call lies here, and XLA hands
        // a result over to one call alone.
        unsafe { buffer.elements_mut::<f32>("result") }.map(ValuesMut::F32)
    });
    let mut rooms: Vec<ValuesMut<'_>> = rooms.collect::<Result<_, Refusal>>()?;
    Ok(program.run_into(&operands, &mut rooms, pool)?)
}

/// Checks that buffers have the dims of a program's arrays, which must be `f32` as all buffers are.
fn check<'a>(
    what: &str,
    buffers: &[Buffer],
    arrays: impl ExactSizeIterator<Item = (ElementType, &'a [i64])>,
) -> Result<(), Refusal> {
    if buffers.len() != arrays.len() {
        let (given, wanted) = (buffers.len(), arrays.len());
        return Err(Refusal::invalid(format!("{given} {what}s for a program of {wanted}")));
    }
    for (number, (buffer, (element_type, wanted))) in buffers.iter().zip(arrays).enumerate() {
        if element_type != ElementType::F32 {
            return Err(Refusal::invalid(format!(
                "{what} {number} of the program is {element_type}, and calls have f32 alone"
            )));
        }
        let same = buffer.dims.iter().map(|&dim| i64::try_from(dim).unwrap_or(i64::MAX));
        if !same.eq(wanted.iter().copied()) {
            let given = &buffer.dims;
            return Err(Refusal::invalid(format!(
                "{what} {number} has dims {given:?}, not {wanted:?}"
            )));
        }
    }
    Ok(())
}

fn elements(buffer: &Buffer) -> Result<&[f32], Refusal> {
    // SAFETY: nobody writes an argument during the call, and the results lie elsewhere.
    unsafe { buffer.elements::<f32>("argument") }
}

/// Returns the program with this text.
fn program(text: &str) -> Result<Arc<CallProgram>, Refusal> {
    let mut remembered = REMEMBERED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(program) = remembered.get(text) {
        return Ok(Arc::clone(program));
    }
    let program = CallProgram::parse(text).map_err(|error| Refusal::invalid(error.to_string()))?;
    if remembered.len() >= MOST_REMEMBERED {
        remembered.clear();
    }
    let program = Arc::new(program);
    remembered.insert(text.to_owned(), Arc::clone(&program));
    Ok(program)
}
