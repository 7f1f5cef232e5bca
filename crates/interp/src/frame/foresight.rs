//! Computes a lower bound of an evaluation's memory before it begins.
//!
//! The plans of computations are walked without values. Each result is the list of its arrays,
//! and an array counts from the step that makes it to the last use of a value that contains it.
//! Working memory within a step does not count, and neither does memory that depends on values:
//! dynamic shapes, and turns of a loop after the first. The counted memory is in use at one
//! time in every evaluation in which loops take a turn.

use std::rc::Rc;

use smallvec::SmallVec;
use tilewright_ir::{CompId, InstId, Literal, Op, Opcode, Shape, Verified};

use super::{Evaluator, Plan, PlanStep, Work};
use crate::devices::Device;
use crate::error::{Fault, Outcome};
use crate::limits::{Limits, MAX_DEPTH};
use crate::value::{Value, num_bytes};

/// An array, by its number.
type Buffer = usize;
/// The arrays of a value, tuples flattened in order.
type Leaves = SmallVec<[Buffer; 1]>;

/// The most steps that are walked: calls nest, and each call is walked anew.
const MOST_STEPS: usize = 1 << 20;

/// Fails if the values of a computation do not fit the limit together.
pub(super) fn check(evaluator: &mut Evaluator<'_>, entry: CompId) -> Outcome<()> {
    let limit = evaluator.ledger.max_bytes();
    let mut walk = PlanWalk::new(evaluator);
    if walk.total() <= limit {
        return Ok(());
    }
    match walk.most_alive(entry)? {
        Some(Most { live, made, id }) if live > limit => {
            let fault = Fault::Memory { needed: made, live: live.saturating_sub(made), limit };
            Err(fault.at(walk.evaluator.module, id).into())
        }
        _ => Ok(()),
    }
}

/// The step after which most bytes are alive.
#[derive(Clone, Copy)]
struct Most {
    live: u64,
    /// The bytes of the latest result.
    made: u64,
    /// The instruction that made it.
    id: InstId,
}

/// An array, while it is walked.
struct Counted {
    bytes: u64,
    /// The number of values that contain it.
    holders: usize,
}

/// A walk through the plans of a module.
struct PlanWalk<'e, 'm> {
    evaluator: &'e mut Evaluator<'m>,
    arrays: Vec<Counted>,
    /// The bytes of all arrays that a value has.
    live: u64,
    most: Option<Most>,
    steps: usize,
    depth: usize,
}

impl<'e, 'm> PlanWalk<'e, 'm> {
    fn new(evaluator: &'e mut Evaluator<'m>) -> Self {
        Self { evaluator, arrays: Vec::new(), live: 0, most: None, steps: 0, depth: 0 }
    }

    /// Walks a computation from new arguments.
    fn most_alive(&mut self, entry: CompId) -> Outcome<Option<Most>> {
        let parameters = self.evaluator.module.computation(entry).parameters().to_vec();
        let arguments = parameters.iter().map(|&id| self.shaped(id)).collect();
        self.computation(entry, arguments, [])?;
        Ok(self.most)
    }

    /// Returns the bytes of all results of the module. No more than these are alive at once,
    /// because no computation calls itself.
    fn total(&self) -> u64 {
        let module = self.evaluator.module;
        let all = module.computations().iter().flat_map(|&id| module.instructions(id));
        let leaves = all.flat_map(|id| module.shape(id).leaves());
        leaves.map(|leaf| self.bytes(leaf)).fold(0, u64::saturating_add)
    }

