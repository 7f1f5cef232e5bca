//! Evaluates the values that registers are set to.

use std::rc::Rc;

use smallvec::SmallVec;
use tilewright_ir::{Data, ElementType, Literal, Op};
use tilewright_lower::kernel::{
    Bound, BufferAddress, Digit, Expr, Function, FunctionId, FunctionStep, IndexId, RegisterId,
    Value,
};

use super::{KernelRun, vectors_of};
use crate::arithmetic::Lanes;
use crate::clock::Unit;
use crate::vector::{integers, is_under, splat, with_digit};
use crate::violation::Fault;

type Values = SmallVec<[Data; 1]>;

impl<'m> KernelRun<'m> {
    pub(super) fn set(
        &mut self,
        registers: &'m [RegisterId],
        value: &'m Value,
    ) -> Result<(), Fault> {
        let first = registers.first().and_then(|&id| self.kernel.register(id));
        let first = first.ok_or(Fault::Unsound("a value goes to no register"))?;
        let len = usize::try_from(first.len).map_err(|_| Fault::Overflow)?;
        let element_type = first.element_type;
        let values = match value {
            Value::Load { from, mask, otherwise } => {
                let load = self.load(from, mask, otherwise.as_ref(), element_type, len)?;
                self.loaded(element_type, len);
                SmallVec::from_iter([load])
            }
            Value::Scalar(place) => {
                self.loaded(element_type, 1);
                SmallVec::from_iter([self.scalar(place, len)?])
            }
            Value::Splat(literal) => {
                let array = literal.as_array().ok_or(Fault::Unsound("a splat of no scalar"))?;
                SmallVec::from_iter([splat(array.data(), 0, len)])
            }
            Value::Gather { from, mask, otherwise } => {
                let gathered = self.gather(from, mask, otherwise.as_ref(), element_type, len)?;
                SmallVec::from_iter([gathered])
            }
            Value::Positions(value) => {
                self.computed(value.operations(), element_type, len, false);
                SmallVec::from_iter([self.positions(value, element_type, len)?])
            }
            Value::Under(mask) => {
                let bounds = self.bounds(mask)?;
                self.computed(mask.len() as u64, element_type, len, false);
                let under = (0..len).map(|position| is_under(&bounds, position));
                SmallVec::from_iter([Data::Pred(under.collect())])
            }
            Value::Apply(op, operands) => {
                SmallVec::from_iter([self.apply(op, operands, element_type, len)?])
            }
            Value::Call(id, operands) => self.call_registers(*id, operands, len)?,
            Value::Fold { by, along, of } => self.fold(*by, *along, of, len)?,
            Value::Spread { of, along, at } => {
                let at = u64::try_from(self.value_of(at)?).map_err(|_| Fault::Overflow)?;
                if at >= along.extent {
                    return Err(Fault::Unsound("a digit is spread from beyond its extent"));
                }
                self.moved(element_type, len);
                let data = self.register(*of)?;
                SmallVec::from_iter([data.gather(with_digit(len, *along, |_| at))])
            }
            Value::Part { of, at } => SmallVec::from_iter([self.part(*of, at, len)?]),
        };
        for (&id, data) in registers.iter().zip(values) {
            let register = self.registers.get_mut(id.0);
            *register.ok_or(Fault::Unsound("a register does not exist"))? = Some(data);
        }
        Ok(())
    }

    fn positions(
        &self,
        value: &Expr,
        element_type: ElementType,
        len: usize,
    ) -> Result<Data, Fault> {
        let index = |index: IndexId| self.indices.get(index.0).copied().flatten();
        let at = |position| value.value_at(i64::try_from(position).ok(), &index);
        let values: Option<Vec<i64>> = (0..len).map(at).collect();
        let values = values.ok_or(Fault::Overflow)?.into_iter();
        integers(element_type, values).ok_or(Fault::Unsound("positions are integers"))
    }

