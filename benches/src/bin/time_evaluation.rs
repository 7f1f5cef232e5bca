//! Times evaluations of a module, for `benches/oracle_peer.py`.
//!
//!     cargo run --release -p tilewright-benches --bin time_evaluation -- MODULE INPUTS ROUNDS
//!
//! prints a line of JSON: the milliseconds of the first evaluation, for which
//! the system has to find memory, and the median of the others in the process.
#![allow(clippy::print_stdout, reason = "a command line tool")]

use std::error::Error;
use std::fs::{File, read_to_string};
use std::hint::black_box;
use std::io::BufReader;
use std::time::Instant;

use tilewright_interp::{Evaluation, Limits, npz};
use tilewright_ir::Shape;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [module, inputs, rounds] = arguments.as_slice() else {
        return Err("MODULE INPUTS ROUNDS".into());
    };
    let module = tilewright_text::parse_and_verify(&read_to_string(module)?)
        .map_err(|errors| format!("{errors:?}"))?;
    let entry = module.entry().ok_or("the module has no entry")?;
    let parameters = module.computation(entry).parameters().iter();
    let shapes: Vec<&Shape> = parameters.map(|&id| module.shape(id)).collect();
    let inputs = npz::read(BufReader::new(File::open(inputs)?), "in", &shapes)?;
    let evaluation = Evaluation::new(&module).limits(Limits::NONE);
    let time = |_| {
        let start = Instant::now();
        black_box(evaluation.run(&[&inputs])?);
        Ok(start.elapsed().as_secs_f64() * 1e3)
    };
    let times = (0..=rounds.parse()?).map(time).collect::<Result<Vec<f64>, Box<dyn Error>>>()?;
    let (first, rest) = times.split_first().ok_or("no rounds")?;
    let mut rest = rest.to_vec();
    rest.sort_by(f64::total_cmp);
    let median = rest.get(rest.len() / 2).unwrap_or(first);
    println!(r#"{{"first_ms": {first:.6}, "median_ms": {median:.6}}}"#);
    Ok(())
}
