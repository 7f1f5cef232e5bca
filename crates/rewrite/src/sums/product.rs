//! A value as a product of factors, each of which varies along some dims only.
//!
//! A [`Law`] decides what counts as a product: a product of numbers under a sum, but also a sum
//! under a maximum, or a disjunction under a conjunction. The [`Tree`] of a product keeps the order
//! of its operations, so that some of the factors can be combined in the same order: another order
//! may overflow where the original did not.
//!
//! Under a maximum the law depends on the order. Rounding is monotone, so a maximum commutes with
//! one rounded operation, `max_j rnd(y_j + c) = rnd(max_j(y_j) + c)`: with the last one applied,
//! then with the one before it. It does not commute with an operation below one that varies along
//! the maximum: `(y_j + c) + b_j` stays whole.
//!
//! A broadcast varies along the dims of its operand only. A reshape is read through its digits, so
//! a scale per channel is known to be constant over the other dims of an array even after a reshape
//! of the array into groups. Signs are pulled out. The right side of a quotient gives factors that
//! divide. An exact conversion is applied to the factor.

use smallvec::SmallVec;
use tilewright_ir::reducer::Monoid;
use tilewright_ir::{ElementType, InstId, Module, Op, Opcode};

use super::sign::is_not_negative;
use crate::analysis::index_range::{IndexRange, index_ranges};
use crate::analysis::reduce::is_plain;
use crate::analysis::types::holds;

/// The most factors; longer products are left as one factor.
const MOST_FACTORS: usize = 16;

/// The most instructions visited for one product.
const MOST_STEPS: usize = 64;

/// The law by which a factor that is constant along a reduction is pulled out of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Law {
    /// `sum c*x = c * sum x`.
    Times,
    /// `max(x + c) = max(x) + c`, also for minima, of floats: rounding is monotone.
    Plus,
    /// `max(c*x) = c * max(x)`, also for minima, of floats, for c known to have the sign plus. x is
    /// the first factor, may be negative, and stays in the maximum.
    Scale,
    /// `any(x and c) = any(x) and c`, also for `all`.
    And,
    /// `all(x or c) = all(x) or c`, also for `any`.
    Or,
}

impl Law {
    /// Returns the laws for reductions by a monoid.
    pub fn of(monoid: Monoid) -> &'static [Self] {
        let is_float = monoid.element_type.is_float();
        match monoid.opcode {
            Opcode::Add if is_float || monoid.element_type.is_integer() => &[Self::Times],
            Opcode::Maximum | Opcode::Minimum if is_float => &[Self::Plus, Self::Scale],
            Opcode::And | Opcode::Or => &[Self::And, Self::Or],
            _ => &[],
        }
    }

    /// Checks whether operations can be pulled out only one after the other, beginning with the
    /// one that is applied last. This holds for the laws that rely on monotone rounding.
    pub fn keeps_order(self) -> bool {
        matches!(self, Self::Plus | Self::Scale)
    }

    /// Returns the operation that combines a factor with the others.
    pub fn operation(self, divides: bool) -> Op {
        match (self, divides) {
            (Self::Times | Self::Scale, false) => Op::Multiply,
            (Self::Times | Self::Scale, true) => Op::Divide,
            (Self::Plus, false) => Op::Add,
            (Self::Plus, true) => Op::Subtract,
            (Self::And, _) => Op::And,
            (Self::Or, _) => Op::Or,
        }
    }
}

/// One factor of a product.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Factor {
    /// Whether the product is divided by it.
    pub divides: bool,
    /// The instruction that computes it.
    pub value: InstId,
    /// The range of each of its dims in the index of the product, major to minor.
    pub ranges: SmallVec<[IndexRange; 4]>,
    /// The type to which it is converted; the conversion is exact.
    pub convert: Option<ElementType>,
}

impl Factor {
    /// Checks whether it may vary along a range.
    pub fn varies_along(&self, range: IndexRange) -> bool {
        self.ranges.iter().any(|own| !own.apart(range))
    }

    /// Returns the two factors whose difference this factor is, if the second is constant along
    /// all of these ranges.
    pub fn less_constant(&self, module: &Module, along: &[IndexRange]) -> Option<(Self, Self)> {
        let (array, c) = self.array_less_constant(module, along)?;
        Some((array.sole(module)?, c))
    }