    /// Returns a part of a register. It is a register of its own and costs nothing.
    fn part(&self, of: RegisterId, at: &Expr, len: usize) -> Result<Data, Fault> {
        let at = usize::try_from(self.value_of(at)?).map_err(|_| Fault::Overflow)?;
        let data = self.register(of)?;
        let from = at.checked_mul(len).ok_or(Fault::Overflow)?;
        let to = from.checked_add(len).filter(|&to| to <= data.len());
        let to = to.ok_or(Fault::Unsound("a register has no such part"))?;
        Ok(data.gather(from..to))
    }

    fn load(
        &mut self,
        from: &BufferAddress,
        mask: &[Bound],
        otherwise: Option<&Literal>,
        element_type: ElementType,
        len: usize,
    ) -> Result<Data, Fault> {
        let bounds = self.bounds(mask)?;
        let at = self.vector_at(from, len)?;
        if bounds.is_empty() {
            let range = self.range(from, i64::try_from(len).unwrap_or(i64::MAX))?;
            self.not_in_flight(from.buffer, &range, false)?;
            let memory = &self.buffers[from.buffer.0];
            if let Some(place) = memory.first_poisoned(range.clone()) {
                return Err(self.uninitialised(from, place));
            }
            let mut data = Data::zeros(element_type, len);
            let copied = data.copy_from(0, memory.data(), range);
            return if copied { Ok(data) } else { Err(TYPES) };
        }
        let under: Vec<usize> = (0..len).filter(|&position| is_under(&bounds, position)).collect();
        let places = self.places(from.buffer, at, &under)?;
        let pairs: Vec<(usize, usize)> = places.into_iter().map(|(a, p)| (p, a)).collect();
        let fill = otherwise.and_then(Literal::as_array).ok_or(TYPES)?;
        self.picked(from, &pairs, splat(fill.data(), 0, len))
    }

    /// Elements of a buffer at these addresses put at these positions of a vector.
    pub(super) fn picked(
        &self,
        from: &BufferAddress,
        pairs: &[(usize, usize)],
        mut into: Data,
    ) -> Result<Data, Fault> {
        let addresses = || pairs.iter().map(|&(_, address)| address);
        if let (Some(first), Some(last)) = (addresses().min(), addresses().max()) {
            self.not_in_flight(from.buffer, &(first..last + 1), false)?;
        }
        let memory = &self.buffers[from.buffer.0];
        if let Some(poisoned) = addresses().find(|&address| !memory.is_known(address)) {
            return Err(self.uninitialised(from, poisoned));
        }
        if into.set_from(memory.data(), pairs.iter().copied()) { Ok(into) } else { Err(TYPES) }
    }

    fn uninitialised(&self, from: &BufferAddress, place: usize) -> Fault {
        let address = i64::try_from(place).unwrap_or(i64::MAX);
        Fault::Uninitialised { buffer: self.name(from.buffer), address }
    }

    fn scalar(&mut self, place: &BufferAddress, len: usize) -> Result<Data, Fault> {
        let range = self.range(place, 1)?;
        self.not_in_flight(place.buffer, &range, false)?;
        let memory = &self.buffers[place.buffer.0];
        if let Some(poisoned) = memory.first_poisoned(range.clone()) {
            return Err(self.uninitialised(place, poisoned));
        }
        Ok(splat(memory.data(), range.start, len))
    }

    fn apply(
        &mut self,
        op: &'m Op,
        operands: &[RegisterId],
        result: ElementType,
        len: usize,
    ) -> Result<Data, Fault> {
        let types: Option<SmallVec<[ElementType; 3]>> =
            operands.iter().map(|&id| Some(self.kernel.register(id)?.element_type)).collect();
        let types = types.ok_or(Fault::Unsound("a register does not exist"))?;
        let lanes = self.prepare(op, &types, result)?;
        self.costs(op, &types, result, len);
        let data: Result<SmallVec<[&Data; 3]>, Fault> =
            operands.iter().map(|&id| self.register(id)).collect();
        compute(&*lanes, &data?, result, len)
    }

