//! Evaluation of modules, and comparison of two.

use std::time::Instant;

use pyo3::prelude::*;
use tilewright::ir::Literal as Value;
use tilewright::report::{CheckReport, GuardReport, RunReport};
use tilewright::simulate::run_with_progress;
use tilewright::{
    BranchCounts, CheckOptions, Devices, Limits, Outputs, Profile, Profiler, Progress, RunOptions,
    Within,
};

use crate::error::{raised, usage};
use crate::module::Module;
use crate::optimize::json;
use crate::report::strategy_of;
use crate::shape::Shape;
use crate::signals::interruptible;
use crate::value::{Literal, handed_over};

/// The limits that Python asks for.
pub(crate) fn limits(max_steps: Option<u64>, max_bytes: Option<u64>) -> Limits {
    let usual = Limits::default();
    Limits {
        max_steps: max_steps.unwrap_or(usual.max_steps),
        max_bytes: max_bytes.unwrap_or(usual.max_bytes),
    }
}

/// The shapes of the entry's parameters.
#[pyfunction]
pub(crate) fn parameter_shapes(module: &Module) -> PyResult<Vec<Shape>> {
    Ok(module.cell.read(|graph| {
        let entry = graph.entry().map(|entry| graph.computation(entry).parameters());
        let shapes = entry.unwrap_or_default().iter().map(|&id| Shape(graph.shape(id).clone()));
        shapes.collect()
    })?)
}

fn values(inputs: Option<Vec<PyRef<'_, Literal>>>) -> Option<Vec<Value>> {
    inputs.map(|inputs| inputs.iter().map(|input| input.0.clone()).collect())
}

/// The result, the fed-out values, the report as JSON and as text.
type Ran = (Py<PyAny>, Vec<Py<PyAny>>, String, String);

/// Evaluates a module on inputs, or on random ones from a seed.
#[pyfunction]
#[pyo3(signature = (
    module, inputs, *, seed=0, max_steps=None, max_bytes=None, profile=false, opaque_calls=false
))]
#[expect(clippy::too_many_arguments, reason = "most have defaults in Python")]
pub(crate) fn run(
    py: Python<'_>,
    module: &Module,
    inputs: Option<Vec<PyRef<'_, Literal>>>,
    seed: u64,
    max_steps: Option<u64>,
    max_bytes: Option<u64>,
    profile: bool,
    opaque_calls: bool,
) -> PyResult<Ran> {
    let module = module.verified(py)?;
    let (progress, profiler, branches) =
        (Progress::new(), Profiler::default(), BranchCounts::new());
    let mut options = RunOptions::default()
        .with_limits(limits(max_steps, max_bytes))
        .with_devices(tilewright::devices_of(&module))
        .with_opaque_calls(opaque_calls)
        .with_progress(&progress)
        .with_branches(&branches);
    if profile {
        options = options.with_observer(&profiler);
    }
    let inputs = values(inputs);
    let work = || {
        let inputs = match inputs {
            Some(inputs) => vec![inputs],
            None => options.random_inputs(&module, seed)?,
        };
        let start = Instant::now();
        let outputs = tilewright::run(&module, &inputs, &options)?;
        Ok((outputs, start.elapsed()))
    };
    let done = interruptible(py, || progress.cancel(), work)?;
    let (outputs, time) = done.map_err(|error: tilewright::Error| raised(&error))?;
    let profile = profile.then(|| Profile::new(&module, &profiler));
    let guards = GuardReport::of(&module, &branches);
    let report = RunReport { profile, guards, ..RunReport::interpreter(time) };
    ran(py, outputs, &report)
}

