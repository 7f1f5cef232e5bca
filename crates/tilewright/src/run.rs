//! Evaluating modules, and the values that go in and come out.

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
/// If the inputs do not fit the parameters, a limit is exceeded, or the module
/// has something that cannot be evaluated.
pub fn run(module: &Verified, inputs: &[Literal], limits: &Limits) -> Result<Literal, Error> {
    Ok(tilewright_interp::evaluate(module, inputs, limits)?)
}

/// How a module is run.
#[derive(Clone, Copy)]
pub struct RunOptions<'a> {
    /// What the evaluation may use.
    pub limits: Limits,
    /// On which devices; see [`devices_of`].
    pub devices: Devices,
    /// The arrays that each device's infeed instructions read, in order.
    pub infeed: &'a [Literal],
    /// Whether custom calls of which nothing is known are some function all the same;
    /// see [`Evaluation::opaque_calls`].
    pub opaque_calls: bool,
    /// Who sees every instruction of the first device, one by one.
    pub observer: Option<&'a dyn Observer>,
    /// What tells another thread how far the evaluation is.
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

/// The devices that a module is run on: as many as its header says, but one if
/// it does the same on all of them.
pub fn devices_of(module: &Verified) -> Devices {
    if tells_devices_apart(module) { Devices::of(module) } else { Devices::ONE }
}

/// Evaluates a module on one device or several. `inputs` are those of each, or
/// one list that is the same for all. Of several devices, every array of the
/// result has one more dim, its first, with a row for each.
///
/// # Errors
/// As for [`run`]; also if devices wait for each other, or feed out other
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

/// What each device makes of a module.
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

/// The outputs of several devices as rows.
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

/// How many devices there are, if they can be simulated.
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
/// If a parameter is of a kind that no value can be made for, or the inputs
/// would exceed the default [`Limits`].
pub fn random_inputs(module: &Verified, seed: u64) -> Result<Vec<Literal>, Error> {
    Ok(inputs_for(module, seed, InputKind::Normal)?)
}

/// Random inputs of a module, for each of several devices its own.
///
/// # Errors
/// As for [`random_inputs`], within other limits.
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
/// If the file cannot be read, or does not have the arrays that the module
/// takes.
pub fn read_inputs(module: &Verified, path: &Path) -> Result<Vec<Literal>, Error> {
    from_npz(path, |reader| npz::read(reader, "in", &parameter_shapes(module)))
}

/// As [`read_inputs`], for several devices: an array is of the dims that the
/// parameter has, the same for all, or has a first dim before them with a row
/// for each. Returns a list for each device, or a single one for all.
///
/// # Errors
/// As for [`read_inputs`].
pub fn read_inputs_on(
    module: &Verified,
    path: &Path,
    devices: Devices,
) -> Result<Vec<Vec<Literal>>, Error> {
    let count = counted(devices)?;
    let shapes = parameter_shapes(module);
    from_npz(path, |reader| npz::read_rows(reader, "in", &shapes, count))
}

/// The arrays `in0`, `in1` ... of an `.npz` file, of the types they have there.
///
/// # Errors
/// If the file cannot be read, or an array is of a type that HLO lacks.
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
/// If the result has something that is no array.
pub fn outputs_to_npz(result: &Literal) -> Result<Vec<u8>, Error> {
    values_to_npz(std::slice::from_ref(result))
}

/// As [`outputs_to_npz`], of several values: what was fed out, say.
///
/// # Errors
/// As for [`outputs_to_npz`].
pub fn values_to_npz(values: &[Literal]) -> Result<Vec<u8>, Error> {
    let mut bytes = Cursor::new(Vec::new());
    npz::write(&mut bytes, &[("out", values)])
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
