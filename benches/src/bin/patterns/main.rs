//! Times reductions beside those of the crate `ndarray` and the reading of the array.
//!
//! `cargo build --release -p tilewright-benches --bin patterns`
//!
//! `patterns TYPE THREADS` reads lines of a pattern, the greatest number of turns and of seconds:
//! `4096x1024/0 20 0.1` is a sum, a maximum and its place along axis 0. A third part of a pattern
//! has the axes in memory in the order in which they are seen, as of a transposed array:
//! `4096x1024/0/1,0`. Its answer is lines of who, the fold and the least seconds, and an empty one.
//!
//! `read` is the reading, `native` runs on threads that wait for work, `started` on those that are
//! started for each reduction.

use std::hint::black_box;
use std::io::{self, BufRead, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use half::bf16;
use ndarray::{ArrayViewD, IxDyn};
use tilewright_native::{Array, Error, Extremum, Fold, Pool, Serial, Threads, View, place, reduce};

mod by_ndarray;

use by_ndarray::Value;

type Failure = Box<dyn std::error::Error>;

/// What to reduce, and for how long.
struct Task {
    dims: Vec<usize>,
    axes: Vec<usize>,
    order: Vec<usize>,
    turns: usize,
    seconds: f64,
}

impl Task {
    fn parse(line: &str) -> Result<Self, Failure> {
        let numbers = |text: &str, between| -> Result<Vec<usize>, _> {
            text.split(between).map(str::parse).collect()
        };
        let [pattern, turns, seconds] = line.split_whitespace().collect::<Vec<_>>()[..] else {
            return Err("a line has a pattern, turns and seconds".into());
        };
        let parts: Vec<_> = pattern.split('/').collect();
        let (dims, axes, order) = match parts[..] {
            [dims, axes] => (dims, axes, None),
            [dims, axes, order] => (dims, axes, Some(order)),
            _ => return Err("a pattern is DIMS/AXES or DIMS/AXES/ORDER".into()),
        };
        let dims = numbers(dims, 'x')?;
        let order = match order {
            Some(order) => numbers(order, ',')?,
            None => (0..dims.len()).collect(),
        };
        let axes = numbers(axes, ',')?;
        Ok(Self { dims, axes, order, turns: turns.parse()?, seconds: seconds.parse()? })
    }

    /// The least time of several, in seconds.
    fn time(&self, mut work: impl FnMut()) -> f64 {
        work();
        let begin = Instant::now();
        let mut least = f64::INFINITY;
        for turn in 0..self.turns {
            let start = Instant::now();
            work();
            least = least.min(start.elapsed().as_secs_f64());
            if turn > 0 && begin.elapsed().as_secs_f64() > self.seconds {
                break;
            }
        }
        least
    }
}

/// Threads of `rayon` that wait for work; those that call are one of them.
struct Waiting(usize);

impl Pool for Waiting {
    fn run(&self, count: usize, task: &(dyn Fn(usize) + Sync)) {
        let next = AtomicUsize::new(0);
        let work = || {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return;
                }
                task(number);
            }
        };
        rayon::scope(|scope| {
            for _ in 1..self.0.min(count) {
                scope.spawn(|_| work());
            }
            work();
        });
    }
}

/// Adds up data as words of 64 bits, in vectors that do not wait for each other.
#[cfg(target_arch = "x86_64")]
mod vectors {
    use std::arch::x86_64::{
        __m256i, __m512i, _mm256_add_epi64, _mm256_loadu_si256, _mm256_setzero_si256,
        _mm512_add_epi64, _mm512_loadu_si512, _mm512_setzero_si512,
    };
    use std::hint::black_box;

