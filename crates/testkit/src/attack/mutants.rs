//! Rewrites that are wrong in their rounding, or at all: the judge must find them.

use tilewright_ir::ops::reduce::ReduceAttrs;
use tilewright_ir::ops::shaping::BroadcastAttrs;
use tilewright_ir::{
    ArrayLiteral, EditError, InstId, Literal, Module, Op, Opcode, Position, Shape, Verified, verify,
};

use crate::generate::graph::data;

/// A wrong rewrite.
#[derive(Clone, Copy, Debug)]
pub struct Mutant {
    /// The name of its rewrite.
    pub name: &'static str,
    apply: fn(&mut Module, InstId) -> Option<()>,
}

/// Every mutant.
pub const MUTANTS: &[Mutant] = &[
    Mutant { name: "a term comes out of a maximum from below another", apply: below_a_maximum },
    Mutant { name: "the sum of what a mean leaves is split", apply: split_correction },
    Mutant { name: "a factor comes out of a sum whose rest overflows", apply: factor_of_a_sum },
    Mutant { name: "a vector is repeated along the other dim of a square", apply: other_dim },
    Mutant { name: "what scales an array that is squared is left out", apply: unscaled_square },
];

impl Mutant {
    /// Returns the module with the rewrite done wherever it can be; `None` if nowhere.
    pub fn of(&self, module: &Verified) -> Option<Verified> {
        let mut mutated = Module::clone(module);
        let ids: Vec<InstId> = mutated.instructions(mutated.entry()?).collect();
        let done = ids.into_iter().filter_map(|id| (self.apply)(&mut mutated, id)).count();
        if done == 0 { None } else { verify(mutated).ok() }
    }
}

/// A reduce of one array.
struct Reduced {
    attrs: ReduceAttrs,
    array: InstId,
    init: InstId,
    opcode: Opcode,
}

fn reduced(module: &Module, id: InstId) -> Option<Reduced> {
    let (Op::Reduce(attrs), &[array, init]) = (module.op(id), module.operands(id)) else {
        return None;
    };
    let root = module.computation(attrs.to_apply).root()?;
    let attrs = attrs.as_ref().clone();
    Some(Reduced { attrs, array, init, opcode: module.opcode(root) })
}

impl Reduced {
    /// Returns the operand of a value that is a broadcast along exactly the reduced dims.
    fn constant(&self, module: &Module, value: InstId) -> Option<InstId> {
        let (Op::Broadcast(attrs), &[small]) = (module.op(value), module.operands(value)) else {
            return None;
        };
        let rank = module.array_shape(value)?.rank();
        let kept = (0i64..).take(rank).filter(|d| !self.attrs.dimensions.contains(d));
        kept.eq(attrs.dimensions.iter().copied()).then_some(small)
    }

    /// Returns the same reduce of another array.
    fn of(&self, module: &mut Module, at: InstId, array: InstId) -> Result<InstId, EditError> {
        let (op, shape) = (Op::Reduce(Box::new(self.attrs.clone())), module.shape(at).clone());
        insert(module, at, op, shape, &[array, self.init])
    }
}

fn insert(
    module: &mut Module,
    at: InstId,
    op: Op,
    shape: Shape,
    operands: &[InstId],
) -> Result<InstId, EditError> {
    let name = module.fresh_name("mutant");
    module.insert(Position::Before(at), op, shape, operands, name)
}

/// Returns an op of two operands of the shape of the first.
fn binary(module: &mut Module, at: InstId, op: Op, a: InstId, b: InstId) -> Option<InstId> {
    let shape = module.shape(a).clone();
    insert(module, at, op, shape, &[a, b]).ok()
}

fn is_sum(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::Add | Opcode::Subtract)
}

/// `max((y - c) + b) -> max(y + b) - c`
fn below_a_maximum(module: &mut Module, id: InstId) -> Option<()> {
    let reduce = reduced(module, id)?;
    if !matches!(reduce.opcode, Opcode::Maximum | Opcode::Minimum) {
        return None;
    }
    let outer = reduce.array;
    let (&[inner, b], true) = (module.operands(outer), is_sum(module.opcode(outer))) else {
        return None;
    };
    let (&[y, c], true) = (module.operands(inner), is_sum(module.opcode(inner))) else {
        return None;
    };
    let small = reduce.constant(module, c)?;
    let (outer_op, inner_op) = (module.op(outer).clone(), module.op(inner).clone());
    let sum = binary(module, id, outer_op, y, b)?;
    let max = reduce.of(module, id, sum).ok()?;
    let result = binary(module, id, inner_op, max, small)?;
    module.replace_uses(id, result).ok()
}

