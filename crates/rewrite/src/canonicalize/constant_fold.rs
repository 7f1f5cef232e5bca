//! Constant folding: `f(c, d ...) = e` where c, d ... and e are constants.
//!
//! The broadcast of a constant stays a broadcast:
//! `f(broadcast(c), broadcast(d)) = broadcast(f(c, d))` for elementwise f. No broadcast and no iota
//! becomes an array of its elements.
//!
//! - Only ops with one correct result are folded: moves, integer arithmetic, comparisons, choices,
//!   conversions, and float operations that IEEE 754 rounds correctly. Elementary functions and
//!   products of complex numbers differ in the last place between backends, and sums of many floats
//!   depend on their order, so folding them could change a backend's result.
//! - The module does not grow: a folded array takes at most the bytes of those operands that only
//!   it reads, which go. No array has more than `LARGEST` elements. Scalars and splats are always
//!   folded.
//! - An instruction with something attached (a sharding, control edges) is not folded.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tilewright_ir::ops::shaping::BroadcastAttrs;
use tilewright_ir::{
    ArrayShape, CompId, Dims, EditError, ElementType, InstId, Literal, Module, Op, Opcode, Patch,
    Position, Shape, verify,
};

use crate::analysis::reduce::is_plain;
use crate::driver::Evaluate;
use crate::driver::numbers::Class;
use crate::driver::{Context, Pass};

/// The most elements of a folded array: a vector of most machines, or a page of text. Larger tables
/// are as good as inputs.
const LARGEST: i64 = 1024;

/// The number of elements after which a run folds no more of a computation; the next sweep does.
const AT_ONCE: i64 = 1 << 22;

/// See the module.
pub struct ConstantFold;

impl Pass for ConstantFold {
    fn name(&self) -> &'static str {
        "constant-fold"
    }

    fn summary(&self) -> &'static str {
        "compute small constants, exactly"
    }

    fn class(&self) -> Class {
        Class::Exact
    }

    fn run(&self, module: &mut Module, cx: &mut Context<'_>) -> Result<usize, EditError> {
        let Some(evaluator) = cx.evaluator else { return Ok(0) };
        let mut changes = 0;
        for computation in module.computations().to_vec() {
            let mut program = Program::new();
            let instructions: Vec<InstId> = module.instructions(computation).collect();
            for &id in &instructions {
                program.take(module, id)?;
            }
            changes += program.fold(module, &instructions, evaluator)?;
        }
        Ok(changes)
    }
}

/// A value that is known before the module runs.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// The instruction of the program that computes it.
    id: InstId,
    /// Whether the value is a scalar that stands for all elements.
    splat: bool,
    /// Whether the module does not contain the value yet.
    folded: bool,
}

/// A program that computes the known values of a computation.
struct Program {
    module: Module,
    main: CompId,
    known: FxHashMap<InstId, Known>,
    elements: i64,
}

impl Program {
    fn new() -> Self {
        let mut module = Module::new("constants");
        let main = module.add_computation("main");
        module.set_entry(main);
        Self { module, main, known: FxHashMap::default(), elements: 0 }
    }

    fn add(&mut self, op: Op, shape: Shape, operands: &[InstId]) -> Result<InstId, EditError> {
        let name = self.module.fresh_name(op.opcode().name());
        self.module.insert(Position::End(self.main), op, shape, operands, name)
    }

    /// Adds an instruction of `from` to the program, if its value is known.
    fn take(&mut self, from: &Module, id: InstId) -> Result<(), EditError> {
        let used = from.is_live(id);
        let Some(shape) = from.array_shape(id) else { return Ok(()) };
        if !used || from.extras(id).is_some() || !is_plain(shape) {
            return Ok(());
        }
        let op = from.op(id);
        let known = match op {
            Op::Constant(value) => {
                if value.is_elided() || shape.num_elements().is_none_or(|n| n > LARGEST) {
                    return Ok(());
                }
                let constant = self.add(op.clone(), shape.without_layout().into(), &[])?;
                Known { id: constant, splat: shape.rank() == 0, folded: false }
            }
            Op::Broadcast(_) if self.is_number(from, id) => {
                let operand = from.operands(id).first().and_then(|o| self.known.get(o));
                let Some(number) = operand else { return Ok(()) };
                Known { folded: false, ..*number }
            }
            _ => {
                let Some(splat) = self.folds(from, id, shape) else { return Ok(()) };
                let to = if splat { ArrayShape::scalar(shape.element_type) } else { shape.clone() };
                let operands = self.operands(from, id, splat)?;
                self.elements = self.elements.saturating_add(to.num_elements().unwrap_or(0));
                let id = self.add(op.clone(), to.without_layout().into(), &operands)?;
                Known { id, splat, folded: true }
            }
        };
        self.known.insert(id, known);
        Ok(())
    }

    /// Checks whether an instruction broadcasts a known scalar.
    fn is_number(&self, from: &Module, id: InstId) -> bool {
        let [operand] = *from.operands(id) else { return false };
        let number = from.array_shape(operand).is_some_and(|shape| shape.rank() == 0);
        number && self.known.contains_key(&operand)
    }

