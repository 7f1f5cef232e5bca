//! Reads HLO text files and writes each as the printer has it.
//!
//!     cargo run --release -p tilewright-text --example reprint -- OUT_DIR FILE...
//!
//! `tests/python` and people use it to show XLA what we print.
#![allow(clippy::print_stderr, reason = "a command line tool")]

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use tilewright_text::{PrintOptions, parse, print};

fn reprint(folder: &str, path: &str) -> Result<(), Box<dyn Error>> {
    let parsed = parse(&std::fs::read_to_string(path)?)?;
    let text = print(&parsed.module, &PrintOptions::new())?;
    let path = PathBuf::from(path);
    let name = path.file_name().ok_or("no file name")?;
    std::fs::write(PathBuf::from(folder).join(name), text)?;
    Ok(())
}

fn main() -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((folder, files)) = arguments.split_first() else { return ExitCode::from(2) };
    for path in files {
        if let Err(error) = reprint(folder, path) {
            eprintln!("{path}: {error}");
            code = ExitCode::FAILURE;
        }
    }
    code
}
