//! The steps of which a random computation is made.

use tilewright_ir::element::NumberClass;
use tilewright_ir::ops::control::GetTupleElementAttrs;
use tilewright_ir::ops::elementwise::Direction;
use tilewright_ir::{Dims, ElementType, InstId, Op, Opcode, Shape};

use super::graph::{Graph, Made, Value};
use super::shapes::{all_dims, count, embedding, image_dims, random_dims, regrouped, some_dims};

impl Graph<'_, '_> {
    /// One step of a random kind.
    pub(super) fn step(&mut self) -> Made<()> {
        match self.rng.weighted(&self.options().weights.list()) {
            0 => self.input(),
            1 => self.elementwise(),
            2 => self.choose(),
            3 => self.some_reshape(),
            4 => self.some_broadcast(),
            5 => self.some_transpose(),
            6 => self.some_convert(),
            7 => self.some_reduce(),
            8 => self.norm(),
            9 => self.call(),
            10 => self.branch(),
            11 => self.repeat(),
            _ => self.duplicate(),
        }
    }

    /// Returns a parameter, constant or iota.
    pub(super) fn input(&mut self) -> Made<()> {
        let options = self.options();
        let types = &options.element_types;
        let element = self.rng.pick(types).copied().unwrap_or(ElementType::F32);
        let dims = if self.rng.chance(40) {
            image_dims(self.rng, options.max_elements)
        } else {
            random_dims(self.rng, options.max_elements, options.empty_percent)
        };
        let value = match self.rng.below(6) {
            0 if count(&dims) <= 16 => {
                let numbers: Vec<f64> = (0..count(&dims)).map(|_| self.number()).collect();
                self.constant(element, &dims, &numbers)?
            }
            1 if !dims.is_empty() && element != ElementType::Pred && !element.is_complex() => {
                let dim = self.rng.below(dims.len());
                let shape = Shape::array(element, dims.iter().copied());
                let id = self.b.iota(shape, i64::try_from(dim).unwrap_or(0))?;
                self.value(id, 12.0, true)?
            }
            // Parameters of a called computation are its arguments.
            _ if self.shared.depth > 0 => self.scalar(element, 0.5)?,
            _ => self.parameter(element, &dims)?,
        };
        self.keep(value);
        Ok(())
    }

