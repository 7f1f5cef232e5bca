//! Passes that go round in circles.

use tilewright_ir::{Builder, EditError, ElementType, Opcode, Shape};
use tilewright_target::Target;

use super::*;

/// Makes the next instruction the root, after the last the first.
struct Round;

impl Pass for Round {
    fn name(&self) -> &'static str {
        "round"
    }

    fn summary(&self) -> &'static str {
        "go round in circles"
    }

    fn is_heart(&self) -> bool {
        true
    }

    fn run(&self, module: &mut Module, _cx: &mut Context<'_>) -> Result<usize, EditError> {
        let Some(entry) = module.entry() else { return Ok(0) };
        let all: Vec<InstId> = module.instructions(entry).collect();
        let root = module.computation(entry).root();
        let at = all.iter().position(|&id| Some(id) == root).map_or(0, |at| at + 1);
        module.set_root(all[at % all.len()])?;
        Ok(1)
    }
}

/// Three values, of which the last is the result.
fn three() -> Verified {
    let mut b = Builder::new("three");
    let x = b.parameter("x", Shape::array(ElementType::F32, [8, 128])).expect("a parameter");
    let y = b.unary(Opcode::Negate, x).expect("an op");
    let z = b.unary(Opcode::Negate, y).expect("an op");
    b.finish(z).expect("a module")
}

#[test]
fn a_list_that_goes_round_in_circles_stops_where_it_cost_least() {
    let options = Options::new(Target::builtin(Target::DEFAULT).expect("a target"));
    let before = three();
    let mut run = Run {
        module: (*before).clone(),
        options: &options,
        most_instructions: 3,
        fuel: u64::MAX,
        passes: Vec::new(),
        notes: Vec::new(),
        heart: 0,
        observe: &mut |_, _| {},
    };
    let plan = Plan { first: Vec::new(), cleanup: vec![&Round], heart: Vec::new() };
    assert_eq!(run.rounds(&plan).expect("a run"), StopReason::Fixpoint);
    // A parameter as the result need not be stored.
    let entry = run.module.entry().expect("an entry");
    let root = run.module.computation(entry).root().expect("a root");
    assert_eq!(run.module.opcode(root), Opcode::Parameter);
    assert_eq!(run.passes[0].changes, 1, "what was taken back is not counted");
    assert_eq!(run.notes.len(), 1, "{:?}", run.notes);
}
