//! Computes values of instructions in registers. Each is set in the outermost loop in which all
//! its operands are known.

use std::ops::RangeInclusive;

use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};
use tilewright_ir::element::NumberClass;
use tilewright_ir::ops::dims::PadDim;
use tilewright_ir::ops::elementwise::{CompareAttrs, Direction};
use tilewright_ir::{
    ArrayLiteral, ArrayShape, Data, ElementType, InstId, Literal, Module, Op, Opcode,
};
use tilewright_target::Target;

use super::load::CopiedRegion;
use super::scope::{DimExpr, Scope};
use super::view::{MOST_NODES, operand_index};
use super::{Fusion, MOST_FUSED, array};
use crate::codegen::reduce::blocks::Loop;
use crate::codegen::reduce::state::{Statements, apply, convert, set};
use crate::error::{LowerError, TooLarge, Unsupported, internal};
use crate::kernel::build::Build;
use crate::kernel::{BufferId, Expr, RegisterId, Statement, Value};

/// The memory that holds the elements of an instruction.
#[derive(Clone, Copy, Debug)]
pub(super) enum Home {
    /// The whole array is in vector memory.
    Resident(BufferId),
    /// The array is in main memory.
    Main(BufferId),
}

/// Statements before and after a loop.
#[derive(Debug, Default)]
pub(super) struct Level {
    pub(super) before: Statements,
    pub(super) after: Statements,
}

/// A vector of the array that is reduced.
#[derive(Clone, Copy, Debug)]
pub(super) struct Element {
    pub(super) register: RegisterId,
    /// Whether padding holds the identity of the reduction.
    pub(super) is_masked: bool,
}

/// Emits statements that compute values inside loops.
pub(super) struct Emitter<'a> {
    pub(super) module: &'a Module,
    pub(super) target: &'a Target,
    pub(super) homes: FxHashMap<InstId, Home>,
    pub(super) scope: Scope,
    pub(super) levels: Vec<Level>,
    known: FxHashMap<(InstId, Vec<DimExpr>), RegisterId>,
    /// The number of loops around the statement that sets each register.
    depths: FxHashMap<RegisterId, usize>,
    /// Reductions along rows: for each instruction, its index and the register that holds the
    /// result.
    pub(super) rows: FxHashMap<InstId, (Vec<DimExpr>, RegisterId)>,
    pub(super) regions: Vec<CopiedRegion>,
    /// The addresses that gathers read from.
    pub(super) gathers: Vec<Expr>,
    /// The number of values that may still be computed.
    values_left: usize,
    /// The number of nodes that their indices may still have.
    nodes_left: usize,
}

impl<'a> Emitter<'a> {
    pub(super) fn new(fusion: &Fusion<'a>, homes: FxHashMap<InstId, Home>, scope: Scope) -> Self {
        let Fusion { module, target, size, .. } = *fusion;
        let mut levels = Vec::new();
        levels.resize_with(scope.depth() + 1, Level::default);
        Self {
            module,
            target,
            homes,
            scope,
            levels,
            known: FxHashMap::default(),
            depths: FxHashMap::default(),
            rows: FxHashMap::default(),
            regions: Vec::new(),
            gathers: Vec::new(),
            values_left: size.saturating_mul(MOST_TIMES).saturating_add(FREE_VALUES),
            nodes_left: MOST_NODES_IN_ALL,
        }
    }

    /// Counts a value at an index.
    fn spend(&mut self, index: &[DimExpr]) -> Result<(), LowerError> {
        let nodes = index.iter().map(DimExpr::nodes).fold(0, usize::saturating_add);
        let left = (self.values_left.checked_sub(1), self.nodes_left.checked_sub(nodes));
        let (Some(values), Some(nodes), true) = (left.0, left.1, nodes <= MOST_NODES) else {
            return Err(TooLarge::Indices.into());
        };
        (self.values_left, self.nodes_left) = (values, nodes);
        Ok(())
    }

