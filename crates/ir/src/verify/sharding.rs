//! Checks shardings, and the replication of a parameter's leaves.

use super::Report;
use super::counts::mesh_size;
use super::devices::{Verdict, judge_axes, judge_mesh, unlike_ids, wrong_iota};
use crate::diag::DiagnosticPlace;
use crate::entity::{CompId, InstId};
use crate::module::Module;
use crate::ops::Op;
use crate::types::shape::{ArrayShape, Shape};
use crate::types::sharding::{
    LeafSharding, NamedSharding, Placement, Sharding, TileDevices, Tiling,
};

pub(super) fn check(module: &Module, id: InstId, report: &mut Report) {
    let mut add = |verdict: Verdict| {
        if let Err((code, message)) = verdict {
            report.add(code, DiagnosticPlace::Instruction(id), message);
        }
    };
    if let Op::Domain(attrs) = module.op(id) {
        add(judge_all(attrs.domain.entry.leaves().iter().map(|leaf| (leaf, None))));
        add(judge_all(attrs.domain.exit.leaves().iter().map(|leaf| (leaf, None))));
    }
    add(judge_called(module, id));
    let Some(extras) = module.extras(id) else { return };
    if let Some(sharding) = &extras.sharding {
        add(judge(sharding, module.shape(id)));
        add(judge_devices(module, sharding, module.shape(id)));
    }
    if !extras.parameter_replication.is_empty() {
        add(judge_replication(module, id, extras.parameter_replication.len()));
    }
}

/// A loop must have the sharding of its state, and a conditional the sharding of its branches'
/// results, if these have one.
fn judge_called(module: &Module, id: InstId) -> Verdict {
    let root = |computation: CompId| module.computation(computation).root();
    let parameter =
        |computation: CompId| module.computation(computation).parameters().first().copied();
    let called: Vec<Option<InstId>> = match module.op(id) {
        Op::While(attrs) => {
            vec![root(attrs.body), parameter(attrs.body), parameter(attrs.condition)]
        }
        Op::Conditional(_) => module.called(id).into_iter().map(root).collect(),
        _ => return Ok(()),
    };
    let all = std::iter::once(id).chain(called.into_iter().flatten());
    let mut sharded =
        all.filter_map(|id| module.extras(id)?.sharding.as_deref().map(|sharding| (id, sharding)));
    let Some((first, sharding)) = sharded.next() else { return Ok(()) };
    match sharded.find(|(_, other)| certainly_differ(sharding, other)) {
        None => Ok(()),
        Some((other, _)) => {
            let message = format!(
                "`{}` and `{}` have different shardings; what a `{}` passes on stays where it is",
                module.name_of(first),
                module.name_of(other),
                module.opcode(id)
            );
            Err((super::ALIKE, message))
        }
    }
}

/// Checks whether two shardings differ in meaning. A single sharding for all arrays of a tuple
/// equals one per array.
fn certainly_differ(a: &Sharding, b: &Sharding) -> bool {
    let (a, b) = (a.leaves(), b.leaves());
    match (a, b) {
        ([one], all) | (all, [one]) => {
            all.iter().any(|leaf| differ(&one.placement, &leaf.placement))
        }
        _ => a.len() != b.len() || a.iter().zip(b).any(|(a, b)| differ(&a.placement, &b.placement)),
    }
}

fn differ(a: &Placement, b: &Placement) -> bool {
    match (a, b) {
        // The same devices can be written as a list and as a formula, or as two formulas.
        (Placement::Tiled(a), Placement::Tiled(b)) => {
            a.dims != b.dims
                || a.subgroups != b.subgroups
                || matches!((&a.devices, &b.devices), (TileDevices::List(a), TileDevices::List(b)) if a != b)
        }
        (Placement::Named(_), _) | (_, Placement::Named(_)) => false,
        (a, b) => a != b,
    }
}

fn judge(sharding: &Sharding, shape: &Shape) -> Verdict {
    match sharding {
        // The sharding of an outfeed is that of the data sent; its result is a token.
        _ if *shape == Shape::Token => judge_all(sharding.leaves().iter().map(|leaf| (leaf, None))),
        // The sharding of a tuple applies to each array, whatever its rank.
        Sharding::Leaf(leaf) => judge_leaf(leaf, rank(shape)),
        Sharding::Tuple(given) => {
            let leaves = shape.leaves();
            if !matches!(shape, Shape::Tuple(_)) {
                let message = format!(
                    "a sharding in `{{{{...}}}}` is of a tuple, but the shape is {shape}; \
                     write one pair of braces"
                );
                return Err((super::SHARDING, message));
            }
            // A tuple without arrays may still have a sharding.
            let fits = given.len() == leaves.len() || (leaves.is_empty() && given.len() == 1);
            if !fits {
                let message = format!(
                    "the sharding has {} parts, but the shape {} arrays; write one for each",
                    given.len(),
                    leaves.len()
                );
                return Err((super::SHARDING, message));
            }
            let ranks = leaves.into_iter().map(rank).chain(std::iter::repeat(None));
            judge_all(given.iter().zip(ranks))
        }
    }
}

