//! Regions as programs of `tilewright-native`.

use tilewright_ir::ops::elementwise::Direction;
use tilewright_ir::reducer::Monoid;
use tilewright_ir::{ArrayLiteral, Data, ElementType, InstId, Literal, Module, Op, Opcode};
use tilewright_native::fused::{Binary, Id, Kind, Program, Reduction, Unary};
use tilewright_native::{Error, View};

use rustc_hash::FxHashMap;

use tilewright_rewrite::analysis::iteration::{Along, IterationRegion, dims, located};

/// A region as a program, with what its inputs and outputs are.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) program: Program,
    space: Vec<usize>,
    pub(super) inputs: Vec<Along>,
    pub(super) outputs: Vec<(ElementType, Vec<i64>)>,
}

impl Prepared {
    /// Returns the program of a region; `None` if it has an instruction that programs have not.
    pub(super) fn of(module: &Module, region: &IterationRegion) -> Option<Self> {
        let mut program = Program::new(&region.space).ok()?;
        let element_type = |id: InstId| module.array_shape(id).map(|shape| shape.element_type);
        let mut all = region.members.iter().chain(&region.inputs);
        let is_wide = all.any(|&id| element_type(id) == Some(ElementType::F64));
        if is_wide {
            program.compute_in_f64();
        }
        let mut ids = FxHashMap::default();
        let mut inputs = Vec::new();
        for input in &region.inputs {
            ids.insert(*input, program.input());
            inputs.push(region.along.get(input)?.clone());
        }
        let mut builder = ProgramBuilder { module, region, program, ids, is_wide };
        for &id in &region.members {
            let value = builder.value(id)?;
            builder.ids.insert(id, value);
        }
        let ProgramBuilder { mut program, ids, .. } = builder;
        let mut outputs = Vec::new();
        for output in &region.outputs {
            let along = region.along.get(output)?;
            let dropped = (0..region.space.len()).filter(|dim| !along.contains(dim));
            let dropped: Vec<i64> = dropped.map(i64::try_from).collect::<Result<_, _>>().ok()?;
            let shape = module.array_shape(*output)?;
            program.output(*ids.get(output)?, &dropped, kind(shape.element_type)?).ok()?;
            outputs.push((shape.element_type, shape.dims().to_vec()));
        }
        Some(Self { program, space: region.space.clone(), inputs, outputs })
    }

    /// Returns the view of the space that an array has which lies along some of its dims.
    pub(super) fn along<'a, T>(&self, along: &Along, data: &'a [T]) -> Result<View<'a, T>, Error> {
        let mut strides = vec![0isize; self.space.len()];
        let mut apart = 1usize;
        for &dim in along.iter().rev() {
            strides[dim] = isize::try_from(apart).map_err(|_| Error::TooLarge)?;
            apart = apart.checked_mul(self.space[dim]).ok_or(Error::TooLarge)?;
        }
        View::new(data, 0, &self.space, &strides)
    }

    /// Returns the view of an input by its number.
    pub(super) fn view<'a, T>(&self, input: usize, data: &'a [T]) -> Result<View<'a, T>, Error> {
        let inputs = self.inputs.len();
        let wrong = Error::Operands { given: input, wanted: inputs };
        self.along(self.inputs.get(input).ok_or(wrong)?, data)
    }
}

fn kind(element_type: ElementType) -> Option<Kind> {
    match element_type {
        ElementType::F32 => Some(Kind::F32),
        ElementType::F64 => Some(Kind::F64),
        ElementType::BF16 => Some(Kind::Bf16),
        ElementType::F16 => Some(Kind::F16),
        ElementType::Pred => Some(Kind::Bool),
        _ => None,
    }
}

/// Makes the values of a program.
struct ProgramBuilder<'a> {
    module: &'a Module,
    region: &'a IterationRegion,
    program: Program,
    ids: FxHashMap<InstId, Id>,
    is_wide: bool,
}

