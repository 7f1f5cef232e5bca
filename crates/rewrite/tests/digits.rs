//! The digit analysis: examples by hand; `digits_laws.rs` has the laws.
use std::ops::Range;

use tilewright_rewrite::analysis::digits::{BroadcastPlan, Digit, Digits, ReducePlan};

fn digits(from: &[i64], to: &[i64]) -> Digits {
    Digits::of_reshape(from, to).unwrap()
}

fn exact(size: i64, from: usize, to: usize) -> Digit {
    Digit { size, from: from..from + 1, to: to..to + 1 }
}

fn reduce_first(from: &[i64], to: &[i64], reduced: &[usize]) -> Option<ReducePlan> {
    digits(from, to).reduce_first(reduced)
}

fn plan(source: &[usize], result: &[i64], reshape: &[i64], remaining: &[usize]) -> ReducePlan {
    ReducePlan {
        source_dims: source.into(),
        source_result: result.into(),
        reshape_to: reshape.into(),
        remaining: remaining.into(),
    }
}

fn broadcast(from: &[i64], to: &[i64], dims: &[usize]) -> BroadcastPlan {
    digits(from, to).broadcast_through(dims).unwrap()
}

fn inner(dims: &[i64], places: &[usize], reshape: &[i64], outer: &[usize]) -> BroadcastPlan {
    BroadcastPlan {
        inner_dims: dims.into(),
        inner_broadcast_dims: places.into(),
        reshape_to: reshape.into(),
        outer_dims: outer.into(),
    }
}

// --- Digits ---

#[test]
fn splits_and_merges_share_digits() {
    // [C,H,W] -> [G,K] with G = 3: digits G, C/G, H, W.
    let digits = digits(&[12, 5, 7], &[3, 140]);
    let expected = [exact(3, 0, 0), exact(4, 0, 1), exact(5, 1, 1), exact(7, 2, 1)];
    assert_eq!(digits.digits(), expected);
    assert_eq!((digits.digits_of_from(0), digits.digits_of_from(2)), (0..2, 3..4));
    assert_eq!((digits.digits_of_to(0), digits.digits_of_to(1)), (0..1, 1..4));
    assert_eq!((digits.from_dims(), digits.to_dims()), (&[12, 5, 7][..], &[3, 140][..]));
}

#[test]
fn dims_that_do_not_divide_are_opaque() {
    let digits = digits(&[5, 6, 4, 7], &[5, 4, 6, 7]);
    let opaque = Digit { size: 24, from: 1..3, to: 1..3 };
    assert!(opaque.is_opaque() && !exact(5, 0, 0).is_opaque());
    assert_eq!(digits.digits(), [exact(5, 0, 0), opaque, exact(7, 3, 3)]);
    let shared: Vec<Range<usize>> = (0..4).map(|dim| digits.digits_of_from(dim)).collect();
    assert_eq!(shared, [0..1, 1..2, 1..2, 2..3]);
    assert_eq!(digits.digits_of_to(2), 1..2);
}

#[test]
fn one_end_that_does_not_divide_makes_its_whole_group_opaque() {
    // Ends 2, 6, 8, 24: 6 does not divide 8.
    let opaque = Digit { size: 24, from: 0..2, to: 0..3 };
    assert_eq!(digits(&[4, 6], &[3, 4, 2]).digits(), [opaque]);
}

#[test]
fn size_one_dims_have_no_digits() {
    let digits = digits(&[1, 6, 1, 4, 1], &[4, 1, 6]);
    assert_eq!(digits.digits(), [Digit { size: 24, from: 1..4, to: 0..3 }]);
    for unit in [0, 2, 4] {
        assert!(digits.digits_of_from(unit).is_empty());
    }
    assert_eq!((digits.digits_of_from(1), digits.digits_of_from(3)), (0..1, 0..1));
    assert!(digits.digits_of_to(1).is_empty() && digits.digits_of_to(9).is_empty());
    assert!(Digits::of_reshape(&[1, 1], &[]).unwrap().digits().is_empty());
}

