//! The text of notes: which sums share a core, and which factors were pulled out of them.

use rustc_hash::FxHashMap;
use tilewright_ir::{InstId, Module, Opcode};

use crate::sums::factor::{Core, Form, Sum};
use crate::sums::product::{Factor, Law};

/// The most names listed; further ones are only counted.
const MOST_NAMES: usize = 4;

/// Returns the first few cores, each with the sums that are computed from it.
pub(super) fn explain<'a>(
    module: &Module,
    sums: impl Iterator<Item = (&'a Sum, &'a Option<Form>)>,
) -> String {
    let mut places: FxHashMap<&Core, usize> = FxHashMap::default();
    let mut cores: Vec<(&Core, Vec<(&Sum, &Form)>)> = Vec::new();
    for (sum, form) in sums {
        let Some(form) = form else { continue };
        let place = *places.entry(&form.core).or_insert(cores.len());
        match cores.get_mut(place) {
            Some((_, takers)) => takers.push((sum, form)),
            None => cores.push((&form.core, vec![(sum, form)])),
        }
    }
    let told = cores.iter().take(MOST_NAMES).map(|(core, takers)| one(module, core, takers));
    let mut told = told.collect::<Vec<_>>().join("; ");
    if let Some(more) = cores.len().checked_sub(MOST_NAMES).filter(|&more| more > 0) {
        told += &format!("; and {more} more");
    }
    told
}

fn one(module: &Module, core: &Core, takers: &[(&Sum, &Form)]) -> String {
    let results = names(module, takers.iter().map(|(sum, _)| sum.id));
    let (times, over) = match core.law {
        Law::Times | Law::Scale => (" * ", "1/"),
        Law::Plus => (" + ", "-"),
        Law::And => (" and ", ""),
        Law::Or => (" or ", ""),
    };
    let factors = core.factors.iter().map(|factor| {
        let sign = if factor.divides { over } else { "" };
        format!("{sign}`{}`", module.name_of(factor.value))
    });
    let product = factors.collect::<Vec<_>>().join(times);
    let what = match core.monoid.opcode {
        Opcode::Add => "sum",
        opcode => opcode.name(),
    };
    let one = if takers.len() == 1 { "the" } else { "one" };
    let forms =
        takers.iter().flat_map(|(_, form)| form.between.factors.iter().chain(&form.after.factors));
    let mut out: Vec<&Factor> = forms.collect();
    out.sort_unstable();
    out.dedup();
    let out = names(module, out.into_iter().map(|factor| factor.value));
    let out = if out.is_empty() { out } else { format!(", with {out} pulled out") };
    format!("{results} from {one} {what} of {product}{out}")
}

/// Returns the first of these names, each in quotes.
fn names(module: &Module, ids: impl Iterator<Item = InstId>) -> String {
    let ids: Vec<InstId> = ids.collect();
    let shown = ids.iter().take(MOST_NAMES).map(|&id| format!("`{}`", module.name_of(id)));
    let mut names = shown.collect::<Vec<_>>().join(", ");
    if let Some(more) = ids.len().checked_sub(MOST_NAMES).filter(|&more| more > 0) {
        names += &format!(" and {more} more");
    }
    names
}