impl ProgramBuilder<'_> {
    fn value(&mut self, id: InstId) -> Option<Id> {
        let module = self.module;
        let operands: Vec<Id> = module
            .operands(id)
            .iter()
            .map(|id| self.ids.get(id).copied())
            .collect::<Option<_>>()?;
        let (value, rounds) = match (module.op(id), operands.as_slice()) {
            (Op::Constant(literal), _) => (self.constant(literal)?, false),
            (Op::Broadcast(_) | Op::Reshape(_), &[a]) => (a, false),
            (Op::Reduce(attrs), &[a, init]) => {
                let monoid = Monoid::of(module, attrs.to_apply)?;
                (self.reduce(id, monoid, a, init)?, true)
            }
            (Op::Select, &[condition, on_true, on_false]) => {
                (self.program.select(condition, on_true, on_false).ok()?, false)
            }
            (Op::Clamp, &[low, x, high]) => {
                let x = self.program.binary(Binary::Maximum, x, low).ok()?;
                (self.program.binary(Binary::Minimum, x, high).ok()?, false)
            }
            (Op::Compare(attrs), &[a, b]) => (self.compare(attrs.direction, a, b)?, false),
            (Op::Convert, &[a]) => (a, true),
            (op, &[a]) => (self.program.unary(unary(op)?, a).ok()?, true),
            (op, &[a, b]) => (self.program.binary(binary(op)?, a, b).ok()?, true),
            _ => return None,
        };
        let rounding = match module.array_shape(id)?.element_type {
            ElementType::BF16 => Some(Unary::ToBf16),
            ElementType::F16 => Some(Unary::ToF16),
            ElementType::F32 => self.is_wide.then_some(Unary::ToF32),
            _ => None,
        };
        match rounding.filter(|_| rounds) {
            Some(op) => self.program.unary(op, value).ok(),
            None => Some(value),
        }
    }

    fn constant(&mut self, literal: &Literal) -> Option<Id> {
        let array = literal.as_array()?;
        let value = match array.data() {
            Data::Pred(data) => f64::from(u8::from(*data.first()?)),
            _ => array.scalar_as_f64().or_else(|| first(array))?,
        };
        Some(self.program.constant(value))
    }

    fn reduce(&mut self, id: InstId, monoid: Monoid, a: Id, init: Id) -> Option<Id> {
        let (module, region) = (self.module, self.region);
        let (Op::Reduce(attrs), &[array, init_id]) = (module.op(id), module.operands(id)) else {
            return None;
        };
        let (along, dims) = (region.along.get(&array)?, dims(module, array)?);
        let places = located(&dims, along, &region.space);
        let mut axes = Vec::new();
        for &dim in &attrs.dimensions {
            for &axis in places.get(usize::try_from(dim).ok()?)?.as_ref()? {
                axes.push(i64::try_from(axis).ok()?);
            }
        }
        let (reduction, op) = match monoid.opcode {
            Opcode::Add => (Reduction::Sum, Binary::Add),
            Opcode::Multiply => (Reduction::Product, Binary::Multiply),
            Opcode::Maximum => (Reduction::Max, Binary::Maximum),
            Opcode::Minimum => (Reduction::Min, Binary::Minimum),
            _ => return None,
        };
        let reduced = self.program.reduce(reduction, a, &axes).ok()?;
        match module.op(init_id) {
            Op::Constant(literal) if monoid.is_neutral(literal) => Some(reduced),
            _ => self.program.binary(op, reduced, init).ok(),
        }
    }

    fn compare(&mut self, direction: Direction, a: Id, b: Id) -> Option<Id> {
        let (op, a, b) = match direction {
            Direction::Eq => (Binary::Equal, a, b),
            Direction::Ne => (Binary::NotEqual, a, b),
            Direction::Lt => (Binary::Less, a, b),
            Direction::Le => (Binary::LessEqual, a, b),
            Direction::Gt => (Binary::Less, b, a),
            Direction::Ge => (Binary::LessEqual, b, a),
        };
        self.program.binary(op, a, b).ok()
    }
}

/// The number of an array of one element that is no scalar.
fn first(array: &ArrayLiteral) -> Option<f64> {
    array.clone().reshape([]).ok()?.scalar_as_f64()
}

fn unary(op: &Op) -> Option<Unary> {
    match op {
        Op::Negate => Some(Unary::Negate),
        Op::Abs => Some(Unary::Abs),
        Op::Exp(_) => Some(Unary::Exp),
        Op::Log(_) => Some(Unary::Log),
        Op::Sqrt(_) => Some(Unary::Sqrt),
        Op::Rsqrt(_) => Some(Unary::Rsqrt),
        Op::Tanh(_) => Some(Unary::Tanh),
        Op::Logistic(_) => Some(Unary::Logistic),
        Op::Not => Some(Unary::Not),
        _ => None,
    }
}

/// The op on numbers; that on truth values, which are 1 and 0.
fn binary(op: &Op) -> Option<Binary> {
    match op {
        Op::Add => Some(Binary::Add),
        Op::Subtract => Some(Binary::Subtract),
        Op::Multiply => Some(Binary::Multiply),
        Op::Divide => Some(Binary::Divide),
        Op::Maximum | Op::Or => Some(Binary::Maximum),
        Op::Minimum | Op::And => Some(Binary::Minimum),
        Op::Power => Some(Binary::Power),
        _ => None,
    }
}
