//! Loads elements from memory: as a vector if they lie in the wanted order, otherwise with a
//! gather.
//!
//! A block needs only a part of an array in main memory. This *region* is copied with the block:
//! along each loop over the array's vectors it is a range that begins at the first vector that
//! the block needs.

use tilewright_ir::{ElementType, InstId, Literal};
use tilewright_target::Alignment;

use super::array;
use super::emit::{Emitter, Home};
use super::scope::{DimExpr, Scope};
use crate::codegen::reduce::blocks::signed;
use crate::codegen::reduce::state::zero;
use crate::codegen::reduce::walk::{Inner, VectorWalk};
use crate::error::{LowerError, TooLarge};
use crate::kernel::build::Build;
use crate::kernel::{
    Block, Bound, BufferAddress, BufferId, Expr, IndexId, Mask, RegisterId, Space, Value,
};

/// Largest number of grid steps that are enumerated to find the largest region.
const MOST_STEPS: i64 = 1 << 16;

/// The part of an array that is copied with every block.
#[derive(Clone, Debug)]
pub(super) struct CopiedRegion {
    input: BufferId,
    /// For each loop over the array's vectors, the source index.
    outer: Vec<Expr>,
    /// Elements of a vector of the array.
    vector: u64,
    /// For each loop, the index at which the region begins.
    starts: Vec<Expr>,
    /// For each loop, the elements of vector memory between its steps.
    strides: Vec<i64>,
    pub(super) block: Block,
    /// Largest number of bytes of a region.
    pub(super) bytes: u64,
}

impl Emitter<'_> {
    /// Returns a register with elements of an array in memory. Positions that are padding hold
    /// `padding`, or an unspecified value for `None`.
    pub(super) fn load(
        &mut self,
        build: &mut Build,
        (id, home): (InstId, Home),
        index: &[DimExpr],
        padding: Option<&Literal>,
    ) -> Result<RegisterId, LowerError> {
        let shape = array(self.module, id)?;
        let element_type = self.element_type(id)?;
        let mask = self.scope.mask(index)?;
        let padding = match padding {
            Some(padding) => padding.clone(),
            None => zero(element_type)?,
        };
        let otherwise = |mask: &Mask| (!mask.is_empty()).then(|| padding.clone());
        let aligned = self.target.alignment == Alignment::Tiles;
        let vector = self.scope.walk.vector;
        if aligned && vector.is_multiple_of(self.target.vector_elements(element_type)) {
            let walk = VectorWalk::of(self.target, shape, vector);
            if let Ok(walk) = walk
                && let Some((outer, mask)) = self.as_it_lies(&walk, index, &mask)?
            {
                let otherwise = otherwise(&mask);
                let from = self.base(build, home, element_type, &walk, &outer)?;
                let level = self.level(&from.at, &mask);
                let value = Value::Load { from, mask, otherwise };
                return Ok(self.set_at(build, self.module.name_of(id), element_type, value, level));
            }
        }
        let unit = if aligned { self.target.vector_elements(element_type) } else { 1 };
        let walk = VectorWalk::of(self.target, shape, unit)
            .or_else(|_| VectorWalk::in_vectors(self.target, shape))?;
        let (outer, inner) = self.placed(&walk, index)?;
        let BufferAddress { buffer, mut at } =
            self.base(build, home, element_type, &walk, &outer)?;
        for (digit, along) in walk.inner.iter().zip(inner) {
            at = at + along * signed(digit.digit.stride)?;
        }
        let at = self.scope.simple_placed(at);
        let level = self.level(&at, &mask);
        self.gathers.push(at.clone());
        let otherwise = otherwise(&mask);
        let value = Value::Gather { from: BufferAddress { buffer, at }, mask, otherwise };
        Ok(self.set_at(build, self.module.name_of(id), element_type, value, level))
    }

    fn level(&self, at: &Expr, mask: &[Bound]) -> usize {
        let bounds = mask.iter().flat_map(|bound| [&bound.from, &bound.to]);
        bounds.chain([at]).map(|expr| self.scope.level(expr)).max().unwrap_or(0)
    }

    /// Returns the index expressed by loops and positions.
    fn placed(
        &self,
        walk: &VectorWalk,
        index: &[DimExpr],
    ) -> Result<(Vec<Expr>, Vec<Expr>), LowerError> {
        let (outer, inner) = walk.address(index)?;
        let placed = |parts: Vec<DimExpr>| -> Vec<Expr> {
            parts.into_iter().map(|e| self.scope.placed(&self.scope.simple(e))).collect()
        };
        Ok((placed(outer), placed(inner)))
    }

    /// Returns the address and the mask of a vector load, if every position reads its element
    /// from the same position in memory. Positions that are padding on both sides are not read.
    fn as_it_lies(
        &self,
        walk: &VectorWalk,
        index: &[DimExpr],
        mask: &Mask,
    ) -> Result<Option<(Vec<Expr>, Mask)>, LowerError> {
        let (outer, inner) = self.placed(walk, index)?;
        if outer.iter().any(Expr::has_position) {
            return Ok(None);
        }
        let mut mask = mask.clone();
        for (digit, along) in walk.inner.iter().zip(&inner) {
            let here = digit.digit.expr().map(|expr| self.scope.simple_placed(expr));
            if here.as_ref() == Some(along) {
                continue;
            }
            let single = |own: &Inner| own.digit == digit.digit && own.count == 1;
            let alone = digit.count == 1 && *along == Expr::ZERO;
            if !alone || !self.scope.walk.inner.iter().any(single) {
                return Ok(None);
            }
            if mask.iter().all(|bound| bound.digit != digit.digit) {
                let (from, to) = (Expr::ZERO, Expr::Constant(1));
                mask.push(Bound { digit: digit.digit, from, to });
            }
        }
        Ok(Some((outer, mask)))
    }

    /// Returns the address in vector memory at which a vector begins.
    fn base(
        &mut self,
        build: &mut Build,
        home: Home,
        element_type: ElementType,
        walk: &VectorWalk,
        outer: &[Expr],
    ) -> Result<BufferAddress, LowerError> {
        let mut at = Expr::ZERO;
        let buffer = match home {
            Home::Resident(buffer) => {
                for (along, step) in outer.iter().zip(&walk.outer) {
                    at = at + along.clone() * signed(step.stride)?;
                }
                buffer
            }
            Home::Main(input) => {
                let region = self.region(build, input, element_type, walk, outer)?;
                let parts = outer.iter().zip(&region.starts).zip(&region.strides);
                for ((along, begin), &stride) in parts {
                    at = at + (along.clone() + begin.clone() * -1) * stride;
                }
                region.block.to.buffer
            }
        };
        Ok(BufferAddress { buffer, at: self.scope.simple_placed(at) })
    }

    fn region(
        &mut self,
        build: &mut Build,
        input: BufferId,
        element_type: ElementType,
        walk: &VectorWalk,
        outer: &[Expr],
    ) -> Result<CopiedRegion, LowerError> {
        let same = |region: &&CopiedRegion| {
            region.input == input && region.vector == walk.vector && region.outer == outer
        };
        if let Some(region) = self.regions.iter().find(same) {
            return Ok(region.clone());
        }
        let region = made(&self.scope, build, input, element_type, walk, outer)?;
        self.regions.push(region.clone());
        Ok(region)
    }
}

