//! Times reductions of many patterns beside the time of reading the array.
//!
//! `cargo run --release -p tilewright-native --example patterns [threads]`

use std::hint::black_box;
use std::time::Instant;

use tilewright_native::{ArgMax, Fold, Max, Sum, SumAndSquares, Threads, View, reduce};

/// Dims, and the axes that are reduced.
const PATTERNS: &[(&[usize], &[i64])] = &[
    (&[16_777_216], &[0]),
    (&[4096, 1024], &[0]),
    (&[4096, 1024], &[1]),
    (&[256, 16_384], &[0]),
    (&[256, 16_384], &[1]),
    (&[65_536, 64], &[0]),
    (&[65_536, 64], &[1]),
    (&[32, 131_072], &[0]),
    (&[32, 131_072], &[1]),
    (&[1_048_576, 4], &[0]),
    (&[1_048_576, 4], &[1]),
    (&[500_009, 7], &[0]),
    (&[500_009, 7], &[1]),
    (&[300_007, 13], &[1]),
    (&[100_003, 40], &[1]),
    (&[8, 64, 64, 32, 4], &[1, 2, 4]),
    (&[8, 64, 64, 32, 4], &[1, 3]),
    (&[16, 32, 16, 32, 16], &[0, 2, 4]),
    (&[16, 32, 16, 32, 16], &[1, 3]),
    (&[32, 128, 1024], &[0, 2]),
    (&[32, 128, 1024], &[1]),
    (&[64, 256, 256], &[0]),
    (&[64, 256, 256], &[0, 1]),
    (&[64, 256, 256], &[1, 2]),
];

/// The least time of several, in seconds.
fn time(mut work: impl FnMut()) -> f64 {
    work();
    let mut least = f64::INFINITY;
    for _ in 0..15 {
        let start = Instant::now();
        work();
        least = least.min(start.elapsed().as_secs_f64());
    }
    least
}

/// Reads data once: the bits of all elements, combined.
fn read_part(part: &[f32]) -> u32 {
    #[inline(always)]
    fn read(part: &[f32]) -> u32 {
        let mut lanes = [0u32; 128];
        for chunk in part.chunks_exact(128) {
            for i in 0..128 {
                lanes[i] ^= chunk[i].to_bits();
            }
        }
        lanes.iter().fold(0, |a, b| a ^ b)
    }
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn read_avx2(part: &[f32]) -> u32 {
        read(part)
    }
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the CPU has AVX2.
        return unsafe { read_avx2(part) };
    }
    read(part)
}

/// Reads all of the data once, in as many parts as there are threads.
fn read(data: &[f32], threads: usize) -> u32 {
    let part = data.len().div_ceil(threads);
    std::thread::scope(|scope| {
        let others = data.chunks(part).skip(1);
        let others: Vec<_> = others.map(|part| scope.spawn(|| read_part(part))).collect();
        let first = read_part(&data[..part]);
        others.into_iter().fold(first, |a, b| a ^ b.join().unwrap_or(0))
    })
}

/// Returns the time of a reduction.
fn reduction<F: Fold<f32>>(data: &[f32], at: usize, fold: F, threads: usize) -> f64 {
    let (dims, axes) = PATTERNS[at];
    let Ok(view) = View::row_major(data, dims) else { return f64::NAN };
    time(|| {
        let _ = black_box(reduce(&view, axes, fold, &Threads(threads)));
    })
}

fn main() {
    let threads = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(1);
    println!("f32, {threads} threads; GB/s of reading, time / time of reading");
    println!("{:28} {:>6} {:>6} {:>6} {:>6} {:>6}", "", "GB/s", "sum", "max", "argmax", "sum,sq");
    for (at, (dims, axes)) in PATTERNS.iter().enumerate() {
        let elements: usize = dims.iter().product();
        let data: Vec<f32> = (0..elements).map(|i| (i % 1009) as f32 - 504.0).collect();
        let limit = time(|| {
            black_box(read(black_box(&data), threads));
        });
        let times = [
            reduction(&data, at, Sum, threads),
            reduction(&data, at, Max, threads),
            reduction(&data, at, ArgMax, threads),
            reduction(&data, at, SumAndSquares, threads),
        ];
        let name = format!("{dims:?} {axes:?}").replace(", ", ",");
        let [sum, max, argmax, both] = times.map(|time| time / limit);
        let speed = 4e-9 * elements as f64 / limit;
        println!("{name:28} {speed:6.1} {sum:6.2} {max:6.2} {argmax:6.2} {both:6.2}");
    }
}
