//! Asynchronous ops, written out and wrapped.
use tilewright_ir::{InstId, Module, Op, Opcode};
use tilewright_text::parse;

fn module(text: &str) -> Module {
    match parse(text) {
        Ok(parsed) => parsed.module,
        Err(errors) => panic!("{errors}\nin\n{text}"),
    }
}

/// Returns a module with an entry of these lines after one parameter.
fn with_lines(lines: &str) -> Module {
    module(&format!("HloModule m\n\nENTRY main {{\n  x = f32[4,6] parameter(0)\n{lines}\n}}\n"))
}

fn root(module: &Module) -> InstId {
    module.computation(module.entry().unwrap()).root().unwrap()
}

fn named(module: &Module, name: &str) -> InstId {
    let entry = module.entry().unwrap();
    module.instructions(entry).find(|&id| module.name_of(id) == name).unwrap()
}

#[test]
fn asynchronous_forms_of_any_op() {
    let module = with_lines(
        "s = ((f32[4,6]), f32[8], s32[]) custom-call-start(x), custom_call_target=\"t\", async_execution_thread=\"host\", metadata={op_name=\"n\"}\n\
         u = ((f32[4,6]), f32[8], s32[]) custom-call-update(s)\n\
         ROOT d = f32[8] custom-call-done(u)",
    );
    let start = named(&module, "s");
    let Op::AsyncStart(attrs) = module.op(start) else { panic!("not an async-start") };
    assert_eq!(attrs.async_execution_thread.as_deref(), Some("host"));
    assert!(module.metadata(start).is_some());
    let wrapped = module.computation(attrs.calls.unwrap());
    assert_eq!((wrapped.name(), wrapped.execution_thread()), ("async_wrapped", Some("host")));
    let inner = wrapped.root().unwrap();
    assert_eq!(module.opcode(inner), Opcode::CustomCall);
    assert_eq!(module.shape(inner).to_string(), "f32[8]");
    assert_eq!(module.opcode(root(&module)), Opcode::AsyncDone);
    tilewright_ir::verify(module).unwrap();
}

#[test]
fn aliases_of_asynchronous_forms() {
    let module = with_lines(
        "s = ((f32[4,6]), f32[4,6], s32[]) negate-start(x), output_to_operand_aliasing={{1}: (0, {})}\n\
         d = f32[4,6] negate-done(s)\n\
         t = ((f32[4,6]), f32[4,6], s32[]) custom-call-start(d), custom_call_target=\"t\", output_to_operand_aliasing={{}: (0, {})}\n\
         ROOT r = f32[4,6] custom-call-done(t)",
    );
    let attrs = |name| match module.op(named(&module, name)) {
        Op::AsyncStart(attrs) => attrs.clone(),
        _ => panic!("not an async-start"),
    };
    assert_eq!(attrs("s").output_to_operand_aliasing[0].output.as_slice(), [1]);
    assert!(attrs("t").output_to_operand_aliasing.is_empty(), "they are the custom-call's");
    let wrapped = module.computation(attrs("t").calls.unwrap()).root().unwrap();
    let Op::CustomCall(inner) = module.op(wrapped) else { panic!("not a custom-call") };
    assert_eq!(inner.output_to_operand_aliasing.len(), 1);
    tilewright_ir::verify(module).unwrap();
}

/// Asynchronous computations run on the thread of their start, with all that they call, as XLA
/// reads them.
#[test]
fn a_start_says_the_thread_of_what_it_runs() {
    let module = module(
        "HloModule m
inner {
  a = f32[] parameter(0)
  ROOT b = f32[] negate(a)
}
run {
  x = f32[] parameter(0)
  ROOT y = f32[] call(x), to_apply=inner
}
ENTRY e {
  p = f32[] parameter(0)
  s = ((f32[]), f32[]) async-start(p), async_execution_thread=\"other\", calls=run
  ROOT d = f32[] async-done(s)
}",
    );
    let threads: Vec<Option<&str>> =
        module.computations().iter().map(|&c| module.computation(c).execution_thread()).collect();
    assert_eq!(threads, [Some("other"), Some("other"), None]);
}