fn made(
    scope: &Scope,
    build: &mut Build,
    input: BufferId,
    element_type: ElementType,
    walk: &VectorWalk,
    outer: &[Expr],
) -> Result<CopiedRegion, LowerError> {
    let (mut starts, mut counts) = (Vec::new(), Vec::new());
    for (along, step) in outer.iter().zip(&walk.outer) {
        let all = signed(step.count)?;
        let (from, to) = bounds(scope, along, all.saturating_sub(1))?;
        let most = widest(scope, &from, &to).min(all);
        let left = Expr::from(all) + from.clone() * -1;
        let count = scope.simple_placed(Expr::from(most).least(left));
        starts.push(from);
        counts.push((most, count));
    }
    // Copy runs of memory that are as long as possible, inside loops over the runs.
    let unit = signed(walk.vector.min(walk.len))?;
    let mut len = Expr::from(unit);
    let mut reach = Some(walk.vector);
    let mut stride = unit;
    let mut strides = vec![0; outer.len()];
    let (mut to, mut from) = (Expr::ZERO, Expr::ZERO);
    let mut each: Vec<(IndexId, Expr)> = Vec::new();
    for (place, step) in walk.outer.iter().enumerate().rev() {
        let (most, count) = &counts[place];
        strides[place] = stride;
        from = from + starts[place].clone() * signed(step.stride)?;
        if reach == Some(step.stride) {
            len = count.clone() * signed(step.stride)?;
            let whole = *count == Expr::from(signed(step.count)?);
            reach = step.stride.checked_mul(step.count).filter(|_| whole);
        } else if *count != Expr::from(1) {
            reach = None;
            let index = build.index(&format!("r{}", step.dim));
            to = to + Expr::from(index) * stride;
            from = from + Expr::from(index) * signed(step.stride)?;
            each.push((index, count.clone()));
        } else {
            reach = None;
        }
        stride = stride.checked_mul(*most).ok_or(TooLarge::Elements)?;
    }
    each.reverse();
    // On a linear memory the last vector of an array can be partial.
    let len = if walk.len < walk.vector { signed(walk.len)?.into() } else { len };
    let space = if scope.grid.is_empty() { Space::Vmem } else { Space::VmemTwice };
    let elements = u64::try_from(stride).map_err(|_| TooLarge::Elements)?;
    let buffer = build.buffer("xs", space, element_type, elements);
    let from = scope.simple_placed(from);
    let block = Block {
        to: BufferAddress { buffer, at: to },
        from: BufferAddress { buffer: input, at: from },
        len,
        each,
    };
    let bytes = elements.saturating_mul(element_type.bytes().into());
    let (outer, vector) = (outer.to_vec(), walk.vector);
    Ok(CopiedRegion { input, outer, vector, starts, strides, block, bytes })
}

