//! The sample, over all small shapes.

use crate::sums::shifted_moments::shift::*;

/// Returns the number of values along the summed dims, and how many of them are sampled;
/// checked one by one against the slice.
fn sampled(dims: &[i64], summed: &[bool]) -> Option<(i64, i64)> {
    let steps = steps(dims, summed, ONE_IN);
    let (mut values, mut sample) = (1, 1);
    for ((&size, &step), &summed) in dims.iter().zip(&steps).zip(summed) {
        assert!(step >= 1 && step <= size, "{dims:?}: steps of {step}");
        assert!(summed || step == 1, "{dims:?}: what is kept is whole");
        let by_hand = (start(step)..size).step_by(usize::try_from(step).expect("a step")).count();
        assert_eq!(i64::try_from(by_hand), Ok(taken(size, step)), "{size} in steps of {step}");
        assert!(by_hand >= 1);
        let SliceDim { start, limit, stride } = middle(size, taken(size, step));
        assert!(start >= 0 && limit <= size && stride == 1, "{size} in steps of {step}");
        assert_eq!(limit - start, taken(size, step));
        assert!(step > 1 || start == 0);
        if summed {
            values *= size;
            sample *= taken(size, step);
        }
    }
    // Fewer are not sampled.
    (values >= 64).then_some((values, sample))
}

/// Returns the worst `n/m` over shapes of this rank with dims up to this size, all summed, and
/// a shape that has it. A dim of size 1 behaves like one that is not summed.
fn worst(rank: usize, most: i64) -> (f64, Dims) {
    let mut dims: Dims = std::iter::repeat_n(1, rank).collect();
    let summed = vec![true; rank];
    let mut worst = (0.0, Dims::new());
    loop {
        if let Some((values, sample)) = sampled(&dims, &summed) {
            let ratio = values as f64 / sample as f64;
            if ratio > worst.0 {
                worst = (ratio, dims.clone());
            }
        }
        let Some(next) = dims.iter().rposition(|&size| size < most) else { return worst };
        dims[next] += 1;
        dims[next + 1..].fill(1);
    }
}

#[test]
fn no_more_than_25_values_stand_for_one() {
    // In 23 rows, a step of 16 samples one; in two dims of 5 beside a third one, steps of 4 sample
    // one value each.
    for (rank, most, expected) in [(1, 5000, 17.75), (2, 100, 23.0), (3, 40, 25.0), (4, 16, 25.0)] {
        let (ratio, dims) = worst(rank, most);
        assert_eq!(ratio, expected, "{dims:?}");
    }
}

#[test]
fn most_samples_are_about_one_in_sixteen() {
    for (dims, sample) in [([32, 56, 56, 64], 2), ([8, 224, 224, 3], 2), ([4, 7, 7, 512], 1)] {
        let (values, of) = sampled(&dims, &[true, true, true, false]).expect("a sample");
        assert!((8..=20).contains(&(values / of)), "{dims:?}: {values} / {of}, {sample}");
    }
}

#[test]
fn values_are_counted_along_the_summed_dims() {
    assert_eq!(values(&[63], &[true]), Some(63));
    assert_eq!(values(&[64, 64], &[false, false]), Some(1));
    assert_eq!(values(&[], &[]), Some(1));
    assert_eq!(values(&[1 << 40, 0], &[true, true]), Some(0));
    assert_eq!(values(&[7, 9, 1000], &[true, true, false]), Some(63));
}

#[test]
fn sizes_that_no_integer_counts_are_refused() {
    assert_eq!(values(&[i64::MAX, 2], &[true, true]), None);
    assert_eq!(values(&[i64::MAX, i64::MAX], &[true, true]), None);
    let steps = steps(&[i64::MAX, i64::MAX], &[true, false], ONE_IN);
    assert_eq!(steps.as_slice(), [16, 1]);
    assert_eq!(taken(i64::MAX, 16), i64::MAX / 16 + 1);
    assert_eq!(taken(i64::MAX, 1), i64::MAX);
}
