//! The cost model: estimates the cycles and the memory traffic of an instruction on a target.
//!
//! The model describes a backend that fuses. An elementwise op, a broadcast, an iota or a scalar constant is *fused*:
//! it is computed where it is used, and never stored. Every other result is *stored*: it crosses main memory once each
//! way, unless it is small enough to stay in vector memory. A reader loads stored operands vector by vector. A reader
//! that cannot fuse (a tuple, or a contraction on a target without `fuses_contractions`) first has its fused operands
//! stored.
//!
//! So the cost of an instruction depends only on itself, the computation that it reduces by and its direct operands.
//! Passes ask [`CostModel`] what a rewrite costs before they make it. `ledger.rs` adds what depends on the whole
//! module: arrays that are read again, turns of loops, and waits for main memory. `parts.rs` has what reads a part.

mod amount;
mod calls;
pub(crate) mod columns;
pub(crate) mod contraction;
mod devices;
mod extra_costs;
mod ledger;
mod memo;
mod memory;
mod module;
mod parts;
mod readers;
mod ready;
pub mod reductions;
mod residency;
mod roles;
pub(crate) mod shared;
mod shared_stores;
mod sweep_count;
mod sweeps;
mod total;
mod unshared_readers;
mod window;

use smallvec::SmallVec;
use tilewright_ir::{ArrayShape, InstId, Module, Op, Opcode, Patch, Shape, Value};
use tilewright_target::{Footprint, MoveKind, ReshapeCost, Target};

use crate::analysis::reduce::is_plain;

pub use amount::Cost;
use calls::hands_on_stored;
use contraction::contraction_flops;
pub use ledger::Ledger;
pub use memo::Memo;
pub use memory::{MemoryUse, StoredArray};
pub use module::{
    InstructionCost, ModuleCosts, instruction_costs, memory_sweeps, memory_use, module_cost,
    peak_live_bytes, run_costs,
};
use parts::takes_parts;
pub use residency::Residency;
pub use sweep_count::SweepCount;

/// The most instructions that are visited to decide whether a reshape is fused; canonicalisation merges chains.
const LOOKED_THROUGH: usize = 4;

/// A shape, and the memory that a value of this shape occupies.
#[derive(Clone, Copy, Debug)]
pub struct SizedShape<'a> {
    /// The shape.
    pub shape: &'a Shape,
    /// The memory that a value of the shape occupies.
    pub footprint: Footprint,
}

/// The properties of an operand that the cost of its user depends on.
#[derive(Clone, Copy, Debug)]
pub struct Operand<'a> {
    /// The operand's shape and footprint.
    pub value: SizedShape<'a>,
    /// Whether the operand is computed where it is used, and not stored.
    pub fused: bool,
    /// Whether the operand is a fused reshape that changes the minor dim. Its users must then split
    /// the index of each element.
    pub changes_minor: bool,
}

/// The cost model of one target.
#[derive(Clone, Copy, Debug)]
pub struct CostModel<'a> {
    /// The target whose costs are modelled.
    pub target: &'a Target,
    memo: &'a Memo,
}

impl<'m> CostModel<'m> {
    /// Returns the cost model of a target. `memo` stores results for this target, and must not have
    /// been used for another one.
    pub fn new(target: &'m Target, memo: &'m Memo) -> Self {
        Self { target, memo }
    }

