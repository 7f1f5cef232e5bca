//! Sums of products: the vectors that add products compute them, too, so that no tile of them is
//! stored.

use std::collections::BTreeMap;

use super::plan::Layout;
use super::program::{Binary, Reduction};
use super::steps::{Action, Along, Pass, Step, uses_of};

/// Lets sums of the steps of passes have both factors as arguments, where a step only multiplies two
/// values for a sum. `layouts` are those of reductions; there are `values` values.
pub(super) fn make(passes: &mut [Pass], layouts: &[Option<Layout>], values: usize) {
    let uses = uses_of(passes, values);
    for pass in passes {
        let mut left: Vec<Option<Step>> = Vec::with_capacity(pass.steps.len());
        let mut products: BTreeMap<usize, usize> = BTreeMap::new();
        for mut step in pass.steps.drain(..) {
            if is_product(&step) && uses.get(step.out) == Some(&1) {
                products.insert(step.out, left.len());
            }
            if is_sum(&step, layouts)
                && let Some(arg) = step.args.first()
                && let Some(&at) = products.get(&arg.value)
                && let Some(product) = left[at].take_if(|product| product.set == step.set)
            {
                step.args = product.args;
            }
            left.push(Some(step));
        }
        pass.steps = left.into_iter().flatten().collect();
    }
}

fn is_sum(step: &Step, layouts: &[Option<Layout>]) -> bool {
    let Action::Fold { reduction, .. } = step.action else { return false };
    let layout = layouts.get(reduction).and_then(Option::as_ref);
    layout.is_some_and(|layout| layout.reduction == Reduction::Sum)
}

/// Checks whether a step multiplies two values that have an element for each of its own.
fn is_product(step: &Step) -> bool {
    step.action == Action::Binary(Binary::Multiply)
        && step.args.iter().all(|arg| arg.along == Along::All)
        && step.stored.is_none()
        && !step.is_kept
}
