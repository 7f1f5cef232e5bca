//! Computations of scalars, run over many scalars at once.
//!
//! Reducers, comparators and similar computations are written for scalars but applied to whole
//! arrays. A computation of this kind is compiled once to a list of elementwise kernels over
//! *lanes*; each run of the list computes as many results as its parameters have lanes. A
//! computation with other ops (loops, for example) is evaluated lane by lane instead.

use std::rc::Rc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tilewright_ir::{ArrayShape, CompId, Data, ElementType, InstId, Literal, Op, Shape, Verified};

use crate::algebra::Numbers;
use crate::error::{Fault, Outcome};
use crate::eval::elementwise::Kernel;
use crate::frame::Evaluator;
use crate::limits::MAX_DEPTH;
use crate::value::{Array, Value, alike, map_data, with_data};

/// A computation as kernels over registers of lanes.
pub(crate) struct LaneProgram {
    registers: Vec<ElementType>,
    /// The representation of floats.
    numbers: Numbers,
    /// The first registers are the parameters'.
    parameters: usize,
    constants: Vec<(usize, Data)>,
    steps: Vec<LaneStep>,
    results: Vec<usize>,
    /// Instructions compiled so far.
    length: usize,
}

struct LaneStep {
    kernel: Kernel,
    inputs: SmallVec<[usize; 3]>,
    output: usize,
}

/// The most instructions a program may have: calls within calls can double
/// them at every level.
const MAX_LENGTH: usize = 4096;

/// The value of an instruction while a program is compiled.
#[derive(Clone)]
enum Slot {
    Register(usize),
    Tuple(Vec<Slot>),
}

impl LaneProgram {
    /// The program of a computation whose values are all scalars, or tuples of
    /// them, and whose ops compute them elementwise; `None` for any other.
    pub(crate) fn compile(
        module: &Verified,
        numbers: Numbers,
        computation: CompId,
    ) -> Option<Self> {
        let mut program = Self {
            registers: Vec::new(),
            numbers,
            parameters: 0,
            constants: Vec::new(),
            steps: Vec::new(),
            results: Vec::new(),
            length: 0,
        };
        let mut arguments = Vec::new();
        for &parameter in module.computation(computation).parameters() {
            let element_type = numbers.kept(scalar_type(module.shape(parameter))?);
            arguments.push(Slot::Register(program.register(element_type)));
        }
        program.parameters = arguments.len();
        let root = program.inline(module, computation, &arguments, 0)?;
        let leaves = match root {
            Slot::Register(_) => vec![root],
            Slot::Tuple(elements) => elements,
        };
        for leaf in leaves {
            let Slot::Register(register) = leaf else { return None };
            program.results.push(register);
        }
        Some(program)
    }

    fn register(&mut self, element_type: ElementType) -> usize {
        self.registers.push(element_type);
        self.registers.len() - 1
    }

    fn inline(
        &mut self,
        module: &Verified,
        computation: CompId,
        arguments: &[Slot],
        depth: usize,
    ) -> Option<Slot> {
        if depth >= MAX_DEPTH {
            return None;
        }
        let root = module.computation(computation).root()?;
        let mut slots: FxHashMap<InstId, Slot> = FxHashMap::default();
        for id in module.post_order(root) {
            self.length += 1;
            if self.length > MAX_LENGTH {
                return None;
            }
            let operands: Option<Vec<Slot>> =
                module.operands(id).iter().map(|o| slots.get(o).cloned()).collect();
            let slot = self.instruction(module, id, &operands?, arguments, depth)?;
            slots.insert(id, slot);
        }
        slots.remove(&root)
    }

    fn instruction(
        &mut self,
        module: &Verified,
        id: InstId,
        operands: &[Slot],
        arguments: &[Slot],
        depth: usize,
    ) -> Option<Slot> {
        let op = module.op(id);
        if let Op::Parameter(parameter) = op {
            return arguments.get(usize::try_from(parameter.number).ok()?).cloned();
        }
        if let Op::Tuple = op {
            return Some(Slot::Tuple(operands.to_vec()));
        }
        if let (Op::GetTupleElement(attrs), [Slot::Tuple(elements)]) = (op, operands) {
            return elements.get(usize::try_from(attrs.index).ok()?).cloned();
        }
        if let Op::Call(attrs) = op {
            return self.inline(module, attrs.to_apply, operands, depth + 1);
        }
        if let Op::Fusion(attrs) = op {
            return self.inline(module, attrs.calls, operands, depth + 1);
        }
        if let Op::OptimizationBarrier = op {
            return operands.first().cloned();
        }
        let element_type = self.numbers.kept(scalar_type(module.shape(id))?);
        if let Op::Constant(value) = op {
            let Literal::Array(value) = &**value else { return None };
            let register = self.register(element_type);
            self.constants.push((register, self.numbers.constant(value).ok()?));
            return Some(Slot::Register(register));
        }
        // Between scalars these change nothing.
        if let (Op::Copy | Op::Reshape(_) | Op::Broadcast(_) | Op::Transpose(_), [slot]) =
            (op, operands)
        {
            return scalar_type(module.shape(*module.operands(id).first()?)).map(|_| slot.clone());
        }
        self.elementwise(op, operands, element_type)
    }

