//! Carries shardings through a module, and finds what devices exchange.
//!
//! A parameter lies as it states, or whole on each device. From there spreads go from operands to
//! results, as they do in XLA's own propagation (Shardy); a result whose spread is not certain has
//! none. Devices exchange data where a dim that axes divide is reduced or contracted, where a
//! constraint asks for another spread, where a reshape or a slice cuts across the parts, and at
//! explicit collectives.
//!
//! Loops and branches are looked into once, and what they hand back counts as not known.

use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use tilewright_ir::ops::contract::{ConvolutionAttrs, DotAttrs};
use tilewright_ir::ops::indexing::GatherAttrs;
use tilewright_ir::{ArrayShape, CompId, InstId, Module, Op, Opcode, SecondaryMap};

use super::exchange::{Exchange, Exchanges, Kind, Over};
use super::mesh::DeviceMesh;
use super::spread::Spread;

/// What is known of a value.
#[derive(Clone, Debug, Default)]
struct State {
    /// How it lies over devices, if that is known.
    spread: Option<Spread>,
    /// The number of exchanges that it waits for, one after the other.
    level: u32,
}

/// The spreads and exchanges of a module's entry.
#[derive(Clone, Debug)]
pub struct Flow<'m> {
    module: &'m Module,
    mesh: &'m DeviceMesh,
    states: SecondaryMap<InstId, State>,
    exchanges: Exchanges,
    entered: FxHashSet<CompId>,
}

impl<'m> Flow<'m> {
    /// Finds the spreads of a module and its exchanges.
    pub fn of(module: &'m Module, mesh: &'m DeviceMesh) -> Self {
        let states = SecondaryMap::new();
        let (exchanges, entered) = (Exchanges::default(), FxHashSet::default());
        let mut flow = Self { module, mesh, states, exchanges, entered };
        flow.states.fill(module.instruction_bound());
        if let Some(entry) = module.entry() {
            flow.enter(entry, 0);
        }
        flow
    }

    /// Returns how the result of an instruction of the entry lies over devices, if that is known.
    pub fn spread(&self, id: InstId) -> Option<&Spread> {
        self.states[id].spread.as_ref()
    }

    /// Returns the number of exchanges that the result of an instruction waits for, one after the
    /// other.
    pub fn level(&self, id: InstId) -> u32 {
        self.states[id].level
    }

    /// Returns what devices exchange.
    pub fn exchanges(&self) -> &Exchanges {
        &self.exchanges
    }

    /// Goes through a computation that waits for `level` exchanges; returns the number that its
    /// result waits for. A computation that is called again exchanges nothing more.
    fn enter(&mut self, computation: CompId, level: u32) -> u32 {
        if !self.entered.insert(computation) {
            return level;
        }
        let module = self.module;
        let is_entry = module.entry() == Some(computation);
        for id in module.instructions(computation) {
            let operands = module.operands(id).iter().map(|&operand| self.states[operand].level);
            let waits = operands.max().unwrap_or(0).max(level);
            let is_local = !is_entry && module.opcode(id) == Opcode::Parameter;
            let spread = if is_local { None } else { self.carried(id) };
            let stated = self.stated(id);
            let level = self.exchange(id, waits, spread.as_ref(), stated.as_ref());
            self.states.set(id, State { spread: stated.or(spread), level });
        }
        let root = module.computation(computation).root();
        root.map_or(level, |root| self.states[root].level)
    }

