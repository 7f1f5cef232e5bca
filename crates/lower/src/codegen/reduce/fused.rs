//! Reduces in one pass over the input, directly into the result.
//!
//! Blocks stream through vector memory, each once. Within a block, the vectors of the same
//! results are combined in registers; partial results that several blocks share wait in vector
//! memory. Only the last partial results are combined within vectors and stored in the layout of
//! the result.

use tilewright_ir::shape::ArrayShape;
use tilewright_ir::{ElementType, Literal};
use tilewright_target::{Alignment, Target};

use super::blocks::{Blocks, Loop, block_bytes, signed};
use super::chain;
use super::empty;
use super::place::Placement;
use super::produce::{Produced, Producer};
use super::select::{Selected, Selection};
use super::state::{AccumulatorState, Registers, Statements};
use super::walk::VectorWalk;
use super::window::{Arranged, Sizes, Window, extent};
use super::{Elements, ReductionSpec, Source};
use crate::error::{LowerError, NoRoom, TooLarge, Unsupported, internal};
use crate::kernel::build::Build;
use crate::kernel::{
    Block, BufferAddress, BufferId, Expr, IndexId, Kernel, Space, Statement, Value,
};

/// Generates the kernel of a reduction.
pub(super) fn kernel(reduction: &ReductionSpec, target: &Target) -> Result<Kernel, LowerError> {
    if let Some(kernel) = empty::kernel(reduction, target)? {
        return Ok(kernel);
    }
    let task = Task { reduction, producer: None, selection: None, ends: Ends::Written };
    let mut build = Build::new(&reduction.name, &target.name);
    let Pass { statements, .. } = pass(task, target, &mut build)?;
    Ok(build.finish(statements))
}

/// One pass over the reduced arrays.
#[derive(Debug)]
pub(crate) struct Pass {
    pub(crate) statements: Statements,
    /// The buffers in vector memory that hold the results.
    pub(crate) results: Vec<BufferId>,
}

/// The memory in which results end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ends {
    /// Results are written to main memory.
    Written,
    /// Results stay in vector memory for their users.
    Kept,
}

/// The description of a pass.
#[derive(Clone, Copy)]
pub(crate) struct Task<'a> {
    pub(crate) reduction: &'a ReductionSpec,
    /// Computes the elements, if the kernel computes them.
    pub(crate) producer: Option<&'a Producer<'a>>,
    /// The selection, if the pass selects elements and does not reduce.
    pub(crate) selection: Option<&'a Selection>,
    /// The memory in which results end.
    pub(crate) ends: Ends,
}

/// Adds a pass over arrays with elements to a kernel.
///
/// # Errors
/// Like [`ReductionSpec::fused`]; the kernel stays the same.
pub(crate) fn pass(task: Task<'_>, target: &Target, build: &mut Build) -> Result<Pass, LowerError> {
    let reduction = task.reduction;
    let count = reduction.arrays.len();
    let lists = [reduction.inits.len(), reduction.results.len(), reduction.by.results.len()];
    if lists != [count; 3] || reduction.walked().next().is_none() {
        return Err(internal(
            "a reduction whose arrays, inits, results and computation are not as many",
        ));
    }
    // Vectors as long as those of any result, so that each is whole. If the arrays have no
    // vectors as long, those of any array. If elements are wider than a lane and vectors are
    // parts of tiles, vectors as long as tiles.
    let longest = |shapes: &mut dyn Iterator<Item = &ArrayShape>| {
        shapes.map(|shape| target.vector_elements(shape.element_type)).max().unwrap_or(1)
    };
    let of_arrays = longest(&mut reduction.walked());
    let of_all = of_arrays.max(longest(&mut reduction.results.iter()));
    let tiles = reduction.walked().map(|shape| shape.element_type.bytes().saturating_mul(8));
    let tiles = tiles.map(|bits| target.tile(bits).iter().product()).max().unwrap_or(1);
    let mut made = in_vectors(task, target, build, of_all);
    for (vector, other) in [(of_arrays, of_all), (tiles, of_arrays)] {
        if made.is_err() && vector > 0 && vector != other {
            made = in_vectors(task, target, build, vector).or(made);
        }
    }
    let (after, pass) = made?;
    *build = after;
    Ok(pass)
}

