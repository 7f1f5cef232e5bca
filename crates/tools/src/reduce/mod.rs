//! Finds the smallest module for which a predicate holds: a crash, a difference, a slow compile.
//!
//! ```text
//! reductions (outputs, cuts, calls, ...) ── Draft ──► Module ──verify──► Candidate ──► predicate
//!        ▲                                                                              │
//!        └───────────────────────── the best module so far ◄────────────────────────────┘
//! ```
//!
//! - [`search`]: tries candidates in order and keeps the first that passes; [`race`]: some of them side
//!   by side.
//! - [`draft`]: changes to a module, and the module written anew with them.
//! - A file for each group of reductions: [`outputs`], [`cuts`], [`calls`], [`tuples`],
//!   [`parameters`], [`dims`], [`annotations`], [`names`].

mod annotations;
mod calls;
mod cuts;
mod dims;
mod draft;
mod fill;
mod names;
mod options;
mod outputs;
mod parameters;
mod race;
mod search;
mod size;
mod tuples;
mod walk;

use tilewright::Error;
use tilewright::ir::Verified;

use search::Search;

pub use options::{Candidate, ReduceOptions, ReduceStep};
pub use search::Ended;
pub use size::ReducedSize;

/// The smallest module that a search found.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Reduction {
    /// The module.
    pub module: Verified,
    /// Its text, which the predicate saw last of all that passed.
    pub text: String,
    /// The size of the module that the search began with.
    pub before: ReducedSize,
    /// The size of the module.
    pub after: ReducedSize,
    /// The number of runs of the predicate, without those that were made in advance in vain.
    pub runs: u64,
    /// Why the search ended.
    pub ended: Ended,
}

/// Finds the smallest module for which `keep` holds, by leaving out and simplifying parts of a
/// module for which it holds. `docs/reduce.md` lists the reductions.
///
/// The verifier accepts every candidate that `keep` sees, and no text is seen twice. `keep` is
/// called from several threads, but the result is that of a search with one, if `keep` always says
/// the same of the same text.
///
/// ```
/// use tilewright_tools::ReduceOptions;
///
/// # fn main() -> Result<(), tilewright::Error> {
/// let module = tilewright::parse(
///     "HloModule m
///      ENTRY main {
///        x = f32[64] parameter(0)
///        y = f32[64] sine(x)
///        z = f32[64] tanh(y)
///        ROOT w = f32[64] add(z, x)
///      }",
/// )?;
/// let has_tanh = |candidate: &tilewright_tools::Candidate<'_>| candidate.text.contains("tanh(");
/// let reduced = tilewright_tools::reduce(&module, &ReduceOptions::default(), &has_tanh)?;
/// assert_eq!(reduced.after.instructions, 2);
/// assert_eq!(reduced.after.elements, 2);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::NotKept`] if `keep` does not hold for the module as it is printed; an error if text
/// cannot express the module.
pub fn reduce(
    module: &Verified,
    options: &ReduceOptions<'_>,
    keep: &(dyn Fn(&Candidate<'_>) -> bool + Sync),
) -> Result<Reduction, Error> {
    let text = tilewright::print(module, &options.print)?;
    // Text leaves out what only the binary form has; candidates are what their text says.
    let module = tilewright::parse(&text)?;
    let mut search = Search::new(module, text, options, keep);
    let before = search.size;
    let ended = match search.holds() {
        Ok(false) => return Err(Error::NotKept),
        Ok(true) => run(&mut search).err().unwrap_or(Ended::Fixpoint),
        Err(ended) => ended,
    };
    let Search { best, text, size, runs, .. } = search;
    Ok(Reduction { module: best, text, before, after: size, runs, ended })
}

/// Applies all reductions, from coarse to fine, until none makes the module smaller.
fn run(search: &mut Search<'_>) -> Result<(), Ended> {
    // Runs on the whole module are the slowest. So first comes what makes all runs after it faster:
    // small arrays, then few outputs, which also leave parameters unused that tell whether parameters
    // may go.
    dims::all_at_once(search)?;
    outputs::elements(search)?;
    parameters::probe(search)?;
    annotations::all_at_once(search)?;
    calls::inline_all(search)?;
    loop {
        let mut any = outputs::run(search)?;
        any |= cuts::to_parameters(search)?;
        any |= calls::inline(search)?;
        any |= calls::merge(search)?;
        any |= tuples::run(search)?;
        any |= cuts::to_operands(search)?;
        any |= cuts::to_constants(search)?;
        any |= parameters::run(search)?;
        any |= dims::run(search)?;
        if !any {
            break;
        }
    }
    annotations::by_kind(search)?;
    names::run(search)
}
