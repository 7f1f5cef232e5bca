//! Divides a computation into regions.

use rustc_hash::FxHashMap;
use tilewright_ir::{InstId, Verified};

use super::BLOCK;
use super::role::{Role, lanes_of, role};
use crate::eval::fold::FoldShape;

/// Fewer lanes than this are not worth a region.
const LEAST_LANES: usize = 2 * BLOCK;
/// The most instructions of a region.
const MOST_MEMBERS: usize = 64;

/// Parts of a computation's order: single instructions, and regions where the
/// last of their members stands.
pub(crate) enum Piece {
    One(InstId),
    Together(Vec<InstId>),
}

/// Divides instructions in order into regions and others.
///
/// Divides instructions into regions. A reduction of a member may be a member too; all
/// reductions of a region reduce the same dims. A region stays open, for instructions with the
/// same number of lanes, until another instruction needs a value of it: operands of a member
/// stand before the last member, and users of a member stand after it.
pub(crate) fn pieces(module: &Verified, order: &[InstId]) -> Vec<Piece> {
    let mut groups: Vec<Vec<InstId>> = Vec::new();
    let mut fold_of: FxHashMap<usize, FoldShape> = FxHashMap::default();
    let mut open: FxHashMap<usize, usize> = FxHashMap::default();
    let mut group_of: FxHashMap<InstId, usize> = FxHashMap::default();
    for &id in order {
        let fold = FoldShape::of(module, id).filter(|fold| fold.lanes() >= LEAST_LANES);
        let lanes = fold.as_ref().map(FoldShape::lanes).or_else(|| candidate(module, id));
        let mut mine = lanes.and_then(|lanes| open.get(&lanes).copied());
        if mine.is_some_and(|group| groups[group].len() >= MOST_MEMBERS) {
            mine = None;
        }
        let joins = match &fold {
            Some(fold) => folds(module, id, mine, &group_of) && fits(fold, mine, &fold_of),
            None => lanes.is_some() && joins(module, id, mine, &group_of),
        };
        for operand in module.operands(id) {
            let Some(&group) = group_of.get(operand) else { continue };
            let by_lanes = fold.is_some() || reads_lanes(module, id, *operand);
            let stays = joins && mine == Some(group) && by_lanes;
            if !stays {
                open.retain(|_, other| *other != group);
                if mine == Some(group) {
                    mine = None;
                }
            }
        }
        let Some(lanes) = lanes.filter(|_| joins) else { continue };
        let group = mine.unwrap_or_else(|| {
            groups.push(Vec::new());
            groups.len() - 1
        });
        open.insert(lanes, group);
        groups[group].push(id);
        group_of.insert(id, group);
        fold.and_then(|fold| fold_of.insert(group, fold));
    }
    // A region of broadcasts alone gains nothing.
    let computes = |&id: &InstId| matches!(role(module, id), Some(Role::Compute));
    group_of.retain(|_, &mut group| groups[group].iter().any(computes));
    in_order(order, groups, &group_of)
}

fn in_order(
    order: &[InstId],
    mut groups: Vec<Vec<InstId>>,
    group_of: &FxHashMap<InstId, usize>,
) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for &id in order {
        match group_of.get(&id) {
            None => pieces.push(Piece::One(id)),
            Some(&group) if groups[group].last() == Some(&id) => {
                pieces.push(Piece::Together(std::mem::take(&mut groups[group])));
            }
            Some(_) => {}
        }
    }
    pieces
}

/// Returns how many lanes an instruction has, if it is one for a region.
fn candidate(module: &Verified, id: InstId) -> Option<usize> {
    let lanes = lanes_of(module, id).filter(|&lanes| lanes >= LEAST_LANES)?;
    role(module, id).map(|_| lanes)
}

/// Checks whether an instruction joins a region. A reshape, and other ops that only rename
/// lanes, are free by themselves.
fn joins(
    module: &Verified,
    id: InstId,
    mine: Option<usize>,
    group_of: &FxHashMap<InstId, usize>,
) -> bool {
    match role(module, id) {
        Some(Role::Alias) => {
            let operand = module.operands(id).first();
            mine.is_some() && operand.and_then(|o| group_of.get(o).copied()) == mine
        }
        Some(_) => true,
        None => false,
    }
}

/// Checks whether a reduction reads a value that a region computes.
fn folds(
    module: &Verified,
    id: InstId,
    mine: Option<usize>,
    group_of: &FxHashMap<InstId, usize>,
) -> bool {
    let operand = module.operands(id).first();
    mine.is_some() && operand.and_then(|o| group_of.get(o).copied()) == mine
}

/// Checks whether a region has no reduction of other dims.
fn fits(fold: &FoldShape, mine: Option<usize>, fold_of: &FxHashMap<usize, FoldShape>) -> bool {
    mine.and_then(|group| fold_of.get(&group)).is_none_or(|other| other == fold)
}

/// Checks whether an instruction of a region takes its operand lane by lane.
fn reads_lanes(module: &Verified, id: InstId, operand: InstId) -> bool {
    lanes_of(module, id) == lanes_of(module, operand)
}
