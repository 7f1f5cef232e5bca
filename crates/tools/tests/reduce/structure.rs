//! Reductions of structure: calls, loops, branches, tuples, headers, annotations, names.

use tilewright::ir::Opcode;

use crate::reduce::{entry_parameters, has_op, reduced, with_op};

/// A loop that carries more than it needs.
const LOOP: &str = "HloModule loop
body {
  s = (s32[], f32[4], f32[4], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  a = f32[4] get-tuple-element(s), index=1
  b = f32[4] get-tuple-element(s), index=2
  c = f32[8] get-tuple-element(s), index=3
  t = f32[4] tanh(a)
  u = f32[4] add(t, b)
  w = f32[8] sine(c)
  ROOT r = (s32[], f32[4], f32[4], f32[8]) tuple(j, u, b, w)
}
condition {
  s = (s32[], f32[4], f32[4], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT p = pred[] compare(i, n), direction=LT
}
ENTRY main {
  x = f32[4] parameter(0)
  y = f32[8] parameter(1)
  zero = s32[] constant(0)
  init = (s32[], f32[4], f32[4], f32[8]) tuple(zero, x, x, y)
  loop = (s32[], f32[4], f32[4], f32[8]) while(init), condition=condition, body=body
  a = f32[4] get-tuple-element(loop), index=1
  c = f32[8] get-tuple-element(loop), index=3
  ROOT t = (f32[4], f32[8]) tuple(a, c)
}";

#[test]
fn a_turn_of_a_loop_stands_for_the_loop() {
    let found = reduced(LOOP, |module, _| has_op(module, Opcode::Tanh));
    assert_eq!(found.after.instructions, 2, "{}", found.text);
}

#[test]
fn a_loop_carries_less() {
    let found = reduced(LOOP, |module, _| {
        let loops = with_op(module, Opcode::While);
        let bodies = loops.iter().flat_map(|&id| module.called(id));
        let mut inside = bodies.flat_map(|id| module.instructions(id).collect::<Vec<_>>());
        inside.any(|id| module.opcode(id) == Opcode::Tanh)
    });
    // Only the state that tanh works on is left of the four, and a condition that is constant.
    let state = with_op(&found.module, Opcode::While)[0];
    let elements = found.module.shape(state).as_tuple().unwrap();
    assert_eq!(elements.len(), 1, "{}", found.text);
    // Parameter and loop; parameter, zero, its broadcast, tanh and tuple; parameter and constant.
    assert!(found.after.instructions <= 9, "{}", found.text);
}

#[test]
fn the_loop_itself_can_be_what_is_left() {
    let found = reduced(LOOP, |module, _| has_op(module, Opcode::While));
    // The parameter and the loop; a parameter as body; a parameter and a constant as condition.
    assert_eq!(found.after.instructions, 5, "{}", found.text);
}

const BRANCHES: &str = "HloModule branches
left {
  x = f32[4] parameter(0)
  ROOT y = f32[4] tanh(x)
}
right {
  x = f32[4] parameter(0)
  y = f32[4] sine(x)
  ROOT z = f32[4] cosine(y)
}
ENTRY main {
  p = pred[] parameter(0)
  x = f32[4] parameter(1)
  ROOT y = f32[4] conditional(p, x, x), true_computation=left, false_computation=right
}";

#[test]
fn a_branch_stands_for_the_conditional() {
    for op in [Opcode::Tanh, Opcode::Cos] {
        let found = reduced(BRANCHES, |module, _| has_op(module, op));
        assert_eq!(found.after.instructions, 2, "{}", found.text);
    }
}

/// One branch is called in place of both, and computes nothing.
#[test]
fn computations_of_one_signature_become_one() {
    let found = reduced(BRANCHES, |module, _| has_op(module, Opcode::Conditional));
    assert_eq!(found.module.computations().len(), 2, "{}", found.text);
    // A predicate, an argument, the conditional, and the parameter of the branch.
    assert_eq!(found.after.instructions, 4, "{}", found.text);
}

const CALLS: &str = "HloModule calls
inner {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  s = f32[4] sine(x)
  ROOT t = (f32[4], f32[4]) tuple(s, x)
}
fused {
  a = f32[4] parameter(0)
  b = f32[4] parameter(1)
  c = f32[4] parameter(2)
  t = f32[4] tanh(b)
  ROOT u = f32[4] add(t, b)
}
ENTRY main {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  c = (f32[4], f32[4]) call(x, y), to_apply=inner
  s = f32[4] get-tuple-element(c), index=0
  o = f32[4] get-tuple-element(c), index=1
  ROOT f = f32[4] fusion(s, o, y), kind=kLoop, calls=fused
}";

#[test]
fn calls_and_fusions_are_inlined() {
    let found =
        reduced(CALLS, |module, _| has_op(module, Opcode::Tanh) && has_op(module, Opcode::Sin));
    // A parameter, its sine, and tanh of that.
    assert_eq!(found.after.instructions, 3, "{}", found.text);
    assert_eq!(found.module.computations().len(), 1);
}

#[test]
fn a_fusion_loses_parameters_that_it_does_not_use() {
    let found = reduced(CALLS, |module, _| {
        with_op(module, Opcode::Fusion).iter().any(|&id| {
            let body = module.called(id)[0];
            module.instructions(body).any(|id| module.opcode(id) == Opcode::Tanh)
        })
    });
    // A parameter and the fusion; in it a parameter and tanh.
    assert_eq!(found.after.instructions, 4, "{}", found.text);
}

#[test]
fn a_call_yields_fewer_elements() {
    let found = reduced(CALLS, |module, _| {
        with_op(module, Opcode::GetTupleElement).iter().any(|&id| {
            let tuple = module.operands(id)[0];
            module.opcode(tuple) == Opcode::Call
        })
    });
    let call = with_op(&found.module, Opcode::Call)[0];
    assert_eq!(found.module.shape(call).as_tuple().unwrap().len(), 1, "{}", found.text);
    // Parameter, call, element; in the call a parameter and the tuple.
    assert_eq!(found.after.instructions, 5, "{}", found.text);
}

#[test]
fn what_runs_asynchronously_is_inlined() {
    let text = "HloModule m
wrapped {
  x = f32[4] parameter(0)
  ROOT y = f32[4] tanh(x)
}
ENTRY main {
  x = f32[4] parameter(0)
  s = ((f32[4]), f32[4], s32[]) async-start(x), calls=wrapped
  ROOT d = f32[4] async-done(s)
}";
    let found = reduced(text, |module, _| has_op(module, Opcode::Tanh));
    assert_eq!(found.after.instructions, 2, "{}", found.text);
}

/// Tuples as parameters, aliases and donors, a sharding, a custom call with a side effect.
const HEADER: &str = "HloModule header, input_output_alias={ {0}: (0, {1}, may-alias), {1}: (1, {}, must-alias) }, buffer_donor={ (2, {}) }, entry_computation_layout={((f32[4]{0}, f32[4]{0}), f32[4]{0}, f32[8]{0})->(f32[4]{0}, f32[4]{0})}, num_partitions=2
ENTRY main {
  p = (f32[4], f32[4]) parameter(0), sharding={{replicated}, {replicated}}
  q = f32[4] parameter(1), sharding={devices=[2]<=[2]}
  r = f32[8] parameter(2)
  a = f32[4] get-tuple-element(p), index=0
  b = f32[4] get-tuple-element(p), index=1
  c = f32[4] custom-call(b), custom_call_target=\"act\", custom_call_has_side_effect=true
  s = f32[4] sine(a), metadata={op_name=\"here\"}, frontend_attributes={k=\"v\"}
  t = f32[4] tanh(q), sharding={devices=[2]<=[2]}, metadata={op_name=\"there\"}
  ROOT u = (f32[4], f32[4]) tuple(s, t), sharding={{replicated}, {devices=[2]<=[2]}}
}";

#[test]
fn tuples_as_parameters_and_calls_with_side_effects_go() {
    let found = reduced(HEADER, |module, _| has_op(module, Opcode::Sin));
    assert_eq!(found.after.instructions, 2, "{}", found.text);
    assert!(!found.text.contains("alias") && !found.text.contains("sharding"), "{}", found.text);
}

#[test]
fn a_custom_call_stays_if_it_is_needed() {
    let found = reduced(HEADER, |_, text| text.contains("custom-call("));
    assert_eq!(found.after.instructions, 2, "{}", found.text);
}

/// An alias moves with its element of the result and with the number of its parameter.
#[test]
fn aliases_stay_valid() {
    let found = reduced(HEADER, |module, _| {
        !module.header.input_output_alias.is_empty() && has_op(module, Opcode::Tanh)
    });
    let alias = &found.module.header.input_output_alias;
    assert_eq!(alias.len(), 1, "{}", found.text);
    assert_eq!(found.after.ops, 2, "{}", found.text);
    let parameters = entry_parameters(&found.module);
    assert!(usize::try_from(alias[0].parameter).unwrap() < parameters, "{}", found.text);
}

#[test]
fn one_annotation_is_left_if_one_is_needed() {
    let found = reduced(HEADER, |_, text| text.contains("there"));
    assert!(!found.text.contains("here\"}, ") && !found.text.contains("sharding"));
    assert!(
        !found.text.contains("frontend_attributes") && found.text.contains("op_name=\"there\"")
    );
    let found = reduced(HEADER, |_, text| text.contains("devices=[2]"));
    assert_eq!(found.text.matches("sharding=").count(), 1, "{}", found.text);
    let found = reduced(HEADER, |_, text| text.contains("k=\"v\""));
    assert!(!found.text.contains("op_name") && !found.text.contains("sharding="));
}

#[test]
fn layouts_and_precision_go() {
    let text = "HloModule m, is_scheduled=true
ENTRY main {
  a = f32[4,4]{0,1} parameter(0), backend_config={\"x\":1}
  ROOT d = f32[4,4]{0,1} dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}, operand_precision={highest,highest}
}";
    let found = reduced(text, |module, _| has_op(module, Opcode::Dot));
    for gone in ["{0,1}", "operand_precision", "backend_config", "is_scheduled"] {
        assert!(!found.text.contains(gone), "{gone} in {}", found.text);
    }
    let found = reduced(text, |_, text| text.contains("highest"));
    assert!(!found.text.contains("{0,1}") && !found.text.contains("backend_config"));
}

#[test]
fn names_that_are_needed_stay() {
    let text = "HloModule module_with_a_name
ENTRY computation_with_a_name {
  parameter_with_a_name = f32[4] parameter(0)
  ROOT result_with_a_name = f32[4] tanh(parameter_with_a_name)
}";
    let found = reduced(text, |_, text| text.contains("computation_with_a_name"));
    assert!(!found.text.contains("module_with") && !found.text.contains("result_with"));
    let found = reduced(text, |_, text| text.contains("module_with_a_name"));
    assert!(!found.text.contains("computation_with") && !found.text.contains("result_with"));
}
