//! Looking at evaluations while they go on.

use std::sync::Mutex;
use std::time::Duration;

use tilewright_interp::{Devices, EvalError, Evaluation, Observer, Progress, Seen};
use tilewright_ir::{ElementType, Literal, Verified};

/// The observation of an instruction.
#[derive(Debug)]
struct Event {
    name: String,
    value: Literal,
    bytes: u64,
    elapsed: Duration,
    own: Duration,
}

struct Diary<'m> {
    module: &'m Verified,
    events: Mutex<Vec<Event>>,
}

impl Observer for Diary<'_> {
    fn evaluated(&self, seen: &Seen<'_>) {
        self.events.lock().unwrap().push(Event {
            name: self.module.name_of(seen.id()).to_owned(),
            value: seen.literal().unwrap(),
            bytes: seen.bytes(),
            elapsed: seen.elapsed(),
            own: seen.own(),
        });
    }
}

fn module(text: &str) -> Verified {
    tilewright_text::parse_and_verify(text).unwrap()
}

fn scalar(value: i32) -> Literal {
    Literal::scalar(ElementType::S32, value).unwrap()
}

fn seen(
    module: &Verified,
    inputs: &[Literal],
    how: impl for<'a> Fn(Evaluation<'a>) -> Evaluation<'a>,
) -> Vec<Event> {
    let diary = Diary { module, events: Mutex::default() };
    how(Evaluation::new(module)).observer(&diary).run(&[inputs.to_vec()]).unwrap();
    diary.events.into_inner().unwrap()
}

fn names(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| event.name.as_str()).collect()
}

const LOOP: &str = "HloModule m
cond {
  i = s32[] parameter(0)
  two = s32[] constant(2)
  ROOT less = pred[] compare(i, two), direction=LT
}
body {
  j = s32[] parameter(0)
  one = s32[] constant(1)
  ROOT next = s32[] add(j, one)
}
ENTRY e {
  zero = s32[] parameter(0)
  ROOT w = s32[] while(zero), condition=cond, body=body
}";

#[test]
fn every_turn_of_a_loop_is_seen_before_the_loop() {
    let module = module(LOOP);
    let events = seen(&module, &[scalar(0)], |e| e);
    let (test, turn) = (["i", "two", "less"], ["j", "one", "next"]);
    let expected = [&["zero"][..], &test, &turn, &test, &turn, &test, &["w"]].concat();
    assert_eq!(names(&events), expected);
    let nexts = events.iter().filter(|event| event.name == "next");
    let values: Vec<&Literal> = nexts.map(|event| &event.value).collect();
    assert_eq!(values, [&scalar(1), &scalar(2)]);
    let whole = events.last().unwrap();
    assert_eq!((&whole.value, whole.bytes), (&scalar(2), 4));
}

/// The time of a loop holds that of its turns, its own time does not.
#[test]
fn time_is_counted_once() {
    let module = module(LOOP);
    let events = seen(&module, &[scalar(-20_000)], |e| e);
    let (whole, inner) = events.split_last().unwrap();
    let of_turns: Duration = inner.iter().map(|event| event.own).sum();
    assert!(inner.iter().all(|event| event.elapsed == event.own), "nothing in it calls");
    assert!(whole.elapsed >= of_turns.saturating_add(whole.own).saturating_sub(inner[0].own));
    assert!(whole.own < whole.elapsed);
}

/// Observed instructions run one by one, also those that otherwise run together, with the same
/// values.
#[test]
fn elementwise_instructions_are_seen_one_by_one() {
    let module = module(
        "HloModule m
         ENTRY e {
           c = f32[] constant(2)
           x = f32[8192] broadcast(c), dimensions={}
           y = f32[8192] multiply(x, x)
           z = f32[8192] add(y, x)
           k = token[] after-all()
           ROOT t = (f32[8192], token[]) tuple(z, k)
         }",
    );
    let events = seen(&module, &[], |e| e);
    assert_eq!(names(&events), ["c", "x", "y", "z", "k", "t"]);
    let bytes: Vec<u64> = events.iter().map(|event| event.bytes).collect();
    assert_eq!(bytes, [4, 32768, 32768, 32768, 0, 32768]);
    let first = |at: usize| events[at].value.as_array().unwrap().as_slice::<f32>().unwrap()[0];
    assert_eq!((first(1), first(2), first(3)), (2.0, 4.0, 6.0));
}