/// Returns the bounds of an expression inside a block, expressed by the loops over blocks.
fn bounds(scope: &Scope, expr: &Expr, last: i64) -> Result<(Expr, Expr), LowerError> {
    let both = |of: &Expr| bounds_of(scope, of);
    let (from, to) = both(expr).ok_or(TooLarge::Elements)?;
    // Elements outside the mask may have addresses before the start of the array or, in a block
    // of padding alone, after its end.
    let from = ((from * -1).least(Expr::ZERO) * -1).least(last.into());
    Ok((scope.simple_placed(from), scope.simple_placed(to.least(last.into()))))
}

fn bounds_of(scope: &Scope, expr: &Expr) -> Option<(Expr, Expr)> {
    let is_local = |of: &Expr| {
        of.has_position() || of.indices().into_iter().any(|index| scope.is_local(index))
    };
    if !is_local(expr) {
        return Some((expr.clone(), expr.clone()));
    }
    Some(match expr {
        Expr::Constant(_) => (expr.clone(), expr.clone()),
        Expr::Position => (Expr::ZERO, Expr::from(*scope.positions()?.end())),
        Expr::Index(index) => (Expr::ZERO, Expr::from(*scope.range(*index)?.end())),
        Expr::Sum(both) => {
            let (a, b) = (bounds_of(scope, &both[0])?, bounds_of(scope, &both[1])?);
            (a.0 + b.0, a.1 + b.1)
        }
        Expr::Times(of, by) => {
            let (from, to) = bounds_of(scope, of)?;
            if *by < 0 { (to * *by, from * *by) } else { (from * *by, to * *by) }
        }
        Expr::Over(of, by) => {
            let (from, to) = bounds_of(scope, of)?;
            (from.quotient(*by), to.quotient(*by))
        }
        Expr::Modulo(_, by) => (Expr::ZERO, Expr::from(by.saturating_sub(1))),
        Expr::Least(both) => {
            let (a, b) = (bounds_of(scope, &both[0])?, bounds_of(scope, &both[1])?);
            (a.0.least(b.0), a.1.least(b.1))
        }
    })
}

/// Returns the largest number of values between two bounds over all blocks.
fn widest(scope: &Scope, from: &Expr, to: &Expr) -> i64 {
    let named: Vec<IndexId> = from.indices().into_iter().chain(to.indices()).collect();
    let loops: Vec<(IndexId, i64)> =
        scope.grid.iter().filter(|(index, _)| named.contains(index)).copied().collect();
    let steps = loops.iter().try_fold(1i64, |steps, &(_, n)| steps.checked_mul(n));
    let width = |at: &dyn Fn(IndexId) -> Option<i64>| {
        let (from, to) = (from.value(&at)?, to.value(&at)?);
        to.checked_sub(from)?.checked_add(1)
    };
    match steps {
        Some(steps) if steps <= MOST_STEPS => {
            let widths = (0..steps).map(|step| {
                let at = |index: IndexId| {
                    let mut rest = step;
                    for &(of, n) in &loops {
                        if of == index {
                            return Some(rest % n.max(1));
                        }
                        rest /= n.max(1);
                    }
                    None
                };
                width(&at).unwrap_or(i64::MAX)
            });
            widths.max().unwrap_or(1).max(1)
        }
        _ => i64::MAX,
    }
}