#[test]
fn unchanged_dims_are_known() {
    let unchanged = |from: &[i64], to: &[i64]| -> Vec<Option<usize>> {
        let digits = digits(from, to);
        (0..to.len()).map(|dim| digits.from_dim_of_to(dim)).collect()
    };
    let nhwc = unchanged(&[2, 8, 8, 12], &[2, 8, 8, 3, 4]);
    assert_eq!(nhwc, [Some(0), Some(1), Some(2), None, None]);
    assert_eq!(unchanged(&[6, 4, 5], &[4, 6, 5]), [None, None, Some(2)]);
    // The same size elsewhere is another dim.
    assert_eq!(unchanged(&[2, 3, 2], &[2, 6]), [Some(0), None]);
    assert_eq!(unchanged(&[1, 6, 1], &[1, 1, 6]), [Some(0), None, Some(1)]);
    assert_eq!(digits(&[6], &[6]).from_dim_of_to(1), None);
}

#[test]
fn only_reshapes_of_countable_elements_have_digits() {
    let huge = 1 << 40;
    let none: [(&[i64], &[i64]); 7] = [
        (&[6], &[7]),
        (&[2, 3], &[2]),
        (&[-2, -3], &[6]),
        (&[i64::MIN], &[i64::MIN]),
        (&[0, 5], &[0]),
        (&[huge, huge], &[huge, huge]),
        (&[], &[2]),
    ];
    for (from, to) in none {
        assert_eq!(Digits::of_reshape(from, to), None, "{from:?} -> {to:?}");
    }
    assert_eq!(digits(&[i64::MAX], &[i64::MAX, 1]).digits(), [exact(i64::MAX, 0, 0)]);
    assert!(digits(&[], &[]).digits().is_empty());
}

// --- T1 ---

#[test]
fn group_norm_nhwc_reduces_h_and_w_first() {
    let reduced = reduce_first(&[2, 8, 8, 12], &[2, 8, 8, 3, 4], &[1, 2, 4]).unwrap();
    assert_eq!(reduced, plan(&[1, 2], &[2, 12], &[2, 3, 4], &[2]));
    assert!(!reduced.reshape_is_identity());
}

#[test]
fn group_norm_of_the_source() {
    // S4: X[B,H,W,C], Y = reshape(X, [B,H,W,C/G,G]), Z = reduce(Y, [1,2,3]).
    let reduced = reduce_first(&[2, 8, 8, 12], &[2, 8, 8, 4, 3], &[1, 2, 3]);
    assert_eq!(reduced, Some(plan(&[1, 2], &[2, 12], &[2, 4, 3], &[1])));
}

#[test]
fn group_norm_nchw_reduces_swallowed_dims_first() {
    let reduced = reduce_first(&[2, 12, 8, 8], &[2, 3, 4 * 8 * 8], &[2]);
    assert_eq!(reduced, Some(plan(&[2, 3], &[2, 12], &[2, 3, 4], &[2])));
}

#[test]
fn merged_dims_lose_their_reshape() {
    let reduced = reduce_first(&[2, 8, 9, 12], &[2, 72, 12], &[1]).unwrap();
    assert_eq!(reduced, plan(&[1, 2], &[2, 12], &[2, 12], &[]));
    assert!(reduced.reshape_is_identity());
    // And with the channels in groups only those keep one.
    let reduced = reduce_first(&[2, 8, 9, 12], &[2, 72, 3, 4], &[1, 3]);
    assert_eq!(reduced, Some(plan(&[1, 2], &[2, 12], &[2, 3, 4], &[2])));
}

#[test]
fn ghost_batch_norm_reduces_h_and_w_first() {
    let outer = reduce_first(&[32, 4, 4, 16], &[8, 4, 4, 4, 16], &[1, 2, 3]);
    assert_eq!(outer, Some(plan(&[1, 2], &[32, 16], &[8, 4, 16], &[1])));
    let inner = reduce_first(&[32, 4, 4, 16], &[4, 8, 4, 4, 16], &[0, 2, 3]);
    assert_eq!(inner, Some(plan(&[1, 2], &[32, 16], &[4, 8, 16], &[0])));
}

#[test]
fn opaque_groups_wholly_reduced_disappear() {
    let reduced = reduce_first(&[5, 6, 4], &[5, 4, 6], &[1, 2]).unwrap();
    assert_eq!(reduced, plan(&[1, 2], &[5], &[5], &[]));
    assert!(reduced.reshape_is_identity());
    assert_eq!(reduce_first(&[5, 6, 4], &[5, 4, 6], &[1]), None);
}

