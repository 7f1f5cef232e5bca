//! Carries shardings through a module, and finds what devices exchange.
//!
//! A parameter lies as it states, or whole on each device. From there spreads go from operands to
//! results, as they do in XLA's own propagation (Shardy); a result whose spread is not certain has
//! none. Devices exchange data where a dim that axes divide is reduced or contracted, where a
//! constraint asks for another spread, where a reshape or a slice cuts across the parts, and at
//! explicit collectives.
//!
//! What devices exchange in a loop counts once for each turn (`control.rs` follows loops and branches). A computation
//! that several instructions call counts for the first of them.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tilewright_ir::ops::indexing::GatherAttrs;
use tilewright_ir::{
    ArrayShape, CompId, DimRole, ElementType, InstId, Module, Op, Opcode, Relation, SecondaryMap,
    Shape,
};

use super::exchange::{Exchange, ExchangeKind, Exchanges, Over};
use super::manual::crossed;
use super::mesh::DeviceMesh;
use super::spread::{Axes, Spread};

/// The most times that loops are gone through again, in all.
const MOST_TURNS: u32 = 64;

/// The known facts about a value.
#[derive(Clone, Debug, Default)]
pub(super) struct ValueFacts {
    /// How it lies over devices, if that is known.
    pub(super) spread: Option<Spread>,
    pub(super) waits: Wait,
}

/// The exchanges that a value waits for, one after the other.
#[derive(Clone, Debug, Default)]
pub(super) struct Wait {
    /// The largest number of them.
    level: u32,
    /// The largest number of those of each kind, by the kind's number.
    of_kind: SmallVec<[u32; 4]>,
}

impl Wait {
    /// Waits for what another value waits for, too.
    pub(super) fn join(&mut self, other: &Self) {
        self.level = self.level.max(other.level);
        if self.of_kind.len() < other.of_kind.len() {
            self.of_kind.resize(other.of_kind.len(), 0);
        }
        for (own, other) in self.of_kind.iter_mut().zip(&other.of_kind) {
            *own = (*own).max(*other);
        }
    }

    /// Waits for `turns` turns of a loop, in each of which `turn` is waited for.
    pub(super) fn for_loop(&mut self, turn: &Self, turns: u64) {
        self.level = self.level.saturating_add(in_turns(turn.level, turns));
    }

    /// Returns the level of an exchange of this level in a turn of a loop that waits for this, in the last turn.
    pub(super) fn level_in_loop(&self, turn: &Self, turns: u64, level: u32) -> u32 {
        let before = in_turns(turn.level, turns.saturating_sub(1));
        self.level.saturating_add(before).saturating_add(level)
    }

    /// Waits for one more exchange of a kind; returns the number of those of this kind.
    fn for_one_more(&mut self, kind: usize) -> u32 {
        self.level = self.level.saturating_add(1);
        if self.of_kind.len() <= kind {
            self.of_kind.resize(kind + 1, 0);
        }
        let depth = self.of_kind[kind].saturating_add(1);
        self.of_kind[kind] = depth;
        depth
    }
}

fn in_turns(level: u32, turns: u64) -> u32 {
    level.saturating_mul(u32::try_from(turns).unwrap_or(u32::MAX))
}

/// The spreads and exchanges of a module's entry.
#[derive(Clone, Debug)]
pub struct Flow<'m> {
    module: &'m Module,
    mesh: &'m DeviceMesh,
    facts: SecondaryMap<InstId, ValueFacts>,
    pub(super) exchanges: Exchanges,
    kinds: Vec<(ExchangeKind, Over, ElementType)>,
    /// The computations that were gone through, each with the call that led there.
    pub(super) entered: FxHashMap<CompId, Option<InstId>>,
    /// How the elements of tuples lie that the module does not make by a `tuple`: of results of
    /// loops, branches and custom calls, and of parameters of computations. An array has one.
    pub(super) elements: FxHashMap<InstId, Elements>,
    /// How often loops may be gone through again.
    pub(super) turns_left: u32,
}

/// How the elements of a tuple lie over devices, each if that is known.
pub(super) type Elements = Vec<Option<Spread>>;

impl<'m> Flow<'m> {
    /// Finds the spreads of a module and its exchanges.
    pub fn of(module: &'m Module, mesh: &'m DeviceMesh) -> Self {
        let facts = SecondaryMap::new();
        let (exchanges, entered) = (Exchanges::default(), FxHashMap::default());
        let (kinds, elements, turns_left) = (Vec::new(), FxHashMap::default(), MOST_TURNS);
        let mut flow =
            Self { module, mesh, facts, exchanges, kinds, entered, elements, turns_left };
        flow.facts.fill(module.instruction_bound());
        if let Some(entry) = module.entry() {
            flow.enter(entry, Wait::default(), None);
        }
        flow
    }

