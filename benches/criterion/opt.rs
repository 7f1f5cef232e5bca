//! The default pipeline on generated modules of a thousand to a hundred
//! thousand instructions, with the patterns it looks for and without: time per
//! instruction should not depend on the size.
#![allow(missing_docs, clippy::expect_used, reason = "a bench")]

use std::hint::black_box;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use tilewright_ir::{BuildError, Builder, ElementType, Literal, Opcode, Shape, Verified};
use tilewright_rewrite::{Options, module_cost, optimize};
use tilewright_target::Target;
use tilewright_testkit::generate::large_module;

const SIZES: [usize; 3] = [1_000, 10_000, 100_000];

/// Returns a chain of batch norms, about so many instructions: reduces and broadcasts between
/// elementwise ops, but no reshape.
fn without_patterns(instructions: usize) -> Result<Verified, BuildError> {
    let mut b = Builder::new("batch_norms");
    let image = [2, 8, 8, 32];
    let add = b.reducer(Opcode::Add, ElementType::F32)?;
    let mut x = b.parameter("x", Shape::array(ElementType::F32, image))?;
    let scale = b.parameter("scale", Shape::array(ElementType::F32, [32]))?;
    let zero = Literal::scalar(ElementType::F32, 0f32).expect("a scalar");
    let zero = b.constant(zero)?;
    while b.module().instruction_count() < instructions {
        let sum = b.reduce(x, zero, [0, 1, 2], add)?;
        let mean = b.broadcast(sum, image, [3])?;
        let centred = b.binary(Opcode::Subtract, x, mean)?;
        let square = b.binary(Opcode::Multiply, centred, centred)?;
        let sum = b.reduce(square, zero, [0, 1, 2], add)?;
        let root = b.unary(Opcode::Rsqrt, sum)?;
        let scaled = b.binary(Opcode::Multiply, root, scale)?;
        let spread = b.broadcast(scaled, image, [3])?;
        x = b.binary(Opcode::Multiply, centred, spread)?;
    }
    b.finish(x)
}

fn optimizing(c: &mut Criterion) {
    let options = Options::new(Target::builtin(Target::DEFAULT).expect("a target"));
    for name in ["with_patterns", "without_patterns"] {
        let mut group = c.benchmark_group(format!("optimize_{name}"));
        group.sample_size(10);
        for size in SIZES {
            let module = match name {
                "with_patterns" => large_module(size, 1),
                _ => without_patterns(size).expect("a module"),
            };
            group.throughput(Throughput::Elements(module.instruction_count() as u64));
            group.bench_function(BenchmarkId::from_parameter(size), |b| {
                let copy = || module.clone();
                let run = |module| optimize(module, &options);
                b.iter_batched(copy, run, BatchSize::PerIteration);
            });
        }
        group.finish();
    }
}

fn weighing(c: &mut Criterion) {
    let target = Target::builtin(Target::DEFAULT).expect("a target");
    let mut group = c.benchmark_group("cost");
    group.sample_size(20);
    for size in SIZES {
        let module = large_module(size, 1);
        group.throughput(Throughput::Elements(module.instruction_count() as u64));
        group.bench_function(BenchmarkId::from_parameter(size), |b| {
            b.iter(|| module_cost(black_box(&module), &target));
        });
    }
    group.finish();
}

criterion_group!(benches, optimizing, weighing);
criterion_main!(benches);
