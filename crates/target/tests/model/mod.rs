//! A naive second opinion: the address of one element at a time, straight from
//! the definition of layouts and tiles.

#![allow(dead_code, reason = "each test uses its part")]

use tilewright_ir::element::ElementType;
use tilewright_ir::layout::{Layout, Tile};
use tilewright_ir::shape::ArrayShape;
use tilewright_target::{Alignment, Target};

/// 4 lanes, 2 sublanes, 32 bits each.
pub(crate) fn toy() -> Target {
    let mut target = Target::builtin("tpu-like").unwrap();
    target.name = "toy".to_owned();
    target.lanes = 4;
    target.sublanes = 2;
    target.check().unwrap();
    target
}

pub(crate) fn f32(dims: &[i64]) -> ArrayShape {
    ArrayShape::new(ElementType::F32, dims.iter().copied())
}

pub(crate) fn laid_out(dims: &[i64], minor_to_major: &[u32], tiles: &[&[i64]]) -> ArrayShape {
    let mut layout = Layout::new(minor_to_major.iter().copied());
    for tile in tiles {
        layout.tiles.push(Tile { dims: tile.iter().copied().collect() });
    }
    f32(dims).with_layout(Some(layout))
}

/// Returns the address of the element at `index`, and the number of places.
pub(crate) fn place(target: &Target, shape: &ArrayShape, index: &[i64]) -> (i64, i64) {
    let layout = shape.layout_or_default();
    let (rows, lanes) = (i64::from(target.sublanes), i64::from(target.lanes));
    let tiles: Vec<Vec<i64>> = match (target.alignment, shape.rank()) {
        (Alignment::None, _) => vec![],
        _ if !layout.tiles.is_empty() => layout.tiles.iter().map(|t| t.dims.to_vec()).collect(),
        (_, 0 | 1) => vec![vec![rows * lanes]],
        _ => vec![vec![rows, lanes]],
    };
    let extents = layout.padding.as_ref().map_or(shape.dims(), |padding| &padding.dims);
    let order = layout.minor_to_major.iter().rev().map(|&dim| dim as usize);
    let mut axes: Vec<(i64, i64)> = order.map(|dim| (index[dim], extents[dim])).collect();
    for tile in &tiles {
        axes = cut(&axes, tile);
    }
    axes.iter().fold((0, 1), |(at, places), &(i, extent)| (at * extent + i, places * extent))
}

/// Cuts the last axes (index, extent) into tiles, as XLA's notes define it.
fn cut(axes: &[(i64, i64)], tile: &[i64]) -> Vec<(i64, i64)> {
    let mut axes = axes.to_vec();
    while axes.len() < tile.len() {
        axes.insert(0, (0, 1));
    }
    let tail = axes.split_off(axes.len() - tile.len());
    let (mut carried, mut inner) = ((0, 1), vec![]);
    for (&(i, extent), &along) in tail.iter().zip(tile) {
        let combined = (carried.0 * extent + i, carried.1 * extent);
        if along == Tile::COMBINE {
            carried = combined;
            continue;
        }
        carried = (0, 1);
        axes.push((combined.0 / along, (combined.1 + along - 1) / along));
        inner.push((combined.0 % along, along));
    }
    axes.extend(inner);
    axes
}

/// Returns every index of these dims in row-major order.
pub(crate) fn indices(dims: &[i64]) -> Vec<Vec<i64>> {
    dims.iter().fold(vec![vec![]], |all, &dim| {
        let longer = |index: &Vec<i64>| {
            let index = index.clone();
            (0..dim).map(move |i| [&index[..], &[i]].concat())
        };
        all.iter().flat_map(longer).collect()
    })
}

/// Returns the address of every element in row-major order.
pub(crate) fn addresses(target: &Target, shape: &ArrayShape) -> Vec<i64> {
    indices(shape.dims()).iter().map(|index| place(target, shape, index).0).collect()
}

/// Returns all dims of this rank whose product is `count`.
pub(crate) fn factorings(count: i64, rank: usize) -> Vec<Vec<i64>> {
    if rank == 0 {
        return if count == 1 { vec![vec![]] } else { vec![] };
    }
    let divisors = (1..=count).filter(|d| count % d == 0);
    divisors
        .flat_map(|d| {
            factorings(count / d, rank - 1).into_iter().map(move |f| [&[d], &f[..]].concat())
        })
        .collect()
}

/// Returns all orders of `0..rank`.
pub(crate) fn permutations(rank: usize) -> Vec<Vec<usize>> {
    if rank == 0 {
        return vec![vec![]];
    }
    let longer = |shorter: Vec<usize>| {
        (0..rank).map(move |at| {
            let mut longer = shorter.clone();
            longer.insert(at, rank - 1);
            longer
        })
    };
    permutations(rank - 1).into_iter().flat_map(longer).collect()
}
