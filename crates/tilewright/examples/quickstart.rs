//! A front end in one file: builds a group norm, rewrites it, shows it before
//! and after, and evaluates both.
//!
//! ```text
//! cargo run --release --example quickstart
//! ```

use std::io::{self, Write as _};

use tilewright::prelude::*;

const IMAGE: [i64; 4] = [2, 8, 8, 320];
/// The same elements with the channels cut into 32 groups of 10.
const GROUPED: [i64; 5] = [2, 8, 8, 32, 10];
const PER_GROUP: f32 = 8.0 * 8.0 * 10.0;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let before = group_norm()?;
    let options = Options::new(tilewright::target("tpu-like")?);
    let Optimized { module: after, report, .. } = tilewright::optimize(before.clone(), &options)?;

    let mut out = io::stdout().lock();
    for module in [&before, &after] {
        writeln!(out, "{}", tilewright::print(module, &PrintOptions::default())?)?;
    }
    writeln!(out, "modelled cycles: {:.0} -> {:.0}", report.before.cycles, report.after.cycles)?;

    let inputs = tilewright::random_inputs(&before, 0)?;
    for module in [&before, &after] {
        let result = tilewright::run(module, &inputs, &RunOptions::default())?.output;
        writeln!(
            out,
            "{} = {{{}, ...}}",
            result.shape(),
            tilewright::elements(&result, 4).join(", ")
        )?;
    }
    assert!(report.after.cycles < report.before.cycles);
    assert!(tilewright::check(&before, &after, &CheckOptions::default())?.equal());
    Ok(())
}

/// `(x - mean) * rsqrt(variance + 1e-5) * scale + bias`, with one mean and
/// variance for each image and group.
fn group_norm() -> Result<Verified> {
    let mut b = Builder::new("group_norm");
    let image = b.parameter("x", Shape::array(ElementType::F32, IMAGE))?;
    let scale = b.parameter("scale", Shape::array(ElementType::F32, [320]))?;
    let bias = b.parameter("bias", Shape::array(ElementType::F32, [320]))?;

    // This is the reshape that moves every element on a vector machine.
    let x = b.reshape(image, GROUPED)?;
    let mean = group_mean(&mut b, x)?;
    let mean = b.broadcast(mean, GROUPED, [0, 3])?;
    let centered = b.binary(Opcode::Subtract, x, mean)?;
    let square = b.binary(Opcode::Multiply, centered, centered)?;
    let variance = group_mean(&mut b, square)?;
    let epsilon = b.constant(Literal::scalar(ElementType::F32, 1e-5_f32)?)?;
    let epsilon = b.broadcast(epsilon, [2, 32], [])?;
    let variance = b.binary(Opcode::Add, variance, epsilon)?;
    let factor = b.unary(Opcode::Rsqrt, variance)?;
    let factor = b.broadcast(factor, GROUPED, [0, 3])?;
    let normal = b.binary(Opcode::Multiply, centered, factor)?;
    let normal = b.reshape(normal, IMAGE)?;

    let scale = b.broadcast(scale, IMAGE, [3])?;
    let bias = b.broadcast(bias, IMAGE, [3])?;
    let scaled = b.binary(Opcode::Multiply, normal, scale)?;
    let root = b.binary(Opcode::Add, scaled, bias)?;
    Ok(b.finish(root)?)
}

/// Returns the mean over height, width and the channels of a group.
fn group_mean(b: &mut Builder, x: InstId) -> Result<InstId> {
    let zero = b.constant(Literal::scalar(ElementType::F32, 0.0_f32)?)?;
    let add = b.reducer(Opcode::Add, ElementType::F32)?;
    let sum = b.reduce(x, zero, [1, 2, 4], add)?;
    let count = b.constant(Literal::scalar(ElementType::F32, PER_GROUP)?)?;
    let count = b.broadcast(count, [2, 32], [])?;
    Ok(b.binary(Opcode::Divide, sum, count)?)
}
