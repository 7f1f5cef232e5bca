//! Computes the outputs of a kernel, vector by vector and block by block.

use tilewright_ir::{ElementType, InstId};
use tilewright_target::Alignment;

use super::emit::{Emitter, Home};
use super::load::CopiedRegion;
use super::scope::{DimExpr, Scope};
use super::total::Total;
use super::{Fusion, Homes, array};
use crate::codegen::reduce::blocks::{Blocks, Loop, block_bytes, signed};
use crate::codegen::reduce::chain;
use crate::codegen::reduce::fused::{copied_at_once, streamed};
use crate::codegen::reduce::state::Statements;
use crate::codegen::reduce::walk::{Outer, VectorWalk};
use crate::codegen::reduce::window::Arranged;
use crate::error::{LowerError, NoRoom, TooLarge, Unsupported, internal};
use crate::kernel::build::Build;
use crate::kernel::{Block, BufferAddress, BufferId, IndexId, Mask, Space, Statement};

/// A block that grows to reduce reads takes at most vector memory divided by this number.
const MOST_OF_ROOM: u64 = 4;

/// Computes all outputs and writes them to main memory. Outputs with the same layout share one
/// walk.
pub(super) fn written(
    fusion: &Fusion<'_>,
    build: &mut Build,
    homes: &Homes,
) -> Result<Statements, LowerError> {
    let Fusion { module, target, group, .. } = fusion;
    let mut walks: Vec<OutputWalk<'_>> = Vec::new();
    for &id in &group.outputs {
        let shape = array(module, id)?;
        if shape.dims().contains(&0) {
            build.buffer("y", Space::Out, shape.element_type, 0);
            continue;
        }
        let walk = VectorWalk::in_vectors(target, shape)?;
        let to = build.buffer("y", Space::Out, shape.element_type, walk.len);
        match walks.iter_mut().find(|shared| shared.walk == walk) {
            Some(shared) => shared.outputs.push((id, to)),
            None => walks.push(OutputWalk { fusion, walk, outputs: vec![(id, to)], homes }),
        }
    }
    if walks.len() > 1 && !fusion.rows.is_empty() {
        return Err(Unsupported::Unlike.into());
    }
    let mut body = Statements::new();
    for walk in &walks {
        let made = walk.sized(build)?;
        if walks.len() > 1 && made.is_streamed {
            return Err(Unsupported::Unlike.into());
        }
        body.extend(made.body);
    }
    Ok(body)
}

/// Outputs with the same layout, which share one walk.
struct OutputWalk<'a> {
    fusion: &'a Fusion<'a>,
    walk: VectorWalk,
    /// Each output with the buffer that it is written to.
    outputs: Vec<(InstId, BufferId)>,
    homes: &'a Homes,
}

/// Generated statements, and the dims along which a small array varies.
struct Made {
    body: Statements,
    varies: Vec<usize>,
    /// Whether there are several blocks.
    is_streamed: bool,
    /// Bytes read by all blocks together, without what is read while it is written, because that
    /// amount does not depend on the block size.
    read: u64,
}