    /// Returns the same two factors, but the first as it stands: it may be a product of several
    /// factors, such as `x * logistic(x)`.
    pub fn array_less_constant(
        &self,
        module: &Module,
        along: &[IndexRange],
    ) -> Option<(Self, Self)> {
        let (Op::Subtract, &[a, b]) = (module.op(self.value), module.operands(self.value)) else {
            return None;
        };
        if self.divides || self.convert.is_some() || module.extras(self.value).is_some() {
            return None;
        }
        let [array, c] = [a, b].map(|value| Self { value, ..self.clone() });
        let c = c.sole(module)?;
        let constant = !along.iter().any(|&range| c.varies_along(range));
        constant.then_some((array, c))
    }

    /// Returns the only factor of this factor, read as a product.
    pub fn sole(self, module: &Module) -> Option<Self> {
        let mut product = Product::of_factor(module, self, Law::Times);
        let only = product.factors.pop().filter(|factor| !factor.divides)?;
        (product.factors.is_empty() && !product.negative).then_some(only)
    }
}

/// The order in which factors are combined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tree {
    /// A factor, by its index.
    Factor(usize),
    /// The product of two values.
    Times(Box<[Tree; 2]>),
    /// The quotient of two values.
    Over(Box<[Tree; 2]>),
}

impl Tree {
    /// Returns the tree of those factors that `place` gives a new index, in the same order;
    /// `None` if there are none, or only divisors.
    pub fn of_some(&self, place: &dyn Fn(usize) -> Option<usize>) -> Option<Self> {
        match self.part(place) {
            Fraction { above: Some(tree), below: None } => Some(tree),
            _ => None,
        }
    }

    /// Returns the tree with another in place of a factor.
    fn with(&self, factor: usize, by: &Self) -> Self {
        let both =
            |pair: &[Self; 2]| Box::new([pair[0].with(factor, by), pair[1].with(factor, by)]);
        match self {
            Self::Factor(own) if *own == factor => by.clone(),
            Self::Factor(own) => Self::Factor(*own),
            Self::Times(pair) => Self::Times(both(pair)),
            Self::Over(pair) => Self::Over(both(pair)),
        }
    }

    /// The tree that combines factors one after the other.
    pub fn chain(divides: impl IntoIterator<Item = bool>) -> Option<Self> {
        let mut factors = divides.into_iter().enumerate();
        let first = factors.next().filter(|(_, divides)| !divides)?;
        let start = Self::Factor(first.0);
        Some(factors.fold(start, |tree, (place, divides)| {
            let pair = Box::new([tree, Self::Factor(place)]);
            if divides { Self::Over(pair) } else { Self::Times(pair) }
        }))
    }

    /// Returns the number of operations above a factor; `None` for a factor that is not in the
    /// tree.
    pub fn depth_of(&self, factor: usize) -> Option<usize> {
        match self {
            Self::Factor(own) => (*own == factor).then_some(0),
            Self::Times(pair) | Self::Over(pair) => {
                pair.iter().find_map(|part| part.depth_of(factor))?.checked_add(1)
            }
        }
    }

    /// Returns the number of operations above the one that combines two factors: the larger it
    /// is, the earlier that operation is applied.
    pub fn meeting(&self, one: usize, other: usize) -> Option<usize> {
        match self {
            Self::Factor(own) => (*own == one && *own == other).then_some(0),
            Self::Times(pair) | Self::Over(pair) => {
                let within = pair.iter().find_map(|part| part.meeting(one, other));
                let here = || self.depth_of(one).and(self.depth_of(other)).map(|_| 0);
                within.and_then(|depth| depth.checked_add(1)).or_else(here)
            }
        }
    }

    fn part(&self, place: &dyn Fn(usize) -> Option<usize>) -> Fraction {
        let times = |a, b| Self::Times(Box::new([a, b]));
        let (first, second) = match self {
            Self::Factor(factor) => {
                return Fraction { above: place(*factor).map(Self::Factor), below: None };
            }
            Self::Times(pair) => (pair[0].part(place), pair[1].part(place)),
            Self::Over(pair) => {
                let Fraction { above, below } = pair[1].part(place);
                (pair[0].part(place), Fraction { above: below, below: above })
            }
        };
        let above = either(first.above, second.above, times);
        match (above, either(first.below, second.below, times)) {
            (Some(above), Some(below)) => {
                Fraction { above: Some(Self::Over(Box::new([above, below]))), below: None }
            }
            (above, below) => Fraction { above, below },
        }
    }
}

/// The remaining parts of a tree, in the numerator and in the denominator.
struct Fraction {
    above: Option<Tree>,
    below: Option<Tree>,
}

fn either<T>(a: Option<T>, b: Option<T>, both: impl Fn(T, T) -> T) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(both(a, b)),
        (a, b) => a.or(b),
    }
}

