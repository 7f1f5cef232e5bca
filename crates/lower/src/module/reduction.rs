//! Describes a reduce of a module for kernels.

use super::function::function;
use super::indices::indices;
use crate::codegen::reduce::{Elements, Neutral, ReductionSpec, Source};
use crate::kernel::{Function, FunctionStep, FunctionValue};
use tilewright_ir::ops::attr::AttrValues;
use tilewright_ir::ops::elementwise::{CompareAttrs, Direction};
use tilewright_ir::reducer::{ArgExtremum, Monoid, Reducer};
use tilewright_ir::{
    ArrayShape, CompId, ElementType, InstId, Literal, Module, Op, Opcode, Verified,
};

/// Returns the reduction of a reduce. `None` if its computation is not elementwise, or its
/// types differ from those of the reduced arrays.
pub fn reduction(module: &Verified, id: InstId) -> Option<ReductionSpec> {
    let Op::Reduce(attrs) = module.op(id) else { return None };
    let operands = module.operands(id);
    let (arrays, inits) = operands.split_at(operands.len() / 2);
    let results = module.shape(id).leaves();
    let results: Option<Vec<ArrayShape>> =
        results.into_iter().map(|shape| shape.as_array().cloned()).collect();
    let Computation { by, neutral, rounds } = Computation::of(module, attrs.to_apply, arrays)?;
    let axes = attrs.dimensions.iter().map(|&d| usize::try_from(d).ok());
    let inits = inits.iter().map(|&init| Some(module.array_shape(init)?.element_type));
    Some(ReductionSpec {
        name: module.name_of(id).to_owned(),
        arrays: sources(module, arrays)?,
        axes: axes.collect::<Option<_>>()?,
        inits: inits.collect::<Option<_>>()?,
        results: results?,
        by,
        neutral,
        rounds,
    })
}

/// Returns the arrays. Those whose elements follow from their indices are not read, except for
/// the first if no other array is.
fn sources(module: &Module, arrays: &[InstId]) -> Option<Vec<Source>> {
    let source = |&id: &InstId| {
        let elements = indices(module, id).map_or(Elements::Memory, Elements::Indices);
        Some(Source { shape: module.array_shape(id)?.clone(), elements })
    };
    let mut sources: Vec<Source> = arrays.iter().map(source).collect::<Option<_>>()?;
    if sources.iter().all(|source| source.elements != Elements::Memory) {
        sources.first_mut()?.elements = Elements::Memory;
    }
    Some(sources)
}

/// The function of accumulators and elements, with its types and identity.
struct Computation {
    by: Function,
    neutral: Option<Neutral>,
    rounds: bool,
}

impl Computation {
    fn of(module: &Module, computation: CompId, arrays: &[InstId]) -> Option<Self> {
        match Reducer::of(module, computation) {
            Some(Reducer::Each(each)) => Self::each(&each),
            Some(Reducer::ArgExtremum(extremum)) => {
                Self::arg_extremum(module, computation, extremum)
            }
            None => Self::any(module, computation, arrays),
        }
    }

    /// Several monoids side by side.
    fn each(each: &[Monoid]) -> Option<Self> {
        let wide: Vec<Monoid> = each
            .iter()
            .map(|&monoid| Monoid { element_type: accumulated(monoid), ..monoid })
            .collect();
        let identities = |monoids: &[Monoid]| -> Option<Vec<Literal>> {
            monoids.iter().map(|monoid| monoid.identity()).collect()
        };
        let neutral = identities(&wide)
            .zip(identities(each))
            .map(|(accumulated, elements)| Neutral { accumulated, elements });
        let rounds = each.iter().any(|monoid| monoid.rounds());
        Some(Self { by: side_by_side(&wide)?, neutral, rounds })
    }