/// Runs a module on the simulated machine of a target, on inputs or on random ones from a seed.
#[pyfunction]
#[pyo3(signature = (
    module, inputs, target, *, strategy=None, seed=0, max_steps=None, max_bytes=None
))]
#[expect(clippy::too_many_arguments, reason = "most have defaults in Python")]
pub(crate) fn simulate(
    py: Python<'_>,
    module: &Module,
    inputs: Option<Vec<PyRef<'_, Literal>>>,
    target: &str,
    strategy: Option<&str>,
    seed: u64,
    max_steps: Option<u64>,
    max_bytes: Option<u64>,
) -> PyResult<Ran> {
    let module = module.verified(py)?;
    if tilewright::devices_of(&module) != Devices::ONE {
        return Err(usage("the simulated machine is one device: use the interpreter"));
    }
    let target = tilewright::target(target).map_err(|error| raised(&error))?;
    let strategy = strategy_of(strategy)?;
    let (limits, progress) = (limits(max_steps, max_bytes), Progress::new());
    let inputs = values(inputs);
    let work = || {
        let inputs = match inputs {
            Some(inputs) => inputs,
            None => tilewright::random_inputs(&module, seed)?,
        };
        let start = Instant::now();
        let (outputs, simulated) =
            run_with_progress(&module, &inputs, &target, strategy, &limits, &progress)?;
        Ok((outputs, RunReport::simulated(start.elapsed(), &simulated)))
    };
    let done = interruptible(py, || progress.cancel(), work)?;
    let (outputs, report) = done.map_err(|error: tilewright::Error| raised(&error))?;
    ran(py, outputs, &report)
}

/// Hands the results of a run to Python.
fn ran(py: Python<'_>, outputs: Outputs, report: &RunReport) -> PyResult<Ran> {
    let outfeed = outputs.outfeed.into_iter().map(|value| handed_over(py, value));
    let outfeed = outfeed.collect::<PyResult<_>>()?;
    Ok((handed_over(py, outputs.output)?, outfeed, json(report)?, shown(report)))
}

/// The statistics, below the profile if there is one.
fn shown(report: &RunReport) -> String {
    match &report.profile {
        Some(profile) => format!("{profile}\n{report}"),
        None => report.to_string(),
    }
}

/// Compares two modules. Returns the report as JSON and as text.
#[pyfunction]
#[pyo3(signature = (
    a, b, *, seed=0, seeds=2, exact=false, inputs=None, rtol=None, atol=None, replicas=None,
    partitions=None, max_steps=None, max_bytes=None, bisect=false
))]
#[expect(clippy::too_many_arguments, reason = "most have defaults in Python")]
pub(crate) fn check(
    py: Python<'_>,
    a: &Module,
    b: &Module,
    seed: u64,
    seeds: u64,
    exact: bool,
    inputs: Option<Vec<PyRef<'_, Literal>>>,
    rtol: Option<f64>,
    atol: Option<f64>,
    replicas: Option<usize>,
    partitions: Option<usize>,
    max_steps: Option<u64>,
    max_bytes: Option<u64>,
    bisect: bool,
) -> PyResult<(String, String)> {
    let (a, b) = (a.verified(py)?, b.verified(py)?);
    let progress = [Progress::new(), Progress::new()];
    let [of_a, of_b] = &progress;
    let inputs = values(inputs).map(|inputs| vec![inputs]);
    let mut how = CheckOptions::default()
        .with_first_seed(seed)
        .with_seeds(seeds)
        .with_exact(exact)
        .with_limits(limits(max_steps, max_bytes))
        .with_progress([of_a, of_b]);
    how.inputs = inputs.as_deref();
    if rtol.or(atol).is_some() {
        let (relative, absolute) = (rtol.unwrap_or(0.0), atol.unwrap_or(0.0));
        how = how.with_tolerance(Within { relative, absolute });
    }
    if replicas.or(partitions).is_some() {
        let Devices { replicas: r, partitions: p } = Devices::of(&a);
        let devices =
            Devices { replicas: replicas.unwrap_or(r), partitions: partitions.unwrap_or(p) };
        how = how.with_devices(devices);
    }
    let stop = || progress.iter().for_each(Progress::cancel);
    let work = || {
        let agreement = tilewright::check(&a, &b, &how)?;
        let mut witnesses = agreement.outputs.iter().filter_map(|output| output.witness.as_ref());
        let witness = witnesses.next().filter(|_| bisect);
        let found = witness.map(|witness| tilewright::bisect(&a, &b, &how, witness));
        Ok((found.transpose()?, agreement))
    };
    let done = interruptible(py, stop, work)?;
    let (bisection, agreement) = done.map_err(|error: tilewright::Error| raised(&error))?;
    let mut text = agreement.to_string();
    let mut report = CheckReport::from(&agreement);
    if let Some(bisection) = bisection {
        text += &format!("\n{bisection}");
        report.first_difference = bisection.first;
    }
    Ok((json(&report)?, text))
}