#[test]
fn one_device_is_looked_at() {
    let module = module(
        "HloModule m
         ENTRY e {
           ROOT me = u32[] replica-id()
         }",
    );
    let devices = Devices { replicas: 3, partitions: 1 };
    let value = |device: u32| Literal::scalar(ElementType::U32, device).unwrap();
    let first = seen(&module, &[], |e| e.devices(devices));
    assert_eq!(first.iter().map(|event| &event.value).collect::<Vec<_>>(), [&value(0)]);
    let last = seen(&module, &[], |e| e.devices(devices).watched(2));
    assert_eq!(last.iter().map(|event| &event.value).collect::<Vec<_>>(), [&value(2)]);
}

#[test]
fn progress_tells_steps_and_the_instruction() {
    let module = module(LOOP);
    let progress = Progress::new();
    assert_eq!((progress.steps(), progress.instruction()), (0, None));
    Evaluation::new(&module).progress(&progress).run(&[vec![scalar(0)]]).unwrap();
    // Before the last compare: the loop, its two turns, four instructions in
    // them, and of the conditions five before this one; some count twice.
    assert!((1 + 2 + 4 + 5..=24).contains(&progress.steps()), "{progress:?}");
    assert_eq!(module.name_of(progress.instruction().unwrap()), "less");
}

/// An observer that cancels at the third instruction.
struct Canceller<'p> {
    progress: &'p Progress,
    seen: Mutex<u32>,
}

impl Observer for Canceller<'_> {
    fn evaluated(&self, _seen: &Seen<'_>) {
        let mut seen = self.seen.lock().unwrap();
        *seen += 1;
        if *seen == 3 {
            self.progress.cancel();
        }
    }
}

#[test]
fn a_cancelled_evaluation_stops_before_its_next_instruction() {
    let endless = module(
        "HloModule m
         c { x = s32[] parameter(0)
             ROOT t = pred[] constant(true) }
         b { x = s32[] parameter(0)
             ROOT y = s32[] negate(x) }
         ENTRY e { x = s32[] parameter(0)
                   ROOT w = s32[] while(x), condition=c, body=b }",
    );
    let progress = Progress::new();
    let canceller = Canceller { progress: &progress, seen: Mutex::default() };
    let evaluation = Evaluation::new(&endless).progress(&progress).observer(&canceller);
    let error = evaluation.run(&[vec![scalar(1)]]).unwrap_err();
    assert!(matches!(error, EvalError::Cancelled { .. }), "{error}");
    assert_eq!(*canceller.seen.lock().unwrap(), 3);
    assert!(progress.is_cancelled());
}

#[test]
fn cancelling_stops_devices_that_nobody_watches() {
    let endless = module(
        "HloModule m, replica_count=2
         c { x = s32[] parameter(0)
             ROOT t = pred[] constant(true) }
         b { x = s32[] parameter(0)
             ROOT y = s32[] negate(x) }
         ENTRY e { x = s32[] parameter(0)
                   ROOT w = s32[] while(x), condition=c, body=b }",
    );
    let progress = Progress::new();
    let canceller = Canceller { progress: &progress, seen: Mutex::default() };
    let evaluation = Evaluation::new(&endless)
        .devices(Devices { replicas: 2, partitions: 1 })
        .progress(&progress)
        .observer(&canceller);
    assert!(evaluation.run(&[vec![scalar(1)]]).is_err());
}
