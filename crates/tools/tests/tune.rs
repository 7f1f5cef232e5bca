//! Which forms are measured, who wins a race, and what is remembered of it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::thread;

use proptest::prelude::*;
use tilewright::{FloatMode, Options, PrintOptions, Verified};
use tilewright_tools::tune::{
    Decision, Decisions, Form, MOST_CANDIDATES, Measured, Program, Race, RaceOptions, Standing,
    candidate, candidates, table,
};

fn module(path: &str) -> Verified {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    tilewright::load_file(&root.join(path)).unwrap().module
}

fn text(module: &Verified) -> String {
    tilewright::print(module, &PrintOptions::default()).unwrap()
}

fn options(target: &str) -> Options {
    Options::new(tilewright::target(target).unwrap())
}

#[test]
fn candidates_are_distinct_and_the_default_comes_first() {
    let module = module("models/group_norm_nhwc_vjp.hlo");
    let options = options("xla-cpu-0.12");
    let found = candidates(&module, &options).unwrap();
    let default = tilewright::optimize(module.clone(), &options).unwrap();
    assert_eq!(found[0].name, "default");
    assert_eq!(text(&found[0].module), text(&default.module));
    assert_eq!(found[0].modelled(), default.report.before.cycles / default.report.after.cycles);
    assert!(found[0].passes.contains(&"factored-sums"), "{:?}", found[0].passes);
    let names: Vec<&str> = found.iter().map(|one| one.name.as_str()).collect();
    assert!(names.contains(&"without factored-sums"), "{names:?}");
    assert!(found.len() <= MOST_CANDIDATES);
    let texts: BTreeSet<String> = found.iter().map(|one| text(&one.module)).collect();
    assert_eq!(texts.len(), found.len());
    assert!(found[1..].windows(2).all(|pair| pair[0].modelled() >= pair[1].modelled()));
    // Each is made again by its name.
    for one in &found {
        let again = candidate(&module, &options, &one.name).unwrap().unwrap();
        assert_eq!(text(&again.module), text(&one.module), "{}", one.name);
    }
    let mut without = options.clone();
    without.without.push("factored-sums");
    let without = tilewright::optimize(module.clone(), &without).unwrap().module;
    let named = candidate(&module, &options, "without factored-sums").unwrap().unwrap();
    assert_eq!(text(&named.module), text(&without));
    for name in ["", "original", "without", "without nothing", "fast-math", "regrouping"] {
        assert!(candidate(&module, &options, name).unwrap().is_none(), "{name}");
    }
}

#[test]
fn no_candidate_takes_more_latitude_than_the_caller() {
    let module = module("real/group_norm_nhwc_grad_4x64x64x320.hlo");
    let exact = options("tpu-v5e").with_float_mode(FloatMode::Exact);
    assert!(
        candidates(&module, &exact).unwrap().iter().all(|one| one.float_mode == FloatMode::Exact)
    );
    let fast = options("tpu-v5e").with_float_mode(FloatMode::Fast);
    let modes: Vec<FloatMode> =
        candidates(&module, &fast).unwrap().iter().map(|one| one.float_mode).collect();
    assert_eq!(modes[0], FloatMode::Fast);
    assert!(modes.contains(&FloatMode::Guarded), "{modes:?}");
}

#[test]
fn a_module_in_which_nothing_pays_has_no_candidates() {
    let text =
        "HloModule m\nENTRY e {\n  x = f32[8] parameter(0)\n  ROOT y = f32[8] exponential(x)\n}";
    let module = tilewright::parse(text).unwrap();
    assert!(candidates(&module, &options("xla-cpu-0.12")).unwrap().is_empty());
}

/// Runs a race in which a lane takes `seconds(lane, run)`.
fn raced(candidates: usize, seconds: impl Fn(usize, usize) -> f64) -> Race {
    let mut race = Race::new(candidates, RaceOptions::default());
    let mut runs = vec![0; candidates + 1];
    while let Some(lane) = race.next() {
        race.record(seconds(lane, runs[lane]));
        runs[lane] += 1;
    }
    race
}

