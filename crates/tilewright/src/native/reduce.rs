//! Reduces of whole numbers and truth values, which are exact in any order.

use tilewright_interp::Elementwise;
use tilewright_ir::reducer::Monoid;
use tilewright_ir::{ArrayLiteral, Data, ElementType, InstId, Literal, Op, Opcode, Verified};
use tilewright_native::{
    And, Array, Element, Error, Fold, Max, Min, Number, Or, Pool, Product, Sum, View, reduce,
};

/// Returns the monoid of a reduce that is computed here.
pub(super) fn monoid(module: &Verified, id: InstId) -> Option<Monoid> {
    let Op::Reduce(attrs) = module.op(id) else { return None };
    let &[array, _] = module.operands(id) else { return None };
    let shape = module.array_shape(array).filter(|shape| shape.is_static())?;
    let monoid = Monoid::of(module, attrs.to_apply)?;
    let is_whole = matches!(
        shape.element_type,
        ElementType::S8
            | ElementType::S16
            | ElementType::S32
            | ElementType::S64
            | ElementType::U8
            | ElementType::U16
            | ElementType::U32
            | ElementType::U64
    );
    let is_known = match monoid.opcode {
        Opcode::Add | Opcode::Multiply | Opcode::Maximum | Opcode::Minimum => is_whole,
        Opcode::And | Opcode::Or => shape.element_type == ElementType::Pred,
        _ => false,
    };
    // The extremum of nothing is the init.
    (is_known && !shape.dims().contains(&0)).then_some(monoid)
}

/// Reduces an array, and combines each result with the init.
pub(super) fn reduced(
    module: &Verified,
    id: InstId,
    monoid: Monoid,
    operands: &[Literal],
    pool: &dyn Pool,
) -> Result<Literal, String> {
    let (Op::Reduce(attrs), [array, init]) = (module.op(id), operands) else {
        return Err("a reduce without an init".to_owned());
    };
    let both = array.as_array().zip(init.as_array());
    let (array, init) = both.ok_or("an operand of a reduce is no array")?;
    let dims: Vec<usize> =
        array.dims().iter().filter_map(|&dim| usize::try_from(dim).ok()).collect();
    let call = Call { dims: &dims, axes: &attrs.dimensions, opcode: monoid.opcode, pool };
    let data = match array.data() {
        Data::S8(data) => call.numbers(data).map(Data::S8),
        Data::S16(data) => call.numbers(data).map(Data::S16),
        Data::S32(data) => call.numbers(data).map(Data::S32),
        Data::S64(data) => call.numbers(data).map(Data::S64),
        Data::U8(data) => call.numbers(data).map(Data::U8),
        Data::U16(data) => call.numbers(data).map(Data::U16),
        Data::U32(data) => call.numbers(data).map(Data::U32),
        Data::U64(data) => call.numbers(data).map(Data::U64),
        Data::Pred(data) if monoid.opcode == Opcode::And => call.run(data, And).map(Data::Pred),
        Data::Pred(data) => call.run(data, Or).map(Data::Pred),
        _ => return Err("a reduce of another type".to_owned()),
    };
    let data = data.map_err(|error| error.to_string())?;
    let data = combined(monoid, data, init).ok_or("its op cannot be applied to the init")?;
    let result = module.array_shape(id).ok_or("a reduce that is no array")?;
    let array = ArrayLiteral::new(result.element_type, result.dims().iter().copied(), data);
    array.map(Literal::Array).map_err(|error| error.to_string())
}

/// Combines each element with a scalar.
fn combined(monoid: Monoid, data: Data, init: &ArrayLiteral) -> Option<Data> {
    if monoid.is_neutral(&Literal::Array(init.clone())) {
        return Some(data);
    }
    let element_type = monoid.element_type;
    let op = Elementwise::new(&monoid.op()?, &[element_type; 2], element_type)?;
    let len = data.len();
    let all = init.data().gather(std::iter::repeat_n(0, len));
    let mut out = Data::zeros(element_type, len);
    op.compute(&[&data, &all], len, &mut out).then_some(out)
}

/// A reduction of an array of some type.
struct Call<'a> {
    dims: &'a [usize],
    axes: &'a [i64],
    opcode: Opcode,
    pool: &'a dyn Pool,
}

impl Call<'_> {
    fn numbers<T: Number>(&self, data: &[T]) -> Result<Vec<T>, Error> {
        match self.opcode {
            Opcode::Add => self.run(data, Sum),
            Opcode::Multiply => self.run(data, Product),
            Opcode::Maximum => self.run(data, Max),
            _ => self.run(data, Min),
        }
    }

    fn run<T: Element, F: Fold<T>>(&self, data: &[T], fold: F) -> Result<Vec<F::Output>, Error> {
        let view = View::row_major(data, self.dims)?;
        reduce(&view, self.axes, fold, self.pool).map(|Array { data, .. }| data)
    }
}
