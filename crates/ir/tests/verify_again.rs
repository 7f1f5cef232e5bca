//! A module that is verified again, after edits that break it where it was well formed.

use crate::common::{add, parameter, shape};
use tilewright_ir::ops::Op;
use tilewright_ir::ops::control::CallAttrs;
use tilewright_ir::verify::{OPERAND, RESULT, verify};
use tilewright_ir::{CompId, InstId, Module, Position};

struct World {
    module: Module,
    called: CompId,
    p: InstId,
    q: InstId,
    user: InstId,
}

/// Returns a verified module: `user` adds `p` to itself, and `call` calls a computation with
/// `q`.
fn world() -> World {
    let mut module = Module::new("m");
    let called = module.add_computation("called");
    let a = add(&mut module, called, parameter(0), "f32[2]", &[], "a");
    add(&mut module, called, Op::Sinh, "f32[2]", &[a], "b");
    let main = module.add_computation("main");
    module.set_entry(main);
    let p = add(&mut module, main, parameter(0), "f32[4]", &[], "p");
    let q = add(&mut module, main, parameter(1), "f32[2]", &[], "q");
    let user = add(&mut module, main, Op::Add, "f32[4]", &[p, p], "user");
    let call = Op::Call(Box::new(CallAttrs { to_apply: called, is_composite: false }));
    let call = add(&mut module, main, call, "f32[2]", &[q], "call");
    add(&mut module, main, Op::Tuple, "(f32[4], f32[2])", &[user, call], "both");
    let module = verify(module).unwrap().into_inner();
    World { module, called, p, q, user }
}

/// Returns the codes of the errors, and the names of the instructions that have them.
fn errors(module: Module) -> Vec<(u16, String)> {
    let rejected = verify(module).unwrap_err();
    let module = &rejected.module;
    rejected.diagnostics.iter().map(|one| (one.code.0, one.describe(module))).collect()
}

#[test]
fn an_operand_of_another_shape() {
    let World { mut module, q, user, .. } = world();
    module.set_operand(user, 1, q).unwrap();
    let found = errors(module);
    assert!(
        matches!(found.as_slice(), [(code, text)] if *code == OPERAND.0 && text.contains("user")),
        "{found:?}"
    );
}

#[test]
fn a_parameter_of_another_shape() {
    let World { mut module, p, .. } = world();
    module.set_parameter_shape(p, shape("f32[8]")).unwrap();
    let found = errors(module);
    assert!(
        matches!(found.as_slice(), [(code, text)] if *code == RESULT.0 && text.contains("user")),
        "{found:?}"
    );
}

#[test]
fn a_called_computation_with_another_root() {
    let World { mut module, called, .. } = world();
    let a = module.computation(called).parameters()[0];
    let root = add(&mut module, called, Op::Tuple, "(f32[2])", &[a], "root");
    module.set_root(root).unwrap();
    let found = errors(module);
    // What is called may yield a tuple, but the call says that it is an array.
    assert!(
        matches!(found.as_slice(), [(code, text)] if *code == RESULT.0 && text.contains("`call`")),
        "{found:?}"
    );
}

#[test]
fn a_new_instruction_where_one_was_undone() {
    let World { mut module, p, q, user, .. } = world();
    module.begin_trial();
    let fine = module.insert(Position::Before(user), Op::Cosh, shape("f32[4]"), &[p], "fine");
    let again = verify(module).unwrap();
    let mut module = again.into_inner();
    module.roll_back();
    let other = module.insert(Position::Before(user), Op::Cosh, shape("f32[4]"), &[q], "other");
    assert_eq!(fine, other);
    let found = errors(module);
    assert!(
        matches!(found.as_slice(), [(code, text)] if *code == RESULT.0 && text.contains("other")),
        "{found:?}"
    );
}
