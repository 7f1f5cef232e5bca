//! How often the normalised array is read for a norm and its gradient, counted on the graph: by
//! default at most four times, and with fast math twice, which is the least there can
//! be: once for all sums, and once for what is computed with them.

use crate::common::{module, target};
use tilewright_rewrite::numbers::FloatMode;
use tilewright_rewrite::{Options, optimize};
use tilewright_testkit::fixture::fixtures;

/// Norms at real sizes with their gradients, by the beginning of their names.
///
/// A norm that rounds the centred array to bf16 is not among them: its sums depend on each other.
const NORMS: [&str; 11] = [
    "batch_norm_grad",
    "ghost_batch_norm_inner_grad",
    "ghost_batch_norm_inner_one_pass_grad",
    "ghost_batch_norm_outer_grad",
    "group_norm_bf16_grad_",
    "group_norm_bf16_stats_grad_",
    "group_norm_nchw_",
    "group_norm_nhwc_",
    "group_norm_strided_",
    "instance_norm_grad",
    "layer_norm_grad",
];

/// Norms followed by an activation: the values that the gradient sums wait for the statistics.
const WITH_ACTIVATION: [&str; 2] = ["group_norm_silu_grad", "group_norm_remat_grad"];

/// Counts the memory sweeps of every gradient at real size whose name begins with one of these
/// prefixes: as JAX writes it, by default, and with fast math.
fn counted(prefixes: &[&str]) -> Vec<(String, [usize; 3])> {
    let files = fixtures("real").expect("a folder of fixtures").into_iter();
    let files = files.filter(|file| {
        file.name.contains("_grad") && prefixes.iter().any(|prefix| file.name.starts_with(prefix))
    });
    let counted = files.map(|file| {
        let before = module(&file.text().expect("a readable file"));
        let sweeps = |mode| {
            let options = Options::new(target("tpu-like")).with_float_mode(mode);
            let after = optimize(before.clone(), &options).expect("an optimised module");
            after.report.memory_sweeps
        };
        let ([original, default], [_, fast]) =
            (sweeps(FloatMode::Guarded), sweeps(FloatMode::Fast));
        (file.name.clone(), [original, default, fast])
    });
    counted.collect()
}

#[test]
fn a_norm_and_its_gradient_read_the_array_as_often_as_they_must() {
    let norms = counted(&NORMS);
    assert!(norms.len() >= 15, "{} programs", norms.len());
    for (name, [original, default, fast]) in norms {
        assert!(default <= 4 && default <= original, "{name}: {default} instead of {original}");
        assert!(fast <= 2, "{name}: {fast} with fast math, {default} without");
    }
}

#[test]
fn an_activation_costs_one_pass_more() {
    let norms = counted(&WITH_ACTIVATION);
    assert_eq!(norms.len(), WITH_ACTIVATION.len());
    for (name, [original, default, fast]) in norms {
        assert!(default <= 4 && default < original, "{name}: {default} instead of {original}");
        assert_eq!(fast, 3, "{name}: {default} without fast math");
    }
}