#[test]
fn opaque_groups_may_be_reduced_in_part() {
    // The kept dim is index % 2, whatever the first input dim is.
    let reduced = reduce_first(&[4, 6], &[3, 4, 2], &[0, 1]);
    assert_eq!(reduced, Some(plan(&[0], &[6], &[3, 2], &[0])));
    // No cut is shared around the kept dim: index / 2 % 2.
    let reduced = reduce_first(&[2, 2, 6], &[3, 2, 2, 2], &[0, 1, 3]);
    assert_eq!(reduced, Some(plan(&[0], &[2, 6], &[3, 2, 2], &[0, 2])));
}

#[test]
fn all_dims_reduced_leave_no_reshape() {
    let reduced = reduce_first(&[1, 5, 6, 4], &[5, 4, 6], &[0, 1, 2]).unwrap();
    assert_eq!(reduced, plan(&[0, 1, 2, 3], &[], &[], &[]));
    assert!(reduced.reshape_is_identity());
}

#[test]
fn an_identity_reshape_stays_none() {
    let reduced = reduce_first(&[2, 3, 4], &[2, 3, 4], &[1]).unwrap();
    assert_eq!(reduced, plan(&[1], &[2, 4], &[2, 4], &[]));
    assert!(reduced.reshape_is_identity());
}

#[test]
fn the_rest_is_one_dim_per_input_dim() {
    // Two reduced output dims of one input dim: one dim is left.
    let reduced = reduce_first(&[7, 24], &[7, 2, 3, 4], &[0, 2, 3]);
    assert_eq!(reduced, Some(plan(&[0], &[24], &[2, 12], &[1])));
    // Reduced parts of two input dims: the reshape only splits.
    let reduced = reduce_first(&[5, 6, 8], &[5, 3, 8, 2], &[0, 2]);
    assert_eq!(reduced, Some(plan(&[0], &[6, 8], &[3, 2, 4, 2], &[1, 2])));
}

#[test]
fn size_one_dims_are_dropped_where_that_helps() {
    // Kept in the result: the input's stays, and no reshape is needed.
    let same = reduce_first(&[1, 5, 6], &[1, 30], &[1]);
    assert_eq!(same, Some(plan(&[1, 2], &[1], &[1], &[])));
    // Not in the result: reduced with the rest.
    let dropped = reduce_first(&[1, 5, 6, 2], &[30, 2], &[0]).unwrap();
    assert_eq!(dropped, plan(&[0, 1, 2], &[2], &[2], &[]));
    // Reduced by the original.
    let reduced = reduce_first(&[1, 5, 6], &[1, 5, 6], &[0, 1]);
    assert_eq!(reduced, Some(plan(&[0, 1], &[6], &[6], &[])));
    // Only in the result: the reshape puts it in.
    let added = reduce_first(&[5, 6], &[1, 5, 1, 6], &[1]).unwrap();
    assert_eq!(added, plan(&[0], &[6], &[1, 1, 6], &[]));
    assert!(!added.reshape_is_identity());
}

#[test]
fn a_batch_of_one_stays_where_it_is() {
    let strided = reduce_first(&[1, 8, 8, 12], &[1, 8, 8, 4, 3], &[1, 2, 3]);
    assert_eq!(strided, Some(plan(&[1, 2], &[1, 12], &[1, 4, 3], &[1])));
    let nhwc = reduce_first(&[1, 8, 8, 12], &[1, 8, 8, 3, 4], &[1, 2, 4]);
    assert_eq!(nhwc, Some(plan(&[1, 2], &[1, 12], &[1, 3, 4], &[2])));
    // Below one rest and above another.
    let between = reduce_first(&[7, 6, 1, 12], &[7, 3, 2, 1, 3, 4], &[0, 2, 5]);
    assert_eq!(between, Some(plan(&[0], &[6, 1, 12], &[3, 2, 1, 3, 4], &[1, 4])));
}

#[test]
fn nothing_is_reduced_first_where_nothing_can_be() {
    assert_eq!(reduce_first(&[12], &[3, 4], &[1]), None);
    assert_eq!(reduce_first(&[2, 12], &[2, 3, 4], &[]), None);
    // Dims of one element alone are not worth a reduce.
    assert_eq!(reduce_first(&[1, 12], &[3, 4, 1], &[1, 2]), None);
    assert_eq!(reduce_first(&[1], &[1, 1], &[0]), None);
    assert_eq!(reduce_first(&[2, 3], &[2, 3], &[2]), None);
    assert_eq!(reduce_first(&[2, 3], &[2, 3], &[0, 0]), None);
}

