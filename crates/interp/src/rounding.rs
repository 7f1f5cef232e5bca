//! Estimates the rounding error of a program's results.
//!
//! Each instruction that computes floats rounds its results once, by at most half a unit in the
//! last place of its type, up or down at random: so the squares of the errors add up along a
//! path. A sum of `n` terms can be computed in as few as `log2 n` stages, each of which rounds
//! once; in `f64`, which has no wider type for accumulation, every term counts.

use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};
use tilewright_ir::small_float::Format;
use tilewright_ir::{ArrayShape, CompId, ElementType, Family, InstId, Module, Op, Shape};

/// The roundings on the path to a value that has the most of them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Inexact {
    /// The sum of the squares of the largest relative error of each rounding.
    pub variance: f64,
    /// The largest of these errors: the error of the coarsest type.
    pub coarsest: f64,
}

impl Inexact {
    fn worse(self, other: Self) -> Self {
        Self {
            variance: self.variance.max(other.variance),
            coarsest: self.coarsest.max(other.coarsest),
        }
    }

    fn then(self, next: Self) -> Self {
        Self { variance: self.variance + next.variance, ..self.worse(next) }
    }
}

/// The [`Inexact`] of a module's values.
#[derive(Clone, Debug, Default)]
pub struct Rounding {
    outputs: Vec<Inexact>,
    worst: Inexact,
}

impl Rounding {
    /// Looks through a module, each instruction once: a computation is judged
    /// by itself, and the turns of a loop count as one.
    pub fn of_module(module: &Module) -> Self {
        let mut known = Known { module, of: FxHashMap::default(), roots: FxHashMap::default() };
        let mut worst = Inexact::default();
        for &computation in module.computations() {
            for id in module.instructions(computation) {
                let found = known.instruction(id);
                worst = worst.worse(all(&found));
                known.of.insert(id, found);
            }
            let root = module.computation(computation).root();
            let root = root.and_then(|root| known.of.get(&root)).cloned();
            known.roots.insert(computation, root.unwrap_or_default());
        }
        let root = module.entry().and_then(|entry| module.computation(entry).root());
        let outputs = root.map_or_else(Vec::new, |root| known.leaves(root));
        Self { outputs, worst }
    }

    /// Returns the roundings of an array of the result, tuples flattened in order; for outfeed
    /// arrays, the largest in the module.
    pub fn of_output(&self, leaf: usize) -> Inexact {
        self.outputs.get(leaf).copied().unwrap_or(self.worst)
    }

    /// Returns the most that the module has.
    pub fn worst(&self) -> Inexact {
        self.worst
    }
}

/// The roundings of a value: of each element of a tuple, or of the whole value.
type InexactOps = SmallVec<[Inexact; 1]>;

fn all(found: &[Inexact]) -> Inexact {
    found.iter().copied().fold(Inexact::default(), Inexact::worse)
}

struct Known<'m> {
    module: &'m Module,
    of: FxHashMap<InstId, InexactOps>,
    /// The roundings of the results of computations with exact arguments.
    roots: FxHashMap<CompId, InexactOps>,
}

impl Known<'_> {
    fn value(&self, id: InstId) -> Inexact {
        self.of.get(&id).map_or(Inexact::default(), |found| all(found))
    }

    fn operands(&self, id: InstId) -> Inexact {
        let operands = self.module.operands(id).iter().map(|&operand| self.value(operand));
        operands.fold(Inexact::default(), Inexact::worse)
    }

    /// Returns the roundings of a called computation with exact arguments.
    fn called(&self, id: InstId) -> Inexact {
        let called = self.module.called(id).into_iter().filter_map(|id| self.roots.get(&id));
        called.fold(Inexact::default(), |worst, root| worst.worse(all(root)))
    }

    fn instruction(&self, id: InstId) -> InexactOps {
        let (module, before) = (self.module, self.operands(id));
        match module.op(id) {
            Op::Tuple => module.operands(id).iter().map(|&o| self.value(o)).collect(),
            Op::GetTupleElement(attrs) => {
                let tuple = module.operands(id).first().and_then(|tuple| self.of.get(tuple));
                let element = usize::try_from(attrs.index).ok();
                let found = tuple.zip(element).and_then(|(tuple, at)| tuple.get(at)).copied();
                smallvec![found.unwrap_or(before)]
            }
            Op::Call(_) | Op::Fusion(_) => {
                let root = module.called(id).first().and_then(|called| self.roots.get(called));
                let root = root.map_or(&[][..], |root| root.as_slice());
                root.iter().map(|&element| before.then(element)).collect()
            }
            Op::While(_) | Op::Conditional(_) | Op::Map(_) => {
                smallvec![before.then(self.called(id))]
            }
            _ if is_truth(module, id) => smallvec![Inexact::default()],
            _ => smallvec![before.then(rounded(module, id, self.own_terms(id)))],
        }
    }

    /// Returns the number of terms that an instruction itself sums and rounds; 0 if it rounds
    /// nothing.
    fn own_terms(&self, id: InstId) -> f64 {
        let module = self.module;
        let family = module.opcode(id).family();
        // These move elements, unless they sum them by a computation.
        let may_move =
            family.moves_elements_only() || matches!(family, Family::Reduce | Family::Window);
        match module.op(id) {
            Op::CustomCall(_) => terms(module, id),
            _ if family == Family::Elementwise => f64::from(u8::from(!is_exact(module, id))),
            _ if may_move && self.called(id).variance == 0.0 => 0.0,
            _ => terms(module, id),
        }
    }

    /// Returns the roundings of each array of a value.
    fn leaves(&self, id: InstId) -> Vec<Inexact> {
        let found = self.of.get(&id).cloned().unwrap_or_default();
        match self.module.shape(id) {
            Shape::Tuple(elements) if found.len() == elements.len() => {
                let leaves = elements.iter().zip(found);
                leaves.flat_map(|(shape, of)| vec![of; shape.leaves().len()]).collect()
            }
            shape => vec![all(&found); shape.leaves().len()],
        }
    }
}