    /// An extremum with its index. The identity pair is known unless NaNs come last, because no
    /// value comes after a NaN.
    fn arg_extremum(module: &Module, computation: CompId, extremum: ArgExtremum) -> Option<Self> {
        let [value, index] = extremum.element_types;
        let mut by = function(module, computation, "choose")?;
        if value.is_float() {
            first_of_nans(&mut by, extremum)?;
        }
        let last = |greatest: bool, element_type| {
            let opcode = if greatest { Opcode::Maximum } else { Opcode::Minimum };
            Monoid { opcode, element_type }.identity()
        };
        let known = extremum.nan_wins || !value.is_float();
        let neutral = last(extremum.greatest, value)
            .zip(last(!extremum.first_index, index))
            .map(|(value, index)| vec![value, index])
            .filter(|_| known)
            .map(|pair| Neutral { accumulated: pair.clone(), elements: pair });
        Some(Self { by, neutral, rounds: false })
    }

    /// Any other computation.
    fn any(module: &Module, computation: CompId, arrays: &[InstId]) -> Option<Self> {
        let by = function(module, computation, "combine")?;
        let types: Option<Vec<ElementType>> =
            arrays.iter().map(|&id| Some(module.array_shape(id)?.element_type)).collect();
        let types = types?;
        let agree = by.parameter_types().eq(types.iter().chain(&types).copied())
            && by.result_types().eq(types.iter().copied());
        let rounds = types.iter().any(|t| t.is_float() || t.is_complex());
        agree.then_some(Self { by, neutral: None, rounds })
    }
}

/// Returns the accumulator type of a monoid. It is wider than the monoid's type if many
/// roundings would add up.
fn accumulated(monoid: Monoid) -> ElementType {
    let element_type = monoid.element_type;
    let is_narrow = element_type.is_float() && element_type.bytes() < 4;
    if is_narrow && monoid.rounds() { ElementType::F32 } else { element_type }
}

/// Returns a function that applies several monoids side by side.
fn side_by_side(monoids: &[Monoid]) -> Option<Function> {
    let count = monoids.len();
    let names = ["a", "b", "c"];
    let values = names.iter().flat_map(|name| {
        monoids.iter().enumerate().map(move |(i, monoid)| FunctionValue {
            name: if count == 1 { (*name).into() } else { format!("{name}{i}").into() },
            element_type: monoid.element_type,
        })
    });
    let step = |(i, monoid): (usize, &Monoid)| {
        let op = Op::from_attrs(monoid.opcode, &mut AttrValues::default()).ok()?;
        Some(FunctionStep::Apply(op, [i, count + i].as_slice().into()))
    };
    Some(Function {
        name: "combine".into(),
        values: values.collect(),
        parameters: 2 * count,
        steps: monoids.iter().enumerate().map(step).collect::<Option<_>>()?,
        results: (2 * count..3 * count).collect(),
    })
}

/// Makes the index decide between two pairs whose values are NaN, as it does between equal
/// values. An extremum may keep the pair that comes first, but combinations in a kernel have no
/// order; with this rule the result is the one of a walk in order.
fn first_of_nans(by: &mut Function, extremum: ArgExtremum) -> Option<()> {
    let [_, kept] = by.results[..] else { return None };
    let [_, index_type] = extremum.element_types;
    let pred = ElementType::Pred;
    let plain = |opcode| Op::from_attrs(opcode, &mut AttrValues::default()).ok();
    let differs = Op::Compare(Box::new(CompareAttrs { direction: Direction::Ne, order: None }));
    let of_indices = if extremum.first_index { Opcode::Minimum } else { Opcode::Maximum };
    let a = applied(by, "a_is_nan", pred, differs.clone(), &[0, 0]);
    let b = applied(by, "b_is_nan", pred, differs, &[2, 2]);
    let both = applied(by, "both_are", pred, plain(Opcode::And)?, &[a, b]);
    let index = applied(by, "first", index_type, plain(of_indices)?, &[1, 3]);
    by.results[1] = applied(by, "chosen", index_type, plain(Opcode::Select)?, &[both, index, kept]);
    Some(())
}

/// Adds an op to a function.
fn applied(
    by: &mut Function,
    name: &str,
    element_type: ElementType,
    op: Op,
    operands: &[usize],
) -> usize {
    by.values.push(FunctionValue { name: name.into(), element_type });
    by.steps.push(FunctionStep::Apply(op, operands.into()));
    by.values.len() - 1
}
