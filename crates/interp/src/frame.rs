//! Runs computations. A frame holds the values of one computation, each until its last use.

pub(crate) mod foresight;

use std::collections::VecDeque;
use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::{SmallVec, smallvec};
use tilewright_ir::{CompId, Data, InstId, Literal, Op, Verified};

use crate::algebra::{Field, Numbers, Ties};
use crate::delegate::Delegated;
use crate::devices::Device;
use crate::devices::exchange::{Handover, Label};
use crate::devices::shards::Meshes;
use crate::dynamic::{is_dynamic, result_shape};
use crate::error::{Fault, Outcome};
use crate::eval::fold::{self, Fold};
use crate::eval::random::Source;
use crate::eval::{self, Cx, Operands};
use crate::lanes::LaneProgram;
use crate::limits::{Charge, Ledger, Limits, MAX_DEPTH};
use crate::observe::Watch;
use crate::region::{Feed, LaneRegion, Output, Piece, pieces};
use crate::value::{Array, Value, num_bytes};

/// The order of a computation's instructions, and the users of each value.
struct Plan {
    steps: Vec<PlanStep>,
    /// The number of values.
    values: usize,
    /// The value that is the result.
    root: usize,
}

struct PlanStep {
    work: Work,
    /// The values it takes.
    operands: SmallVec<[Operand; 3]>,
    /// The values it makes.
    results: SmallVec<[Made; 1]>,
    /// Whether the shape of its result is known only at run time.
    dynamic: bool,
}

enum Work {
    One(InstId),
    Together(Box<LaneRegion>),
}

/// Reductions on their way, with the memory of their results.
type Begun = (Vec<Box<dyn Fold>>, Vec<Charge>);

#[derive(Clone, Copy)]
struct Operand {
    value: u32,
    /// Whether this is the last use of the value.
    last_use: bool,
}

#[derive(Clone, Copy)]
struct Made {
    value: u32,
    /// Whether no later step and no caller wants it.
    unused: bool,
}

/// The state of one evaluation.
pub(crate) struct Evaluator<'m> {
    pub(crate) module: &'m Verified,
    pub(crate) ledger: Rc<Ledger>,
    plans: FxHashMap<CompId, Rc<Plan>>,
    programs: FxHashMap<CompId, Option<Rc<LaneProgram>>>,
    constants: FxHashMap<InstId, Value>,
    effectful: FxHashSet<CompId>,
    depth: usize,
    /// Whether elementwise instructions may run together.
    pub(crate) fuses: bool,
    /// Whether calls of unknown functions get made-up results.
    pub(crate) invents: bool,
    /// The seed by which roundings fall the other way, if they do.
    pub(crate) noise: Option<u64>,
    /// Comparisons that are decided as over the reals.
    pub(crate) ties: Option<&'m Ties>,
    /// The observers.
    pub(crate) watch: Watch<'m>,
    pub(crate) delegated: Delegated<'m>,
    /// The state of an evaluation over a field; `None` for floats.
    pub(crate) field: Option<Box<Field>>,
    pub(crate) device: Device,
    /// The meshes of the module, once something asked.
    pub(crate) meshes: Option<Meshes>,
    /// The number of values that this device has handed out at each place.
    pub(crate) turns: FxHashMap<Handover, u64>,
    /// The number of values that it has taken from each device.
    pub(crate) received: FxHashMap<(Handover, usize), u64>,
    /// The label that each `recv` so far waits for.
    pub(crate) awaited: Vec<Option<Label>>,
    /// The arrays of the infeed.
    pub(crate) infeed: VecDeque<Literal>,
    /// The arrays of the outfeed.
    pub(crate) outfeed: Vec<Literal>,
    /// The source of random numbers.
    pub(crate) random: Source,
}

impl<'m> Evaluator<'m> {
    pub(crate) fn new(module: &'m Verified, limits: Limits, device: Device) -> Self {
        Self {
            module,
            ledger: Ledger::new(limits),
            plans: FxHashMap::default(),
            programs: FxHashMap::default(),
            constants: FxHashMap::default(),
            effectful: module.effectful_computations(),
            depth: 0,
            fuses: true,
            invents: false,
            noise: None,
            ties: None,
            watch: Watch::default(),
            delegated: Delegated::default(),
            field: None,
            device,
            meshes: None,
            turns: FxHashMap::default(),
            received: FxHashMap::default(),
            awaited: Vec::new(),
            infeed: VecDeque::new(),
            outfeed: Vec::new(),
            random: Source::new(),
        }
    }

    /// Returns the representation of floats.
    pub(crate) fn numbers(&self) -> Numbers {
        if self.field.is_some() { Numbers::Field } else { Numbers::Floats }
    }

