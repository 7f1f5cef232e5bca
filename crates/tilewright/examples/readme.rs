//! The example of the README: builds a module, rewrites it, compares both on random inputs.

use tilewright::prelude::*;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut b = Builder::new("softmax_of_double");
    let x = b.parameter("x", Shape::array(ElementType::F32, [8, 1024]))?;
    let twice = b.binary(Opcode::Add, x, x)?;
    let y = tilewright::composite::softmax(&mut b, twice, &[-1])?;
    let module = b.finish(y)?;

    let options = Options::new(tilewright::target("tpu-like")?);
    let better = tilewright::optimize(module.clone(), &options)?.module;
    assert!(tilewright::check(&module, &better, &CheckOptions::default())?.equal());
    Ok(())
}