    fn elementwise(
        &mut self,
        op: &Op,
        operands: &[Slot],
        element_type: ElementType,
    ) -> Option<Slot> {
        let mut inputs = SmallVec::new();
        let mut types: SmallVec<[ElementType; 3]> = SmallVec::new();
        for operand in operands {
            let Slot::Register(register) = operand else { return None };
            inputs.push(*register);
            types.push(*self.registers.get(*register)?);
        }
        let kernel = self.numbers.kernel(op, &types, element_type).ok()??;
        let output = self.register(element_type);
        self.steps.push(LaneStep { kernel, inputs, output });
        Some(Slot::Register(output))
    }
}

fn scalar_type(shape: &Shape) -> Option<ElementType> {
    shape.as_array().filter(|s| s.rank() == 0).map(|s| s.element_type)
}

/// A computation of scalars, ready to run over lanes.
///
/// Fill the [`Callee::parameter`]s with lanes, [`Callee::run`], and read the
/// [`Callee::result`]s.
pub(crate) struct Callee {
    body: Body,
    registers: Vec<Data>,
    parameters: usize,
    results: Vec<usize>,
    /// Copies of results on their way to being parameters.
    staging: Vec<Data>,
}

enum Body {
    Lanes(Rc<LaneProgram>),
    /// Evaluated for each lane.
    Each(CompId, Vec<ElementType>),
}

impl Callee {
    /// Returns a computation that will run over at most `lanes` lanes at once.
    pub(crate) fn new(
        evaluator: &mut Evaluator<'_>,
        computation: CompId,
        lanes: usize,
    ) -> Outcome<Self> {
        let program = evaluator.lane_program(computation);
        let Some(program) = program else { return Self::each(evaluator, computation) };
        let mut registers: Vec<Data> =
            program.registers.iter().map(|&t| Data::zeros(t, 0)).collect();
        for (register, value) in &program.constants {
            registers[*register] =
                map_data!(value, v => v.iter().cycle().take(lanes).copied().collect());
        }
        let staging = program.results.iter().map(|&r| Data::zeros(program.registers[r], 0));
        Ok(Self {
            registers,
            parameters: program.parameters,
            results: program.results.clone(),
            staging: staging.collect(),
            body: Body::Lanes(program),
        })
    }

    fn each(evaluator: &Evaluator<'_>, computation: CompId) -> Outcome<Self> {
        let (module, numbers) = (evaluator.module, evaluator.numbers());
        let scalar = |shape: &Shape| {
            let element_type = scalar_type(shape).map(|element_type| numbers.kept(element_type));
            element_type.ok_or(Fault::Unsupported("a computation of arrays".into()))
        };
        let callee = module.computation(computation);
        let parameters = callee.parameters().iter().map(|&p| scalar(module.shape(p)));
        let parameters = parameters.collect::<Outcome<Vec<_>>>()?;
        let root = callee.root().ok_or(Fault::Internal("a computation has no instructions"))?;
        let results = match module.shape(root) {
            Shape::Tuple(elements) => elements.iter().map(scalar).collect::<Outcome<Vec<_>>>()?,
            other => vec![scalar(other)?],
        };
        let registers = parameters.iter().chain(&results).map(|&t| Data::zeros(t, 0)).collect();
        Ok(Self {
            registers,
            parameters: parameters.len(),
            results: (parameters.len()..parameters.len() + results.len()).collect(),
            staging: results.iter().map(|&t| Data::zeros(t, 0)).collect(),
            body: Body::Each(computation, parameters),
        })
    }

    /// Returns the lanes of a parameter, to be filled.
    pub(crate) fn parameter(&mut self, index: usize) -> Outcome<&mut Data> {
        if index >= self.parameters {
            return Err(Fault::Internal("a computation has too few parameters"));
        }
        Ok(&mut self.registers[index])
    }

    /// Returns the lanes of a result.
    pub(crate) fn result(&self, index: usize) -> Outcome<&Data> {
        let register = self.results.get(index).and_then(|&r| self.registers.get(r));
        register.ok_or(Fault::Internal("a computation has too few results"))
    }

    /// Computes the results of the first `lanes` lanes of the parameters.
    pub(crate) fn run(&mut self, evaluator: &mut Evaluator<'_>, lanes: usize) -> Outcome<()> {
        match &self.body {
            Body::Lanes(program) => {
                let work = program.steps.len().saturating_mul(lanes);
                evaluator.ledger.spend(u64::try_from(work).unwrap_or(u64::MAX))?;
                run_steps(&program.steps, &mut self.registers, lanes)
            }
            Body::Each(computation, types) => {
                run_each(evaluator, *computation, types, &mut self.registers, lanes)
            }
        }
    }

