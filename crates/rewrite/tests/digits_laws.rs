//! The laws of the digit analysis on any reshape, by brute force.
use std::collections::HashSet;
use std::ops::Range;

use proptest::prelude::*;
use tilewright_ir::ops::dims::WindowDim;
use tilewright_rewrite::analysis::digits::{Digit, Digits};

fn digits(from: &[i64], to: &[i64]) -> Digits {
    Digits::of_reshape(from, to).unwrap()
}

/// A row-major array.
#[derive(Clone, Debug, PartialEq)]
struct Tensor {
    dims: Vec<i64>,
    data: Vec<i64>,
}

fn size(dims: &[i64]) -> usize {
    usize::try_from(dims.iter().product::<i64>()).unwrap()
}

fn index_at(mut at: usize, dims: &[i64]) -> Vec<i64> {
    let mut index = vec![0; dims.len()];
    for (slot, &size) in index.iter_mut().zip(dims).rev() {
        let size = usize::try_from(size).unwrap();
        *slot = i64::try_from(at % size).unwrap();
        at /= size;
    }
    index
}

fn address(index: &[i64], dims: &[i64]) -> usize {
    usize::try_from(index.iter().zip(dims).fold(0, |at, (i, size)| at * size + i)).unwrap()
}

fn without(values: &[i64], dropped: &[usize]) -> Vec<i64> {
    let kept = values.iter().enumerate().filter(|(dim, _)| !dropped.contains(dim));
    kept.map(|(_, &value)| value).collect()
}

