//! Parsing, verifying and printing of a generated module of 100,000 instructions, and of
//! a tenth of it: time per instruction should not depend on the size.
#![allow(missing_docs, clippy::expect_used, reason = "a bench")]

use std::hint::black_box;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use tilewright_benches::generated;
use tilewright_ir::verify;
use tilewright_text::{Form, PrintOptions, parse, print};

const SIZES: [usize; 2] = [10_000, 100_000];

fn parsing(c: &mut Criterion) {
    let mut group = c.benchmark_group("parse");
    group.sample_size(20);
    for size in SIZES {
        let text = generated(size);
        group.throughput(Throughput::Elements(size as u64));
        group.bench_function(BenchmarkId::from_parameter(size), |b| {
            b.iter(|| parse(black_box(&text)));
        });
    }
    group.finish();
}

fn verifying(c: &mut Criterion) {
    let mut group = c.benchmark_group("verify");
    group.sample_size(20);
    for size in SIZES {
        let module = parse(&generated(size)).expect("the text is HLO").module;
        group.throughput(Throughput::Elements(size as u64));
        group.bench_function(BenchmarkId::from_parameter(size), |b| {
            let copy = || module.clone();
            b.iter_batched(copy, verify, BatchSize::PerIteration);
        });
    }
    group.finish();
}

fn printing(c: &mut Criterion) {
    let mut group = c.benchmark_group("print");
    group.sample_size(20);
    for size in SIZES {
        let module = parse(&generated(size)).expect("the text is HLO").module;
        group.throughput(Throughput::Elements(size as u64));
        for form in [Form::Default, Form::Short] {
            let options = PrintOptions::new().with_form(form);
            group.bench_function(BenchmarkId::new(format!("{form:?}"), size), |b| {
                b.iter(|| print(black_box(&module), &options));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, parsing, verifying, printing);
criterion_main!(benches);
