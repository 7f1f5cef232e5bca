//! Programs on several devices.

use std::fs::File;
use std::io::BufReader;

use tilewright_interp::{
    Devices, EvalError, Evaluation, Limits, Outputs, Tolerance, compare, evaluate, join_rows, npz,
    shape_of_rows, split_rows, tells_devices_apart,
};
use tilewright_ir::{ArrayLiteral, Data, ElementType, Literal, Shape, Verified};
use tilewright_testkit::fixture::{Fixture, fixtures};

#[test]
fn programs_on_several_devices_compute_what_xla_did() {
    let all = fixtures("devices").unwrap();
    assert!(all.len() > 15, "fixtures/devices is all there");
    for fixture in all {
        if let Err(error) = check(&fixture) {
            panic!("{}: {error}", fixture.name);
        }
    }
}

fn check(fixture: &Fixture) -> Result<(), String> {
    let module = module(&fixture.text().map_err(|e| e.to_string())?);
    let devices = Devices::of(&module);
    let count = devices.count().ok_or("too many devices")?;
    let rows = |prefix: &str, shapes: &[&Shape]| -> Result<Vec<Vec<Literal>>, String> {
        let file = File::open(fixture.npz.as_ref().ok_or("it has no .npz")?);
        let reader = BufReader::new(file.map_err(|e| e.to_string())?);
        let shapes: Vec<Shape> = shapes.iter().map(|s| shape_of_rows(s, count)).collect();
        let shapes: Vec<&Shape> = shapes.iter().collect();
        let all = npz::read(reader, prefix, &shapes).map_err(|e| e.to_string())?;
        let split = all.iter().map(|value| split_rows(value, count));
        split.collect::<Result<_, _>>().map_err(|e| e.to_string())
    };
    let entry = module.computation(module.entry().ok_or("no entry")?);
    let parameters: Vec<&Shape> = entry.parameters().iter().map(|&p| module.shape(p)).collect();
    let given = rows("in", &parameters)?;
    let inputs: Vec<Vec<Literal>> =
        (0..count).map(|device| given.iter().map(|rows| rows[device].clone()).collect()).collect();
    let root = module.shape(entry.root().ok_or("no root")?);
    let expected = rows("out", &[root])?.pop().ok_or("no outputs")?;
    let actual = Evaluation::new(&module).devices(devices).run(&inputs);
    let actual = actual.map_err(|e| e.to_string())?;
    let whole = join_rows(&actual.iter().map(|a| &a.output).collect::<Vec<_>>());
    assert_eq!(whole.map_err(|e| e.to_string())?.shape(), shape_of_rows(root, count));
    for (device, (expected, actual)) in expected.iter().zip(&actual).enumerate() {
        let tolerance = Tolerance { ulps: 4, ..Tolerance::EXACT };
        let found = compare(expected, &actual.output, |_| tolerance).map_err(|e| e.to_string())?;
        if let Some(different) = found.iter().find(|found| !found.equal) {
            return Err(format!("device {device}: {different:?}"));
        }
    }
    Ok(())
}

fn module(text: &str) -> Verified {
    tilewright_text::parse_and_verify(text).unwrap()
}

fn numbers(values: &[i32]) -> Literal {
    let dims = [i64::try_from(values.len()).unwrap()];
    ArrayLiteral::new(ElementType::S32, dims, Data::S32(values.to_vec())).unwrap().into()
}

fn scalar(value: i32) -> Literal {
    Literal::scalar(ElementType::S32, value).unwrap()
}

fn run(text: &str, replicas: usize, inputs: &[Vec<Literal>]) -> Result<Vec<Outputs>, EvalError> {
    let devices = Devices { replicas, partitions: 1 };
    Evaluation::new(&module(text)).devices(devices).run(inputs)
}

fn outputs(text: &str, inputs: &[Literal]) -> Vec<Literal> {
    let inputs: Vec<Vec<Literal>> = inputs.iter().map(|input| vec![input.clone()]).collect();
    let results = run(text, inputs.len(), &inputs).unwrap();
    results.into_iter().map(|outputs| outputs.output).collect()
}

