//! Every edit keeps use lists, order, parameters and control edges exact; a
//! refused one changes nothing.
use crate::common;
use crate::common::{Small, add, names, parameter, picture, shape, small, uses};
use tilewright_ir::Sharding;
use tilewright_ir::sharding::Placement;
use tilewright_ir::{
    EditError, Extras, InstId, Layout, Module, Op, OpMetadata, Opcode, Position, Shape,
};

/// The edit is refused with this error, and nothing has changed.
#[track_caller]
fn refused<T: std::fmt::Debug>(
    module: &mut Module,
    edit: impl FnOnce(&mut Module) -> Result<T, EditError>,
    error: &EditError,
) {
    let before = picture(module);
    assert_eq!(&edit(module).unwrap_err(), error);
    assert_eq!(picture(module), before);
}

#[test]
fn inserting_links_uses_and_neighbours() {
    let Small { mut module, main, x, y, sum, twice, root } = small();
    assert_eq!(names(&module, main), ["x", "y", "sum", "twice", "root"]);
    assert_eq!(uses(&module, x), ["sum.0", "root.1"]);
    assert_eq!(uses(&module, sum), ["twice.0", "twice.1"]);
    assert_eq!(module.users(sum).as_slice(), [twice]);
    assert_eq!(module.instruction(sum).use_count(), 2);
    assert_eq!(uses(&module, root), [""; 0]);

    let at = Position::Before(twice);
    let new = module.insert(at, Op::Subtract, shape("f32[4]"), &[sum, x], "new").unwrap();
    assert_eq!(names(&module, main), ["x", "y", "sum", "new", "twice", "root"]);
    assert_eq!(uses(&module, x), ["sum.0", "root.1", "new.1"]);
    assert_eq!(uses(&module, sum), ["twice.0", "twice.1", "new.0"]);
    assert_eq!(module.operands(new), [sum, x]);
    assert_eq!(module.instruction(new).parent(), Some(main));
    assert_eq!(module.next_instruction(new), Some(twice));
    assert_eq!(module.next_instruction(root), None);

    module.insert(Position::Before(x), Op::AfterAll, Shape::Token, &[], "first").unwrap();
    module.insert(Position::End(main), Op::AfterAll, Shape::Token, &[y], "last").unwrap();
    assert_eq!(names(&module, main), ["first", "x", "y", "sum", "new", "twice", "root", "last"]);
    let backwards: Vec<InstId> = module.instructions(main).rev().collect();
    assert_eq!(backwards.len(), module.instructions(main).len());
    assert_eq!(backwards[1], root);
    assert_eq!(module.instruction_count(), 8);
}

#[test]
fn both_ends_of_the_list_meet() {
    let Small { module, main, x, root, .. } = small();
    let mut both = module.instructions(main);
    assert_eq!((both.next(), both.next_back()), (Some(x), Some(root)));
    assert_eq!(both.len(), 3);
    assert_eq!(both.by_ref().rev().count(), 3);
    assert_eq!((both.next(), both.next_back()), (None, None));
}

#[test]
fn the_last_instruction_is_the_root_until_one_is_set() {
    let Small { mut module, main, x, sum, root, .. } = small();
    assert_eq!(module.computation(main).root(), Some(root));
    assert!(!module.computation(main).has_explicit_root());
    let last = add(&mut module, main, Op::Negate, "f32[4]", &[x], "last");
    assert_eq!(module.computation(main).root(), Some(last));
    module.set_root(sum).unwrap();
    assert!(module.computation(main).has_explicit_root());
    add(&mut module, main, Op::Negate, "f32[4]", &[x], "later");
    assert_eq!(module.computation(main).root(), Some(sum));
    assert!(module.is_root(sum) && !module.is_root(last));
}

#[test]
fn set_operand_moves_one_use() {
    let Small { mut module, x, y, sum, twice, .. } = small();
    module.set_operand(twice, 1, x).unwrap();
    assert_eq!(module.operands(twice), [sum, x]);
    assert_eq!(uses(&module, sum), ["twice.0"]);
    assert_eq!(uses(&module, x), ["sum.0", "root.1", "twice.1"]);
    module.set_operand(twice, 0, x).unwrap();
    assert_eq!(uses(&module, sum), [""; 0]);
    assert_eq!(uses(&module, x), ["sum.0", "root.1", "twice.1", "twice.0"]);
    assert_eq!(module.users(x).len(), 3);
    // To itself: the use stays, once.
    module.set_operand(sum, 1, y).unwrap();
    assert_eq!(uses(&module, y), ["sum.1"]);
    assert_eq!(module.instruction(y).use_count(), 1);
}

