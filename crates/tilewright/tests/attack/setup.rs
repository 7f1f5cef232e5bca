//! Sets up the hunt's rewrites: the passes, on every target and some with tiny memories.

use tilewright::Outcome;
use tilewright::ir::Verified;
use tilewright::{FloatMode, Options, Target, optimize};
use tilewright_testkit::attack::{Contract, Hunt, Mode, Rewritten};

type Rewriter = dyn Fn(&Verified, usize, Mode) -> Result<Option<Rewritten>, String> + Sync + Send;

/// The data that [`Hunt`] borrows.
pub(crate) struct Setup {
    names: Vec<String>,
    rewrite: Box<Rewriter>,
}

/// Returns the built-in machines and one engine, and each with so little memory that no array stays on chip.
fn targets() -> Vec<Target> {
    let mut targets = Vec::new();
    for name in Target::builtin_names().filter(|name| !name.starts_with("xla-")) {
        let mut builtin = Target::builtin(name).expect("a built-in target");
        // Small programs stand for large ones.
        builtin.small_saving_cycles = 0.0;
        let mut tiny = builtin.clone();
        tiny.name = format!("{name}, 1 KiB");
        tiny.vector_memory_bytes = 1 << 10;
        targets.extend([builtin, tiny]);
    }
    targets
}

impl Setup {
    /// With the default pipeline.
    pub(crate) fn new() -> Self {
        let targets = targets();
        let names = targets.iter().map(|target| target.name.clone()).collect();
        let rewrite = move |module: &Verified, target: usize, mode| {
            let options = options(&targets[target], mode);
            let optimized = optimize(module.clone(), &options).map_err(|e| e.to_string())?;
            let notes = optimized.report.notes.iter();
            let done = notes.filter(|note| note.outcome == Outcome::Done).map(ToString::to_string);
            Ok((!optimized.report.unchanged).then(|| (optimized.module, done.collect())))
        };
        Self { names, rewrite: Box::new(rewrite) }
    }

    /// Returns the hunt under the contract of the passes.
    pub(crate) fn hunt(&self) -> Hunt<'_> {
        // As `docs/numerics.md` promises.
        let contract = Contract { growth: 4.0, slack_ulps: 4.0, keeps_zero: true };
        Hunt { targets: &self.names, rewrite: &*self.rewrite, contract, targets_each: 3 }
    }
}

fn options(target: &Target, mode: Mode) -> Options {
    let options = Options::new(target.clone());
    match mode {
        Mode::Exact => options.with_float_mode(FloatMode::Exact),
        Mode::Default => options,
        Mode::FastMath => options.with_float_mode(FloatMode::Fast),
    }
}
