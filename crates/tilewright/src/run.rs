//! Evaluates modules, and reads and writes their inputs and outputs.

use std::fs::File;
use std::io::{BufReader, Cursor};
use std::path::Path;

use tilewright_interp::npz::NpzError;
use tilewright_interp::{
    BranchCounts, Devices, EvalError, Evaluation, InputKind, Limits, Observer, Outputs, Progress,
    RandomInputs, inputs_for, join_rows, npz, tells_devices_apart,
};
use tilewright_ir::small_float::{Format, Value};
use tilewright_ir::{Data, Literal, Shape, Verified};

use crate::error::Error;

/// Evaluates a module's entry computation, on one or several devices. With several devices, every
/// array of the outputs has an additional first dim with one row for each device.
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
/// let outputs = tilewright::run(&module, &[x.into()], &RunOptions::default())?;
/// assert_eq!(tilewright::elements(&outputs.output, 10), ["2.0", "5.0"]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns an error if the inputs do not fit the parameters, a limit is exceeded, the
/// evaluation of an op is not supported, devices wait for each other, or their outfeed shapes
/// differ.
pub fn run<'a>(
    module: &Verified,
    inputs: impl Into<Inputs<'a>>,
    options: &RunOptions<'_>,
) -> Result<Outputs, Error> {
    let mut all = match inputs.into() {
        Inputs::Same(inputs) => options.evaluation(module).run(&[inputs])?,
        Inputs::PerDevice(inputs) => options.evaluation(module).run(inputs)?,
    };
    match all.len() {
        1 => all.pop().ok_or_else(|| devices_error("there is no device")),
        _ => joined(&all),
    }
}

/// The inputs of a run: the values of the parameters, in order.
#[derive(Clone, Copy, Debug)]
pub enum Inputs<'a> {
    /// The same values on every device.
    Same(&'a [Literal]),
    /// One list for each device, or a single list for all.
    PerDevice(&'a [Vec<Literal>]),
}

impl<'a> From<&'a [Literal]> for Inputs<'a> {
    fn from(inputs: &'a [Literal]) -> Self {
        Self::Same(inputs)
    }
}

impl<'a> From<&'a Vec<Literal>> for Inputs<'a> {
    fn from(inputs: &'a Vec<Literal>) -> Self {
        Self::Same(inputs)
    }
}

impl<'a, const N: usize> From<&'a [Literal; N]> for Inputs<'a> {
    fn from(inputs: &'a [Literal; N]) -> Self {
        Self::Same(inputs)
    }
}

impl<'a> From<&'a [Vec<Literal>]> for Inputs<'a> {
    fn from(inputs: &'a [Vec<Literal>]) -> Self {
        Self::PerDevice(inputs)
    }
}

impl<'a> From<&'a Vec<Vec<Literal>>> for Inputs<'a> {
    fn from(inputs: &'a Vec<Vec<Literal>>) -> Self {
        Self::PerDevice(inputs)
    }
}

/// The options of an evaluation. Begin with the default and set what differs:
///
/// ```
/// use tilewright::{Limits, RunOptions};
///
/// let options = RunOptions::default().with_limits(Limits::NONE).with_opaque_calls(true);
/// assert!(options.opaque_calls);
/// ```
#[derive(Clone, Copy)]
#[non_exhaustive]
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
    /// Counts of the branches that conditionals take.
    pub branches: Option<&'a BranchCounts>,
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
            branches: None,
        }
    }
}

impl<'a> RunOptions<'a> {
    /// With other limits.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// With other devices.
    #[must_use]
    pub fn with_devices(self, devices: Devices) -> Self {
        Self { devices, ..self }
    }

    /// With arrays for infeed instructions.
    #[must_use]
    pub fn with_infeed(self, infeed: &'a [Literal]) -> Self {
        Self { infeed, ..self }
    }

    /// With unknown custom calls as arbitrary functions, or as errors.
    #[must_use]
    pub fn with_opaque_calls(self, opaque_calls: bool) -> Self {
        Self { opaque_calls, ..self }
    }

    /// With an observer of every instruction, such as a [`Profiler`](crate::Profiler).
    #[must_use]
    pub fn with_observer(self, observer: &'a dyn Observer) -> Self {
        Self { observer: Some(observer), ..self }
    }

