//! Sums of products, and the choice of factors to pull out of them.
//!
//! Law: `sum_{D1 u D2} p*q = sum_{D2} p * sum_{D1} q`, p constant along D1. The word *sum* here
//! also covers a maximum of sums and the other reductions that have a [`Law`].
//!
//! A factor is pulled out of a float sum only if that causes no new overflow (`scale.rs`). Any
//! factor may be pulled out if the remaining product is a single bounded value (`bound.rs`), or if
//! the program already sums the remaining product, times factors that may be pulled out of that
//! sum.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tilewright_ir::reducer::Monoid;
use tilewright_ir::{InstId, Module, Op};

use super::bound::is_bounded;
use super::product::{Factor, Law, Product, Tree};
use super::scale::tame;
use crate::analysis::index_range::{Cuts, IndexRange, index_ranges, joined};
use crate::analysis::reduce::MonoidReduce;
use crate::cost::CostModel;
use crate::driver::numbers::{Class, FloatMode};

/// The most stages considered for one sum, and for one group of sums.
const MOST_STAGES: usize = 32;

/// A sum whose summand is a product.
#[derive(Clone, Debug)]
pub struct Sum {
    /// The reduce.
    pub id: InstId,
    /// The number of elements that it reads.
    pub elements: i64,
    /// The monoid that combines them.
    pub monoid: Monoid,
    /// The law by which the summand is split into factors.
    pub law: Law,
    /// The ranges of the result's dims in the index of the summand.
    pub kept: Vec<IndexRange>,
    /// The summed ranges, neighbours joined, minor to major.
    pub summed: Vec<IndexRange>,
    /// The summand.
    pub product: Product,
    /// For each factor, whether it may be pulled out by itself.
    pub tame: Vec<bool>,
    /// For each factor, whether all others may be pulled out if it alone stays.
    pub bounded: Vec<bool>,
}

/// A sum in two stages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Form {
    /// The factors that the first stage sums, and the ranges that it sums along.
    pub core: Core,
    /// The order in which the core's factors are combined.
    pub tree: Tree,
    /// The factors multiplied with the results of the first stage, before the second stage.
    pub between: Rest,
    /// The factors multiplied with the result. They exclude a factor that a float product applied
    /// before one of those between the stages; it is also applied between them.
    pub after: Rest,
}

/// Factors that a sum is multiplied by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rest {
    /// The factors, numbered from 1 in `tree`.
    pub factors: Vec<Factor>,
    /// The order in which they are combined with the sum, which is factor 0. It follows the
    /// original product, so that no intermediate product overflows that did not before.
    pub tree: Tree,
}

/// The first stage of a sum, as a key: equal cores are computed once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Core {
    /// The factors, sorted: divisors come last. If the law [keeps order](Law::keeps_order), they
    /// keep the order of the product.
    pub factors: Vec<Factor>,
    /// The ranges summed along, neighbours joined, minor to major.
    pub along: Vec<IndexRange>,
    /// The number of elements that it reads.
    pub elements: i64,
    /// The monoid that combines them.
    pub monoid: Monoid,
    /// The law by which its factors are combined.
    pub law: Law,
}

impl Sum {
    /// Reads the sum that a reduce computes: of one array with at least one element, with a
    /// neutral init. Returns `None` if the reduce is no sum of this kind or may not be
    /// regrouped.
    pub fn of(module: &Module, id: InstId, float_mode: FloatMode) -> Option<Self> {
        let (Op::Reduce(attrs), &[array, init]) = (module.op(id), module.operands(id)) else {
            return None;
        };
        let monoid = MonoidReduce::of(module, id, float_mode)?.reducer.monoid()?;
        let is_float = monoid.element_type.is_float();
        let rounds = is_float && !float_mode.allow(Class::Bounded);
        if rounds || !monoid.is_neutral(module.constant(init)?) {
            return None;
        }
        // The first law that finds several factors.
        let products =
            Law::of(monoid).iter().filter_map(|&law| Some((law, Product::of(module, array, law)?)));
        let products: Vec<(Law, Product)> = products.collect();
        let several = products.iter().position(|(_, product)| product.factors.len() > 1);
        let (law, product) = products.into_iter().nth(several.unwrap_or(0))?;
        let all_tame = law != Law::Times || !is_float || float_mode.allow(Class::FastMath);
        let tame = if all_tame {
            vec![true; product.factors.len()]
        } else {
            tame(module, &product.factors)
        };
        let bounded = product.factors.iter().map(|f| all_tame || is_bounded(module, f.value));
        let bounded = bounded.collect();
        let dims = index_ranges(module.array_shape(array)?.dims())?;
        let is_summed =
            |dim: usize| i64::try_from(dim).is_ok_and(|d| attrs.dimensions.contains(&d));
        let of = |wanted: bool| {
            let dims = dims.iter().enumerate();
            dims.filter(move |&(dim, _)| is_summed(dim) == wanted).map(|(_, range)| *range)
        };
        Some(Self {
            id,
            elements: dims.first().map_or(1, |range| range.high),
            monoid,
            law,
            kept: of(false).collect(),
            summed: joined(of(true)),
            product,
            tame,
            bounded,
        })
    }

