//! Groups that are no kernel, and why.

use tilewright_ir::{Opcode, Verified};
use tilewright_lower::error::{NoRoom, TooLarge, Unsupported};
use tilewright_lower::{Group, LowerError, fused};
use tilewright_target::Target;

use super::harness::{parsed, the_lowered};

pub(crate) fn target(name: &str) -> Target {
    Target::builtin(name).unwrap()
}

/// Returns a machine with a megabyte of vector memory.
fn cramped() -> Target {
    let mut target = target("tpu-like");
    target.vector_memory_bytes = 1 << 20;
    target
}

/// One op of parameters `x0`, `x1` ... as a module.
pub(crate) fn op(shapes: &[&str], root: &str) -> String {
    let parameters = shapes.iter().enumerate();
    let parameters = parameters.map(|(n, shape)| format!("  x{n} = {shape} parameter({n})\n"));
    format!("HloModule m\nENTRY e {{\n{}  {root}\n}}", parameters.collect::<String>())
}

/// Returns a group of instructions by name.
pub(crate) fn group(module: &Verified, inputs: &[&str], outputs: &[&str]) -> Group {
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
    fused(&module, &group, target).unwrap_err()
}

#[test]
fn outputs_that_are_unlike() {
    let text = op(
        &["f32[512,128]"],
        "a = f32[512,128] negate(x0)\n  b = f32[128,128] slice(a), slice={[0:128], [0:128]}\n  \
         ROOT r = (f32[512,128], f32[128,128]) tuple(a, b)",
    );
    assert_eq!(error(&text, &["x0"], &["a", "b"], &cramped()).kind, Unsupported::Unlike.into());
    let text = op(
        &["f32[512,512]{1,0}"],
        "a = f32[512,512]{1,0} negate(x0)\n  b = f32[512,512]{0,1} abs(x0)\n  \
         ROOT r = (f32[512,512]{1,0}, f32[512,512]{0,1}) tuple(a, b)",
    );
    assert_eq!(error(&text, &["x0"], &["a", "b"], &cramped()).kind, Unsupported::Unlike.into());
}

#[test]
fn more_values_than_registers() {
    let text = op(&["f32[64]", "f32[64]"], "ROOT a = f32[64] add(x0, x1)");
    let mut target = target("tpu-like");
    target.vector_registers = 1;
    let expected = NoRoom::Registers { used: 2, has: 1 };
    assert_eq!(error(&text, &["x0", "x1"], &["a"], &target).kind, expected.into());
}

#[test]
fn more_results_than_vector_memory_holds() {
    let text = op(&["f32[64,200]"], "ROOT a = f32[64,200] negate(x0)");
    let mut target = target("tpu-like");
    // Two vectors of the input and two of the output exist at one time.
    target.vector_memory_bytes = 4 * 4096;
    let module = parsed(&text);
    let whole = group(&module, &["x0"], &["a"]);
    assert!(fused(&module, &whole, &target).is_ok());
    target.vector_memory_bytes -= 1;
    assert_eq!(error(&text, &["x0"], &["a"], &target).kind, NoRoom::Results.into());
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
    let found = error(&text, &["x0"], &["b"], &target);
    assert_eq!(found.kind, Unsupported::Op(Opcode::Dot).into());
    assert_eq!(found.site.instruction.as_deref(), Some("a"));
    assert_eq!(found.site.kernel.as_deref(), Some("g"));
    assert!(error(&text, &["x0"], &[], &target).is_internal());
    // A tuple is no array.
    assert!(error(&text, &["b", "c"], &["r"], &target).is_internal());
    let found = error(&text, &["x1"], &["c"], &target);
    assert_eq!(found.kind, Unsupported::Dynamic.into());
}

#[test]
fn a_parameter_that_is_no_input() {
    let text = op(&["f32[64]"], "ROOT a = f32[64] negate(x0)");
    let found = error(&text, &[], &["a"], &target("tpu-like"));
    assert_eq!(found.kind, Unsupported::Op(Opcode::Parameter).into());
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
    let found = error(&text, &["x0"], &["r"], &target("tpu-like"));
    assert_eq!(found.kind, TooLarge::Instructions(256).into());
}

/// A call of a computation that calls another twice, and so on, has no function; nor has a chain
/// of calls, however deep.
#[test]
fn computations_that_call_others() {
    let calls = |count: usize, body: &str| {
        let mut text = "HloModule m\nc0 { ROOT x = f32[] parameter(0) }\n".to_owned();
        for n in 1..=count {
            let callee = n - 1;
            let body = body.replace("CALLEE", &format!("to_apply=c{callee}"));
            text += &format!("c{n} {{ x = f32[] parameter(0) {body} }}\n");
        }
        text + &format!(
            "add {{ a = f32[] parameter(0) b = f32[] parameter(1) c = f32[] add(a, b) \
             ROOT d = f32[] call(c), to_apply=c{count} }}
ENTRY e {{ x = f32[8] parameter(0) z = f32[] constant(0) \
             ROOT r = f32[] reduce(x, z), dimensions={{0}}, to_apply=add }}"
        )
    };
    let twice = "a = f32[] call(x), CALLEE ROOT b = f32[] call(a), CALLEE";
    for (count, body) in [(40, twice), (20_000, "ROOT a = f32[] call(x), CALLEE")] {
        let module = parsed(&calls(count, body));
        assert!(tilewright_lower::reduction(&module, the_lowered(&module)).is_none());
    }
    let module = parsed(&calls(3, twice));
    assert!(tilewright_lower::reduction(&module, the_lowered(&module)).is_some());
}