    /// Returns a register with the elements of an instruction at the given indices.
    pub(super) fn value(
        &mut self,
        build: &mut Build,
        id: InstId,
        index: &[DimExpr],
    ) -> Result<RegisterId, LowerError> {
        let key = (id, index.to_vec());
        if let Some(&register) = self.known.get(&key) {
            return Ok(register);
        }
        if let Some((at, register)) = self.rows.get(&id) {
            return if at == index { Ok(*register) } else { Err(Unsupported::Unlike.into()) };
        }
        self.spend(index)?;
        let module = self.module;
        let register = match (self.homes.get(&id), module.op(id)) {
            (Some(&home), _) => self.load(build, (id, home), index, None)?,
            (None, Op::Pad(attrs)) => self.padded(build, id, &attrs.padding, index)?,
            (None, Op::Concatenate(attrs)) => {
                let along = attrs.dimensions.first().and_then(|&dim| usize::try_from(dim).ok());
                self.concatenated(
                    build,
                    id,
                    along.ok_or_else(|| internal("a concatenate along no dim"))?,
                    index,
                )?
            }
            (None, Op::Iota(attrs)) => {
                let along = usize::try_from(attrs.dimension).unwrap_or(usize::MAX);
                let along = index
                    .get(along)
                    .cloned()
                    .ok_or_else(|| internal("an iota along a dim that it does not have"))?;
                self.counted(build, &along, self.element_type(id)?)?
            }
            (None, Op::Constant(literal)) => {
                let element_type = self.element_type(id)?;
                let scalar = literal.as_array().filter(|array| array.len() == 1);
                scalar
                    .filter(|_| module.array_shape(id).is_some_and(|s| s.rank() == 0))
                    .ok_or_else(|| internal("a constant array that is no input of its kernel"))?;
                self.set(build, "c", element_type, Value::Splat((**literal).clone()))
            }
            (None, op) if op.opcode().is_elementwise() => self.computed(build, id, index)?,
            _ => {
                let operand = operand_index(module, id, index, &self.scope)?;
                let (Some(index), &[operand]) = (operand, module.operands(id)) else {
                    let error = LowerError::from(Unsupported::Op(module.opcode(id)));
                    return Err(error.at(module.name_of(id)));
                };
                self.value(build, operand, &index)?
            }
        };
        self.known.insert(key, register);
        Ok(register)
    }

    /// Returns the elements of an array that is reduced. Padding holds the identity of the
    /// reduction if the identity is known.
    pub(super) fn element(
        &mut self,
        build: &mut Build,
        id: InstId,
        index: &[DimExpr],
        neutral: &Literal,
    ) -> Result<Element, LowerError> {
        let all = self.scope.whole_mask()?;
        Ok(match self.homes.get(&id) {
            // A load under the whole mask already holds the identity in padding.
            Some(&home) if self.scope.mask(index)? == all => {
                let register = self.load(build, (id, home), index, Some(neutral))?;
                Element { register, is_masked: true }
            }
            _ => Element { register: self.value(build, id, index)?, is_masked: all.is_empty() },
        })
    }

    /// Emits an elementwise op.
    fn computed(
        &mut self,
        build: &mut Build,
        id: InstId,
        index: &[DimExpr],
    ) -> Result<RegisterId, LowerError> {
        let module = self.module;
        let mut registers: SmallVec<[Option<RegisterId>; 3]> = smallvec![];
        for &operand in module.operands(id) {
            let rank = module.array_shape(operand).map_or(0, ArrayShape::rank);
            // `clamp` takes scalars as well as arrays.
            let index = if rank == 0 { &[] } else { index };
            registers.push(match self.constant(operand) {
                Some(_) => None,
                None => Some(self.value(build, operand, index)?),
            });
        }
        // Constants are set where they are used, because a register held across loops stays
        // occupied.
        let depth = registers.iter().flatten().map(|&r| self.depth(r)).max().unwrap_or(0);
        let mut operands: SmallVec<[RegisterId; 3]> = smallvec![];
        for (&operand, register) in module.operands(id).iter().zip(registers) {
            operands.push(match (register, self.constant(operand)) {
                (None, Some(literal)) => {
                    let (splat, of) = (Value::Splat(literal.clone()), self.element_type(operand)?);
                    self.set_at(build, "c", of, splat, depth)
                }
                (Some(register), _) => register,
                (None, None) => {
                    return Err(internal(
                        "an operand that is neither a constant nor in a register",
                    ));
                }
            });
        }
        let value = Value::Apply(module.op(id).clone(), operands);
        Ok(self.set(build, module.name_of(id), self.element_type(id)?, value))
    }

