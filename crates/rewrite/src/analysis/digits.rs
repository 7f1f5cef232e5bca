//! The digits of a reshape: which dims it leaves unchanged, splits, merges and mixes.
//!
//! A reshape keeps the row-major index of every element. Each dim is a *range* of that index: dim
//! `d` is `index / low % size`, where `low` is the product of the dims after it. Cut the index at
//! the ends of all ranges of the input and of the output, and consider the cuts between two ends
//! that both sides share. If they all divide each other, each piece between neighbouring cuts is a
//! [`Digit`] of exactly one input and one output dim. If they do not (6 against 4), all dims there
//! form one opaque digit.
//!
//! `[C,H,W] -> [G,K]` with `K = C/G*H*W` has the digits `G, C/G, H, W`: C consists of the first
//! two, K of the last three.
//!
//! T1 and T2 rest on a finer fact about two dims, which also holds inside opaque digits. Call an
//! input dim and an output dim *apart* if the low end of one range is a multiple of the high end of
//! the other. A step along the input dim leaves the index in the output dim unchanged at every
//! element **if and only if** they are apart. A set of output dims (the dims that a reduce keeps,
//! or those of a broadcast's operand) thus splits the input dims into those that are apart from all
//! of them, along which no value changes, and the rest. Dropping the former leaves a smaller
//! reshape of the same kind, which [`Digits::reduce_first`] and [`Digits::broadcast_through`] both
//! compute.

mod cut;
mod side;
mod small;
mod turn;
mod window;

use std::ops::Range;

use tilewright_ir::types::shape::{Dims, checked_product};

use cut::digits_between;
use side::{Side, Unit, matched};
pub use turn::TransposePlan;
pub use window::WindowPlan;

/// A piece of the row-major index that a reshape does not split.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digit {
    /// The number of its values; above 1.
    pub size: i64,
    /// The input dims it belongs to: one, or several if opaque. Dims of size 1 may lie within the
    /// range; they have no digits.
    pub from: Range<usize>,
    /// The output dims it belongs to, likewise.
    pub to: Range<usize>,
}

impl Digit {
    /// Checks whether it is a group of dims that the reshape mixes inseparably: at least two of
    /// each side (the ends within one dim would divide).
    pub fn is_opaque(&self) -> bool {
        self.from.len() > 1
    }
}

/// The digit analysis of one reshape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digits {
    from: Side,
    to: Side,
    digits: Vec<Digit>,
    /// For each output dim, the equal input dim, if there is one.
    unchanged: Vec<Option<usize>>,
}

/// A plan to reduce the input before the reshape.
///
/// Law: `reduce(reshape(X), D) = reduce(reshape(reduce(X, source_dims), reshape_to), remaining)`
/// for an associative and commutative reducer whose init is its identity (or any init, if
/// `remaining` is empty: it is then applied once, as before).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReducePlan {
    /// The input dims to reduce first, ascending: all dims along which the result of the original
    /// reduce does not vary, and size-1 dims that the result lacks.
    pub source_dims: Vec<usize>,
    /// The input dims that remain.
    pub source_result: Dims,
    /// The dims to reshape them to: the dims of the result, and between them the dims still to be
    /// reduced.
    pub reshape_to: Dims,
    /// The dims of `reshape_to` still to be reduced, ascending.
    pub remaining: Vec<usize>,
}

impl ReducePlan {
    /// Checks whether the reshape changes nothing, so that one reduce is left; `remaining` is
    /// then empty.
    pub fn reshape_is_identity(&self) -> bool {
        self.source_result == self.reshape_to
    }
}

/// A plan to write a broadcast to the output dims of a reshape in its input dims.
///
/// Law: the tensor `B` with `reshape(B) = broadcast(Y, dims)` is
/// `broadcast(reshape(broadcast(Y, inner_broadcast_dims), reshape_to), outer_dims)`. The inner
/// broadcast has the dims `inner_dims`, the outer one those of the reshape's input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BroadcastPlan {
    /// The dims of the inner broadcast: those of Y in their order in the output, and between them
    /// the remaining digits of the outer dims.
    pub inner_dims: Dims,
    /// For each dim of Y, its index in `inner_dims`.
    pub inner_broadcast_dims: Vec<usize>,
    /// The sizes of the outer dims.
    pub reshape_to: Dims,
    /// The input dims along which the value varies, and size-1 dims that stand for size-1 dims of
    /// Y; ascending.
    pub outer_dims: Vec<usize>,
}

impl BroadcastPlan {
    /// Checks whether the inner broadcast changes nothing.
    pub fn inner_is_trivial(&self) -> bool {
        self.inner_broadcast_dims.iter().copied().eq(0..self.inner_dims.len())
    }

    /// Checks whether the reshape changes nothing.
    pub fn reshape_is_trivial(&self) -> bool {
        self.inner_dims == self.reshape_to
    }
}

impl Digits {
    /// The digits of the reshape between these dims; `None` unless both have the same positive
    /// number of elements, and an `i64` holds it.
    pub fn of_reshape(from: &[i64], to: &[i64]) -> Option<Self> {
        let elements = checked_product(from).filter(|&elements| elements > 0)?;
        if checked_product(to) != Some(elements) {
            return None;
        }
        let (mut from, mut to) = (Side::new(from)?, Side::new(to)?);
        let digits = digits_between(&from, &to);
        for (i, digit) in digits.iter().enumerate() {
            from.own(i, &digit.from);
            to.own(i, &digit.to);
        }
        let unchanged = unchanged_dims(&from, &to, &digits);
        Some(Self { from, to, digits, unchanged })
    }