    /// Fails if a computation cannot be run for lack of memory, as far as that is known
    /// before.
    pub(crate) fn foresee(&mut self, computation: CompId) -> Outcome<()> {
        foresight::check(self, computation)
    }

    /// Runs a computation on its arguments.
    pub(crate) fn run(
        &mut self,
        computation: CompId,
        arguments: SmallVec<[Value; 4]>,
    ) -> Outcome<Value> {
        if self.depth >= MAX_DEPTH {
            return Err(Fault::Depth { limit: MAX_DEPTH });
        }
        let plan = self.plan(computation)?;
        self.depth += 1;
        let result = self.run_plan(&plan, arguments);
        self.depth -= 1;
        result
    }

    fn run_plan(&mut self, plan: &Plan, arguments: SmallVec<[Value; 4]>) -> Outcome<Value> {
        let mut arguments: SmallVec<[Option<Value>; 4]> = arguments.into_iter().map(Some).collect();
        let mut values: Vec<Option<Value>> = vec![None; plan.values];
        for step in &plan.steps {
            let begun = self.watch.begin(step.work.blamed(), self.ledger.steps());
            let made = self.watch.check();
            let made = made.and_then(|()| self.run_step(step, &mut arguments, &mut values));
            let made = made.map_err(|fault| match step.work.blamed() {
                Some(id) => fault.at(self.module, id).into(),
                None => fault,
            })?;
            if let (Some(begun), Work::One(id), Some(value)) = (begun, &step.work, made.first()) {
                self.watch.end(&begun, *id, value);
            }
            for (result, value) in step.results.iter().zip(made) {
                if let Some(slot) = values.get_mut(result.value as usize).filter(|_| !result.unused)
                {
                    *slot = Some(value);
                }
            }
        }
        let root = values.get_mut(plan.root).and_then(Option::take);
        root.ok_or(Fault::Internal("the root has no value"))
    }

    fn run_step(
        &mut self,
        step: &PlanStep,
        arguments: &mut [Option<Value>],
        values: &mut [Option<Value>],
    ) -> Outcome<SmallVec<[Value; 1]>> {
        let mut operands = Operands::new();
        for operand in &step.operands {
            let slot = values.get_mut(operand.value as usize);
            let value = slot.and_then(|v| if operand.last_use { v.take() } else { v.clone() });
            operands.push(value.ok_or(Fault::Internal("an operand has no value"))?);
        }
        let id = match &step.work {
            Work::One(id) => *id,
            Work::Together(region) => return self.run_region(region, operands),
        };
        let value = if let Op::Parameter(parameter) = self.module.op(id) {
            let number = usize::try_from(parameter.number).ok();
            let argument = number.and_then(|number| arguments.get_mut(number));
            argument.and_then(Option::take).ok_or(Fault::Internal("an argument is missing"))?
        } else {
            self.ledger.spend(0)?;
            let elsewhere = self.delegated.compute(self.module, id, &operands, &self.ledger)?;
            if let Some(value) = elsewhere {
                value
            } else if self.field.is_some() {
                self.run_over_field(id, operands)?
            } else if step.dynamic {
                self.run_dynamic(id, operands)?
            } else {
                self.compute(id, operands)?
            }
        };
        Ok(smallvec![self.with_noise(id, value)?])
    }

    /// Returns an instruction whose shape is known.
    fn compute(&mut self, id: InstId, operands: Operands) -> Outcome<Value> {
        if let Some(seed) = self.noise
            && let Some(sum) = self.sum_of_parts(id, &operands, seed)?
        {
            return Ok(sum);
        }
        let shape = self.module.shape(id);
        eval::instruction(&mut Cx { evaluator: self, id, shape, operands })
    }

    /// Apart from the static case, whose frames on the stack stay small.
    #[inline(never)]
    fn run_dynamic(&mut self, id: InstId, mut operands: Operands) -> Outcome<Value> {
        let shape = result_shape(self.module, id, &mut operands, &self.ledger)?;
        eval::instruction(&mut Cx { evaluator: self, id, shape: &shape, operands })
    }

