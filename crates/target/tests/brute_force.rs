//! Every claim about small shapes, checked against the address of every
//! element.

use crate::model::{addresses, f32, factorings, indices, laid_out, permutations, place, toy};
use tilewright_ir::layout::{Padding, PaddingValue, Tile};
use tilewright_ir::shape::ArrayShape;
use tilewright_target::{Alignment, MoveKind, Target};

const STAR: i64 = Tile::COMBINE;

/// Returns row-major shapes of up to four dims and `count` elements, and those of up to three
/// dims in every layout, cut by `tiles`.
fn shapes(count: i64, tiles: &[&[i64]]) -> Vec<ArrayShape> {
    let mut shapes = vec![];
    for rank in 0..=4usize {
        for dims in factorings(count, rank) {
            let layouts = if rank < 4 { permutations(rank) } else { vec![vec![3, 2, 1, 0]] };
            for order in layouts {
                let order: Vec<u32> = order.iter().map(|&dim| dim as u32).collect();
                shapes.push(laid_out(&dims, &order, tiles));
            }
        }
    }
    shapes
}

fn large(shape: &ArrayShape) -> Vec<i64> {
    shape.dims().iter().copied().filter(|&dim| dim != 1).collect()
}

/// Checks every pair; gives how many of different shapes were kept in place, and how many were
/// not claimed to be though they are.
fn check_reshapes(target: &Target, shapes: &[ArrayShape]) -> (usize, usize) {
    let places: Vec<Vec<i64>> = shapes.iter().map(|shape| addresses(target, shape)).collect();
    let (mut kept, mut missed) = (0, 0);
    for (from, before) in shapes.iter().zip(&places) {
        for (to, after) in shapes.iter().zip(&places) {
            let cost = target.reshape_cost(from, to);
            let claimed = cost.kind != MoveKind::Realigns;
            assert!(!claimed || before == after, "{from} to {to}: {cost:?}, yet elements move");
            assert!(
                cost.kind != MoveKind::Free || large(from) == large(to),
                "{from} to {to} is free"
            );
            assert_eq!(claimed, cost.realigned_vectors == 0, "{from} to {to}");
            kept += usize::from(claimed && from != to);
            missed += usize::from(!claimed && before == after);
        }
    }
    (kept, missed)
}

#[test]
fn reshapes_in_the_tiles_of_the_target_are_told_exactly() {
    let target = toy();
    for count in [1, 2, 3, 4, 6, 8, 9, 12, 15, 16, 18, 20, 24, 30, 32, 36] {
        let (kept, missed) = check_reshapes(&target, &shapes(count, &[]));
        assert_ne!(kept, 0, "{count} elements");
        assert_eq!(missed, 0, "{count} elements");
    }
}

#[test]
fn reshapes_in_explicit_tiles_are_told_soundly() {
    let target = toy();
    // The last ones combine dims: for them, "realigns" is also the answer if the move is not
    // known.
    let lists: [(&[&[i64]], bool); 12] = [
        (&[&[1, 4]], true),
        (&[&[4]], true),
        (&[&[3, 4]], true),
        (&[&[2, 2, 3]], true),
        (&[&[2, 4], &[2, 1]], true),
        (&[&[2, 4], &[1, 2]], true),
        (&[&[4, 2], &[2, 2], &[2]], true),
        (&[&[3, 4], &[2, 1]], true),
        (&[&[5, 3], &[3, 2], &[2, 2]], true),
        (&[&[2, 4], &[8, 1]], true),
        (&[&[STAR, 4]], false),
        (&[&[2, STAR, 4]], false),
    ];
    for (tiles, exact) in lists {
        let mut all = 0;
        for count in [1, 4, 6, 8, 12, 16, 18, 24] {
            let (kept, missed) = check_reshapes(&target, &shapes(count, tiles));
            let is_told = kept != 0 && missed == 0;
            assert!(is_told || !exact, "{count} elements in {tiles:?}: {kept}, {missed} missed");
            all += kept;
        }
        println!("{tiles:?}: {all} kept");
        assert_ne!(all, 0, "{tiles:?}");
    }
}

#[test]
fn reshapes_between_different_tiles_are_told_soundly() {
    let target = toy();
    let lists: [&[&[i64]]; 6] =
        [&[], &[&[1, 4]], &[&[4]], &[&[8]], &[&[2, 4], &[2, 1]], &[&[STAR, 8]]];
    for count in [4, 8, 12] {
        let mixed: Vec<_> = lists.iter().flat_map(|tiles| shapes(count, tiles)).collect();
        let (kept, _) = check_reshapes(&target, &mixed);
        assert_ne!(kept, 0, "{count} elements");
    }
}

#[test]
fn reshapes_of_padded_arrays_are_told_soundly() {
    let target = toy();
    let lists: [&[&[i64]]; 3] = [&[], &[&[STAR, 4]], &[&[4]]];
    for tiles in lists {
        for more in [0, 1, 2] {
            let pad = |mut shape: ArrayShape| {
                let dims = shape.dims().iter().map(|dim| dim + more).collect();
                let padding = Padding { dims, value: PaddingValue::Zero };
                shape.layout.as_mut().unwrap().padding = Some(Box::new(padding));
                shape
            };
            let mut mixed = shapes(12, tiles);
            mixed.extend(shapes(12, tiles).into_iter().map(pad));
            let (kept, _) = check_reshapes(&target, &mixed);
            assert_ne!(kept, 0, "{tiles:?} and {more} more");
        }
    }
}

