//! The hunt: programs and data of seeds, rewritten on targets, judged and shrunk.

use std::fmt;

use tilewright_ir::Verified;

use super::data::{Profile, inputs};
use super::judge::{Blame, Contract, Judge, Mode, Verdict};
use super::program::{Sizes, program};
use super::shrink::shrunk;
use crate::generate::rng::Rng;

/// A rewritten module, and what was done to it, in lines.
pub type Rewritten = (Verified, Vec<String>);

/// Rewrites a module for a target, by its number, and a mode; `None` if it is left as it
/// was. An error is a bug of a pass.
pub type Rewrite<'a> =
    &'a (dyn Fn(&Verified, usize, Mode) -> Result<Option<Rewritten>, String> + Sync);

/// The setting of a hunt.
#[derive(Clone, Copy)]
pub struct Hunt<'a> {
    /// The names of the targets.
    pub targets: &'a [String],
    /// The function that rewrites modules.
    pub rewrite: Rewrite<'a>,
    /// The default contract.
    pub contract: Contract,
    /// On how many targets a program is tried.
    pub targets_each: usize,
}

/// The outcome of a seed.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// How many rewrites changed the program.
    pub rewritten: usize,
    /// How many of these were judged.
    pub judged: usize,
    /// The first failure.
    pub failure: Option<Failure>,
}

/// A rewrite that went wrong.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The seed of the program and of the data.
    pub seed: u64,
    /// The program.
    pub module: Verified,
    /// The parts of the program, in words.
    pub what: String,
    /// The kind of the inputs.
    pub profile: Profile,
    /// The number and the name of the target.
    pub target: (usize, String),
    /// The mode.
    pub mode: Mode,
    /// The defect.
    pub blame: Blame,
    /// The notes of the passes on their rewrites.
    pub done: Vec<String>,
}

/// Wrong by this much is wrong under `--fast-math`, too, on tame data. Where terms cancel exactly,
/// no error is small beside the result.
const GROSS: Contract = Contract { growth: 64.0, slack_ulps: 4096.0, keeps_zero: false };

impl Hunt<'_> {
    /// Tries the program of a seed on some targets, in every mode.
    ///
    /// # Errors
    /// Returns an error if the program cannot be run, which is a defect of the generator.
    pub fn seed(&self, seed: u64) -> Result<Outcome, String> {
        let program = program(seed, Sizes::of_seed(seed));
        let mut rng = Rng::new(seed ^ 0xda7a);
        let profile = Profile::of_seed(seed);
        let mut targets: Vec<usize> = (0..self.targets.len()).collect();
        rng.shuffle(&mut targets);
        targets.truncate(self.targets_each);
        let mut outcome = Outcome::default();
        let mut judge = None;
        let mut seen = Vec::new();
        for &target in &targets {
            for mode in [Mode::Exact, Mode::Default, Mode::FastMath] {
                let failure = |blame, done| Failure {
                    seed,
                    module: program.module.clone(),
                    what: program.what.clone(),
                    profile,
                    target: (target, self.targets[target].clone()),
                    mode,
                    blame,
                    done,
                };
                let (rewritten, done) = match (self.rewrite)(&program.module, target, mode) {
                    Ok(Some(rewritten)) => rewritten,
                    Ok(None) => continue,
                    Err(error) => {
                        outcome.failure = Some(failure(Blame::Fails(error), Vec::new()));
                        return Ok(outcome);
                    }
                };
                let text = text_of(&rewritten);
                if seen.iter().any(|(known, how)| *known == text && *how <= mode) {
                    continue;
                }
                seen.push((text, mode));
                outcome.rewritten += 1;
                if judge.is_none() {
                    let data = inputs(&program.module, profile, seed)
                        .map_err(|error| error.to_string())?;
                    judge = Some(Judge::new(&program.module, data)?);
                }
                let Some(judge) = &mut judge else { continue };
                let Some(contract) = self.contract(mode, profile) else { continue };
                match judge.judge(&rewritten, mode, contract) {
                    Verdict::Fine => outcome.judged += 1,
                    Verdict::Unjudged(_) => {}
                    Verdict::Blamed(blame) => {
                        outcome.failure = Some(failure(blame, done));
                        return Ok(outcome);
                    }
                }
            }
        }
        Ok(outcome)
    }

    fn contract(&self, mode: Mode, profile: Profile) -> Option<Contract> {
        match mode {
            Mode::Exact | Mode::Default => Some(self.contract),
            Mode::FastMath => (profile == Profile::Tame).then_some(GROSS),
        }
    }

    /// Returns the defect of a module's rewrite, judged as for a failure.
    fn blame(&self, module: &Verified, failure: &Failure) -> Option<(Blame, Vec<String>)> {
        let data = inputs(module, failure.profile, failure.seed).ok()?;
        let (rewritten, done) = match (self.rewrite)(module, failure.target.0, failure.mode) {
            Ok(rewritten) => rewritten?,
            Err(error) => return Some((Blame::Fails(error), Vec::new())),
        };
        let contract = self.contract(failure.mode, failure.profile)?;
        match Judge::new(module, data).ok()?.judge(&rewritten, failure.mode, contract) {
            Verdict::Blamed(blame) => Some((blame, done)),
            Verdict::Fine | Verdict::Unjudged(_) => None,
        }
    }

    /// Returns the failure with the smallest program that fails in the same way, looking at no
    /// more than `tries`.
    pub fn shrunk(&self, failure: &Failure, tries: usize) -> Failure {
        let mut best = failure.clone();
        let fails = |module: &Verified| {
            self.blame(module, failure).is_some_and(|(blame, _)| blame.is_like(&failure.blame))
        };
        best.module = shrunk(&best.module, tries, &fails);
        for sizes in Sizes::of_seed(failure.seed).smaller() {
            let module = program(failure.seed, sizes).module;
            if fails(&module) {
                let smaller = shrunk(&module, tries, &fails);
                if smaller.instruction_count() <= best.module.instruction_count() {
                    best.module = smaller;
                }
                break;
            }
        }
        if let Some((blame, done)) = self.blame(&best.module, failure) {
            (best.blame, best.done) = (blame, done);
        }
        best
    }
}

fn text_of(module: &Verified) -> String {
    let printed = tilewright_text::print(module, &tilewright_text::PrintOptions::default());
    printed.unwrap_or_else(|error| error.to_string())
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (profile, target) = (self.profile.name(), &self.target.1);
        writeln!(f, "// {:?} of `{target}`, inputs `{profile}`", self.mode)?;
        writeln!(f, "// {:?}", self.blame)?;
        writeln!(f, "// {}", self.what)?;
        for line in &self.done {
            writeln!(f, "// {line}")?;
        }
        f.write_str(&text_of(&self.module))
    }
}