#[test]
fn ordering_takes_every_instruction_once() {
    let Small { mut module, main, x, y, sum, twice, root } = small();
    let uses_of_x = uses(&module, x);
    module.order_instructions(main, &[y, x, sum, root, twice]).unwrap();
    assert_eq!(names(&module, main), ["y", "x", "sum", "root", "twice"]);
    let mut backwards: Vec<InstId> = module.instructions(main).rev().collect();
    backwards.reverse();
    assert_eq!(backwards, [y, x, sum, root, twice]);
    // The implicit root stays what it was; so do uses and parents.
    assert_eq!(module.computation(main).root(), Some(root));
    assert_eq!(uses(&module, x), uses_of_x);
    assert_eq!(module.instruction(sum).parent(), Some(main));
    assert_eq!(module.instructions(main).len(), 5);
    for (order, name) in [
        (vec![x, y, sum, twice], "root"),
        (vec![x, y, sum, sum, twice, root], "sum"),
        (vec![x, y, sum, twice, root, x], "x"),
    ] {
        let error = EditError::Order(name.into());
        refused(&mut module, |m| m.order_instructions(main, &order), &error);
        let said =
            format!("`{name}` must be in the order of its computation once, and in no other");
        assert_eq!(error.to_string(), said);
    }
}

#[test]
fn replace_uses_takes_every_slot_and_the_root() {
    let Small { mut module, main, x, y, sum, twice, root } = small();
    module.replace_uses(sum, y).unwrap();
    assert_eq!(module.operands(twice), [y, y]);
    assert_eq!(uses(&module, y), ["sum.1", "twice.0", "twice.1"]);
    assert_eq!(uses(&module, sum), [""; 0]);
    // The implicit root becomes an explicit one.
    module.replace_uses(root, x).unwrap();
    assert_eq!(module.computation(main).root(), Some(x));
    module.replace_uses(x, x).unwrap();
    assert_eq!(uses(&module, x), ["sum.0", "root.1"]);
    module.replace_uses(x, twice).unwrap();
    assert_eq!(module.computation(main).root(), Some(twice));
}

#[test]
fn replace_uses_ignores_layouts_but_not_types_or_dims() {
    let Small { mut module, x, sum, .. } = small();
    let Shape::Array(array) = shape("f32[4]") else { panic!("no array") };
    let laid_out = array.clone().with_layout(Some(Layout::descending(1)));
    let at = Position::Before(sum);
    let copy = module.insert(at, Op::Copy, laid_out.into(), &[x], "copy").unwrap();
    module.set_operand(sum, 0, copy).unwrap();
    module.replace_uses(copy, x).unwrap();
    for other in ["f32[5]", "s32[4]", "f32[4,1]", "f32[<=4]", "(f32[4])", "token[]"] {
        let new = module.insert(at, common::custom_call(), shape(other), &[], "new").unwrap();
        let error = EditError::ShapeChange {
            old: "x".into(),
            old_shape: Box::new(shape("f32[4]")),
            new_shape: Box::new(shape(other)),
        };
        refused(&mut module, |m| m.replace_uses(x, new), &error);
        assert_eq!(error.to_string(), format!("`x` is f32[4], but its replacement is {other}"));
    }
}

#[test]
fn removing_unlinks_uses_and_neighbours() {
    let Small { mut module, main, x, sum, twice, root, .. } = small();
    module.set_root(x).unwrap();
    module.remove(root).unwrap();
    assert_eq!(names(&module, main), ["x", "y", "sum", "twice"]);
    assert_eq!(uses(&module, x), ["sum.0"]);
    assert_eq!(uses(&module, twice), [""; 0]);
    module.remove(twice).unwrap();
    assert_eq!(uses(&module, sum), [""; 0]);
    module.remove(sum).unwrap();
    assert_eq!(names(&module, main), ["x", "y"]);
    assert_eq!(module.instruction(sum).parent(), None);
    assert_eq!(module.operands(sum), []);
    assert!(!module.is_root(sum));
    assert_eq!(module.instruction_count(), 2);
    assert_eq!(module.instruction_bound(), 5);
    // New instructions go where the old ones were.
    let new = add(&mut module, main, Op::Negate, "f32[4]", &[x], "new");
    assert_eq!(names(&module, main), ["x", "y", "new"]);
    assert_eq!(module.instructions(main).next_back(), Some(new));
}

