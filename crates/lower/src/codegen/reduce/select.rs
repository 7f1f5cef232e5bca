//! Top-k: the first elements of every row in an order, and their indices.
//!
//! `best(0) = first(row)`, `best(n + 1) = first of those that come after best(n)`: a row in
//! vector memory is read once for each selected element. The order is total because the index
//! decides between equal elements, so no element has to be marked as taken.

mod order;

use tilewright_ir::shape::ArrayShape;
use tilewright_ir::{ElementType, Literal};
use tilewright_target::{Physical, Target};

use super::blocks::{Loop, signed};
use super::fused::{Ends, Fused, Pass, Task, pass};
use super::state::{AccumulatorState, Registers, Statements, set};
use super::{Elements, Neutral, ReductionSpec, Source};
use crate::error::{LowerError, NoRoom, TooLarge, Unsupported, internal};
use crate::kernel::build::Build;
use crate::kernel::{FunctionId, IndexId, Kernel, Space, Statement, Value};

use order::Order;

/// The greatest or least elements along a dim, sorted, and their indices along it. Of equal
/// elements the one with the least index comes first.
///
/// The order of floats is total: -NaN < -inf < ... < -0 < 0 < ... < inf < NaN.
#[derive(Clone, Debug)]
pub struct Selection {
    /// The name of the kernel.
    pub name: String,
    /// The array in memory.
    pub array: ArrayShape,
    /// The dim along which elements are selected.
    pub dim: usize,
    /// The shapes of the elements and of their indices (`s32`). Both have the dims of the array,
    /// except that `dim` has as many elements as are selected.
    pub results: [ArrayShape; 2],
    /// Whether the greatest elements come first; otherwise the least.
    pub largest: bool,
}

/// Largest number of elements that are selected per row, because each takes a pass.
const MOST_SELECTED: u64 = 1024;

/// The element type of the indices.
const PLACE: ElementType = ElementType::S32;

impl Selection {
    /// Returns the kernel that reads every element once and stores nothing in between. Its only
    /// input is the array.
    ///
    /// # Errors
    /// Returns an error if a kernel cannot walk arrays of these layouts or sizes on this
    /// target, rows do not fit in its vector memory, or too many elements are selected.
    pub fn kernel(&self, target: &Target) -> Result<Kernel, LowerError> {
        self.made(target).map_err(|error| error.in_kernel(&self.name))
    }

    fn made(&self, target: &Target) -> Result<Kernel, LowerError> {
        let count = self.count()?;
        if self.results.iter().any(|result| result.dims().contains(&0)) {
            return self.nothing(target);
        }
        if count > MOST_SELECTED {
            return Err(Unsupported::Selected { count, most: MOST_SELECTED }.into());
        }
        let reduction = &self.as_choice()?;
        let task = Task { reduction, producer: None, selection: Some(self), ends: Ends::Written };
        let mut build = Build::new(&reduction.name, &target.name);
        let Pass { statements, .. } = pass(task, target, &mut build)?;
        Ok(build.finish(statements))
    }

    /// Number of elements selected per row.
    fn count(&self) -> Result<u64, LowerError> {
        let size = *self
            .array
            .dims()
            .get(self.dim)
            .ok_or_else(|| internal("a selection along a dim that its array does not have"))?;
        if i32::try_from(size).is_err() {
            return Err(TooLarge::Rows.into());
        }
        let [values, places] = &self.results;
        let count = *values.dims().get(self.dim).ok_or(Unsupported::Selection)?;
        let kept = self.array.clone().with_dim(self.dim, count, false);
        let types = [values.element_type, places.element_type];
        let agree = types == [self.array.element_type, PLACE]
            && self.results.iter().all(|result| result.dims() == kept.dims())
            && count <= size;
        u64::try_from(count).ok().filter(|_| agree).ok_or_else(|| Unsupported::Selection.into())
    }