#[test]
fn reshapes_on_linear_memory_are_free() {
    let linear = Target::builtin("linear").unwrap();
    for from in shapes(24, &[]) {
        let cost = linear.reshape_cost(&from, &f32(&[24]));
        assert_eq!((cost.kind, cost.realigned_vectors), (MoveKind::Free, 0));
    }
}

#[test]
fn vectors_are_the_places_there_are() {
    let target = toy();
    let lists: [&[&[i64]]; 5] =
        [&[], &[&[1, 4]], &[&[3, 4], &[2, 1]], &[&[STAR, 4]], &[&[2, 2, 3]]];
    for tiles in lists {
        for shape in shapes(24, tiles) {
            let index = vec![0; shape.rank()];
            let (_, places) = place(&target, &shape, &index);
            let footprint = target.footprint(&shape);
            assert_eq!(footprint.padded_bytes, 4 * places as u64, "{shape}");
            assert_eq!(footprint.vectors, (places as u64).div_ceil(8), "{shape}");
        }
    }
}

/// Returns where a transpose puts the elements: for each, its address before and after.
fn moves(target: &Target, from: &ArrayShape, to: &ArrayShape, order: &[usize]) -> Vec<(i64, i64)> {
    let moved = |index: &Vec<i64>| {
        let after: Vec<i64> = order.iter().map(|&dim| index[dim]).collect();
        (place(target, from, index).0, place(target, to, &after).0)
    };
    indices(from.dims()).iter().map(moved).collect()
}

/// Checks whether at most whole tiles of this many places move.
fn whole_tiles(moves: &[(i64, i64)], tile: i64) -> bool {
    let mut goes = std::collections::BTreeMap::new();
    moves.iter().all(|&(before, after)| {
        before % tile == after % tile
            && *goes.entry(before / tile).or_insert(after / tile) == after / tile
    })
}

/// Checks every transpose of dims of this many elements from every layout to every layout; gives how
/// many between different shapes keep their tiles, and how many were not claimed to though they do.
fn check_transposes(
    target: &Target,
    count: i64,
    tiles: &[&[i64]],
    tile: Option<i64>,
) -> (usize, usize) {
    let (mut kept, mut missed) = (0, 0);
    for dims in (1..=3).flat_map(|rank| factorings(count, rank)) {
        let orders = permutations(dims.len());
        let shape = |dims: &[i64], layout: &[usize]| {
            let layout: Vec<u32> = layout.iter().map(|&dim| dim as u32).collect();
            laid_out(dims, &layout, tiles)
        };
        for (order, l1) in orders.iter().flat_map(|o| orders.iter().map(move |l| (o, l))) {
            let permuted: Vec<i64> = order.iter().map(|&dim| dims[dim]).collect();
            let permutation: Vec<i64> = order.iter().map(|&dim| dim as i64).collect();
            for l2 in &orders {
                let (from, to) = (shape(&dims, l1), shape(&permuted, l2));
                let kind = target.transpose_cost(&from, &to, &permutation).kind;
                let moves = moves(target, &from, &to, order);
                let stays = moves.iter().all(|(before, after)| before == after);
                let whole = stays || tile.is_some_and(|tile| whole_tiles(&moves, tile));
                let says = format!("{from} to {to} by {order:?}: {kind:?}");
                assert!(kind != MoveKind::Free || stays, "{says}");
                if tile.is_some() {
                    assert!(kind != MoveKind::KeepsTiles || whole, "{says}");
                }
                kept += usize::from(kind != MoveKind::Realigns && from != to);
                missed += usize::from(kind == MoveKind::Realigns && whole);
            }
        }
    }
    (kept, missed)
}

#[test]
fn transposes_in_the_tiles_of_the_target_are_told_exactly() {
    for count in [1, 2, 6, 8, 9, 12, 16, 24, 30] {
        let (kept, missed) = check_transposes(&toy(), count, &[], Some(8));
        assert_ne!(kept, 0, "{count} elements");
        assert_eq!(missed, 0, "{count} elements");
    }
}

#[test]
fn transposes_in_explicit_tiles_are_told_soundly() {
    let lists: [(&[&[i64]], i64); 7] = [
        (&[&[2, 4], &[8, 1]], 32),
        (&[&[2, 4], &[4, 2], &[1, 2]], 16),
        (&[&[1, 4]], 4),
        (&[&[3, 4]], 12),
        (&[&[2, 4], &[2, 1]], 8),
        (&[&[STAR, 4]], 4),
        (&[&[4]], 4),
    ];
    for (tiles, tile) in lists {
        let kept = |count| check_transposes(&toy(), count, tiles, Some(tile)).0;
        let all: usize = [6, 8, 12, 24].map(kept).iter().sum();
        println!("{tiles:?}: {all} kept");
        assert_ne!(all, 0, "{tiles:?}");
    }
}

#[test]
fn transposes_on_linear_memory_are_free_only_as_bitcasts() {
    let linear = Target::builtin("linear").unwrap();
    assert_eq!(linear.alignment, Alignment::None);
    for count in [1, 6, 8, 24] {
        let (kept, missed) = check_transposes(&linear, count, &[], None);
        assert_ne!(kept, 0, "{count} elements");
        assert_eq!(missed, 0, "{count} elements");
    }
}
