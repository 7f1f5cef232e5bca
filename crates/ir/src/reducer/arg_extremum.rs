//! Recognises computations that only compare and select.
//!
//! The result of such a computation is one of its parameters, and which one depends only on how
//! its parameters compare: three cases for two integers, six for two floats. So evaluating these
//! few cases determines the computation for all numbers, in whatever form it is written.

use smallvec::SmallVec;

use crate::entity::{CompId, InstId};
use crate::module::Module;
use crate::ops::Op;
use crate::ops::elementwise::{CompareAttrs, CompareOrder, Direction};
use crate::types::element::{ElementType, NumberClass};
use crate::types::literal::Literal;

/// Largest number of instructions of a computation that is analysed.
const MOST_INSTRUCTIONS: usize = 32;

/// The relation of the first of two numbers to the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    Less,
    Equal,
    Greater,
    FirstNan,
    SecondNan,
    BothNan,
}

use Relation::{BothNan, Equal, FirstNan, Greater, Less, SecondNan};

impl Relation {
    /// Returns the possible relations of two numbers of a type; `None` for types without order.
    fn of_type(element_type: ElementType) -> Option<&'static [Self]> {
        match element_type.class() {
            NumberClass::Bool | NumberClass::Signed | NumberClass::Unsigned => {
                Some(&[Less, Equal, Greater])
            }
            NumberClass::Float => Some(&[Less, Equal, Greater, FirstNan, SecondNan, BothNan]),
            NumberClass::Complex => None,
        }
    }

    fn flipped(self) -> Self {
        match self {
            Less => Greater,
            Greater => Less,
            FirstNan => SecondNan,
            SecondNan => FirstNan,
            Equal | BothNan => self,
        }
    }

    /// The relation of the first number to itself.
    fn with_itself(self) -> Self {
        if matches!(self, FirstNan | BothNan) { BothNan } else { Equal }
    }

    fn holds(self, direction: Direction) -> bool {
        match direction {
            Direction::Eq => self == Equal,
            Direction::Ne => self != Equal,
            Direction::Gt => self == Greater,
            Direction::Ge => matches!(self, Greater | Equal),
            Direction::Lt => self == Less,
            Direction::Le => matches!(self, Less | Equal),
        }
    }
}

/// An extremum of pairs of a value and an index. It keeps the pair with the greatest (or least)
/// value and, among equal values, the one with the least (or greatest) index. Pairs whose value
/// is NaN come before (or after) all others. The order of operands may decide which index is
/// kept of two NaN pairs, and which sign of two zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ArgExtremum {
    /// The type of the values and the type of the indices.
    pub element_types: [ElementType; 2],
    /// Whether the greater value is kept.
    pub greatest: bool,
    /// Whether the lesser index is kept among equal values.
    pub first_index: bool,
    /// Whether NaN is preferred to numbers.
    pub nan_wins: bool,
}

impl ArgExtremum {
    /// Recognises the extremum that a computation computes on a pair of accumulators and a pair
    /// of elements of the same types, given its two results.
    pub(super) fn of(
        module: &Module,
        computation: CompId,
        [kept_value, kept_index]: [InstId; 2],
    ) -> Option<Self> {
        let &[value, index, ..] = module.computation(computation).parameters() else {
            return None;
        };
        let type_of = |id| module.array_shape(id).map(|shape| shape.element_type);
        let element_types = [type_of(value)?, type_of(index)?];
        if module.computation(computation).len() > MOST_INSTRUCTIONS {
            return None;
        }
        let of_index = Relation::of_type(element_types[1]).filter(|&all| all.len() == 3)?;
        // For each result, whether the accumulator is kept.
        let kept = |value, index| -> Option<[bool; 2]> {
            let relations = [Some(value), Some(index)];
            let case = Case::new(module, computation, &relations);
            Some([case.picks_accumulator(kept_value, 0)?, case.picks_accumulator(kept_index, 1)?])
        };
        let extremum = Self {
            element_types,
            greatest: kept(Greater, Equal)?[0],
            first_index: kept(Equal, Less)?[1],
            nan_wins: element_types[0].is_float() && kept(FirstNan, Equal)?[0],
        };
        for &value in Relation::of_type(element_types[0])? {
            for &index in of_index {
                if !extremum.allows(value, index, kept(value, index)?) {
                    return None;
                }
            }
        }
        Some(extremum)
    }

    /// Checks whether the extremum allows keeping these accumulators.
    fn allows(&self, value: Relation, index: Relation, kept: [bool; 2]) -> bool {
        match (value, index) {
            (Less | Greater, _) => kept == [(value == Greater) == self.greatest; 2],
            (FirstNan | SecondNan, _) => kept == [(value == FirstNan) == self.nan_wins; 2],
            (Equal, Less | Greater) => kept[1] == ((index == Less) == self.first_index),
            (Equal, _) | (BothNan, _) => true,
        }
    }

    /// Checks whether regrouping pairs never changes the result.
    pub fn regroups_exactly(self) -> bool {
        !self.element_types[0].is_float()
    }
}

