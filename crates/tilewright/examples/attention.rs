//! An attention block: built, evaluated, rewritten and run on the simulated machine.

use tilewright::lowering::Strategy;
use tilewright::prelude::*;

/// `softmax(q k^T / sqrt(d)) v` of `f32[batch,heads,rows,d]`.
fn attention() -> Result<Verified, BuildError> {
    let mut b = Builder::new("attention");
    let shape = Shape::array(ElementType::F32, [2, 4, 16, 8]);
    let q = b.parameter("q", shape.clone())?;
    let k = b.parameter("k", shape.clone())?;
    let v = b.parameter("v", shape)?;

    let over_features = DotAttrs {
        lhs_batch_dims: dims([0, 1]),
        rhs_batch_dims: dims([0, 1]),
        lhs_contracting_dims: dims([3]),
        rhs_contracting_dims: dims([3]),
        ..DotAttrs::default()
    };
    // The last argument is the type of the result: that of the operands if absent.
    let scores = b.dot_general(q, k, over_features, None)?; // f32[2,4,16,16]
    let scale = b.constant(Literal::scalar(ElementType::F32, 8.0_f32.sqrt().recip())?)?;
    let scale = b.broadcast(scale, [2, 4, 16, 16], [])?;
    let scores = b.binary(Opcode::Multiply, scores, scale)?;
    let shares = tilewright::composite::softmax(&mut b, scores, &[-1])?;

    let over_rows = DotAttrs {
        lhs_batch_dims: dims([0, 1]),
        rhs_batch_dims: dims([0, 1]),
        lhs_contracting_dims: dims([3]),
        rhs_contracting_dims: dims([2]),
        ..DotAttrs::default()
    };
    let result = b.dot_general(shares, v, over_rows, None)?; // f32[2,4,16,8]
    b.finish(result)
}

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let module = attention()?;
    let inputs = tilewright::random_inputs(&module, 0)?;
    let expected = tilewright::run(&module, &inputs, &RunOptions::default())?.output;

    let machine = tilewright::target("tpu-like")?;
    let better = tilewright::optimize(module.clone(), &Options::new(machine.clone()))?.module;
    assert!(tilewright::check(&module, &better, &CheckOptions::default())?.equal());

    let limits = Limits::default();
    let (outputs, simulated) =
        tilewright::simulate::run(&better, &inputs, &machine, Strategy::default(), &limits)?;
    assert_eq!(outputs.output.shape(), expected.shape());
    assert!(simulated.counters.cycles > 0.0);
    Ok(())
}
