//! Computations of their own, and what calls, chooses and repeats them.

use tilewright_ir::ops::control::{CallAttrs, ConditionalAttrs, GetTupleElementAttrs, WhileAttrs};
use tilewright_ir::ops::elementwise::Direction;
use tilewright_ir::{CompId, Dims, ElementType, InstId, Op, Opcode, Shape};

use super::graph::{Graph, Made, Value};
use super::shapes::regrouped;

/// The state of a loop.
struct LoopState {
    /// The number of the turn.
    zero: Value,
    /// The array that is changed, and the dims in which that is done.
    carried: Value,
    dims: Dims,
    /// An array that every turn hands on, and the initial value of another array.
    stays: Value,
}

impl LoopState {
    fn shape(&self) -> Shape {
        let elements = [&self.zero, &self.carried, &self.stays, &self.stays];
        Shape::Tuple(elements.map(|v| Shape::array(v.element, v.dims.clone())).into())
    }
}

impl Graph<'_, '_> {
    /// Returns a computation of its own, called once or twice.
    pub(super) fn call(&mut self) -> Made<()> {
        let Some(arguments) = self.arguments()? else { return self.elementwise() };
        let (to_apply, root) = self.computation("called", |inner| {
            inner.parameters(&arguments)?;
            inner.some_steps()?;
            let last = inner.pool.last().cloned();
            last.map_or_else(|| inner.scalar(ElementType::F32, 0.0), Ok)
        })?;
        let operands: Vec<InstId> = arguments.iter().map(|a| a.id).collect();
        for _ in 0..1 + self.rng.below(2) {
            let attrs = CallAttrs { to_apply, is_composite: false };
            let id = self.b.op(Op::Call(Box::new(attrs)), &operands)?;
            let result = self.value(id, root.bound, root.exact)?;
            self.keep(result);
        }
        Ok(())
    }

    /// One of two computations, often known before it runs; or one in both
    /// places.
    pub(super) fn branch(&mut self) -> Made<()> {
        let Some(arguments) = self.arguments()? else { return self.elementwise() };
        let first = arguments[0].clone();
        let second = arguments.get(1).cloned().unwrap_or_else(|| first.clone());
        let predicate = match self.rng.below(3) {
            0 => self.condition(&Dims::new())?,
            _ => {
                let holds = f64::from(u8::from(self.rng.chance(50)));
                self.scalar(ElementType::Pred, holds)?
            }
        };
        let turned = |inner: &mut Graph<'_, '_>| inner.kept_in_shape(std::slice::from_ref(&first));
        let (one, a) = self.computation("taken", turned)?;
        let turned = |inner: &mut Graph<'_, '_>| inner.kept_in_shape(std::slice::from_ref(&first));
        let (other, b) =
            if self.rng.chance(20) { (one, a.clone()) } else { self.computation("or", turned)? };
        let attrs = ConditionalAttrs {
            true_computation: Some(one),
            false_computation: Some(other),
            branch_computations: Default::default(),
        };
        let operands = [predicate.id, first.id, second.id];
        let id = self.b.op(Op::Conditional(Box::new(attrs)), operands)?;
        let result = self.value(id, a.bound.max(b.bound), a.exact && b.exact)?;
        self.keep(result);
        Ok(())
    }

    /// Returns a loop of a few turns, or none, over an array, one that stays, and one that may
    /// be for nothing. The first may be carried in other dims than those in which it is
    /// changed.
    pub(super) fn repeat(&mut self) -> Made<()> {
        let Some(arguments) = self.arguments()? else { return self.elementwise() };
        let first = arguments[0].clone();
        if first.is_complex() {
            return self.elementwise();
        }
        let stays = arguments.get(1).cloned().unwrap_or_else(|| first.clone());
        let zero = self.scalar(ElementType::S32, 0.0)?;
        let carried = match self.rng.chance(40) {
            true => {
                let dims = regrouped(self.rng, &first.dims);
                self.reshape(&first, &dims)?
            }
            false => first.clone(),
        };
        let state = LoopState { zero, carried, dims: first.dims, stays };
        let condition = self.loop_condition(&state)?;
        let name = self.fresh("turn");
        let mut made = None;
        let Graph { b, rng, shared, .. } = self;
        let body = b.computation(&name, |b| {
            let mut inner = Graph::new(b, rng, shared);
            inner.shared.depth += 1;
            let turned = inner.turn(&state);
            inner.shared.depth -= 1;
            let (root, values) = turned?;
            made = Some(values);
            Ok(root)
        })?;
        let LoopState { zero, carried, dims, stays } = &state;
        let init = self.b.op(Op::Tuple, [zero.id, carried.id, stays.id, stays.id])?;
        let attrs = WhileAttrs { condition, body };
        let result = self.b.op(Op::While(Box::new(attrs)), [init])?;
        if let Some([changed, spare]) = made {
            let after = |made: Value, before: &Value| {
                let (bound, exact) = (made.bound.max(before.bound), made.exact);
                Value { bound, exact, ..before.clone() }
            };
            let mut changed = self.element(result, 1, &after(changed, carried))?;
            if self.rng.chance(80) {
                changed = self.reshape(&changed, dims)?;
            }
            self.keep(changed);
            if self.rng.chance(50) {
                let spare = self.element(result, 3, &after(spare, stays))?;
                self.keep(spare);
            }
        }
        let stayed = self.element(result, 2, stays)?;
        self.keep(stayed);
        Ok(())
    }