/// Adds the pass with vectors of `vector` elements. Tries smaller blocks and longer chains until
/// the machine has enough memory and registers.
fn in_vectors(
    task: Task<'_>,
    target: &Target,
    before: &Build,
    vector: u64,
) -> Result<(Build, Pass), LowerError> {
    let Task { reduction, producer, selection, .. } = task;
    let mut walks = reduction.walked().map(|shape| VectorWalk::of(target, shape, vector));
    let walk = walks.next().ok_or_else(|| internal("a reduction of no array in memory"))?;
    if walks.any(|other| other != walk) {
        return Err(Unsupported::Unlike.into());
    }
    let walk = walk?;
    let types = reduction.walked().map(|shape| shape.element_type);
    let mut types = types.chain(reduction.by.result_types());
    let is_cut = |element_type| !vector.is_multiple_of(target.vector_elements(element_type));
    let aligns = target.alignment == Alignment::Tiles;
    if walk.overshoots() || (aligns && types.any(is_cut)) {
        return Err(Unsupported::Tiles.into());
    }
    let placements = reduction.results.iter();
    let chosen = selection.map(|selection| selection.dim);
    let placements: Vec<Placement> = placements
        .map(|shape| Placement::of(target, &walk, shape, &reduction.axes, chosen))
        .collect::<Result<_, _>>()?;
    let bytes: u64 = match producer {
        Some(producer) => producer.bytes,
        None => reduction.walked().map(|a| u64::from(a.element_type.bytes())).sum(),
    };
    // Arrays that are already in vector memory form one block.
    let elements = block_bytes(target).checked_div(bytes).unwrap_or(u64::MAX);
    let mut size = Size { elements, longest: chain::LONGEST };
    if let Some(selection) = selection {
        size.elements = size.elements.max(walk.run(selection.dim));
    }
    loop {
        let mut build = before.clone();
        let pass = Fused::pass(task, target, (&walk, &placements), size, &mut build)?;
        let kernel = build.clone().finish(pass.statements.clone());
        let fits = kernel.vmem_bytes().is_some_and(|bytes| bytes <= target.vector_memory_bytes);
        let (used, has) = (kernel.live_registers(target), u64::from(target.vector_registers));
        match (fits, used <= has) {
            (true, true) => return Ok((build, pass)),
            (false, _) if size.elements > vector => size.elements /= 2,
            (false, _) => return Err(NoRoom::Results.into()),
            (true, false) if size.longest < MOST_IN_CHAINS => size.longest *= 8,
            (true, false) => return Err(NoRoom::Registers { used, has }.into()),
        }
    }
}

/// Chains of this length are not cut.
pub(super) const MOST_IN_CHAINS: u64 = 1 << 24;

/// The sizes of the pieces of a pass.
#[derive(Clone, Copy, Debug)]
struct Size {
    /// Approximate number of elements of a block.
    elements: u64,
    /// Largest number of roundings in one chain.
    longest: u64,
}

/// The buffers of one array.
pub(super) struct Array<'a> {
    pub(super) placement: &'a Placement,
    pub(super) window: Window,
    pub(super) source: Stored<'a>,
    /// The buffer in main memory that the results are written to, if they are.
    pub(super) output: Option<BufferId>,
    pub(super) results: BufferId,
    pub(super) element_type: ElementType,
    pub(super) init_type: ElementType,
    pub(super) result_type: ElementType,
    pub(super) padding: Option<&'a Literal>,
}

/// The source of an array's elements.
pub(super) enum Stored<'a> {
    Memory { input: BufferId, block: BufferId },
    Indices(&'a [i64]),
    Computed,
}

/// The init of a reduction.
pub(super) struct Init {
    pub(super) value: Value,
    /// The buffers from and to which it is copied.
    copied: Option<(BufferId, BufferId)>,
}

impl Init {
    fn of(
        reduction: &ReductionSpec,
        place: usize,
        target: &Target,
        build: &mut Build,
    ) -> Result<Self, LowerError> {
        let element_type = reduction.inits[place];
        let scalar = VectorWalk::of(target, &ArrayShape::scalar(element_type), 1)?.len;
        let from = build.buffer("init", Space::In, element_type, scalar);
        let here = build.buffer("start", Space::Vmem, element_type, scalar);
        Ok(Self { value: Value::Scalar(start(here)), copied: Some((from, here)) })
    }
}

impl<'a> Stored<'a> {
    fn of(source: &'a Source, walk: &VectorWalk, blocks: &Blocks, build: &mut Build) -> Self {
        let element_type = source.shape.element_type;
        let space = if blocks.grid.is_empty() { Space::Vmem } else { Space::VmemTwice };
        match &source.elements {
            Elements::Memory => Self::Memory {
                input: build.buffer("x", Space::In, element_type, walk.len),
                block: build.buffer("xs", space, element_type, blocks.most),
            },
            Elements::Indices(factors) => Self::Indices(factors),
            Elements::Computed => Self::Computed,
        }
    }
}