    /// Makes the first results the first parameters, for folds.
    pub(crate) fn feed_back(&mut self) -> Outcome<()> {
        for (register, copy) in self.results.iter().zip(&mut self.staging) {
            copy_all(copy, &self.registers[*register])?;
        }
        for (parameter, copy) in self.registers.iter_mut().zip(&mut self.staging) {
            std::mem::swap(parameter, copy);
        }
        Ok(())
    }
}

fn run_steps(steps: &[LaneStep], registers: &mut [Data], lanes: usize) -> Outcome<()> {
    for step in steps {
        let mut out = std::mem::replace(&mut registers[step.output], Data::Pred(Vec::new()));
        {
            let inputs = step.inputs.iter().map(|&i| &registers[i]);
            (step.kernel)(&inputs.collect::<SmallVec<[&Data; 3]>>(), lanes, &mut out)?;
        }
        registers[step.output] = out;
    }
    Ok(())
}

fn run_each(
    evaluator: &mut Evaluator<'_>,
    computation: CompId,
    types: &[ElementType],
    registers: &mut [Data],
    lanes: usize,
) -> Outcome<()> {
    let (parameters, results) = registers.split_at_mut(types.len());
    for result in results.iter_mut() {
        with_data!(result, values => values.clear());
    }
    for lane in 0..lanes {
        let arguments = types.iter().zip(parameters.iter()).map(|(&element_type, data)| {
            let data = data.gather(std::iter::once(lane));
            Ok(Value::Array(Array::scalar(element_type, data, &evaluator.ledger)?))
        });
        let arguments = arguments.collect::<Outcome<_>>()?;
        let value = evaluator.run(computation, arguments)?;
        let leaves = match &value {
            Value::Tuple(elements) => elements.as_slice(),
            Value::Array(_) | Value::Token => std::slice::from_ref(&value),
        };
        for (result, leaf) in results.iter_mut().zip(leaves) {
            append(result, leaf.array()?.data(), 0, 1)?;
        }
    }
    Ok(())
}

fn copy_all(to: &mut Data, from: &Data) -> Outcome<()> {
    with_data!(to, values => values.clear());
    append(to, from, 0, from.len())
}

/// Appends `count` elements of one array from `first` on to another's.
pub(crate) fn append(to: &mut Data, from: &Data, first: usize, count: usize) -> Outcome<()> {
    with_data!(to, out => {
        let values = alike(out, from)?;
        out.extend_from_slice(
            values.get(first..first + count).ok_or(Fault::Internal("a lane is missing"))?,
        );
    });
    Ok(())
}

/// Fills lanes with the elements at these places.
pub(crate) fn fill(
    to: &mut Data,
    from: &Data,
    mut places: impl Iterator<Item = usize>,
) -> Outcome<()> {
    fill_typed(to, from, &mut places)
}

/// As [`fill`], compiled once for each type of elements, whatever the iterator.
fn fill_typed(to: &mut Data, from: &Data, places: &mut dyn Iterator<Item = usize>) -> Outcome<()> {
    with_data!(to, out => {
        let values = alike(out, from)?;
        out.clear();
        out.reserve_exact(places.size_hint().0);
        for place in places {
            out.push(values[place]);
        }
    });
    Ok(())
}

/// Puts lanes to these places.
pub(crate) fn spread(
    to: &mut Data,
    lanes: &Data,
    mut places: impl Iterator<Item = usize>,
) -> Outcome<()> {
    spread_typed(to, lanes, &mut places)
}

/// As [`spread`], compiled once for each type of elements, whatever the iterator.
fn spread_typed(
    to: &mut Data,
    lanes: &Data,
    places: &mut dyn Iterator<Item = usize>,
) -> Outcome<()> {
    with_data!(to, out => {
        for (place, &value) in places.zip(alike(out, lanes)?) {
            out[place] = value;
        }
    });
    Ok(())
}

/// Returns the op of a computation of two parameters that only applies one op to them, in this
/// order or, if the op commutes, in either.
pub(crate) fn single_op(module: &Verified, computation: CompId) -> Option<InstId> {
    let callee = module.computation(computation);
    let root = callee.root()?;
    let [first, second] = callee.parameters() else { return None };
    let commutes = module.opcode(root).is_commutative();
    let operands = module.operands(root);
    let direct = operands == [*first, *second] || commutes && operands == [*second, *first];
    let scalars = [*first, *second, root].iter().all(|&id| is_scalar(module.array_shape(id)));
    (direct && scalars).then_some(root)
}

fn is_scalar(shape: Option<&ArrayShape>) -> bool {
    shape.is_some_and(|s| s.rank() == 0)
}
