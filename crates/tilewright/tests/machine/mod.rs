//! Whole modules on the machine, several instructions as one kernel, against the
//! interpreter.

mod chains;
mod control;
mod elementwise;
mod found;
mod host;
mod moves;
mod norms;
mod partition;
mod random;
mod small;
mod texts;

use tilewright::interp::compare::{Tolerance, compare};
use tilewright::interp::evaluate;
use tilewright::ir::{Literal, Verified};
use tilewright::lower::{HostReason, Lowered, Strategy, kernel};
use tilewright::lowering::fuse;
use tilewright::simulate::{Simulated, run as simulate};
use tilewright::targets::Alignment;
use tilewright::{Limits, PrintOptions, Target, random_inputs};

pub(crate) fn target(name: &str) -> Target {
    Target::builtin(name).unwrap()
}

/// Returns a machine none of whose widths is a power of two.
pub(crate) fn odd() -> Target {
    let mut target = target("mlu-like");
    target.name = "odd".to_owned();
    target.alignment = Alignment::Tiles;
    (target.lanes, target.sublanes) = (12, 6);
    target.vector_registers = 32;
    target.vector_memory_bytes = 256 * 1024;
    target
}

/// Returns the machines that everything runs on.
pub(crate) fn machines() -> [Target; 4] {
    [target("tpu-like"), target("mlu-like"), target("linear"), odd()]
}

pub(crate) fn parsed(text: &str) -> Verified {
    tilewright::parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// How near results must be to what the interpreter computes.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Near {
    /// The same bits.
    Same,
    /// As sums in another order are, and what depends on them.
    Sums,
}

/// Returns how the result of a machine differs from the expected one, if it does.
pub(crate) fn differs(near: Near, expected: &Literal, found: &Literal) -> Option<String> {
    if near == Near::Same {
        return (expected != found).then(|| format!("expected {expected:?}\nfound {found:?}"));
    }
    match compare(expected, found, Tolerance::of) {
        Ok(all) => all.into_iter().find(|one| !one.equal).map(|one| format!("{one:?}")),
        Err(error) => Some(error.to_string()),
    }
}

/// Asserts that the module made of kernels is well formed and computes the same.
pub(crate) fn fused_as_it_should(module: &Verified, target: &Target) -> Lowered {
    let text = tilewright::print(module, &PrintOptions::default()).unwrap();
    let kernels = fuse(module, target, Strategy::Fused)
        .unwrap_or_else(|e| panic!("{e} on {}\n{text}", target.name));
    for kernel in kernels.kernels.values() {
        let printed = kernel.to_string();
        let flaws = kernel::check(kernel, target);
        assert!(flaws.is_empty(), "{flaws:?}\n{printed}\n{text}");
        let read = kernel::parse(&printed).unwrap_or_else(|e| panic!("{e}\n{printed}"));
        assert_eq!(read.to_string(), printed);
    }
    let outlined = tilewright::print(&kernels.module, &PrintOptions::default()).unwrap();
    let read = parsed(&outlined);
    assert_eq!(tilewright::print(&read, &PrintOptions::default()).unwrap(), outlined);
    kernels
}

/// Runs a module on a machine.
pub(crate) fn ran(near: Near, module: &Verified, target: &Target, inputs: &[Literal]) -> Simulated {
    let printed = || tilewright::print(module, &PrintOptions::default()).unwrap();
    let text = || format!("on {}\n{}", target.name, printed());
    let limits = Limits::default();
    let expected = evaluate(module, inputs, &limits).unwrap();
    let kernels = fused_as_it_should(module, target);
    let outlined = evaluate(&kernels.module, inputs, &limits).unwrap();
    assert_eq!(outlined, expected, "outlined {}", text());
    let (outputs, ran) = simulate(module, inputs, target, Strategy::Fused, &limits)
        .unwrap_or_else(|e| panic!("{e} {}", text()));
    if let Some(why) = differs(near, &expected, &outputs.output) {
        panic!("{why} {}", text());
    }
    // Whatever the host runs, lowering has said why.
    let said = |op: &&str| {
        kernels.host_calls.iter().any(|call| {
            // The host runs the instructions of a program's fusion one by one.
            call.reason == HostReason::Fusion || kernels.module.opcode(call.id).name() == *op
        })
    };
    assert!(ran.host_calls.keys().all(said), "{:?} {}", ran.host_calls, text());
    ran
}

/// Asserts that every machine computes what the interpreter does, without the host.
pub(crate) fn agrees(near: Near, text: &str) {
    let module = parsed(text);
    let inputs = random_inputs(&module, 0).unwrap();
    for target in machines() {
        let ran = ran(near, &module, &target, &inputs);
        assert!(ran.host_calls.is_empty(), "{:?} on {}\n{text}", ran.host_calls, target.name);
    }
}

/// How many runs there were, and of what.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    /// All of them.
    pub(crate) runs: usize,
    /// Those in which a kernel ran.
    pub(crate) with_kernels: usize,
    /// Those in which kernels ran, and the host ran nothing.
    pub(crate) without_host: usize,
}

impl Tally {
    pub(crate) fn count(&mut self, ran: &Simulated) {
        let has_kernels = !ran.kernels.is_empty();
        self.runs += 1;
        self.with_kernels += usize::from(has_kernels);
        self.without_host += usize::from(has_kernels && ran.host_calls.is_empty());
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.runs += other.runs;
        self.with_kernels += other.with_kernels;
        self.without_host += other.without_host;
    }
}

/// Asserts that every machine computes what the interpreter does, with or without the host.
pub(crate) fn agrees_somehow(near: Near, text: &str) -> Tally {
    let module = parsed(text);
    let inputs = random_inputs(&module, 0).unwrap();
    let mut tally = Tally::default();
    for target in machines() {
        tally.count(&ran(near, &module, &target, &inputs));
    }
    tally
}

/// One op of parameters `x0`, `x1` ... as a module.
pub(crate) fn op(shapes: &[&str], root: &str) -> String {
    let parameters = shapes.iter().enumerate();
    let parameters = parameters.map(|(n, shape)| format!("  x{n} = {shape} parameter({n})\n"));
    format!("HloModule m\nENTRY e {{\n{}  {root}\n}}", parameters.collect::<String>())
}