    /// Returns the scalar constant that the instruction equals at every index, if there is one.
    fn constant(&self, mut id: InstId) -> Option<&'a Literal> {
        for _ in 0..MOST_LOOKED_THROUGH {
            match self.module.op(id) {
                _ if self.homes.contains_key(&id) => return None,
                Op::Constant(literal) => {
                    return Some(&**literal).filter(|literal| {
                        literal.as_array().is_some_and(|array| array.dims().is_empty())
                    });
                }
                Op::Broadcast(_) | Op::Reshape(_) | Op::Copy => {
                    id = *self.module.operands(id).first()?;
                }
                _ => return None,
            }
        }
        None
    }

    /// Converts an index to an element type.
    fn counted(
        &mut self,
        build: &mut Build,
        along: &DimExpr,
        element_type: ElementType,
    ) -> Result<RegisterId, LowerError> {
        let along = self.scope.placed(along);
        let is_integer =
            matches!(element_type.class(), NumberClass::Signed | NumberClass::Unsigned);
        let counted = if is_integer { element_type } else { self.counting_type(&along) };
        self.positions(build, along, counted, element_type)
    }

    /// Returns the type that holds an index at every position: `s32` if it is large enough.
    fn counting_type(&self, along: &Expr) -> ElementType {
        let scope = &self.scope;
        let range = along.range_at(scope.positions(), &|index| scope.range(index));
        let fits = |range: RangeInclusive<i64>| {
            i32::try_from(*range.start()).is_ok() && i32::try_from(*range.end()).is_ok()
        };
        if range.is_some_and(fits) { ElementType::S32 } else { ElementType::S64 }
    }

    /// Returns an index as integers of one type, converted to another.
    fn positions(
        &mut self,
        build: &mut Build,
        along: Expr,
        counted: ElementType,
        element_type: ElementType,
    ) -> Result<RegisterId, LowerError> {
        let level = self.scope.level(&along);
        let register = self.set_at(build, "i", counted, Value::Positions(along), level);
        if counted == element_type {
            return Ok(register);
        }
        Ok(self.set(build, "i", element_type, convert(register)?))
    }

    /// Compares an index with a number at each position.
    fn compared(
        &mut self,
        build: &mut Build,
        along: &DimExpr,
        direction: Direction,
        bound: i64,
    ) -> Result<RegisterId, LowerError> {
        let along = self.scope.placed(along);
        let (counting, bound) = match (self.counting_type(&along), i32::try_from(bound)) {
            (ElementType::S32, Ok(bound)) => (ElementType::S32, Data::S32(vec![bound])),
            _ => (ElementType::S64, Data::S64(vec![bound])),
        };
        let counted = self.positions(build, along, counting, counting)?;
        let bound = ArrayLiteral::new(counting, [], bound);
        let bound = Literal::Array(bound.map_err(|_| internal("a number that is no literal"))?);
        let bound = self.set(build, "c", counting, Value::Splat(bound));
        let op = Op::Compare(Box::new(CompareAttrs { direction, order: None }));
        let value = Value::Apply(op, smallvec![counted, bound]);
        Ok(self.set(build, "is", ElementType::Pred, value))
    }

    fn padded(
        &mut self,
        build: &mut Build,
        id: InstId,
        padding: &[PadDim],
        index: &[DimExpr],
    ) -> Result<RegisterId, LowerError> {
        let &[operand, filling] = self.module.operands(id) else {
            return Err(internal("a pad of other operands than an array and a scalar"));
        };
        let element_type = self.element_type(id)?;
        let filling = self.value(build, filling, &[])?;
        let shape = array(self.module, operand)?;
        let sizes = shape.dims().to_vec();
        if sizes.contains(&0) {
            return Ok(filling);
        }
        let mut inside: Option<RegisterId> = None;
        let mut within = Vec::with_capacity(index.len());
        for ((along, &size), dim) in index.iter().zip(&sizes).zip(padding) {
            let step = dim.interior.checked_add(1).ok_or(TooLarge::Elements)?;
            let end = size.saturating_sub(1).saturating_mul(step);
            let place = self.scope.simple(along.clone() + dim.low.saturating_neg().into());
            let mut conditions = Vec::new();
            if dim.low > 0 {
                conditions.push(self.compared(build, &place, Direction::Ge, 0)?);
            }
            if dim.high > 0 {
                conditions.push(self.compared(build, &place, Direction::Le, end)?);
            }
            if step > 1 {
                let rest = place.clone().remainder(step);
                conditions.push(self.compared(build, &rest, Direction::Eq, 0)?);
            }
            within.push(clamped(place.quotient(step), size.saturating_sub(1)));
            for condition in conditions {
                inside = Some(match inside {
                    None => condition,
                    Some(before) => {
                        let both = apply(Opcode::And, smallvec![before, condition])?;
                        self.set(build, "is", ElementType::Pred, both)
                    }
                });
            }
        }
        let within: Vec<DimExpr> = within.into_iter().map(|e| self.scope.simple(e)).collect();
        let value = self.value(build, operand, &within)?;
        let Some(inside) = inside else { return Ok(value) };
        let select = apply(Opcode::Select, smallvec![inside, value, filling])?;
        Ok(self.set(build, "pad", element_type, select))
    }

    fn concatenated(
        &mut self,
        build: &mut Build,
        id: InstId,
        along: usize,
        index: &[DimExpr],
    ) -> Result<RegisterId, LowerError> {
        let module = self.module;
        let element_type = self.element_type(id)?;
        let mut begin = 0i64;
        let mut parts = Vec::new();
        for &operand in module.operands(id) {
            let shape = array(module, operand)?;
            let size = *shape.dims().get(along).ok_or_else(|| {
                internal("a concatenate along a dim that an operand does not have")
            })?;
            let end = begin.checked_add(size).ok_or(TooLarge::Elements)?;
            if size > 0 {
                let mut index = index.to_vec();
                let place = index.get_mut(along).ok_or_else(|| {
                    internal("a concatenate along a dim that its result does not have")
                })?;
                let inside = clamped(place.clone() + Expr::from(begin) * -1, size - 1);
                *place = self.scope.simple(inside);
                parts.push((self.value(build, operand, &index)?, end));
            }
            begin = end;
        }
        let place = index
            .get(along)
            .cloned()
            .ok_or_else(|| internal("a concatenate along a dim that its result does not have"))?;
        let (mut value, _) = parts.pop().ok_or_else(|| internal("a concatenate of nothing"))?;
        for (part, end) in parts.into_iter().rev() {
            let before = self.compared(build, &place, Direction::Lt, end)?;
            let select = apply(Opcode::Select, smallvec![before, part, value])?;
            value = self.set(build, "joined", element_type, select);
        }
        Ok(value)
    }

    pub(super) fn element_type(&self, id: InstId) -> Result<ElementType, LowerError> {
        let shape = array(self.module, id)?;
        let is_dynamic = (0..shape.rank()).any(|dim| shape.dim_is_dynamic(dim));
        if is_dynamic {
            return Err(LowerError::from(Unsupported::Dynamic).at(self.module.name_of(id)));
        }
        Ok(shape.element_type)
    }

    /// Sets a register in the outermost loop in which the operands of its value are set.
    pub(super) fn set(
        &mut self,
        build: &mut Build,
        name: &str,
        element_type: ElementType,
        value: Value,
    ) -> RegisterId {
        let depths = value.operands().map(|operand| self.depth(operand));
        let depth = depths.max().unwrap_or(0);
        self.set_at(build, name, element_type, value, depth)
    }

    pub(super) fn set_at(
        &mut self,
        build: &mut Build,
        name: &str,
        element_type: ElementType,
        value: Value,
        depth: usize,
    ) -> RegisterId {
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        let register = build.register(stem, element_type, self.scope.walk.vector);
        if let Some(level) = self.levels.get_mut(depth) {
            level.before.push(set(register, value));
        }
        self.depths.insert(register, depth);
        register
    }

    /// Returns the number of loops around the statement that sets a register.
    pub(super) fn depth(&self, register: RegisterId) -> usize {
        self.depths.get(&register).copied().unwrap_or(0)
    }

    /// Forgets registers that are set inside more than `depth` loops.
    pub(super) fn leave(&mut self, depth: usize) {
        let depths = &self.depths;
        self.known.retain(|_, register| depths.get(register).is_none_or(|&d| d <= depth));
    }

    /// Nests the statements of all levels from `from` on in their loops, around the statements
    /// of the innermost loop.
    pub(super) fn nest(&mut self, loops: &[&Loop], from: usize) -> Statements {
        let mut body = Statements::new();
        for (place, l) in loops.iter().enumerate().rev() {
            let body_of = std::mem::take(&mut body);
            let body_of = self.take(from + place + 1, body_of);
            body = vec![Statement::For { index: l.index, count: l.count.clone(), body: body_of }];
        }
        body
    }

    /// Takes the statements of a level and puts `inner` between them.
    pub(super) fn take(&mut self, level: usize, inner: Statements) -> Statements {
        let Some(level) = self.levels.get_mut(level) else { return inner };
        let Level { mut before, after } = std::mem::take(level);
        before.extend(inner);
        before.extend(after);
        before
    }
}

/// The largest average number of times that an emitter computes each instruction, for different
/// indices and again for each reduction along rows.
const MOST_TIMES: usize = 8;

/// Values beside these, however small the group is.
const FREE_VALUES: usize = 64;

/// Largest number of nodes of all indices.
const MOST_NODES_IN_ALL: usize = 64 * MOST_FUSED;

/// Largest number of moves that the search for a constant follows.
const MOST_LOOKED_THROUGH: usize = 8;

/// Clamps a number to the range from 0 to `last`.
fn clamped(of: DimExpr, last: i64) -> DimExpr {
    let not_less = (of * -1).least(Expr::ZERO) * -1;
    not_less.least(last.into())
}
