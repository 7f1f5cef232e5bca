//! Runs computations: one frame holds the values of one of them, each until
//! its last use.

use std::collections::VecDeque;
use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use tilewright_ir::{CompId, InstId, Literal, Op, Verified};

use crate::devices::Device;
use crate::devices::exchange::{Label, Place};
use crate::error::{Fault, Outcome};
use crate::eval::{self, Cx, Operands};
use crate::lanes::LaneProgram;
use crate::limits::{Ledger, Limits, MAX_DEPTH};
use crate::value::Value;

/// In which order a computation's instructions run, and who needs what.
struct Plan {
    steps: Vec<Step>,
    /// The step that yields the result.
    root: usize,
}

struct Step {
    id: InstId,
    /// The steps that yield the operands.
    operands: SmallVec<[Operand; 3]>,
    /// Whether no later step and no caller wants its value.
    unused: bool,
}

#[derive(Clone, Copy)]
struct Operand {
    step: u32,
    /// Whether nobody needs the value after this.
    last_use: bool,
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
    pub(crate) device: Device,
    /// How often this device has handed something out at each place.
    pub(crate) turns: FxHashMap<Place, u64>,
    /// How often it has waited for something from a device.
    pub(crate) received: FxHashMap<(Place, usize), u64>,
    /// What each `recv` so far waits for.
    pub(crate) awaited: Vec<Option<Label>>,
    /// What the host gives, array by array.
    pub(crate) infeed: VecDeque<Literal>,
    /// What the host got.
    pub(crate) outfeed: Vec<Literal>,
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
            device,
            turns: FxHashMap::default(),
            received: FxHashMap::default(),
            awaited: Vec::new(),
            infeed: VecDeque::new(),
            outfeed: Vec::new(),
        }
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
        let mut values: Vec<Option<Value>> = Vec::with_capacity(plan.steps.len());
        for step in &plan.steps {
            let value = if let Op::Parameter(parameter) = self.module.op(step.id) {
                let number = usize::try_from(parameter.number).ok();
                let argument = number.and_then(|number| arguments.get_mut(number));
                argument.and_then(Option::take).ok_or(Fault::Internal("an argument is missing"))
            } else {
                self.run_step(step, &mut values)
            };
            let value = value.map_err(|fault| fault.at(self.module, step.id))?;
            values.push((!step.unused).then_some(value));
        }
        let root = values.get_mut(plan.root).and_then(Option::take);
        root.ok_or(Fault::Internal("the root has no value"))
    }

    fn run_step(&mut self, step: &Step, values: &mut [Option<Value>]) -> Outcome<Value> {
        let mut operands = Operands::new();
        for operand in &step.operands {
            let slot = values.get_mut(operand.step as usize);
            let value = slot.and_then(|v| if operand.last_use { v.take() } else { v.clone() });
            operands.push(value.ok_or(Fault::Internal("an operand has no value"))?);
        }
        self.ledger.spend(0)?;
        eval::instruction(&mut Cx { evaluator: self, id: step.id, operands })
    }

    /// The value of a constant, made once.
    pub(crate) fn constant(&mut self, id: InstId) -> Outcome<Value> {
        if let Some(value) = self.constants.get(&id) {
            return Ok(value.clone());
        }
        let literal = self.module.constant(id).ok_or(Fault::Internal("it is no constant"))?;
        let value = Value::from_literal(literal, &self.ledger)?;
        self.constants.insert(id, value.clone());
        Ok(value)
    }

    /// The computation as a program over lanes, if it can be one; see
    /// [`crate::lanes`].
    pub(crate) fn lane_program(&mut self, computation: CompId) -> Option<Rc<LaneProgram>> {
        if let Some(program) = self.programs.get(&computation) {
            return program.clone();
        }
        let program = LaneProgram::compile(self.module, computation).map(Rc::new);
        self.programs.insert(computation, program.clone());
        program
    }

    fn plan(&mut self, computation: CompId) -> Outcome<Rc<Plan>> {
        if let Some(plan) = self.plans.get(&computation) {
            return Ok(Rc::clone(plan));
        }
        let plan = Rc::new(Plan::new(self.module, computation, &self.effectful)?);
        self.plans.insert(computation, Rc::clone(&plan));
        Ok(plan)
    }
}

impl Plan {
    fn new(module: &Verified, computation: CompId, effectful: &FxHashSet<CompId>) -> Outcome<Self> {
        let root = module.computation(computation).root();
        let root = root.ok_or(Fault::Internal("a computation has no instructions"))?;
        let order = order(module, computation, root, effectful);
        let mut place: FxHashMap<InstId, u32> = FxHashMap::default();
        let mut steps: Vec<Step> = Vec::with_capacity(order.len());
        for (at, &id) in order.iter().enumerate() {
            let operands = module.operands(id).iter().map(|o| {
                let step = place.get(o).copied();
                let step = step.ok_or(Fault::Internal("an operand stands after its user"))?;
                Ok(Operand { step, last_use: false })
            });
            let operands = operands.collect::<Outcome<_>>()?;
            steps.push(Step { id, operands, unused: true });
            place.insert(id, u32::try_from(at).unwrap_or(u32::MAX));
        }
        let root = place.get(&root).map_or(usize::MAX, |&at| at as usize);
        mark_last_uses(&mut steps, root);
        Ok(Self { steps, root })
    }
}

/// The instructions to run: those that the root needs or that act, operands
/// first. Tuple elements are taken from parameters at once, so that the tuple
/// does not keep them from being changed in place.
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

fn mark_last_uses(steps: &mut [Step], root: usize) {
    let mut seen = vec![false; steps.len()];
    if let Some(seen) = seen.get_mut(root) {
        *seen = true;
    }
    for at in (0..steps.len()).rev() {
        let step = &mut steps[at];
        step.unused = !seen[at];
        for operand in step.operands.iter_mut().rev() {
            let seen = &mut seen[operand.step as usize];
            operand.last_use = !*seen;
            *seen = true;
        }
    }
}
