//! Finishes accumulated values: combines them within vectors and with the inits, stores them in
//! the layout of the results, and writes them out.

use super::blocks::{Blocks, Loop, signed};
use super::fused::{Array, Fused, when};
use super::place::{Placement, digit_of};
use super::state::{Registers, Statements, set};
use super::walk::{Inner, Outer};
use super::window::WindowLoop;
use crate::error::{LowerError, internal};
use crate::kernel::build::Build;
use crate::kernel::{BufferAddress, Expr, IndexId, RegisterId, Statement, Value};

impl Loop {
    /// Returns the number of the current step of all these loops together, the last loop
    /// fastest.
    pub(crate) fn number<'a>(loops: impl Iterator<Item = &'a Self>) -> Result<Expr, LowerError> {
        loops.filter(|l| l.outer.count != 1).try_fold(Expr::ZERO, |number, l| {
            Ok(number * signed(l.outer.count)? + Expr::from(l.index))
        })
    }
}

impl Fused<'_> {
    /// Combines within vectors, applies the inits, and stores.
    pub(super) fn finish(
        &self,
        total: &Registers,
        build: &mut Build,
    ) -> Result<Statements, LowerError> {
        let mut statements = self.folded(total);
        let mut inits = Registers::new();
        for (place, (array, from)) in self.arrays.iter().zip(&self.inits).enumerate() {
            let init = build.register("s", array.init_type, self.walk.vector);
            statements.push(set(init, from.value.clone()));
            let types = [array.init_type, self.state.element_type(place)?];
            inits.push(self.converted(build, init, types, &mut statements)?);
        }
        if self.state.is_lifted {
            let (register, there) = self.state.present(build)?;
            statements.push(there);
            inits.push(register);
        }
        statements.push(self.state.combine(total, &inits, total));
        statements.extend(self.put_all(total, build)?);
        Ok(statements)
    }

    /// Combines the elements of each vector along the reduced digits.
    pub(super) fn folded(&self, total: &Registers) -> Statements {
        let reduced = |inner: &&Inner| inner.dim.is_some_and(|d| self.reduction.axes.contains(&d));
        let fold = |inner: &Inner| {
            let of = total.iter().copied().collect();
            let value = Value::Fold { by: self.state.function(), along: inner.digit, of };
            Statement::Set { registers: total.clone().into(), value }
        };
        self.walk.inner.iter().filter(reduced).map(fold).collect()
    }

    /// Stores the results of all arrays in their windows.
    pub(super) fn put_all(
        &self,
        total: &Registers,
        build: &mut Build,
    ) -> Result<Statements, LowerError> {
        let mut statements = Statements::new();
        for (place, (array, &register)) in self.arrays.iter().zip(total).enumerate() {
            statements.extend(self.put(place, array, register, build)?);
        }
        Ok(statements)
    }

    /// Stores the results of one array in its window.
    fn put(
        &self,
        place: usize,
        array: &Array<'_>,
        mut register: RegisterId,
        build: &mut Build,
    ) -> Result<Statements, LowerError> {
        let placement = array.placement;
        let accumulated = self.state.element_type(place)?;
        let mut inner = Statements::new();
        let mut loops = Vec::new();
        for moved in &placement.moved {
            let index = build.index(&format!("q{}", moved.dim.unwrap_or_default()));
            let spread = build.register("t", accumulated, self.walk.vector);
            let value = Value::Spread { of: register, along: moved.digit, at: index.into() };
            inner.push(set(spread, value));
            register = spread;
            loops.push((moved, index));
        }
        let types = [accumulated, array.result_type];
        register = self.converted(build, register, types, &mut inner)?;
        let mut stored = Statements::new();
        let mut parts = Vec::new();
        let mut number = Expr::ZERO;
        for part in &placement.parts {
            let index = build.index(&format!("r{}", part.dim.unwrap_or_default()));
            number = number + Expr::from(index) * signed(part.digit.stride)?;
            parts.push((part, index));
        }
        if placement.part != self.walk.vector {
            let part = build.register("t", array.result_type, placement.part);
            stored.push(set(part, Value::Part { of: register, at: number }));
            register = part;
        }
        let (global, local) = self.indices(&loops, &parts)?;
        let of = |index: &[Expr], dim: usize| index.get(dim).cloned().unwrap_or(Expr::ZERO);
        let (at, mask) =
            placement.at(&array.window, &|dim| of(&global, dim), &|dim| of(&local, dim))?;
        let at = at + self.slot(array)?;
        let to = BufferAddress { buffer: array.results, at };
        stored.push(Statement::Store { to, from: register, mask });
        inner.extend(self.digits(&parts, stored)?);
        self.digits(&loops, inner)
    }

    /// Nests statements in loops over the values of digits.
    fn digits(
        &self,
        digits: &[(&Inner, IndexId)],
        body: Statements,
    ) -> Result<Statements, LowerError> {
        digits.iter().rev().try_fold(body, |body, &(inner, index)| {
            let most = Expr::from(signed(inner.count)?);
            let partial = self.walk.is_partial(inner);
            let count = if partial { most.least(self.values(inner)?) } else { most };
            Ok(vec![Statement::For { index, count, body }])
        })
    }

    /// Returns the indices along each dim of the stored element, in the whole result and in the
    /// window.
    fn indices(
        &self,
        moved: &[(&Inner, IndexId)],
        parts: &[(&Inner, IndexId)],
    ) -> Result<(Vec<Expr>, Vec<Expr>), LowerError> {
        let (mut global, mut local) = (Vec::new(), Vec::new());
        let Blocks { grid, within, windowed, .. } = &self.blocks;
        for dim in 0..self.walk.dims.len() {
            if let Some(selected) = self.selected.as_ref().filter(|s| s.dim == dim) {
                global.push(selected.index.into());
                local.push(selected.index.into());
                continue;
            }
            let mut digits = Expr::ZERO;
            for (inner, id) in moved.iter().chain(parts).filter(|(i, _)| i.dim == Some(dim)) {
                digits = digits + Expr::from(*id) * signed(inner.unit)?;
            }
            global.push(self.outer_index(dim)? + digits.clone());
            let inside = Blocks::index(grid.iter().skip(*windowed).chain(within), dim)?;
            local.push(self.in_group(dim)? + inside + digits);
        }
        Ok((global, local))
    }

    /// Returns the last loop around windows, if several of its steps share a window.
    fn grouped(&self) -> Option<&Loop> {
        let last = self.blocks.windowed.checked_sub(1)?;
        self.blocks.grid.get(last).filter(|_| self.blocks.group > 1)
    }

    /// Returns the distance along a dim from the first step of the window to the current step.
    fn in_group(&self, dim: usize) -> Result<Expr, LowerError> {
        match self.grouped().filter(|l| l.outer.dim == dim) {
            Some(l) => {
                let step = Expr::from(l.index).remainder(signed(self.blocks.group)?);
                Ok(step * signed(l.outer.unit)?)
            }
            None => Ok(Expr::ZERO),
        }
    }

    /// Returns the address of the current window in its buffer, which has room for two windows.
    fn slot(&self, array: &Array<'_>) -> Result<Expr, LowerError> {
        let around = self.blocks.grid.iter().take(self.blocks.windowed);
        let group = signed(self.blocks.group)?;
        let number = match self.grouped() {
            Some(last) => {
                let windows = signed(last.outer.count.div_ceil(self.blocks.group))?;
                let before = around.take(self.blocks.windowed.saturating_sub(1));
                Loop::number(before)? * windows + Expr::from(last.index).quotient(group)
            }
            None => Loop::number(around)?,
        };
        Ok(number.remainder(2) * signed(array.window.len)?)
    }

    /// Writes out windows that are complete.
    pub(super) fn write_windows(&self, build: &mut Build) -> Result<Statements, LowerError> {
        let mut body = Statements::new();
        for array in &self.arrays {
            // The next window overwrites the previous one, so its copy must be finished.
            body.push(Statement::Wait(array.results));
            body.extend(self.write(array, build)?);
        }
        if let Some(last) = self.grouped() {
            let group = signed(self.blocks.group)?;
            let end = signed(last.outer.count)?.saturating_sub(1);
            let index = Expr::from(last.index);
            let first = index.clone().quotient(group) * group;
            let end_of_group = first + group.saturating_sub(1).into();
            body = vec![when(index, Expr::Constant(end).least(end_of_group), body)];
        }
        let rest = || self.blocks.grid.iter().skip(self.blocks.windowed);
        let steps = rest().map(|l| l.outer.count).fold(1, u64::saturating_mul);
        if steps == 1 {
            return Ok(body);
        }
        let last = signed(steps)?.saturating_sub(1).into();
        Ok(vec![when(Loop::number(rest())?, last, body)])
    }

    /// Copies a window to its place in main memory, in runs that are as long as possible.
    fn write(&self, array: &Array<'_>, build: &mut Build) -> Result<Statements, LowerError> {
        let Array { placement, window, .. } = array;
        let mut to = self.window_start(placement)?;
        let mut from = self.slot(array)?;
        let mut run = signed(placement.step())?.into();
        // The elements of a run, as long as the next loop continues it.
        let mut reach = Some(placement.step());
        let mut loops = Vec::new();
        for at in window.loops.iter().rev() {
            let count = self.held(at)?;
            if reach == Some(at.outer.stride) && reach == Some(at.stride) {
                run = count.clone() * signed(at.stride)?;
                let whole = count == signed(at.count)?.into();
                reach = at.stride.checked_mul(at.count).filter(|_| whole);
                continue;
            }
            reach = None;
            if at.count != 1 {
                let index = build.index(&format!("o{}", at.outer.dim));
                to = to + Expr::from(index) * signed(at.outer.stride)?;
                from = from + Expr::from(index) * signed(at.stride)?;
                loops.push((index, count));
            }
        }
        let output = array.output.ok_or_else(|| internal("results that are written nowhere"))?;
        let to = BufferAddress { buffer: output, at: to };
        let from = BufferAddress { buffer: array.results, at: from };
        let copy = vec![Statement::Copy { to, from, len: run }];
        let around = |body, (index, count)| vec![Statement::For { index, count, body }];
        Ok(loops.into_iter().fold(copy, around))
    }

    /// Returns the address in main memory at which the current window begins.
    fn window_start(&self, placement: &Placement) -> Result<Expr, LowerError> {
        let window = placement.window(&|_| None);
        let mut address = Expr::ZERO;
        for at in &window.loops {
            let Outer { dim, unit, stride, .. } = at.outer;
            let along = window.loops.iter().filter(|other| other.outer.dim == dim);
            let above = along.map(|other| other.outer.unit).filter(|&other| other > unit).min();
            let index = self.window_index(dim)?;
            let digit = digit_of(&index, unit, above, placement.size(dim))?;
            address = address + digit * signed(stride)?;
        }
        Ok(address)
    }

    /// Returns the index along a dim at which the current window begins.
    fn window_index(&self, dim: usize) -> Result<Expr, LowerError> {
        let around = self.blocks.grid.iter().take(self.blocks.windowed);
        let Some(last) = self.grouped() else { return Blocks::index(around, dim) };
        let before = around.take(self.blocks.windowed.saturating_sub(1));
        let index = Blocks::index(before, dim)?;
        if last.outer.dim != dim {
            return Ok(index);
        }
        let group = signed(self.blocks.group)?;
        let first = Expr::from(last.index).quotient(group) * group;
        Ok(index + first * signed(last.outer.unit)?)
    }

    /// Returns the number of steps of a loop that the current window holds; the last window can
    /// hold fewer.
    fn held(&self, at: &WindowLoop) -> Result<Expr, LowerError> {
        let all: Expr = signed(at.count)?.into();
        let Outer { dim, unit, count, .. } = at.outer;
        if at.count >= count || count.is_multiple_of(at.count.max(1)) {
            return Ok(all);
        }
        let unit = signed(unit)?;
        let begun = self.window_index(dim)?.quotient(unit);
        Ok(all.least(Expr::from(signed(count)?) + begun * -1))
    }
}