// --- T2 ---

#[test]
fn group_norm_statistics_are_broadcast_over_their_group_only() {
    let to = [2, 8, 8, 3, 4];
    let statistics = broadcast(&[2, 8, 8, 12], &to, &[0, 3]);
    assert_eq!(statistics, inner(&[2, 3, 4], &[0, 1], &[2, 12], &[0, 3]));
    assert!(!statistics.inner_is_trivial() && !statistics.reshape_is_trivial());
    // NCHW: [B,G] against [B,G,C/G*H*W].
    let swallowed = broadcast(&[2, 12, 8, 8], &[2, 3, 256], &[0, 1]);
    assert_eq!(swallowed, inner(&[2, 3, 4], &[0, 1], &[2, 12], &[0, 1]));
}

#[test]
fn whole_dims_need_no_inner_broadcast() {
    let scale = broadcast(&[2, 8, 8, 12], &[2, 8, 8, 3, 4], &[3, 4]);
    assert_eq!(scale, inner(&[3, 4], &[0, 1], &[12], &[3]));
    assert!(scale.inner_is_trivial() && !scale.reshape_is_trivial());
    let batch = broadcast(&[2, 8, 8, 12], &[2, 8, 8, 3, 4], &[0, 2]);
    assert_eq!(batch, inner(&[2, 8], &[0, 1], &[2, 8], &[0, 2]));
    assert!(batch.inner_is_trivial() && batch.reshape_is_trivial());
    let merged = broadcast(&[2, 8, 9, 12], &[2, 72, 12], &[1]);
    assert_eq!(merged, inner(&[72], &[0], &[8, 9], &[1, 2]));
}

#[test]
fn scalars_are_trivial() {
    let scalar = broadcast(&[5, 6, 4, 1], &[5, 4, 6], &[]);
    assert_eq!(scalar, inner(&[], &[], &[], &[]));
    assert!(scalar.inner_is_trivial() && scalar.reshape_is_trivial());
}

#[test]
fn a_broadcast_that_permutes_does_so_inside() {
    let to = [2, 8, 8, 3, 4];
    let permuted = broadcast(&[2, 8, 8, 12], &to, &[3, 0]);
    assert_eq!(permuted, inner(&[2, 3, 4], &[1, 0], &[2, 12], &[0, 3]));
    let whole = broadcast(&[2, 8, 8, 12], &to, &[4, 3]);
    assert_eq!(whole, inner(&[3, 4], &[1, 0], &[12], &[3]));
    assert!(!whole.inner_is_trivial());
}

#[test]
fn an_iota_along_a_dim_is_a_broadcast() {
    // The channel within its group: iota(4) along the last output dim.
    let within = broadcast(&[2, 8, 8, 12], &[2, 8, 8, 3, 4], &[4]);
    assert_eq!(within, inner(&[3, 4], &[1], &[12], &[3]));
}

#[test]
fn opaque_groups_are_broadcast_whole_where_they_must_be() {
    let mixed = broadcast(&[5, 6, 4], &[5, 4, 6], &[1]);
    assert_eq!(mixed, inner(&[4, 6], &[0], &[6, 4], &[1, 2]));
    let in_part = broadcast(&[2, 2, 6], &[3, 2, 2, 2], &[2]);
    assert_eq!(in_part, inner(&[3, 2, 2], &[1], &[2, 6], &[1, 2]));
}

#[test]
fn size_one_dims_of_the_operand_are_kept() {
    let shared = broadcast(&[1, 6, 4], &[1, 6, 4], &[0, 1]);
    assert_eq!(shared, inner(&[1, 6], &[0, 1], &[1, 6], &[0, 1]));
    let gone = broadcast(&[6, 4], &[1, 6, 4], &[0, 1]);
    assert_eq!(gone, inner(&[1, 6], &[0, 1], &[6], &[0]));
    let not_asked = broadcast(&[1, 6, 4], &[1, 6, 4], &[1]);
    assert_eq!(not_asked, inner(&[6], &[0], &[6], &[1]));
}

#[test]
fn broadcast_dims_must_exist_once() {
    let digits = digits(&[6], &[2, 3]);
    assert_eq!(digits.broadcast_through(&[2]), None);
    assert_eq!(digits.broadcast_through(&[1, 1]), None);
}
