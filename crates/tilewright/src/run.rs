//! Evaluates modules, and reads and writes their inputs and outputs.

use std::fs::File;
use std::io::{BufReader, Cursor};
use std::path::Path;

use tilewright_interp::npz::NpzError;
use tilewright_interp::{
    Devices, EvalError, Evaluation, InputKind, Limits, Observer, Outputs, Progress, inputs_for,
    inputs_on, join_rows, npz, tells_devices_apart,
};
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
/// If the inputs do not fit the parameters, a limit is exceeded, or the evaluation of an op is
/// not supported.
pub fn run(module: &Verified, inputs: &[Literal], limits: &Limits) -> Result<Literal, Error> {
    Ok(tilewright_interp::evaluate(module, inputs, limits)?)
}

/// The options of an evaluation.
#[derive(Clone, Copy)]
pub struct RunOptions<'a> {
    /// The limits of the evaluation.
    pub limits: Limits,
    /// The devices; see [`devices_of`].
    pub devices: Devices,
    /// The arrays that each device's infeed instructions read, in order.
    pub infeed: &'a [Literal],
    /// Whether unknown custom calls are evaluated as arbitrary functions; see
    /// [`Evaluation::opaque_calls`].
    pub opaque_calls: bool,
    /// An observer of every instruction on the first device.
    pub observer: Option<&'a dyn Observer>,
    /// Progress for another thread.
    pub progress: Option<&'a Progress>,
}

impl Default for RunOptions<'_> {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            devices: Devices::ONE,
            infeed: &[],
            opaque_calls: false,
            observer: None,
            progress: None,
        }
    }
}

/// The devices that a module runs on: those in its header, but a single one if its results are
/// the same on all devices.
pub fn devices_of(module: &Verified) -> Devices {
    if tells_devices_apart(module) { Devices::of(module) } else { Devices::ONE }
}

/// Evaluates a module on one or several devices. `inputs` are those of each device, or one list
/// for all. With several devices, every array of the result has an additional first dim with one
/// row per device.
///
/// # Errors
/// The errors of [`run`]; also if devices wait for each other, or their outfeed shapes differ.
/// shapes than the first.
pub fn run_on(
    module: &Verified,
    inputs: &[Vec<Literal>],
    options: &RunOptions<'_>,
) -> Result<Outputs, Error> {
    let mut all = evaluate_on(module, inputs, options)?;
    match all.len() {
        1 => all.pop().ok_or_else(|| devices_error("there is no device")),
        _ => joined(&all),
    }
}

/// The outputs of each device.
pub(crate) fn evaluate_on(
    module: &Verified,
    inputs: &[Vec<Literal>],
    options: &RunOptions<'_>,
) -> Result<Vec<Outputs>, Error> {
    let RunOptions { limits, devices, infeed, opaque_calls, observer, progress } = *options;
    let mut evaluation = Evaluation::new(module).limits(limits).devices(devices).infeed(infeed);
    if opaque_calls {
        evaluation = evaluation.opaque_calls();
    }
    if let Some(observer) = observer {
        evaluation = evaluation.observer(observer);
    }
    if let Some(progress) = progress {
        evaluation = evaluation.progress(progress);
    }
    Ok(evaluation.run(inputs)?)
}

fn devices_error(what: &str) -> Error {
    EvalError::Devices(what.to_owned()).into()
}

/// The outputs of several devices, joined as rows.
fn joined(all: &[Outputs]) -> Result<Outputs, Error> {
    let rows = |values: &[&Literal]| join_rows(values).map_err(|e| devices_error(&e.to_string()));
    let output = rows(&all.iter().map(|outputs| &outputs.output).collect::<Vec<_>>())?;
    let fed = all.first().map_or(0, |first| first.outfeed.len());
    if all.iter().any(|outputs| outputs.outfeed.len() != fed) {
        return Err(devices_error("not all devices feed out as many values"));
    }
    let row = |at: usize| {
        let of_all = all.iter().filter_map(|outputs| outputs.outfeed.get(at));
        rows(&of_all.collect::<Vec<_>>())
    };
    Ok(Outputs { output, outfeed: (0..fed).map(row).collect::<Result<_, _>>()? })
}

