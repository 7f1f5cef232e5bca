//! Groups that are no kernel, and why.

use tilewright::Target;
use tilewright::ir::Verified;
use tilewright::lower::{Group, LowerError, fused};
use tilewright::lowering::reduction;

use super::norms::cramped;
use super::{op, parsed, target};

/// A group of instructions by name.
fn group(module: &Verified, inputs: &[&str], outputs: &[&str]) -> Group {
    let entry = module.entry().unwrap();
    let named =
        |name: &&str| module.instructions(entry).find(|&id| module.name_of(id) == *name).unwrap();
    Group {
        name: "g".to_owned(),
        inputs: inputs.iter().map(named).collect(),
        outputs: outputs.iter().map(named).collect(),
    }
}

fn error(text: &str, inputs: &[&str], outputs: &[&str], target: &Target) -> LowerError {
    let module = parsed(text);
    let group = group(&module, inputs, outputs);
    fused(&module, &group, &|id| reduction(&module, id), target).unwrap_err()
}

#[test]
fn outputs_that_are_unlike() {
    let text = op(
        &["f32[512,128]"],
        "a = f32[512,128] negate(x0)\n  b = f32[128,128] slice(a), slice={[0:128], [0:128]}\n  \
         ROOT r = (f32[512,128], f32[128,128]) tuple(a, b)",
    );
    assert_eq!(error(&text, &["x0"], &["a", "b"], &cramped()), LowerError::Unlike);
    let text = op(
        &["f32[512,512]{1,0}"],
        "a = f32[512,512]{1,0} negate(x0)\n  b = f32[512,512]{0,1} abs(x0)\n  \
         ROOT r = (f32[512,512]{1,0}, f32[512,512]{0,1}) tuple(a, b)",
    );
    assert_eq!(error(&text, &["x0"], &["a", "b"], &cramped()), LowerError::Unlike);
}

#[test]
fn more_values_than_registers() {
    let text = op(&["f32[64]", "f32[64]"], "ROOT a = f32[64] add(x0, x1)");
    let mut target = target("tpu-like");
    target.vector_registers = 1;
    let expected = LowerError::Registers { used: 2, has: 1 };
    assert_eq!(error(&text, &["x0", "x1"], &["a"], &target), expected);
}

#[test]
fn more_results_than_vector_memory_holds() {
    let text = op(&["f32[64,200]"], "ROOT a = f32[64,200] negate(x0)");
    let mut target = target("tpu-like");
    // Of what is read and written two vectors each are there at one time.
    target.vector_memory_bytes = 4 * 4096;
    let module = parsed(&text);
    let whole = group(&module, &["x0"], &["a"]);
    let known = |id| reduction(&module, id);
    assert!(fused(&module, &whole, &known, &target).is_ok());
    target.vector_memory_bytes -= 1;
    assert_eq!(error(&text, &["x0"], &["a"], &target), LowerError::Results);
}

#[test]
fn what_kernels_do_not_compute() {
    let text = op(
        &["f32[8,8]", "f32[<=8]"],
        "a = f32[8,8] dot(x0, x0), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b = f32[8,8] negate(a)
  c = f32[<=8] negate(x1)
  ROOT r = (f32[8,8], f32[<=8]) tuple(b, c)",
    );
    let target = target("tpu-like");
    assert_eq!(error(&text, &["x0"], &["b"], &target), LowerError::Unsound);
    // A parameter that is no input.
    assert_eq!(error(&text, &[], &["b"], &target), LowerError::Unsound);
    assert_eq!(error(&text, &["x0"], &[], &target), LowerError::Unsound);
    // A tuple is no array.
    assert_eq!(error(&text, &["b", "c"], &["r"], &target), LowerError::Unsound);
    assert_eq!(error(&text, &["x1"], &["c"], &target), LowerError::Dynamic);
}

/// No kernel keeps track of thousands of instructions.
#[test]
fn too_many_instructions() {
    let mut body = String::new();
    for n in 0..600 {
        body.push_str(&format!(
            "  v{} = f32[64] negate({})\n",
            n + 1,
            match n {
                0 => "x0".to_owned(),
                n => format!("v{n}"),
            }
        ));
    }
    let text = op(&["f32[64]"], &format!("{body}  ROOT r = f32[64] abs(v600)"));
    assert_eq!(error(&text, &["x0"], &["r"], &target("tpu-like")), LowerError::TooLarge);
}