#[test]
fn a_broadcast_hands_out_what_the_first_of_the_group_has() {
    let text = "HloModule m
        ENTRY main {
          x = s32[] parameter(0)
          ROOT r = s32[] collective-broadcast(x), replica_groups={{1,0}}
        }";
    let inputs = [scalar(10), scalar(11), scalar(12)];
    // Device 2 is in no group: zero, as for a permute without a source.
    assert_eq!(outputs(text, &inputs), [scalar(11), scalar(11), scalar(0)]);
    // Groups may leave out any device.
    let text = text.replace("{{1,0}}", "{{2,1}}");
    assert_eq!(outputs(&text, &inputs), [scalar(0), scalar(12), scalar(12)]);
}

/// The values are those of the examples in StableHLO's specification, `collective_reduce`.
#[test]
fn a_reduction_goes_to_the_root_of_the_group() {
    let text = "HloModule m
        add { a = s32[] parameter(0) b = s32[] parameter(1) ROOT r = s32[] add(a, b) }
        ENTRY main {
          x = s32[2] parameter(0)
          ROOT r = s32[2] collective-reduce(x), replica_groups={{0,1,2,3}}, to_apply=add
        }";
    let pair = |values: [i32; 2]| {
        Literal::Array(ArrayLiteral::new(ElementType::S32, [2], Data::S32(values.into())).unwrap())
    };
    let inputs = [pair([1, 2]), pair([3, 4]), pair([5, 6]), pair([7, 8])];
    let none = pair([0, 0]);
    let to = |root: usize| {
        let mut results = vec![none.clone(); 4];
        results[root] = pair([16, 20]);
        results
    };
    assert_eq!(outputs(text, &inputs), to(0));
    let dynamic = text
        .replace("ROOT r = s32[2]", "root = s32[1] constant({3})\n          ROOT r = s32[2]")
        .replace("collective-reduce(x)", "collective-reduce(x, root), has_dynamic_root=true");
    assert_eq!(outputs(&dynamic, &inputs), to(3));
    // A root is a place in a group, and each array has one.
    let broadcast = "HloModule m
        ENTRY main {
          x = s32[2] parameter(0)
          roots = s32[2] constant({1, 0})
          all = (s32[2], s32[2]) collective-broadcast(x, x, roots), replica_groups={{2,3}}, has_dynamic_root=true
          a = s32[2] get-tuple-element(all), index=0
          b = s32[2] get-tuple-element(all), index=1
          ROOT r = s32[2] subtract(a, b)
        }";
    assert_eq!(outputs(broadcast, &inputs), [none.clone(), none, pair([2, 2]), pair([2, 2])]);
}

#[test]
fn rows_go_where_their_sender_says() {
    // Device 0 has [1 2 3 4] and sends 1 row to itself, 3 to the other; device
    // 1 has [5 6 7 8] and sends 2 rows to the other, 1 to itself. They go to
    // the places at 0 and 3 of device 0's output, and 2 and 0 of device 1's.
    let text = "HloModule m
        ENTRY main {
          x = s32[4] parameter(0)
          zero = s32[] constant(-1)
          out = s32[5] broadcast(zero), dimensions={}
          me = u32[] replica-id()
          none = u32[] constant(0)
          first = pred[] compare(me, none), direction=EQ
          all = pred[2] broadcast(first), dimensions={}
          from0 = s32[2] constant({0, 1})
          from1 = s32[2] constant({2, 0})
          from = s32[2] select(all, from0, from1)
          size0 = s32[2] constant({1, 3})
          size1 = s32[2] constant({2, 1})
          size = s32[2] select(all, size0, size1)
          to0 = s32[2] constant({0, 2})
          to1 = s32[2] constant({3, 0})
          to = s32[2] select(all, to0, to1)
          got0 = s32[2] constant({1, 2})
          got1 = s32[2] constant({3, 1})
          got = s32[2] select(all, got0, got1)
          ROOT r = s32[5] ragged-all-to-all(x, out, from, size, to, got),
            replica_groups={{0,1}}
        }";
    let inputs = [numbers(&[1, 2, 3, 4]), numbers(&[5, 6, 7, 8])];
    let expected = [numbers(&[1, -1, -1, 7, 8]), numbers(&[5, -1, 2, 3, 4])];
    assert_eq!(outputs(text, &inputs), expected);
}

