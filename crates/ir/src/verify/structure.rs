//! Checks names, order, parameters, use lists and control edges.

use rustc_hash::{FxBuildHasher, FxHashSet};

use super::Report;
use crate::diag::DiagnosticPlace;
use crate::entity::{CompId, InstId, SecondaryMap};
use crate::module::Module;
use crate::ops::Op;

/// An instruction, as far as the walk over the module has come.
#[derive(Clone, Copy, Default)]
struct Met {
    /// The computation in which the walk came past it.
    computation: Option<CompId>,
    /// The operands met so far that are this instruction.
    uses: usize,
}

pub(super) fn check(module: &Module, report: &mut Report) {
    if !module.entry().is_some_and(|entry| module.computations().contains(&entry)) {
        report.add(
            super::NO_ENTRY,
            DiagnosticPlace::Module,
            "no computation is the entry; mark one `ENTRY`",
        );
    }
    let mut names = FxHashSet::default();
    let mut seen = FxHashSet::default();
    let mut met = SecondaryMap::new();
    met.fill(module.instruction_bound());
    for &id in module.computations() {
        let computation = module.computation(id);
        if !names.insert(computation.name()) {
            let message = format!("another computation is named `{}` too", computation.name());
            report.add(super::DUPLICATE_COMPUTATION, DiagnosticPlace::Computation(id), message);
        }
        if computation.is_empty() {
            let message = "it has no instructions; it needs at least its root";
            report.add(super::EMPTY_COMPUTATION, DiagnosticPlace::Computation(id), message);
        }
        check_parameters(module, id, report);
        check_instructions(module, id, &seen, &mut met, report);
        seen.insert(id);
    }
}

fn check_parameters(module: &Module, id: CompId, report: &mut Report) {
    for (expected, &parameter) in module.computation(id).parameters().iter().enumerate() {
        let number = module.parameter_number(parameter);
        if usize::try_from(number) != Ok(expected) {
            let message = format!(
                "parameter number {number} is repeated or leaves a gap; {expected} was expected"
            );
            report.add(super::PARAMETERS, DiagnosticPlace::Instruction(parameter), message);
            return;
        }
    }
    check_parameter_list(module, id, report);
}

/// The listed parameters of a computation must be its parameter instructions.
fn check_parameter_list(module: &Module, id: CompId, report: &mut Report) {
    let listed: FxHashSet<InstId> = module.computation(id).parameters().iter().copied().collect();
    for instruction in module.instructions(id) {
        let is_parameter = matches!(module.op(instruction), Op::Parameter(_));
        if is_parameter && !listed.contains(&instruction) {
            let message = "it is a parameter that its computation does not list";
            report.add(super::PARAMETERS, DiagnosticPlace::Instruction(instruction), message);
        }
    }
}

fn check_instructions(
    module: &Module,
    computation: CompId,
    earlier: &FxHashSet<CompId>,
    met: &mut SecondaryMap<InstId, Met>,
    report: &mut Report,
) {
    let are_unique = module.names.are_verified();
    let named = if are_unique { 0 } else { module.computation(computation).len() };
    let mut names = FxHashSet::with_capacity_and_hasher(named, FxBuildHasher);
    for id in module.instructions(computation) {
        let place = DiagnosticPlace::Instruction(id);
        if !are_unique && !names.insert(module.name_of(id)) {
            let message = "another instruction of the computation has this name too";
            report.add(super::DUPLICATE_INSTRUCTION, place, message);
        }
        for &operand in module.operands(id) {
            met.get_mut(operand).uses += 1;
            if met[operand].computation != Some(computation) {
                let message = format!(
                    "operand `{}` does not stand before it in this computation",
                    module.name_of(operand)
                );
                report.add(super::OPERAND_ORDER, place, message);
            }
        }
        check_control(module, id, &|other| met[other].computation == Some(computation), report);
        module.op(id).for_each_computation(&mut |callee| {
            if !earlier.contains(&callee) {
                let message = format!(
                    "computation `{}` must stand before this call of it",
                    module.computation(callee).name()
                );
                report.add(super::CALL_ORDER, place, message);
            }
        });
        met.get_mut(id).computation = Some(computation);
    }
    for id in module.instructions(computation) {
        let expected = met[id].uses;
        let names_users = || {
            let mut uses = module.uses(id);
            uses.all(|u| module.operands(u.user).get(u.operand) == Some(&id))
        };
        // A change of an operand is an edit of the old and the new one.
        let exact = module.instruction(id).use_count() == expected
            && (module.is_verified(id) || names_users());
        if !exact {
            let message = format!("it has {expected} uses, but its use list says otherwise");
            report.add(super::USE_LISTS, DiagnosticPlace::Instruction(id), message);
        }
    }
}

fn check_control(
    module: &Module,
    id: InstId,
    is_before: &dyn Fn(InstId) -> bool,
    report: &mut Report,
) {
    let Some(extras) = module.extras(id) else { return };
    for &predecessor in &extras.control_predecessors {
        if !is_before(predecessor) {
            let message = format!(
                "control predecessor `{}` does not stand before it in this computation",
                module.name_of(predecessor)
            );
            report.add(super::CONTROL_ORDER, DiagnosticPlace::Instruction(id), message);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::edit::Position;
    use crate::module::Module;
    use crate::ops::Op;
    use crate::ops::shaping::ParameterAttrs;
    use crate::types::element::ElementType;
    use crate::types::shape::Shape;
    use crate::verify::{PARAMETERS, check};

    /// No edit makes an op a parameter; this guards against errors in `edit`.
    #[test]
    fn parameters_are_those_among_the_instructions() {
        let mut module = Module::new("m");
        let main = module.add_computation("main");
        module.set_entry(main);
        let parameter = |number| Op::Parameter(Box::new(ParameterAttrs { number }));
        let mut insert = |op, operands: &[_], name: &str| {
            module.insert(Position::End(main), op, Shape::scalar(ElementType::F32), operands, name)
        };
        let inserted = insert(parameter(0), &[], "x").and_then(|x| insert(Op::Sinh, &[x], "y"));
        let Ok(y) = inserted else { return assert_eq!(inserted.err(), None) };
        assert_eq!(check(&module), []);
        module.instructions[y].op = parameter(5);
        let found: Vec<_> = check(&module).into_iter().map(|d| (d.code, d.message)).collect();
        let message = "it is a parameter that its computation does not list";
        assert!(found.contains(&(PARAMETERS, message.to_owned())), "{found:?}");
    }
}