    /// Checks whether it reads from main memory.
    pub fn is_large(&self, module: &Module, model: &CostModel<'_>) -> bool {
        let array = module.operands(self.id).first();
        array.is_some_and(|&array| !model.stays_on_chip(model.with_footprint(module.shape(array))))
    }

    /// Returns the number of elements that it combines into one; `None` if it overflows.
    pub fn count(&self) -> Option<i64> {
        self.summed.iter().try_fold(1i64, |count, range| count.checked_mul(range.size()))
    }

    /// Checks whether the sum removes all of a dim with this range.
    pub fn sums(&self, range: IndexRange) -> bool {
        self.summed.iter().any(|&whole| range.within(whole))
    }

    /// Returns the stages worth trying: first all summed ranges, then the ranges that each
    /// factor, and each pair of factors, is constant along.
    pub fn stages(&self) -> Vec<Vec<IndexRange>> {
        let mut stages = vec![self.summed.clone()];
        let mut own: Vec<Vec<IndexRange>> = Vec::new();
        for factor in &self.product.factors {
            if let Some(rest) = self.constant_along(factor, &self.summed)
                && !rest.is_empty()
                && !own.contains(&rest)
            {
                own.push(rest);
            }
        }
        for first in &own {
            for factor in &self.product.factors {
                let both = self.constant_along(factor, first).filter(|both| !both.is_empty());
                let stage = both.unwrap_or_else(|| first.clone());
                if stages.len() < MOST_STAGES && !stages.contains(&stage) {
                    stages.push(stage);
                }
            }
        }
        stages
    }

    /// Returns the parts of these ranges that a factor is constant along; `None` where the
    /// ranges do not split into digits.
    fn constant_along(&self, factor: &Factor, along: &[IndexRange]) -> Option<Vec<IndexRange>> {
        let ends = factor.ranges.iter().chain(along).copied();
        let digits = Cuts::of(self.elements, ends)?.digits();
        let constant = |digit: &IndexRange| {
            along.iter().any(|range| digit.within(*range)) && !factor.varies_along(*digit)
        };
        Some(joined(digits.into_iter().filter(constant)))
    }

    /// Returns the sum with a first stage along these ranges and as many factors as possible
    /// pulled out of it. `None` if the ranges are not all summed, if they cut a range of a
    /// factor unevenly, or if only divisors would be left.
    pub fn form(&self, along: &[IndexRange]) -> Option<Form> {
        let factors = &self.product.factors;
        let varies = |factor: &Factor| along.iter().any(|&range| factor.varies_along(range));
        let last = factors.iter().rposition(varies);
        let stays: Vec<bool> = if self.law.keeps_order() {
            (0..factors.len()).map(|place| place == 0 || Some(place) <= last).collect()
        } else {
            let varying: Vec<bool> = factors.iter().map(varies).collect();
            let alone = varying.iter().filter(|&&varies| varies).count() == 1;
            let bounded = varying.iter().zip(&self.bounded).any(|(varies, b)| *varies && *b);
            let any = alone && bounded;
            varying.into_iter().zip(&self.tame).map(|(v, tame)| v || !(any || *tame)).collect()
        };
        self.staged(along, &stays)
    }

