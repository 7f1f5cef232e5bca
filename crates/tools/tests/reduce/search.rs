//! The search itself: order, threads, limits, interruption.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tilewright::ir::Opcode;
use tilewright::{Error, Verified};
use tilewright_tools::{Candidate, Ended, ReduceOptions};

use crate::reduce::{has_op, reduced};

fn layer_norm() -> Verified {
    let path = tilewright_testkit::fixture::root().join("models/group_norm_nhwc.hlo");
    tilewright::load(path).unwrap()
}

#[test]
fn the_number_of_jobs_changes_nothing() {
    let module = layer_norm();
    let keep = |candidate: &Candidate<'_>| {
        has_op(candidate.module, Opcode::Reduce) && has_op(candidate.module, Opcode::Rsqrt)
    };
    let with = |jobs| {
        tilewright_tools::reduce(&module, &ReduceOptions::default().with_jobs(jobs), &keep).unwrap()
    };
    let (one, four) = (with(1), with(4));
    assert_eq!((&one.text, one.runs), (&four.text, four.runs));
    assert!(one.after < one.before);
    // Neither does a limit of runs.
    for most in [2, 5, 17] {
        let with = |jobs| {
            let options = ReduceOptions::default().with_jobs(jobs).with_max_runs(most);
            tilewright_tools::reduce(&module, &options, &keep).unwrap()
        };
        let (one, four) = (with(1), with(4));
        assert_eq!((&one.text, one.runs, one.ended), (&four.text, most, Ended::MaxRuns));
        assert_eq!((four.runs, four.ended), (most, Ended::MaxRuns));
    }
}

#[test]
fn no_text_is_tried_twice() {
    let seen = Mutex::new(HashSet::new());
    let keep = |candidate: &Candidate<'_>| {
        assert!(seen.lock().unwrap().insert(candidate.text.to_owned()), "{}", candidate.text);
        has_op(candidate.module, Opcode::Rsqrt)
    };
    let options = ReduceOptions::default().with_jobs(3);
    let found = tilewright_tools::reduce(&layer_norm(), &options, &keep).unwrap();
    assert!(seen.lock().unwrap().len() as u64 >= found.runs);
    assert_eq!(found.ended, Ended::Fixpoint);
}

#[test]
fn a_predicate_that_never_holds_is_an_error() {
    let error = tilewright_tools::reduce(&layer_norm(), &ReduceOptions::default(), &|_| false);
    assert!(matches!(error, Err(Error::NotKept)), "{error:?}");
}

#[test]
fn a_predicate_that_always_holds_leaves_one_instruction() {
    let found =
        tilewright_tools::reduce(&layer_norm(), &ReduceOptions::default(), &|_| true).unwrap();
    assert_eq!((found.after.instructions, found.after.ops), (1, 0), "{}", found.text);
    assert_eq!(found.after.elements, 1, "{}", found.text);
    assert!(found.runs < 20, "{} runs", found.runs);
}

/// Once a candidate passes, nobody waits for those after it, and the result is that of one thread.
#[test]
fn runs_that_are_no_longer_wanted_can_be_broken_off() {
    // The first two outputs may go; without the last two, the module does not pass.
    let module = "HloModule m
        ENTRY main {
          x = f32[] parameter(0)
          a = f32[] sine(x)
          b = f32[] cosine(x)
          c = f32[] negate(x)
          d = f32[] tanh(x)
          ROOT t = (f32[], f32[], f32[], f32[]) tuple(a, b, c, d)
        }";
    let module = tilewright::parse(module).unwrap();
    let broken_off = AtomicUsize::new(0);
    let keep = |candidate: &Candidate<'_>| {
        // What does not pass takes longer.
        if has_op(candidate.module, Opcode::Tanh) {
            std::thread::sleep(Duration::from_millis(50));
            return true;
        }
        let begun = std::time::Instant::now();
        while begun.elapsed() < Duration::from_millis(200) {
            if !candidate.is_wanted() {
                broken_off.fetch_add(1, Ordering::SeqCst);
                return true;
            }
            std::thread::yield_now();
        }
        false
    };
    let with = |jobs| {
        let options = ReduceOptions::default().with_jobs(jobs);
        tilewright_tools::reduce(&module, &options, &keep).unwrap()
    };
    let one = with(1);
    assert_eq!(broken_off.swap(0, Ordering::SeqCst), 0);
    let four = with(4);
    assert!(broken_off.into_inner() > 0);
    assert_eq!((one.text, one.runs), (four.text, four.runs));
}