    fn run_region(
        &mut self,
        region: &LaneRegion,
        mut operands: Operands,
    ) -> Outcome<SmallVec<[Value; 1]>> {
        let mut storage: Vec<Option<(Data, Charge)>> = Vec::new();
        storage.resize_with(region.outputs.len(), || None);
        let mut moved = vec![None; operands.len()];
        for &(input, output) in &region.in_place {
            storage[output] = operands.get_mut(input).and_then(Value::take_own);
            moved[input] = storage[output].as_ref().map(|_| output);
        }
        let sources = operands.iter().zip(moved).map(|(value, moved)| match moved {
            Some(output) => Ok(Feed::Output(output)),
            None => value.array().map(|array| Feed::Array(array.data())),
        });
        let sources = sources.collect::<Outcome<Vec<_>>>()?;
        let mut charges = Vec::new();
        for (output, storage) in region.outputs.iter().zip(&mut storage) {
            let bytes = num_bytes(output.element_type, region.lanes);
            charges.push(match storage {
                Some((_, charge)) => charge.take(),
                None => self.ledger.reserve(bytes)?,
            });
        }
        let _registers = self.ledger.reserve(region.register_bytes())?;
        let _totals = self.ledger.reserve(region.total_bytes())?;
        let work = region.lanes.saturating_mul(region.work());
        self.ledger.spend(u64::try_from(work).unwrap_or(u64::MAX))?;
        let (mut folds, results) = self.begin_folds(region, &sources)?;
        let out = |(output, storage): (&Output, Option<(Data, Charge)>)| match storage {
            Some((data, _)) => data,
            None => self.ledger.recycled(output.element_type, region.lanes),
        };
        let mut out: Vec<Data> = region.outputs.iter().zip(storage).map(out).collect();
        region.run(&sources, &mut out, &mut folds)?;
        let arrays = region.outputs.iter().zip(out.into_iter().zip(charges));
        let arrays = arrays.map(|(output, (data, charge))| {
            Array::new(output.element_type, output.dims.clone(), data, charge).map(Value::Array)
        });
        let folded = region.folds.iter().zip(folds.into_iter().zip(results));
        let folded = folded.map(|(fold, (totals, charge))| {
            let data = totals.finish();
            Array::new(fold.element_type, fold.dims.clone(), data, charge).map(Value::Array)
        });
        arrays.chain(folded).collect()
    }

    /// Returns the reductions of a region, begun, and the memory of their results.
    fn begin_folds(&self, region: &LaneRegion, inputs: &[Feed<'_>]) -> Outcome<Begun> {
        let (mut folds, mut charges) = (Vec::new(), Vec::new());
        for reduction in &region.folds {
            let missing = Fault::Internal("a region reduces by something unknown");
            let (Op::Reduce(attrs), Some(shape), Some(Feed::Array(init))) =
                (self.module.op(reduction.id), &region.fold_shape, inputs.get(reduction.init))
            else {
                return Err(missing);
            };
            charges.push(self.ledger.reserve(num_bytes(reduction.element_type, shape.len()))?);
            let fold = fold::begin(
                self.module,
                Numbers::Floats,
                attrs,
                reduction.element_type,
                init,
                shape,
            )?;
            folds.push(fold.ok_or(missing)?);
        }
        Ok((folds, charges))
    }

    /// Returns the value of a constant, made once.
    pub(crate) fn constant(&mut self, id: InstId) -> Outcome<Value> {
        if let Some(value) = self.constants.get(&id) {
            return Ok(value.clone());
        }
        let literal = self.module.constant(id).ok_or(Fault::Internal("it is no constant"))?;
        let value = Value::from_literal(literal, &self.ledger)?;
        self.constants.insert(id, value.clone());
        Ok(value)
    }

    /// Returns the computation as a program over lanes, if it can be one; see [`crate::lanes`].
    pub(crate) fn lane_program(&mut self, computation: CompId) -> Option<Rc<LaneProgram>> {
        if let Some(program) = self.programs.get(&computation) {
            return program.clone();
        }
        let program = LaneProgram::compile(self.module, self.numbers(), computation).map(Rc::new);
        self.programs.insert(computation, program.clone());
        program
    }

    fn plan(&mut self, computation: CompId) -> Outcome<Rc<Plan>> {
        if let Some(plan) = self.plans.get(&computation) {
            return Ok(Rc::clone(plan));
        }
        let plan = Rc::new(Plan::new(self.module, computation, &self.effectful, self.fuses)?);
        self.plans.insert(computation, Rc::clone(&plan));
        Ok(plan)
    }
}

impl Work {
    /// Returns the instruction that an error names.
    fn blamed(&self) -> Option<InstId> {
        match self {
            Self::One(id) => Some(*id),
            Self::Together(region) => {
                let folded = region.folds.last().map(|fold| fold.id);
                folded.or(region.outputs.last().map(|output| output.id))
            }
        }
    }
}

impl Plan {
    fn new(
        module: &Verified,
        computation: CompId,
        effectful: &FxHashSet<CompId>,
        fuse: bool,
    ) -> Outcome<Self> {
        let root = module.computation(computation).root();
        let root = root.ok_or(Fault::Internal("a computation has no instructions"))?;
        let order = order(module, computation, root, effectful);
        let mut planner = Planner { module, value_of: FxHashMap::default(), steps: Vec::new() };
        if fuse {
            for piece in pieces(module, &order) {
                planner.piece(piece, root)?;
            }
        } else {
            for id in order {
                planner.one(id)?;
            }
        }
        let values = planner.value_of.len();
        let root = planner.value_of.get(&root).map_or(usize::MAX, |&value| value as usize);
        let mut steps = planner.steps;
        mark_last_uses(&mut steps, values, root);
        Ok(Self { steps, values, root })
    }
}

/// Steps while they are planned.
struct Planner<'m> {
    module: &'m Verified,
    value_of: FxHashMap<InstId, u32>,
    steps: Vec<PlanStep>,
}

