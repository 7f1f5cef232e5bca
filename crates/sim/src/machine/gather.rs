//! Gathers from vector memory, and their costs.
//!
//! The vectors with the elements are loaded, each once. On a machine that aligns to tiles,
//! elements that stay in their row and lane are then in place. A row that moves to one row as a
//! whole is moved by itself; rows that go to several rows are turned, as many elements at a
//! time as there are lanes; rows that receive the same elements are filled at once. Elements
//! that move equally far within one vector move at once, in all of its rows. On a linear
//! memory, only runs of elements that stay side by side are loaded.

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::{Data, ElementType, Literal};
use tilewright_lower::kernel::{Bound, BufferAddress};
use tilewright_target::{Alignment, Target};

use super::{KernelRun, vectors_of};
use crate::clock::Unit;
use crate::vector::{is_under, splat};
use crate::violation::Fault;

impl KernelRun<'_> {
    pub(super) fn gather(
        &mut self,
        from: &BufferAddress,
        mask: &[Bound],
        otherwise: Option<&Literal>,
        element_type: ElementType,
        len: usize,
    ) -> Result<Data, Fault> {
        let bounds = self.bounds(mask)?;
        let positions = (0..len).filter(|&position| is_under(&bounds, position));
        let pairs = positions.map(|position| Ok((position, self.address(from, position)?)));
        let pairs: Vec<(usize, usize)> = pairs.collect::<Result<_, Fault>>()?;
        let fill = match otherwise.and_then(Literal::as_array) {
            Some(fill) => splat(fill.data(), 0, len),
            None => Data::zeros(element_type, len),
        };
        let data = self.picked(from, &pairs, fill)?;
        self.gathered(&pairs, element_type, len);
        Ok(data)
    }

    fn address(&self, from: &BufferAddress, position: usize) -> Result<usize, Fault> {
        let position = i64::try_from(position).map_err(|_| Fault::Overflow)?;
        let index =
            |index: tilewright_lower::kernel::IndexId| self.indices.get(index.0).copied().flatten();
        let address = from.at.value_at(Some(position), &index).ok_or(Fault::Overflow)?;
        let buffer = self.buffer(from.buffer)?;
        let place = usize::try_from(address).ok().filter(|&place| (place as u64) < buffer.len);
        place.ok_or_else(|| self.out_of_bounds(buffer, address))
    }

    /// Counts the work of a gather.
    fn gathered(&mut self, pairs: &[(usize, usize)], element_type: ElementType, len: usize) {
        let target = self.machine.target;
        let moves = match target.alignment {
            Alignment::Tiles => by_rows(pairs, target, element_type),
            Alignment::None => by_runs(pairs),
        };
        let slots = f64::from(target.load_slots.max(1));
        self.clock.work(Unit::Load, moves.loads, 1.0 / slots);
        if moves.moves > 0 {
            self.clock.work(Unit::Lanes, moves.moves, target.lane_move_cycles);
            self.clock.realigned(vectors_of(target, element_type, len));
        }
    }
}

/// The work of a gather.
#[derive(Debug, PartialEq, Eq)]
struct Moves {
    /// Vectors that are loaded.
    loads: u64,
    /// Number of row moves, or equivalent work.
    moves: u64,
}

/// Positions with the addresses of their elements, in vectors of rows of lanes.
fn by_rows(pairs: &[(usize, usize)], target: &Target, element_type: ElementType) -> Moves {
    let lanes = usize::try_from(target.lanes.max(1)).unwrap_or(usize::MAX);
    let unit = usize::try_from(target.vector_elements(element_type).max(1)).unwrap_or(usize::MAX);
    let mut loads: Vec<usize> = pairs.iter().map(|&(_, address)| address / unit).collect();
    loads.sort_unstable();
    loads.dedup();
    let stays = staying(pairs, lanes, unit);
    let mut rows: Vec<(usize, Vec<(usize, usize)>)> = Vec::new();
    for &(position, address) in pairs.iter().filter(|(_, a)| !stays.contains(&(a / lanes))) {
        let row = position / lanes;
        match rows.last_mut().filter(|(last, _)| *last == row) {
            Some((_, elements)) => elements.push((position % lanes, address)),
            None => rows.push((row, vec![(position % lanes, address)])),
        }
    }
    let mut contents: Vec<Vec<(usize, usize)>> = rows.into_iter().map(|(_, row)| row).collect();
    contents.sort_unstable();
    contents.dedup();
    // For each source row, the number of target rows and of moved elements.
    let mut sources: FxHashMap<usize, (usize, usize)> = FxHashMap::default();
    for row in &contents {
        let mut from: Vec<usize> = row.iter().map(|&(_, address)| address / lanes).collect();
        from.iter().for_each(|&source| sources.entry(source).or_default().1 += 1);
        from.sort_unstable();
        from.dedup();
        from.iter().for_each(|&source| sources.entry(source).or_default().0 += 1);
    }
    let alone = sources.values().filter(|(rows, _)| *rows == 1).count();
    let turned: usize = sources.values().filter(|(rows, _)| *rows > 1).map(|(_, n)| n).sum();
    let by_rows = contents.len().max(alone + turned.div_ceil(lanes));
    // Elements that move by the same distance within one vector move at once.
    let far = |&(p, a): &(usize, usize)| (a / unit, p / unit, (p % unit + unit - a % unit) % unit);
    let distances: FxHashSet<(usize, usize, usize)> =
        pairs.iter().filter(|(_, a)| !stays.contains(&(a / lanes))).map(far).collect();
    Moves { loads: loads.len() as u64, moves: by_rows.min(distances.len()) as u64 }
}

/// Returns the rows whose elements all stay in place, in vectors of `unit` elements.
fn staying(pairs: &[(usize, usize)], lanes: usize, unit: usize) -> FxHashSet<usize> {
    let of = |stays: bool| {
        let pairs = pairs.iter().filter(move |(p, a)| (p % unit == a % unit) == stays);
        pairs.map(|&(_, address)| address / lanes).collect::<FxHashSet<usize>>()
    };
    let (mut stays, moves) = (of(true), of(false));
    stays.retain(|row| !moves.contains(row));
    stays
}

/// Returns the same on a linear memory: one run is a load.
fn by_runs(pairs: &[(usize, usize)]) -> Moves {
    let follows = |pair: &&[(usize, usize)]| match pair {
        [(p, a), (q, b)] => q - p == 1 && (*b == a + 1 || b == a),
        _ => false,
    };
    let breaks = pairs.windows(2).filter(|pair| !follows(pair)).count();
    let runs = if pairs.is_empty() { 0 } else { breaks + 1 };
    Moves { loads: runs as u64, moves: if runs > 1 { runs as u64 } else { 0 } }
}