    /// Returns a shape with its footprint.
    pub fn with_footprint<'a>(&self, shape: &'a Shape) -> SizedShape<'a> {
        SizedShape { shape, footprint: self.footprint(shape) }
    }

    /// Computes the memory that a value of a shape occupies: for a tuple, the sum over its arrays.
    pub fn footprint(&self, shape: &Shape) -> Footprint {
        match shape.as_array().and_then(|array| self.without_ones(array)) {
            Some(array) => self.memo.footprint(self.target, &array),
            None => {
                let footprints = shape.leaves().into_iter().map(|leaf| match leaf {
                    Shape::Array(array) => self.memo.footprint(self.target, array),
                    other => self.target.shape_footprint(other),
                });
                footprints.fold(Footprint::default(), |mut sum, one| {
                    sum += one;
                    sum
                })
            }
        }
    }

    /// Returns an array without its dims of size 1. `None` if it has no such dims, is dynamic or
    /// not row-major, or is too large to stay in vector memory. A backend gives a small array a
    /// layout in which these dims take no room, so a reshape that adds or drops them moves nothing.
    /// Whether a large array has such a layout depends on its other readers.
    fn without_ones(&self, array: &ArrayShape) -> Option<ArrayShape> {
        if !array.dims().contains(&1) || !is_plain(array) {
            return None;
        }
        let dims = array.dims().iter().copied().filter(|&dim| dim != 1);
        let large = ArrayShape::new(array.element_type, dims);
        self.holds_on_chip(self.memo.footprint(self.target, &large).padded_bytes).then_some(large)
    }

    /// Returns how a reshape moves elements, and how many vectors it realigns. A reshape of a small
    /// array that only adds or drops dims of size 1 moves nothing.
    fn reshape_cost(&self, from: &ArrayShape, to: &ArrayShape) -> ReshapeCost {
        let [small_from, small_to] = [from, to].map(|array| self.without_ones(array));
        let (from, to) = (small_from.as_ref().unwrap_or(from), small_to.as_ref().unwrap_or(to));
        self.memo.reshape(self.target, from, to)
    }

    /// Returns an instruction of a module as an operand.
    pub fn operand<'a>(&self, module: &'a Module, id: InstId) -> Operand<'a> {
        let shape = module.shape(id);
        let fused = self.is_fused(module, id);
        let source = module.operands(id).first().map(|&source| module.shape(source));
        let changes_minor = fused && changes_minor(module.op(id), source, shape);
        Operand { value: self.with_footprint(shape), fused, changes_minor }
    }

    /// Returns a value that a patch reads or adds as an operand. `fused` says, for each instruction
    /// that the patch adds, whether it is fused.
    pub fn planned_operand<'a>(
        &self,
        module: &'a Module,
        patch: &'a Patch,
        fused: &[bool],
        value: Value,
    ) -> Operand<'a> {
        let index = match value {
            Value::Old(id) => return self.operand(module, id),
            Value::New(index) => index,
        };
        let shape = patch.shape(module, value);
        let fused = fused.get(index).copied().unwrap_or(false);
        let planned = patch.planned().get(index).filter(|_| fused);
        let changes_minor = planned.is_some_and(|planned| {
            let source = planned.operands.first().map(|&source| patch.shape(module, source));
            changes_minor(&planned.op, source, shape)
        });
        Operand { value: self.with_footprint(shape), fused, changes_minor }
    }

    /// Checks whether an instruction is fused: its result is computed where it is used, and never
    /// stored.
    pub fn fuses(&self, op: &Op, result: &Shape, operands: &[Operand<'_>]) -> bool {
        match op.opcode() {
            Opcode::Broadcast | Opcode::Iota => true,
            Opcode::Constant => is_one(result),
            Opcode::Slice => self.target.fuses_slices,
            Opcode::Reshape => {
                let operand = operands.first();
                operand.is_some_and(|o| o.fused && !self.realigns(o.value.shape, result))
            }
            _ => op.keeps_indices(),
        }
    }

    /// Computes the cost of an instruction from its op, result and operands. The cost leaves out
    /// the computations that the instruction calls, and the cycles that [`Self::in_module`] adds.
    pub fn instruction(&self, op: &Op, result: SizedShape<'_>, operands: &[Operand<'_>]) -> Cost {
        match op {
            Op::Parameter(_) | Op::GetTupleElement(_) | Op::AfterAll | Op::Bitcast => {
                Cost::default()
            }
            Op::Constant(_) if self.fuses(op, result.shape, operands) => Cost::default(),
            Op::Constant(_) => self.main_memory_read(result),
            _ if hands_on_stored(op) => self.store_fused_cost(operands),
            Op::Reshape(_) => self.reshape(result, operands),
            Op::Transpose(attrs) => self.transpose(result, operands, &attrs.dimensions),
            Op::Copy => self.copy(result, operands),
            Op::Reduce(attrs) => self.reduce(result, operands, &attrs.dimensions),
            Op::ReduceWindow(attrs) => self.reduce_window(result, operands, &attrs.window),
            Op::Dot(_) | Op::Convolution(_) => {
                let mut cost = if self.target.fuses_contractions {
                    self.load_and_store(result, operands)
                } else {
                    self.unfused_cost(result, operands)
                };
                cost.flops = contraction_flops(op, result.shape, operands);
                cost.cycles += as_f64(cost.flops) / self.target.matmul_flops_per_cycle;
                cost
            }
            Op::Broadcast(attrs) => self.broadcast(result, operands, &attrs.dimensions),
            _ if takes_parts(op.opcode()) => self.parts(op, result, operands),
            Op::Iota(_) => Cost { flops: 0, ..self.compute(result, 1.0) },
            _ if op.is_sharding_constraint() => self.loads(operands),
            _ if op.opcode().is_elementwise() => {
                let mut cost = self.loads(operands);
                let cycles = if op.opcode().is_transcendental() {
                    self.target.transcendental_cycles * f64::from(self.target.vector_alu_slots)
                } else {
                    1.0
                };
                cost += self.compute(result, cycles);
                cost
            }
            _ => self.unfused_cost(result, operands),
        }
    }

    /// Computes the sum of the costs of all instructions that a patch adds.
    pub fn patch(&self, module: &Module, patch: &Patch) -> Cost {
        self.patch_costs(module, patch).0.into_iter().sum()
    }

    /// Computes the cost of each instruction that a patch adds, and whether each is fused.
    pub fn patch_costs(&self, module: &Module, patch: &Patch) -> (Vec<Cost>, Vec<bool>) {
        let mut fused: Vec<bool> = Vec::with_capacity(patch.planned().len());
        let mut costs = Vec::with_capacity(patch.planned().len());
        for planned in patch.planned() {
            let operands: SmallVec<[Operand<'_>; 3]> = planned
                .operands
                .iter()
                .map(|&value| self.planned_operand(module, patch, &fused, value))
                .collect();
            fused.push(match planned.operands.as_slice() {
                // Decide as `is_fused` will once the reshape is in the module, where it is the
                // first of the visited instructions.
                [Value::Old(source)] if planned.op.opcode() == Opcode::Reshape => {
                    let from = module.shape(*source);
                    !self.realigns(from, &planned.shape)
                        && self.is_fused_within(module, *source, LOOKED_THROUGH - 1)
                }
                _ => self.fuses(&planned.op, &planned.shape, &operands),
            });
            let result = self.with_footprint(&planned.shape);
            costs.push(self.in_module(module, &planned.op, result, &operands));
        }
        (costs, fused)
    }

    /// Computes the cost of an instruction of a module.
    pub fn of(&self, module: &Module, id: InstId) -> Cost {
        let operands: SmallVec<[Operand<'_>; 4]> =
            module.operands(id).iter().map(|&o| self.operand(module, o)).collect();
        self.in_module(module, module.op(id), self.with_footprint(module.shape(id)), &operands)
    }

    /// Computes the cost of an instruction whose computations are in `module`:
    /// `instruction + reduce_excess + idle_cycles`, at least that of an op that is [known to be slow](Target::slow_op).
    /// For a reduce, these add the measured cycles beyond its vector operations ([`Target::reductions`]), and the cycles
    /// that idle processors cost. Both are 0 for other ops.
    pub fn in_module(
        &self,
        module: &Module,
        op: &Op,
        result: SizedShape<'_>,
        operands: &[Operand<'_>],
    ) -> Cost {
        let mut cost = self.instruction(op, result, operands);
        cost.cycles += self.reduce_excess(module, op, operands) + self.idle_cycles(op, operands);
        if let Some(slow) = self.target.slow_op(op.opcode()) {
            let moved = operands.iter().map(|o| o.value).chain([result]);
            let copy: f64 = moved.map(|value| self.crossing(value.footprint)).sum();
            cost.cycles = cost.cycles.max(slow.times * copy);
        }
        cost
    }

    /// Checks whether an instruction of a module is fused.
    pub fn is_fused(&self, module: &Module, id: InstId) -> bool {
        self.is_fused_within(module, id, LOOKED_THROUGH)
    }

    fn is_fused_within(&self, module: &Module, mut id: InstId, steps: usize) -> bool {
        for _ in 0..steps {
            let (op, shape) = (module.op(id), module.shape(id));
            let (Op::Reshape(_), [operand]) = (op, module.operands(id)) else {
                return self.fuses(op, shape, &[]);
            };
            if self.realigns(module.shape(*operand), shape) {
                return false;
            }
            id = *operand;
        }
        false
    }

    fn reshape(&self, result: SizedShape<'_>, operands: &[Operand<'_>]) -> Cost {
        let (Some(operand), Some(to)) = (operands.first(), result.shape.as_array()) else {
            return Cost::default();
        };
        let Some(from) = operand.value.shape.as_array() else { return Cost::default() };
        let moved = self.reshape_cost(from, to);
        // If nothing moves, the reshape of a stored value is only another name for it. A reshape of
        // a fused value that changes the minor dim costs as much as one that keeps tiles: either
        // its users split the index of each element, or the value is stored to avoid that.
        let changes_minor = large_minor(from) != large_minor(to);
        let breaks_loop = moved.kind == MoveKind::Free && operand.fused && changes_minor;
        let kind = if breaks_loop { MoveKind::KeepsTiles } else { moved.kind };
        self.move_cost(kind, moved.realigned_vectors, result, operands)
    }

    fn transpose(
        &self,
        result: SizedShape<'_>,
        operands: &[Operand<'_>],
        permutation: &[i64],
    ) -> Cost {
        let from = operands.first().and_then(|o| o.value.shape.as_array());
        let (Some(from), Some(to)) = (from, result.shape.as_array()) else {
            return Cost::default();
        };
        let moved = self.memo.transpose(self.target, [from, to], permutation);
        match moved.kind {
            // Unlike a reshape that keeps tiles, such a transpose moves whole tiles.
            MoveKind::KeepsTiles => self.unfused_cost(result, operands),
            kind => self.move_cost(kind, moved.realigned_vectors, result, operands),
        }
    }

    /// Computes the cost of a copy. A copy into another layout moves elements as a transpose does.
    fn copy(&self, result: SizedShape<'_>, operands: &[Operand<'_>]) -> Cost {
        let layout = |shape: &Shape| shape.as_array().map(ArrayShape::layout_or_default);
        let from = operands.first().and_then(|operand| layout(operand.value.shape));
        match from.zip(layout(result.shape)) {
            Some((from, to)) if from.minor_to_major != to.minor_to_major => {
                let same: SmallVec<[i64; 6]> = (0..).take(to.rank()).collect();
                self.transpose(result, operands, &same)
            }
            _ => self.unfused_cost(result, operands),
        }
    }

    fn move_cost(
        &self,
        kind: MoveKind,
        realigned_vectors: u64,
        result: SizedShape<'_>,
        operands: &[Operand<'_>],
    ) -> Cost {
        match kind {
            MoveKind::Free => Cost::default(),
            MoveKind::KeepsTiles => {
                let vectors = as_f64(result.footprint.vectors);
                Cost { cycles: vectors * self.target.reshape_pin_cycles, ..Cost::default() }
            }
            MoveKind::Realigns => {
                let mut cost = self.loads(operands);
                cost += self.store_cost(result);
                cost.realigned_vectors = realigned_vectors;
                let shapes = operands.iter().map(|o| o.value.shape).chain([result.shape]);
                cost.cycles += self.realignment(realigned_vectors, shapes);
                cost
            }
        }
    }

    /// Computes the cycles to realign vectors:
    /// `min(vectors * sublanes, rows) * lane_move_cycles`,
    /// where `rows` is the number of occupied rows of the shape that has the most of them.
    fn realignment<'a>(&self, vectors: u64, shapes: impl IntoIterator<Item = &'a Shape>) -> f64 {
        let whole = as_f64(vectors) * self.target.realign_cycles();
        let rows = shapes.into_iter().filter_map(|shape| self.occupied_rows(shape)).max();
        let by_rows = rows.map(|rows| as_f64(rows) * self.target.lane_move_cycles);
        by_rows.map_or(whole, |cycles| cycles.min(whole))
    }

    /// Computes the cost of a broadcast. If an operand that changes the minor dim varies along the
    /// minor dim of the result, its index is split for each element, at `recompute_cycles` per
    /// vector. Otherwise it is constant along each row, and is computed once per row at no extra
    /// cost.
    fn broadcast(&self, result: SizedShape<'_>, operands: &[Operand<'_>], dims: &[i64]) -> Cost {
        let mut cost = self.loads(operands);
        cost += Cost { flops: 0, ..self.compute(result, 1.0) };
        let changes_minor = operands.iter().any(|operand| operand.changes_minor);
        if changes_minor && result.shape.as_array().is_some_and(|array| takes_minor(array, dims)) {
            cost.cycles += as_f64(result.footprint.vectors) * self.target.recompute_cycles;
        }
        cost
    }

    fn reduce(&self, result: SizedShape<'_>, operands: &[Operand<'_>], dims: &[i64]) -> Cost {
        let (arrays, _inits) = operands.split_at(operands.len() / 2);
        let mut cost = self.loads(arrays);
        for array in arrays {
            cost += self.compute(array.value, 1.0);
        }
        cost += self.store_cost(result);
        if arrays
            .first()
            .and_then(|o| o.value.shape.as_array())
            .is_some_and(|a| takes_minor(a, dims))
        {
            let leaves = result.shape.leaves();
            let results = leaves.iter().filter_map(|s| s.as_array()?.num_elements());
            let rows: i64 = results.fold(0, i64::saturating_add);
            let groups = rows.unsigned_abs().div_ceil(self.target.sublanes.max(1).into());
            cost.cycles += as_f64(groups) * self.target.cross_lane_reduce_cycles;
        }
        let runs = arrays.iter().filter_map(|o| Some(runs(o.value.shape.as_array()?, dims)));
        cost.cycles += runs.map(as_f64).sum::<f64>() * self.target.reduce_run_cycles;
        cost
    }

    /// Counts the rows of vectors that hold elements of a row-major array:
    /// `product of the major dims * ceil(minor dim / lanes)`.
    /// A realignment moves no other rows, which matters for small arrays. `None` for another
    /// layout.
    fn occupied_rows(&self, shape: &Shape) -> Option<u64> {
        let array = shape.as_array().filter(|array| array.has_default_layout())?;
        let small = self.without_ones(array);
        let (minor, major) = small.as_ref().unwrap_or(array).dims().split_last()?;
        let lanes = u64::from(self.target.lanes.max(1));
        let rows =
            major.iter().fold(1, |rows: u64, &d| rows.saturating_mul(d.max(0).unsigned_abs()));
        Some(rows.saturating_mul(minor.max(&0).unsigned_abs().div_ceil(lanes)))
    }

    /// Computes the cost of an op that cannot fuse: its fused operands are stored first, all
    /// operands are loaded, and its result is stored.
    fn unfused_cost(&self, result: SizedShape<'_>, operands: &[Operand<'_>]) -> Cost {
        let mut cost = self.store_fused_cost(operands);
        for operand in operands {
            cost += self.load(operand.value);
        }
        cost += self.store_cost(result);
        cost
    }

    /// Computes the cost of loading the operands that are stored, and of storing the result.
    fn load_and_store(&self, result: SizedShape<'_>, operands: &[Operand<'_>]) -> Cost {
        let mut cost = self.loads(operands);
        cost += self.store_cost(result);
        cost
    }

    /// Computes the cost of loading the operands that are stored.
    fn loads(&self, operands: &[Operand<'_>]) -> Cost {
        operands.iter().filter(|o| !o.fused).map(|o| self.load(o.value)).sum()
    }

    /// Computes the cost of storing the fused operands, for a reader that cannot fuse.
    fn store_fused_cost(&self, operands: &[Operand<'_>]) -> Cost {
        operands.iter().filter(|o| o.fused).map(|o| self.store_cost(o.value)).sum()
    }

    /// Computes the cost of loading a value from vector memory: `vectors / load_slots` cycles.
    pub fn load(&self, SizedShape { footprint, .. }: SizedShape<'_>) -> Cost {
        let cycles = as_f64(footprint.vectors) / f64::from(self.target.load_slots.max(1));
        traffic(cycles, footprint)
    }

    /// Computes the cost of storing a result: `vectors / store_slots` cycles. Unless the value
    /// stays in vector memory, moving it to main memory and back adds
    /// `2 * padded_bytes / hbm_bytes_per_cycle` cycles.
    pub fn store_cost(&self, value: SizedShape<'_>) -> Cost {
        let mut cost = self.store_vectors(value);
        if !self.stays_on_chip(value) {
            cost.cycles += 2.0 * self.crossing(value.footprint);
        }
        cost
    }

    /// Computes the cost of storing a value in vector memory: `vectors / store_slots` cycles.
    fn store_vectors(&self, SizedShape { footprint, .. }: SizedShape<'_>) -> Cost {
        let cycles = as_f64(footprint.vectors) / f64::from(self.target.store_slots.max(1));
        traffic(cycles, footprint)
    }

    /// Returns the cycles of reading a stored value back from main memory. [`Self::store_cost`]
    /// includes them; they are taken off the cost of a value that nothing reads again.
    fn read_back_cycles(&self, value: SizedShape<'_>) -> f64 {
        if self.stays_on_chip(value) { 0.0 } else { self.crossing(value.footprint) }
    }

    /// Checks whether a value is small enough to stay in vector memory between its producer and its
    /// readers.
    pub fn stays_on_chip(&self, value: SizedShape<'_>) -> bool {
        self.holds_on_chip(value.footprint.padded_bytes)
    }

    fn holds_on_chip(&self, bytes: u64) -> bool {
        bytes <= self.on_chip_bytes()
    }

    /// Returns the number of bytes of the largest array that stays in vector memory.
    pub fn on_chip_bytes(&self) -> u64 {
        self.target.on_chip_bytes()
    }

    /// Computes the cost of reading a value from main memory once.
    fn main_memory_read(&self, value: SizedShape<'_>) -> Cost {
        Cost { cycles: self.crossing(value.footprint), ..Cost::default() }
    }

    /// Returns the cycles of moving a value once between main memory and vector memory:
    /// `padded_bytes / hbm_bytes_per_cycle`.
    fn crossing(&self, footprint: Footprint) -> f64 {
        as_f64(footprint.padded_bytes) / self.target.hbm_bytes_per_cycle
    }

    /// Computes the cost of one operation on each element of a value:
    /// `vectors * cycles / vector_alu_slots`,
    /// where `cycles` is the number of issue slots that the operation takes per vector.
    fn compute(&self, value: SizedShape<'_>, cycles: f64) -> Cost {
        let elements = value.shape.as_array().and_then(ArrayShape::num_elements).unwrap_or(0);
        let vectors = as_f64(value.footprint.vectors);
        Cost {
            cycles: vectors * cycles / f64::from(self.target.vector_alu_slots.max(1)),
            flops: elements.unsigned_abs(),
            ..Cost::default()
        }
    }

    fn realigns(&self, from: &Shape, to: &Shape) -> bool {
        match (from.as_array(), to.as_array()) {
            (Some(from), Some(to)) => self.reshape_cost(from, to).kind == MoveKind::Realigns,
            _ => false,
        }
    }
}

fn traffic(cycles: f64, footprint: Footprint) -> Cost {
    Cost {
        cycles,
        vectors: footprint.vectors,
        bytes: footprint.bytes,
        padded_bytes: footprint.padded_bytes,
        ..Cost::default()
    }
}

#[expect(clippy::cast_precision_loss, reason = "costs are estimates")]
pub(crate) fn as_f64(count: u64) -> f64 {
    count as f64
}

/// Checks whether an op is a reshape that changes the size of the minor dim, dims of size 1 aside.
fn changes_minor(op: &Op, from: Option<&Shape>, to: &Shape) -> bool {
    let minor = |shape: &Shape| shape.as_array().map(large_minor);
    op.opcode() == Opcode::Reshape && from.and_then(minor) != minor(to)
}

/// Returns the size of the last dim that is not of size 1, if there is one: the innermost loop runs
/// along this dim.
pub fn large_minor(shape: &ArrayShape) -> Option<i64> {
    shape.dims().iter().rev().copied().find(|&dim| dim != 1)
}

fn is_one(shape: &Shape) -> bool {
    shape.as_array().is_some_and(|array| array.num_elements() == Some(1))
}

/// Counts the runs of adjacent elements that a reduction of `dims` combines:
/// `elements / product of the reduced minor-most dims`.
/// There are none if the reduction keeps the minor-most dim.
fn runs(array: &ArrayShape, dims: &[i64]) -> u64 {
    let elements = array.num_elements().unwrap_or(0).unsigned_abs();
    let layout = array.layout_or_default();
    let minor = layout.minor_to_major.iter().map(|&dim| i64::from(dim));
    let run: u64 = minor
        .take_while(|dim| dims.contains(dim) || size(array, *dim) == 1)
        .map(|dim| size(array, dim).unsigned_abs())
        .fold(1, u64::saturating_mul);
    if run > 1 { elements / run } else { 0 }
}

/// Checks whether the minor-most dim of an array, which runs along the lanes, is one of `dims`.
pub fn takes_minor(array: &ArrayShape, dims: &[i64]) -> bool {
    let layout = array.layout_or_default();
    layout.minor_to_major.first().is_some_and(|&minor| dims.contains(&i64::from(minor)))
}

fn size(shape: &ArrayShape, dim: i64) -> i64 {
    usize::try_from(dim).ok().and_then(|d| shape.dims().get(d).copied()).unwrap_or(1).max(0)
}

/// Checks whether `after` is less than `before` by more than a rounding error: `after < before * (1 - 1e-9)`.
pub fn pays(before: f64, after: f64) -> bool {
    after < before * (1.0 - 1e-9)
}
