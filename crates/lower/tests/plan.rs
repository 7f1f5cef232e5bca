//! The plan of a reduction: the worked examples of its source, every kind of
//! layout, and random shapes against a walk over all elements.

use tilewright_ir::element::ElementType;
use tilewright_ir::index::{AddressMap, PositionIterator};
use tilewright_ir::layout::{Layout, Padding, PaddingValue, Tile};
use tilewright_ir::shape::ArrayShape;
use tilewright_lower::{AxisKind, Order, PlanError, ReductionPlan, Step};

use proptest::prelude::*;

fn extents(plan: &ReductionPlan) -> Vec<u64> {
    plan.axes.iter().map(|axis| axis.extent).collect()
}

fn array(dims: &[i64]) -> ArrayShape {
    ArrayShape::new(ElementType::F32, dims.iter().copied())
}

fn laid_out(dims: &[i64], layout: Layout) -> ArrayShape {
    array(dims).with_layout(Some(layout))
}

fn tiled(minor_to_major: &[u32], tiles: &[&[i64]]) -> Layout {
    let tile = |dims: &&[i64]| Tile { dims: dims.iter().copied().collect() };
    let tiles = tiles.iter().map(tile).collect();
    Layout { tiles, ..Layout::new(minor_to_major.iter().copied()) }
}

// --- the worked examples of the source ---------------------------------------

#[test]
fn twelve_axes_become_nine() {
    let dims: Vec<u64> = (1..=12).collect();
    for order in [Order::Forward, Order::Reverse] {
        let plan = ReductionPlan::of_dims(&dims, &[2, 4, 5, 6, 8, 10], order).expect("a plan");
        assert_eq!(extents(&plan), [2, 3, 4, 210, 8, 9, 10, 11, 12]);
        assert_eq!(plan.kinds(), "dadadadad");
    }
}

#[test]
fn twelve_axes_walked_forward() {
    let dims: Vec<u64> = (1..=12).collect();
    let plan = ReductionPlan::of_dims(&dims, &[2, 4, 5, 6, 8, 10], Order::Forward).expect("a plan");
    // By hand: first blocks (2), (2,3,4), (2,3,4,210,8), (2,3,4,210,8,9,10).
    let expected = [
        Step { axis: 1, extent: 3, base: 2, offset: 2, parallel: 4 },
        Step { axis: 3, extent: 210, base: 8, offset: 24, parallel: 8 },
        Step { axis: 5, extent: 9, base: 64, offset: 40_320, parallel: 10 },
        Step { axis: 7, extent: 11, base: 640, offset: 3_628_800, parallel: 12 },
    ];
    assert_eq!(plan.steps, expected);
}

#[test]
fn neighbours_are_multiplied() {
    let plan =
        ReductionPlan::of_dims(&[3, 6, 2, 3, 4], &[1, 2, 3], Order::Forward).expect("a plan");
    assert_eq!(extents(&plan), [3, 36, 4]);
    let reduced: Vec<usize> = plan.steps.iter().map(|step| step.axis).collect();
    assert_eq!(reduced, [1]);
}

#[test]
fn five_axes_walked_in_reverse() {
    let plan = ReductionPlan::of_dims(&[2, 3, 2, 3, 6], &[1, 3], Order::Reverse).expect("a plan");
    let expected = [
        Step { axis: 3, extent: 3, base: 6, offset: 6, parallel: 2 },
        Step { axis: 1, extent: 3, base: 12, offset: 36, parallel: 2 },
    ];
    assert_eq!(plan.steps, expected);
    let addresses: Vec<Vec<u64>> = plan.steps.iter().map(|s| s.addresses().collect()).collect();
    assert_eq!(addresses, [[0, 6, 12], [0, 36, 72]]);
    assert_eq!(
        plan.to_string(),
        "(2,3,2,3,6) dadad reverse\n  \
         axis 3 of 3: base 6, offset 6, parallel 2\n  \
         axis 1 of 3: base 12, offset 36, parallel 2\n"
    );
}

#[test]
fn weight_norm_keeps_its_channels() {
    let plan = ReductionPlan::of_dims(&[8, 5, 3, 3], &[0, 2, 3], Order::Reverse).expect("a plan");
    assert_eq!((extents(&plan), plan.kinds()), (vec![8, 5, 9], "ada".to_owned()));
    let expected = [
        Step { axis: 2, extent: 9, base: 1, offset: 1, parallel: 5 },
        Step { axis: 0, extent: 8, base: 5, offset: 45, parallel: 1 },
    ];
    assert_eq!(plan.steps, expected);
}

// --- sizes that are not ordinary ------------------------------------------------

#[test]
fn axes_of_one_vanish() {
    let plan = ReductionPlan::of_dims(&[2, 3, 1, 4], &[1, 3], Order::Reverse).expect("a plan");
    assert_eq!((extents(&plan), plan.kinds()), (vec![2, 12], "da".to_owned()));
    let plan = ReductionPlan::of_dims(&[1, 1], &[0], Order::Reverse).expect("a plan");
    assert!(plan.axes.is_empty() && plan.steps.is_empty());
    let plan = ReductionPlan::of_dims(&[], &[], Order::Forward).expect("a plan");
    assert!(plan.axes.is_empty() && plan.steps.is_empty());
}