    /// Returns the sum with the first stage of another sum, if it can have that.
    fn form_like(&self, other: &Form) -> Option<Form> {
        let Core { factors, along, law, monoid, elements } = &other.core;
        let same = (law, monoid, elements) == (&self.law, &self.monoid, &self.elements);
        if !same || law.keeps_order() {
            return None;
        }
        let mut wanted: Vec<&Factor> = factors.iter().collect();
        let mut stays = |factor: &Factor| {
            let place = wanted.iter().position(|wanted| *wanted == factor);
            place.map(|place| wanted.swap_remove(place)).is_some()
        };
        let stays: Vec<bool> = self.product.factors.iter().map(&mut stays).collect();
        let comes_out = self.product.factors.iter().zip(&stays).filter(|(_, stays)| !**stays);
        let varies = |factor: &Factor| along.iter().any(|&range| factor.varies_along(range));
        if !wanted.is_empty() || comes_out.into_iter().any(|(factor, _)| varies(factor)) {
            return None;
        }
        let form = self.staged(along, &stays)?;
        Some(Form { tree: other.tree.clone(), ..form })
    }

    /// Returns the sum with a first stage along these ranges that keeps the factors marked in
    /// `stays`.
    pub(super) fn staged(&self, along: &[IndexRange], stays: &[bool]) -> Option<Form> {
        let inside = along.iter().all(|a| self.summed.iter().any(|whole| a.within(*whole)));
        if !inside || along.is_empty() {
            return None;
        }
        let factors = &self.product.factors;
        let ends = factors.iter().flat_map(|factor| &factor.ranges);
        Cuts::of(self.elements, ends.chain(&self.kept).chain(along).copied())?;
        let varies = |factor: &Factor| self.summed.iter().any(|&range| factor.varies_along(range));
        let last = factors.iter().rposition(varies);
        // If the law keeps order, a factor that is applied before one that stays inside the second
        // stage stays inside, too.
        let waits = |place: usize, factor: &Factor| {
            if self.law.keeps_order() { Some(place) <= last } else { varies(factor) }
        };
        let mut core: Vec<(usize, &Factor)> = Vec::new();
        let (mut between, mut after) = (Vec::new(), Vec::new());
        for ((place, factor), &stays) in factors.iter().enumerate().zip(stays) {
            match stays {
                true => core.push((place, factor)),
                false if waits(place, factor) => between.push(place),
                false => after.push(place),
            }
        }
        let tree = &self.product.tree;
        let above = core.iter().filter(|(_, factor)| !factor.divides).map(|&(place, _)| place);
        let deepest = above.max_by_key(|&place| (tree.depth_of(place), Reverse(place)))?;
        if self.law == Law::Times && self.monoid.element_type.is_float() {
            // `sum (q*tiny)*huge` must not become `sum(q*huge) * tiny`, which may overflow. So a
            // factor that the product applied before one of those between the stages is applied
            // between the stages, too.
            let met = |place: &usize| tree.meeting(deepest, *place);
            let last = between.iter().filter_map(met).min();
            let waits = |place: &usize| last.is_some() && met(place) >= last;
            between.extend(after.iter().copied().filter(waits));
            between.sort_unstable();
            after.retain(|place| !waits(place));
        }
        let rest = |places: Vec<usize>| self.rest(deepest, &places);
        let (between, after) = (rest(between)?, rest(after)?);
        if !self.law.keeps_order() {
            core.sort_by_key(|&(_, factor)| factor);
        }
        let tree = tree.of_some(&|old| core.iter().position(|&(place, _)| place == old))?;
        let factors = core.into_iter().map(|(_, factor)| factor.clone()).collect();
        let Self { elements, monoid, law, .. } = *self;
        let core = Core { factors, along: along.to_vec(), elements, monoid, law };
        Some(Form { core, tree, between, after })
    }

    /// Returns the factors at these places, to be multiplied with the sum. The sum takes the
    /// place of the factor `sum` in the tree of the product.
    fn rest(&self, sum: usize, places: &[usize]) -> Option<Rest> {
        let place = |old| match places.iter().position(|&place| place == old) {
            Some(place) => place.checked_add(1),
            None => (old == sum).then_some(0),
        };
        let tree = self.product.tree.of_some(&place)?;
        let factors = places.iter().map(|&place| self.product.factors[place].clone()).collect();
        Some(Rest { factors, tree })
    }
}