    /// Returns the result of a computation, which holds its arguments until their last use. The
    /// caller no longer needs the arrays in `freed`.
    fn computation(
        &mut self,
        id: CompId,
        arguments: Vec<Leaves>,
        freed: impl IntoIterator<Item = Leaves>,
    ) -> Outcome<Leaves> {
        for leaves in &arguments {
            self.hold(leaves);
        }
        for leaves in freed {
            self.release(&leaves);
        }
        self.depth += 1;
        let plan: Rc<Plan> = self.evaluator.plan(id)?;
        let mut arguments: Vec<Option<Leaves>> = arguments.into_iter().map(Some).collect();
        let mut values: Vec<Option<Leaves>> = vec![None; plan.values];
        for step in &plan.steps {
            self.steps += 1;
            if self.steps > MOST_STEPS || self.depth > MAX_DEPTH {
                break;
            }
            self.step(step, &mut arguments, &mut values)?;
        }
        let root = values.get(plan.root).cloned().flatten().unwrap_or_default();
        for leaves in values.iter().chain(&arguments).flatten() {
            self.release(leaves);
        }
        self.depth -= 1;
        Ok(root)
    }

    fn step(
        &mut self,
        step: &PlanStep,
        arguments: &mut [Option<Leaves>],
        values: &mut [Option<Leaves>],
    ) -> Outcome<()> {
        let operand = |at: u32| values.get(at as usize).cloned().flatten().unwrap_or_default();
        let operands: Vec<Leaves> = step.operands.iter().map(|one| operand(one.value)).collect();
        let mut freed = SmallVec::<[Leaves; 3]>::new();
        for one in step.operands.iter().filter(|one| one.last_use) {
            freed.extend(values.get_mut(one.value as usize).and_then(Option::take));
        }
        let results: SmallVec<[Leaves; 1]> = match &step.work {
            Work::Together(region) => {
                let of_output = region.outputs.iter().map(|output| output.id);
                let of_fold = region.folds.iter().map(|fold| fold.id);
                of_output.chain(of_fold).map(|id| self.shaped(id)).collect()
            }
            Work::One(id) if step.dynamic => [self.unknown(*id)].into_iter().collect(),
            Work::One(id) => {
                let mut argument = |number: i64| {
                    let slot = arguments.get_mut(usize::try_from(number).ok()?)?;
                    slot.take()
                };
                let result = match self.evaluator.module.op(*id) {
                    Op::Parameter(attrs) => {
                        let leaves = argument(attrs.number).unwrap_or_default();
                        freed.push(leaves.clone());
                        leaves
                    }
                    _ => self.instruction(*id, &operands, &mut freed)?,
                };
                [result].into_iter().collect()
            }
        };
        let mut made_bytes = 0u64;
        for (made, leaves) in step.results.iter().zip(results).filter(|(made, _)| !made.unused) {
            let before = self.live;
            self.hold(&leaves);
            made_bytes = made_bytes.saturating_add(self.live - before);
            if let Some(slot) = values.get_mut(made.value as usize) {
                *slot = Some(leaves);
            }
        }
        freed.iter().for_each(|leaves| self.release(leaves));
        let is_most = self.most.is_none_or(|most| most.live < self.live);
        if let Some(id) = step.work.blamed().filter(|_| is_most) {
            self.most = Some(Most { live: self.live, made: made_bytes, id });
        }
        Ok(())
    }

    /// Returns the arrays of an instruction's result. A called computation takes over the
    /// arrays in `freed`.
    fn instruction(
        &mut self,
        id: InstId,
        operands: &[Leaves],
        freed: &mut SmallVec<[Leaves; 3]>,
    ) -> Outcome<Leaves> {
        let module = self.evaluator.module;
        let first = || operands.first().cloned().unwrap_or_default();
        Ok(match module.op(id) {
            Op::Tuple => operands.iter().flatten().copied().collect(),
            Op::GetTupleElement(attrs) => {
                let Some(&tuple) = module.operands(id).first() else { return Ok(Leaves::new()) };
                element(module.shape(tuple), attrs.index, &first())
            }
            Op::Call(attrs) => {
                let called = attrs.to_apply;
                self.computation(called, operands.to_vec(), freed.drain(..))?
            }
            Op::While(attrs) => {
                let body = attrs.body;
                self.computation(body, operands.to_vec(), freed.drain(..))?
            }
            op if may_share(op.opcode()) => {
                let same = module.operands(id).first().is_some_and(|&operand| {
                    self.bytes(module.shape(operand)) == self.bytes(module.shape(id))
                });
                if same { first() } else { self.shaped(id) }
            }
            op if makes_arrays(op.opcode()) => self.shaped(id),
            _ => self.unknown(id),
        })
    }