impl Tensor {
    /// Values that all differ and whose sums tell which were summed.
    fn arbitrary(dims: &[i64]) -> Self {
        let data = (0..size(dims)).map(|at| {
            let mixed = (at as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            ((mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9)).cast_signed()
        });
        Self { dims: dims.into(), data: data.collect() }
    }

    fn reshape(self, dims: &[i64]) -> Self {
        assert_eq!(size(dims), self.data.len(), "{:?} -> {dims:?}", self.dims);
        Self { dims: dims.into(), data: self.data }
    }

    fn reduce(&self, reduced: &[usize]) -> Self {
        let dims = without(&self.dims, reduced);
        let mut data = vec![0i64; size(&dims)];
        for (at, value) in self.data.iter().enumerate() {
            let index = without(&index_at(at, &self.dims), reduced);
            let slot = &mut data[address(&index, &dims)];
            *slot = slot.wrapping_add(*value);
        }
        Self { dims, data }
    }

    /// The sums of windows without padding.
    fn windows(&self, window: &[WindowDim], dims: &[i64]) -> Self {
        let taps: Vec<i64> = window.iter().map(|w| w.size).collect();
        let sum = |at: usize| {
            let place = index_at(at, dims);
            let element = |tap: usize| {
                let tap = index_at(tap, &taps);
                let along = window.iter().zip(place.iter().zip(&tap));
                let index = along.map(|(w, (p, t))| p * w.stride + t * w.window_dilation);
                self.data[address(&index.collect::<Vec<_>>(), &self.dims)]
            };
            (0..size(&taps)).map(element).fold(0, i64::wrapping_add)
        };
        assert_eq!(window.len(), self.dims.len());
        Self { dims: dims.into(), data: (0..size(dims)).map(sum).collect() }
    }

    fn broadcast(&self, dims: &[i64], places: &[usize]) -> Self {
        assert_eq!(places.len(), self.dims.len());
        let data = (0..size(dims)).map(|at| {
            let index = index_at(at, dims);
            let operand: Vec<i64> = places.iter().map(|&place| index[place]).collect();
            self.data[address(&operand, &self.dims)]
        });
        assert!(places.iter().zip(&self.dims).all(|(&place, &size)| dims[place] == size));
        Self { dims: dims.into(), data: data.collect() }
    }

    fn transpose(&self, order: &[usize]) -> Self {
        let dims: Vec<i64> = order.iter().map(|&place| self.dims[place]).collect();
        let mut data = vec![0; self.data.len()];
        for (at, &value) in self.data.iter().enumerate() {
            let index = index_at(at, &self.dims);
            let turned: Vec<i64> = order.iter().map(|&place| index[place]).collect();
            data[address(&turned, &dims)] = value;
        }
        Self { dims, data }
    }

    /// Returns the dims of more than one element along which the values vary.
    fn varying_dims(&self) -> Vec<usize> {
        let varies = |dim: usize| {
            self.data.iter().enumerate().any(|(at, value)| {
                let mut index = index_at(at, &self.dims);
                index[dim] = 0;
                self.data[address(&index, &self.dims)] != *value
            })
        };
        (0..self.dims.len()).filter(|&dim| varies(dim)).collect()
    }
}

/// Dims whose product is that of `factors`, some of which they merge, with
/// size-1 dims in between.
fn any_dims(factors: Vec<i64>) -> impl Strategy<Value = Vec<i64>> {
    let count = factors.len();
    let merged = prop::collection::vec(any::<bool>(), count);
    let units = prop::collection::vec(any::<prop::sample::Index>(), 0..3);
    (Just(factors).prop_shuffle(), merged, units).prop_map(|(factors, merged, units)| {
        let mut dims: Vec<i64> = Vec::new();
        for (factor, merged) in factors.into_iter().zip(merged) {
            match dims.last_mut() {
                Some(last) if merged => *last *= factor,
                _ => dims.push(factor),
            }
        }
        for unit in units {
            dims.insert(unit.index(dims.len() + 1), 1);
        }
        dims
    })
}

/// Input dims, output dims and a list of some output dims in any order.
fn any_case() -> impl Strategy<Value = (Vec<i64>, Vec<i64>, Vec<usize>)> {
    let factors = prop::collection::vec(prop_oneof![4 => 2i64..4, 1 => 4i64..7], 0..6);
    let factors = factors.prop_filter("small", |factors| factors.iter().product::<i64>() <= 600);
    let dims = factors.prop_flat_map(|factors| (any_dims(factors.clone()), any_dims(factors)));
    dims.prop_flat_map(|(from, to)| {
        let some = prop::sample::subsequence((0..to.len()).collect::<Vec<_>>(), 0..=to.len());
        (Just(from), Just(to), some.prop_shuffle())
    })
}

/// Input dims, output dims and an order of the output dims: any, or one that
/// moves few of them.
fn any_turn() -> impl Strategy<Value = (Vec<i64>, Vec<i64>, Vec<usize>)> {
    any_case().prop_filter("few dims", |(from, ..)| from.len() <= 5).prop_flat_map(
        |(from, to, _)| {
            let dims: Vec<usize> = (0..to.len()).collect();
            let cuts = (0..=to.len(), 0..=to.len());
            let rotated = cuts.prop_map({
                let dims = dims.clone();
                move |(a, b)| {
                    let mut dims = dims.clone();
                    let (a, b) = (a.min(b), a.max(b));
                    dims[..b].rotate_left(a);
                    dims
                }
            });
            (Just(from), Just(to), prop_oneof![Just(dims).prop_shuffle(), rotated])
        },
    )
}

fn permutations(count: usize) -> Vec<Vec<usize>> {
    let Some(last) = count.checked_sub(1) else { return vec![vec![]] };
    let shorter = permutations(last);
    let longer = shorter.iter().flat_map(|order| {
        (0..count).map(move |at| {
            let mut order = order.clone();
            order.insert(at, last);
            order
        })
    });
    longer.collect()
}

/// Which input dims of more than one element no kept output index depends on.
fn free_dims(from: &[i64], to: &[i64], kept: &[usize]) -> Vec<usize> {
    let result: Vec<i64> = kept.iter().map(|&dim| to[dim]).collect();
    let kept_of = |at: usize| {
        let index = index_at(at, to);
        address(&kept.iter().map(|&dim| index[dim]).collect::<Vec<_>>(), &result)
    };
    let data = (0..size(from)).map(|at| i64::try_from(kept_of(at)).unwrap()).collect();
    let varying = Tensor { dims: from.into(), data }.varying_dims();
    (0..from.len()).filter(|dim| from[*dim] > 1 && !varying.contains(dim)).collect()
}

/// Returns how many elements along an input dim fall on one output index, if they are the taps
/// of one window that moves along it, the same wherever one stands in the other dims.
fn taps_along(from: &[i64], dim: usize, kept_of: impl Fn(usize) -> usize) -> Option<usize> {
    let others: Vec<usize> = (0..size(from)).filter(|&at| index_at(at, from)[dim] == 0).collect();
    let lines = others.into_iter().map(|at| {
        let mut index = index_at(at, from);
        let mut taps: Vec<(usize, Vec<i64>)> = Vec::new();
        for place in 0..from[dim] {
            index[dim] = place;
            let kept = kept_of(address(&index, from));
            match taps.iter_mut().find(|(other, _)| *other == kept) {
                Some((_, taps)) => taps.push(place),
                None => taps.push((kept, vec![place])),
            }
        }
        taps.into_iter().map(|(_, taps)| taps).collect::<Vec<_>>()
    });
    let lines: HashSet<Vec<Vec<i64>>> = lines.collect();
    let even = |places: Vec<i64>| {
        let steps: HashSet<i64> = places.windows(2).map(|pair| pair[1] - pair[0]).collect();
        steps.len() <= 1
    };
    let regular = |line: &Vec<Vec<i64>>| {
        let alike = |taps: &Vec<i64>| taps.iter().map(|place| place - taps[0]).collect::<Vec<_>>();
        line.iter().map(alike).collect::<HashSet<_>>().len() == 1
            && even(line[0].clone())
            && even(line.iter().map(|taps| taps[0]).collect())
    };
    let line = lines.iter().next().filter(|line| lines.len() == 1 && regular(line))?;
    Some(line[0].len())
}

fn others(dims: &[usize], rank: usize) -> Vec<usize> {
    (0..rank).filter(|dim| !dims.contains(dim)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn digits_partition_both_sides((from, to, _) in any_case()) {
        let digits = digits(&from, &to);
        let product: i64 = digits.digits().iter().map(|digit| digit.size).product();
        prop_assert_eq!(product, from.iter().product::<i64>());
        prop_assert!(digits.digits().iter().all(|digit| digit.size > 1));
        for (dims, from_side) in [(&from, true), (&to, false)] {
            for (dim, &size) in dims.iter().enumerate() {
                let own = if from_side { digits.digits_of_from(dim) } else { digits.digits_of_to(dim) };
                prop_assert_eq!(own.is_empty(), size == 1);
                let own = &digits.digits()[own];
                let product: i64 = own.iter().map(|digit| digit.size).product();
                let opaque = own.iter().any(Digit::is_opaque);
                let complete = if opaque { own.len() == 1 } else { product == size };
                prop_assert!(complete);
            }
        }
    }

    #[test]
    fn an_exact_digit_is_the_same_in_both_indices((from, to, _) in any_case()) {
        let digits = digits(&from, &to);
        for (i, digit) in digits.digits().iter().enumerate().filter(|(_, d)| !d.is_opaque()) {
            let below = |own: Range<usize>| -> i64 {
                digits.digits()[i + 1..own.end].iter().map(|digit| digit.size).product()
            };
            let (from_dim, to_dim) = (digit.from.start, digit.to.start);
            let from_low = below(digits.digits_of_from(from_dim));
            let to_low = below(digits.digits_of_to(to_dim));
            for at in 0..size(&from) {
                let in_from = index_at(at, &from)[from_dim] / from_low % digit.size;
                let in_to = index_at(at, &to)[to_dim] / to_low % digit.size;
                prop_assert_eq!(in_from, in_to);
            }
        }
    }

    #[test]
    fn opaque_digits_are_only_where_ends_do_not_divide((from, to, _) in any_case()) {
        let ends = |dims: &[i64]| -> Vec<i64> {
            (0..=dims.len()).map(|dim| dims[dim..].iter().product()).collect()
        };
        let (from_ends, to_ends) = (ends(&from), ends(&to));
        let mut all: Vec<i64> = from_ends.iter().chain(&to_ends).copied().collect();
        all.sort_unstable();
        let divide = all.windows(2).all(|pair| pair[1] % pair[0] == 0);
        let digits = digits(&from, &to);
        prop_assert_eq!(digits.digits().iter().any(Digit::is_opaque), !divide);
        // Every end that both sides share is the end of a digit.
        let sizes = digits.digits().iter().rev().map(|digit| digit.size);
        let digit_ends: HashSet<i64> = sizes
            .scan(1, |end, size| { *end *= size; Some(*end) })
            .chain([1])
            .collect();
        let shared = from_ends.iter().filter(|end| to_ends.contains(end));
        prop_assert!(shared.into_iter().all(|end| digit_ends.contains(end)));
    }

    #[test]
    fn unchanged_dims_have_the_same_index((from, to, _) in any_case()) {
        let digits = digits(&from, &to);
        let mut taken = HashSet::new();
        for (to_dim, &to_size) in to.iter().enumerate() {
            let same = |&from_dim: &usize| {
                from[from_dim] == to_size
                    && (0..size(&from)).all(|at| index_at(at, &from)[from_dim] == index_at(at, &to)[to_dim])
            };
            let found = digits.from_dim_of_to(to_dim);
            prop_assert!(found.iter().all(same));
            prop_assert!(found.is_none_or(|dim| taken.insert(dim)), "one input dim for two");
            if to_size > 1 {
                prop_assert_eq!(found, (0..from.len()).find(same));
            }
        }
    }

    #[test]
    fn reducing_first_gives_the_same_sums((from, to, reduced) in any_case()) {
        let x = Tensor::arbitrary(&from);
        let expected = x.clone().reshape(&to).reduce(&reduced);
        let Some(plan) = digits(&from, &to).reduce_first(&reduced) else { return Ok(()) };
        let first = x.reduce(&plan.source_dims);
        prop_assert_eq!(&first.dims[..], &plan.source_result[..]);
        let small = first.reshape(&plan.reshape_to);
        prop_assert_eq!(small.reduce(&plan.remaining), expected);
        prop_assert!(!plan.reshape_is_identity() || plan.remaining.is_empty());
    }

    #[test]
    fn everything_that_can_be_reduced_first_is((from, to, reduced) in any_case()) {
        let free = free_dims(&from, &to, &others(&reduced, to.len()));
        let plan = digits(&from, &to).reduce_first(&reduced);
        let planned = plan.as_ref().map_or(vec![], |plan| {
            plan.source_dims.iter().copied().filter(|&dim| from[dim] > 1).collect()
        });
        prop_assert_eq!(planned, free);
        if let Some(plan) = plan {
            let again = digits(&plan.source_result, &plan.reshape_to);
            prop_assert_eq!(again.reduce_first(&plan.remaining), None);
        }
    }

    #[test]
    fn reshapes_that_can_disappear_do((from, to, reduced) in any_case()) {
        let Some(plan) = digits(&from, &to).reduce_first(&reduced) else { return Ok(()) };
        // Is there any choice of size-1 dims after which nothing is left to do?
        let result = without(&to, &reduced);
        let large = plan.source_dims.iter().copied().filter(|&dim| from[dim] > 1);
        let large: Vec<usize> = large.collect();
        let units: Vec<usize> = (0..from.len()).filter(|&dim| from[dim] == 1).collect();
        let possible = plan.remaining.is_empty() && (0..1u32 << units.len()).any(|choice| {
            let chosen = units.iter().enumerate().filter(|(bit, _)| choice >> bit & 1 == 1);
            let dropped: Vec<usize> = large.iter().copied().chain(chosen.map(|(_, &d)| d)).collect();
            without(&from, &dropped) == result
        });
        prop_assert_eq!(plan.reshape_is_identity(), possible);
    }

    #[test]
    fn windows_give_the_same_sums((from, to, reduced) in any_case()) {
        let x = Tensor::arbitrary(&from);
        let expected = x.clone().reshape(&to).reduce(&reduced);
        let Some(plan) = digits(&from, &to).windows(&reduced) else { return Ok(()) };
        let first = x.reduce(&plan.source_dims);
        prop_assert_eq!(&first.dims[..], &plan.source_result[..]);
        let sizes = plan.window.iter().zip(&first.dims).map(|(w, &size)| w.output_size(size));
        prop_assert!(sizes.eq(plan.result.iter().map(|&size| Some(size))));
        let sums = first.windows(&plan.window, &plan.result);
        prop_assert_eq!(sums.reshape(&expected.dims), expected);
    }

    #[test]
    fn every_window_is_found((from, to, reduced) in any_case()) {
        let kept = others(&reduced, to.len());
        let result: Vec<i64> = kept.iter().map(|&dim| to[dim]).collect();
        let kept_of = |at: usize| {
            let index = index_at(at, &to);
            address(&kept.iter().map(|&dim| index[dim]).collect::<Vec<_>>(), &result)
        };
        let left = others(&free_dims(&from, &to, &kept), from.len());
        let taps: Option<Vec<usize>> = left.iter().map(|&d| taps_along(&from, d, kept_of)).collect();
        let elements = size(&left.iter().map(|&dim| from[dim]).collect::<Vec<_>>());
        // Taps along several dims are those along each of them.
        let all = elements / size(&result);
        let possible = all > 1 && taps.is_some_and(|taps| taps.iter().product::<usize>() == all);
        prop_assert_eq!(digits(&from, &to).windows(&reduced).is_some(), possible);
    }

    #[test]
    fn broadcasting_before_gives_the_same_values((from, to, dims) in any_case()) {
        let y = Tensor::arbitrary(&dims.iter().map(|&dim| to[dim]).collect::<Vec<_>>());
        let expected = y.broadcast(&to, &dims).reshape(&from);
        let plan = digits(&from, &to).broadcast_through(&dims).unwrap();
        let inner = y.broadcast(&plan.inner_dims, &plan.inner_broadcast_dims);
        prop_assert!(!plan.inner_is_trivial() || inner == y);
        let small = inner.clone().reshape(&plan.reshape_to);
        prop_assert_eq!(plan.reshape_is_trivial(), small == inner);
        prop_assert!(plan.outer_dims.is_sorted());
        prop_assert_eq!(small.broadcast(&from, &plan.outer_dims), expected);
    }

    #[test]
    fn nothing_is_broadcast_early_without_need((from, to, dims) in any_case()) {
        let y = Tensor::arbitrary(&dims.iter().map(|&dim| to[dim]).collect::<Vec<_>>());
        let varying = y.broadcast(&to, &dims).reshape(&from).varying_dims();
        let plan = digits(&from, &to).broadcast_through(&dims).unwrap();
        let units = |list: &[usize], dims: &[i64]| list.iter().filter(|&&dim| dims[dim] == 1).count();
        let outer: Vec<usize> = plan.outer_dims.iter().copied().filter(|&d| from[d] > 1).collect();
        prop_assert_eq!(outer, varying);
        prop_assert!(units(&plan.outer_dims, &from) <= units(&dims, &to));
    }

    #[test]
    fn an_iota_goes_through((from, to, pick) in any_case()) {
        let Some(&dim) = pick.first() else { return Ok(()) };
        let iota = Tensor { dims: vec![to[dim]], data: (0..to[dim]).collect() };
        let data = (0..size(&to)).map(|at| index_at(at, &to)[dim]).collect();
        let expected = Tensor { dims: from.clone(), data };
        let plan = digits(&from, &to).broadcast_through(&[dim]).unwrap();
        let inner = iota.broadcast(&plan.inner_dims, &plan.inner_broadcast_dims);
        let small = inner.reshape(&plan.reshape_to);
        prop_assert_eq!(small.broadcast(&from, &plan.outer_dims), expected);
    }

    #[test]
    fn a_transpose_goes_through((from, to, order) in any_turn()) {
        let Some(plan) = digits(&from, &to).transpose_through(&order) else { return Ok(()) };
        let mut dims = vec![0; to.len()];
        for (&place, &size) in order.iter().zip(&to) {
            dims[place] = size;
        }
        let y = Tensor::arbitrary(&dims);
        let expected = y.transpose(&order).reshape(&from);
        prop_assert_eq!(y.reshape(&plan.reshape_to).transpose(&plan.order), expected);
    }

    #[test]
    fn every_transpose_that_can_go_through_does((from, to, order) in any_turn()) {
        // Is there any order of the input dims in which Y has its elements?
        let plan = digits(&from, &to).transpose_through(&order);
        let mut dims = vec![0; to.len()];
        for (&place, &size) in order.iter().zip(&to) {
            dims[place] = size;
        }
        let y = Tensor { data: (0..size(&dims) as i64).collect(), dims };
        let expected = y.transpose(&order).reshape(&from);
        let possible = permutations(from.len()).into_iter().any(|order| {
            let mut dims = vec![0; from.len()];
            for (&place, &size) in order.iter().zip(&from) {
                dims[place] = size;
            }
            y.clone().reshape(&dims).transpose(&order) == expected
        });
        prop_assert_eq!(plan.is_some(), possible);
    }

    #[test]
    fn nothing_hostile_panics(
        from in prop::collection::vec(prop_oneof![Just(1), Just(0), 2i64..1 << 40, any::<i64>()], 0..5),
        to in prop::collection::vec(prop_oneof![Just(1), Just(0), 2i64..1 << 40, any::<i64>()], 0..5),
        dims in prop::collection::vec(0usize..6, 0..4),
        same in any::<bool>(),
    ) {
        let to = if same { from.iter().rev().copied().collect() } else { to };
        if let Some(digits) = Digits::of_reshape(&from, &to) {
            let _ = (digits.reduce_first(&dims), digits.broadcast_through(&dims));
            let _ = (digits.transpose_through(&dims), digits.windows(&dims));
        }
    }
}
