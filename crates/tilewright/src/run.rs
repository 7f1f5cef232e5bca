//! Evaluating modules, and the values that go in and come out.

use std::fs::File;
use std::io::{BufReader, Cursor};
use std::path::Path;

use tilewright_interp::{InputKind, Limits, inputs_for, npz};
use tilewright_ir::{Data, Literal, Shape, Verified};

use crate::error::Error;

/// Evaluates a module's entry computation.
///
/// ```
/// use tilewright::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let module = tilewright::parse(
///     "HloModule double
///      ENTRY main {
///        x = f32[2] parameter(0)
///        ROOT y = f32[2] add(x, x)
///      }",
/// )?;
/// let x = ArrayLiteral::new(ElementType::F32, [2], Data::F32(vec![1.0, 2.5]))?;
/// let y = tilewright::run(&module, &[x.into()], &Limits::default())?;
/// assert_eq!(tilewright::elements(&y, 10), ["2.0", "5.0"]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// If the inputs do not fit the parameters, a limit is exceeded, or the module
/// has something that cannot be evaluated.
pub fn run(module: &Verified, inputs: &[Literal], limits: &Limits) -> Result<Literal, Error> {
    Ok(tilewright_interp::evaluate(module, inputs, limits)?)
}

/// The shapes of the entry's parameters.
pub(crate) fn parameter_shapes(module: &Verified) -> Vec<&Shape> {
    let Some(entry) = module.entry() else { return Vec::new() };
    module.computation(entry).parameters().iter().map(|&id| module.shape(id)).collect()
}

/// Random inputs of a module, the same for the same seed.
///
/// # Errors
/// If a parameter is of a kind that no value can be made for, or the inputs
/// would exceed the default [`Limits`].
pub fn random_inputs(module: &Verified, seed: u64) -> Result<Vec<Literal>, Error> {
    Ok(inputs_for(module, seed, InputKind::Normal)?)
}

/// The inputs of a module from the arrays `in0`, `in1` ... of an `.npz` file;
/// tuples are flattened in order.
///
/// # Errors
/// If the file cannot be read, or does not have the arrays that the module
/// takes.
pub fn read_inputs(module: &Verified, path: &Path) -> Result<Vec<Literal>, Error> {
    let name = path.display().to_string();
    let file = File::open(path).map_err(|error| Error::read(&*name, error))?;
    npz::read(BufReader::new(file), "in", &parameter_shapes(module))
        .map_err(|error| Error::Npz { name, error })
}

/// The bytes of an `.npz` file with a result's arrays as `out0`, `out1` ...;
/// tuples are flattened in order.
///
/// # Errors
/// If the result has something that is no array.
pub fn outputs_to_npz(result: &Literal) -> Result<Vec<u8>, Error> {
    let mut bytes = Cursor::new(Vec::new());
    npz::write(&mut bytes, &[("out", std::slice::from_ref(result))])
        .map_err(|error| Error::Npz { name: "the outputs".into(), error })?;
    Ok(bytes.into_inner())
}

/// The first elements of an array as text, at most `limit` of them; those of
/// types that only their bits stand for as hexadecimal bits.
pub fn elements(value: &Literal, limit: usize) -> Vec<String> {
    let Some(array) = value.as_array() else { return Vec::new() };
    fn show<T>(values: &[T], limit: usize, text: impl Fn(&T) -> String) -> Vec<String> {
        values.iter().take(limit).map(text).collect()
    }
    match array.data() {
        Data::Pred(v) => show(v, limit, ToString::to_string),
        Data::S8(v) => show(v, limit, ToString::to_string),
        Data::S16(v) => show(v, limit, ToString::to_string),
        Data::S32(v) => show(v, limit, ToString::to_string),
        Data::S64(v) => show(v, limit, ToString::to_string),
        Data::U8(v) if array.element_type().is_float() => {
            show(v, limit, |bits| format!("0x{bits:02x}"))
        }
        Data::U8(v) => show(v, limit, ToString::to_string),
        Data::U16(v) => show(v, limit, ToString::to_string),
        Data::U32(v) => show(v, limit, ToString::to_string),
        Data::U64(v) => show(v, limit, ToString::to_string),
        Data::F16(v) => show(v, limit, |v| format!("{:?}", v.to_f32())),
        Data::BF16(v) => show(v, limit, |v| format!("{:?}", v.to_f32())),
        Data::F32(v) => show(v, limit, |v| format!("{v:?}")),
        Data::F64(v) => show(v, limit, |v| format!("{v:?}")),
        Data::C64(v) => show(v, limit, |v| format!("({:?}, {:?})", v.re, v.im)),
        Data::C128(v) => show(v, limit, |v| format!("({:?}, {:?})", v.re, v.im)),
    }
}
