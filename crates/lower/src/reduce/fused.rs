//! One pass over the input, straight into the result.
//!
//! Blocks stream through vector memory, each once. Within a block, the vectors
//! that belong to the same results are combined in registers; what a block
//! leaves to others waits in vector memory. Only what is left at the end is
//! combined within vectors, and put where the result has it.

use smallvec::{SmallVec, smallvec};
use tilewright_ir::ops::attr::AttrValues;
use tilewright_ir::{ElementType, Literal, Op, Opcode};
use tilewright_target::Target;

use super::blocks::{Blocks, Loop, block_bytes, signed};
use super::place::Placement;
use super::walk::{Inner, Walk};
use super::{LowerError, Reduction};
use crate::kernel::build::Build;
use crate::kernel::{
    Block, Bound, BufferId, Expr, FunctionId, Kernel, Mask, Place, RegisterId, Space, Statement,
    Value,
};

/// The kernel of a reduction.
pub(super) fn kernel(reduction: &Reduction, target: &Target) -> Result<Kernel, LowerError> {
    let first = reduction.arrays.first().ok_or(LowerError::Unlike)?;
    let vector = target.vector_elements(first.element_type);
    let walk = Walk::of(target, first, vector)?;
    if walk.overshoots() {
        return Err(LowerError::Tiles);
    }
    for array in &reduction.arrays {
        if Walk::of(target, array, vector)? != walk {
            return Err(LowerError::Unlike);
        }
    }
    let mut build = Build::new(&reduction.name, &target.name);
    let bytes: u64 = reduction.arrays.iter().map(|a| u64::from(a.element_type.bytes())).sum();
    let blocks =
        Blocks::of(&walk, &reduction.axes, block_bytes(target) / bytes.max(1), |outer, grid| {
            build.index(&format!("{}{}", if grid { "b" } else { "d" }, outer.dim))
        })?;
    let arrays = reduction.arrays.iter().enumerate();
    let arrays: Result<Vec<Array>, LowerError> = arrays
        .map(|(place, _)| Array::of(reduction, place, &walk, &blocks, target, &mut build))
        .collect();
    let by = build.function(reduction.by.clone());
    let fused = Fused { reduction, walk: &walk, blocks: &blocks, arrays: arrays?, by };
    let body = fused.body(&mut build)?;
    Ok(build.finish(body))
}

/// The buffers and registers of one array.
struct Array {
    placement: Placement,
    input: BufferId,
    init: BufferId,
    output: BufferId,
    block: BufferId,
    init_here: BufferId,
    /// What blocks leave to others, where there are several for a result.
    partial: Option<BufferId>,
    results: BufferId,
    accumulator: RegisterId,
    element_type: ElementType,
    accumulated: ElementType,
    result_type: ElementType,
    identity: Literal,
    padding: Literal,
}

impl Array {
    fn of(
        reduction: &Reduction,
        place: usize,
        walk: &Walk,
        blocks: &Blocks,
        target: &Target,
        build: &mut Build,
    ) -> Result<Self, LowerError> {
        let of = |list: &[Literal]| list.get(place).cloned().ok_or(LowerError::Unlike);
        let element_type = reduction.arrays[place].element_type;
        let result = reduction.results.get(place).ok_or(LowerError::Unlike)?;
        let accumulated = *reduction.accumulated().get(place).ok_or(LowerError::Unlike)?;
        let placement = Placement::of(target, walk, result, &reduction.axes)?;
        let scalar = tilewright_ir::ArrayShape::scalar(element_type);
        let scalar = Walk::of(target, &scalar, 1)?.len;
        let kept = blocks.within.iter().filter(|l| !l.reduced);
        let vectors = kept.map(|l| l.outer.count.min(most_steps(l)));
        let partial = vectors.fold(walk.vector, u64::saturating_mul);
        let has_partial = blocks.grid.iter().any(|l| l.reduced);
        let len = placement.len();
        let space = if blocks.grid.is_empty() { Space::Vmem } else { Space::VmemTwice };
        let array = Self {
            input: build.buffer("x", Space::In, element_type, walk.len),
            init: build.buffer("init", Space::In, element_type, scalar),
            output: build.buffer("y", Space::Out, result.element_type, len),
            block: build.buffer("xs", space, element_type, blocks.most),
            init_here: build.buffer("start", Space::Vmem, element_type, scalar),
            partial: has_partial
                .then(|| build.buffer("partial", Space::Vmem, accumulated, partial)),
            results: build.buffer("ys", Space::Vmem, result.element_type, len),
            accumulator: build.register("a", accumulated, walk.vector),
            placement,
            element_type,
            accumulated,
            result_type: result.element_type,
            identity: of(&reduction.identity)?,
            padding: of(&reduction.padding)?,
        };
        Ok(array)
    }
}