/// Two runs of rows for each device, one after the other.
#[test]
fn ragged_all_to_all_in_several_updates() {
    let text = "HloModule m
        ENTRY main {
          x = s32[4] parameter(0)
          zero = s32[] constant(-1)
          out = s32[5] broadcast(zero), dimensions={}
          me = u32[] replica-id()
          none = u32[] constant(0)
          first = pred[] compare(me, none), direction=EQ
          all = pred[4] broadcast(first), dimensions={}
          from = s32[4] constant({0, 1, 2, 3})
          size = s32[4] constant({1, 1, 1, 1})
          to0 = s32[4] constant({0, 1, 0, 1})
          to1 = s32[4] constant({2, 3, 2, 3})
          to = s32[4] select(all, to0, to1)
          ROOT r = s32[5] ragged-all-to-all(x, out, from, size, to, size),
            replica_groups={{0,1}}
        }";
    let inputs = [numbers(&[1, 2, 3, 4]), numbers(&[5, 6, 7, 8])];
    let expected = [numbers(&[1, 2, 5, 6, -1]), numbers(&[3, 4, 7, 8, -1])];
    assert_eq!(outputs(text, &inputs), expected);
}

#[test]
fn starts_and_dones_give_what_the_whole_op_gives() {
    let text = "HloModule m
        add {
          a = s32[] parameter(0)
          b = s32[] parameter(1)
          ROOT c = s32[] add(a, b)
        }
        ENTRY main {
          x = s32[2] parameter(0)
          gather = (s32[2], s32[4]) all-gather-start(x), dimensions={0}, replica_groups={}
          reduce = s32[2] all-reduce-start(x), replica_groups={}, to_apply=add
          permute = (s32[2], s32[2], u32[], u32[]) collective-permute-start(x),
            source_target_pairs={{0,1},{1,0}}
          copy = (s32[2], s32[2], u32[]) copy-start(x)
          scatter = ((s32[2]), s32[1]) reduce-scatter-start(x), dimensions={0},
            replica_groups={}, to_apply=add
          going = ((s32[2]), s32[1]) reduce-scatter-update(scatter)
          gathered = s32[4] all-gather-done(gather)
          reduced = s32[2] all-reduce-done(reduce)
          permuted = s32[2] collective-permute-done(permute)
          copied = s32[2] copy-done(copy)
          scattered = s32[1] reduce-scatter-done(going)
          ROOT r = (s32[4], s32[2], s32[2], s32[2], s32[1])
            tuple(gathered, reduced, permuted, copied, scattered)
        }";
    let results = outputs(text, &[numbers(&[1, 2]), numbers(&[30, 40])]);
    let all = |permuted: &[i32], copied: &[i32], scattered: i32| {
        Literal::Tuple(vec![
            numbers(&[1, 2, 30, 40]),
            numbers(&[31, 42]),
            numbers(permuted),
            numbers(copied),
            numbers(&[scattered]),
        ])
    };
    assert_eq!(results, [all(&[30, 40], &[1, 2], 31), all(&[1, 2], &[30, 40], 42)]);
}

/// A program that sends values on in a ring, as often as there are devices.
const RING: &str = "HloModule m
    more {
      s = (s32[], s32[]) parameter(0)
      i = s32[] get-tuple-element(s), index=0
      n = s32[] constant(3)
      ROOT r = pred[] compare(i, n), direction=LT
    }
    turn {
      s = (s32[], s32[]) parameter(0)
      i = s32[] get-tuple-element(s), index=0
      x = s32[] get-tuple-element(s), index=1
      one = s32[] constant(1)
      ten = s32[] constant(10)
      next = s32[] add(i, one)
      start = token[] after-all()
      recv = (s32[], u32[], token[]) recv(start), channel_id=1,
        frontend_attributes={_xla_send_recv_source_target_pairs={{0,1},{1,2},{2,0}}}
      send = (s32[], u32[], token[]) send(x, start), channel_id=1,
        frontend_attributes={_xla_send_recv_source_target_pairs={{0,1},{1,2},{2,0}}}
      got = (s32[], token[]) recv-done(recv), channel_id=1
      sent = token[] send-done(send), channel_id=1
      y = s32[] get-tuple-element(got), index=0
      more = s32[] multiply(y, ten)
      own = s32[] add(more, next)
      ROOT r = (s32[], s32[]) tuple(next, own)
    }
    ENTRY main {
      x = s32[] parameter(0)
      zero = s32[] constant(0)
      start = (s32[], s32[]) tuple(zero, x)
      end = (s32[], s32[]) while(start), condition=more, body=turn
      ROOT r = s32[] get-tuple-element(end), index=1
    }";

