//! One module per rule about what stands beside shapes and operands, made by
//! edits; among them what text cannot say.

use smallvec::smallvec;
use tilewright_ir::devices::{AxisRef, IotaDevices, Mesh, MeshAxis, ReplicaGroups};
use tilewright_ir::metadata::{InputOutputAlias, Origin, OriginTree, StackTables};
use tilewright_ir::ops::attr::{AttrValue, AttrValues, Verbatim};
use tilewright_ir::ops::control::{CallAttrs, OutputAlias};
use tilewright_ir::sharding::{
    DimSharding, LeafSharding, NamedSharding, Placement, ReductionOp, Subgroup, TileDevices, Tiling,
};
use tilewright_ir::verify::{self, check};
use tilewright_ir::{
    CompId, Dims, ElementType, Extras, InstId, Module, Op, OpMetadata, Opcode, Position, Shape,
    Sharding,
};

use super::edits::{Case, broken};
use crate::common::{Small, add, callee, custom_call, parameter, plain, small};

fn op(opcode: Opcode, values: Vec<(&'static str, AttrValue)>) -> Op {
    let mut attrs = AttrValues::default();
    for (name, value) in values {
        assert!(attrs.insert(name, value));
    }
    Op::from_attrs(opcode, &mut attrs).unwrap()
}

fn broadcast_among(groups: ReplicaGroups, channel: i64) -> impl FnOnce(&mut Small) {
    move |s| {
        let groups = AttrValue::ReplicaGroups(Box::new(groups));
        let channel = AttrValue::Int(channel);
        let values = vec![("replica_groups", groups), ("channel_id", channel)];
        let op = op(Opcode::CollectiveBroadcast, values);
        add(&mut s.module, s.main, op, "f32[4]", &[s.x], "among");
    }
}

fn sharded(placement: Placement) -> impl FnOnce(&mut Small) {
    move |s| {
        let sharding = Sharding::Leaf(LeafSharding::from(placement));
        let mut extras = Extras::default();
        extras.sharding = Some(Box::new(sharding));
        s.module.set_extras(s.sum, extras);
    }
}

fn mesh(sizes: &[(&str, i64)]) -> Mesh {
    let axis = |&(name, size): &(&str, i64)| MeshAxis { name: name.into(), size };
    Mesh { axes: sizes.iter().map(axis).collect(), ..Mesh::default() }
}

fn along(mesh: Mesh, axis: usize) -> Placement {
    Placement::Named(Box::new(NamedSharding {
        mesh,
        dims: vec![DimSharding { axes: vec![AxisRef::whole(axis)], is_open: false }],
        replicated: Vec::new(),
        unreduced: Vec::new(),
        reduction: ReductionOp::Sum,
        manual: Vec::new(),
    }))
}

fn devices() -> Vec<Case> {
    let iota = |transpose_perm: &[i64]| ReplicaGroups::Iota {
        groups: 2,
        size: 2,
        devices: IotaDevices { reshape_dims: vec![2, 2], transpose_perm: transpose_perm.into() },
    };
    vec![
        broken(
            verify::MESH,
            "sum",
            "mesh axis `x` has size -2, not 1 or more",
            sharded(along(mesh(&[("x", -2)]), 0)),
        ),
        broken(
            verify::MESH,
            "sum",
            "the mesh has no axis number 1",
            sharded(along(mesh(&[("x", 2)]), 1)),
        ),
        broken(
            verify::GROUPS,
            "among",
            "replica_groups names device 1 twice",
            broadcast_among(ReplicaGroups::Lists(vec![vec![0, 1], vec![1]]), 1),
        ),
        broken(
            verify::GROUPS,
            "among",
            "replica_groups transposes its 2 sizes by no permutation of them",
            broadcast_among(iota(&[0, 0]), 1),
        ),
        broken(
            verify::CHANNEL,
            "among",
            "channel_id is -7; channels of `collective-broadcast` are numbered from 0",
            broadcast_among(iota(&[1, 0]), -7),
        ),
        broken(
            verify::PAIRS,
            "pairs",
            "device 3 is the source of 2 source_target_pairs; keep 1 of them",
            |s| {
                let pairs = AttrValue::Pairs(vec![(3, 1), (3, 2)]);
                let op = op(Opcode::CollectivePermute, vec![("source_target_pairs", pairs)]);
                add(&mut s.module, s.main, op, "f32[4]", &[s.x], "pairs");
            },
        ),
    ]
}

fn shardings() -> Vec<Case> {
    let tiled = |dims: &[i64], ids: &[i64], subgroups: usize| {
        Placement::Tiled(Tiling {
            dims: dims.into(),
            devices: TileDevices::List(ids.into()),
            subgroups: vec![Subgroup::Manual; subgroups],
        })
    };
    vec![
        broken(
            verify::SHARDING,
            "sum",
            "the sharding makes 4 tiles, but names 2 devices",
            sharded(tiled(&[4], &[0, 1], 0)),
        ),
        broken(
            verify::SHARDING,
            "sum",
            "the sharding has more subgroups than dims",
            sharded(tiled(&[2], &[0, 1], 2)),
        ),
        broken(
            verify::SHARDING,
            "sum",
            "the sharding makes too many tiles, but names 1 devices",
            sharded(tiled(&[1 << 40, 1 << 40], &[0], 1)),
        ),
        broken(
            verify::REPLICATION,
            "y",
            "parameter_replication has 2 values, but the parameter 1 arrays; write one for each",
            |s| {
                let mut extras = Extras::default();
                extras.parameter_replication = vec![true, false];
                s.module.set_extras(s.y, extras);
            },
        ),
    ]
}

fn buffers() -> Vec<Case> {
    vec![
        broken(
            verify::ALIAS,
            "module",
            "input_output_alias: there is no parameter -1 among 2",
            |s| {
                s.module.header.input_output_alias.push(InputOutputAlias {
                    output: Dims::new(),
                    parameter: -1,
                    parameter_part: Dims::new(),
                    must: true,
                });
            },
        ),
        broken(
            verify::OPERAND_ALIAS,
            "shares",
            "output_to_operand_aliasing {}: (-1, {}): there is no such operand among 1",
            |s| {
                let alias =
                    OutputAlias { output: Dims::new(), operand: -1, operand_part: Dims::new() };
                let Op::CustomCall(mut attrs) = custom_call() else { panic!("another op") };
                attrs.output_to_operand_aliasing = vec![alias];
                add(&mut s.module, s.main, Op::CustomCall(attrs), "f32[4]", &[s.x], "shares");
            },
        ),
    ]
}

fn others() -> Vec<Case> {
    vec![
        broken(
            verify::PAIRING,
            "done",
            "`all-reduce-done` takes `all-reduce-start`, but `x` is `parameter`",
            |s| {
                let done = plain(Opcode::AllReduceDone);
                add(&mut s.module, s.main, done, "f32[4]", &[s.x], "done");
            },
        ),
        broken(
            verify::THREAD,
            "loop",
            "it runs on thread \"main\", but `body` on \"host\"; use `async-start`",
            |s| {
                s.module = looping(|module, _, body| {
                    module.set_execution_thread(body, Some("host".into()));
                });
            },
        ),
        broken(verify::FRAMES, "x", "stack_frame_id is -1, but StackFrames has 0 rows", |s| {
            s.module.header.stack_tables = Some(StackTables::default());
            s.module.set_metadata(s.x, OpMetadata { stack_frame_id: -1, ..Default::default() });
        }),
    ]
}

/// Returns a module whose entry calls `body` and `condition` in a loop.
fn looping(edit: impl FnOnce(&mut Module, CompId, CompId)) -> Module {
    let mut module = Module::new("m");
    let condition = callee(&mut module, "condition", &["f32[4]"], "pred[]");
    let body = callee(&mut module, "body", &["f32[4]"], "f32[4]");
    edit(&mut module, condition, body);
    let main = module.add_computation("main");
    module.set_entry(main);
    let x = add(&mut module, main, crate::common::parameter(0), "f32[4]", &[], "x");
    let values = vec![
        ("condition", AttrValue::Computation(condition)),
        ("body", AttrValue::Computation(body)),
    ];
    add(&mut module, main, op(Opcode::While, values), "f32[4]", &[x], "loop");
    module
}

fn set_sharding(module: &mut Module, id: InstId, placement: Placement) {
    let mut extras = Extras::default();
    extras.sharding = Some(Box::new(Sharding::Leaf(LeafSharding::from(placement))));
    module.set_extras(id, extras);
}

fn program() -> Vec<Case> {
    vec![
        broken(
            verify::ENDS,
            "start",
            "`copy-start` is taken once, by `copy-done`, not by 0 instructions",
            |s| {
                let start = op(Opcode::CopyStart, Vec::new());
                add(&mut s.module, s.main, start, "(f32[4], f32[4], u32[])", &[s.x], "start");
            },
        ),
        broken(
            verify::CONSTRAINED,
            "second",
            "constrain_layout is false, but true in `first`; it is the same in all all-reduces",
            |s| {
                let mut module = Module::new("m");
                let sum = callee(&mut module, "sum", &["f32[]", "f32[]"], "f32[]");
                let main = module.add_computation("main");
                module.set_entry(main);
                let x = add(&mut module, main, crate::common::parameter(0), "f32[4]", &[], "x");
                for (name, constrained) in [("first", true), ("second", false)] {
                    let values = vec![
                        ("replica_groups", AttrValue::ReplicaGroups(Box::default())),
                        ("constrain_layout", AttrValue::Bool(constrained)),
                        ("to_apply", AttrValue::Computation(sum)),
                    ];
                    let reduce = op(Opcode::AllReduce, values);
                    add(&mut module, main, reduce, "f32[4]", &[x], name);
                }
                s.module = module;
            },
        ),
        broken(
            verify::ALIKE,
            "loop",
            "`p0` and `p0` have different shardings; what a `while` passes on stays where it is",
            |s| {
                s.module = looping(|module, condition, body| {
                    let placements = [Placement::Replicated, Placement::Manual];
                    for (computation, placement) in [body, condition].into_iter().zip(placements) {
                        let parameter = module.computation(computation).parameters()[0];
                        set_sharding(module, parameter, placement);
                    }
                });
            },
        ),
    ]
}

fn with_extras(change: impl FnOnce(&mut Extras)) -> impl FnOnce(&mut Small) {
    move |s| {
        let mut extras = Extras::default();
        change(&mut extras);
        s.module.set_extras(s.sum, extras);
    }
}

/// Lists broken claims that an op makes about itself besides its op.
fn claims() -> Vec<Case> {
    vec![
        broken(
            verify::MISPLACED,
            "turned",
            "`negate` has no `result_accuracy`; leave it out",
            |s| {
                let turned = add(&mut s.module, s.main, Op::Negate, "f32[4]", &[s.x], "turned");
                let mut extras = Extras::default();
                let text = Verbatim("{mode=highest}".into());
                extras.other.push(("result_accuracy".into(), text));
                s.module.set_extras(turned, extras);
            },
        ),
        broken(
            verify::COMPOSITE,
            "call",
            "a composite call has a name; write frontend_attributes={composite.name=\"dialect.op\"}",
            |s| {
                let name = "composite";
                let to_apply = callee_before(&mut s.module, s.main, name);
                let op = Op::Call(Box::new(CallAttrs { to_apply, is_composite: true }));
                add(&mut s.module, s.main, op, "f32[4]", &[s.x], "call");
            },
        ),
        broken(
            verify::WRAPPED,
            "wrapped",
            "`async-start` runs it, so it has parameters and one op; move `first` out of it",
            |s| {
                let wrapped = s.module.add_computation_before("wrapped", s.main);
                let x = add(&mut s.module, wrapped, parameter(0), "f32[4]", &[], "x");
                let first = add(&mut s.module, wrapped, Op::Negate, "f32[4]", &[x], "first");
                add(&mut s.module, wrapped, Op::Negate, "f32[4]", &[first], "second");
                let calls = AttrValue::Computation(wrapped);
                let start = op(Opcode::AsyncStart, vec![("calls", calls)]);
                let state = "((f32[4]), f32[4])";
                let start = add(&mut s.module, s.main, start, state, &[s.x], "start");
                let done = op(Opcode::AsyncDone, vec![]);
                add(&mut s.module, s.main, done, "f32[4]", &[start], "done");
            },
        ),
        broken(
            verify::BUFFERS,
            "made",
            "its buffer {} must be one of its operands, not 0; say which in \
             output_to_operand_aliasing",
            |s| {
                let made = Shape::Buffer(Box::new(Shape::array(ElementType::F32, [4])));
                let at = Position::Before(s.sum);
                s.module.insert(at, custom_call(), made, &[], "made").unwrap();
            },
        ),
        broken(
            verify::TRANSFERS,
            "other",
            "it shares channel 1 with `one`, but their shapes differ; give it a channel of its own",
            |s| {
                let token = add(&mut s.module, s.main, Op::AfterAll, "token[]", &[], "token");
                let transfer = |opcode| {
                    let channel = ("channel_id", AttrValue::Int(1));
                    op(opcode, vec![channel, ("is_host_transfer", AttrValue::Bool(true))])
                };
                for (name, size) in [("one", 4), ("other", 5)] {
                    let shape = format!("(f32[{size}], u32[], token[])");
                    let recv = transfer(Opcode::Recv);
                    let recv = add(&mut s.module, s.main, recv, &shape, &[token], name);
                    let (done, shape) =
                        (transfer(Opcode::RecvDone), format!("(f32[{size}], token[])"));
                    add(&mut s.module, s.main, done, &shape, &[recv], &format!("{name}.done"));
                }
            },
        ),
        broken(
            verify::ORIGIN,
            "sum",
            "the origin has not the form of the shape f32[4]; write one for each of its arrays, \
             in parentheses as the tuples have them",
            with_extras(|extras| {
                let origin = Origin::Value(OriginTree::Tuple(Vec::new()));
                extras.origin = Some(Box::new(origin));
            }),
        ),
        broken(
            verify::UNKNOWN_MESH,
            "sum",
            "its sharding names the mesh @mesh, and `xla.sdy.meshes` of the module has none; add the \
             mesh to the module's `frontend_attributes`",
            with_extras(|extras| {
                let sharding = "#sdy.sharding<@mesh, [{\"x\"}]>";
                extras.frontend_attributes = vec![("xla.sdy.sharding".into(), sharding.into())];
            }),
        ),
    ]
}

/// Returns a computation that negates.
fn callee_before(module: &mut Module, main: CompId, name: &str) -> CompId {
    let computation = module.add_computation_before(name, main);
    let x = add(module, computation, parameter(0), "f32[4]", &[], "x");
    add(module, computation, Op::Negate, "f32[4]", &[x], "y");
    computation
}

pub(crate) fn cases() -> Vec<Case> {
    [devices(), shardings(), buffers(), others(), program(), claims()]
        .into_iter()
        .flatten()
        .collect()
}

/// Text without tables names frames all the same, and XLA forgets them.
#[test]
fn frames_without_tables_are_tolerated() {
    let mut s = small();
    s.module.set_metadata(s.x, OpMetadata { stack_frame_id: 7, ..Default::default() });
    assert_eq!(check(&s.module), []);
}

/// Asserts that sound modules are accepted.
#[test]
fn what_is_sound_is_accepted() {
    let mut s = small();
    s.module.header.input_output_alias.push(InputOutputAlias {
        output: Dims::new(),
        parameter: 1,
        parameter_part: Dims::new(),
        must: false,
    });
    s.module.header.buffer_donors.push((0, smallvec![]));
    sharded(along(mesh(&[("x", 2), ("y", 1)]), 1))(&mut s);
    let lists = ReplicaGroups::Lists(vec![vec![2], vec![0, 1]]);
    broadcast_among(lists, 1)(&mut s);
    assert_eq!(check(&s.module), []);
}