    /// Returns the input dims.
    pub fn from_dims(&self) -> &[i64] {
        &self.from.dims
    }

    /// Returns the output dims.
    pub fn to_dims(&self) -> &[i64] {
        &self.to.dims
    }

    /// Returns the digits, major to minor.
    pub fn digits(&self) -> &[Digit] {
        &self.digits
    }

    /// Returns the digits that make up an input dim (or that it shares, if opaque); empty for a
    /// dim of size 1 and for one that does not exist.
    pub fn digits_of_from(&self, dim: usize) -> Range<usize> {
        self.from.digits.get(dim).cloned().unwrap_or_default()
    }

    /// Returns the digits that make up an output dim; see [`Digits::digits_of_from`].
    pub fn digits_of_to(&self, dim: usize) -> Range<usize> {
        self.to.digits.get(dim).cloned().unwrap_or_default()
    }

    /// Returns the input dim that an output dim equals. Dims of size 1 in the same place are
    /// paired in order.
    pub fn from_dim_of_to(&self, dim: usize) -> Option<usize> {
        self.unchanged.get(dim).copied().flatten()
    }

    /// Returns the part of `reduce(reshape(X), reduced_to_dims)` that can be reduced on X; see
    /// [`ReducePlan`] for the law. `None` if no input dim of more than one element can be
    /// reduced first, or a dim number is out of range or repeated.
    ///
    /// The source dims are all the input dims along which the result does not vary: dims the
    /// reshape leaves unchanged (group norm `[B,H,W,C] -> [B,H,W,G,K]` over `{1,2,4}`: H and W),
    /// merges (`[H,W] -> [HW]`), or swallows (`[B,C,H,W] -> [B,G,K]` over `{2}`: H and W inside K),
    /// and opaque groups where the kept dims allow it. An input dim of size 1 is reduced too,
    /// unless the small reshape has a size-1 dim in the same place: so the reshape changes as
    /// little as possible, often nothing. Between two dims of the result, one dim per input dim is
    /// left to reduce (or one dim, if opaque). Planning the plan's own reshape again gives `None`.
    pub fn reduce_first(&self, reduced_to_dims: &[usize]) -> Option<ReducePlan> {
        let reduced = marks(reduced_to_dims, self.to.dims.len())?;
        let kept: Vec<bool> = reduced.iter().map(|reduced| !reduced).collect();
        let small = self.restrict(&kept);
        let stays = marks(&small.from, self.from.dims.len())?;
        let source_dims: Vec<usize> = (0..stays.len()).filter(|&dim| !stays[dim]).collect();
        if source_dims.iter().all(|&dim| self.from.dims[dim] == 1) {
            return None;
        }
        Some(ReducePlan {
            source_dims,
            source_result: self.from.sizes(&small.from),
            reshape_to: small.to_sizes(),
            remaining: (0..small.to.len()).filter(|&i| small.to[i].dim.is_none()).collect(),
        })
    }

    /// Plans to write a broadcast, whose operand's dim `i` lies along output dim
    /// `dims_in_to[i]`, on the input side; see [`BroadcastPlan`] for the law. Returns `None` if
    /// a dim number is out of range or repeated. An iota along one output dim is the broadcast
    /// of a one-dim iota.
    ///
    /// The outer dims are exactly those along which the value varies (for an operand whose elements
    /// all differ). The inner tensor needs them whole, so it is as small as possible, also inside
    /// opaque groups. An input dim of size 1 is among them only if it stands for a size-1 dim of
    /// the operand in the same place. The operand's dims may be in any order; the inner broadcast
    /// permutes them.
    pub fn broadcast_through(&self, dims_in_to: &[usize]) -> Option<BroadcastPlan> {
        let small = self.restrict(&marks(dims_in_to, self.to.dims.len())?);
        let mut place = vec![0; self.to.dims.len()];
        for (i, piece) in small.to.iter().enumerate() {
            if let Some(dim) = piece.dim {
                place[dim] = i;
            }
        }
        Some(BroadcastPlan {
            inner_dims: small.to_sizes(),
            inner_broadcast_dims: dims_in_to.iter().map(|&dim| place[dim]).collect(),
            reshape_to: self.from.sizes(&small.from),
            outer_dims: small.from,
        })
    }
}

/// Returns for each output dim the equal input dim, if there is one.
fn unchanged_dims(from: &Side, to: &Side, digits: &[Digit]) -> Vec<Option<usize>> {
    let mut unchanged = vec![None; to.dims.len()];
    for (i, digit) in digits.iter().enumerate().filter(|(_, digit)| !digit.is_opaque()) {
        let only = i..i + 1;
        let (from_dim, to_dim) = (digit.from.start, digit.to.start);
        if from.digits[from_dim] == only && to.digits[to_dim] == only {
            unchanged[to_dim] = Some(from_dim);
        }
    }
    let (from, to): (Vec<Unit>, Vec<Unit>) = (from.units().collect(), to.units().collect());
    for (from_dim, to_dim) in matched(&from, &to) {
        unchanged[to_dim] = Some(from_dim);
    }
    unchanged
}

/// For each dim of a rank, whether it is listed; `None` if one is out of range or repeated.
fn marks(dims: &[usize], rank: usize) -> Option<Vec<bool>> {
    let mut marked = vec![false; rank];
    for &dim in dims {
        if std::mem::replace(marked.get_mut(dim)?, true) {
            return None;
        }
    }
    Some(marked)
}
