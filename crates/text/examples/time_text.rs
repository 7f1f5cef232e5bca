//! Times our parser and printer on a file, for `benches/parse_peer.py`.
//!
//!     cargo run --release -p tilewright-text --example time_text -- FILE
//!     cargo run --release -p tilewright-text --example time_text -- --generate COUNT FILE
//!
//! The first form prints, for parse and print, a line of JSON with the median
//! of several rounds; the second writes HLO text of about COUNT instructions.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool")]

#[path = "../benches/generated/mod.rs"]
mod generated;

use std::error::Error;
use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;

use tilewright_text::{PrintOptions, parse, print};

const ROUNDS: usize = 7;

/// The median time that `work` takes, in seconds.
fn median_seconds<T>(mut work: impl FnMut() -> T) -> f64 {
    let mut times: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            let result = black_box(work());
            let seconds = start.elapsed().as_secs_f64();
            drop(result);
            seconds
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[ROUNDS / 2]
}

fn time(path: &str) -> Result<(), Box<dyn Error>> {
    let text = std::fs::read_to_string(path)?;
    let module = parse(&text)?.module;
    let count = module.instruction_count();
    print(&module, &PrintOptions::new())?;
    let parsing = median_seconds(|| parse(black_box(&text)));
    let printing = median_seconds(|| print(black_box(&module), &PrintOptions::new()));
    for (what, seconds) in [("parse", parsing), ("print", printing)] {
        println!(r#"{{"what": "{what}", "instructions": {count}, "seconds": {seconds:.6}}}"#);
    }
    Ok(())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments[..] {
        ["--generate", count, path] => match count.parse() {
            Ok(count) => std::fs::write(path, generated::text(count)).map_err(Into::into),
            Err(error) => Err(Box::<dyn Error>::from(error)),
        },
        [path] => time(path),
        _ => return ExitCode::from(2),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