    /// Returns the condition of a loop of a few turns, or none.
    fn loop_condition(&mut self, state: &LoopState) -> Made<CompId> {
        let turns = [-1.0, 1.0, 2.0, 3.0][self.rng.below(4)];
        let never = self.rng.chance(10);
        let (condition, _) = self.computation("goes_on", |inner| {
            let parameter = inner.b.parameter("state", state.shape())?;
            if never {
                return inner.scalar(ElementType::Pred, 0.0);
            }
            let turn = inner.element(parameter, 0, &state.zero)?;
            let end = inner.scalar(ElementType::S32, turns)?;
            let id = inner.b.compare(Direction::Lt, turn.id, end.id)?;
            inner.value(id, 1.0, true)
        })?;
        Ok(condition)
    }

    /// One turn of a loop: its state afterwards, and the arrays that it changes.
    fn turn(&mut self, state: &LoopState) -> Made<(InstId, [Value; 2])> {
        let parameter = self.b.parameter("state", state.shape())?;
        let turn = self.element(parameter, 0, &state.zero)?;
        let one = self.scalar(ElementType::S32, 1.0)?;
        let next = self.b.binary(Opcode::Add, turn.id, one.id)?;
        let carried = self.carried(parameter, 1, &state.carried)?;
        let first = self.reshape(&carried, &state.dims)?;
        let first = self.clamped(first)?;
        let stays = self.element(parameter, 2, &state.stays)?;
        self.keep(first.clone());
        self.keep(stays.clone());
        self.some_steps()?;
        let changed = self.changed(&first)?;
        let handed_on = self.reshape(&changed, &state.carried.dims)?;
        let spare = self.carried(parameter, 3, &state.stays)?;
        let spare = self.clamped(spare)?;
        let spare = self.changed(&spare)?;
        let root = self.b.op(Op::Tuple, [next, handed_on.id, stays.id, spare.id])?;
        Ok((root, [changed, spare]))
    }

    /// Returns an element that every turn changes: what went through sums in the last turn is
    /// not exact in the next.
    fn carried(&mut self, state: InstId, index: i64, like: &Value) -> Made<Value> {
        self.element(state, index, &Value { exact: false, ..like.clone() })
    }

    /// Nor does it grow with every turn.
    fn clamped(&mut self, value: Value) -> Made<Value> {
        if value.is_float() { self.clamp(&value, -4.0, 4.0) } else { Ok(value) }
    }

    /// Returns an element of a tuple, of which as much is known as of `like`.
    fn element(&mut self, tuple: InstId, index: i64, like: &Value) -> Made<Value> {
        let attrs = GetTupleElementAttrs { index };
        let id = self.b.op(Op::GetTupleElement(Box::new(attrs)), [tuple])?;
        self.value(id, like.bound, like.exact)
    }

    /// One value or two of the same type and dims; `None` where calls are deep
    /// enough.
    fn arguments(&mut self) -> Made<Option<Vec<Value>>> {
        let Some(first) = self.pick(|_| true).filter(|_| self.shared.depth < 2) else {
            return Ok(None);
        };
        let second = self.rng.chance(60).then(|| self.matching(&first)).transpose()?;
        Ok(Some([first].into_iter().chain(second).collect()))
    }

    fn fresh(&mut self, stem: &str) -> String {
        self.shared.computations += 1;
        format!("{stem}_{}", self.shared.computations)
    }

    /// Returns a computation and what it yields.
    fn computation(
        &mut self,
        stem: &str,
        fill: impl FnOnce(&mut Graph<'_, '_>) -> Made<Value>,
    ) -> Made<(CompId, Value)> {
        let name = self.fresh(stem);
        let mut root = None;
        let Graph { b, rng, shared, .. } = self;
        let id = b.computation(&name, |b| {
            let mut inner = Graph::new(b, rng, shared);
            inner.shared.depth += 1;
            let made = fill(&mut inner);
            inner.shared.depth -= 1;
            let value = made?;
            let id = value.id;
            root = Some(value);
            Ok(id)
        })?;
        match root {
            Some(root) => Ok((id, root)),
            None => Ok((id, self.scalar(ElementType::F32, 0.0)?)),
        }
    }

    fn parameters(&mut self, arguments: &[Value]) -> Made<()> {
        for argument in arguments {
            let parameter = self.parameter(argument.element, &argument.dims)?;
            self.keep(Value { id: parameter.id, ..argument.clone() });
        }
        Ok(())
    }

    fn some_steps(&mut self) -> Made<()> {
        for _ in 0..1 + self.rng.below(4) {
            self.step()?;
        }
        Ok(())
    }

    /// Returns a few steps that end in the type and dims of the first argument.
    fn kept_in_shape(&mut self, arguments: &[Value]) -> Made<Value> {
        self.parameters(arguments)?;
        self.some_steps()?;
        let first = self.pool[0].clone();
        self.changed(&first)
    }

    /// Returns a value with something of another of its type and dims, no larger.
    fn changed(&mut self, value: &Value) -> Made<Value> {
        let other = self.matching(value)?;
        if value.is_complex() {
            return self.unary(Opcode::Negate, &other);
        }
        let opcode = if self.rng.chance(50) { Opcode::Maximum } else { Opcode::Minimum };
        self.binary(opcode, value, &other)
    }
}