#[test]
fn the_fastest_wins_in_few_rounds_where_it_is_clear() {
    let race = raced(3, |lane, _| [1.0, 0.5, 0.7, 2.0][lane] * 1e-3);
    assert_eq!(race.winner(), Some(1));
    assert_eq!(race.standing(1), Some(&Standing::Won));
    assert_eq!(race.standing(3), Some(&Standing::Slower));
    assert!(race.lanes().iter().all(|lane| lane.runs == 3));
    assert_eq!(race.lanes()[1].ratio, Some(2.0));
}

#[test]
fn the_original_wins_unless_it_is_beaten_by_two_percent() {
    assert_eq!(raced(1, |lane, _| [1.0, 0.985][lane]).winner(), Some(0));
    assert_eq!(raced(1, |lane, _| [1.0, 0.97][lane] * 1e-3).winner(), Some(1));
    assert_eq!(raced(2, |lane, _| [1.0, 1.3, 1.0][lane]).winner(), Some(0));
    assert_eq!(raced(0, |_, _| 1.0).winner(), Some(0));
}

#[test]
fn of_equals_the_first_wins() {
    for other in [0.8, 0.795] {
        let noise = |lane: usize, run: usize| [1.0, 1.02, 1.01][(run + lane) % 3];
        let race = raced(2, |lane, run| [1.0, 0.8, other][lane] * 1e-3 * noise(lane, run));
        assert_eq!(race.winner(), Some(1));
    }
    assert_eq!(raced(2, |lane, _| [1.0, 0.8, 0.7][lane] * 1e-3).winner(), Some(2));
}

#[test]
fn a_noisy_leader_does_not_keep_others_from_winning() {
    // The first is 1.25 times as fast; the second is faster by its median, but in some rounds slower.
    let second = [0.5, 2.0, 0.5, 0.5, 2.0, 0.5, 0.5];
    let mut race = Race::new(2, RaceOptions { seconds: 1.0, ..RaceOptions::default() });
    for second in second {
        for _ in 0..3 {
            let lane = race.next().unwrap();
            race.record([1.0, 0.8, second][lane] * 1e-3);
        }
    }
    race.end();
    assert_eq!(race.winner(), Some(1));
}

#[test]
fn a_small_gain_must_be_one_beyond_doubt() {
    // A gain of 4 %, and runs that differ by 6 %: it takes more than the first rounds to know.
    let noise = [0.0, 0.06, 0.02, 0.05, 0.01];
    let seconds =
        |lane: usize, run: usize| [1.0, 0.96][lane] * (1.0 + noise[(run * (lane + 1)) % 5]);
    let race = raced(1, |lane, run| 1e-3 * seconds(lane, run));
    assert_eq!(race.winner(), Some(1));
    assert!(race.lanes()[0].runs > 3, "{}", race.lanes()[0].runs);
}

#[test]
fn what_slows_the_machine_for_a_while_decides_nothing() {
    // Every fifth run takes four times as long, whichever it is.
    let mut run = 0;
    let mut race = Race::new(1, RaceOptions::default());
    while let Some(lane) = race.next() {
        run += 1;
        let slow = if run % 5 == 0 { 4.0 } else { 1.0 };
        race.record([1.0, 0.7][lane] * 1e-3 * slow);
    }
    assert_eq!(race.winner(), Some(1));
    // The machine becomes slower with each run.
    let race = raced(1, |lane, run| 1e-3 * (1.0 + 0.05 * (2 * run + lane) as f64));
    assert_eq!(race.winner(), Some(0));
}

#[test]
fn a_clock_that_jumps_spoils_its_round() {
    let race = raced(1, |lane, run| if run == 1 { -5.0 } else { [1.0, 0.5][lane] * 1e-3 });
    assert_eq!(race.winner(), Some(1));
    assert_eq!(race.lanes()[0].runs, 3);
    // If it never works, nothing is known.
    let race = raced(1, |_, _| f64::NAN);
    assert_eq!((race.winner(), race.lanes()[1].ratio), (Some(0), None));
}

