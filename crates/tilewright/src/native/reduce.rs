//! Reduces of whole numbers and truth values, which are exact in any order.

use tilewright_interp::Elementwise;
use tilewright_ir::reducer::Monoid;
use tilewright_ir::{ArrayLiteral, Data, ElementType, InstId, Literal, Op, Opcode, Verified};
use tilewright_native::{Element, Error, Fold, Pool, View, reduce};

/// Returns the fold that joins elements by an op.
fn fold_of(opcode: Opcode) -> Option<Fold> {
    match opcode {
        Opcode::Add => Some(Fold::Sum),
        Opcode::Multiply => Some(Fold::Product),
        Opcode::Maximum => Some(Fold::Max),
        Opcode::Minimum => Some(Fold::Min),
        Opcode::And => Some(Fold::And),
        Opcode::Or => Some(Fold::Or),
        _ => None,
    }
}

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
    let is_known = match fold_of(monoid.opcode)? {
        Fold::Sum | Fold::Product | Fold::Max | Fold::Min => is_whole,
        Fold::And | Fold::Or => shape.element_type == ElementType::Pred,
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
    let fold = fold_of(monoid.opcode).ok_or("a reduce without a fold")?;
    let call = Call { dims: &dims, axes: &attrs.dimensions, fold, pool };
    let data = match array.data() {
        Data::S8(data) => call.run(data).map(Data::S8),
        Data::S16(data) => call.run(data).map(Data::S16),
        Data::S32(data) => call.run(data).map(Data::S32),
        Data::S64(data) => call.run(data).map(Data::S64),
        Data::U8(data) => call.run(data).map(Data::U8),
        Data::U16(data) => call.run(data).map(Data::U16),
        Data::U32(data) => call.run(data).map(Data::U32),
        Data::U64(data) => call.run(data).map(Data::U64),
        Data::Pred(data) => call.run(data).map(Data::Pred),
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
    fold: Fold,
    pool: &'a dyn Pool,
}

impl Call<'_> {
    fn run<T: Element>(&self, data: &[T]) -> Result<Vec<T>, Error> {
        let view = View::row_major(data, self.dims)?;
        Ok(reduce(&view, self.axes, self.fold, self.pool)?.data)
    }
}
