//! Prints the time of each norm divided by the time in which one thread reads its arrays:
//! `norms [NAME]`, such as `norms softmax`.
//!
//! A norm reads and writes arrays; both are counted as if they were read.

use std::hint::black_box;
use std::time::{Duration, Instant};

use half::bf16;
use tilewright_native::fused::Operand;
use tilewright_native::norms::{Norm, softmax, softmax_vjp};
use tilewright_native::{Error, Fold, Pool, Threads, View, reduce};

/// The shortest of several times.
fn shortest(mut f: impl FnMut() -> Result<(), Error>) -> Result<Duration, Error> {
    f()?;
    let mut shortest = Duration::MAX;
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_millis(300) {
        let start = Instant::now();
        f()?;
        shortest = shortest.min(start.elapsed());
    }
    Ok(shortest)
}

/// A norm with the dims of its arrays, and how many arrays of these dims forward and vjp move.
struct Subject {
    name: &'static str,
    dims: Vec<usize>,
    norm: Option<Norm>,
    parameters: usize,
}

fn subjects() -> Vec<Subject> {
    let subject = |name, dims: &[usize], norm, parameters| Subject {
        name,
        dims: dims.to_vec(),
        norm,
        parameters,
    };
    let epsilon = 1e-5;
    vec![
        subject("layer", &[4096, 1024], Some(Norm::layer(1, epsilon)), 1024),
        subject("layer", &[65536, 64], Some(Norm::layer(1, epsilon)), 64),
        subject("RMS", &[4096, 1024], Some(Norm::rms(1, epsilon)), 1024),
        subject("group NHWC", &[16, 4096, 64], Some(Norm::group(2, 8, epsilon)), 64),
        subject("group NCHW", &[16, 64, 4096], Some(Norm::group(1, 8, epsilon)), 64),
        subject("batch NHWC", &[65536, 64], Some(Norm::batch(1, epsilon)), 64),
        subject("batch NCHW", &[16, 64, 4096], Some(Norm::batch(1, epsilon)), 64),
        subject("instance NCHW", &[16, 64, 4096], Some(Norm::instance(1, epsilon)), 64),
        subject("softmax", &[4096, 1024], None, 0),
    ]
}

/// Returns the times of forward and vjp.
fn times<T: Copy>(
    subject: &Subject,
    data: [&[T]; 2],
    scale: &[T],
    pool: &dyn Pool,
) -> Result<[Duration; 2], Error>
where
    for<'a> Operand<'a>: From<View<'a, T>>,
{
    let [x, dy] = data.map(|data| View::row_major(data, &subject.dims).map(Operand::from));
    let (x, dy) = (x?, dy?);
    let scale = View::row_major(scale, &[subject.parameters])?.into();
    let forward = shortest(|| {
        match &subject.norm {
            Some(norm) => drop(black_box(norm.forward(&x, Some(&scale), Some(&scale), pool)?)),
            None => drop(black_box(softmax(&x, -1, pool)?)),
        }
        Ok(())
    })?;
    let vjp = shortest(|| {
        match &subject.norm {
            Some(norm) => drop(black_box(norm.vjp(&dy, &x, Some(&scale), pool)?)),
            None => drop(black_box(softmax_vjp(&dy, &x, -1, pool)?)),
        }
        Ok(())
    })?;
    Ok([forward, vjp])
}

fn main() -> Result<(), Error> {
    println!("| norm | dims | type | threads | forward | vjp |\n|---|---|---|---|---|---|");
    let wanted = std::env::args().nth(1).unwrap_or_default();
    for subject in subjects().into_iter().filter(|subject| subject.name.contains(&wanted)) {
        let len: usize = subject.dims.iter().product();
        let value = |i: usize| ((i * 2_654_435_761) % 1000) as f32 / 500.0 - 1.0;
        let [x, dy]: [Vec<f32>; 2] = [1, 7].map(|step| (0..len).map(|i| value(i * step)).collect());
        let [x_16, dy_16] =
            [&x, &dy].map(|d| d.iter().map(|&x| bf16::from_f32(x)).collect::<Vec<_>>());
        let scale = vec![1.5f32; subject.parameters];
        let scale_16 = vec![bf16::from_f32(1.5); subject.parameters];
        let all = View::row_major(&x, &[len])?;
        let read = shortest(|| {
            reduce(&all, &[0], Fold::Sum, &Threads(1)).map(|sum| drop(black_box(sum)))
        })?;
        for threads in [1, 2] {
            let pool = Threads(threads);
            let wide = times(&subject, [&x, &dy], &scale, &pool)?;
            let narrow = times(&subject, [&x_16, &dy_16], &scale_16, &pool)?;
            for (kind, bytes, times) in [("f32", 1.0, wide), ("bf16", 0.5, narrow)] {
                // Two arrays forward, three backward.
                let [forward, vjp] = [(times[0], 2.0), (times[1], 3.0)]
                    .map(|(time, arrays)| time.as_secs_f64() / read.as_secs_f64() / arrays / bytes);
                let Subject { name, dims, .. } = &subject;
                println!("| {name} | {dims:?} | {kind} | {threads} | {forward:.2} | {vjp:.2} |");
            }
        }
    }
    Ok(())
}
