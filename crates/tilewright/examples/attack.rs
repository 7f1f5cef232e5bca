//! Hunts for numbers that rewrites make wrong: `just attack --minutes 60 --seed 1`.
//!
//! Random programs whose uses of reductions are nasty, on nasty data, rewritten for every
//! target and mode and judged beside the program itself in `f64`. Failing programs are
//! shrunk and written as `.hlo` files below `--out` (`target/attack` if none is named);
//! the exit code is 1 if there are any.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::expect_used,
    reason = "a command that reports, and ends where something is wrong with itself"
)]

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant};

#[path = "../tests/attack/setup.rs"]
mod setup;

/// The request on the command line.
struct Request {
    minutes: u64,
    seed: u64,
    most: u64,
    out: PathBuf,
}

fn request() -> Result<Request, String> {
    let out = PathBuf::from("target/attack");
    let mut request = Request { minutes: 10, seed: 0, most: u64::MAX, out };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().ok_or(format!("`{word}` needs a value"))?;
        let number = || value.parse().map_err(|_| format!("`{word} {value}` is no number"));
        match word.as_str() {
            "--minutes" => request.minutes = number()?,
            "--seed" => request.seed = number()?,
            "--programs" => request.most = number()?,
            "--out" => request.out = PathBuf::from(&value),
            _ => return Err(format!("there is no `{word}`: --minutes, --seed, --programs, --out")),
        }
    }
    Ok(request)
}

#[derive(Default)]
struct Tally {
    programs: u64,
    rewritten: usize,
    judged: usize,
    failures: u64,
}

fn main() -> ExitCode {
    match request().and_then(|request| hunt(&request)) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn hunt(request: &Request) -> Result<u64, String> {
    std::fs::create_dir_all(&request.out).map_err(|error| error.to_string())?;
    let setup = setup::Setup::new();
    let until = Instant::now() + Duration::from_secs(60 * request.minutes);
    let next = Mutex::new(request.seed..request.seed.saturating_add(request.most));
    let tally = Mutex::new(Tally::default());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while Instant::now() < until {
                    let seed = next.lock().expect("seeds").next();
                    let Some(seed) = seed else { return };
                    one(&setup, seed, request, &tally);
                }
            });
        }
    });
    let Tally { programs, rewritten, judged, failures } = tally.into_inner().expect("a tally");
    println!("{programs} programs, {rewritten} rewrites, {judged} judged right, {failures} wrong");
    Ok(failures)
}

fn one(setup: &setup::Setup, seed: u64, request: &Request, tally: &Mutex<Tally>) {
    let hunt = setup.hunt();
    let outcome = match hunt.seed(seed) {
        Ok(outcome) => outcome,
        Err(error) => return eprintln!("seed {seed}: {error}"),
    };
    {
        let mut tally = tally.lock().expect("a tally");
        tally.programs += 1;
        tally.rewritten += outcome.rewritten;
        tally.judged += outcome.judged;
        tally.failures += u64::from(outcome.failure.is_some());
    }
    if let Some(failure) = outcome.failure {
        let failure = hunt.shrunk(&failure, 400);
        let path = request.out.join(format!("{seed}.hlo"));
        println!("{}: {:?} {:?} {}", path.display(), failure.blame, failure.mode, failure.target.1);
        if let Err(error) = std::fs::write(&path, failure.to_string()) {
            eprintln!("{}: {error}", path.display());
        }
    }
}
