//! Compares two modules regardless of their internal ids.

use std::mem::take;

use tilewright_ir::entity::{CompId, Entity as _, InstId};
use tilewright_ir::{Extras, Module, Op};

/// The accuracy of a comparison.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    /// All parts are compared.
    All,
    /// All parts but metadata and stack tables are compared.
    WithoutMetadata,
}

/// Fails unless both modules hold the same in the same order.
pub(crate) fn assert_same(a: &Module, b: &Module, detail: Detail, what: &str) {
    assert_eq!(a.name, b.name, "{what}: module names");
    let (mut header_a, mut header_b) = (a.header.clone(), b.header.clone());
    // The order of header attributes means nothing, and text has its own order.
    header_a.other.sort_by(|(a, _), (b, _)| a.cmp(b));
    header_b.other.sort_by(|(a, _), (b, _)| a.cmp(b));
    if detail == Detail::WithoutMetadata {
        (header_a.stack_tables, header_b.stack_tables) = (None, None);
    }
    let (table_a, table_b) =
        (take(&mut header_a.origin_recovery), take(&mut header_b.origin_recovery));
    assert_eq!(format!("{header_a:?}"), format!("{header_b:?}"), "{what}: headers");
    assert_eq!(table_a.len(), table_b.len(), "{what}: lost arrays");
    for ((lost_a, a), (lost_b, b)) in table_a.iter().zip(&table_b) {
        let what = format!("{what}: lost {lost_a:?}");
        assert_eq!((lost_a, &a.replacement), (lost_b, &b.replacement), "{what}");
        match (&a.module, &b.module) {
            (Some(a), Some(b)) => assert_same(a, b, detail, &what),
            (a, b) => assert_eq!(a.is_some(), b.is_some(), "{what}"),
        }
    }
    let entry = |m: &Module| m.entry().map(|entry| m.computation(entry).name().to_owned());
    assert_eq!(entry(a), entry(b), "{what}: entries");
    assert_eq!(a.computations().len(), b.computations().len(), "{what}: computations");
    let (order_a, order_b) = (Positions::of(a), Positions::of(b));
    for (&in_a, &in_b) in a.computations().iter().zip(b.computations()) {
        let (comp_a, comp_b) = (a.computation(in_a), b.computation(in_b));
        let what = format!("{what}: {}", comp_a.name());
        assert_eq!(comp_a.name(), comp_b.name(), "{what}");
        assert_eq!(comp_a.execution_thread(), comp_b.execution_thread(), "{what}");
        assert_eq!(comp_a.len(), comp_b.len(), "{what}");
        let root = |m: &Positions, root: Option<InstId>| root.map(|root| m.instruction(root));
        assert_eq!(root(&order_a, comp_a.root()), root(&order_b, comp_b.root()), "{what}");
        let parameters =
            |m: &Positions, ids: &[InstId]| ids.iter().map(|&p| m.instruction(p)).collect();
        let (of_a, of_b): (Vec<usize>, Vec<usize>) =
            (parameters(&order_a, comp_a.parameters()), parameters(&order_b, comp_b.parameters()));
        assert_eq!(of_a, of_b, "{what}: parameters");
        for (x, y) in a.instructions(in_a).zip(b.instructions(in_b)) {
            let what = format!("{what}: {}", a.name_of(x));
            assert_eq!(order_a.facts(a, x, detail), order_b.facts(b, y, detail), "{what}");
        }
    }
}

/// The compared properties of an instruction.
type Facts = (String, Op, String, Vec<usize>, Option<String>, Extras, Vec<usize>);

/// The place of each computation and instruction in the module's order.
struct Positions {
    computations: Vec<usize>,
    instructions: Vec<usize>,
}

impl Positions {
    fn of(module: &Module) -> Self {
        let order = module.computations();
        let bound = order.iter().map(|c| c.index() + 1).max().unwrap_or(0);
        let mut computations = vec![usize::MAX; bound];
        let mut instructions = vec![usize::MAX; module.instruction_bound()];
        for (at, &computation) in order.iter().enumerate() {
            computations[computation.index()] = at;
            for (at, instruction) in module.instructions(computation).enumerate() {
                instructions[instruction.index()] = at;
            }
        }
        Self { computations, instructions }
    }

    fn instruction(&self, id: InstId) -> usize {
        self.instructions[id.index()]
    }

    fn facts(&self, module: &Module, id: InstId, detail: Detail) -> Facts {
        let mut op = module.op(id).clone();
        op.map_computations(&mut |c| CompId::from_index(self.computations[c.index()]));
        let operands = module.operands(id).iter().map(|&o| self.instruction(o)).collect();
        let metadata = module.metadata(id).filter(|_| detail == Detail::All);
        let mut extras = module.extras(id).cloned().unwrap_or_default();
        let before = std::mem::take(&mut extras.control_predecessors);
        let after = before.iter().map(|&p| self.instruction(p)).collect();
        // Edges are compared at their beginning only.
        let mut rest = Extras::default();
        rest.sharding = extras.sharding;
        rest.frontend_attributes = extras.frontend_attributes;
        rest.backend_config = extras.backend_config;
        rest.other = extras.other;
        (
            module.name_of(id).to_owned(),
            op,
            // Debug output distinguishes layouts that text does not.
            format!("{:?}", module.shape(id)),
            operands,
            metadata.map(|metadata| format!("{metadata:?}")),
            rest,
            after,
        )
    }
}