/// Checks whether `result` is the greater (`true`) or the lesser (`false`) of the accumulator
/// and the element `pair`, which are integers; `None` if it is neither. Floats are not
/// accepted, because zeros of both signs compare equal but differ.
pub(super) fn greater_or_lesser(
    module: &Module,
    computation: CompId,
    result: InstId,
    pair: usize,
) -> Option<bool> {
    let parameters = module.computation(computation).parameters();
    let element_type = module.array_shape(*parameters.get(pair)?)?.element_type;
    let is_integer = Relation::of_type(element_type)?.len() == 3;
    if !is_integer || module.computation(computation).len() > MOST_INSTRUCTIONS {
        return None;
    }
    let mut relations = vec![None; parameters.len() / 2];
    let mut kept = |relation| {
        *relations.get_mut(pair)? = Some(relation);
        Case::new(module, computation, &relations).picks_accumulator(result, pair)
    };
    let (greatest, least) = (kept(Greater)?, kept(Less)?);
    kept(Equal)?;
    (greatest != least).then_some(greatest)
}

/// The value of an instruction in one case.
#[derive(Clone, Copy, Debug)]
enum Known {
    /// The parameter with this number.
    Parameter(usize),
    /// This truth value.
    Truth(bool),
}

/// Evaluates a computation in a case: for given relations of accumulators and elements.
struct Case<'a> {
    module: &'a Module,
    /// For each accumulator, its relation to its element, if that is needed.
    relations: &'a [Option<Relation>],
    known: SmallVec<[(InstId, Known); 16]>,
}

impl<'a> Case<'a> {
    fn new(module: &'a Module, computation: CompId, relations: &'a [Option<Relation>]) -> Self {
        let mut case = Self { module, relations, known: SmallVec::new() };
        let parameters = module.computation(computation).parameters();
        case.known.extend(parameters.iter().enumerate().map(|(i, &id)| (id, Known::Parameter(i))));
        for id in module.instructions(computation) {
            if let Some(known) = case.evaluated(id) {
                case.known.push((id, known));
            }
        }
        case
    }

    /// Checks whether a value is the accumulator `pair` (`true`) or its element (`false`);
    /// `None` if it is neither.
    fn picks_accumulator(&self, id: InstId, pair: usize) -> Option<bool> {
        match self.known(id)? {
            Known::Parameter(number) if number == pair => Some(true),
            Known::Parameter(number) if number == pair + self.relations.len() => Some(false),
            Known::Parameter(_) | Known::Truth(_) => None,
        }
    }

    fn known(&self, id: InstId) -> Option<Known> {
        self.known.iter().find(|(known, _)| *known == id).map(|(_, known)| *known)
    }

    fn truth(&self, id: InstId) -> Option<bool> {
        match self.known(id)? {
            Known::Truth(truth) => Some(truth),
            Known::Parameter(_) => None,
        }
    }

    fn evaluated(&self, id: InstId) -> Option<Known> {
        let truth = |truth| Some(Known::Truth(truth));
        match (self.module.op(id), self.module.operands(id)) {
            (Op::Compare(attrs), &[a, b]) => truth(self.compared(attrs, a, b)?),
            (Op::And, &[a, b]) => truth(self.truth(a)? & self.truth(b)?),
            (Op::Or, &[a, b]) => truth(self.truth(a)? | self.truth(b)?),
            (Op::Xor, &[a, b]) => truth(self.truth(a)? ^ self.truth(b)?),
            (Op::Not, &[a]) => truth(!self.truth(a)?),
            (Op::Select, &[which, a, b]) => self.known(if self.truth(which)? { a } else { b }),
            (Op::Maximum, &[a, b]) => self.extreme(a, b, Greater),
            (Op::Minimum, &[a, b]) => self.extreme(a, b, Less),
            (Op::Copy, &[a]) => self.known(a),
            (Op::Constant(value), []) => match &**value {
                Literal::Array(array) => truth(*array.as_slice::<bool>()?.first()?),
                _ => None,
            },
            _ => None,
        }
    }

    fn compared(&self, attrs: &CompareAttrs, a: InstId, b: InstId) -> Option<bool> {
        // Total order distinguishes zeros and NaNs that are one case here.
        let is_total = attrs.order == Some(CompareOrder::TotalOrder);
        let relation = self.relation(a, b)?;
        (!is_total).then(|| relation.holds(attrs.direction))
    }

    /// `maximum` and `minimum` return NaN if an operand is NaN.
    fn extreme(&self, a: InstId, b: InstId, first: Relation) -> Option<Known> {
        let relation = self.relation(a, b)?;
        self.known(if relation == first || relation == FirstNan { a } else { b })
    }

    fn relation(&self, a: InstId, b: InstId) -> Option<Relation> {
        let (Known::Parameter(a), Known::Parameter(b)) = (self.known(a)?, self.known(b)?) else {
            return None;
        };
        let count = self.relations.len();
        let pair = if a < count { a } else { a.checked_sub(count)? };
        let relation = (*self.relations.get(pair)?)?;
        let relation = if a < count { relation } else { relation.flipped() };
        if a == b {
            Some(relation.with_itself())
        } else {
            (a.abs_diff(b) == count).then_some(relation)
        }
    }
}