    /// Returns how the result of an instruction of the entry lies over devices, if that is known.
    pub fn spread(&self, id: InstId) -> Option<&Spread> {
        self.facts[id].spread.as_ref()
    }

    /// Checks whether an instruction could be divided in another way than its operands are, so that
    /// XLA may carry a spread from it to them: a constraint that asks for another spread than its
    /// operand's, or operands that are divided in different ways.
    pub fn is_contested(&self, id: InstId) -> bool {
        if let Some(stated) = self.stated(id) {
            let own = self.module.operands(id).first().and_then(|&operand| self.spread(operand));
            return own.is_some_and(|own| own.joined(&stated).as_ref() != Some(&stated));
        }
        match self.module.op(id) {
            Op::Dot(attrs) => {
                let dims = [&attrs.lhs_contracting_dims, &attrs.rhs_contracting_dims];
                !self.contracts_alike(id, dims.map(SmallVec::as_slice))
                    || self.carried(id).is_none()
            }
            Op::Convolution(attrs) => {
                let labels = &attrs.dim_labels;
                let dims = [labels.input_feature, labels.kernel_input_feature];
                !self.contracts_alike(id, [&dims[..1], &dims[1..]]) || self.carried(id).is_none()
            }
            _ => self.array(id).is_some() && self.carried(id).is_none(),
        }
    }

    /// Checks whether the same axes divide the contracted dims of both operands.
    fn contracts_alike(&self, id: InstId, dims: [&[i64]; 2]) -> bool {
        let axes = |operand: usize| {
            let spread = self.spread(*self.module.operands(id).get(operand)?)?;
            spread.pick(dims[operand].iter().filter_map(|&dim| usize::try_from(dim).ok()))
        };
        matches!((axes(0), axes(1)), (Some(left), Some(right)) if left == right)
    }

    /// Returns the number of exchanges that the result of an instruction waits for, one after the
    /// other.
    pub fn level(&self, id: InstId) -> u32 {
        self.facts[id].waits.level
    }

    /// Returns what devices exchange.
    pub fn exchanges(&self) -> &Exchanges {
        &self.exchanges
    }