/// Checks whether an instruction itself rounds its results. Called computations are counted
/// separately, unless they are applied to elements.
pub(crate) fn rounds(module: &Module, id: InstId) -> bool {
    match module.opcode(id).family() {
        Family::Elementwise => !is_exact(module, id),
        Family::Shaping | Family::Control => false,
        Family::Indexing | Family::Collective | Family::Reduce | Family::Window => {
            let applied = module.called(id).into_iter().flat_map(|c| module.instructions(c));
            applied.into_iter().any(|id| rounds(module, id))
        }
        Family::Contract | Family::Random | Family::Linalg => true,
    }
}

/// Returns the error of rounding results of this many terms.
fn rounded(module: &Module, id: InstId, terms: f64) -> Inexact {
    let shapes = module.shape(id).leaves();
    let types = shapes.into_iter().filter_map(Shape::as_array).map(|array| array.element_type);
    let found = types.map(|element_type| sum_of(element_type, terms));
    found.fold(Inexact::default(), Inexact::worse)
}

fn is_truth(module: &Module, id: InstId) -> bool {
    module.array_shape(id).is_some_and(|shape| shape.element_type == ElementType::Pred)
}

/// Elements of an array, or of all arrays of a tuple.
fn elements(module: &Module, id: InstId) -> f64 {
    let arrays = module.shape(id).leaves().into_iter().filter_map(Shape::as_array);
    arrays.filter_map(ArrayShape::num_elements).map(|count| count as f64).sum()
}

/// Returns how many terms flow into one element of a result, at most.
fn terms(module: &Module, id: InstId) -> f64 {
    let operands = module.operands(id);
    let of = |index: usize| operands.get(index).map_or(1.0, |&operand| elements(module, operand));
    let terms = match module.op(id) {
        Op::Reduce(_) => of(0) / elements(module, id).max(1.0) * (operands.len() / 2) as f64,
        Op::Dot(attrs) | Op::ScaledDot(attrs) => {
            let dims = operands.first().and_then(|&left| module.array_shape(left));
            let dims = dims.map_or(&[][..], |shape| shape.dims());
            let summed = attrs.lhs_contracting_dims.iter();
            let size =
                |&dim: &i64| usize::try_from(dim).ok().and_then(|dim| dims.get(dim).copied());
            summed.filter_map(size).map(|size| size as f64).product()
        }
        Op::Convolution(_) => of(1),
        // At most the number of elements.
        _ => operands.iter().map(|&operand| elements(module, operand)).sum(),
    };
    terms.max(1.0)
}

/// Returns a sum of terms, rounded to a type.
fn sum_of(element_type: ElementType, terms: f64) -> Inexact {
    let unit = unit(element_type);
    if terms == 0.0 || unit == 0.0 {
        return Inexact::default();
    }
    let roundings = match element_type {
        ElementType::F64 | ElementType::C128 => terms,
        _ => 1.0 + terms.log2(),
    };
    Inexact { variance: unit * unit * roundings, coarsest: unit }
}

/// Returns the largest relative error of rounding to a type; 0 for types that are not floats.
pub(crate) fn unit(element_type: ElementType) -> f64 {
    let digits = match element_type {
        ElementType::F64 | ElementType::C128 => f64::MANTISSA_DIGITS,
        ElementType::F32 | ElementType::C64 => f32::MANTISSA_DIGITS,
        ElementType::F16 => half::f16::MANTISSA_DIGITS,
        ElementType::BF16 => half::bf16::MANTISSA_DIGITS,
        narrow => match Format::of(narrow) {
            Some(format) => format.mantissa_bits() + 1,
            None => return 0.0,
        },
    };
    0.5f64.powi(digits.cast_signed())
}

/// Checks whether an elementwise op gives a number that needs no rounding.
fn is_exact(module: &Module, id: InstId) -> bool {
    match module.op(id) {
        Op::Convert => {
            let from = module.operands(id).first().and_then(|&from| module.array_shape(from));
            let to = module.array_shape(id).map(|to| unit(to.element_type));
            let from = from.map(|from| from.element_type);
            // An integer may have more digits than a float.
            to.zip(from).is_some_and(|(to, from)| unit(from) >= to && unit(from) > 0.0)
        }
        Op::Abs | Op::Negate | Op::Sign | Op::Ceil | Op::Floor | Op::RoundNearestAfz => true,
        Op::RoundNearestEven | Op::Maximum | Op::Minimum | Op::Clamp | Op::Select => true,
        Op::Compare(_) | Op::IsFinite | Op::Real | Op::Imag | Op::Complex | Op::Not => true,
        Op::And | Op::Or | Op::Xor => true,
        _ => false,
    }
}
