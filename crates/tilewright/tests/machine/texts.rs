//! Kernels as text, each read by a person.

use tilewright::{Options, Target, optimize};

use super::norms::{cramped, group_norm, softmax};
use super::{fused_as_it_should, op, parsed, target};

/// Returns the kernels of a module, in the order of its text.
fn kernels(module: &tilewright::Verified, target: &Target) -> Vec<String> {
    let made = fused_as_it_should(module, target);
    let entry = made.module.instructions(made.module.entry().unwrap());
    entry.filter_map(|id| Some(made.kernels.get(&id)?.to_string())).collect()
}

#[test]
fn rows() {
    let module = parsed(&softmax("[2,24,200]", "[2,24]"));
    let [kernel] = &kernels(&module, &target("tpu-like"))[..] else { panic!("one kernel") };
    insta::assert_snapshot!("softmax", kernel);
}

/// The second of three: sums of squares, with the means that it needs.
#[test]
fn sums_of_squares() {
    let module = parsed(&group_norm([4, 16, 16, 8, 6]));
    let module = optimize(module, &Options::new(cramped())).unwrap().module;
    let [_, variance, _] = &kernels(&module, &cramped())[..] else { panic!("three kernels") };
    insta::assert_snapshot!("variance", variance);
}

#[test]
fn transposed() {
    let text = op(&["f32[16,256]"], "ROOT r = f32[256,16] transpose(x0), dimensions={1,0}");
    let [kernel] = &kernels(&parsed(&text), &target("tpu-like"))[..] else { panic!("one kernel") };
    insta::assert_snapshot!("transpose", kernel);
}