/// A value as a signed product of factors.
#[derive(Clone, Debug)]
pub struct Product {
    /// Whether the product is negated.
    pub negative: bool,
    /// The factors, in the order in which they are found. If the law
    /// [keeps order](Law::keeps_order), the factor applied last is the last.
    pub factors: Vec<Factor>,
    /// The order in which they are combined.
    pub tree: Tree,
}

impl Product {
    /// The factors of an array; a single factor, the array itself, if it is no product. `None` for
    /// an array that is empty, dynamic or not row-major.
    pub fn of(module: &Module, id: InstId, law: Law) -> Option<Self> {
        let shape = module.array_shape(id).filter(|shape| is_plain(shape))?;
        let own: SmallVec<[IndexRange; 4]> = index_ranges(shape.dims())?.into();
        let whole = Factor { divides: false, value: id, ranges: own, convert: None };
        Some(Self::of_factor(module, whole, law))
    }

    /// The factors of a factor that has the dims of a whole array.
    pub fn of_factor(module: &Module, whole: Factor, law: Law) -> Self {
        let elements = whole.ranges.iter().map(|range| range.high).max().unwrap_or(1);
        let mut search =
            FactorSearch { module, law, elements, negative: false, factors: vec![], steps: 0 };
        let tree = search.take_apart(whole.clone());
        let FactorSearch { negative, factors, .. } = search;
        if factors.len() > MOST_FACTORS {
            return Self { negative: false, factors: vec![whole], tree: Tree::Factor(0) };
        }
        Self { negative, factors, tree }
    }

    /// Returns the product with another in place of a factor; `None` if it is too long.
    pub fn with(&self, factor: usize, by: &Self) -> Option<Self> {
        let mut factors = self.factors.clone();
        let (first, rest) = by.factors.split_first()?;
        first.clone_into(factors.get_mut(factor)?);
        let end = factors.len() - 1;
        factors.extend_from_slice(rest);
        let place = |old: usize| old.checked_sub(1).map_or(Some(factor), |_| end.checked_add(old));
        let by = Self { tree: by.tree.of_some(&place)?, ..by.clone() };
        let negative = self.negative != by.negative;
        let tree = self.tree.with(factor, &by.tree);
        (factors.len() <= MOST_FACTORS).then_some(Self { negative, factors, tree })
    }
}

/// A search for the factors of an array.
struct FactorSearch<'a> {
    module: &'a Module,
    law: Law,
    /// The number of elements of the whole array.
    elements: i64,
    negative: bool,
    factors: Vec<Factor>,
    steps: usize,
}