    /// Checks whether the value of an instruction is known and may become a constant; if so,
    /// whether all elements equal one scalar.
    fn folds(&self, from: &Module, id: InstId, shape: &ArrayShape) -> Option<bool> {
        let operands = from.operands(id);
        if operands.is_empty() || !has_one_result(from, id) || self.elements > AT_ONCE {
            return None;
        }
        let (mut splat, mut freed) = (from.opcode(id).is_elementwise(), 0i64);
        for &operand in operands {
            let known = self.known.get(&operand)?;
            splat &= known.splat;
            let goes = from.instruction(operand).use_count() == 1 && !from.is_root(operand);
            if goes && !known.splat {
                freed = freed.saturating_add(from.array_shape(operand)?.num_bytes()?);
            }
        }
        let fits = shape.num_elements()? <= LARGEST && shape.num_bytes()? <= freed;
        (splat || shape.num_elements()? == 1 || fits).then_some(splat)
    }

    /// Returns the operands of an instruction in the program; scalars are broadcast unless the
    /// result is a splat.
    fn operands(
        &mut self,
        from: &Module,
        id: InstId,
        splat: bool,
    ) -> Result<SmallVec<[InstId; 3]>, EditError> {
        let mut operands = SmallVec::new();
        for operand in from.operands(id) {
            let (Some(&known), Some(shape)) = (self.known.get(operand), from.array_shape(*operand))
            else {
                continue;
            };
            let spread = known.splat && !splat && shape.rank() > 0;
            operands.push(if spread {
                self.add(everywhere(), shape.without_layout().into(), &[known.id])?
            } else {
                known.id
            });
        }
        Ok(operands)
    }

    /// Evaluates the program and replaces each folded instruction that others need by a constant.
    fn fold(
        mut self,
        module: &mut Module,
        instructions: &[InstId],
        evaluator: &dyn Evaluate,
    ) -> Result<usize, EditError> {
        let folded = |id: &InstId| self.known.get(id).filter(|known| known.folded);
        let needed =
            |id: InstId| module.is_root(id) || module.uses(id).any(|u| folded(&u.user).is_none());
        let results: Vec<(InstId, Known)> = instructions
            .iter()
            .filter_map(|id| Some((*id, *folded(id)?)))
            .filter(|(id, _)| needed(*id))
            .collect();
        if results.is_empty() {
            return Ok(0);
        }
        let parts: Vec<InstId> = results.iter().map(|(_, known)| known.id).collect();
        let shapes = parts.iter().map(|&part| self.module.shape(part).clone()).collect();
        let shape = Shape::Tuple(shapes);
        let root = self.add(Op::Tuple, shape.clone(), &parts)?;
        self.module.set_root(root)?;
        let value = verify(self.module).ok().and_then(|program| evaluator.evaluate(&program));
        let Some(Literal::Tuple(values)) = value.filter(|value| value.shape() == shape) else {
            return Ok(0);
        };
        for ((id, known), value) in results.iter().zip(values) {
            replace(module, *id, known.splat, value)?;
        }
        Ok(results.len())
    }
}

/// Replaces an instruction by a constant.
fn replace(module: &mut Module, id: InstId, splat: bool, value: Literal) -> Result<(), EditError> {
    let shape = module.shape(id).clone();
    let number = splat && shape.as_array().is_some_and(|array| array.rank() > 0);
    let of_constant = if number { value.shape() } else { shape.clone() };
    let mut patch = Patch::new();
    let mut constant = patch.add(id, Op::Constant(Box::new(value)), of_constant, []);
    if number {
        constant = patch.add(id, everywhere(), shape, [constant]);
    }
    patch.replace(id, constant);
    patch.apply(module)?;
    Ok(())
}

fn everywhere() -> Op {
    Op::Broadcast(Box::new(BroadcastAttrs { dimensions: Dims::new() }))
}

/// Checks whether every correct backend computes the same result from the same operands.
fn has_one_result(module: &Module, id: InstId) -> bool {
    let opcode = module.opcode(id);
    let values = module.operands(id).iter().chain([&id]);
    let mut types = values.filter_map(|&v| Some(module.array_shape(v)?.element_type));
    if types.clone().any(ElementType::is_complex) {
        return is_move(opcode) || keeps_parts_apart(opcode);
    }
    match opcode {
        Opcode::StochasticConvert => false,
        // IEEE 754 rounds these correctly, so floats are exact too.
        Opcode::Divide | Opcode::Remainder | Opcode::Sqrt => true,
        Opcode::Power => !types.any(ElementType::is_float),
        _ => is_move(opcode) || opcode.is_elementwise() && !opcode.is_transcendental(),
    }
}

/// Checks whether an op only moves elements.
fn is_move(opcode: Opcode) -> bool {
    use Opcode::{Broadcast, Concatenate, Pad, Reshape, Reverse, Slice, Transpose};
    matches!(opcode, Broadcast | Concatenate | Pad | Reshape | Reverse | Slice | Transpose)
}

/// Checks whether an op on complex numbers acts on each part separately.
fn keeps_parts_apart(opcode: Opcode) -> bool {
    use Opcode::{Add, Compare, Complex, Convert, Imag, Negate, Real, Select, Subtract};
    matches!(opcode, Add | Compare | Complex | Convert | Imag | Negate | Real | Select | Subtract)
}