    #[target_feature(enable = "avx512f")]
    pub(super) fn read_avx512(chunks: &[[u64; 64]]) {
        let mut lanes: [__m512i; 8] = [_mm512_setzero_si512(); 8];
        for chunk in chunks {
            for (at, lane) in lanes.iter_mut().enumerate() {
                // SAFETY: a chunk has eight vectors.
                let vector =
                    unsafe { _mm512_loadu_si512(chunk.as_ptr().cast::<__m512i>().add(at)) };
                *lane = _mm512_add_epi64(*lane, vector);
            }
        }
        black_box(lanes);
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn read_avx2(chunks: &[[u64; 64]]) {
        let mut lanes: [__m256i; 8] = [_mm256_setzero_si256(); 8];
        for chunk in chunks.as_flattened().as_chunks::<32>().0 {
            for (at, lane) in lanes.iter_mut().enumerate() {
                // SAFETY: a chunk has eight vectors.
                let vector =
                    unsafe { _mm256_loadu_si256(chunk.as_ptr().cast::<__m256i>().add(at)) };
                *lane = _mm256_add_epi64(*lane, vector);
            }
        }
        black_box(lanes);
    }
}

/// Reads data once, in vectors of 512 bits if they are wanted and the CPU has them.
fn read_part(chunks: &[[u64; 64]], wide: bool) {
    #[cfg(target_arch = "x86_64")]
    if wide && is_x86_feature_detected!("avx512f") {
        // SAFETY: the CPU has AVX-512.
        return unsafe { vectors::read_avx512(chunks) };
    } else if is_x86_feature_detected!("avx2") {
        // SAFETY: the CPU has AVX2.
        return unsafe { vectors::read_avx2(chunks) };
    }
    let _ = wide;
    let mut lanes = [0u64; 64];
    for chunk in chunks {
        for at in 0..64 {
            lanes[at] = lanes[at].wrapping_add(chunk[at]);
        }
    }
    black_box(lanes);
}

/// Reads all of the data once, in as many parts as there are threads.
fn read(chunks: &[[u64; 64]], threads: usize, wide: bool) {
    if threads <= 1 {
        return read_part(chunks, wide);
    }
    let (first, others) = chunks.split_at(chunks.len() / threads);
    rayon::join(|| read_part(first, wide), || read(others, threads - 1, wide));
}

/// The alignment of arrays: that of huge pages, and so of lines of a cache.
const ALIGNMENT: usize = 1 << 21;
/// The least memory for an array, which is more than for any result: `native_peer.py` has so much come
/// from the system, in huge pages.
const LEAST_ROOM: usize = 1 << 24;

/// Times all that reads an array of this type, and writes a line for each.
fn measure<T: Value>(task: &Task, threads: usize, out: &mut impl Write) -> Result<(), Failure> {
    let len: usize = task.dims.iter().product();
    // The elements before the boundary are left out.
    let least = (len + ALIGNMENT / size_of::<T>()).max(LEAST_ROOM / size_of::<T>());
    let mut room: Vec<T> = Vec::with_capacity(least);
    let begin = room.as_ptr().align_offset(ALIGNMENT);
    room.extend((0..begin + len).map(|place| T::at(place.saturating_sub(begin))));
    let data = &room[begin..];
    // SAFETY: any bits are numbers of 64 bits.
    let (_, words, _) = unsafe { data.align_to::<u64>() };
    // What is left out is less than a part in a thousand.
    let chunks = words.as_chunks::<64>().0;
    limit(task, chunks, threads, out)?;

    let view = ArrayViewD::from_shape(IxDyn(&task.dims), data)?;
    let view = view.permuted_axes(IxDyn(&task.order));
    let mine = View::new(data, 0, view.shape(), view.strides())?;
    let axes: Vec<i64> = task.axes.iter().map(|&axis| axis as i64).collect();
    for (name, fold) in [("sum", Fold::Sum), ("maximum", Fold::Max)] {
        ours(task, name, |pool| reduce(black_box(&mine), &axes, fold, pool), threads, out)?;
    }
    if task.axes.len() == 1 {
        let places =
            |pool: &dyn Pool| place::<T, i32>(black_box(&mine), &axes, Extremum::Max, pool);
        ours(task, "place", places, threads, out)?;
    }
    for (fold, greatest) in [("sum", false), ("maximum", true)] {
        let mut axes = task.axes.clone();
        // Which order of axes is faster depends on the array.
        for _ in 0..task.axes.len().min(2) {
            if T::by_ndarray(&view, &axes, greatest).is_some() {
                let seconds = task.time(|| {
                    T::by_ndarray(black_box(&view), &axes, greatest);
                });
                writeln!(out, "ndarray\t{fold}\t{seconds:e}")?;
            }
            axes.reverse();
        }
    }
    // All else is measured by it: it has a second chance.
    limit(task, chunks, threads, out)
}

/// Times the reading, in vectors of both sizes: which are faster depends on the CPU.
fn limit(
    task: &Task,
    chunks: &[[u64; 64]],
    threads: usize,
    out: &mut impl Write,
) -> Result<(), Failure> {
    for wide in [true, false] {
        let seconds = task.time(|| read(black_box(chunks), threads, wide));
        writeln!(out, "read\tall\t{seconds:e}")?;
    }
    Ok(())
}

/// Times a reduction of this crate.
fn ours<R>(
    task: &Task,
    name: &str,
    reduce: impl Fn(&dyn Pool) -> Result<Array<R>, Error>,
    threads: usize,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let pools: &[(&str, &dyn Pool)] = match threads {
        1 => &[("native", &Serial)],
        _ => &[("native", &Waiting(threads)), ("started", &Threads(threads))],
    };
    for (who, pool) in pools {
        reduce(*pool)?;
        let seconds = task.time(|| {
            let _ = black_box(reduce(*pool));
        });
        writeln!(out, "{who}\t{name}\t{seconds:e}")?;
    }
    Ok(())
}

/// Answers each line of the input.
fn answer(kind: &str, threads: usize) -> Result<(), Failure> {
    let mut out = io::stdout();
    for line in io::stdin().lock().lines() {
        let task = Task::parse(&line?)?;
        match kind {
            "f32" => measure::<f32>(&task, threads, &mut out)?,
            "f64" => measure::<f64>(&task, threads, &mut out)?,
            "bf16" => measure::<bf16>(&task, threads, &mut out)?,
            "s32" => measure::<i32>(&task, threads, &mut out)?,
            _ => return Err("types are f32, f64, bf16 and s32".into()),
        }
        writeln!(out)?;
    }
    Ok(())
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<_> = std::env::args().collect();
    let [_, kind, threads] = &arguments[..] else {
        return Err("usage: patterns TYPE THREADS".into());
    };
    let threads = threads.parse()?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    // One of the threads reads and answers, so that no work is handed to the pool from outside.
    pool.install(|| answer(kind, threads).map_err(|error| error.to_string()))?;
    Ok(())
}
