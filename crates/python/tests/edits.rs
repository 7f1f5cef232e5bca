//! What becomes of a module whose edit does not end well.

#[expect(dead_code, reason = "the package uses what this test does not")]
#[path = "../src/state.rs"]
mod state;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use state::{At, Cell, Gone, Unkept};
use tilewright::ir::{InstId, Module, Opcode, Verified, verify};

const TEXT: &str = "HloModule m\nENTRY main {\n  x = f32[4] parameter(0)\n  \
                    ROOT y = f32[4] negate(x)\n}\n";

fn cell() -> Cell {
    let loaded = tilewright::load_text("<text>", TEXT).expect("a valid module");
    Cell::new(Arc::new(loaded.module))
}

fn root(graph: &Module) -> InstId {
    let entry = graph.entry().expect("an entry");
    graph.computation(entry).root().expect("a root")
}

/// Adds a copy of the root, and makes it the root. Returns a handle of it.
fn edited(cell: &Cell) -> At {
    let epoch = cell.epoch();
    let at = |graph: &Module| At { id: root(graph), epoch };
    cell.begin().expect("no other edit is under way");
    let old = cell.read(at).expect("the module is there");
    let added = cell.edit(&[old], |graph| {
        let place = tilewright::ir::Position::End(graph.entry().expect("an entry"));
        let (op, shape) = (graph.op(old.id).clone(), graph.shape(old.id).clone());
        let id = graph.insert(place, op, shape, &[old.id], "z").expect("the operand exists");
        graph.set_root(id).expect("it exists");
        At { id, epoch }
    });
    added.expect("the module is under edit")
}

fn count(cell: &Cell) -> usize {
    cell.read(Module::instruction_count).expect("the module is there")
}

#[test]
fn an_edit_is_kept_if_it_verifies() {
    let cell = cell();
    let added = edited(&cell);
    cell.end(true, verify).expect("the edit is valid");
    assert_eq!(count(&cell), 3);
    let opcode = cell.at(added, Module::opcode).expect("handles outlive the edit");
    assert_eq!(opcode, Opcode::Negate);
}

#[test]
fn a_panic_of_the_verifier_ends_the_edit() {
    let cell = cell();
    let added = edited(&cell);
    let verifier = |_| -> Result<Verified, _> { panic!("a bug in the verifier") };
    let ended = catch_unwind(AssertUnwindSafe(|| cell.end(true, verifier).is_ok()));
    assert!(ended.is_err());
    assert_eq!(count(&cell), 2);
    assert!(matches!(cell.at(added, |_, _| ()), Err(Gone::Instruction)));
    assert!(cell.settled().is_some());
    edited(&cell);
    cell.end(true, verify).expect("the next edit is as any other");
    assert_eq!(count(&cell), 3);
}

#[test]
fn others_wait_until_an_edit_is_verified() {
    let cell = cell();
    edited(&cell);
    let ended = cell.end(true, |graph| {
        assert!(matches!(cell.begin(), Err(Gone::Editing)));
        assert!(matches!(cell.end(true, verify), Err(Unkept::Gone(Gone::NotEditing))));
        assert_eq!(count(&cell), 2);
        verify(graph)
    });
    ended.expect("the edit is valid");
    assert_eq!(count(&cell), 3);
}

#[test]
fn an_edit_that_is_not_valid_is_undone() {
    let cell = cell();
    let added = edited(&cell);
    let name = |graph: &mut Module| graph.set_name(added.id, "y");
    cell.edit(&[added], name).expect("the module is under edit");
    assert!(matches!(cell.end(true, verify), Err(Unkept::Rejected(_))));
    assert_eq!(count(&cell), 2);
    assert!(matches!(cell.at(added, |_, _| ()), Err(Gone::Instruction)));
}
