//! Finds moments: sums of powers of an array less its mean, possibly times other factors.

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::{ArrayShape, CompId, ElementType, InstId, Module, Opcode};

use crate::analysis::index_range::{Cuts, IndexRange, index_ranges};
use crate::cost::CostModel;
use crate::driver::numbers::FloatMode;
use crate::sums::build::Replaced;
use crate::sums::factor::Sum;
use crate::sums::factored_sums::sums;
use crate::sums::product::{Factor, Law, Product};

/// The most instructions visited, over all computations, to find the values that are computed from
/// the means of arrays.
pub(super) const MOST_GONE_OVER: usize = 1 << 24;

/// A sum of powers of an array less its mean, times other factors.
#[derive(Clone)]
pub(super) struct Moment {
    /// Its index among the sums of the computation.
    place: usize,
    pub(super) sum: Sum,
    /// The number of factors `x - c`: 0 in a sum of the array itself, else 1 or 2.
    pub(super) power: usize,
    /// The other factors.
    pub(super) others: Vec<Factor>,
}

/// All moments of an array about one centre.
#[derive(Clone)]
pub(super) struct Group {
    pub(super) x: Factor,
    pub(super) c: Factor,
    /// The dims of the array, cut so that the centre is constant along each or has it.
    pub(super) digits: Vec<IndexRange>,
    /// For each dim of the array, whether devices have parts of it.
    pub(super) divided: Vec<bool>,
    pub(super) moments: Vec<Moment>,
    /// Whether the target shares sweeps over main memory.
    pub(super) shares_sweeps: bool,
}

impl Group {
    /// Checks whether the centre is constant along one of the array's dims: the centre is a mean
    /// along these.
    pub(super) fn is_along(&self, digit: IndexRange) -> bool {
        !self.c.ranges.iter().any(|range| digit.within(*range))
    }

    /// Returns the array, the centre and the sums.
    pub(super) fn members(&self) -> Vec<InstId> {
        let sums = self.moments.iter().map(|moment| moment.sum.id);
        [self.x.value, self.c.value].into_iter().chain(sums).collect()
    }

    /// Replaces factors by their replacements in earlier rewrites.
    pub(super) fn follow(&mut self, replaced: &Replaced) {
        let others = self.moments.iter_mut().flat_map(|moment| &mut moment.others);
        for factor in others.chain([&mut self.x, &mut self.c]) {
            factor.value = replaced.get(&factor.value).copied().unwrap_or(factor.value);
        }
    }
}

/// Returns the moments of a computation, grouped by array, centre and summed ranges.
pub(super) fn groups(
    module: &Module,
    computation: CompId,
    model: CostModel<'_>,
    work: &mut usize,
) -> Vec<Group> {
    let shares_sweeps = model.target.shares_sweeps;
    let late = FxHashMap::default();
    let mut waiting = Waiting { module, computation, takes_products: shares_sweeps, late, work };
    let mut groups: Vec<Group> = Vec::new();
    let mut plain: Vec<(usize, Sum)> = Vec::new();
    let mut homes: FxHashMap<(Factor, Factor), usize> = FxHashMap::default();
    // Plain sums join the first group of an array along the same ranges.
    let mut first: FxHashMap<(Factor, Vec<IndexRange>), usize> = FxHashMap::default();
    let wide = |sum: &Sum| {
        let is_wide = matches!(sum.monoid.element_type, ElementType::F32 | ElementType::F64);
        is_wide && sum.law == Law::Times
    };
    let sums = sums(module, computation, FloatMode::Fast).into_iter().filter(wide);
    for (place, sum) in sums.filter(|sum| sum.is_large(module, &model)).enumerate() {
        let Some(Centred { x, c, power, others }) = centred(module, &sum, &mut waiting) else {
            plain.push((place, sum));
            continue;
        };
        let Some(digits) = digits(&x, &c, &sum) else { continue };
        let home = *homes.entry((x.clone(), c.clone())).or_insert(groups.len());
        first.entry((x.clone(), sum.summed.clone())).or_insert(home);
        if home == groups.len() {
            let divided = vec![false; x.ranges.len()];
            groups.push(Group { x, c, digits, divided, moments: Vec::new(), shares_sweeps });
        }
        groups[home].moments.push(Moment { place, power, others, sum });
    }
    for (place, sum) in plain {
        let only = match sum.product.factors.as_slice() {
            [only] => Some(only.clone()),
            _ => whole(module, &sum),
        };
        let Some(only) = only else { continue };
        if let Some(&home) = first.get(&(only, sum.summed.clone())) {
            groups[home].moments.push(Moment { place, power: 0, others: Vec::new(), sum });
        }
    }
    for group in &mut groups {
        group.moments.sort_unstable_by_key(|moment| moment.place);
    }
    groups
}