    /// New arrays, of the sizes that a result has.
    fn shaped(&mut self, id: InstId) -> Leaves {
        let module = self.evaluator.module;
        let leaves = module.shape(id).leaves();
        leaves.into_iter().map(|leaf| self.array(self.bytes(leaf))).collect()
    }

    /// Returns unknown arrays.
    fn unknown(&mut self, id: InstId) -> Leaves {
        let count = self.evaluator.module.shape(id).leaves().len();
        (0..count).map(|_| self.array(0)).collect()
    }

    fn array(&mut self, bytes: u64) -> Buffer {
        self.arrays.push(Counted { bytes, holders: 0 });
        self.arrays.len() - 1
    }

    /// Returns the bytes of an array; 0 if they are known only at run time, and 0 for other
    /// values.
    fn bytes(&self, shape: &Shape) -> u64 {
        let Some(array) = shape.as_array().filter(|array| array.is_static()) else { return 0 };
        let count = array.num_elements().and_then(|count| usize::try_from(count).ok());
        num_bytes(self.evaluator.numbers().kept(array.element_type), count.unwrap_or(usize::MAX))
    }

    fn hold(&mut self, leaves: &[Buffer]) {
        for &buffer in leaves {
            let array = &mut self.arrays[buffer];
            if array.holders == 0 {
                self.live = self.live.saturating_add(array.bytes);
            }
            array.holders += 1;
        }
    }

    fn release(&mut self, leaves: &[Buffer]) {
        for &buffer in leaves {
            let array = &mut self.arrays[buffer];
            array.holders = array.holders.saturating_sub(1);
            if array.holders == 0 {
                self.live = self.live.saturating_sub(array.bytes);
            }
        }
    }
}

/// Returns the arrays of an element of a tuple.
fn element(tuple: &Shape, index: i64, leaves: &[Buffer]) -> Leaves {
    let Shape::Tuple(elements) = tuple else { return Leaves::new() };
    let Ok(index) = usize::try_from(index) else { return Leaves::new() };
    let before = elements.iter().take(index).map(|element| element.leaves().len()).sum();
    let count = elements.get(index).map_or(0, |element| element.leaves().len());
    leaves.iter().skip(before).take(count).copied().collect()
}

/// Checks whether a result may be the operand under another name.
fn may_share(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::Bitcast
            | Opcode::Broadcast
            | Opcode::Concatenate
            | Opcode::Convert
            | Opcode::Copy
            | Opcode::DynamicUpdateSlice
            | Opcode::Pad
            | Opcode::Reduce
            | Opcode::Reshape
            | Opcode::Scatter
            | Opcode::Slice
            | Opcode::Transpose
    )
}

/// Checks whether results are arrays of their own.
fn makes_arrays(opcode: Opcode) -> bool {
    // A choice by a single truth value may return one of its operands.
    let chooses = matches!(opcode, Opcode::Select | Opcode::Clamp);
    opcode.is_elementwise() && !chooses
        || matches!(
            opcode,
            Opcode::Constant
                | Opcode::Convolution
                | Opcode::Dot
                | Opcode::DynamicSlice
                | Opcode::Gather
                | Opcode::Iota
                | Opcode::ReduceWindow
                | Opcode::Sort
        )
}

/// Returns the bytes that are foreseen of a module, and those that were in use at one time; for tests.
pub(crate) fn foreseen_and_used(module: &Verified, inputs: &[Literal]) -> Outcome<(u64, u64)> {
    let mut evaluator = Evaluator::new(module, Limits::NONE, Device::single());
    let Some(entry) = module.entry() else { return Ok((0, 0)) };
    let most = PlanWalk::new(&mut evaluator).most_alive(entry)?.map_or(0, |most| most.live);
    let arguments = inputs.iter().map(|x| Value::from_literal(x, &evaluator.ledger));
    let arguments = arguments.collect::<Outcome<_>>()?;
    drop(evaluator.run(entry, arguments)?);
    Ok((most, evaluator.ledger.peak()))
}