impl Planner<'_> {
    fn one(&mut self, id: InstId) -> Outcome<()> {
        self.step(Work::One(id), self.module.operands(id).iter().copied(), [id])
    }

    fn piece(&mut self, piece: Piece, root: InstId) -> Outcome<()> {
        let members = match piece {
            Piece::One(id) => return self.one(id),
            Piece::Together(members) => members,
        };
        let needed = |id: InstId| {
            id == root || self.module.uses(id).any(|used| !members.contains(&used.user))
        };
        match LaneRegion::new(self.module, &members, needed) {
            Some(region) => {
                let inputs: Vec<InstId> = region.inputs.iter().map(|input| input.id).collect();
                let written = region.outputs.iter().map(|output| output.id);
                let folded = region.folds.iter().map(|fold| fold.id);
                let outputs: Vec<InstId> = written.chain(folded).collect();
                self.step(Work::Together(Box::new(region)), inputs, outputs)
            }
            None => members.into_iter().try_for_each(|id| self.one(id)),
        }
    }

    fn step(
        &mut self,
        work: Work,
        operands: impl IntoIterator<Item = InstId>,
        results: impl IntoIterator<Item = InstId>,
    ) -> Outcome<()> {
        let operands = operands.into_iter().map(|operand| {
            let value = self.value_of.get(&operand).copied();
            let value = value.ok_or(Fault::Internal("an operand stands after its user"))?;
            Ok(Operand { value, last_use: false })
        });
        let operands = operands.collect::<Outcome<_>>()?;
        let mut made = SmallVec::new();
        for id in results {
            let value = u32::try_from(self.value_of.len()).unwrap_or(u32::MAX);
            self.value_of.insert(id, value);
            made.push(Made { value, unused: true });
        }
        let dynamic = matches!(work, Work::One(id) if is_dynamic(self.module, id));
        self.steps.push(PlanStep { work, operands, results: made, dynamic });
        Ok(())
    }
}

/// Returns the instructions to run, operands first: those that the root needs or that have
/// effects. Tuple elements are taken from parameters at once, so that the tuple does not
/// prevent changing them in place.
fn order(
    module: &Verified,
    computation: CompId,
    root: InstId,
    effectful: &FxHashSet<CompId>,
) -> Vec<InstId> {
    let mut needed: FxHashSet<InstId> = FxHashSet::default();
    let mut waiting = vec![root];
    let acts = |&id: &InstId| module.has_side_effect(id, effectful);
    waiting.extend(module.instructions(computation).filter(acts));
    while let Some(id) = waiting.pop() {
        if needed.insert(id) {
            waiting.extend_from_slice(module.operands(id));
        }
    }
    let is_parameter = |id: InstId| matches!(module.op(id), Op::Parameter(_));
    let is_early = |&id: &InstId| {
        is_parameter(id)
            || matches!(module.op(id), Op::GetTupleElement(_))
                && module.operands(id).iter().all(|&o| is_parameter(o))
    };
    let all: Vec<InstId> =
        module.instructions(computation).filter(|id| needed.contains(id)).collect();
    let (parameters, rest): (Vec<_>, Vec<_>) = all.into_iter().partition(|&id| is_parameter(id));
    let (early, late): (Vec<_>, Vec<_>) = rest.into_iter().partition(is_early);
    parameters.into_iter().chain(early).chain(late).collect()
}

fn mark_last_uses(steps: &mut [PlanStep], values: usize, root: usize) {
    let mut seen = vec![false; values];
    if let Some(seen) = seen.get_mut(root) {
        *seen = true;
    }
    for step in steps.iter_mut().rev() {
        for result in &mut step.results {
            result.unused = !seen[result.value as usize];
        }
        for operand in step.operands.iter_mut().rev() {
            let seen = &mut seen[operand.value as usize];
            operand.last_use = !*seen;
            *seen = true;
        }
    }
}
