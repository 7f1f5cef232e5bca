//! Compares two modules over a finite field: the oracle without tolerance.

use tilewright_interp::algebra::{AlgebraOptions, Verdict, compare};
use tilewright_ir::Verified;

use crate::check::{CheckOptions, comparable};
use crate::error::Error;

/// Compares the outputs of two modules, tuples flattened in order, with floats as elements of a
/// finite field, in which nothing is rounded: see `docs/check.md`. The verdict on an output that
/// cannot be decided, or not within the limits, is [`Verdict::Undecided`].
///
/// ```
/// use tilewright::CheckOptions;
///
/// # fn main() -> Result<(), tilewright::Error> {
/// let module = |sum: &str| {
///     tilewright::parse(&format!(
///         "HloModule m
///          ENTRY main {{
///            x = f32[4] parameter(0)
///            y = f32[4] parameter(1)
///            z = f32[4] multiply(x, y)
///            ROOT s = f32[4] {sum}
///          }}"
///     ))
/// };
/// let how = CheckOptions::default();
/// let verdicts = tilewright::algebra(&module("add(x, z)")?, &module("add(z, x)")?, &how)?;
/// assert_eq!(verdicts[0].to_string(), "equal");
/// let verdicts = tilewright::algebra(&module("add(x, z)")?, &module("add(z, y)")?, &how)?;
/// assert_eq!(verdicts[0].to_string(), "differs at [0]");
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns an error if the modules differ in the types of parameters or results.
pub fn algebra(
    a: &Verified,
    b: &Verified,
    options: &CheckOptions<'_>,
) -> Result<Vec<Verdict>, Error> {
    comparable(a, b)?;
    Ok(verdicts(a, b, options))
}

/// Like [`algebra()`], for modules with the same parameter and result shapes.
pub(crate) fn verdicts(a: &Verified, b: &Verified, options: &CheckOptions<'_>) -> Vec<Verdict> {
    compare(a, b, &over_field(options))
}

/// Returns the options of an evaluation over the field, within the limits of `options` and of
/// the field.
pub(crate) fn over_field(options: &CheckOptions<'_>) -> AlgebraOptions {
    let least = AlgebraOptions::default();
    let mut limits = options.limits;
    limits.max_steps = limits.max_steps.min(least.limits.max_steps);
    limits.max_bytes = limits.max_bytes.min(least.limits.max_bytes);
    AlgebraOptions { seed: options.first_seed, limits }
}