impl OutputWalk<'_> {
    /// Tries several block sizes and returns the statements that read the fewest bytes; among
    /// equals, those with the smallest block.
    fn sized(&self, build: &mut Build) -> Result<Made, LowerError> {
        let Fusion { module, target, group, .. } = self.fusion;
        let main = |id: &&InstId| matches!(self.homes.get(id), Some(Home::Main(_)));
        let read = group.inputs.iter().filter(main);
        let touched = read.chain(self.outputs.iter().map(|(id, _)| id));
        let element = |id: &InstId| {
            module.array_shape(*id).map_or(1, |shape| u64::from(shape.element_type.bytes()))
        };
        let bytes: u64 = touched.map(element).sum();
        let room = target.vector_memory_bytes;
        let mut elements = block_bytes(target) / bytes.max(1);
        let mut best = self.tried(build, elements)?;
        while !fits(&best.0, room) {
            if elements <= self.walk.vector {
                return Err(NoRoom::Results.into());
            }
            elements /= 2;
            best = self.tried(build, elements)?;
        }
        let mut is_cut = best.1.is_streamed && best.1.read > 0;
        while is_cut {
            elements = elements.saturating_mul(2);
            let Ok(tried) = self.tried(build, elements) else { break };
            is_cut = tried.1.is_streamed && fits(&tried.0, room / MOST_OF_ROOM);
            if fits(&tried.0, room / MOST_OF_ROOM) && tried.1.read < best.1.read {
                best = tried;
            }
        }
        let (after, made) = best;
        *build = after;
        Ok(made)
    }

    /// Generates the statements for blocks of about `elements` elements.
    fn tried(&self, build: &Build, elements: u64) -> Result<(Build, Made), LowerError> {
        let mut after = build.clone();
        let made = self.made(&mut after, elements, &[])?;
        if made.varies.is_empty() {
            return Ok((after, made));
        }
        // Gathers from a small array belong in the outermost loops along which that array
        // varies.
        let mut after = build.clone();
        let made = self.made(&mut after, elements, &made.varies)?;
        Ok((after, made))
    }

    fn made(&self, build: &mut Build, elements: u64, first: &[usize]) -> Result<Made, LowerError> {
        let Fusion { target, .. } = self.fusion;
        let axes = self.axes()?;
        let blocks = self.blocks(build, &axes, elements)?;
        let (mut kept, reduced) = self.within(build, &blocks)?;
        // Put the loops along which small arrays vary first.
        kept.sort_by_key(|l| !first.contains(&l.outer.dim));
        let (kept, reduced): (Vec<&Loop>, Vec<&Loop>) =
            (kept.iter().collect(), reduced.iter().collect());
        let all: Vec<&Loop> = kept.iter().chain(&reduced).copied().collect();
        let scope = Scope::of(&self.walk, &blocks.grid, &all)?;
        let dims = scope.dims();
        let mut emitter = Emitter::new(self.fusion, self.homes.clone(), scope);
        let depth = kept.len();
        self.reduce_rows(build, &mut emitter, &reduced, depth, &axes)?;
        let mut results = Vec::new();
        for &(output, _) in &self.outputs {
            results.push(emitter.value(build, output, &dims)?);
        }
        let mut stores = Vec::new();
        let mut ends = Statements::new();
        for (&(output, to), from) in self.outputs.iter().zip(results) {
            let element_type = emitter.element_type(output)?;
            let place = self.stored(build, &blocks, &all, (element_type, to), &mut ends)?;
            stores.push((place, from));
        }
        let mask = match target.alignment {
            Alignment::Tiles => Mask::new(),
            Alignment::None => emitter.scope.whole_mask()?,
        };
        let inner = emitter.levels.last_mut().ok_or_else(|| internal("loops without levels"))?;
        for (to, from) in stores {
            inner.before.push(Statement::Store { to, from, mask: mask.clone() });
        }
        let row = emitter.nest(&reduced, depth);
        emitter.levels[depth].before.extend(row);
        let nested = emitter.nest(&kept, 0);
        let mut body = emitter.take(0, nested);
        body.extend(ends);
        let varies = self.varies(&emitter, &kept);
        let read = read(&blocks, &emitter.regions);
        let body = self.streamed(&blocks, &emitter.regions, body);
        Ok(Made { body, varies, is_streamed: !blocks.grid.is_empty(), read })
    }

    /// Returns the loops inside a block, over kept dims and over reduced dims.
    fn within(
        &self,
        build: &mut Build,
        blocks: &Blocks,
    ) -> Result<(Vec<Loop>, Vec<Loop>), LowerError> {
        let rounds = self.fusion.rows.iter().any(|(_, reduction)| reduction.rounds);
        let (mut kept, mut reduced) = (Vec::new(), Vec::new());
        for l in blocks.within.iter().cloned() {
            if !l.reduced {
                kept.push(l);
            } else if rounds {
                let index = |outer: &Outer| build.index(&format!("d{}", outer.dim));
                reduced.extend(chain::cut(l, chain::LONGEST, index)?);
            } else {
                reduced.push(l);
            }
        }
        Ok((kept, reduced))
    }

    /// Reduces rows that lie along the rows of the outputs, inside the first `depth` loops.
    fn reduce_rows(
        &self,
        build: &mut Build,
        emitter: &mut Emitter<'_>,
        reduced: &[&Loop],
        depth: usize,
        axes: &[usize],
    ) -> Result<(), LowerError> {
        let Fusion { module, rows, .. } = self.fusion;
        let dims = emitter.scope.dims();
        for (id, reduction) in rows {
            let &[operand, _] = module.operands(*id) else {
                return Err(internal("a reduce of other operands than an array and an init"));
            };
            let total = Total::begin(emitter, build, reduction, depth)?;
            let levels = [depth, depth + reduced.len()];
            total.combine(emitter, build, reduction, (operand, &dims), levels)?;
            let row = emitter.nest(reduced, depth);
            emitter.levels[depth].before.extend(row);
            emitter.leave(depth);
            let done = total.end(emitter, build, reduction, *id, depth)?;
            let keeps = dims.iter().enumerate().filter(|(dim, _)| !axes.contains(dim));
            let index: Vec<DimExpr> = keeps.map(|(_, expr)| expr.clone()).collect();
            emitter.rows.insert(*id, (index, done));
        }
        Ok(())
    }

    /// Returns the dims that all reductions along rows reduce.
    fn axes(&self) -> Result<Vec<usize>, LowerError> {
        let mut axes = self.fusion.rows.iter().map(|(_, reduction)| &reduction.axes);
        let Some(first) = axes.next() else { return Ok(Vec::new()) };
        if axes.any(|other| other != first) {
            Err(Unsupported::Unlike.into())
        } else {
            Ok(first.clone())
        }
    }

    fn blocks(
        &self,
        build: &mut Build,
        axes: &[usize],
        elements: u64,
    ) -> Result<Blocks, LowerError> {
        let mut index = |outer: &Outer, grid: bool| {
            build.index(&format!("{}{}", if grid { "b" } else { "d" }, outer.dim))
        };
        // A block holds whole rows, from the major-most loop over a reduced dim on.
        let reduced = |outer: &&Outer| axes.contains(&outer.dim);
        let row = self.walk.outer.iter().find(reduced);
        let row = row.map_or(0, |outer| outer.stride.saturating_mul(outer.count));
        let blocks = Blocks::of(&self.walk, axes, elements.max(row), Arranged::whole, &mut index)?;
        if blocks.grid.iter().any(|l| l.reduced) { Err(NoRoom::Results.into()) } else { Ok(blocks) }
    }

    /// Stores a vector of each output in its block, and writes out the finished blocks.
    fn stored(
        &self,
        build: &mut Build,
        blocks: &Blocks,
        loops: &[&Loop],
        (element_type, output): (ElementType, BufferId),
        ends: &mut Statements,
    ) -> Result<BufferAddress, LowerError> {
        let several = !blocks.grid.is_empty();
        let times = if several { 2 } else { 1 };
        let len = blocks.most.max(self.walk.vector).checked_mul(times);
        let len = len.ok_or(TooLarge::Elements)?;
        let here = build.buffer("ys", Space::Vmem, element_type, len);
        let number = Loop::number(blocks.grid.iter())?;
        let slot = number.remainder(2) * signed(blocks.most)?;
        let at = slot.clone() + Blocks::address(loops.iter().copied())?;
        if several {
            // The next block overwrites the previous one, so its copy must be finished.
            ends.push(Statement::Wait(here));
        }
        let to = BufferAddress { buffer: output, at: blocks.start.clone() };
        let copied = BufferAddress { buffer: here, at: slot };
        ends.push(Statement::Copy { to, from: copied, len: blocks.len.clone() });
        Ok(BufferAddress { buffer: here, at })
    }

    /// Returns the dims along which gathered values vary. Loops over other dims need not gather
    /// again.
    fn varies(&self, emitter: &Emitter<'_>, kept: &[&Loop]) -> Vec<usize> {
        let mut dims = Vec::new();
        for at in &emitter.gathers {
            let named: Vec<IndexId> = at.indices();
            let along = kept.iter().filter(|l| named.contains(&l.index)).map(|l| l.outer.dim);
            let along: Vec<usize> = along.collect();
            if along.len() < kept.len() {
                dims.extend(along);
            }
        }
        dims
    }

    fn streamed(&self, blocks: &Blocks, regions: &[CopiedRegion], body: Statements) -> Statements {
        let copied: Vec<Block> = regions.iter().map(|region| region.block.clone()).collect();
        if blocks.grid.is_empty() {
            let mut statements = copied_at_once(&copied);
            statements.extend(body);
            return statements;
        }
        let grid = blocks.grid.iter().map(|l| (l.index, l.outer.count)).collect();
        streamed(grid, copied, body)
    }
}

fn fits(build: &Build, room: u64) -> bool {
    let bytes = build.clone().finish(Statements::new()).vmem_bytes();
    bytes.is_some_and(|bytes| bytes <= room)
}

/// Bytes read for all regions other than the block itself.
fn read(blocks: &Blocks, regions: &[CopiedRegion]) -> u64 {
    let is_block = |block: &Block| {
        block.each.is_empty() && block.from.at == blocks.start && block.len == blocks.len
    };
    let others = regions.iter().filter(|region| !is_block(&region.block));
    let bytes = others.map(|region| region.bytes).fold(0, u64::saturating_add);
    blocks.grid.iter().fold(bytes, |bytes, l| bytes.saturating_mul(l.outer.count))
}