    fn call_registers(
        &mut self,
        id: FunctionId,
        operands: &[RegisterId],
        len: usize,
    ) -> Result<Values, Fault> {
        let function = self.function(id)?;
        // The function reads the registers and sets none; they are put back after the call.
        let registers = std::mem::take(&mut self.registers);
        let arguments = operands.iter().map(|id| registers.get(id.0)?.as_ref());
        let called = match arguments.collect::<Option<SmallVec<[&Data; 4]>>>() {
            Some(arguments) => self.call(function, &arguments, len),
            None => Err(UNSET),
        };
        self.registers = registers;
        called
    }

    fn function(&self, id: FunctionId) -> Result<&'m Function, Fault> {
        self.kernel.function(id).ok_or(Fault::Unsound("a function does not exist"))
    }

    fn call(
        &mut self,
        function: &'m Function,
        arguments: &[&Data],
        len: usize,
    ) -> Result<Values, Fault> {
        let count = arguments.len();
        let mut made: Vec<Data> = Vec::with_capacity(function.steps.len());
        for (step, value) in function.steps.iter().zip(function.values.iter().skip(count)) {
            let next = match step {
                FunctionStep::Constant(literal) => {
                    let array = literal.as_array().ok_or(TYPES)?;
                    splat(array.data(), 0, len)
                }
                FunctionStep::Apply(op, operands) => {
                    let types = operands.iter().filter_map(|&o| function.values.get(o));
                    let types: SmallVec<[ElementType; 3]> =
                        types.map(|value| value.element_type).collect();
                    let lanes = self.prepare(op, &types, value.element_type)?;
                    self.costs(op, &types, value.element_type, len);
                    let data: SmallVec<[&Data; 3]> = operands
                        .iter()
                        .filter_map(|&operand| value_at(arguments, &made, operand))
                        .collect();
                    compute(&*lanes, &data, value.element_type, len)?
                }
            };
            made.push(next);
        }
        let mut results = Values::new();
        for (place, &result) in function.results.iter().enumerate() {
            let again = function.results.iter().skip(place + 1).any(|&later| later == result);
            let own = result.checked_sub(count).and_then(|at| made.get_mut(at));
            results.push(match own.filter(|_| !again) {
                Some(own) => std::mem::replace(own, Data::Pred(Vec::new())),
                None => value_at(arguments, &made, result).cloned().ok_or(NO_RESULT)?,
            });
        }
        Ok(results)
    }

    /// Combines halves until one is left, which is then copied to all positions: no worse than
    /// pairwise summation.
    fn fold(
        &mut self,
        id: FunctionId,
        along: Digit,
        of: &[RegisterId],
        len: usize,
    ) -> Result<Values, Fault> {
        let function = self.function(id)?;
        let values: Result<Values, Fault> =
            of.iter().map(|&id| self.register(id).cloned()).collect();
        let mut values = values?;
        let mut left = along.extent;
        while left > 1 {
            let half = left.div_ceil(2);
            let upper = |data: &Data| {
                data.gather(with_digit(len, along, |digit| {
                    if digit.saturating_add(half) < left { digit + half } else { digit }
                }))
            };
            let upper: Values = values.iter().map(upper).collect();
            let combined = {
                let arguments: SmallVec<[&Data; 4]> = values.iter().chain(&upper).collect();
                self.call(function, &arguments, len)?
            };
            for (value, combined) in values.iter_mut().zip(&combined) {
                let lower = (0..len).filter(|&p| along.at(p as u64) < left - half);
                if !value.set_from(combined, lower.map(|p| (p, p))) {
                    return Err(TYPES);
                }
            }
            self.shifted(along, function, len);
            left = half;
        }
        Ok(values.iter().map(|data| data.gather(with_digit(len, along, |_| 0))).collect())
    }

    // --- costs -----------------------------------------------------------------

    fn loaded(&mut self, element_type: ElementType, len: usize) {
        let vectors = vectors_of(self.machine.target, element_type, len);
        let slots = f64::from(self.machine.target.load_slots.max(1));
        self.clock.work(Unit::Load, vectors, 1.0 / slots);
    }

    fn computed(&mut self, ops: u64, element_type: ElementType, len: usize, is_function: bool) {
        let target = self.machine.target;
        let vectors = vectors_of(target, element_type, len).saturating_mul(ops);
        if is_function {
            self.clock.work(Unit::Function, vectors, target.transcendental_cycles);
        } else {
            let slots = f64::from(target.vector_alu_slots.max(1));
            self.clock.work(Unit::Arithmetic, vectors, 1.0 / slots);
        }
    }

    /// An op takes as long as the widest of its operands and its result.
    fn costs(&mut self, op: &Op, types: &[ElementType], result: ElementType, len: usize) {
        let widest = types.iter().copied().chain([result]).max_by_key(|t| t.bytes());
        self.computed(1, widest.unwrap_or(result), len, op.opcode().is_transcendental());
    }

    /// Counts elements of one vector that move to other places of it.
    fn moved(&mut self, element_type: ElementType, len: usize) {
        let target = self.machine.target;
        let vectors = vectors_of(target, element_type, len);
        self.clock.work(Unit::Lanes, vectors, target.lane_move_cycles);
        self.clock.realigned(vectors);
    }

    /// One half moved to the other, for each value of a fold. Rows are shifted by
    /// an op; lanes by the unit that reduces across them, whose cycles for a whole
    /// vector are shared by the halvings.
    fn shifted(&mut self, along: Digit, function: &Function, len: usize) {
        let target = self.machine.target;
        for value in function.values.iter().take(function.results.len()) {
            let vectors = vectors_of(target, value.element_type, len);
            if along.stride >= u64::from(target.lanes.max(1)) {
                self.computed(1, value.element_type, len, false);
            } else {
                let halvings = f64::from(target.lanes.max(2)).log2();
                let cycles = target.cross_lane_reduce_cycles / halvings;
                self.clock.work(Unit::Lanes, vectors, cycles);
            }
        }
    }

    fn prepare(
        &mut self,
        op: &Op,
        operands: &[ElementType],
        result: ElementType,
    ) -> Result<Rc<dyn Lanes>, Fault> {
        let key = (op.clone(), operands.iter().copied().collect(), result);
        if let Some(lanes) = self.prepared.get(&key) {
            return Ok(Rc::clone(lanes));
        }
        let lanes = self.machine.arithmetic.prepare(op, operands, result);
        let lanes: Rc<dyn Lanes> = lanes.ok_or(Fault::NoArithmetic(op.opcode().name()))?.into();
        self.prepared.insert(key, Rc::clone(&lanes));
        Ok(lanes)
    }
}

const UNSET: Fault = Fault::Unsound("a register is read before it is set");
const NO_RESULT: Fault = Fault::Unsound("a function has no such result");
const TYPES: Fault = Fault::Unsound("a value of another type than its register");

fn compute(
    lanes: &dyn Lanes,
    operands: &[&Data],
    result: ElementType,
    len: usize,
) -> Result<Data, Fault> {
    let mut out = Data::zeros(result, 0);
    if lanes.compute(operands, len, &mut out) { Ok(out) } else { Err(TYPES) }
}

/// Returns a value of a function: an argument, or a value computed by an earlier step.
fn value_at<'a>(arguments: &[&'a Data], made: &'a [Data], place: usize) -> Option<&'a Data> {
    match place.checked_sub(arguments.len()) {
        Some(made_at) => made.get(made_at),
        None => arguments.get(place).copied(),
    }
}
