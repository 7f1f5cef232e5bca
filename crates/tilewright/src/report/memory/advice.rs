//! What a user can do about memory.

use rustc_hash::FxHashMap;
use tilewright_ir::metadata::InputOutputAlias;
use tilewright_ir::{ArrayShape, Dims, InstId, Layout, Module, Opcode, Shape, dims};
use tilewright_rewrite::Place;
use tilewright_rewrite::analysis::sharding::DeviceMesh;
use tilewright_rewrite::cost::{MemoryUse, StoredArray, memory_use};
use tilewright_rewrite::table::bytes;
use tilewright_target::Target;

use super::blocks::{Blocks, blocks_of};

/// How many times as much memory an array takes as another form would, before the form is named.
const WORTH: u64 = 2;
/// Arrays below this part of the peak are not worth words.
const SMALL_PART: u64 = 100;
/// The number of blocks in which an array is best made and reduced: enough to save most of its memory.
const BLOCKS: u64 = 16;

/// Returns what the peak is after a rewrite, if that is less by a fiftieth.
pub(super) fn by_rewriting(before: u64, after: u64) -> Option<String> {
    is_less(after, before)
        .then(|| format!("`tilewright opt` would bring the peak to {}", bytes(after)))
}

fn is_less(after: u64, before: u64) -> bool {
    after < before.saturating_sub(before / 50)
}

/// Says what the peak would be if results were written into arguments of their shapes; `None` if the module donates
/// some already, or the peak would hardly be less.
pub(super) fn by_donating(module: &Module, target: &Target, before: u64) -> Option<String> {
    let header = &module.header;
    if !header.input_output_alias.is_empty() || !header.buffer_donors.is_empty() {
        return None;
    }
    let entry = module.computation(module.entry()?);
    let root = entry.root()?;
    let is_tuple = module.opcode(root) == Opcode::Tuple;
    let results = if is_tuple { module.operands(root) } else { std::slice::from_ref(&root) };
    let mut free: FxHashMap<&Shape, Vec<(i64, InstId)>> = FxHashMap::default();
    for (number, &id) in (0..).zip(entry.parameters()) {
        free.entry(module.shape(id)).or_default().push((number, id));
    }
    let mut donating = module.clone();
    let mut count = 0usize;
    for (index, &result) in (0..).zip(results) {
        let Some(of_shape) = free.get_mut(module.shape(result)) else { continue };
        // A result that is an argument itself moves nowhere.
        let Some((parameter, _)) = of_shape.pop_if(|&mut (_, id)| id != result) else { continue };
        let output = if is_tuple { dims([index]) } else { Dims::new() };
        let alias =
            InputOutputAlias { output, parameter, parameter_part: Dims::new(), must: false };
        donating.header.input_output_alias.push(alias);
        count = count.saturating_add(1);
    }
    let after = memory_use(&donating, target).peak_bytes;
    is_less(after, before).then(|| {
        let arguments = crate::report::counted(count, "argument");
        format!(
            "if the caller no longer needs them, donating {arguments} (`donate_argnums` of `jax.jit`) would bring \
             the peak to {}: results of the same shape take their memory",
            bytes(after)
        )
    })
}

/// Returns what would make an array smaller, or keep it for a shorter time.
pub(super) fn on(
    module: &Module,
    target: &Target,
    all: &MemoryUse,
    array: &StoredArray,
) -> Option<String> {
    if !array.is_alive_at_peak || array.footprint.padded_bytes < all.peak_bytes / SMALL_PART {
        return None;
    }
    let padded = array.footprint.padded_bytes;
    let shape = module.array_shape(array.id)?;
    // Of the part of a device, as much is padding as of the whole array.
    let part = |other: u64| {
        let whole = u128::from(target.footprint(shape).padded_bytes.max(1));
        u64::try_from(u128::from(other) * u128::from(padded) / whole).unwrap_or(u64::MAX)
    };
    let fits = |other: u64| part(other).saturating_mul(WORTH) <= padded;
    let other = other_side(module, array.id);
    if let Some(other) = other.filter(|other| fits(target.footprint(other).padded_bytes)) {
        let other_bytes = bytes(part(target.footprint(other).padded_bytes));
        let name = Shape::Array(other.clone()).without_layout();
        return Some(format!(
            "work on it as {name}, the other side of its reshape, which takes {other_bytes}"
        ));
    }
    if let Some((least, dims)) = best_order(target, shape).filter(|(least, _)| fits(*least)) {
        return Some(format!("transposed, so that {dims}, it would take {}", bytes(part(least))));
    }
    if is_kept_for_backward(module, array.id) {
        return Some(format!(
            "it is kept for the backward pass: `jax.checkpoint` around what makes it computes it again instead \
             of keeping {}",
            bytes(padded)
        ));
    }
    // In a module over several devices, the loop could go along a dim that they divide.
    if DeviceMesh::of(module).is_some() {
        return None;
    }
    let Blocks { source: (source, along), dim } = blocks_of(module, array.id)?;
    let size = shape.dims().get(dim)?.unsigned_abs();
    let block = (size / BLOCKS).max(1);
    Some(format!(
        "it is never needed whole: `jax.lax.map(f, xs, batch_size={block})` over dim {along} of {}, with `f` from \
         there to what is reduced from it, holds {} at a time",
        Place::of(module, source),
        bytes(u64::try_from(u128::from(padded) * u128::from(block) / u128::from(size)).ok()?)
    ))
}

/// Returns the other side of a reshape that makes or reads an array.
fn other_side(module: &Module, id: InstId) -> Option<&ArrayShape> {
    let is_reshape = |id: InstId| matches!(module.opcode(id), Opcode::Reshape | Opcode::Bitcast);
    let operand = is_reshape(id).then(|| module.operands(id).first().copied()).flatten();
    let user = module.uses(id).map(|one| one.user).find(|&user| is_reshape(user));
    module.array_shape(operand.or(user)?)
}

/// Returns the fewest bytes that an array takes with other dims last, and these dims in words.
fn best_order(target: &Target, shape: &ArrayShape) -> Option<(u64, String)> {
    let dims = 0..u32::try_from(shape.rank()).ok()?;
    let pairs = dims.clone().flat_map(|minor| dims.clone().map(move |second| [minor, second]));
    let sized = pairs.filter(|[minor, second]| minor != second).map(|[minor, second]| {
        let rest = dims.clone().rev().filter(|dim| ![minor, second].contains(dim));
        let layout = Layout::new([minor, second].into_iter().chain(rest));
        let padded = target.footprint(&shape.clone().with_layout(Some(layout))).padded_bytes;
        (padded, format!("dim {minor} is the last and dim {second} the one before"))
    });
    sized.min_by_key(|(padded, _)| *padded)
}

/// Checks whether an array is made in the forward pass of a gradient and read in the backward one.
fn is_kept_for_backward(module: &Module, id: InstId) -> bool {
    let is_backward = |id: InstId| {
        module.metadata(id).is_some_and(|metadata| metadata.op_name.contains("transpose(jvp("))
    };
    let is_forward =
        |id: InstId| module.metadata(id).is_some_and(|metadata| metadata.op_name.contains("jvp("));
    is_forward(id) && !is_backward(id) && module.uses(id).any(|one| is_backward(one.user))
}