#[test]
fn nothing_is_reduced_along_nothing() {
    let plan = ReductionPlan::of_dims(&[2, 0, 3], &[1], Order::Reverse).expect("a plan");
    assert_eq!(plan.steps, [Step { axis: 1, extent: 0, base: 3, offset: 3, parallel: 2 }]);
    assert_eq!(plan.steps[0].addresses().count(), 0);
    let plan = ReductionPlan::of_dims(&[0, 4, 5], &[1, 2], Order::Reverse).expect("a plan");
    assert_eq!(plan.steps, [Step { axis: 1, extent: 20, base: 1, offset: 1, parallel: 0 }]);
}

#[test]
fn large_sizes_are_counted() {
    let large = 1 << 40;
    let plan = ReductionPlan::of_dims(&[large, 3, 1 << 20], &[1], Order::Reverse).expect("a plan");
    let step = Step { axis: 1, extent: 3, base: 1 << 20, offset: 1 << 20, parallel: large };
    assert_eq!(plan.steps, [step]);
    let too_large = ReductionPlan::of_dims(&[large, large], &[1], Order::Reverse);
    assert_eq!(too_large, Err(PlanError::TooLarge));
}

#[test]
fn axes_are_named_once() {
    let plan = |axes: &[usize]| ReductionPlan::of_dims(&[2, 3], axes, Order::Reverse);
    assert_eq!(plan(&[2]), Err(PlanError::NoSuchAxis));
    assert_eq!(plan(&[1, 1]), Err(PlanError::Twice));
}

// --- layouts -----------------------------------------------------------------------

#[test]
fn memory_decides_what_is_adjacent() {
    // Dims 0 and 2 are neighbours in memory: [1][0][2], major to minor.
    let shape = laid_out(&[2, 3, 5], Layout::new([2, 0, 1]));
    let plan = ReductionPlan::of_array(&shape, &[0, 2]).expect("a plan");
    assert_eq!((extents(&plan), plan.kinds()), (vec![3, 10], "da".to_owned()));
    assert_eq!(plan.order, Order::Reverse);
    assert_eq!(plan.steps, [Step { axis: 1, extent: 10, base: 1, offset: 1, parallel: 3 }]);
}

#[test]
fn column_major_is_walked_forward() {
    let shape = laid_out(&[2, 3, 5], Layout::new([0, 1, 2]));
    let plan = ReductionPlan::of_array(&shape, &[1]).expect("a plan");
    assert_eq!((extents(&plan), plan.order), (vec![2, 3, 5], Order::Forward));
    assert_eq!(plan.steps, [Step { axis: 1, extent: 3, base: 2, offset: 2, parallel: 5 }]);
}

#[test]
fn padding_lies_between_entries() {
    let padding = Padding { dims: [3, 5].into_iter().collect(), value: PaddingValue::Zero };
    let layout = Layout { padding: Some(Box::new(padding)), ..Layout::new([1, 0]) };
    let shape = laid_out(&[2, 3], layout);
    let rows = ReductionPlan::of_array(&shape, &[0]).expect("a plan");
    assert_eq!(rows.steps, [Step { axis: 0, extent: 2, base: 3, offset: 5, parallel: 1 }]);
    // The two axes do not follow each other: both are walked.
    let all = ReductionPlan::of_array(&shape, &[0, 1]).expect("a plan");
    assert_eq!(all.kinds(), "aa");
    assert_eq!(all.steps.iter().map(|step| step.offset).collect::<Vec<_>>(), [1, 5]);
}

#[test]
fn tiles_cut_axes() {
    // f32[16,20] in tiles of 4x5: [16/4][20/5][4][5].
    let shape = laid_out(&[16, 20], tiled(&[1, 0], &[&[4, 5]]));
    let plan = ReductionPlan::of_array(&shape, &[1]).expect("a plan");
    assert_eq!((extents(&plan), plan.kinds()), (vec![4, 4, 4, 5], "dada".to_owned()));
    let expected = [
        Step { axis: 3, extent: 5, base: 1, offset: 1, parallel: 4 },
        Step { axis: 1, extent: 4, base: 4, offset: 20, parallel: 4 },
    ];
    assert_eq!(plan.steps, expected);
    assert!(!plan.masked);
    let ragged = laid_out(&[16, 21], tiled(&[1, 0], &[&[4, 5]]));
    assert!(ReductionPlan::of_array(&ragged, &[1]).expect("a plan").masked);
    let combined = laid_out(&[16, 20], tiled(&[1, 0], &[&[Tile::COMBINE, 5]]));
    assert_eq!(ReductionPlan::of_array(&combined, &[1]), Err(PlanError::Combined));
}

// --- random shapes -------------------------------------------------------------------