/// The number of devices, if they can be simulated.
pub(crate) fn counted(devices: Devices) -> Result<usize, Error> {
    let Devices { replicas, partitions } = devices;
    devices.count().ok_or_else(|| {
        devices_error(&format!(
            "{replicas} replicas of {partitions} partitions cannot be simulated: there may be 1 \
             to {} devices",
            tilewright_interp::MOST_DEVICES
        ))
    })
}

/// The shapes of the entry's parameters.
pub(crate) fn parameter_shapes(module: &Verified) -> Vec<&Shape> {
    let Some(entry) = module.entry() else { return Vec::new() };
    module.computation(entry).parameters().iter().map(|&id| module.shape(id)).collect()
}

/// Random inputs of a module, the same for the same seed.
///
/// # Errors
/// If values of a parameter's kind cannot be generated, or the inputs would exceed the default
/// [`Limits`].
pub fn random_inputs(module: &Verified, seed: u64) -> Result<Vec<Literal>, Error> {
    Ok(inputs_for(module, seed, InputKind::Normal)?)
}

/// Random inputs of a module, different ones for each device.
///
/// # Errors
/// The errors of [`random_inputs`], with other limits.
pub fn random_inputs_on(
    module: &Verified,
    seed: u64,
    devices: Devices,
    limits: &Limits,
) -> Result<Vec<Vec<Literal>>, Error> {
    Ok(inputs_on(module, seed, InputKind::Normal, limits, counted(devices)?)?)
}

/// The inputs of a module from the arrays `in0`, `in1` ... of an `.npz` file;
/// tuples are flattened in order.
///
/// # Errors
/// If the file cannot be read, or does not have the module's input arrays.
pub fn read_inputs(module: &Verified, path: &Path) -> Result<Vec<Literal>, Error> {
    from_npz(path, |reader| npz::read(reader, "in", &parameter_shapes(module)))
}

/// Like [`read_inputs`], for several devices: an array has either the dims of the parameter, and
/// is the same for all devices, or an additional first dim with one row per device. Returns a
/// list for each device, or a single list for all.
///
/// # Errors
/// The errors of [`read_inputs`].
pub fn read_inputs_on(
    module: &Verified,
    path: &Path,
    devices: Devices,
) -> Result<Vec<Vec<Literal>>, Error> {
    let count = counted(devices)?;
    let shapes = parameter_shapes(module);
    from_npz(path, |reader| npz::read_rows(reader, "in", &shapes, count))
}

/// The arrays `in0`, `in1` ... of an `.npz` file, with the types in the file.
///
/// # Errors
/// If the file cannot be read, or HLO does not have the type of an array.
pub fn read_infeed(path: &Path) -> Result<Vec<Literal>, Error> {
    from_npz(path, |reader| npz::read_all(reader, "in"))
}

fn from_npz<T>(
    path: &Path,
    read: impl FnOnce(BufReader<File>) -> Result<T, NpzError>,
) -> Result<T, Error> {
    let name = path.display().to_string();
    let file = File::open(path).map_err(|error| Error::read(&*name, error))?;
    read(BufReader::new(file)).map_err(|error| Error::Npz { name, error })
}

/// The bytes of an `.npz` file with a result's arrays as `out0`, `out1` ...;
/// tuples are flattened in order.
///
/// # Errors
/// If the result contains a value that is not an array.
pub fn outputs_to_npz(result: &Literal) -> Result<Vec<u8>, Error> {
    values_to_npz(std::slice::from_ref(result))
}

/// Like [`outputs_to_npz`], for several values, such as outfeed arrays.
///
/// # Errors
/// The errors of [`outputs_to_npz`].
pub fn values_to_npz(values: &[Literal]) -> Result<Vec<u8>, Error> {
    let mut bytes = Cursor::new(Vec::new());
    npz::write(&mut bytes, &[("out", values)])
        .map_err(|error| Error::Npz { name: "the outputs".into(), error })?;
    Ok(bytes.into_inner())
}

/// The first elements of an array as text, at most `limit`; elements without a decimal form as
/// hexadecimal bits.
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
