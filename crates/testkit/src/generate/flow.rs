//! Computations of their own, and what calls, chooses and repeats them.

use tilewright_ir::ops::control::{CallAttrs, ConditionalAttrs, GetTupleElementAttrs, WhileAttrs};
use tilewright_ir::ops::elementwise::Direction;
use tilewright_ir::{CompId, Dims, ElementType, InstId, Op, Opcode, Shape};

use super::graph::{Graph, Made, Value};

impl Graph<'_, '_> {
    /// A computation of its own, called once or twice.
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
        let id = self.b.op(Op::Conditional(Box::new(attrs)), &operands)?;
        let result = self.value(id, a.bound.max(b.bound), a.exact && b.exact)?;
        self.keep(result);
        Ok(())
    }

    /// A loop of a few turns, or none, over an array and one that stays.
    pub(super) fn repeat(&mut self) -> Made<()> {
        let Some(arguments) = self.arguments()? else { return self.elementwise() };
        let first = arguments[0].clone();
        if first.is_complex() {
            return self.elementwise();
        }
        let stays = arguments.get(1).cloned().unwrap_or_else(|| first.clone());
        let zero = self.scalar(ElementType::S32, 0.0)?;
        let shape = Shape::Tuple(
            [&zero, &first, &stays].map(|v| Shape::array(v.element, v.dims.clone())).into(),
        );
        let turns = [-1.0, 1.0, 2.0, 3.0][self.rng.below(4)];
        let never = self.rng.chance(10);
        let (condition, _) = self.computation("goes_on", |inner| {
            let state = inner.b.parameter("state", shape.clone())?;
            if never {
                return inner.scalar(ElementType::Pred, 0.0);
            }
            let turn = inner.element(state, 0, &zero)?;
            let end = inner.scalar(ElementType::S32, turns)?;
            let id = inner.b.compare(Direction::Lt, turn.id, end.id)?;
            inner.value(id, 1.0, true)
        })?;
        let name = self.fresh("turn");
        let mut made = None;
        let Graph { b, rng, shared, .. } = self;
        let body = b.computation(&name, |b| {
            let mut inner = Graph::new(b, rng, shared);
            inner.shared.depth += 1;
            let turned = inner.turn(&shape, [&zero, &first, &stays]);
            inner.shared.depth -= 1;
            let (root, value) = turned?;
            made = Some(value);
            Ok(root)
        })?;
        let state = self.b.op(Op::Tuple, &[zero.id, first.id, stays.id])?;
        let attrs = WhileAttrs { condition, body };
        let state = self.b.op(Op::While(Box::new(attrs)), &[state])?;
        if let Some(made) = made {
            let bound = made.bound.max(first.bound);
            let result = self.element(state, 1, &Value { bound, exact: made.exact, ..first })?;
            self.keep(result);
        }
        let stayed = self.element(state, 2, &stays)?;
        self.keep(stayed);
        Ok(())
    }

    /// One turn of a loop: its state afterwards, and the array that it changes.
    fn turn(&mut self, shape: &Shape, [zero, first, stays]: [&Value; 3]) -> Made<(InstId, Value)> {
        let state = self.b.parameter("state", shape.clone())?;
        let turn = self.element(state, 0, zero)?;
        let one = self.scalar(ElementType::S32, 1.0)?;
        let next = self.b.binary(Opcode::Add, turn.id, one.id)?;
        // What went through sums in the last turn is not exact in the next.
        let mut first = self.element(state, 1, &Value { exact: false, ..first.clone() })?;
        if first.is_float() {
            // Nor does it grow with every turn.
            first = self.clamp(&first, -4.0, 4.0)?;
        }
        let stays = self.element(state, 2, stays)?;
        self.keep(first.clone());
        self.keep(stays.clone());
        self.some_steps()?;
        let changed = self.changed(&first)?;
        let root = self.b.op(Op::Tuple, &[next, changed.id, stays.id])?;
        Ok((root, changed))
    }

    /// An element of a tuple, of which as much is known as of `like`.
    fn element(&mut self, tuple: InstId, index: i64, like: &Value) -> Made<Value> {
        let attrs = GetTupleElementAttrs { index };
        let id = self.b.op(Op::GetTupleElement(Box::new(attrs)), &[tuple])?;
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

    /// A computation and what it yields.
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

    /// A few steps that end in the type and dims of the first argument.
    fn kept_in_shape(&mut self, arguments: &[Value]) -> Made<Value> {
        self.parameters(arguments)?;
        self.some_steps()?;
        let first = self.pool[0].clone();
        self.changed(&first)
    }

    /// A value with something of another of its type and dims, no larger.
    fn changed(&mut self, value: &Value) -> Made<Value> {
        let other = self.matching(value)?;
        if value.is_complex() {
            return self.unary(Opcode::Negate, &other);
        }
        let opcode = if self.rng.chance(50) { Opcode::Maximum } else { Opcode::Minimum };
        self.binary(opcode, value, &other)
    }
}