/// `sum(a - m) -> sum a - n * m`
fn split_correction(module: &mut Module, id: InstId) -> Option<()> {
    let reduce = reduced(module, id).filter(|reduce| reduce.opcode == Opcode::Add)?;
    let (&[a, m], Opcode::Subtract) = (module.operands(reduce.array), module.opcode(reduce.array))
    else {
        return None;
    };
    let small = reduce.constant(module, m)?;
    let elements = |id| module.array_shape(id)?.num_elements();
    let terms = i32::try_from(elements(a)?.checked_div(elements(id)?)?).ok()?;
    let element = module.array_shape(id)?.element_type;
    let terms = ArrayLiteral::new(element, [], data(element, &[f64::from(terms)])).ok()?;
    let terms = Op::Constant(Box::new(Literal::Array(terms)));
    let terms = insert(module, id, terms, Shape::scalar(element), &[]).ok()?;
    let repeated = Op::Broadcast(Box::new(BroadcastAttrs { dimensions: Default::default() }));
    let shape = module.shape(id).clone();
    let terms = insert(module, id, repeated, shape, &[terms]).ok()?;
    let sum = reduce.of(module, id, a).ok()?;
    let away = binary(module, id, Op::Multiply, terms, small)?;
    let result = binary(module, id, Op::Subtract, sum, away)?;
    module.replace_uses(id, result).ok()
}

/// `sum((a * p) * b) -> p * sum(a * b)`
fn factor_of_a_sum(module: &mut Module, id: InstId) -> Option<()> {
    let reduce = reduced(module, id).filter(|reduce| reduce.opcode == Opcode::Add)?;
    let product =
        |value| (module.opcode(value) == Opcode::Multiply).then(|| module.operands(value));
    let &[left, right] = product(reduce.array)? else { return None };
    let (inner, b) = match (product(left), product(right)) {
        (Some(inner), _) => (inner, right),
        (None, Some(inner)) => (inner, left),
        (None, None) => return None,
    };
    let &[x, y] = inner else { return None };
    let (a, small) = match (reduce.constant(module, x), reduce.constant(module, y)) {
        (Some(small), _) => (y, small),
        (None, Some(small)) => (x, small),
        (None, None) => return None,
    };
    let rest = binary(module, id, Op::Multiply, a, b)?;
    let sum = reduce.of(module, id, rest).ok()?;
    let result = binary(module, id, Op::Multiply, sum, small)?;
    module.replace_uses(id, result).ok()
}

/// Along dim 2 what goes along dim 0, of arrays that are as long along both.
fn other_dim(module: &mut Module, id: InstId) -> Option<()> {
    let Op::Broadcast(attrs) = module.op(id) else { return None };
    let shape = module.array_shape(id)?;
    let (&[first], dims) = (&attrs.dimensions[..], shape.dims()) else { return None };
    let first = usize::try_from(first).ok()?;
    let other = (0..dims.len()).find(|&d| d != first && dims[d] == dims[first] && dims[d] > 1)?;
    let mut attrs = attrs.as_ref().clone();
    attrs.dimensions = [i64::try_from(other).ok()?].into_iter().collect();
    module.set_attributes(id, Op::Broadcast(Box::new(attrs))).ok()
}

/// `(a * p) * (a * p) -> (a * a) * (p * p)`, p repeated: squares under- and overflow.
fn unscaled_square(module: &mut Module, id: InstId) -> Option<()> {
    let (&[left, right], Opcode::Multiply) = (module.operands(id), module.opcode(id)) else {
        return None;
    };
    let (&[a, p], Opcode::Multiply) = (module.operands(left), module.opcode(left)) else {
        return None;
    };
    if left != right {
        return None;
    }
    let square = binary(module, id, Op::Multiply, a, a)?;
    let scale = binary(module, id, Op::Multiply, p, p)?;
    let result = binary(module, id, Op::Multiply, square, scale)?;
    module.replace_uses(id, result).ok()
}
