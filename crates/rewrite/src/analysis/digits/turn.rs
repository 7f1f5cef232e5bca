//! Plans to write a transpose to the output dims of a reshape in its input dims.

use std::ops::Range;

use tilewright_ir::types::shape::Dims;

use super::{Digit, Digits};

/// A plan to write a transpose on the other side of a reshape.
///
/// Law: the tensor `T` with `reshape(T) = transpose(Y, order)` is
/// `transpose(reshape(Y, reshape_to), order)`, with the plan's own order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransposePlan {
    /// The dims to reshape Y to: the input dims in the order that they have in Y.
    pub reshape_to: Dims,
    /// For each input dim, its index in `reshape_to`.
    pub order: Vec<usize>,
}

impl TransposePlan {
    /// Checks whether the transpose changes nothing.
    pub fn transpose_is_trivial(&self) -> bool {
        self.order.iter().copied().eq(0..self.order.len())
    }
}

impl Digits {
    /// Plans to write a transpose, whose result's dim `i` is the operand's dim `order[i]`, on
    /// the input side; see [`TransposePlan`] for the law. Returns `None` if the transpose
    /// separates dims that the reshape splits or merges, or `order` is no permutation.
    ///
    /// Between two ends that both sides of the reshape share lie a *group* of input dims and one of
    /// output dims with the same elements. The transpose has to move such groups whole.
    pub fn transpose_through(&self, order: &[usize]) -> Option<TransposePlan> {
        let mut in_operand = vec![None; self.to.dims.len()];
        if order.len() != in_operand.len() {
            return None;
        }
        for (dim, &place) in order.iter().enumerate() {
            if in_operand.get_mut(place)?.replace(dim).is_some() {
                return None;
            }
        }
        // The output dims of more than one element, in the order of the operand.
        let mut dims = in_operand.into_iter().flatten().filter(|&dim| self.to.dims[dim] > 1);
        let groups = self.groups();
        let mut from_dims: Vec<usize> =
            (0..self.from.dims.len()).filter(|&dim| self.from.dims[dim] == 1).collect();
        while let Some(first) = dims.next() {
            let (from, to) = groups.iter().find(|(_, to)| to.start == first)?;
            let mut rest = to.clone().skip(1).filter(|&dim| self.to.dims[dim] > 1);
            if !rest.all(|dim| dims.next() == Some(dim)) {
                return None;
            }
            from_dims.extend(from.clone().filter(|&dim| self.from.dims[dim] > 1));
        }
        let mut order = vec![0; from_dims.len()];
        for (place, &dim) in from_dims.iter().enumerate() {
            order[dim] = place;
        }
        Some(TransposePlan { reshape_to: self.from.sizes(&from_dims), order })
    }

    /// Returns the input and output dims of each group; each range begins and ends with a dim
    /// of more than one element.
    fn groups(&self) -> Vec<(Range<usize>, Range<usize>)> {
        let mut groups: Vec<(Range<usize>, Range<usize>)> = Vec::new();
        for Digit { from, to, .. } in &self.digits {
            match groups.last_mut() {
                // A digit that shares a dim with the previous one belongs to its group.
                Some((from_dims, to_dims))
                    if from.start < from_dims.end || to.start < to_dims.end =>
                {
                    (from_dims.end, to_dims.end) = (from.end, to.end);
                }
                _ => groups.push((from.clone(), to.clone())),
            }
        }
        groups
    }
}
