//! Checks that sizes fit, and that layouts are valid for their arrays.

use rustc_hash::FxHashMap;

use super::Report;
use crate::diag::{Code, DiagnosticPlace};
use crate::entity::ShapeId;
use crate::module::Module;
use crate::types::layout::{Layout, Tile};
use crate::types::shape::{ArrayShape, Shape, UNBOUNDED};

pub(super) fn check(module: &Module, report: &mut Report) {
    // Shapes are interned, so each is checked once.
    let mut judged: FxHashMap<ShapeId, Option<(Code, String)>> = FxHashMap::default();
    for &computation in module.computations() {
        for id in module.instructions(computation) {
            let shape_id = module.instruction(id).shape_id();
            let verdict =
                judged.entry(shape_id).or_insert_with(|| judge(module.shape_of(shape_id)));
            if let Some((code, message)) = verdict {
                report.add(*code, DiagnosticPlace::Instruction(id), message.clone());
            }
        }
    }
    let Some(entry) = &module.header.entry_layout else { return };
    for shape in entry.parameters.iter().chain([&entry.result]) {
        if let Some((code, message)) = judge(shape) {
            report.add(
                code,
                DiagnosticPlace::Module,
                format!("entry_computation_layout: {message}"),
            );
        }
    }
}

fn judge(shape: &Shape) -> Option<(Code, String)> {
    shape.leaves().into_iter().find_map(|leaf| match leaf {
        Shape::Array(array) => judge_array(array),
        Shape::Buffer(inner) => judge(inner),
        Shape::Tuple(_) | Shape::Token | Shape::Opaque => None,
    })
}

fn judge_array(array: &ArrayShape) -> Option<(Code, String)> {
    if let Some(size) = array.dims().iter().find(|&&d| d < 0 && d != UNBOUNDED) {
        return Some((super::SHAPE, format!("dim size {size} is negative")));
    }
    let bytes = |size: i64| size.checked_mul(i64::from(array.element_type.bytes()));
    if !array.dims().contains(&UNBOUNDED) && array.num_elements().and_then(bytes).is_none() {
        return Some((super::SHAPE, format!("{array} has more bytes than 64 bits can count")));
    }
    let layout = array.layout.as_ref()?;
    judge_layout(layout, array.dims()).map(|message| (super::LAYOUT, message))
}

fn judge_layout(layout: &Layout, dims: &[i64]) -> Option<String> {
    let rank = dims.len();
    if layout.rank() != rank {
        return Some(format!("the layout orders {} dims, but the array has {rank}", layout.rank()));
    }
    let mut seen = vec![false; rank];
    for &dim in &layout.minor_to_major {
        match seen.get_mut(dim as usize) {
            Some(seen) if !*seen => *seen = true,
            Some(_) => return Some(format!("the layout names dim {dim} twice")),
            None => {
                return Some(format!("the layout names dim {dim}, but the array has rank {rank}"));
            }
        }
    }
    if layout.tiles.iter().flat_map(|t| &t.dims).any(|&d| d < 1 && d != Tile::COMBINE) {
        return Some("tile sizes must be 1 or more".into());
    }
    if layout.tiles.iter().any(|tile| tile.dims.last() == Some(&Tile::COMBINE)) {
        return Some("the minor dim of a tile has no other to be merged with by `*`".into());
    }
    if let Some(message) = judge_numbers(layout) {
        return Some(message);
    }
    let padding = layout.padding.as_ref()?;
    if padding.dims.len() != rank {
        return Some(format!(
            "padding names {} dims, but the array has {rank}",
            padding.dims.len()
        ));
    }
    let mut sizes = dims.iter().zip(&padding.dims).enumerate();
    let (dim, (size, padded)) = sizes.find(|(_, (size, padded))| padded < size)?;
    Some(format!("dim {dim} of size {size} cannot be padded to {padded}"))
}

/// Returns the numbers of a layout that describe the division of memory.
fn judge_numbers(layout: &Layout) -> Option<String> {
    let prefix = layout.rare.as_ref().map_or(0, |rare| rare.dynamic_shape_metadata_prefix_bytes);
    // 0 means that the value is not set.
    let numbers = [
        ("L", "the tail padding alignment", layout.tail_padding_alignment, 1),
        ("E", "the size of an element in bits", layout.element_size_in_bits, 0),
        ("M", "the size of the metadata in bytes", prefix, 0),
    ];
    let wrong = numbers.into_iter().find(|(_, _, number, least)| number < least);
    wrong.map(|(letter, what, number, _)| {
        format!("{what} must be 1 or more, not {number}: `{letter}({number})`")
    })
}
