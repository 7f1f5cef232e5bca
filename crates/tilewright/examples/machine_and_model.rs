//! Prints what norms take on the simulated machine, as they are written and as they
//! are rewritten, beside what the optimiser's costs foresee; and how far the two
//! agree, in rank and in ratio, over all models in `fixtures/`. Markdown, a few minutes.
//!
//! ```text
//! cargo run --release -p tilewright --example machine_and_model > docs/machine-and-model.md
//! ```

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use tilewright::ir::Opcode;
use tilewright::lower::Strategy;
use tilewright::prelude::*;
use tilewright::rewrite::cost::instruction_costs;
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
#[derive(Clone, Copy)]
struct Cycles {
    model: f64,
    machine: f64,
    kernels: usize,
    /// How often the host stepped in: what it does is on no machine.
    host_calls: u64,
}

/// A module as it is and rewritten.
struct Pair {
    name: String,
    before: Cycles,
    after: Cycles,
}

impl Pair {
    fn of(path: &Path, target: &Target) -> Result<Self> {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let module = tilewright::load_file(path)?.module;
        let after = tilewright::optimize(module.clone(), &Options::new(target.clone()))?;
        let before = cycles(&module, target)?;
        let unchanged = after.report.unchanged;
        let after = if unchanged { before } else { cycles(&after.module, target)? };
        Ok(Self { name, before, after })
    }

    fn has_host_calls(&self) -> bool {
        self.before.host_calls + self.after.host_calls > 0
    }

    fn machine_ratio(&self) -> f64 {
        self.before.machine / self.after.machine
    }

    fn model_ratio(&self) -> f64 {
        self.before.model / self.after.model
    }

    /// Returns how far the two ratios are apart, as a ratio that is at least 1.
    fn apart(&self) -> f64 {
        let apart = self.model_ratio() / self.machine_ratio();
        apart.max(1.0 / apart)
    }
}

/// Ratios no further apart than this agree.
const AGREES: f64 = 1.25;

fn main() -> Result<()> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let target = tilewright::target("tpu-like")?;
    let pair = |path: PathBuf| Pair::of(&path, &target);
    let norms = NORMS.iter().map(|name| fixtures.join("real").join(format!("{name}.hlo")));
    let norms: Vec<Pair> = norms.map(pair).collect::<Result<_>>()?;
    let models: Vec<Pair> =
        texts(&fixtures.join("models"))?.into_iter().map(pair).collect::<Result<_>>()?;
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "# The machine and the model\n\n\
         Made by `cargo run --release -p tilewright --example machine_and_model`. Cycles on `tpu-like`: \
         *machine* is what the [kernels](kernels.md) of a module take on the simulated machine, \
         *model* what the optimiser foresees ([targets](targets.md)), both of modules in their \
         simplest form.\n"
    )?;
    write_norms(&mut out, &norms)?;
    write_ranks(&mut out, &models)?;
    write_ratios(&mut out, norms.iter().chain(&models))
}

fn write_norms(out: &mut dyn io::Write, norms: &[Pair]) -> Result<()> {
    writeln!(out, "## Norms at real sizes, as JAX writes them and rewritten\n")?;
    writeln!(
        out,
        "| program | machine | rewritten | | model | rewritten | | kernels | rewritten |"
    )?;
    writeln!(out, "|---|---|---|---|---|---|---|---|---|")?;
    for pair in norms {
        let Pair { name, before, after } = pair;
        writeln!(
            out,
            "| `{name}` | {:.0} | {:.0} | {:.2}x | {:.0} | {:.0} | {:.2}x | {} | {} |",
            before.machine,
            after.machine,
            pair.machine_ratio(),
            before.model,
            after.model,
            pair.model_ratio(),
            before.kernels,
            after.kernels,
        )?;
    }
    Ok(())
}

fn write_ranks(out: &mut dyn io::Write, models: &[Pair]) -> Result<()> {
    let rank = |with_host_calls: bool| {
        let models = models.iter().filter(|pair| with_host_calls || !pair.has_host_calls());
        let both = models.flat_map(|pair| [pair.before, pair.after]);
        let points: Vec<(f64, f64)> = both.map(|c| (c.model, c.machine)).collect();
        (points.len(), spearman(&points))
    };
    writeln!(
        out,
        "\n## Agreement in rank\n\n\
         Rank correlation (Spearman) of model and machine over `fixtures/models`, as written and \
         rewritten. Contractions and dynamic slices are done by the host: they take no time on the \
         machine, which begins anew after each, and of their cost only the wait for main memory is \
         counted here.\n\n\
         | modules | | correlation |\n|---|---|---|"
    )?;
    let ((all, of_all), (alone, of_alone)) = (rank(true), rank(false));
    writeln!(out, "| all | {all} | {of_all:.3} |")?;
    writeln!(out, "| without host calls | {alone} | {of_alone:.3} |")?;
    Ok(())
}

fn write_ratios<'a>(out: &mut dyn io::Write, pairs: impl Iterator<Item = &'a Pair>) -> Result<()> {
    let mut pairs: Vec<&Pair> = pairs.filter(|pair| !pair.has_host_calls()).collect();
    pairs.sort_by(|a, b| b.apart().total_cmp(&a.apart()));
    let changed = |pair: &&&Pair| pair.before.model != pair.after.model;
    let count = |of: &[&Pair]| (of.len(), of.iter().filter(|pair| pair.apart() <= AGREES).count());
    let (all, agree) = count(&pairs);
    let rewritten: Vec<&Pair> = pairs.iter().filter(changed).copied().collect();
    let (rewritten, rewritten_agree) = count(&rewritten);
    writeln!(
        out,
        "\n## Agreement in ratio\n\n\
         Before and after: of the norms and models without host calls, the modelled ratio is within \
         {AGREES}x of the simulated one for {agree} of {all}; of those that are rewritten, for \
         {rewritten_agree} of {rewritten}. The others:\n\n\
         | program | machine | model |\n|---|---|---|"
    )?;
    for pair in pairs.iter().filter(|pair| pair.apart() > AGREES) {
        let Pair { name, .. } = pair;
        writeln!(out, "| `{name}` | {:.2}x | {:.2}x |", pair.machine_ratio(), pair.model_ratio())?;
    }
    Ok(())
}

fn cycles(module: &Verified, target: &Target) -> Result<Cycles> {
    let by_host = |opcode| {
        matches!(
            opcode,
            Opcode::Dot | Opcode::Convolution | Opcode::DynamicSlice | Opcode::DynamicUpdateSlice
        )
    };
    let simplest =
        Options::new(target.clone()).with_passes(PassSelection::Pipeline("cleanup".to_owned()));
    let tidy = tilewright::optimize(module.clone(), &simplest)?.module;
    let (costs, latency) = instruction_costs(&tidy, target);
    let costs = costs.iter().filter(|cost| !by_host(tidy.opcode(cost.id)));
    let inputs = tilewright::random_inputs(module, 0)?;
    let (_, simulated) =
        simulate::run(module, &inputs, target, Strategy::Fused, &Limits::default())?;
    Ok(Cycles {
        model: costs.map(|cost| cost.cost.cycles).sum::<f64>() + latency,
        machine: simulated.counters.cycles,
        kernels: simulated.kernels.len(),
        host_calls: simulated.host_calls.values().sum(),
    })
}

/// Returns the texts in a folder, by name.
fn texts(folder: &Path) -> Result<Vec<PathBuf>> {
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

/// Returns the correlation of ranks; equal values share theirs.
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