/// A predicate that is interrupted says nothing; what was found before is the result.
#[test]
fn an_interruption_leaves_the_best_so_far() {
    for jobs in [1, 4] {
        let stop = AtomicBool::new(false);
        let last = Mutex::new(None);
        let progress = |step: &tilewright_tools::ReduceStep<'_>| {
            *last.lock().unwrap() = Some(step.text.to_owned());
        };
        let runs = AtomicUsize::new(0);
        let keep = |candidate: &Candidate<'_>| {
            let run = runs.fetch_add(1, Ordering::SeqCst);
            if run >= 8 {
                stop.store(true, Ordering::SeqCst);
                return true;
            }
            has_op(candidate.module, Opcode::Rsqrt)
        };
        let options =
            ReduceOptions::default().with_jobs(jobs).with_stop(&stop).with_progress(&progress);
        let found = tilewright_tools::reduce(&layer_norm(), &options, &keep).unwrap();
        assert_eq!(found.ended, Ended::Interrupted);
        assert_eq!(Some(found.text), last.into_inner().unwrap());
        assert!(has_op(&found.module, Opcode::Rsqrt));
    }
}

#[test]
fn the_time_can_be_over_at_once() {
    let options = ReduceOptions::default().with_max_time(Duration::ZERO);
    let found = tilewright_tools::reduce(&layer_norm(), &options, &|_| true).unwrap();
    assert_eq!((found.ended, found.runs), (Ended::MaxTime, 0));
    assert_eq!(found.before, found.after);
}

/// A chain of ten thousand ops is cut in a logarithmic number of runs.
#[test]
fn a_long_chain_takes_few_runs() {
    use std::fmt::Write as _;
    let mut text = "HloModule chain\nENTRY main {\n  v0 = f32[4] parameter(0)\n".to_owned();
    for i in 1..10_000 {
        let op = if i == 3777 { "tanh" } else { "sine" };
        let root = if i == 9999 { "ROOT " } else { "" };
        writeln!(text, "  {root}v{i} = f32[4] {op}(v{})", i - 1).unwrap();
    }
    text.push('}');
    let found = reduced(&text, |module, _| has_op(module, Opcode::Tanh));
    assert_eq!(found.after.instructions, 2);
    assert!(found.runs < 150, "{} runs", found.runs);
}

/// Computations that call each other twice would grow beyond all bounds if they were inlined.
#[test]
fn calls_that_double_are_not_all_inlined() {
    use std::fmt::Write as _;
    let mut text =
        "HloModule m\nf0 {\n  x = f32[] parameter(0)\n  ROOT y = f32[] tanh(x)\n}\n".to_owned();
    for i in 1..60 {
        let before = i - 1;
        write!(
            text,
            "f{i} {{\n  x = f32[] parameter(0)\n  y = f32[] call(x), to_apply=f{before}\n  \
             ROOT z = f32[] call(y), to_apply=f{before}\n}}\n"
        )
        .unwrap();
    }
    text.push_str(
        "ENTRY main {\n  x = f32[] parameter(0)\n  ROOT y = f32[] call(x), to_apply=f59\n}",
    );
    let found = reduced(&text, |module, _| has_op(module, Opcode::Tanh));
    assert_eq!(found.after.instructions, 2, "{}", found.text);
}