    fn array(&self, id: InstId) -> Option<&'m ArrayShape> {
        self.module.array_shape(id)
    }

    /// Returns the spread that an instruction states, if it is a parameter or a constraint.
    fn stated(&self, id: InstId) -> Option<Spread> {
        let extras = self.module.extras(id)?;
        self.mesh.stated(extras, self.array(id)?.rank())
    }

    /// Returns the spread of a result that follows from the operands'.
    fn carried(&self, id: InstId) -> Option<Spread> {
        let (module, operands) = (self.module, self.module.operands(id));
        if let Op::GetTupleElement(attrs) = module.op(id) {
            return self.element(*operands.first()?, usize::try_from(attrs.index).ok()?);
        }
        let result = self.array(id)?;
        let first = || self.spread(*operands.first()?);
        match module.op(id) {
            Op::Parameter(_) | Op::Constant(_) | Op::Iota(_) => Some(Spread::whole(result.rank())),
            Op::Broadcast(attrs) => {
                let from = first()?;
                let mut dims = vec![SmallVec::new(); result.rank()];
                for (axes, &dim) in from.iter().zip(&attrs.dimensions) {
                    dims.get_mut(usize::try_from(dim).ok()?)?.clone_from(axes);
                }
                Some(Spread::new(dims, self.mesh))
            }
            Op::Transpose(attrs) => {
                first()?.pick(attrs.dimensions.iter().filter_map(|&dim| usize::try_from(dim).ok()))
            }
            Op::Reshape(_) => {
                let from = self.array(*operands.first()?)?;
                first()?.reshaped(from.dims(), result.dims(), self.mesh)
            }
            Op::Reduce(attrs) => {
                let from = first()?;
                let reduced = |dim: &usize| !contains(&attrs.dimensions, *dim);
                from.pick((0..from.iter().len()).filter(reduced))
            }
            Op::Dot(attrs) => self.dot(id, attrs),
            Op::Convolution(attrs) => self.convolution(id, attrs),
            Op::Gather(attrs) => self.gathered(id, attrs),
            Op::OptimizationBarrier | Op::Copy | Op::AllReduce(_) => first().cloned(),
            Op::CustomCall(attrs) if is_constraint(&attrs.custom_call_target) => first().cloned(),
            op if op.opcode().is_elementwise() => self.elementwise(id, result),
            _ if operands.iter().all(|&operand| self.is_whole(operand)) => {
                Some(Spread::whole(result.rank()))
            }
            op if keeps_dims(op.opcode()) => self.same_dims(id, result),
            _ => None,
        }
    }

    fn is_whole(&self, id: InstId) -> bool {
        self.spread(id).is_some_and(Spread::is_whole)
    }

    /// Returns the spread of an element of a tuple that the module makes itself.
    fn element(&self, mut tuple: InstId, index: usize) -> Option<Spread> {
        loop {
            let operands = self.module.operands(tuple);
            match self.module.op(tuple) {
                Op::Tuple => return self.spread(*operands.get(index)?).cloned(),
                Op::OptimizationBarrier => tuple = *operands.first()?,
                _ => return None,
            }
        }
    }

    fn elementwise(&self, id: InstId, result: &ArrayShape) -> Option<Spread> {
        let mut joined = Spread::whole(result.rank());
        for &operand in self.module.operands(id) {
            // A scalar may stand for an array.
            if self.array(operand)?.rank() == result.rank() {
                joined = joined.joined(self.spread(operand)?)?;
            }
        }
        Some(joined)
    }

    /// Returns the spread of the first operand, if its divided dims are as long in the result.
    fn same_dims(&self, id: InstId, result: &ArrayShape) -> Option<Spread> {
        let first = *self.module.operands(id).first()?;
        let (spread, from) = (self.spread(first)?, self.array(first)?.dims());
        let is_kept =
            |dim: usize| spread[dim].is_empty() || from.get(dim) == result.dims().get(dim);
        let is_kept = from.len() == result.rank() && (0..from.len()).all(is_kept);
        is_kept.then(|| spread.clone())
    }

    fn dot(&self, id: InstId, attrs: &DotAttrs) -> Option<Spread> {
        let &[lhs, rhs] = self.module.operands(id) else { return None };
        let (left, right) = (self.spread(lhs)?, self.spread(rhs)?);
        let batch = |dims: &[i64], spread: &Spread| {
            spread.pick(dims.iter().filter_map(|&dim| usize::try_from(dim).ok()))
        };
        let shared =
            batch(&attrs.lhs_batch_dims, left)?.joined(&batch(&attrs.rhs_batch_dims, right)?)?;
        let free = |spread: &Spread, batch: &[i64], contracted: &[i64]| {
            let is_free = |dim: &usize| !contains(batch, *dim) && !contains(contracted, *dim);
            spread.pick((0..spread.iter().len()).filter(is_free))
        };
        let left = free(left, &attrs.lhs_batch_dims, &attrs.lhs_contracting_dims)?;
        let right = free(right, &attrs.rhs_batch_dims, &attrs.rhs_contracting_dims)?;
        let dims = shared.iter().chain(left.iter()).chain(right.iter()).cloned();
        Some(Spread::new(dims, self.mesh)).filter(Spread::uses_each_axis_once)
    }

    fn convolution(&self, id: InstId, attrs: &ConvolutionAttrs) -> Option<Spread> {
        let &[input, kernel] = self.module.operands(id) else { return None };
        let (input, kernel) = (self.spread(input)?, self.spread(kernel)?);
        if attrs.feature_group_count != 1 || attrs.batch_group_count != 1 {
            return None;
        }
        let labels = &attrs.dim_labels;
        let mut dims = vec![SmallVec::new(); input.iter().len()];
        let spatial = labels.output_spatial.iter().zip(&labels.input_spatial);
        let pairs = spatial.map(|(&to, &from)| (to, input, from)).chain([
            (labels.output_batch, input, labels.input_batch),
            (labels.output_feature, kernel, labels.kernel_output_feature),
        ]);
        for (to, spread, from) in pairs {
            let axes = &spread[usize::try_from(from).ok()?];
            *dims.get_mut(usize::try_from(to).ok()?)? = axes.into();
        }
        Some(Spread::new(dims, self.mesh)).filter(Spread::uses_each_axis_once)
    }

    /// Returns the spread of rows that are looked up: that of their numbers.
    fn gathered(&self, id: InstId, attrs: &GatherAttrs) -> Option<Spread> {
        let &[_, indices] = self.module.operands(id) else { return None };
        let spread = self.spread(indices)?;
        let vector = usize::try_from(attrs.index_vector_dim).ok()?;
        let mut batch = (0..spread.iter().len()).filter(|&dim| dim != vector);
        let dims = (0..self.array(id)?.rank()).map(|dim| {
            let is_offset = contains(&attrs.offset_dims, dim);
            let from = if is_offset { None } else { batch.next() };
            from.map_or_else(SmallVec::new, |from| spread[from].into())
        });
        Some(Spread::new(dims.collect::<Vec<_>>(), self.mesh))
    }

    /// Records what an instruction exchanges; returns the number of exchanges that its result waits
    /// for.
    fn exchange(
        &mut self,
        id: InstId,
        waits: u32,
        spread: Option<&Spread>,
        stated: Option<&Spread>,
    ) -> u32 {
        match self.module.op(id) {
            Op::Reduce(attrs) => self.reduced(id, waits, &attrs.dimensions, spread, attrs.to_apply),
            Op::Dot(attrs) => {
                let dims = [&attrs.lhs_contracting_dims, &attrs.rhs_contracting_dims];
                self.contracted(id, waits, dims.map(SmallVec::as_slice), spread)
            }
            Op::Convolution(attrs) => {
                let labels = &attrs.dim_labels;
                let dims = [labels.input_feature, labels.kernel_input_feature];
                self.contracted(id, waits, [&dims[..1], &dims[1..]], spread)
            }
            Op::AllReduce(attrs) => {
                let kind = Kind::Combine(self.combines_by(attrs.to_apply));
                self.collective(id, waits, kind, Over::from(&*attrs.replica_groups))
            }
            op if is_collective(op.opcode()) => {
                self.collective(id, waits, Kind::Move, Over::Groups(0))
            }
            Op::CustomCall(attrs) if is_constraint(&attrs.custom_call_target) => {
                self.spread_anew(id, waits, spread, stated)
            }
            op if spread.is_none()
                && (op.opcode() == Opcode::Reshape || keeps_dims(op.opcode())) =>
            {
                self.moved(id, waits)
            }
            op => {
                let mut called: SmallVec<[CompId; 2]> = SmallVec::new();
                if matches!(op, Op::Call(_) | Op::While(_) | Op::Conditional(_)) {
                    op.for_each_computation(&mut |computation| called.push(computation));
                }
                called.into_iter().fold(waits, |level, computation| self.enter(computation, level))
            }
        }
    }

    /// Records one round for each divided dim that is reduced, as XLA's partitioner makes them.
    fn reduced(
        &mut self,
        id: InstId,
        waits: u32,
        dims: &[i64],
        spread: Option<&Spread>,
        by: CompId,
    ) -> u32 {
        let arrays = self.module.operands(id);
        let Some(from) = arrays.first().and_then(|&array| self.spread(array)) else { return waits };
        let dims = dims.iter().rev().filter_map(|&dim| usize::try_from(dim).ok());
        let rounds: SmallVec<[u16; 4]> =
            dims.map(|dim| from.bits([dim])).filter(|&bits| bits != 0).collect();
        let kind = Kind::Combine(self.combines_by(by));
        rounds.into_iter().fold(waits, |level, bits| {
            self.collective_of(id, level, kind, Over::Axes(bits), spread)
        })
    }

    /// Records the sum over the axes that divide a contracted dim of either operand.
    fn contracted(
        &mut self,
        id: InstId,
        waits: u32,
        dims: [&[i64]; 2],
        spread: Option<&Spread>,
    ) -> u32 {
        let operands = self.module.operands(id).iter().zip(dims);
        let bits = operands.fold(0, |bits, (&operand, dims)| {
            let dims = dims.iter().filter_map(|&dim| usize::try_from(dim).ok());
            bits | self.spread(operand).map_or(0, |spread| spread.bits(dims))
        });
        if bits == 0 {
            return waits;
        }
        let kind = Kind::Combine(Opcode::Add);
        self.collective_of(id, waits, kind, Over::Axes(bits), spread)
    }

    /// Records the move of a value that a constraint asks for, unless each device has its part.
    fn spread_anew(
        &mut self,
        id: InstId,
        waits: u32,
        spread: Option<&Spread>,
        stated: Option<&Spread>,
    ) -> u32 {
        let (Some(from), Some(to)) = (spread, stated) else { return waits };
        // What is divided further lies on each device already.
        if to.joined(from).as_ref() == Some(to) {
            return waits;
        }
        let bits = from.bits(0..from.iter().len());
        self.collective_of(id, waits, Kind::Move, Over::Axes(bits), Some(from))
    }

    /// Records the move of an operand whose parts are not parts of the result.
    fn moved(&mut self, id: InstId, waits: u32) -> u32 {
        let Some(&first) = self.module.operands(id).first() else { return waits };
        let from = self.spread(first).cloned().filter(|from| !from.is_whole());
        let Some(from) = from else { return waits };
        let bits = from.bits(0..from.iter().len());
        self.collective_of(first, waits, Kind::Move, Over::Axes(bits), Some(&from))
    }

    fn collective(&mut self, id: InstId, waits: u32, kind: Kind, over: Over) -> u32 {
        self.collective_of(id, waits, kind, over, None)
    }

    /// Records that devices exchange an array of this shape and spread.
    fn collective_of(
        &mut self,
        like: InstId,
        waits: u32,
        kind: Kind,
        over: Over,
        spread: Option<&Spread>,
    ) -> u32 {
        let parts = spread.map_or(1, |spread| self.mesh.parts_of(spread)).max(1);
        let level = waits.saturating_add(1);
        for leaf in self.module.shape(like).leaves() {
            let Some(array) = leaf.as_array() else { continue };
            let elements = array.num_elements().unwrap_or(0) / parts;
            let bytes = u64::from(array.element_type.bits().div_ceil(8));
            let bytes = elements.unsigned_abs().saturating_mul(bytes);
            let element_type = array.element_type;
            self.exchanges.push(Exchange { level, kind, over, element_type, bytes });
        }
        level
    }

    /// Returns the opcode by which a computation combines two values.
    fn combines_by(&self, computation: CompId) -> Opcode {
        let root = self.module.computation(computation).root();
        root.map_or(Opcode::Call, |root| self.module.opcode(root))
    }
}

fn contains(dims: &[i64], dim: usize) -> bool {
    i64::try_from(dim).is_ok_and(|dim| dims.contains(&dim))
}

/// Checks whether a custom call returns its operand in the spread that it states.
fn is_constraint(target: &str) -> bool {
    matches!(target, "Sharding" | "xla.sdy.FuncResultSharding")
}

fn is_collective(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::AllGather | Opcode::AllToAll | Opcode::ReduceScatter | Opcode::CollectivePermute
    )
}

/// Checks whether the dims of the result are those of the first operand, perhaps longer or shorter.
fn keeps_dims(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::Slice
            | Opcode::Pad
            | Opcode::Concatenate
            | Opcode::Reverse
            | Opcode::ReduceWindow
            | Opcode::SelectAndScatter
            | Opcode::DynamicSlice
            | Opcode::DynamicUpdateSlice
            | Opcode::Sort
    )
}