/// The most steps of a loop within a block.
fn most_steps(within: &Loop) -> u64 {
    let constant = |expr: &Expr| match expr {
        Expr::Constant(count) => u64::try_from(*count).ok(),
        Expr::Least(both) => match &both[0] {
            Expr::Constant(count) => u64::try_from(*count).ok(),
            _ => None,
        },
        _ => None,
    };
    constant(&within.count).unwrap_or(within.outer.count)
}

struct Fused<'a> {
    reduction: &'a Reduction,
    walk: &'a Walk,
    blocks: &'a Blocks,
    arrays: Vec<Array>,
    by: FunctionId,
}

type Statements = Vec<Statement>;

impl Fused<'_> {
    fn body(&self, build: &mut Build) -> Result<Statements, LowerError> {
        let mut body = Statements::new();
        for array in &self.arrays {
            let one = Expr::Constant(1);
            let (to, from) = (start(array.init_here), start(array.init));
            body.push(Statement::Copy { to, from, len: one });
        }
        body.extend(self.arrays.iter().map(|array| Statement::Wait(array.init_here)));
        let blocks = self.arrays.iter().map(|array| Block {
            to: array.block,
            from: Place { buffer: array.input, at: self.blocks.start.clone() },
            len: self.blocks.len.clone(),
        });
        let work = self.block(build)?;
        if self.blocks.grid.is_empty() {
            // One block: there is nothing to do while it is copied.
            body.extend(blocks.clone().map(|Block { to, from, len }| Statement::Copy {
                to: start(to),
                from,
                len,
            }));
            body.extend(self.arrays.iter().map(|array| Statement::Wait(array.block)));
            body.extend(work);
        } else {
            body.push(Statement::Stream {
                grid: self.blocks.grid.iter().map(|l| (l.index, l.outer.count)).collect(),
                blocks: blocks.collect(),
                body: work,
            });
        }
        for array in &self.arrays {
            let len = signed(array.placement.len())?.into();
            let (to, from) = (start(array.output), start(array.results));
            body.push(Statement::Copy { to, from, len });
        }
        Ok(body)
    }

    /// What is done with a block.
    fn block(&self, build: &mut Build) -> Result<Statements, LowerError> {
        let kept: Vec<&Loop> = self.blocks.within.iter().filter(|l| !l.reduced).collect();
        let waits = self.arrays.iter().any(|array| array.partial.is_some());
        let mut inner = if waits { self.loads() } else { self.identities() };
        let reduced: Vec<&Loop> = self.blocks.within.iter().filter(|l| l.reduced).collect();
        inner.extend(around(&reduced, self.combine(build)?));
        if !waits {
            inner.extend(self.finish(build)?);
            return Ok(around(&kept, inner));
        }
        inner.extend(self.stores());
        let mut first = self.identities();
        first.extend(self.stores());
        let mut last = self.loads();
        last.extend(self.finish(build)?);
        let mut body = self.when(&|_| Ok(Expr::ZERO), around(&kept, first))?;
        body.extend(around(&kept, inner));
        let end = |l: &Loop| Ok(Expr::Constant(signed(l.outer.count)?.saturating_sub(1)));
        body.extend(self.when(&end, around(&kept, last))?);
        Ok(body)
    }

    /// Under the condition that every reduced loop of the grid is at a step.
    fn when(
        &self,
        at: &dyn Fn(&Loop) -> Result<Expr, LowerError>,
        body: Statements,
    ) -> Result<Statements, LowerError> {
        let reduced = self.blocks.grid.iter().filter(|l| l.reduced && l.outer.count != 1);
        reduced.rev().try_fold(body, |body, l| {
            Ok(vec![Statement::When { equal: [l.index.into(), at(l)?], body }])
        })
    }

    fn identities(&self) -> Statements {
        let set = |array: &Array| set(array.accumulator, Value::Splat(array.identity.clone()));
        self.arrays.iter().map(set).collect()
    }

    /// Where results of a block wait for those of others.
    fn waiting(&self, buffer: BufferId) -> Place {
        let mut at = Expr::ZERO;
        let mut stride = i64::try_from(self.walk.vector).unwrap_or(i64::MAX);
        for l in self.blocks.within.iter().rev().filter(|l| !l.reduced) {
            at = Expr::from(l.index) * stride + at;
            stride = stride.saturating_mul(i64::try_from(most_steps(l)).unwrap_or(i64::MAX));
        }
        Place { buffer, at }
    }

    fn loads(&self) -> Statements {
        let load = |array: &Array| {
            let from = self.waiting(array.partial?);
            let value = Value::Load { from, mask: Mask::new(), otherwise: None };
            Some(set(array.accumulator, value))
        };
        self.arrays.iter().filter_map(load).collect()
    }

    fn stores(&self) -> Statements {
        let store = |array: &Array| {
            let to = self.waiting(array.partial?);
            Some(Statement::Store { to, from: array.accumulator, mask: Mask::new() })
        };
        self.arrays.iter().filter_map(store).collect()
    }

    /// Combines what is accumulated with one vector of each array.
    fn combine(&self, build: &mut Build) -> Result<Statements, LowerError> {
        let mut statements = Statements::new();
        let mut at = Expr::ZERO;
        for l in &self.blocks.within {
            at = at + Expr::from(l.index) * signed(l.outer.stride)?;
        }
        let mask = self.mask()?;
        let mut elements = Vec::new();
        for array in &self.arrays {
            let loaded = build.register("v", array.element_type, self.walk.vector);
            let from = Place { buffer: array.block, at: at.clone() };
            let otherwise = (!mask.is_empty()).then(|| array.padding.clone());
            statements.push(set(loaded, Value::Load { from, mask: mask.clone(), otherwise }));
            elements.push(self.converted(
                build,
                loaded,
                array.element_type,
                array.accumulated,
                &mut statements,
            )?);
        }
        statements.push(self.call(&self.accumulators(), &elements));
        Ok(statements)
    }

    fn accumulators(&self) -> Vec<RegisterId> {
        self.arrays.iter().map(|array| array.accumulator).collect()
    }

    /// Sets the accumulators to these combined with those.
    fn call(&self, first: &[RegisterId], second: &[RegisterId]) -> Statement {
        let operands: SmallVec<[RegisterId; 4]> = first.iter().chain(second).copied().collect();
        let registers = self.accumulators().into();
        Statement::Set { registers, value: Value::Call(self.by, operands) }
    }

    /// A register as another type: itself, if it is one.
    fn converted(
        &self,
        build: &mut Build,
        register: RegisterId,
        from: ElementType,
        to: ElementType,
        statements: &mut Statements,
    ) -> Result<RegisterId, LowerError> {
        if from == to {
            return Ok(register);
        }
        let convert = Op::from_attrs(Opcode::Convert, &mut AttrValues::default());
        let convert = convert.map_err(|_| LowerError::Unlike)?;
        let converted = build.register("w", to, self.walk.vector);
        statements.push(set(converted, Value::Apply(convert, smallvec![register])));
        Ok(converted)
    }

    /// The elements of a vector that are no padding.
    fn mask(&self) -> Result<Mask, LowerError> {
        let partial = self.walk.inner.iter().filter(|inner| self.walk.is_partial(inner));
        let bound = |inner: &super::walk::Inner| {
            let digits = self.walk.inner.iter().filter(|other| other.dim == inner.dim);
            let loops = self.walk.outer.iter().any(|outer| Some(outer.dim) == inner.dim);
            if loops && digits.count() > 1 {
                return Err(LowerError::Tiles);
            }
            Ok(Bound { digit: inner.digit, from: Expr::ZERO, to: self.values(inner)? })
        };
        partial.map(bound).collect()
    }

    /// How many values a digit has in the present vector, at most as many as fit.
    fn values(&self, inner: &Inner) -> Result<Expr, LowerError> {
        let index = inner.dim.map_or(Ok(Expr::ZERO), |dim| self.outer_index(dim))?;
        let most = Expr::from(signed(inner.count)?);
        if index == Expr::ZERO {
            return Ok(most);
        }
        // Rounded up: a last step that is not whole counts.
        let last = signed(self.walk.size(inner).saturating_add(inner.unit).saturating_sub(1))?;
        Ok((Expr::from(last) + index * -1).quotient(signed(inner.unit)?))
    }

    /// The index along a dim of the first element of the present vector.
    fn outer_index(&self, dim: usize) -> Result<Expr, LowerError> {
        let loops = self.blocks.grid.iter().chain(&self.blocks.within);
        loops
            .filter(|l| l.outer.dim == dim)
            .try_fold(Expr::ZERO, |sum, l| Ok(sum + Expr::from(l.index) * signed(l.outer.unit)?))
    }

    /// Combines within vectors, applies the inits, and stores.
    fn finish(&self, build: &mut Build) -> Result<Statements, LowerError> {
        let mut statements = Statements::new();
        let accumulators = self.accumulators();
        let reduced = |inner: &&Inner| inner.dim.is_some_and(|d| self.reduction.axes.contains(&d));
        for inner in self.walk.inner.iter().filter(reduced) {
            let of = accumulators.iter().copied().collect();
            let value = Value::Fold { by: self.by, along: inner.digit, of };
            statements.push(Statement::Set { registers: accumulators.clone().into(), value });
        }
        let mut inits = Vec::new();
        for array in &self.arrays {
            let init = build.register("s", array.element_type, self.walk.vector);
            statements.push(set(init, Value::Scalar(start(array.init_here))));
            inits.push(self.converted(
                build,
                init,
                array.element_type,
                array.accumulated,
                &mut statements,
            )?);
        }
        statements.push(self.call(&inits, &accumulators));
        for array in &self.arrays {
            statements.extend(self.put(array, build)?);
        }
        Ok(statements)
    }

    /// Stores the results of one array where they belong.
    fn put(&self, array: &Array, build: &mut Build) -> Result<Statements, LowerError> {
        let mut inner = Statements::new();
        let mut register = array.accumulator;
        let mut loops = Vec::new();
        for moved in &array.placement.moved {
            let index = build.index(&format!("q{}", moved.dim.unwrap_or_default()));
            let spread = build.register("t", array.accumulated, self.walk.vector);
            let value = Value::Spread { of: register, along: moved.digit, at: index.into() };
            inner.push(set(spread, value));
            register = spread;
            loops.push((moved, index));
        }
        register =
            self.converted(build, register, array.accumulated, array.result_type, &mut inner)?;
        let mut index = Vec::new();
        for dim in 0..self.walk.dims.len() {
            let mut sum = self.outer_index(dim)?;
            for (moved, id) in loops.iter().filter(|(moved, _)| moved.dim == Some(dim)) {
                sum = sum + Expr::from(*id) * signed(moved.unit)?;
            }
            index.push(sum);
        }
        let of = |dim: usize| index.get(dim).cloned().unwrap_or(Expr::ZERO);
        let (at, mask) = array.placement.at(&of)?;
        inner.push(Statement::Store {
            to: Place { buffer: array.results, at },
            from: register,
            mask,
        });
        for (moved, id) in loops.into_iter().rev() {
            let most = Expr::from(signed(moved.count)?);
            let count =
                if self.walk.is_partial(moved) { most.least(self.values(moved)?) } else { most };
            inner = vec![Statement::For { index: id, count, body: inner }];
        }
        Ok(inner)
    }
}

fn start(buffer: BufferId) -> Place {
    Place { buffer, at: Expr::ZERO }
}

fn set(register: RegisterId, value: Value) -> Statement {
    Statement::Set { registers: smallvec![register], value }
}

/// Loops around statements, the first outermost.
fn around(loops: &[&Loop], body: Statements) -> Statements {
    loops
        .iter()
        .rev()
        .fold(body, |body, l| vec![Statement::For { index: l.index, count: l.count.clone(), body }])
}
