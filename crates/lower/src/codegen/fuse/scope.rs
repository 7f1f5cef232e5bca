//! The scope of a computed value: the loops around it and the positions in a vector.
//!
//! During the lookup of values, the index along each dim is a variable ([`DimId`]) that stays
//! below the size of the dim, because a mask covers every other position. Only then is the
//! variable expressed by loops and positions.

use std::ops::RangeInclusive;

use rustc_hash::FxHashMap;

use crate::codegen::reduce::blocks::{Blocks, Loop, signed};
use crate::codegen::reduce::walk::VectorWalk;
use crate::error::{LowerError, TooLarge};
use crate::kernel::{Bound, Expr, IndexId, Mask};

/// The index along a dim: first the dims of the array, then the dims that are reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct DimId(usize);

/// A number that depends on the indices along dims.
pub(super) type DimExpr = Expr<DimId>;

impl From<DimId> for DimExpr {
    fn from(dim: DimId) -> Self {
        Self::Index(dim)
    }
}

/// The loops around a statement, and the dims that lie in a vector.
#[derive(Clone, Debug)]
pub(super) struct Scope {
    /// The array whose vectors are computed.
    pub(super) walk: VectorWalk,
    /// The size of each dim: first those of the array, then those of the loops over reduced
    /// dims.
    sizes: Vec<u64>,
    /// For each dim, the index of the first element of a vector.
    firsts: Vec<Expr>,
    /// The index along each dim.
    indices: Vec<Expr>,
    /// The loops around statements, outermost first.
    loops: Vec<IndexId>,
    /// The greatest index of each loop.
    last: FxHashMap<IndexId, i64>,
    /// The loops over blocks, each with its number of steps.
    pub(super) grid: Vec<(IndexId, i64)>,
}

impl Scope {
    /// The scope inside the given loops, which walk along an array.
    pub(super) fn of(
        walk: &VectorWalk,
        grid: &[Loop],
        within: &[&Loop],
    ) -> Result<Self, LowerError> {
        let mut scope = Self {
            walk: walk.clone(),
            sizes: walk.dims.clone(),
            firsts: Vec::new(),
            indices: Vec::new(),
            loops: within.iter().map(|l| l.index).collect(),
            last: FxHashMap::default(),
            grid: Vec::new(),
        };
        for l in grid.iter().chain(within.iter().copied()) {
            scope.last.insert(l.index, signed(l.outer.count)?.saturating_sub(1));
        }
        for l in grid {
            scope.grid.push((l.index, signed(l.outer.count)?));
        }
        for dim in 0..walk.dims.len() {
            let first = Blocks::index(grid.iter().chain(within.iter().copied()), dim)?;
            let mut index = first.clone();
            for inner in walk.inner_of(dim) {
                let digit = inner.digit.expr().ok_or(TooLarge::Elements)?;
                index = index + digit * signed(inner.unit)?;
            }
            scope.firsts.push(first);
            scope.indices.push(index);
        }
        Ok(scope)
    }

    /// Adds a dim that the array does not have, with the loops over its elements.
    pub(super) fn push_dim(&mut self, size: u64, loops: &[&Loop]) -> Result<(), LowerError> {
        let dim = self.sizes.len();
        let index = Blocks::index(loops.iter().copied(), dim)?;
        for l in loops {
            self.loops.push(l.index);
            self.last.insert(l.index, signed(l.outer.count)?.saturating_sub(1));
        }
        self.sizes.push(size);
        self.firsts.push(index.clone());
        self.indices.push(index);
        Ok(())
    }

    /// Returns the number of loops around statements.
    pub(super) fn depth(&self) -> usize {
        self.loops.len()
    }

    /// Returns the index along a dim as a variable; 0 if the dim has size 1.
    pub(super) fn dim(&self, dim: usize) -> DimExpr {
        match self.sizes.get(dim) {
            Some(1) | None => Expr::ZERO,
            Some(_) => DimId(dim).into(),
        }
    }

    /// Returns the indices along all dims of the array.
    pub(super) fn dims(&self) -> Vec<DimExpr> {
        (0..self.walk.dims.len()).map(|dim| self.dim(dim)).collect()
    }

    /// Simplifies an expression of variables.
    pub(super) fn simple(&self, expr: DimExpr) -> DimExpr {
        expr.simplified(None, &|DimId(dim)| {
            let size = self.sizes.get(dim)?;
            Some(0..=i64::try_from(size.saturating_sub(1)).ok()?)
        })
    }

    /// Replaces variables by loops and positions.
    pub(super) fn placed(&self, expr: &DimExpr) -> Expr {
        let index = |DimId(dim)| self.indices.get(dim).cloned().unwrap_or(Expr::ZERO);
        let placed = expr.with(&index);
        self.simple_placed(placed)
    }

    /// Simplifies an expression of loops and positions.
    pub(super) fn simple_placed(&self, expr: Expr) -> Expr {
        expr.simplified(self.positions(), &|index| self.range(index))
    }

    pub(super) fn positions(&self) -> Option<RangeInclusive<i64>> {
        Some(0..=i64::try_from(self.walk.vector).ok()?.saturating_sub(1))
    }

    pub(super) fn range(&self, index: IndexId) -> Option<RangeInclusive<i64>> {
        self.last.get(&index).map(|&last| 0..=last)
    }

    /// Checks whether a loop runs inside a block.
    pub(super) fn is_local(&self, index: IndexId) -> bool {
        self.loops.contains(&index)
    }

    /// Returns the number of outer loops after which an expression is known.
    pub(super) fn level(&self, expr: &Expr) -> usize {
        let place = |index: IndexId| self.loops.iter().position(|&l| l == index);
        expr.indices().into_iter().filter_map(place).map(|place| place + 1).max().unwrap_or(0)
    }

    /// Returns the mask of the positions that are not padding along the dims that these indices
    /// depend on.
    pub(super) fn mask(&self, index: &[DimExpr]) -> Result<Mask, LowerError> {
        let named: Vec<DimId> = index.iter().flat_map(Expr::indices).collect();
        let depends = |dim: Option<usize>| dim.is_none_or(|dim| named.contains(&DimId(dim)));
        let partial = self.walk.inner.iter().filter(|inner| self.walk.is_partial(inner));
        let bounds = partial.filter(|inner| depends(inner.dim));
        let bound = |inner| -> Result<Bound, LowerError> {
            let first = |dim: usize| Ok(self.firsts.get(dim).cloned().unwrap_or(Expr::ZERO));
            self.walk.bound(inner, &first)
        };
        bounds.map(bound).collect()
    }

    /// Returns the mask of all positions that are not padding.
    pub(super) fn whole_mask(&self) -> Result<Mask, LowerError> {
        let index: Vec<DimExpr> = (0..self.sizes.len()).map(|dim| DimId(dim).into()).collect();
        self.mask(&index)
    }
}