/// Returns the figure in which neighbours are fused one by one while the axes are walked, to
/// the letter: the kinds and sizes that it ends with.
fn fused_on_the_way(dims: &[u64], reduced: &[usize]) -> Vec<(bool, u64)> {
    let mut axes: Vec<(bool, u64)> =
        dims.iter().enumerate().map(|(i, &d)| (reduced.contains(&i), d)).collect();
    let mut first = 0;
    while first < axes.len() {
        while axes.get(first + 1).is_some_and(|next| next.0 == axes[first].0) {
            let (_, size) = axes.remove(first + 1);
            axes[first].1 *= size;
        }
        first += 1;
    }
    axes
}

/// Returns every address that the plan's axes reach, by the place of its result.
fn addresses(plan: &ReductionPlan) -> Vec<Vec<u64>> {
    let mut results = vec![vec![0]];
    let major_first = |kind| plan.axes.iter().filter(move |axis| axis.kind == kind);
    for axis in major_first(AxisKind::Kept) {
        let starts = results.iter().flatten().copied().collect::<Vec<u64>>();
        let along = |start| (0..axis.extent).map(move |i| vec![start + i * axis.stride]);
        results = starts.into_iter().flat_map(along).collect();
    }
    for axis in major_first(AxisKind::Reduced) {
        for result in &mut results {
            let along = |&start: &u64| (0..axis.extent).map(move |i| start + i * axis.stride);
            *result = result.iter().flat_map(along).collect();
        }
    }
    results
}

/// Returns the same by asking for the address of every element.
fn addresses_one_by_one(shape: &ArrayShape, reduced: &[usize]) -> Vec<Vec<u64>> {
    let map = AddressMap::new(shape).expect("a map");
    let mut results = std::collections::BTreeMap::<Vec<i64>, Vec<u64>>::new();
    for position in PositionIterator::over(shape.dims()).expect("positions") {
        let address = map.linear(&position).expect("an address");
        let kept = (0..shape.rank()).filter(|d| !reduced.contains(d)).map(|d| position[d]);
        results.entry(kept.collect()).or_default().push(address.unsigned_abs());
    }
    results.into_values().collect()
}

fn sorted(mut results: Vec<Vec<u64>>) -> Vec<Vec<u64>> {
    results.iter_mut().for_each(|result| result.sort_unstable());
    results.sort_unstable();
    results
}

prop_compose! {
    /// Dims, and some of their numbers.
    fn dims_and_axes()(dims in prop::collection::vec(1i64..5, 0..7))
        (axes in prop::sample::subsequence((0..dims.len()).collect::<Vec<_>>(), 0..=dims.len()),
         order in Just((0..u32::try_from(dims.len()).expect("few")).collect::<Vec<_>>()).prop_shuffle(),
         padding in prop::collection::vec(0i64..3, dims.len()),
         tile in prop::collection::vec(1i64..4, 0..=dims.len().min(3)),
         dims in Just(dims))
        -> (Vec<i64>, Vec<usize>, Vec<u32>, Vec<i64>, Vec<i64>) {
        (dims, axes, order, padding, tile)
    }
}

proptest! {
    #[test]
    fn fusing_on_the_way_is_the_same((dims, axes, ..) in dims_and_axes()) {
        let dims: Vec<u64> = dims.iter().map(|&d| d.unsigned_abs() + 1).collect();
        for order in [Order::Forward, Order::Reverse] {
            let plan = ReductionPlan::of_dims(&dims, &axes, order).expect("a plan");
            let planned: Vec<(bool, u64)> =
                plan.axes.iter().map(|a| (a.kind == AxisKind::Reduced, a.extent)).collect();
            prop_assert_eq!(planned, fused_on_the_way(&dims, &axes));
        }
    }

    #[test]
    fn every_element_is_read_once((dims, axes, order, padding, _) in dims_and_axes()) {
        let padded = dims.iter().zip(&padding).map(|(d, p)| d + p).collect();
        let padding = Padding { dims: padded, value: PaddingValue::Unknown };
        for padding in [None, Some(Box::new(padding))] {
            let layout = Layout { padding, ..Layout::new(order.iter().copied()) };
            let shape = laid_out(&dims, layout);
            let plan = ReductionPlan::of_array(&shape, &axes).expect("a plan");
            prop_assert_eq!(sorted(addresses(&plan)), sorted(addresses_one_by_one(&shape, &axes)));
        }
    }

    #[test]
    fn every_element_of_full_tiles_is_read_once((dims, axes, order, _, tile) in dims_and_axes()) {
        // Only the dims that the tile cuts have to be multiples of it.
        let mut dims = dims;
        for (&dim, &along) in order.iter().zip(tile.iter().rev()) {
            dims[dim as usize] *= along;
        }
        let shape = laid_out(&dims, tiled(&order, &[&tile]));
        let plan = ReductionPlan::of_array(&shape, &axes).expect("a plan");
        prop_assert!(!plan.masked);
        prop_assert_eq!(sorted(addresses(&plan)), sorted(addresses_one_by_one(&shape, &axes)));
    }
}