impl<'a> Array<'a> {
    fn of(
        reduction: &'a ReductionSpec,
        place: usize,
        placement: &'a Placement,
        (source, ends): (Stored<'a>, Ends),
        blocks: &Blocks,
        build: &mut Build,
    ) -> Result<Self, LowerError> {
        let element_type = reduction.arrays[place].shape.element_type;
        let init_type = reduction.inits[place];
        let result_type = reduction.results[place].element_type;
        let around = || blocks.grid.iter().take(blocks.windowed).map(|l| &l.outer);
        let window = placement.window(&|dim| extent(around(), blocks.group, dim));
        let times = if blocks.windowed == 0 { 1 } else { 2 };
        let here = window.len.checked_mul(times).ok_or(TooLarge::Elements)?;
        let neutral = reduction.neutral.as_ref();
        let padding = neutral.map(|neutral| {
            neutral.elements.get(place).ok_or_else(|| internal("an array without an identity"))
        });
        Ok(Self {
            source,
            output: match ends {
                Ends::Written => Some(build.buffer("y", Space::Out, result_type, placement.len())),
                Ends::Kept => None,
            },
            results: build.buffer("ys", Space::Vmem, result_type, here),
            placement,
            window,
            element_type,
            init_type,
            result_type,
            padding: padding.transpose()?,
        })
    }
}

/// Adds the buffers of all arrays and, for reductions, of their inits.
fn buffers<'a>(
    Task { reduction, selection, ends, .. }: Task<'a>,
    target: &Target,
    (walk, placements): (&VectorWalk, &'a [Placement]),
    (blocks, produced): (&Blocks, Option<&Produced>),
    build: &mut Build,
) -> Result<(Vec<Array<'a>>, Vec<Init>), LowerError> {
    let mut arrays = Vec::with_capacity(reduction.arrays.len());
    let mut inits = Vec::new();
    // Operands are numbered with all arrays before all inits.
    let sources = reduction.arrays.iter();
    let sources: Vec<Stored<'a>> =
        sources.map(|source| Stored::of(source, walk, blocks, build)).collect();
    for (place, (placement, source)) in placements.iter().zip(sources).enumerate() {
        let init = produced.and_then(|produced| produced.inits.get(place)).cloned();
        match init {
            Some(value) => inits.push(Init { value, copied: None }),
            None if selection.is_some() => {}
            None => inits.push(Init::of(reduction, place, target, build)?),
        }
        arrays.push(Array::of(reduction, place, placement, (source, ends), blocks, build)?);
    }
    Ok((arrays, inits))
}

pub(super) struct Fused<'a> {
    pub(super) reduction: &'a ReductionSpec,
    pub(super) walk: &'a VectorWalk,
    pub(super) blocks: Blocks,
    pub(super) arrays: Vec<Array<'a>>,
    /// The inits, if the pass reduces.
    pub(super) inits: Vec<Init>,
    pub(super) state: AccumulatorState,
    /// The state of the selection, if the pass selects elements and does not reduce.
    pub(super) selected: Option<Selected>,
    /// Buffers for partial results if a result has several blocks: those of the last few blocks,
    /// those of the few before these, and so on.
    waiting: Vec<Vec<BufferId>>,
    pub(super) longest: u64,
    /// The computed elements, if the kernel computes them.
    pub(super) produced: Option<Produced>,
}

impl<'a> Fused<'a> {
    fn pass(
        task: Task<'a>,
        target: &Target,
        (walk, placements): (&'a VectorWalk, &'a [Placement]),
        size: Size,
        build: &mut Build,
    ) -> Result<Pass, LowerError> {
        let Task { reduction, producer, selection, ends } = task;
        let whole = match ends {
            Ends::Written => target.vector_memory_bytes / 4,
            Ends::Kept => u64::MAX,
        };
        let sizes = Sizes { whole, window: block_bytes(target) };
        let results: Vec<(&Placement, u64)> = placements
            .iter()
            .zip(&reduction.results)
            .map(|(placement, shape)| (placement, shape.element_type.bytes().into()))
            .collect();
        let arrange = |kept| Arranged::of(kept, &results, sizes);
        let mut index = |outer: &super::walk::Outer, grid: bool| {
            build.index(&format!("{}{}", if grid { "b" } else { "d" }, outer.dim))
        };
        let mut blocks = Blocks::of(walk, &reduction.axes, size.elements, arrange, &mut index)?;
        if reduction.rounds {
            let mut within = Vec::new();
            for l in std::mem::take(&mut blocks.within) {
                let longest = if l.reduced { size.longest } else { u64::MAX };
                within.extend(chain::cut(l, longest, |outer| index(outer, false))?);
            }
            blocks.within = within;
        }
        let produced = producer.map(|p| (p.produce)(build, walk, &blocks)).transpose()?;
        let (arrays, inits) =
            buffers(task, target, (walk, placements), (&blocks, produced.as_ref()), build)?;
        let state = AccumulatorState::of(reduction, target, walk.vector, build)?;
        let selected = selection.map(|selection| selection.selected(&state, build));
        let mut fused = Self {
            reduction,
            walk,
            blocks,
            arrays,
            inits,
            state,
            selected: selected.transpose()?,
            waiting: Vec::new(),
            longest: size.longest,
            produced,
        };
        fused.waiting = fused.waiting_buffers(build);
        let statements = fused.body(build)?;
        let results = fused.arrays.iter().map(|array| array.results).collect();
        Ok(Pass { statements, results })
    }

