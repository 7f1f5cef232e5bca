//! Orders elements so that each stands after those that it needs.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The ids that an element refers to.
pub(super) type Ids = SmallVec<[i64; 4]>;

/// The reason why there is no order.
pub(super) enum OrderError {
    /// Two have this id; the second.
    Twice(usize),
    /// This element needs an id that no element has.
    Unknown(usize, i64),
    /// This one needs itself, be it through others.
    Cycle(usize),
}

/// Returns an order of elements with ids in which each stands after those that it needs.
/// Elements keep their place where possible.
pub(super) fn order(
    count: usize,
    id: impl Fn(usize) -> i64,
    needs: impl Fn(usize) -> Ids,
) -> Result<Vec<usize>, OrderError> {
    let mut by_id = FxHashMap::default();
    for thing in 0..count {
        if by_id.insert(id(thing), thing).is_some() {
            return Err(OrderError::Twice(thing));
        }
    }
    let mut needed = Vec::with_capacity(count);
    for thing in 0..count {
        let find = |id: i64| by_id.get(&id).copied().ok_or(OrderError::Unknown(thing, id));
        let found: Result<SmallVec<[usize; 4]>, _> = needs(thing).into_iter().map(find).collect();
        needed.push(found?);
    }
    depth_first(&needed)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    New,
    Open,
    Done,
}

fn depth_first(needed: &[SmallVec<[usize; 4]>]) -> Result<Vec<usize>, OrderError> {
    let mut marks = vec![Mark::New; needed.len()];
    let mut order = Vec::with_capacity(needed.len());
    // Things being visited, each with how many of its needs were seen to.
    let mut open: Vec<(usize, usize)> = Vec::new();
    for first in 0..needed.len() {
        if marks[first] == Mark::New {
            marks[first] = Mark::Open;
            open.push((first, 0));
        }
        while let Some((thing, seen)) = open.last_mut() {
            let thing = *thing;
            let Some(&next) = needed[thing].get(*seen) else {
                marks[thing] = Mark::Done;
                order.push(thing);
                open.pop();
                continue;
            };
            *seen += 1;
            match marks[next] {
                Mark::New => {
                    marks[next] = Mark::Open;
                    open.push((next, 0));
                }
                Mark::Open => return Err(OrderError::Cycle(next)),
                Mark::Done => {}
            }
        }
    }
    Ok(order)
}