#[test]
fn a_race_that_takes_too_long_ends_with_what_is_known() {
    // One of three rounds contradicts the others.
    let race = raced(1, |lane, run| [3.0, if run == 2 { 3.0 } else { 1.0 }][lane]);
    assert_eq!((race.winner(), race.lanes()[0].runs), (Some(0), 3));
    // Three rounds may take longer, if they take less than three times as long.
    assert_eq!(raced(1, |lane, _| [8.0, 1.0][lane]).winner(), Some(1));
    assert_eq!(raced(1, |lane, _| [14.0, 1.0][lane]).winner(), Some(0));
    let mut race = Race::new(1, RaceOptions { seconds: 100.0, ..RaceOptions::default() });
    for _ in 0..3 {
        let lane = race.next().unwrap();
        race.record([20.0, 1.0][lane]);
    }
    race.end();
    assert_eq!(race.winner(), Some(0));
}

#[test]
fn lanes_that_fail_leave_the_race() {
    let mut race = Race::new(2, RaceOptions::default());
    race.take_out(2, "out of memory");
    assert_eq!(race.standing(2), Some(&Standing::Out("out of memory".to_owned())));
    while let Some(lane) = race.next() {
        assert_ne!(lane, 2);
        race.record([1.0, 0.5][lane] * 1e-3);
    }
    assert_eq!(race.winner(), Some(1));
    // In the middle of a round, the others go on.
    let mut race = Race::new(2, RaceOptions::default());
    while let Some(lane) = race.next() {
        if lane == 1 && race.lanes()[0].runs == 1 {
            race.take_out(1, "fails");
        } else {
            race.record([1.0, 0.5, 0.8][lane] * 1e-3);
        }
    }
    assert_eq!(race.winner(), Some(2));
    // Nothing is measured without the original, or without a candidate.
    let mut race = Race::new(1, RaceOptions::default());
    race.take_out(0, "fails");
    assert_eq!((race.next(), race.winner()), (None, Some(0)));
    let mut race = Race::new(1, RaceOptions::default());
    race.take_out(1, "differs");
    assert_eq!((race.next(), race.winner()), (None, Some(0)));
}

proptest! {
    /// A candidate that is as fast as the original wins less than once in a hundred noisy races.
    #[test]
    fn noise_does_not_win(seed in any::<u64>()) {
        let mut state = seed | 1;
        let mut noise = move || {
            // Marsaglia's xorshift; a tenth of the runs are slowed down by up to a half.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let uniform = (state >> 11) as f64 / (1u64 << 53) as f64;
            1.0 + if uniform < 0.1 { 5.0 * uniform } else { 0.02 * uniform }
        };
        let mut lost = 0;
        for _ in 0..20 {
            let mut race = Race::new(1, RaceOptions::default());
            while race.next().is_some() {
                race.record(1e-2 * noise());
            }
            lost += usize::from(race.winner() != Some(0));
        }
        prop_assert!(lost <= 1, "{lost} of 20");
    }
}

fn decision(module: &str, winner: &str) -> Decision {
    Decision {
        program: Program {
            module: module.to_owned(),
            options: "guarded".to_owned(),
            device: "cpu x1".to_owned(),
            engine: "jaxlib 0.12.0.1".to_owned(),
            version: "0.2.0".to_owned(),
        },
        function: "step".to_owned(),
        winner: winner.to_owned(),
        digest: "f00d".to_owned(),
        seconds: 1.5,
        forms: vec![Measured {
            form: Form::original(),
            seconds: Some(1e-3),
            spread: 0.01,
            measured: Some(1.0),
            outcome: "slower".to_owned(),
        }],
    }
}

#[test]
fn the_last_decision_for_a_program_counts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("of/a/user").join("decisions.jsonl");
    assert_eq!(Decisions::read(&path).unwrap().iter().len(), 0);
    assert_eq!(Decisions::clear(&path).unwrap(), 0);
    for (module, winner) in [("a", "default"), ("b", "exact"), ("a", "original")] {
        Decisions::append(&path, &decision(module, winner)).unwrap();
    }
    let known = Decisions::read(&path).unwrap();
    assert_eq!(known.find(&decision("a", "").program), Some(&decision("a", "original")));
    assert_eq!((known.iter().len(), known.damaged), (2, 0));
    // Whatever else a decision depends on is another program.
    let mut other = decision("a", "").program;
    other.engine = "jaxlib 0.13.0".to_owned();
    assert_eq!(known.find(&other), None);
    assert_eq!(Decisions::clear(&path).unwrap(), 2);
    assert_eq!(Decisions::read(&path).unwrap().iter().len(), 0);
}