    /// One set of buffers for every level of a tree over the blocks of a result.
    fn waiting_buffers(&self, build: &mut Build) -> Vec<Vec<BufferId>> {
        let steps = self.reduced_steps();
        let kept = self.blocks.within.iter().filter(|l| !l.reduced);
        let len = kept.map(|l| l.outer.count).fold(self.walk.vector, u64::saturating_mul);
        let mut levels = Vec::new();
        let mut reach = 1u64;
        while reach < steps {
            levels.push(self.state.buffers(build, "partial", len));
            reach = if self.reduction.rounds { reach.saturating_mul(self.longest) } else { steps };
        }
        levels
    }

    /// Returns the number of blocks per result.
    fn reduced_steps(&self) -> u64 {
        let reduced = self.blocks.grid.iter().filter(|l| l.reduced);
        reduced.map(|l| l.outer.count).fold(1, u64::saturating_mul)
    }

    fn body(&self, build: &mut Build) -> Result<Statements, LowerError> {
        let mut body = Statements::new();
        let copied = || self.inits.iter().filter_map(|init| init.copied);
        for (from, to) in copied() {
            let (to, from) = (start(to), start(from));
            body.push(Statement::Copy { to, from, len: Expr::Constant(1) });
        }
        body.extend(copied().map(|(_, here)| Statement::Wait(here)));
        let mut blocks: Vec<Block> = self.arrays.iter().filter_map(|a| self.copied(a)).collect();
        if let Some(produced) = &self.produced {
            blocks.extend(produced.streams.iter().cloned());
        }
        let mut work = self.block(build)?;
        if self.blocks.windowed > 0 {
            work.extend(self.write_windows(build)?);
        }
        if self.blocks.grid.is_empty() {
            // With a single block no work can overlap with its copy.
            body.extend(copied_at_once(&blocks));
            body.extend(work);
        } else {
            let grid = self.blocks.grid.iter().map(|l| (l.index, l.outer.count)).collect();
            body.extend(streamed(grid, blocks, work));
        }
        if self.blocks.windowed == 0 {
            for array in &self.arrays {
                let Some(output) = array.output else { continue };
                let len = signed(array.placement.len())?.into();
                let (to, from) = (start(output), start(array.results));
                body.push(Statement::Copy { to, from, len });
            }
        }
        Ok(body)
    }

    fn copied(&self, array: &Array<'_>) -> Option<Block> {
        let Stored::Memory { input, block } = array.source else { return None };
        let from = BufferAddress { buffer: input, at: self.blocks.start.clone() };
        Some(Block { to: start(block), from, len: self.blocks.len.clone(), each: Vec::new() })
    }