#[test]
fn the_first_instruction_can_go() {
    let Small { mut module, main, .. } = small();
    let first = module.instructions(main).next().unwrap();
    let token = module.insert(Position::Before(first), Op::AfterAll, Shape::Token, &[], "t");
    module.remove(token.unwrap()).unwrap();
    assert_eq!(names(&module, main), ["x", "y", "sum", "twice", "root"]);
    assert_eq!(module.instructions(main).next(), Some(first));
}

#[test]
fn what_is_needed_is_not_removed() {
    let Small { mut module, main, y, sum, root, .. } = small();
    let in_use = |name: &str| EditError::InUse(name.into());
    refused(&mut module, |m| m.remove(sum), &in_use("sum"));
    refused(&mut module, |m| m.remove(root), &in_use("root"));
    module.set_operand(sum, 1, sum).unwrap();
    assert_eq!(uses(&module, y), [""; 0]);
    refused(&mut module, |m| m.remove(y), &in_use("y"));
    let waited_for = add(&mut module, main, Op::AfterAll, "token[]", &[], "waited_for");
    let waiting = add(&mut module, main, Op::AfterAll, "token[]", &[], "waiting");
    module.set_root(root).unwrap();
    module.set_control_predecessors(waiting, vec![waited_for]);
    refused(&mut module, |m| m.remove(waited_for), &in_use("waited_for"));
    assert!(!module.is_removable(waited_for) && module.is_removable(waiting));
    module.remove(waiting).unwrap();
    module.remove(waited_for).unwrap();
    assert!(!module.is_removable(waiting), "once is enough");
}

#[test]
fn other_computations_and_removed_instructions_are_foreign() {
    let Small { mut module, main, x, sum, twice, .. } = small();
    let other = module.add_computation("other");
    let far = add(&mut module, other, parameter(0), "f32[4]", &[], "far");
    let gone = add(&mut module, main, Op::AfterAll, "token[]", &[], "gone");
    module.set_root(twice).unwrap();
    module.remove(gone).unwrap();

    let foreign = EditError::ForeignOperand("far".into());
    let insert = |operand, at| {
        move |m: &mut Module| m.insert(at, Op::Negate, shape("f32[4]"), &[x, operand], "new")
    };
    refused(&mut module, insert(far, Position::End(main)), &foreign);
    refused(&mut module, |m| m.set_operand(sum, 0, far), &foreign);
    refused(&mut module, |m| m.replace_uses(sum, far), &foreign);
    let removed = EditError::Removed(gone);
    refused(&mut module, insert(gone, Position::End(main)), &removed);
    refused(&mut module, insert(x, Position::Before(gone)), &removed);
    refused(&mut module, |m| m.set_operand(sum, 0, gone), &removed);
    refused(&mut module, |m| m.set_operand(gone, 0, sum), &removed);
    refused(&mut module, |m| m.replace_uses(gone, sum), &removed);
    refused(&mut module, |m| m.replace_uses(sum, gone), &removed);
    refused(&mut module, |m| m.remove(gone), &removed);
    refused(&mut module, |m| m.set_root(gone), &removed);
    refused(&mut module, |m| m.copy_instruction(sum, Position::End(other), |_| None), &{
        EditError::ForeignOperand("x".into())
    });
    let none = EditError::NoOperand("sum".into(), 2);
    refused(&mut module, |m| m.set_operand(sum, 2, x), &none);
    assert_eq!(none.to_string(), "`sum` has no operand 2");
    assert_eq!(foreign.to_string(), "operand `far` lies in another computation");
}