impl Form {
    /// Checks whether the form equals the sum itself, with nothing pulled out.
    pub fn is_whole(&self, sum: &Sum) -> bool {
        self.core.along == sum.summed
            && self.between.factors.is_empty()
            && self.after.factors.is_empty()
            && !sum.product.negative
    }
}

/// Chooses a form for each sum, so that there are few different cores. `None` leaves a sum
/// unchanged. A sum that shares its core with no other gets a form only if `alone` is set and
/// something is pulled out of it.
///
/// The choice is greedy: the core that most sums can have comes first; ties go to the core that
/// sums the most elements, and for a lone sum to the one with the fewest factors.
pub fn share(sums: &[Sum], alone: bool) -> Vec<Option<Form>> {
    let offered = offered(sums);
    let mut chosen: Vec<Option<Form>> = sums.iter().map(|_| None).collect();
    let mut open = vec![true; sums.len()];
    while let Some(takers) = most_wanted(&offered, &open) {
        let shared = takers.len() > 1;
        for (sum, form) in takers {
            open[*sum] = false;
            let wanted = shared || (alone && !form.is_whole(&sums[*sum]));
            chosen[*sum] = wanted.then(|| form.clone());
        }
    }
    chosen
}

/// The sums that can have one core, each with the form that gives it.
type Takers = SmallVec<[(usize, Form); 4]>;

/// Returns the cores that the sums suggest, each with all sums that can have it.
fn offered(sums: &[Sum]) -> Vec<Takers> {
    let mut stages: Vec<Vec<IndexRange>> = Vec::new();
    for stage in sums.iter().flat_map(Sum::stages) {
        if stages.len() < MOST_STAGES && !stages.contains(&stage) {
            stages.push(stage);
        }
    }
    let mut places: FxHashMap<Core, usize> = FxHashMap::default();
    let mut offered: Vec<Takers> = Vec::new();
    for (i, sum) in sums.iter().enumerate() {
        for form in stages.iter().filter_map(|stage| sum.form(stage)) {
            let place = *places.entry(form.core.clone()).or_insert(offered.len());
            match offered.get_mut(place) {
                Some(takers) => takers.push((i, form)),
                None => offered.push(Takers::from_iter([(i, form)])),
            }
        }
    }
    for takers in &mut offered {
        add_like(takers, sums);
    }
    offered
}

/// Adds the sums that can have this core only because another sum has it. From these sums, factors
/// must be pulled out that may not be pulled out of a sum by themselves.
fn add_like(takers: &mut Takers, sums: &[Sum]) {
    let Some((_, first)) = takers.first().cloned() else { return };
    let wild = |sum: &Sum| sum.tame.iter().any(|tame| !tame);
    for (i, sum) in sums.iter().enumerate().filter(|(_, sum)| wild(sum)) {
        if !takers.iter().any(|&(taker, _)| taker == i)
            && let Some(form) = sum.form_like(&first)
        {
            takers.push((i, form));
        }
    }
    takers.sort_by_key(|&(taker, _)| taker);
}

/// The merit of a core: how many sums can have it; for a lone sum, how few factors it has, because
/// the sum has to wait for each of them; and how many elements it combines into one.
type Merit = (usize, Reverse<usize>, i64);

/// Returns the core that most of the open sums can have.
fn most_wanted<'a>(offered: &'a [Takers], open: &[bool]) -> Option<Vec<&'a (usize, Form)>> {
    let mut best: Option<(Merit, Vec<&(usize, Form)>)> = None;
    for takers in offered {
        let takers: Vec<_> = takers.iter().filter(|(sum, _)| open[*sum]).collect();
        let Some((_, form)) = takers.first() else { continue };
        let factors = if takers.len() == 1 { form.core.factors.len() } else { 0 };
        let summed = form.core.along.iter().map(|range| range.size()).product();
        let merit = (takers.len(), Reverse(factors), summed);
        if best.as_ref().is_none_or(|(most, _)| merit > *most) {
            best = Some((merit, takers));
        }
    }
    best.map(|(_, takers)| takers)
}