    /// Returns the module.
    pub(super) fn module(&self) -> &'m Module {
        self.module
    }

    /// Checks whether a computation was gone through.
    pub fn has_entered(&self, computation: CompId) -> bool {
        self.entered.contains_key(&computation)
    }

    /// Goes through a computation whose arguments lie like this: see [`Self::enter`].
    pub(super) fn enter_with(
        &mut self,
        computation: CompId,
        before: Wait,
        call: Option<InstId>,
        arguments: impl Fn(usize) -> Elements,
    ) -> ValueFacts {
        if self.entered.contains_key(&computation) {
            return ValueFacts { spread: None, waits: before };
        }
        let parameters = self.module.computation(computation).parameters();
        for (place, &parameter) in parameters.iter().enumerate() {
            self.elements.insert(parameter, arguments(place));
        }
        self.enter(computation, before, call)
    }

    /// Goes through a computation that waits for these exchanges, to which `call` led, if that is a
    /// call. Returns what is known of its result. A computation that is called again exchanges
    /// nothing more, and nothing is known of its result.
    fn enter(&mut self, computation: CompId, before: Wait, call: Option<InstId>) -> ValueFacts {
        let module = self.module;
        let root = module.computation(computation).root();
        self.entered.insert(computation, call);
        for id in module.instructions(computation) {
            if let (Op::CustomCall(attrs), Some(extras)) = (module.op(id), module.extras(id)) {
                let operands = module.operands(id).iter().map(|&operand| self.spread(operand));
                if let Some(results) = crossed(self.mesh, attrs, extras, operands) {
                    self.elements.insert(id, results);
                }
            }
            let mut waits = before.clone();
            module.operands(id).iter().for_each(|&one| waits.join(&self.facts[one].waits));
            let spread = self.carried(id);
            let stated = self.stated(id);
            let after = self.exchange(id, waits, spread.as_ref(), stated.as_ref());
            let spread = stated.or(spread).or(after.spread);
            self.facts.set(id, ValueFacts { spread, waits: after.waits });
        }
        root.map_or(ValueFacts { spread: None, waits: before }, |root| self.facts[root].clone())
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
        if let Some(results) = self.elements.get(&id) {
            return results.first()?.clone();
        }
        let first = || self.spread(*operands.first()?);
        match module.op(id) {
            Op::Parameter(_) | Op::Constant(_) | Op::Iota(_) => Some(Spread::whole(result.rank())),
            Op::Reshape(_) => {
                let from = self.array(*operands.first()?)?;
                first()?.reshaped(from.dims(), result.dims(), self.mesh)
            }
            Op::Gather(attrs) => self.gathered(id, attrs),
            Op::Dot(_) | Op::Convolution(_) => self.related(id, operands.len(), false),
            Op::Broadcast(_)
            | Op::Transpose(_)
            | Op::Reduce(_)
            | Op::OptimizationBarrier
            | Op::Copy
            | Op::AllReduce(_) => self.related(id, 1, false),
            Op::CustomCall(attrs) if is_constraint(&attrs.custom_call_target) => first().cloned(),
            Op::While(_) | Op::Conditional(_) => None,
            op if op.opcode().is_elementwise() => self.related(id, operands.len(), false),
            _ if operands.iter().all(|&operand| self.is_whole(operand)) => {
                Some(Spread::whole(result.rank()))
            }
            op if keeps_dims(op.opcode()) => self.related(id, 1, true),
            _ => None,
        }
    }

    fn is_whole(&self, id: InstId) -> bool {
        self.spread(id).is_some_and(Spread::is_whole)
    }

    /// Returns how the elements of a tuple lie, or the only one of an array.
    pub(super) fn elements_of(&self, id: InstId) -> Elements {
        match self.module.shape(id) {
            Shape::Tuple(parts) => (0..parts.len()).map(|place| self.element(id, place)).collect(),
            _ => vec![self.spread(id).cloned()],
        }
    }

    /// Returns the spread of an element of a tuple.
    fn element(&self, mut tuple: InstId, index: usize) -> Option<Spread> {
        loop {
            let operands = self.module.operands(tuple);
            if let Some(results) = self.elements.get(&tuple) {
                return results.get(index)?.clone();
            }
            match self.module.op(tuple) {
                Op::Tuple => return self.spread(*operands.get(index)?).cloned(),
                Op::OptimizationBarrier => tuple = *operands.first()?,
                Op::Call(attrs) if self.entered.get(&attrs.to_apply) == Some(&Some(tuple)) => {
                    tuple = self.module.computation(attrs.to_apply).root()?;
                }
                _ => return None,
            }
        }
    }

    /// Returns the spread of a result that has the indices of its first `count` operands: each of its
    /// dims is divided as theirs are. If it `keeps_sizes`, `None` unless these have the same size.
    fn related(&self, id: InstId, count: usize, keeps_sizes: bool) -> Option<Spread> {
        let (relation, result) = (Relation::of(self.module, id)?, self.array(id)?);
        let to = relation.results.first()?;
        let mut joined = Spread::whole(result.rank());
        let operands = self.module.operands(id).iter().zip(&relation.operands).take(count);
        // A scalar stands for an array of equal elements.
        for (&operand, from) in operands.filter(|(_, from)| !from.is_empty() || to.is_empty()) {
            let (spread, sizes) = (self.spread(operand)?, self.array(operand)?.dims());
            let axes = |(role, size): (&DimRole, &i64)| {
                let dim = from.iter().position(|one| one.number() == role.number());
                let Some(dim) = dim else { return Some(Axes::new()) };
                let is_kept = !keeps_sizes || sizes.get(dim) == Some(size);
                (spread[dim].is_empty() || is_kept).then(|| spread[dim].into())
            };
            let dims = to.iter().zip(result.dims()).map(axes).collect::<Option<Vec<Axes>>>()?;
            joined = joined.joined(&Spread::new(dims))?;
        }
        Some(joined)
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
        Some(Spread::new(dims.collect::<Vec<_>>()))
    }

    /// Records what an instruction exchanges; returns the number of exchanges that its result waits
    /// for, and how it lies if the instruction is a call.
    fn exchange(
        &mut self,
        id: InstId,
        waits: Wait,
        spread: Option<&Spread>,
        stated: Option<&Spread>,
    ) -> ValueFacts {
        let waits = match self.module.op(id) {
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
                let kind = ExchangeKind::Combine(self.combines_by(attrs.to_apply));
                let groups = &*attrs.replica_groups;
                let over = self.mesh.axes_of(groups).map_or_else(|| groups.into(), Over::Axes);
                self.collective(id, waits, kind, over)
            }
            op if is_collective(op.opcode()) => {
                self.collective(id, waits, ExchangeKind::Move, Over::Groups(0))
            }
            Op::CustomCall(attrs) if is_constraint(&attrs.custom_call_target) => {
                self.spread_anew(id, waits, spread, stated)
            }
            op if spread.is_none()
                && (op.opcode() == Opcode::Reshape || keeps_dims(op.opcode())) =>
            {
                self.moved(id, waits)
            }
            Op::Call(attrs) => {
                let operands = self.module.operands(id).iter();
                let given: Vec<Elements> = operands.map(|&one| self.elements_of(one)).collect();
                let given = |place: usize| given.get(place).cloned().unwrap_or_default();
                return self.enter_with(attrs.to_apply, waits, Some(id), given);
            }
            Op::While(attrs) => return self.looped(id, attrs, waits),
            op @ Op::Conditional(_) => return self.branched(id, op, waits),
            _ => waits,
        };
        ValueFacts { spread: None, waits }
    }

    /// Records one round for each divided dim that is reduced, as XLA's partitioner makes them.
    fn reduced(
        &mut self,
        id: InstId,
        waits: Wait,
        dims: &[i64],
        spread: Option<&Spread>,
        by: CompId,
    ) -> Wait {
        let arrays = self.module.operands(id);
        let Some(from) = arrays.first().and_then(|&array| self.spread(array)) else { return waits };
        let dims = dims.iter().rev().filter_map(|&dim| usize::try_from(dim).ok());
        let rounds: SmallVec<[u16; 4]> =
            dims.map(|dim| from.bits([dim])).filter(|&bits| bits != 0).collect();
        let kind = ExchangeKind::Combine(self.combines_by(by));
        rounds.into_iter().fold(waits, |waits, bits| {
            self.collective_of(id, waits, kind, Over::Axes(bits), spread)
        })
    }

    /// Records the sum over the axes that divide a contracted dim of either operand.
    fn contracted(
        &mut self,
        id: InstId,
        waits: Wait,
        dims: [&[i64]; 2],
        spread: Option<&Spread>,
    ) -> Wait {
        let operands = self.module.operands(id).iter().zip(dims);
        let bits = operands.fold(0, |bits, (&operand, dims)| {
            let dims = dims.iter().filter_map(|&dim| usize::try_from(dim).ok());
            bits | self.spread(operand).map_or(0, |spread| spread.bits(dims))
        });
        if bits == 0 {
            return waits;
        }
        let kind = ExchangeKind::Combine(Opcode::Add);
        self.collective_of(id, waits, kind, Over::Axes(bits), spread)
    }

    /// Records the move of a value that a constraint asks for, unless each device has its part.
    fn spread_anew(
        &mut self,
        id: InstId,
        waits: Wait,
        spread: Option<&Spread>,
        stated: Option<&Spread>,
    ) -> Wait {
        let (Some(from), Some(to)) = (spread, stated) else { return waits };
        // Each device already holds its part of an array that is to be divided further.
        if to.joined(from).as_ref() == Some(to) {
            return waits;
        }
        let bits = from.bits(0..from.iter().len());
        self.collective_of(id, waits, ExchangeKind::Move, Over::Axes(bits), Some(from))
    }

    /// Records the move of an operand whose parts are not parts of the result.
    fn moved(&mut self, id: InstId, waits: Wait) -> Wait {
        let Some(&first) = self.module.operands(id).first() else { return waits };
        let from = self.spread(first).cloned().filter(|from| !from.is_whole());
        let Some(from) = from else { return waits };
        let bits = from.bits(0..from.iter().len());
        self.collective_of(first, waits, ExchangeKind::Move, Over::Axes(bits), Some(&from))
    }

    fn collective(&mut self, id: InstId, waits: Wait, kind: ExchangeKind, over: Over) -> Wait {
        self.collective_of(id, waits, kind, over, None)
    }

    /// Records that devices exchange an array of this shape and spread.
    fn collective_of(
        &mut self,
        like: InstId,
        waits: Wait,
        kind: ExchangeKind,
        over: Over,
        spread: Option<&Spread>,
    ) -> Wait {
        let parts = spread.map_or(1, |spread| self.mesh.parts_of(spread)).max(1);
        let mut after = waits.clone();
        for leaf in self.module.shape(like).leaves() {
            let Some(array) = leaf.as_array() else { continue };
            let elements = array.num_elements().unwrap_or(0) / parts;
            let bytes = u64::from(array.element_type.bits().div_ceil(8));
            let bytes = elements.unsigned_abs().saturating_mul(bytes);
            let mut one = waits.clone();
            let depth = one.for_one_more(self.number_of((kind, over, array.element_type)));
            after.join(&one);
            let (level, element_type) = (one.level, array.element_type);
            let (of_loop, turns) = (None, 1);
            self.exchanges.push(Exchange {
                level,
                depth,
                kind,
                over,
                element_type,
                bytes,
                of_loop,
                turns,
            });
        }
        after
    }

    /// Returns the number of a kind of exchanges.
    fn number_of(&mut self, kind: (ExchangeKind, Over, ElementType)) -> usize {
        self.kinds.iter().position(|known| *known == kind).unwrap_or_else(|| {
            self.kinds.push(kind);
            self.kinds.len() - 1
        })
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
