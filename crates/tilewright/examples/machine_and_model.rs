//! Prints what norms take on the simulated machine, as they are written and as they
//! are rewritten, beside what the optimiser's costs foresee; and how well the two
//! agree in rank over all models in `fixtures/`. Markdown, a few minutes.
//!
//! ```text
//! cargo run --release -p tilewright --example machine_and_model > docs/machine-and-model.md
//! ```

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use tilewright::ir::Opcode;
use tilewright::lower::Strategy;
use tilewright::prelude::*;
use tilewright::rewrite::analysis::cost::instruction_costs;
use tilewright::simulate;
use tilewright::targets::Target;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Norms at sizes of real networks.
const NORMS: [&str; 14] = [
    "batch_norm_32x32x32x128",
    "batch_norm_grad_32x32x32x128",
    "ghost_batch_norm_outer_32x32x32x128",
    "group_norm_nhwc_4x64x64x320",
    "group_norm_nhwc_grad_4x64x64x320",
    "group_norm_nhwc_one_pass_4x64x64x320",
    "group_norm_bf16_4x64x64x320",
    "group_norm_nchw_4x320x64x64",
    "group_norm_silu_4x64x64x320",
    "instance_norm_4x64x64x320",
    "layer_norm_8x512x1024",
    "layer_norm_grad_8x512x1024",
    "rms_norm_per_head_8x512x1024",
    "weight_norm_3x3x512x512",
];

/// Modelled and simulated cycles of a module.
struct Cycles {
    model: f64,
    machine: f64,
    kernels: usize,
    /// How often the host stepped in: the kernels after it begin anew.
    host_calls: u64,
}

/// How well two rankings agree, of all modules and of those the machine runs alone.
struct Agreement {
    all: f64,
    alone: f64,
    count: usize,
    count_alone: usize,
}

fn main() -> Result<()> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let target = tilewright::target("tpu-like")?;
    let mut out = io::stdout().lock();
    writeln!(out, "# The machine and the model\n")?;
    writeln!(
        out,
        "Made by `cargo run --release -p tilewright --example machine_and_model`. Cycles on `tpu-like`: \
         *machine* is what the [kernels](kernels.md) of a module take on the simulated machine, \
         *model* what the optimiser foresees ([targets](targets.md)).\n"
    )?;
    writeln!(out, "## Norms at real sizes, as JAX writes them and rewritten\n")?;
    writeln!(
        out,
        "| program | machine | rewritten | | model | rewritten | | kernels | rewritten |"
    )?;
    writeln!(out, "|---|---|---|---|---|---|---|---|---|")?;
    for name in NORMS {
        let path = fixtures.join("real").join(format!("{name}.hlo"));
        let [before, after] = both(&path, &target, &target)?;
        writeln!(
            out,
            "| `{name}` | {:.0} | {:.0} | {:.2}x | {:.0} | {:.0} | {:.2}x | {} | {} |",
            before.machine,
            after.machine,
            before.machine / after.machine,
            before.model,
            after.model,
            before.model / after.model,
            before.kernels,
            after.kernels,
        )?;
    }
    let mut at_once = target.clone();
    at_once.hbm_latency_cycles = 0.0;
    let models = models(&fixtures.join("models"))?;
    let with = agreement(&models, &target, &target)?;
    let without = agreement(&models, &target, &at_once)?;
    writeln!(out, "\n## Agreement in rank\n")?;
    writeln!(
        out,
        "Rank correlation (Spearman) of model and machine over `fixtures/models`, as written and \
         rewritten. Contractions and dynamic slices are done by the host and take no time on either \
         side; but the machine begins anew after each, which the model's figure counts as one latency \
         of main memory.\n"
    )?;
    writeln!(out, "| modules | | as targets say | main memory answers at once |")?;
    writeln!(out, "|---|---|---|---|")?;
    writeln!(out, "| all | {} | {:.3} | {:.3} |", with.count, with.all, without.all)?;
    writeln!(
        out,
        "| without host calls | {} | {:.3} | {:.3} |",
        with.count_alone, with.alone, without.alone
    )?;
    Ok(())
}

fn agreement(models: &[PathBuf], target: &Target, machine: &Target) -> Result<Agreement> {
    let (mut all, mut alone) = (Vec::new(), Vec::new());
    for path in models {
        for cycles in both(path, target, machine)? {
            let calls = f64::from(u32::try_from(cycles.host_calls)?);
            let pair = (cycles.model + calls * machine.hbm_latency_cycles, cycles.machine);
            all.push(pair);
            if cycles.host_calls == 0 {
                alone.push(pair);
            }
        }
    }
    Ok(Agreement {
        all: spearman(&all),
        alone: spearman(&alone),
        count: all.len(),
        count_alone: alone.len(),
    })
}

/// A module as it is and rewritten.
fn both(path: &Path, target: &Target, machine: &Target) -> Result<[Cycles; 2]> {
    let module = tilewright::load_file(path)?.module;
    let after = tilewright::optimize(module.clone(), &Options::new(target.clone()))?.module;
    Ok([cycles(&module, target, machine)?, cycles(&after, target, machine)?])
}

fn cycles(module: &Verified, target: &Target, machine: &Target) -> Result<Cycles> {
    // What the host does is on no machine.
    let by_host = |opcode| {
        matches!(
            opcode,
            Opcode::Dot | Opcode::Convolution | Opcode::DynamicSlice | Opcode::DynamicUpdateSlice
        )
    };
    let costs = instruction_costs(module, target).into_iter();
    let model = costs.filter(|cost| !by_host(module.opcode(cost.id))).map(|c| c.cost.cycles).sum();
    let inputs = tilewright::random_inputs(module, 0)?;
    let (_, simulated) =
        simulate::run(module, &inputs, machine, Strategy::Fused, &Limits::default())?;
    Ok(Cycles {
        model,
        machine: simulated.counters.cycles,
        kernels: simulated.kernels.len(),
        host_calls: simulated.host_calls.values().sum(),
    })
}

/// The texts in a folder, by name.
fn models(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "hlo") {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// The correlation of ranks; equal values share theirs.
fn spearman(pairs: &[(f64, f64)]) -> f64 {
    let a = ranks(pairs.iter().map(|pair| pair.0));
    let b = ranks(pairs.iter().map(|pair| pair.1));
    let mean =
        |values: &[f64]| values.iter().sum::<f64>() / values.iter().map(|_| 1.0).sum::<f64>();
    let (mean_a, mean_b) = (mean(&a), mean(&b));
    let sum = |f: &dyn Fn(f64, f64) -> f64| -> f64 {
        a.iter().zip(&b).map(|(a, b)| f(a - mean_a, b - mean_b)).sum()
    };
    sum(&|a, b| a * b) / (sum(&|a, _| a * a) * sum(&|_, b| b * b)).sqrt()
}

fn ranks(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let values: Vec<f64> = values.collect();
    let rank = |value: &f64| -> f64 {
        let below: f64 = values.iter().filter(|other| *other < value).map(|_| 1.0).sum();
        let equal: f64 = values.iter().filter(|other| *other == value).map(|_| 1.0).sum();
        below + (equal - 1.0) / 2.0
    };
    values.iter().map(rank).collect()
}