#[test]
fn damaged_lines_are_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("decisions.jsonl");
    let mut bytes = b"{\"what\": 1}\n\xff\xfe\x00\n[1, 2\n\n".to_vec();
    bytes.extend(serde_json::to_vec(&decision("a", "default")).unwrap());
    // A process that was killed has written half a line.
    bytes.extend(b"\n{\"module\":\"b\",\"opt");
    fs::write(&path, &bytes).unwrap();
    let known = Decisions::read(&path).unwrap();
    assert_eq!((known.iter().len(), known.damaged), (1, 4));
    // What comes next is not lost with it.
    Decisions::append(&path, &decision("c", "default")).unwrap();
    assert_eq!(Decisions::read(&path).unwrap().iter().len(), 2);
}

#[test]
fn a_long_file_is_written_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("decisions.jsonl");
    let line = serde_json::to_string(&decision("a", "default")).unwrap() + "\n";
    fs::write(&path, line.repeat((5 << 20) / line.len())).unwrap();
    Decisions::append(&path, &decision("b", "default")).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().filter(|line| !line.is_empty()).count(), 2);
    assert_eq!(Decisions::read(&path).unwrap().iter().len(), 2);
    // What a newer version may have written stays, what is half a line does not, and the oldest go first.
    let mut text = String::from("{\"newer\":1}\n{\"module\":\"b\n");
    for number in 0..6000 {
        text += &(serde_json::to_string(&decision(&number.to_string(), "default")).unwrap() + "\n");
    }
    text += "{\"newer\":2}\n";
    fs::write(&path, &text).unwrap();
    Decisions::append(&path, &decision("last", "default")).unwrap();
    let known = Decisions::read(&path).unwrap();
    let has = |module: &str| known.find(&decision(module, "").program).is_some();
    assert!(has("last") && has("5999") && !has("0"));
    assert_eq!(known.damaged, 1);
    assert!(fs::metadata(&path).unwrap().len() <= 1 << 19);
}

#[test]
fn a_place_that_cannot_be_written_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(Decisions::append(&file.join("decisions.jsonl"), &decision("a", "default")).is_err());
    assert!(Decisions::read(folder.path()).is_err());
}

#[test]
fn threads_write_whole_lines() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("decisions.jsonl");
    thread::scope(|scope| {
        for thread in 0..4 {
            let path = &path;
            scope.spawn(move || {
                for number in 0..25 {
                    let module = format!("{thread}/{number}");
                    Decisions::append(path, &decision(&module, "default")).unwrap();
                }
            });
        }
    });
    let known = Decisions::read(&path).unwrap();
    assert_eq!((known.iter().len(), known.damaged), (100, 0));
}

#[test]
fn a_table_tells_who_won_and_why_the_others_lost() {
    let form = |name: &str, passes: &[&str], modelled: f64| Form {
        name: name.to_owned(),
        passes: passes.iter().map(|&pass| pass.to_owned()).collect(),
        modelled: Some(modelled),
        saved_cycles: None,
    };
    let forms = [
        Form::original(),
        form("default", &["factored-sums", "reshape-out-of-region"], 3.24),
        form("exact", &["reshape-out-of-region"], 1.5),
        form("without factored-sums", &["reshape-out-of-region"], 1.4),
    ];
    let mut race = Race::new(3, RaceOptions::default());
    race.take_out(3, "out of memory");
    while let Some(lane) = race.next() {
        race.record([2.0, 1.0, 2.5][lane] * 1e-3);
    }
    let measured = Measured::all(&race, &forms);
    assert_eq!(measured[1].measured, Some(2.0));
    insta::assert_snapshot!(table(&measured));
}