    /// Returns the statements that process one block.
    fn block(&self, build: &mut Build) -> Result<Statements, LowerError> {
        let kept: Vec<&Loop> = self.blocks.within.iter().filter(|l| !l.reduced).collect();
        let reduced: Vec<&Loop> = self.blocks.within.iter().filter(|l| l.reduced).collect();
        if let Some(selected) = &self.selected {
            let body = self.select(selected, &reduced, build)?;
            return Ok(self.nest(&kept, body));
        }
        let total = self.state.registers(build, "a");
        let mut inner = self.state.identities(&total);
        inner.extend(self.accumulate(&reduced, &total, build)?);
        let mut body: Statements = match &self.produced {
            Some(produced) => produced.block.clone(),
            None => Statements::new(),
        };
        let Some(last) = self.waiting.first() else {
            inner.extend(self.finish(&total, build)?);
            body.extend(self.nest(&kept, inner));
            return Ok(body);
        };
        let at = self.waiting_at();
        let before = self.state.registers(build, "p");
        inner.extend(self.add(build, &before, &total, last)?);
        let step = Loop::number(self.blocks.grid.iter().filter(|l| l.reduced))?;
        let mut first = self.state.identities(&total);
        for level in &self.waiting {
            first.extend(self.state.stores(build, &total, level, &at)?);
        }
        body.push(when(step.clone(), Expr::ZERO, around(&kept, first)));
        let mut reach = self.longest;
        for levels in self.waiting.windows(2) {
            let [low, high] = levels else { continue };
            let mut up = self.state.loads(build, &total, low, &at)?;
            up.extend(self.add(build, &before, &total, high)?);
            up.extend(self.state.identities(&total));
            up.extend(self.state.stores(build, &total, low, &at)?);
            let group = step.clone().remainder(signed(reach)?);
            body.push(when(group, Expr::ZERO, around(&kept, up)));
            reach = reach.saturating_mul(self.longest);
        }
        body.extend(self.nest(&kept, inner));
        let mut levels = self.waiting.iter();
        let mut end = match levels.next() {
            Some(level) => self.state.loads(build, &total, level, &at)?,
            None => Statements::new(),
        };
        for level in levels {
            end.extend(self.state.loads(build, &before, level, &at)?);
            end.push(self.state.combine(&total, &before, &total));
        }
        end.extend(self.finish(&total, build)?);
        let steps = signed(self.reduced_steps())?;
        body.push(when(step, steps.saturating_sub(1).into(), around(&kept, end)));
        Ok(body)
    }

    /// Nests statements in loops, with the values that are computed in each loop.
    pub(super) fn nest(&self, loops: &[&Loop], body: Statements) -> Statements {
        Produced::nest(self.produced.as_ref(), loops, body)
    }

    /// Combines registers with the partial results.
    fn add(
        &self,
        build: &mut Build,
        before: &Registers,
        registers: &Registers,
        level: &[BufferId],
    ) -> Result<Statements, LowerError> {
        let at = self.waiting_at();
        let mut statements = self.state.loads(build, before, level, &at)?;
        statements.push(self.state.combine(before, before, registers));
        statements.extend(self.state.stores(build, before, level, &at)?);
        Ok(statements)
    }

    /// Returns the address at which partial results of a block wait for those of other blocks.
    fn waiting_at(&self) -> Expr {
        let mut at = Expr::ZERO;
        let mut stride = i64::try_from(self.walk.vector).unwrap_or(i64::MAX);
        for l in self.blocks.within.iter().rev().filter(|l| !l.reduced) {
            at = Expr::from(l.index) * stride + at;
            stride = stride.saturating_mul(i64::try_from(l.outer.count).unwrap_or(i64::MAX));
        }
        at
    }
}

/// Copies blocks and waits for the copies at once.
pub(crate) fn copied_at_once(blocks: &[Block]) -> Statements {
    let around = |block: &Block| {
        let Block { to, from, len, each } = block.clone();
        let copy = vec![Statement::Copy { to, from, len }];
        let runs = each.into_iter().rev();
        runs.fold(copy, |body, (index, count)| vec![Statement::For { index, count, body }])
    };
    let mut statements: Statements = blocks.iter().flat_map(around).collect();
    statements.extend(blocks.iter().map(|block| Statement::Wait(block.to.buffer)));
    statements
}

/// Loops over blocks; plain loops if there is nothing to copy.
pub(crate) fn streamed(
    grid: Vec<(IndexId, u64)>,
    blocks: Vec<Block>,
    body: Statements,
) -> Statements {
    if !blocks.is_empty() {
        return vec![Statement::Stream { grid, blocks, body }];
    }
    grid.into_iter().rev().fold(body, |body, (index, count)| {
        let count = i64::try_from(count).unwrap_or(i64::MAX).into();
        vec![Statement::For { index, count, body }]
    })
}

pub(super) fn start(buffer: BufferId) -> BufferAddress {
    BufferAddress { buffer, at: Expr::ZERO }
}

pub(super) fn when(a: Expr, b: Expr, body: Statements) -> Statement {
    Statement::When { equal: [a, b], body }
}

/// Nests statements in loops, the first outermost.
pub(super) fn around(loops: &[&Loop], body: Statements) -> Statements {
    loops
        .iter()
        .rev()
        .fold(body, |body, l| vec![Statement::For { index: l.index, count: l.count.clone(), body }])
}