#[test]
fn what_is_sent_arrives_in_order() {
    // Around the ring and back, with 1, 2 and 3 appended on the way.
    let inputs = [scalar(7), scalar(8), scalar(9)];
    assert_eq!(outputs(RING, &inputs), [scalar(7123), scalar(8123), scalar(9123)]);
}

#[test]
fn a_program_may_send_to_itself() {
    let text = RING.replace(
        "frontend_attributes={_xla_send_recv_source_target_pairs={{0,1},{1,2},{2,0}}}",
        "is_host_transfer=false",
    );
    let result = evaluate(&module(&text), &[scalar(7)], &Limits::default());
    assert_eq!(result, Ok(scalar(7123)));
    let error = run(&text, 2, &[vec![scalar(7)]]).unwrap_err().to_string();
    assert!(error.contains("does not say who sends to whom"), "{error}");
}

#[test]
fn one_that_gets_nothing_has_zeros() {
    let text = "HloModule m
        ENTRY main {
          x = s32[] parameter(0)
          start = token[] after-all()
          recv = (s32[], u32[], token[]) recv(start), channel_id=1,
            frontend_attributes={_xla_send_recv_source_target_pairs={{0,1}}}
          send = (s32[], u32[], token[]) send(x, start), channel_id=1,
            frontend_attributes={_xla_send_recv_source_target_pairs={{0,1}}}
          got = (s32[], token[]) recv-done(recv), channel_id=1
          sent = token[] send-done(send), channel_id=1
          ROOT y = s32[] get-tuple-element(got), index=0
        }";
    assert_eq!(outputs(text, &[scalar(7), scalar(8)]), [scalar(0), scalar(7)]);
    let more = text
        .replace("(s32[], u32[], token[]) send(x,", "(s32[2], u32[], token[]) send(xx,")
        .replace("start = ", "xx = s32[2] broadcast(x), dimensions={}\n          start = ");
    let error = run(&more, 2, &[vec![scalar(7)]]).unwrap_err().to_string();
    assert!(error.contains("`got`: `recv-done`") && error.contains("receives s32[]"), "{error}");
    assert!(error.contains("what was sent is s32[2]"), "{error}");
}

/// Only device 0 passes the collective.
const PASSED_BY: &str = "HloModule m
    add {
      a = s32[] parameter(0)
      b = s32[] parameter(1)
      ROOT c = s32[] add(a, b)
    }
    together {
      x = s32[] parameter(0)
      ROOT r = s32[] all-reduce(x), replica_groups={}, to_apply=add
    }
    alone {
      x = s32[] parameter(0)
      ROOT r = s32[] copy(x)
    }
    ENTRY main {
      x = s32[] parameter(0)
      me = u32[] replica-id()
      number = s32[] convert(me)
      ROOT r = s32[] conditional(number, x, x), branch_computations={together, alone}
    }";

#[test]
fn devices_that_wait_for_nobody_are_told_so() {
    let error = run(PASSED_BY, 2, &[vec![scalar(1)]]).unwrap_err();
    assert_eq!(error, EvalError::Deadlock { instruction: "r".into() });
    // Alone, a device waits for no other.
    assert_eq!(outputs(PASSED_BY, &[scalar(5)]), [scalar(5)]);
}

#[test]
fn the_device_that_fails_says_why() {
    let text =
        PASSED_BY.replace("s32[] copy(x)", "s32[] custom-call(x), custom_call_target=\"no\"");
    let error = run(&text, 3, &[vec![scalar(1)]]).unwrap_err().to_string();
    assert!(error.contains("custom call target `no`"), "{error}");
}

