//! Times our parser and printer on a file, for `benches/parse_peer.py`.
//!
//!     cargo run --release -p tilewright-benches --bin time_text -- FILE
//!     cargo run --release -p tilewright-benches --bin time_text -- --memory FILE
//!     cargo run --release -p tilewright-benches --bin time_text -- --generate COUNT FILE
//!
//! The first form prints, for parse and print, a line of JSON with the median
//! of several rounds; the second one with the bytes by which the process grows,
//! beyond the text itself, while it reads and verifies the file, at its peak;
//! the third writes HLO text of about COUNT instructions.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool")]

use std::error::Error;
use std::hint::black_box;
use std::process::ExitCode;

use tilewright_benches::median_seconds;
use tilewright_text::{PrintOptions, parse, parse_and_verify, print};

const ROUNDS: usize = 7;

fn time(path: &str) -> Result<(), Box<dyn Error>> {
    let text = std::fs::read_to_string(path)?;
    let module = parse(&text)?.module;
    let count = module.instruction_count();
    print(&module, &PrintOptions::new())?;
    let parsing = median_seconds(ROUNDS, || parse(black_box(&text)));
    let printing = median_seconds(ROUNDS, || print(black_box(&module), &PrintOptions::new()));
    for (what, seconds) in [("parse", parsing), ("print", printing)] {
        println!(r#"{{"what": "{what}", "instructions": {count}, "seconds": {seconds:.6}}}"#);
    }
    Ok(())
}

/// Returns a size of this process, as the kernel reports it, in bytes.
fn size_of_process(field: &str) -> Result<u64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    let kibibytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
    Ok(kibibytes.ok_or("the kernel does not tell how large this process is")?.parse::<u64>()? << 10)
}

fn measure_memory(path: &str) -> Result<(), Box<dyn Error>> {
    let text = std::fs::read_to_string(path)?;
    // Lets the peak begin anew.
    std::fs::write("/proc/self/clear_refs", "5")?;
    let before = size_of_process("VmRSS")?;
    let module = parse_and_verify(black_box(&text))?;
    let bytes = size_of_process("VmHWM")?.saturating_sub(before);
    let count = module.instruction_count();
    println!(r#"{{"what": "memory", "instructions": {count}, "bytes": {bytes}}}"#);
    Ok(())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments[..] {
        ["--generate", count, path] => match count.parse() {
            Ok(count) => {
                std::fs::write(path, tilewright_benches::generated(count)).map_err(Into::into)
            }
            Err(error) => Err(Box::<dyn Error>::from(error)),
        },
        ["--memory", path] => measure_memory(path),
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
