//! A patch is applied whole or not at all.
use crate::common::{Small, add, names, parameter, picture, reshape, shape, small, uses};
use tilewright_ir::{EditError, Module, Op, OpMetadata, Patch, Value};

#[test]
fn a_patch_makes_its_instructions_and_moves_the_users() {
    let Small { mut module, main, x, sum, twice, root, .. } = small();
    let metadata = OpMetadata { op_name: "f".into(), ..OpMetadata::default() };
    module.set_metadata(twice, metadata.clone());
    module.set_metadata(root, OpMetadata::default());
    let mut patch = Patch::new();
    assert!(patch.is_empty());
    let wide = patch.add(twice, reshape(), shape("f32[2,2]"), [Value::Old(sum)]);
    let exp = patch.add_like(root, twice, Op::Sinh, shape("f32[2,2]"), [wide]);
    let back = patch.add(twice, reshape(), shape("f32[4]"), [exp]);
    patch.replace(twice, back);
    patch.replace(root, Value::Old(x));
    assert_eq!((wide, exp, back), (Value::New(0), Value::New(1), Value::New(2)));
    assert_eq!(patch.shape(&module, exp).to_string(), "f32[2,2]");
    assert_eq!(patch.shape(&module, Value::Old(x)).to_string(), "f32[4]");
    assert_eq!((patch.planned().len(), patch.replaced().len()), (3, 2));

    let made = patch.apply(&mut module).unwrap();
    let expected = ["x", "y", "sum", "reshape", "sinh", "reshape.1", "twice", "root"];
    assert_eq!(names(&module, main), expected);
    assert_eq!(module.operands(root), [made[2], x]);
    assert_eq!(uses(&module, sum), ["twice.0", "twice.1", "reshape.0"]);
    assert_eq!(uses(&module, twice), [""; 0]);
    assert_eq!(module.computation(main).root(), Some(x));
    assert_eq!(module.metadata(made[0]), Some(&metadata));
    assert_eq!(module.metadata(made[1]), Some(&OpMetadata::default()));
    // The replaced instruction is unused and can be removed.
    module.remove(root).unwrap();
    module.remove(twice).unwrap();
}

#[test]
fn replacements_happen_in_order() {
    let Small { mut module, x, y, sum, root, .. } = small();
    let mut patch = Patch::new();
    patch.replace(x, Value::Old(y));
    patch.replace(y, Value::Old(sum));
    patch.apply(&mut module).unwrap();
    // The user of x was redirected to y, and then to sum.
    assert_eq!(module.operands(root)[1], sum);
    assert_eq!(uses(&module, x), [""; 0]);
    assert_eq!(uses(&module, y), [""; 0]);
}

/// Applying fails with this error and leaves everything as it was.
#[track_caller]
fn fails(module: &mut Module, patch: &Patch, error: &EditError) {
    let (before, names_before) = (picture(module), module.fresh_name("negate"));
    assert_eq!(&patch.apply(module).unwrap_err(), error);
    assert_eq!(picture(module), before);
    assert_eq!(module.fresh_name("negate"), names_before, "no name is lost");
}

#[test]
fn a_patch_that_does_not_fit_changes_nothing() {
    let Small { mut module, main, x, sum, twice, root, .. } = small();
    let other = module.add_computation("other");
    let far = add(&mut module, other, parameter(0), "f32[4]", &[], "far");
    let gone = add(&mut module, main, Op::AfterAll, "token[]", &[], "gone");
    module.set_root(root).unwrap();
    module.remove(gone).unwrap();
    let negate = |patch: &mut Patch, before, operand| {
        patch.add(before, Op::Negate, shape("f32[4]"), [operand])
    };
    // Each patch starts with edits that could be made.
    let good = || {
        let mut patch = Patch::new();
        let value = negate(&mut patch, root, Value::Old(sum));
        let value = negate(&mut patch, root, value);
        patch.replace(twice, value);
        (patch, value)
    };
    let foreign = EditError::ForeignOperand("far".into());
    let removed = EditError::Removed(gone);

    let (mut patch, _) = good();
    negate(&mut patch, root, Value::Old(far));
    fails(&mut module, &patch, &foreign);
    let (mut patch, _) = good();
    negate(&mut patch, root, Value::Old(gone));
    fails(&mut module, &patch, &removed);
    let (mut patch, _) = good();
    negate(&mut patch, gone, Value::Old(sum));
    fails(&mut module, &patch, &removed);
    let (mut patch, value) = good();
    negate(&mut patch, far, value);
    fails(&mut module, &patch, &EditError::ForeignOperand("negate".into()));
    let (mut patch, value) = good();
    patch.replace(far, value);
    fails(&mut module, &patch, &EditError::ForeignOperand("negate".into()));
    let (mut patch, _) = good();
    patch.replace(x, Value::Old(far));
    fails(&mut module, &patch, &foreign);
    let (mut patch, value) = good();
    patch.replace(gone, value);
    fails(&mut module, &patch, &removed);
    let (mut patch, _) = good();
    patch.replace(x, Value::Old(gone));
    fails(&mut module, &patch, &removed);
    let (mut patch, value) = good();
    let narrow = patch.add(root, reshape(), shape("f32[2,2]"), [value]);
    patch.replace(x, narrow);
    let change = EditError::ShapeChange {
        old: "x".into(),
        old_shape: Box::new(shape("f32[4]")),
        new_shape: Box::new(shape("f32[2,2]")),
    };
    fails(&mut module, &patch, &change);
    // A parameter could not be taken back.
    let (mut patch, _) = good();
    patch.add(root, parameter(2), shape("f32[4]"), []);
    negate(&mut patch, root, Value::Old(far));
    fails(&mut module, &patch, &foreign);

    good().0.apply(&mut module).unwrap();
}

#[test]
fn a_value_of_another_patch_is_refused() {
    let Small { mut module, x, root, .. } = small();
    for operand in [Value::New(1), Value::New(2), Value::New(usize::MAX)] {
        let mut patch = Patch::new();
        patch.add(root, Op::Negate, shape("f32[4]"), [Value::Old(x)]);
        patch.add(root, Op::Negate, shape("f32[4]"), [operand]);
        let Value::New(index) = operand else { continue };
        fails(&mut module, &patch, &EditError::Unplanned(index));
    }
    let mut patch = Patch::new();
    patch.replace(x, Value::New(0));
    fails(&mut module, &patch, &EditError::Unplanned(0));
}