/// If the header has the number of partitions, shardings must use only these.
fn judge_devices(module: &Module, sharding: &Sharding, shape: &Shape) -> Verdict {
    let count = module.header.num_partitions.filter(|&count| count > 1);
    let Some(count) = count.filter(|_| *shape != Shape::Token) else { return Ok(()) };
    let wrong = |message| Err((super::SHARDING, message));
    for leaf in sharding.leaves() {
        let (devices, named) = devices_of(&leaf.placement);
        if let Some(device) = named.iter().find(|&&device| device >= count) {
            return wrong(format!(
                "the sharding names device {device}, but num_partitions is {count}"
            ));
        }
        if let Some(given) = devices.filter(|&given| given != count) {
            return wrong(format!(
                "the sharding is among {given} devices, but num_partitions is {count}; \
                 use them all"
            ));
        }
    }
    Ok(())
}

/// Returns the number of devices among which a placement divides an array, and the devices that
/// it lists. The number is `None` if the placement does not divide the array.
fn devices_of(placement: &Placement) -> (Option<i64>, &[i64]) {
    match placement {
        Placement::Maximal(device) => (None, std::slice::from_ref(device)),
        Placement::Tiled(tiling) => match &tiling.devices {
            TileDevices::List(ids) => (i64::try_from(ids.len()).ok(), ids),
            TileDevices::Iota(devices) => (devices.count(), &[]),
        },
        Placement::Named(named) if named.dims.iter().any(|dim| !dim.axes.is_empty()) => {
            (mesh_size(&named.mesh), &[])
        }
        Placement::Named(_)
        | Placement::Replicated
        | Placement::Manual
        | Placement::Unknown
        | Placement::Unreduced => (None, &[]),
    }
}

/// Returns the rank of an array; `None` if there is no rank to compare with.
fn rank(shape: &Shape) -> Option<usize> {
    shape.as_array().map(ArrayShape::rank)
}

fn judge_all<'a>(leaves: impl Iterator<Item = (&'a LeafSharding, Option<usize>)>) -> Verdict {
    let mut leaves = leaves;
    leaves.try_for_each(|(leaf, rank)| judge_leaf(leaf, rank))
}

fn judge_leaf(leaf: &LeafSharding, rank: Option<usize>) -> Verdict {
    match &leaf.placement {
        Placement::Replicated | Placement::Manual | Placement::Unknown | Placement::Unreduced => {
            Ok(())
        }
        Placement::Maximal(device) if *device >= 0 => Ok(()),
        Placement::Maximal(device) => {
            let message =
                format!("the sharding names device {device}; devices are numbered from 0");
            Err((super::SHARDING, message))
        }
        Placement::Tiled(tiling) => judge_tiling(tiling, rank),
        Placement::Named(named) => judge_named(named, rank),
    }
}

fn judge_tiling(tiling: &Tiling, rank: Option<usize>) -> Verdict {
    let wrong = |message| Err((super::SHARDING, message));
    if let Some(size) = tiling.dims.iter().find(|&&size| size < 1) {
        return wrong(format!("the sharding cuts a dim into {size} parts; it takes 1 or more"));
    }
    let problem = match &tiling.devices {
        TileDevices::List(ids) => unlike_ids(ids.iter()),
        TileDevices::Iota(devices) => wrong_iota(devices),
    };
    if let Some(problem) = problem {
        return wrong(format!("the sharding {problem}"));
    }
    let count = match &tiling.devices {
        TileDevices::List(ids) => i64::try_from(ids.len()).ok(),
        TileDevices::Iota(devices) => devices.count(),
    };
    let tiles = tiling.dims.iter().try_fold(1i64, |tiles, &size| tiles.checked_mul(size));
    if tiles.is_none() || tiles != count {
        let tiles = tiles.map_or_else(|| "too many".to_owned(), |tiles| tiles.to_string());
        let count = count.unwrap_or(0);
        return wrong(format!("the sharding makes {tiles} tiles, but names {count} devices"));
    }
    let Some(cut) = tiling.dims.len().checked_sub(tiling.subgroups.len()) else {
        return wrong("the sharding has more subgroups than dims".into());
    };
    judge_rank(cut, rank)
}

fn judge_named(named: &NamedSharding, rank: Option<usize>) -> Verdict {
    judge_mesh(&named.mesh)?;
    let of_dims = named.dims.iter().flat_map(|dim| &dim.axes);
    let others = [&named.replicated, &named.unreduced, &named.manual];
    judge_axes(&named.mesh, of_dims.chain(others.into_iter().flatten()))?;
    // `{mesh['x'=2], replicated}` has no entries for single dims.
    if named.dims.is_empty() { Ok(()) } else { judge_rank(named.dims.len(), rank) }
}

fn judge_rank(cut: usize, rank: Option<usize>) -> Verdict {
    match rank {
        Some(rank) if rank != cut => {
            let message = format!("the sharding cuts {cut} dims, but the array has {rank}");
            Err((super::SHARDING, message))
        }
        Some(_) | None => Ok(()),
    }
}

fn judge_replication(module: &Module, id: InstId, given: usize) -> Verdict {
    let wrong = |message| Err((super::REPLICATION, message));
    if !matches!(module.op(id), Op::Parameter(_)) {
        let opcode = module.opcode(id);
        return wrong(format!("parameter_replication is of parameters, not of `{opcode}`"));
    }
    let leaves = module.shape(id).leaves().len();
    if given == leaves {
        return Ok(());
    }
    wrong(format!(
        "parameter_replication has {given} values, but the parameter {leaves} arrays; write one \
         for each"
    ))
}