#[test]
fn groups_name_devices_that_there_are() {
    let text = "HloModule m
        ENTRY main {
          x = s32[] parameter(0)
          ROOT r = s32[] collective-permute(x), source_target_pairs={{0,1},{1,2}}
        }";
    let error = run(text, 2, &[vec![scalar(1)]]).unwrap_err().to_string();
    assert!(error.contains("names device 2, but the program runs on 2 replicas"), "{error}");
    let devices = Devices { replicas: 100, partitions: 100 };
    let module = module(text);
    let error = Evaluation::new(&module).devices(devices).run(&[vec![scalar(1)]]).unwrap_err();
    assert!(error.to_string().contains("there may be 1 to 1024 devices"), "{error}");
    let error = run(text, 3, &[vec![scalar(1)], vec![scalar(2)]]).unwrap_err().to_string();
    assert!(error.contains("2 lists of inputs were given for 3 devices"), "{error}");
}

#[test]
fn the_host_feeds_in_and_is_fed() {
    let text = "HloModule m
        ENTRY main {
          start = token[] after-all()
          in = ((s32[2], bf16[]), token[]) infeed(start)
          data = (s32[2], bf16[]) get-tuple-element(in), index=0
          fed = token[] get-tuple-element(in), index=1
          x = s32[2] get-tuple-element(data), index=0
          y = bf16[] get-tuple-element(data), index=1
          out = token[] outfeed(x, fed), outfeed_shape=s32[2]{0}
          ROOT r = bf16[] negate(y)
        }";
    let module = module(text);
    // The bits of bf16 1.5.
    let bits = Literal::scalar(ElementType::U16, 0x3fc0u16).unwrap();
    let feed = [numbers(&[3, 4]), bits];
    let evaluation = Evaluation::new(&module).infeed(&feed);
    let results = evaluation.run(&[[]]).unwrap();
    let minus = half::bf16::from_f32(-1.5);
    assert_eq!(results[0].output, Literal::scalar(ElementType::BF16, minus).unwrap());
    assert_eq!(results[0].outfeed, [numbers(&[3, 4])]);
    let error = Evaluation::new(&module).infeed(&feed[..1]).run(&[[]]).unwrap_err().to_string();
    assert!(error.contains("nothing more was given"), "{error}");
    let wrong = [scalar(3)];
    let error = Evaluation::new(&module).infeed(&wrong).run(&[[]]).unwrap_err().to_string();
    assert!(error.contains("reads s32[2], but what was given is s32[]"), "{error}");
}

#[test]
fn what_tells_devices_apart_is_known() {
    assert!(tells_devices_apart(&module(PASSED_BY)));
    assert!(tells_devices_apart(&module(RING)));
    let text = "HloModule m
        ENTRY main {
          ROOT x = s32[] parameter(0)
        }";
    assert!(!tells_devices_apart(&module(text)));
}

#[test]
fn collectives_tell_how_many_devices_there_are() {
    let devices = |header: &str, op: &str| {
        let text = format!(
            "HloModule m{header}

add {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}}

ENTRY e {{
  x = f32[8] parameter(0)
  ROOT y = f32[8] {op}
}}
"
        );
        let Devices { replicas, partitions } = Devices::of(&module(&text));
        (replicas, partitions)
    };
    let sum =
        |attributes: &str| format!("all-reduce(x), to_apply=add, replica_groups={attributes}");
    assert_eq!(devices("", "negate(x)"), (1, 1));
    assert_eq!(devices("", &sum("{{0,2},{1,3}}")), (4, 1));
    assert_eq!(devices("", &sum("{{0,1,2}}, channel_id=1, use_global_device_ids=true")), (1, 3));
    assert_eq!(devices("", &sum("[2,4]<=[8], channel_id=1")), (8, 1));
    assert_eq!(devices("", &sum("{}")), (1, 1));
    let pairs = "collective-permute(x), source_target_pairs={{0,5},{5,0}}";
    assert_eq!(devices("", pairs), (6, 1));
    assert_eq!(devices("", &format!("{pairs}, channel_id=3")), (1, 6));
    // The header determines the number of devices.
    assert_eq!(devices(", replica_count=8", pairs), (8, 1));
}