#[test]
fn copies_take_everything_along() {
    let Small { mut module, main, x, y, sum, twice, .. } = small();
    let metadata = OpMetadata { op_name: "jit(f)/add".into(), ..OpMetadata::default() };
    module.set_metadata(twice, metadata.clone());
    let other = vec![("statistics".into(), tilewright_ir::ops::attr::Verbatim("{}".into()))];
    let mut extras = Extras::default();
    extras.control_predecessors = vec![y, sum];
    extras.other = other;
    module.set_extras(twice, extras);
    let last = add(&mut module, main, Op::Negate, "f32[4]", &[x], "last");
    module.set_control_predecessors(last, vec![twice]);

    let copy = module.copy_instruction(twice, Position::End(main), |old| (old == sum).then_some(x));
    let copy = copy.unwrap();
    assert_eq!(module.operands(copy), [x, x]);
    assert_eq!(uses(&module, x), ["sum.0", "root.1", "last.0", "twice.1.0", "twice.1.1"]);
    assert_eq!(uses(&module, sum), ["twice.0", "twice.1"]);
    assert_eq!(module.name_of(copy), "twice.1");
    assert_eq!(module.metadata(copy), Some(&metadata));
    let extras = module.extras(copy).unwrap();
    assert_eq!(extras.control_predecessors, [y, x]);
    assert_eq!(extras.control_successors(), [], "what waits for the old one waits for it alone");
    assert_eq!(extras.other, module.extras(twice).unwrap().other);
    assert_eq!(module.extras(y).unwrap().control_successors(), [twice, copy]);
    assert_eq!(module.extras(x).unwrap().control_successors(), [copy]);
    assert_eq!(module.extras(twice).unwrap().control_successors(), [last]);
}

#[test]
fn control_edges_are_kept_at_both_ends() {
    let Small { mut module, x, y, sum, twice, root, .. } = small();
    let after = |module: &Module, id: InstId| {
        module.extras(id).map_or(Vec::new(), |e| e.control_successors().to_vec())
    };
    module.set_control_predecessors(twice, vec![x, y]);
    module.set_control_predecessors(root, vec![y]);
    assert_eq!((after(&module, x), after(&module, y)), (vec![twice], vec![twice, root]));
    module.set_control_predecessors(twice, vec![y, sum]);
    assert_eq!((after(&module, x), after(&module, y)), (vec![], vec![root, twice]));
    assert_eq!(after(&module, sum), [twice]);
    // Other attributes change without touching the edges at the other end.
    let mut extras = Extras::default();
    extras.sharding = Some(Box::new(Sharding::Leaf(Placement::Replicated.into())));
    module.set_extras(y, extras);
    assert_eq!(after(&module, y), [root, twice]);
    module.set_extras(twice, Extras::default());
    assert_eq!((after(&module, y), after(&module, sum)), (vec![root], vec![]));
    module.set_control_predecessors(root, Vec::new());
    assert_eq!(after(&module, y), []);
}

/// Passes take an instruction without extras for a plain one.
#[test]
fn where_nothing_is_left_to_say_there_are_no_extras() {
    let Small { mut module, x, y, twice, .. } = small();
    module.set_control_predecessors(twice, vec![x, y]);
    assert!(module.extras(x).is_some() && module.extras(twice).is_some());
    module.set_control_predecessors(twice, Vec::new());
    for id in [x, y, twice] {
        assert_eq!(module.extras(id), None, "{id:?}");
    }
    module.set_extras(x, Extras::default());
    assert_eq!(module.extras(x), None);
    module.set_control_predecessors(y, Vec::new());
    assert_eq!(module.extras(y), None);
}

#[test]
fn parameters_are_put_in_order() {
    let mut module = Module::new("m");
    let c = module.add_computation("c");
    let second = add(&mut module, c, parameter(1), "f32[]", &[], "b");
    let first = add(&mut module, c, parameter(0), "s32[]", &[], "a");
    assert_eq!(module.computation(c).parameters(), [second, first]);
    module.order_parameters(c).unwrap();
    assert_eq!(module.computation(c).parameters(), [first, second]);
    assert_eq!(names(&module, c), ["b", "a"], "instructions stay where they are");

    let wrong = |number| EditError::ParameterNumber { computation: "c".into(), number };
    let gap = add(&mut module, c, parameter(3), "f32[]", &[], "d");
    refused(&mut module, |m| m.order_parameters(c), &wrong(3));
    module.set_attributes(gap, parameter(1)).unwrap();
    refused(&mut module, |m| m.order_parameters(c), &wrong(1));
    module.set_attributes(gap, parameter(-1)).unwrap();
    refused(&mut module, |m| m.order_parameters(c), &wrong(-1));
    module.set_attributes(gap, parameter(2)).unwrap();
    module.order_parameters(c).unwrap();
    let message = "parameter 3 of `c` is defined twice or leaves a gap";
    assert_eq!(wrong(3).to_string(), message);
}