/// Returns the dims of an array, cut so that a centre is constant along each or has it.
fn digits(x: &Factor, c: &Factor, sum: &Sum) -> Option<Vec<IndexRange>> {
    let ends = x.ranges.iter().chain(&c.ranges).copied();
    let all = Cuts::of(sum.elements, ends)?.digits();
    let own = |digit: &IndexRange| x.ranges.iter().any(|range| digit.within(*range));
    Some(all.into_iter().filter(own).collect())
}

/// Returns the array that is summed as one factor, whatever it is a product of.
fn whole(module: &Module, sum: &Sum) -> Option<Factor> {
    let &value = module.operands(sum.id).first()?;
    let ranges = index_ranges(module.array_shape(value)?.dims())?;
    Some(Factor { divides: false, value, ranges: ranges.into_iter().collect(), convert: None })
}

/// A summand with a factor `x - c`, where c is computed from a reduction of x and no other factor
/// is.
struct Centred {
    x: Factor,
    c: Factor,
    power: usize,
    others: Vec<Factor>,
}

/// Returns the summand of a sum as a [`Centred`], if it is one.
fn centred(module: &Module, sum: &Sum, waiting: &mut Waiting<'_>) -> Option<Centred> {
    let factors = &sum.product.factors;
    factors.iter().find_map(|centred| {
        let (array, c) = centred.array_less_constant(module, &sum.summed)?;
        let x = array.clone().sole(module).or(waiting.takes_products.then_some(array))?;
        let others: Vec<Factor> = factors.iter().filter(|f| *f != centred).cloned().collect();
        let power = factors.len() - others.len();
        let late = waiting.on(&x)?;
        let is_free = |other: &Factor| other.value != x.value && !late.contains(&other.value);
        // Nor is the array itself among them, as a product.
        let Product { factors: own, .. } = Product::of_factor(module, x.clone(), Law::Times);
        let has_array = own.iter().all(|own| others.contains(own));
        // If all other factors divide, the sum without `x - c` would have no numerator.
        let divides = !others.is_empty() && others.iter().all(|other| other.divides);
        let fits = power <= 2
            && !divides
            && !has_array
            && late.contains(&c.value)
            && others.iter().all(is_free);
        fits.then_some(Centred { x, c, power, others })
    })
}

/// Finds the values that wait for reductions of an array: they are computed from the result of one.
/// Reductions of a sample of the array do not count.
struct Waiting<'a> {
    module: &'a Module,
    computation: CompId,
    /// Whether an array may be a product. Where each sum computes its array for itself, more sums
    /// of a product would cost more than they save.
    takes_products: bool,
    late: FxHashMap<InstId, FxHashSet<InstId>>,
    /// The number of instructions that may still be visited.
    work: &'a mut usize,
}

impl Waiting<'_> {
    /// Returns the values that wait for reductions of this array; `None` if finding them costs
    /// too much.
    fn on(&mut self, x: &Factor) -> Option<&FxHashSet<InstId>> {
        if !self.late.contains_key(&x.value) {
            spend(self.work, self.module)?;
            let late = self.found(x.value);
            self.late.insert(x.value, late);
        }
        self.late.get(&x.value)
    }

    fn found(&self, x: InstId) -> FxHashSet<InstId> {
        let module = self.module;
        let elements = |id| module.array_shape(id).and_then(ArrayShape::num_elements);
        let mut of: FxHashSet<InstId> = FxHashSet::from_iter([x]);
        let mut late: FxHashSet<InstId> = FxHashSet::default();
        for id in module.instructions(self.computation) {
            let operands = module.operands(id);
            let is_late = operands.iter().any(|operand| late.contains(operand))
                || (module.opcode(id) == Opcode::Reduce && operands.iter().any(|o| of.contains(o)));
            if is_late {
                late.insert(id);
            } else if elements(id) >= elements(x) && operands.iter().any(|o| of.contains(o)) {
                of.insert(id);
            }
        }
        late
    }
}

/// Spends the work of one walk over a module; `None` if too little is left.
fn spend(work: &mut usize, module: &Module) -> Option<()> {
    *work = work.checked_sub(module.instruction_count())?;
    Some(())
}
