//! Recognises the computation of a reduce, in whatever form it is written.
//!
//! [`Reducer::of`] recognises independent monoids and the extremum with its index. Kernels, the
//! interpreter's order of sums and rewrites use it.

mod adder;
mod arg_extremum;
mod monoid;
mod scalar_computation;
mod total_extremum;

use smallvec::SmallVec;

pub use adder::adder;
pub use arg_extremum::ArgExtremum;
pub use monoid::Monoid;

use crate::entity::{CompId, InstId};
use crate::module::Module;
use crate::ops::{Op, Opcode};
use crate::types::element::ElementType;
use arg_extremum::greater_or_lesser;

/// A computation that takes accumulators, then as many elements, and returns accumulators. It is
/// associative and commutative, up to rounding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reducer {
    /// Each accumulator is combined with its element by its own monoid.
    Each(SmallVec<[Monoid; 1]>),
    /// Either the pair of accumulators or the pair of elements, by comparison.
    ArgExtremum(ArgExtremum),
}

impl Reducer {
    /// Recognises a computation by its function, independent of its form:
    ///
    /// - an op of its two parameters, in either order;
    /// - that op on widened floats, with the result narrowed again;
    /// - the greater or the lesser of two integers by comparison;
    /// - several of these, independently;
    /// - an [`ArgExtremum`].
    pub fn of(module: &Module, computation: CompId) -> Option<Self> {
        let parameters = module.computation(computation).parameters();
        let root = module.computation(computation).root()?;
        let is_tuple = module.opcode(root) == Opcode::Tuple;
        let results = if is_tuple { module.operands(root) } else { &[root] };
        let (accumulators, elements) = parameters.split_at(parameters.len() / 2);
        let type_of = |id| module.array_shape(id).map(|shape| shape.element_type);
        let same_types =
            accumulators.iter().map(|&id| type_of(id)).eq(elements.iter().map(|&id| type_of(id)));
        if !same_types || results.is_empty() || results.len() != accumulators.len() {
            return None;
        }
        let pairs = accumulators.iter().zip(elements).zip(results).enumerate();
        let each = pairs.map(|(pair, ((&accumulator, &element), &result))| {
            monoid_of(module, result, [accumulator, element])
                .or_else(|| by_comparison(module, computation, result, pair))
        });
        match (each.collect::<Option<_>>(), results) {
            (Some(each), _) => Some(Self::Each(each)),
            (None, &[value, index]) => {
                ArgExtremum::of(module, computation, [value, index]).map(Self::ArgExtremum)
            }
            (None, _) => None,
        }
    }

    /// Returns the monoid, if there is a single accumulator.
    pub fn monoid(&self) -> Option<Monoid> {
        match self {
            Self::Each(each) => match each.as_slice() {
                [only] => Some(*only),
                _ => None,
            },
            Self::ArgExtremum(_) => None,
        }
    }

    /// Checks whether regrouping never changes the result.
    pub fn regroups_exactly(&self) -> bool {
        match self {
            Self::Each(each) => each.iter().all(|monoid| monoid.regroups_exactly()),
            Self::ArgExtremum(extremum) => extremum.regroups_exactly(),
        }
    }
}

/// Returns the monoid of a result that applies its op to both parameters, or to both after
/// widening.
fn monoid_of(module: &Module, result: InstId, parameters: [InstId; 2]) -> Option<Monoid> {
    let element_type = module.array_shape(result)?.element_type;
    let result = copied(module, result);
    let widened = match (module.op(result), module.operands(result)) {
        (Op::Convert, [wide]) => {
            let wider = module.array_shape(*wide)?.element_type;
            holds_sums_of(wider, element_type).then(|| copied(module, *wide))
        }
        _ => None,
    };
    let combined = widened.unwrap_or(result);
    let opcode = module.opcode(combined);
    let &[a, b] = module.operands(combined) else { return None };
    let parameter = |id| {
        let id = copied(module, id);
        match (widened, module.op(id), module.operands(id)) {
            (None, _, _) => Some(id),
            (Some(_), Op::Convert, [narrow]) => Some(copied(module, *narrow)),
            (Some(_), _, _) => None,
        }
    };
    let (a, b) = (parameter(a)?, parameter(b)?);
    let both = [a, b] == parameters || [b, a] == parameters;
    let is_monoid = matches!(
        opcode,
        Opcode::Add
            | Opcode::Multiply
            | Opcode::Maximum
            | Opcode::Minimum
            | Opcode::And
            | Opcode::Or
            | Opcode::Xor
    );
    let same_type = module.array_shape(a)?.element_type == element_type;
    (both && is_monoid && same_type).then_some(Monoid { opcode, element_type })
}

/// Returns the value that an instruction copies, through a limited number of copies.
fn copied(module: &Module, mut id: InstId) -> InstId {
    for _ in 0..4 {
        let &[operand] = module.operands(id) else { break };
        let same_type = module.array_shape(operand).map(|shape| shape.element_type)
            == module.array_shape(id).map(|shape| shape.element_type);
        if !same_type || !matches!(module.op(id), Op::Copy | Op::Convert) {
            break;
        }
        id = operand;
    }
    id
}

/// Checks whether sums and products of two narrow floats, computed in a wider type and rounded
/// back, equal those of the narrow type. This holds if the wider mantissa has at least two bits
/// more than twice the narrow one.
fn holds_sums_of(wide: ElementType, narrow: ElementType) -> bool {
    use ElementType::{BF16, F16, F32, F64};
    matches!((wide, narrow), (F32 | F64, F16 | BF16) | (F64, F32))
}

/// Returns the maximum or minimum that a value computes by comparison.
fn by_comparison(
    module: &Module,
    computation: CompId,
    result: InstId,
    pair: usize,
) -> Option<Monoid> {
    let greater = greater_or_lesser(module, computation, result, pair)?;
    let element_type = module.array_shape(result)?.element_type;
    let opcode = if greater { Opcode::Maximum } else { Opcode::Minimum };
    Some(Monoid { opcode, element_type })
}
