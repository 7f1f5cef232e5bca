//! Makes dims small: dims that must have one size become 1, 2, 4 ... together.
//!
//! Every dim of every array is a slot. Ops link slots that have one size ([`links`]), or say that
//! a slot is the product of others (reshapes). Where the rule of an op is not clear, its slots keep
//! their sizes. The verifier refuses sizes that do not fit after all.

mod apply;
mod classes;
mod links;

use tilewright::ir::Module;

use self::classes::Classes;
use super::search::{Ended, Search};

/// The sizes that all dims are tried with at once.
const SIZES_OF_ALL: [i64; 4] = [1, 2, 4, 8];

/// Makes all dims small at once, so that later runs are faster. Sizes that fail cost little: runs of
/// small arrays are short.
pub(super) fn all_at_once(search: &mut Search<'_>) -> Result<bool, Ended> {
    let make = |module: &Module, number: usize| {
        let size = *SIZES_OF_ALL.get(number)?;
        let classes = Classes::of(module);
        let free: Vec<usize> = classes.free(size).collect();
        let sizes = classes.with_sizes(&free, size)?;
        apply::resized(module, &classes, &sizes)?.write(module)
    };
    Ok(search.first("dims", SIZES_OF_ALL.len(), &make)?.is_some())
}

/// Makes sets of classes of dims small, the largest sets and the smallest sizes first.
pub(super) fn run(search: &mut Search<'_>) -> Result<bool, Ended> {
    let mut any = false;
    let mut size = 1i64;
    while Classes::of(&search.best).free(size).next().is_some() {
        any |= search.sweep(
            "dims",
            &|module| Classes::of(module).free(size).collect(),
            &|module: &Module, chunk: &[usize]| {
                let classes = Classes::of(module);
                let sizes = classes.with_sizes(chunk, size)?;
                apply::resized(module, &classes, &sizes)?.write(module)
            },
        )?;
        size = size.saturating_mul(2);
    }
    Ok(any)
}