impl FactorSearch<'_> {
    /// Adds the factors of a factor that has the dims of a whole array, and returns their tree.
    fn take_apart(&mut self, factor: Factor) -> Tree {
        self.steps += 1;
        let module = self.module;
        let id = factor.value;
        if self.steps > MOST_STEPS || !self.is_bare(id) {
            return self.push(factor);
        }
        // A product rounded before a widening conversion is not a product of wide values.
        let rounds_once = factor.convert.is_none();
        // The values of an unsigned float type cannot be negated.
        let has_signs = module
            .array_shape(id)
            .is_some_and(|shape| shape.element_type != ElementType::F8E8M0FNU);
        match (self.law, module.op(id), module.operands(id)) {
            (Law::Times, Op::Multiply, &[a, b])
            | (Law::And, Op::And, &[a, b])
            | (Law::Or, Op::Or, &[a, b])
                if rounds_once =>
            {
                let first = self.take_apart(Factor { value: a, ..factor.clone() });
                Tree::Times(Box::new([first, self.take_apart(Factor { value: b, ..factor })]))
            }
            (Law::Times, Op::Divide, &[a, b]) if rounds_once && self.is_float(id) => {
                let first = self.take_apart(Factor { value: a, ..factor.clone() });
                let below = Factor { value: b, divides: !factor.divides, ..factor };
                Tree::Over(Box::new([first, self.take_apart(below)]))
            }
            (Law::Plus | Law::Scale, _, &[a, b]) if rounds_once => {
                match self.applied_last(&factor, a, b) {
                    Some((inner, last)) => {
                        let first = self.take_apart(inner);
                        let divides = last.divides;
                        let pair = Box::new([first, self.push(last)]);
                        if divides { Tree::Over(pair) } else { Tree::Times(pair) }
                    }
                    None => self.push_source(factor),
                }
            }
            (Law::Times, Op::Negate, &[a]) if has_signs => {
                self.negative = !self.negative;
                self.take_apart(Factor { value: a, ..factor })
            }
            _ => match self.seen_through(&factor) {
                Some(source) => self.take_apart(source),
                None => self.push_source(factor),
            },
        }
    }

    /// Returns the operands of a monotone operation that may be pulled out of a maximum: the
    /// operand that varies, and the one that is combined with it. The latter is broadcast along
    /// some dims.
    fn applied_last(&self, factor: &Factor, a: InstId, b: InstId) -> Option<(Factor, Factor)> {
        let (module, op) = (self.module, self.module.op(factor.value));
        let (both_ways, divides) = match (self.law, op) {
            (Law::Plus, Op::Add) | (Law::Scale, Op::Multiply) => (true, false),
            (Law::Plus, Op::Subtract) | (Law::Scale, Op::Divide) => (false, true),
            _ => return None,
        };
        let last = |value: InstId, inner: InstId| {
            let last = self.source(Factor { value, divides, ..factor.clone() });
            let is_spread = last.ranges.iter().map(|range| range.size()).product::<i64>();
            let keeps_order = self.law == Law::Plus || is_not_negative(module, value);
            (is_spread < self.elements && keeps_order)
                .then(|| (Factor { value: inner, ..factor.clone() }, last))
        };
        last(b, a).or_else(|| last(a, b).filter(|_| both_ways))
    }

    /// Returns the operand of a reshape or of an exact conversion, as a factor.
    fn seen_through(&self, factor: &Factor) -> Option<Factor> {
        let (module, id) = (self.module, factor.value);
        match (module.op(id), module.operands(id)) {
            (Op::Convert, &[value]) if self.is_exact(value, id) => {
                let to = module.array_shape(id).map(|shape| shape.element_type);
                Some(Factor { value, convert: factor.convert.or(to), ..factor.clone() })
            }
            (Op::Reshape(_), &[value]) => {
                let ranges = index_ranges(module.array_shape(value)?.dims())?.into();
                Some(Factor { value, ranges, ..factor.clone() })
            }
            _ => None,
        }
    }

    /// Returns the factor behind reshapes, exact conversions and one broadcast.
    fn source(&self, mut factor: Factor) -> Factor {
        for _ in 0..MOST_STEPS {
            let seen = self.is_bare(factor.value).then(|| self.seen_through(&factor)).flatten();
            match seen {
                Some(source) => factor = source,
                None => break,
            }
        }
        self.broadcast(&factor).unwrap_or(factor)
    }

    /// Adds the operand of a broadcast as a factor; if the factor is no broadcast, the factor itself.
    fn push_source(&mut self, factor: Factor) -> Tree {
        let source = self.broadcast(&factor);
        self.push(source.unwrap_or(factor))
    }

    fn push(&mut self, factor: Factor) -> Tree {
        self.factors.push(factor);
        Tree::Factor(self.factors.len() - 1)
    }

    /// Returns the operand of a broadcast as a factor, which varies along its own dims only.
    fn broadcast(&self, factor: &Factor) -> Option<Factor> {
        let module = self.module;
        let (Op::Broadcast(attrs), &[value]) =
            (module.op(factor.value), module.operands(factor.value))
        else {
            return None;
        };
        let place = |&dim: &i64| factor.ranges.get(usize::try_from(dim).ok()?).copied();
        let ranges = attrs.dimensions.iter().map(place).collect::<Option<_>>()?;
        let ascending = attrs.dimensions.windows(2).all(|pair| pair[0] < pair[1]);
        (ascending && self.is_bare(factor.value)).then(|| Factor {
            value,
            ranges,
            ..factor.clone()
        })
    }

    /// Checks whether an instruction has nothing attached and row-major operands.
    fn is_bare(&self, id: InstId) -> bool {
        let module = self.module;
        let is_plain = |&id: &InstId| module.array_shape(id).is_some_and(is_plain);
        module.extras(id).is_none() && module.operands(id).iter().all(is_plain)
    }

    fn is_float(&self, id: InstId) -> bool {
        self.module.array_shape(id).is_some_and(|shape| shape.element_type.is_float())
    }

    /// Checks whether a conversion between floats preserves every value.
    fn is_exact(&self, from: InstId, to: InstId) -> bool {
        let element_type = |id| self.module.array_shape(id).map(|shape| shape.element_type);
        match (element_type(from), element_type(to)) {
            (Some(from), Some(to)) => from.is_float() && to.is_float() && holds(to, from),
            _ => false,
        }
    }
}