    /// Returns the reduction to the first element of each row and its index.
    fn as_choice(&self) -> Result<ReductionSpec, LowerError> {
        let order = self.order()?;
        let along = |dim| i64::from(dim == self.dim);
        let factors = (0..self.array.rank()).map(along).collect();
        let places = self.array.clone().with_element_type(PLACE);
        let last = vec![order.last_value()?, order.last_place()?];
        Ok(ReductionSpec {
            name: self.name.clone(),
            arrays: vec![
                Source { shape: self.array.clone(), elements: Elements::Memory },
                Source { shape: places, elements: Elements::Indices(factors) },
            ],
            axes: vec![self.dim],
            inits: vec![self.array.element_type, PLACE],
            results: self.results.to_vec(),
            by: order.first()?,
            neutral: Some(Neutral { accumulated: last.clone(), elements: last }),
            rounds: false,
        })
    }

    fn order(&self) -> Result<Order, LowerError> {
        Order::of(self.array.element_type, self.largest)
    }

    /// Returns the kernel for results without elements.
    fn nothing(&self, target: &Target) -> Result<Kernel, LowerError> {
        let mut build = Build::new(&self.name, &target.name);
        let mut buffer = |name, space, shape: &ArrayShape| {
            let len = Physical::of(target, shape).places().ok_or(TooLarge::Elements)?;
            build.buffer(name, space, shape.element_type, len);
            Ok::<(), LowerError>(())
        };
        buffer("x", Space::In, &self.array)?;
        for result in &self.results {
            buffer("y", Space::Out, result)?;
        }
        Ok(build.finish(Statements::new()))
    }

    /// Returns the state that a kernel needs to select one element after another.
    pub(super) fn selected(
        &self,
        state: &AccumulatorState,
        build: &mut Build,
    ) -> Result<Selected, LowerError> {
        let order = self.order()?;
        Ok(Selected {
            dim: self.dim,
            index: build.index("k"),
            count: self.count()?,
            last: state.registers(build, "last"),
            before_all: [order.before_all_values()?, order.before_all_places()?],
            next: build.function(order.next()?),
        })
    }
}

/// The state of a selection within a row.
pub(super) struct Selected {
    /// The dim along which elements are selected.
    pub(super) dim: usize,
    /// The index of the current selected element.
    pub(super) index: IndexId,
    /// Number of selected elements.
    count: u64,
    /// The element that was selected last.
    last: Registers,
    /// The pair that comes before all elements.
    before_all: [Literal; 2],
    /// A function of the best element so far, the last selected element and another element.
    /// Returns the better of the first and the third, if the third comes after the last selected
    /// one; otherwise the first.
    next: FunctionId,
}

impl Selected {
    /// Replaces the best elements by better ones that come after the last selected element.
    pub(super) fn next(&self, best: &Registers, elements: &Registers) -> Statement {
        let operands = [best, &self.last, elements].into_iter().flatten().copied().collect();
        Statement::Set {
            registers: best.as_slice().into(),
            value: Value::Call(self.next, operands),
        }
    }
}

impl Fused<'_> {
    /// Selects one element after another, and stores each.
    pub(super) fn select(
        &self,
        selected: &Selected,
        reduced: &[&Loop],
        build: &mut Build,
    ) -> Result<Statements, LowerError> {
        if self.blocks.grid.iter().any(|l| l.reduced) {
            return Err(NoRoom::Rows.into());
        }
        let best = self.state.registers(build, "best");
        let mut body = self.state.identities(&best);
        body.extend(self.accumulate(reduced, &best, build)?);
        let mut found = self.folded(&best);
        match found.last_mut() {
            Some(Statement::Set { registers, .. }) => *registers = selected.last.as_slice().into(),
            // Combining the best with itself copies it.
            _ => found.push(self.state.combine(&selected.last, &best, &best)),
        }
        body.extend(found);
        body.extend(self.put_all(&selected.last, build)?);
        let starts = selected.last.iter().zip(&selected.before_all);
        let mut statements: Statements =
            starts.map(|(&last, start)| set(last, Value::Splat(start.clone()))).collect();
        let count = signed(selected.count)?.into();
        statements.push(Statement::For { index: selected.index, count, body });
        Ok(statements)
    }
}