    /// Returns a small number, often one that means something.
    fn number(&mut self) -> f64 {
        let numbers = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -0.25, 3.0, 0.125, -1.5];
        self.rng.pick(&numbers).copied().unwrap_or(1.0)
    }

    pub(super) fn elementwise(&mut self) -> Made<()> {
        let Some(value) = self.pick(|_| true) else { return self.input() };
        let result = if self.rng.chance(30) {
            self.some_unary(&value)?
        } else if value.element == ElementType::F32 && self.has_complex() && self.rng.chance(8) {
            self.some_complex(&value)?
        } else {
            let other = self.matching(&value)?;
            let ops = binary_ops(value.class());
            let opcode = self.rng.pick(ops).copied().unwrap_or(Opcode::Maximum);
            if self.rng.chance(50) {
                self.binary(opcode, &value, &other)?
            } else {
                self.binary(opcode, &other, &value)?
            }
        };
        self.keep(result);
        Ok(())
    }

    fn some_unary(&mut self, value: &Value) -> Made<Value> {
        let smooth = [Opcode::Negate, Opcode::Abs, Opcode::Tanh, Opcode::Logistic, Opcode::Sin];
        let jumps = [Opcode::Floor, Opcode::Sign, Opcode::RoundNearestEven];
        let ops: &[Opcode] = match value.class() {
            NumberClass::Float if value.exact && self.rng.chance(30) => &jumps,
            NumberClass::Float => &smooth,
            // Others have poles.
            NumberClass::Complex => {
                &[Opcode::Negate, Opcode::Real, Opcode::Imag, Opcode::Real, Opcode::Imag]
            }
            NumberClass::Signed => &[Opcode::Negate, Opcode::Abs, Opcode::Not, Opcode::Sign],
            NumberClass::Unsigned => &[Opcode::Not, Opcode::PopulationCount],
            NumberClass::Bool => &[Opcode::Not],
        };
        let opcode = self.rng.pick(ops).copied().unwrap_or(Opcode::Not);
        self.unary(opcode, value)
    }

    fn has_complex(&self) -> bool {
        self.options().element_types.contains(&ElementType::C64)
    }

    /// Complex numbers of these parts and others.
    fn some_complex(&mut self, real: &Value) -> Made<Value> {
        let imaginary = self.matching(real)?;
        let id = self.b.op(Op::Complex, [real.id, imaginary.id])?;
        self.value(id, real.bound.max(imaginary.bound), real.exact && imaginary.exact)
    }

    /// Another value of the same type and dims: one there is, or one made from
    /// another by a broadcast, reshape or conversion, or a number.
    pub(super) fn matching(&mut self, value: &Value) -> Made<Value> {
        let (element, dims) = (value.element, value.dims.clone());
        match self.rng.below(8) {
            0..=2 => {
                let same = |v: &Value| v.element == element && v.dims == dims;
                if let Some(other) = self.pick(same) {
                    return Ok(other);
                }
            }
            3 | 4 => {
                let smaller = |v: &Value| v.element == element && v.dims.len() < dims.len();
                if let Some(other) = self.pick(smaller)
                    && let Some(to) = embedding(self.rng, &other.dims, &dims)
                {
                    return self.broadcast(&other, &dims, &to);
                }
            }
            5 => {
                let same = |v: &Value| v.element == element && count(&v.dims) == count(&dims);
                if let Some(other) = self.pick(same) {
                    return self.reshape(&other, &dims);
                }
            }
            6 => {
                let other = |v: &Value| {
                    let real = !v.is_complex() || element.is_complex();
                    v.element != element && v.dims == dims && v.exact && real
                };
                if let Some(other) = self.pick(other) {
                    return self.convert(&other, element);
                }
            }
            _ => {}
        }
        let number = self.number();
        self.splat(value, number)
    }

    /// Returns a comparison and what it chooses, or a clamp.
    fn choose(&mut self) -> Made<()> {
        let Some(value) = self.pick(|_| true) else { return self.input() };
        let ordered = value.element != ElementType::Pred && !value.is_complex();
        if ordered && self.rng.chance(30) {
            let low = if value.class() == NumberClass::Unsigned { 0.0 } else { -1.0 };
            let result = self.clamp(&value, low, 2.0)?;
            self.keep(result);
            return Ok(());
        }
        let condition = self.condition(&value.dims)?;
        let other = self.matching(&value)?;
        let id = self.b.op(Op::Select, [condition.id, value.id, other.id])?;
        let bound = value.bound.max(other.bound);
        let result = self.value(id, bound, value.exact && other.exact)?;
        self.keep(condition);
        self.keep(result);
        Ok(())
    }

    /// Returns a truth value for every element, which no rounding can change.
    pub(super) fn condition(&mut self, dims: &Dims) -> Made<Value> {
        let known = |v: &Value| v.element == ElementType::Pred && v.dims == *dims && v.exact;
        if self.rng.chance(30)
            && let Some(known) = self.pick(known)
        {
            return Ok(known);
        }
        let compared = |v: &Value| v.dims == *dims && v.exact && !v.is_complex();
        let Some(value) = self.pick(compared) else {
            let scalar = self.scalar(ElementType::Pred, 1.0)?;
            return self.broadcast(&scalar, dims, &[]);
        };
        let number = self.number();
        let number = self.splat(&value, number)?;
        let directions =
            [Direction::Lt, Direction::Le, Direction::Ge, Direction::Eq, Direction::Ne];
        let direction = self.rng.pick(&directions).copied().unwrap_or(Direction::Gt);
        let id = self.b.compare(direction, value.id, number.id)?;
        self.value(id, 1.0, true)
    }

    fn some_reshape(&mut self) -> Made<()> {
        let Some(value) = self.pick(|_| true) else { return self.input() };
        let dims = regrouped(self.rng, &value.dims);
        let result = self.reshape(&value, &dims)?;
        self.keep(result);
        Ok(())
    }

    fn some_broadcast(&mut self) -> Made<()> {
        let most = self.options().max_elements;
        let Some(value) = self.pick(|v| count(&v.dims) * 2 <= most) else { return self.input() };
        let result = self.spread_out(&value)?;
        self.keep(result);
        Ok(())
    }

    /// Returns a broadcast to more dims, in their order or another.
    fn spread_out(&mut self, value: &Value) -> Made<Value> {
        let most = self.options().max_elements;
        let mut order: Vec<usize> = (0..value.dims.len()).collect();
        if self.rng.chance(20) {
            self.rng.shuffle(&mut order);
        }
        let mut dims: Vec<(i64, Option<usize>)> =
            order.iter().map(|&d| (value.dims[d], Some(d))).collect();
        for _ in 0..1 + self.rng.below(2) {
            let so_far: i64 = dims.iter().map(|(size, _)| size).product();
            let size = [1, 2, 3, 4, 6, 8][self.rng.below(6)].min(most / so_far.max(1)).max(1);
            dims.insert(self.rng.below(dims.len() + 1), (size, None));
        }
        let place = |d: usize| dims.iter().position(|(_, from)| *from == Some(d));
        let to = (0..value.dims.len()).filter_map(place).filter_map(|d| i64::try_from(d).ok());
        let to: Dims = to.collect();
        let sizes: Dims = dims.iter().map(|(size, _)| *size).collect();
        self.broadcast(value, &sizes, &to)
    }

    fn some_transpose(&mut self) -> Made<()> {
        let Some(value) = self.pick(|v| v.dims.len() > 1) else { return self.input() };
        let result = self.transposed(&value)?;
        self.keep(result);
        Ok(())
    }

    /// Returns the same with its dims in a random order.
    fn transposed(&mut self, value: &Value) -> Made<Value> {
        let mut permutation = all_dims(value.dims.len());
        self.rng.shuffle(&mut permutation);
        self.transpose(value, &permutation)
    }

    /// Returns a conversion, often of what comes out once more.
    fn some_convert(&mut self) -> Made<()> {
        let types = &self.options().element_types;
        let element = self.rng.pick(types).copied().unwrap_or(ElementType::F32);
        let Some(value) = self.pick(|v| converts(v, element)) else { return self.input() };
        let result = self.convert(&value, element)?;
        let next = if self.rng.chance(50) { Some(&value.element) } else { self.rng.pick(types) };
        self.keep(result.clone());
        match next {
            Some(&next) if converts(&result, next) && self.rng.chance(50) => {
                let again = self.convert(&result, next)?;
                self.keep(again);
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns a reduce of some dims, often of a reshape made for it.
    fn some_reduce(&mut self) -> Made<()> {
        let Some(mut value) = self.pick(|v| !v.dims.is_empty()) else { return self.input() };
        value = match self.rng.below(20) {
            0..=11 => {
                let dims = regrouped(self.rng, &value.dims);
                self.reshape(&value, &dims)?
            }
            12 => self.transposed(&value)?,
            13 => self.spread_out(&value)?,
            _ => value,
        };
        if self.rng.chance(25) {
            self.keep(value.clone());
        }
        let dims = some_dims(self.rng, value.dims.len());
        let ops: &[Opcode] = match value.class() {
            NumberClass::Float => {
                use Opcode::{Add, Maximum, Minimum, Multiply};
                &[Add, Add, Add, Maximum, Minimum, Multiply]
            }
            NumberClass::Bool => &[Opcode::And, Opcode::Or, Opcode::Xor, Opcode::Maximum],
            NumberClass::Complex => &[Opcode::Add],
            NumberClass::Signed | NumberClass::Unsigned => {
                use Opcode::{Add, And, Maximum, Minimum, Multiply, Or, Xor};
                &[Add, Add, Maximum, Minimum, Multiply, And, Or, Xor]
            }
        };
        let opcode = self.rng.pick(ops).copied().unwrap_or(Opcode::Add);
        if opcode == Opcode::Multiply && value.is_float() {
            value = self.clamp(&value, -1.0, 1.0)?;
        }
        let empty = count(&value.dims) == 0;
        let odd = self.rng.chance(self.options().odd_init_percent);
        // Without elements the result is the init, which should be finite.
        let init = if odd || empty { self.number() } else { neutral(opcode, value.class()) };
        let mut result = self.reduce(&value, &dims, opcode, init)?;
        if !result.dims.is_empty() && self.rng.chance(20) {
            let dims = some_dims(self.rng, result.dims.len());
            let init = neutral(opcode, result.class());
            result = self.reduce(&result, &dims, opcode, init)?;
        }
        self.keep(result);
        Ok(())
    }

    /// Returns an instruction that is there already, once more; or a value by way of a tuple.
    fn duplicate(&mut self) -> Made<()> {
        let Some(value) = self.pick(|_| true) else { return self.input() };
        if self.rng.chance(20) {
            return self.through_tuple(&value);
        }
        let module = self.b.module();
        let op = module.op(value.id).clone();
        if matches!(op, Op::Parameter(_)) {
            return self.elementwise();
        }
        let (shape, operands) =
            (module.shape(value.id).clone(), module.operands(value.id).to_vec());
        let id = self.b.op_with_shape(op, shape, &operands)?;
        let again = self.value(id, value.bound, value.exact)?;
        self.keep(again);
        Ok(())
    }

    fn through_tuple(&mut self, value: &Value) -> Made<()> {
        let other = self.pick(|_| true).unwrap_or_else(|| value.clone());
        let pair = self.b.op(Op::Tuple, [other.id, value.id])?;
        let second = GetTupleElementAttrs { index: 1 };
        let id = self.b.op(Op::GetTupleElement(Box::new(second)), [pair])?;
        let result = self.value(id, value.bound, value.exact)?;
        self.keep(result);
        Ok(())
    }

    /// Returns the result: most of what nothing uses, in a tuple.
    pub(super) fn outputs(&mut self) -> Made<InstId> {
        let module = self.b.module();
        let unused: Vec<InstId> = (self.pool.iter().map(|v| v.id))
            .filter(|&id| module.instruction(id).use_count() == 0)
            .collect();
        let mut results: Vec<InstId> = unused.into_iter().filter(|_| self.rng.chance(80)).collect();
        if self.rng.chance(30)
            && let Some(used) = self.pick(|_| true)
        {
            results.push(used.id);
        }
        if results.is_empty() {
            results.extend(self.pool.last().map(|v| v.id));
        }
        match results[..] {
            [only] if self.rng.chance(70) => Ok(only),
            _ => self.b.op(Op::Tuple, &results),
        }
    }
}

/// Checks whether a value may be converted to another type: what is rounded to integers or
/// truth values must be exact, and a complex number has more than a real part.
fn converts(value: &Value, element: ElementType) -> bool {
    let rounds = !element.is_float() && !element.is_complex();
    let loses = value.is_complex() && !element.is_complex();
    value.element != element && (value.exact || !rounds) && !loses
}

fn binary_ops(class: NumberClass) -> &'static [Opcode] {
    use Opcode::{Add, And, Maximum, Minimum, Multiply, Or, Subtract, Xor};
    match class {
        NumberClass::Bool => &[And, Or, Xor],
        NumberClass::Complex => &[Add, Subtract, Multiply],
        NumberClass::Float => &[Add, Add, Subtract, Subtract, Multiply, Multiply, Maximum, Minimum],
        NumberClass::Signed | NumberClass::Unsigned => {
            &[Add, Subtract, Multiply, Maximum, Minimum, And, Or, Xor]
        }
    }
}

/// Returns the number that changes nothing when combined.
fn neutral(opcode: Opcode, class: NumberClass) -> f64 {
    match (opcode, class) {
        (Opcode::Multiply, _) | (Opcode::And | Opcode::Minimum, NumberClass::Bool) => 1.0,
        (Opcode::And, NumberClass::Signed) => -1.0,
        (Opcode::And, _) | (Opcode::Minimum, _) => f64::INFINITY,
        (Opcode::Maximum, NumberClass::Bool) => 0.0,
        (Opcode::Maximum, _) => f64::NEG_INFINITY,
        _ => 0.0,
    }
}
