//! The movement of elements in reshapes and transposes.

use smallvec::{SmallVec, smallvec};
use tilewright_ir::shape::ArrayShape;

use crate::footprint::{element_bits, has_no_elements};
use crate::physical::{Physical, lows};
use crate::target::{Alignment, Target};

/// The kind of movement of an array's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MoveKind {
    /// Nothing moves, in any layout: it is only another name for the array.
    Free,
    /// Nothing moves inside vectors, given the layouts on both sides: those
    /// are pinned, which costs [`Target::reshape_pin_cycles`] per vector.
    KeepsTiles,
    /// Elements change places inside vectors.
    Realigns,
}

/// The cost of a reshape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReshapeCost {
    /// Vectors to take apart and put together: those of the operand or of the result, whichever
    /// are more, because the rows of every vector of the wider side are moved one by one while
    /// the narrower side streams past. It is 0 unless elements realign.
    pub realigned_vectors: u64,
    /// The kind of movement.
    pub kind: MoveKind,
}

/// The cost of a transpose; see [`ReshapeCost`].
pub type TransposeCost = ReshapeCost;

impl Target {
    /// Returns the cost of a reshape from one array to the other.
    ///
    /// On a linear memory: nothing. Where arrays are aligned to tiles:
    /// - [`MoveKind::KeepsTiles`] if every element has the same address before and after. This
    ///   is the case if only major dims are regrouped, if the second-minor dim is split or
    ///   merged at multiples of the tile's rows, if there is only one tile across and rows
    ///   follow each other, and if a layout puts the split dim away from the lanes.
    /// - [`MoveKind::Free`] if, in addition, the dims are the same except for those of size 1,
    ///   which fit every layout.
    /// - [`MoveKind::Realigns`] otherwise, also where the shapes disagree or
    ///   are too large to tell.
    pub fn reshape_cost(&self, from: &ArrayShape, to: &ArrayShape) -> ReshapeCost {
        let nothing = has_no_elements(from) && has_no_elements(to);
        if self.alignment == Alignment::None || nothing || same(from, to) {
            return self.cost(MoveKind::Free, from, to);
        }
        let address = |shape| Physical::of(self, shape).address();
        let stays = same_elements(from, to) && known_equal(&address(from), &address(to));
        let kind = match stays {
            true if large_dims(from).eq(large_dims(to)) => MoveKind::Free,
            true => MoveKind::KeepsTiles,
            false => MoveKind::Realigns,
        };
        self.cost(kind, from, to)
    }

    /// Returns the cost of a transpose. Dim `i` of the result is dim `permutation[i]` of the
    /// operand.
    ///
    /// - [`MoveKind::Free`] if every element keeps its address, and either
    ///   memory is linear or only dims of size 1 change places.
    /// - [`MoveKind::KeepsTiles`] on a memory aligned to tiles if the same dims lie across rows
    ///   and lanes before and after, so that at most whole tiles move; on a linear memory if
    ///   the same dim is minor-most, so that whole runs of it move.
    /// - [`MoveKind::Realigns`] otherwise.
    pub fn transpose_cost(
        &self,
        from: &ArrayShape,
        to: &ArrayShape,
        permutation: &[i64],
    ) -> TransposeCost {
        if has_no_elements(from) && has_no_elements(to) {
            return self.cost(MoveKind::Free, from, to);
        }
        let kind = match self.permuted(from, to, permutation) {
            Some((before, after)) => {
                let large = permutation.iter().filter(|&&dim| from.dims()[index(dim)] != 1);
                self.transpose_kind(&before, &after, large.is_sorted())
            }
            None => MoveKind::Realigns,
        };
        self.cost(kind, from, to)
    }

    fn transpose_kind(&self, before: &Physical, after: &Physical, in_order: bool) -> MoveKind {
        let linear = self.alignment == Alignment::None;
        if known_equal(&before.address(), &after.address()) {
            return if linear || in_order { MoveKind::Free } else { MoveKind::KeepsTiles };
        }
        let keeps = match self.alignment {
            Alignment::None => known_equal(&before.minor(), &after.minor()),
            Alignment::Tiles => {
                before.tiles == after.tiles && known_equal(&before.inside(), &after.inside())
            }
        };
        if keeps { MoveKind::KeepsTiles } else { MoveKind::Realigns }
    }

    /// Operand and result of a transpose, both in terms of the operand's dims.
    fn permuted(
        &self,
        from: &ArrayShape,
        to: &ArrayShape,
        permutation: &[i64],
    ) -> Option<(Physical, Physical)> {
        let lows = lows(from.dims());
        let mut permuted: SmallVec<[u64; 6]> = SmallVec::new();
        let mut seen: SmallVec<[bool; 6]> = smallvec![false; from.rank()];
        for (i, &dim) in permutation.iter().enumerate() {
            let dim = index(dim);
            let twice = std::mem::replace(seen.get_mut(dim)?, true);
            if twice || to.dims().get(i)? != &from.dims()[dim] {
                return None;
            }
            permuted.push(lows[dim]);
        }
        if from.rank() != permuted.len() || to.rank() != permuted.len() || !same_elements(from, to)
        {
            return None;
        }
        let before = Physical::of(self, from);
        let after = Physical::with_lows(self, to, &permuted);
        Some((before, after))
    }

    fn cost(&self, kind: MoveKind, from: &ArrayShape, to: &ArrayShape) -> ReshapeCost {
        let realigned_vectors = match kind {
            MoveKind::Free | MoveKind::KeepsTiles => 0,
            MoveKind::Realigns => self.footprint(from).vectors.max(self.footprint(to).vectors),
        };
        ReshapeCost { realigned_vectors, kind }
    }
}

/// Checks whether dims and layouts are equal, so that nothing moves.
fn same(from: &ArrayShape, to: &ArrayShape) -> bool {
    let layouts = from.layout == to.layout || from.layout_or_default() == to.layout_or_default();
    from.compatible(to) && layouts
}

/// Checks whether both hold the same number of elements, stored in the same way.
fn same_elements(from: &ArrayShape, to: &ArrayShape) -> bool {
    let counts = (from.num_elements(), to.num_elements());
    from.element_type == to.element_type
        && element_bits(from) == element_bits(to)
        && matches!(counts, (Some(a), Some(b)) if a == b)
}

/// Checks whether both are known and equal.
fn known_equal<T: PartialEq>(a: &Option<T>, b: &Option<T>) -> bool {
    a.is_some() && a == b
}

/// Returns a dim number as an index; past every end if it is negative.
fn index(dim: i64) -> usize {
    usize::try_from(dim).unwrap_or(usize::MAX)
}

fn large_dims(shape: &ArrayShape) -> impl Iterator<Item = i64> {
    shape.dims().iter().copied().filter(|&dim| dim != 1)
}
