//! The same program with its float sums in two stages, as HLO allows.
//!
//! The interpreter adds up in `f64` and rounds once, so that a sum that cancels is better
//! there than on any machine. A rewrite that takes it in stages must not be blamed for
//! being a machine: the program's own error is that of its regrouped forms, too.

use tilewright_ir::ops::reduce::ReduceAttrs;
use tilewright_ir::ops::shaping::ReshapeAttrs;
use tilewright_ir::{
    Dims, ElementType, InstId, Module, Op, Opcode, Position, Shape, Verified, verify,
};

/// Which of several summed dims is summed first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum First {
    Major,
    Minor,
}

/// The module with every float sum of its entry in two stages; `None` if it has none.
pub(super) fn regrouped(module: &Verified, first: First) -> Option<Verified> {
    let mut staged = Module::clone(module);
    let ids: Vec<InstId> = staged.instructions(staged.entry()?).collect();
    let done = ids.into_iter().filter_map(|id| stage(&mut staged, id, first)).count();
    if done == 0 { None } else { verify(staged).ok() }
}

fn stage(module: &mut Module, id: InstId, first: First) -> Option<()> {
    let (Op::Reduce(attrs), &[array, init]) = (module.op(id), module.operands(id)) else {
        return None;
    };
    let root = module.computation(attrs.to_apply).root()?;
    let shape = module.array_shape(array)?;
    let (element, mut dims) = (shape.element_type, Dims::from_slice(shape.dims()));
    let (to_apply, mut summed) = (attrs.to_apply, attrs.dimensions.clone());
    if module.opcode(root) != Opcode::Add || !element.is_float() {
        return None;
    }
    let mut array = array;
    summed.sort_unstable();
    if let &[only] = &summed[..] {
        let dim = usize::try_from(only).ok()?;
        let part = (2..=dims[dim] / 2).rev().find(|p| p * p <= dims[dim] && dims[dim] % p == 0)?;
        dims[dim] /= part;
        dims.insert(dim + 1, part);
        summed = Dims::from_slice(&[only, only + 1]);
        let reshape = Op::Reshape(Box::new(ReshapeAttrs { inferred_dimension: None }));
        array = insert(module, id, reshape, element, &dims, &[array])?;
    }
    let one = match first {
        First::Major => *summed.first()?,
        First::Minor => *summed.last()?,
    };
    let rest = summed.iter().filter(|&&dim| dim != one);
    let rest: Dims = rest.map(|&dim| if dim > one { dim - 1 } else { dim }).collect();
    dims.remove(usize::try_from(one).ok()?);
    let sum = |dimensions| Op::Reduce(Box::new(ReduceAttrs { dimensions, to_apply }));
    let partial = sum(Dims::from_slice(&[one]));
    let partial = insert(module, id, partial, element, &dims, &[array, init])?;
    let whole = Dims::from_slice(module.array_shape(id)?.dims());
    let whole = insert(module, id, sum(rest), element, &whole, &[partial, init])?;
    module.replace_uses(id, whole).ok()
}

fn insert(
    module: &mut Module,
    at: InstId,
    op: Op,
    element: ElementType,
    dims: &[i64],
    operands: &[InstId],
) -> Option<InstId> {
    let name = module.fresh_name("stage");
    let shape = Shape::array(element, dims.iter().copied());
    module.insert(Position::Before(at), op, shape, operands, name).ok()
}