    /// With progress for another thread.
    #[must_use]
    pub fn with_progress(self, progress: &'a Progress) -> Self {
        Self { progress: Some(progress), ..self }
    }

    /// With counts of the branches that conditionals take.
    #[must_use]
    pub fn with_branches(self, branches: &'a BranchCounts) -> Self {
        Self { branches: Some(branches), ..self }
    }

    /// Random inputs of a module within the limits, different ones for each of the devices.
    ///
    /// # Errors
    /// The errors of [`random_inputs`]; also if there are too many devices.
    pub fn random_inputs(&self, module: &Verified, seed: u64) -> Result<Vec<Vec<Literal>>, Error> {
        let inputs = RandomInputs::new(seed, InputKind::Normal).limits(self.limits);
        Ok(inputs.devices(counted(self.devices)?).generate(module)?)
    }

    /// Returns the inputs of a module for the devices from the arrays `in0`, `in1` ... of an
    /// `.npz` file. An array has either the dims of the parameter, and is the same for all
    /// devices, or an additional first dim with one row for each device. Returns a list for
    /// each device, or a single list for all.
    ///
    /// # Errors
    /// The errors of [`read_inputs`]; also if there are too many devices.
    pub fn read_inputs(&self, module: &Verified, path: &Path) -> Result<Vec<Vec<Literal>>, Error> {
        let count = counted(self.devices)?;
        let shapes = parameter_shapes(module);
        from_npz(path, |reader| npz::read_rows(reader, "in", &shapes, count))
    }

    fn evaluation<'m>(&self, module: &'m Verified) -> Evaluation<'m>
    where
        'a: 'm,
    {
        let Self { limits, devices, infeed, opaque_calls, observer, progress, branches } = *self;
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
        if let Some(branches) = branches {
            evaluation = evaluation.branches(branches);
        }
        evaluation
    }
}

/// Returns the devices that a module runs on: those in its header, but a single one if its
/// results are the same on all devices.
pub fn devices_of(module: &Verified) -> Devices {
    if tells_devices_apart(module) { Devices::of(module) } else { Devices::ONE }
}

fn devices_error(what: &str) -> Error {
    EvalError::Devices(what.to_owned()).into()
}

/// Returns the outputs of several devices, joined as rows.
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

/// Returns the number of devices, if they can be simulated.
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

/// Returns the shapes of the entry's parameters.
pub(crate) fn parameter_shapes(module: &Verified) -> Vec<&Shape> {
    let Some(entry) = module.entry() else { return Vec::new() };
    module.computation(entry).parameters().iter().map(|&id| module.shape(id)).collect()
}

/// Random inputs of a module on one device, the same for the same seed.
/// [`RunOptions::random_inputs`] makes those of several devices.
///
/// # Errors
/// Returns an error if values of a parameter's kind cannot be generated, or the inputs would
/// exceed the default [`Limits`].
pub fn random_inputs(module: &Verified, seed: u64) -> Result<Vec<Literal>, Error> {
    Ok(inputs_for(module, seed, InputKind::Normal)?)
}

/// Returns the inputs of a module from the arrays `in0`, `in1` ... of an `.npz` file; tuples
/// are flattened in order. [`RunOptions::read_inputs`] reads those of several devices.
///
/// # Errors
/// Returns an error if the file cannot be read, or does not have the module's input arrays.
pub fn read_inputs(module: &Verified, path: &Path) -> Result<Vec<Literal>, Error> {
    from_npz(path, |reader| npz::read(reader, "in", &parameter_shapes(module)))
}

/// Returns the arrays `in0`, `in1` ... of an `.npz` file, with the types in the file.
///
/// # Errors
/// Returns an error if the file cannot be read, or HLO does not have the type of an array.
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

/// Returns the bytes of an `.npz` file with a result's arrays as `out0`, `out1` ...; tuples are
/// flattened in order.
///
/// # Errors
/// Returns an error if the result contains a value that is not an array.
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

/// Returns the first elements of an array as text, at most `limit`.
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
        Data::U8(v) => match Format::of(array.element_type()) {
            Some(format) => show(v, limit, |&bits| match format.decode(bits.into()) {
                Value::Real(number) => format!("{number:?}"),
                Value::Nan { .. } => "NaN".to_owned(),
            }),
            None => show(v, limit, ToString::to_string),
        },
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