#[test]
fn attributes_change_and_ops_do_not() {
    let Small { mut module, sum, y, .. } = small();
    let change = |name: &str, old, new| EditError::OpcodeChange { name: name.into(), old, new };
    let to_parameter = change("sum", Opcode::Add, Opcode::Parameter);
    refused(&mut module, |m| m.set_attributes(sum, parameter(5)), &to_parameter);
    let message = "`sum` is `add` and cannot become `parameter`; insert that and replace its uses";
    assert_eq!(to_parameter.to_string(), message);
    let from_parameter = change("y", Opcode::Parameter, Opcode::Add);
    refused(&mut module, |m| m.set_attributes(y, Op::Add), &from_parameter);
    module.set_attributes(y, parameter(7)).unwrap();
    assert_eq!(module.op(y), &parameter(7));
}

#[test]
fn parameters_change_shape_and_nothing_else_does() {
    let Small { mut module, main, x, sum, .. } = small();
    let users = uses(&module, x);
    module.set_parameter_shape(x, shape("f32[2,2]")).unwrap();
    assert_eq!(module.shape(x), &shape("f32[2,2]"));
    assert_eq!(uses(&module, x), users);
    assert_eq!(module.computation(main).parameters()[0], x);
    let error = EditError::NoParameter("sum".into());
    refused(&mut module, |m| m.set_parameter_shape(sum, shape("f32[2,2]")), &error);
    assert_eq!(module.shape(sum), &shape("f32[4]"));
}

#[test]
fn fresh_names_are_free_in_the_whole_module() {
    let Small { mut module, main, x, .. } = small();
    let other = module.add_computation("other");
    add(&mut module, other, parameter(0), "f32[]", &[], "p.7");
    assert_eq!(module.fresh_name("new"), "new");
    assert_eq!(module.fresh_name("sum"), "sum.1");
    assert_eq!(module.fresh_name("p.7"), "p.1");
    assert_eq!(module.fresh_name("x.y.z"), "x.y.z");
    assert_eq!(module.fresh_name(""), "value.1");
    let name = module.fresh_name("sum");
    let taken = add(&mut module, main, Op::Negate, "f32[4]", &[x], &name);
    assert_ne!(module.fresh_name(&name), name);
    module.set_name(taken, "sum.9");
    assert_eq!(module.name_of(taken), "sum.9");
    assert_ne!(module.fresh_name("sum.9"), "sum.9");
    // A computation's name is no instruction's.
    assert_eq!(module.fresh_name("main"), "main");
}

#[test]
fn shapes_and_metadata_are_interned() {
    let Small { mut module, x, y, sum, .. } = small();
    assert_eq!(module.instruction(x).shape_id(), module.instruction(sum).shape_id());
    let id = module.intern_shape(shape("f32[4]"));
    assert_eq!(id, module.instruction(x).shape_id());
    assert_ne!(module.intern_shape(shape("f32[5]")), id);
    assert_eq!(module.metadata(x), None);
    let metadata = OpMetadata { source_line: 3, ..OpMetadata::default() };
    module.set_metadata(x, metadata.clone());
    module.copy_metadata(x, sum);
    module.copy_metadata(y, sum);
    assert_eq!(module.metadata(sum), Some(&metadata), "nothing to copy leaves what is there");
    assert_eq!(module.metadata(y), None);
}

#[test]
fn computations_are_taken_out_of_the_order() {
    let Small { mut module, main, .. } = small();
    let other = module.add_computation("other");
    add(&mut module, other, parameter(0), "f32[]", &[], "p");
    assert_eq!(module.instruction_count(), 6);
    module.retain_computations(|c| c != other);
    assert_eq!(module.computations().len(), 1);
    assert_eq!(module.instruction_count(), 5);
    assert_eq!(module.entry(), Some(main));
    module.set_execution_thread(other, Some("host".into()));
    assert_eq!(module.computation(other).execution_thread(), Some("host"));
}

#[test]
fn live_values_are_used_or_the_root() {
    let Small { mut module, x, sum, root, .. } = small();
    let before = Position::Before(root);
    let unused = module.insert(before, Op::Negate, shape("f32[4]"), &[sum], "unused").unwrap();
    let live = [x, sum, root, unused].map(|id| module.is_live(id));
    assert_eq!(live, [true, true, true, false]);
}
