//! Sums of products, and the ways to pull them apart.
//!
//! Law: `sum_{D1 u D2} p*q = sum_{D2} p * sum_{D1} q`, p constant along D1. A maximum
//! of sums is a sum here, and so are the other reductions that a [`Law`] is for.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tilewright_ir::{InstId, Module, Op};

use super::cost::CostModel;
use super::monoid::Monoid;
use super::product::{Factor, Law, Product};
use super::reduce::MonoidReduce;
use super::span::{Cuts, Span, joined, spans};

/// No more ways to pull sums apart are looked at together.
const MOST_STAGES: usize = 32;

/// A sum whose summand is a product.
#[derive(Clone, Debug)]
pub struct Sum {
    /// The reduce.
    pub id: InstId,
    /// How many elements it reads.
    pub elements: i64,
    /// How it combines them.
    pub monoid: Monoid,
    /// How the summand is taken apart.
    pub law: Law,
    /// Where the dims of the result lie in the index of the summand.
    pub kept: Vec<Span>,
    /// What is summed, neighbours joined, minor to major.
    pub summed: Vec<Span>,
    /// The summand.
    pub product: Product,
}

/// A sum in two stages.
#[derive(Clone, Debug)]
pub struct Form {
    /// What is summed first, and along what.
    pub core: Core,
    /// What the results of the first stage are multiplied by before they are summed.
    pub between: Vec<Factor>,
    /// What the result is multiplied by.
    pub after: Vec<Factor>,
}

/// A sum of a product, by what it is: two that are equal are one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Core {
    /// The factors, sorted: those that divide come last.
    pub factors: Vec<Factor>,
    /// Along what it is summed, neighbours joined, minor to major.
    pub along: Vec<Span>,
    /// How many elements it reads.
    pub elements: i64,
    /// How it combines them.
    pub monoid: Monoid,
    /// How its factors are put together.
    pub law: Law,
}

impl Sum {
    /// The sum that a reduce is: of one array of at least one element, from an init
    /// that adds nothing. `None` if it is none, or regrouping is not allowed.
    pub fn of(module: &Module, id: InstId, exact: bool) -> Option<Self> {
        let (Op::Reduce(attrs), &[array, init]) = (module.op(id), module.operands(id)) else {
            return None;
        };
        let monoid = MonoidReduce::of(module, id, exact)?.reducer.monoid()?;
        let rounds = exact && monoid.element_type.is_float();
        if rounds || !monoid.is_neutral(module.constant(init)?) {
            return None;
        }
        // The first law by which there is anything to take apart.
        let products =
            Law::of(monoid).iter().filter_map(|&law| Some((law, Product::of(module, array, law)?)));
        let products: Vec<(Law, Product)> = products.collect();
        let several = products.iter().position(|(_, product)| product.factors.len() > 1);
        let (law, product) = products.into_iter().nth(several.unwrap_or(0))?;
        let dims = spans(module.array_shape(array)?.dims())?;
        let is_summed =
            |dim: usize| i64::try_from(dim).is_ok_and(|d| attrs.dimensions.contains(&d));
        let of = |wanted: bool| {
            let dims = dims.iter().enumerate();
            dims.filter(move |&(dim, _)| is_summed(dim) == wanted).map(|(_, span)| *span)
        };
        Some(Self {
            id,
            elements: dims.first().map_or(1, |span| span.high),
            monoid,
            law,
            kept: of(false).collect(),
            summed: joined(of(true)),
            product,
        })
    }

    /// Whether it reads from main memory.
    pub fn is_large(&self, module: &Module, model: &CostModel<'_>) -> bool {
        let array = module.operands(self.id).first();
        array.is_some_and(|&array| !model.stays_on_chip(model.weigh(module.shape(array))))
    }

    /// Whether a dim with this span is summed whole.
    pub fn sums(&self, span: Span) -> bool {
        self.summed.iter().any(|&whole| span.within(whole))
    }

    /// The stages that the factors suggest: what each of them, and each two, are
    /// constant along; the whole first.
    pub fn stages(&self) -> Vec<Vec<Span>> {
        let mut stages = vec![self.summed.clone()];
        let mut own: Vec<Vec<Span>> = Vec::new();
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

    /// What of these spans a factor is constant along; `None` where it is not to be
    /// told apart.
    fn constant_along(&self, factor: &Factor, along: &[Span]) -> Option<Vec<Span>> {
        let ends = factor.spans.iter().chain(along).copied();
        let digits = Cuts::of(self.elements, ends)?.digits();
        let constant = |digit: &Span| {
            along.iter().any(|span| digit.within(*span)) && !factor.varies_along(*digit)
        };
        Some(joined(digits.into_iter().filter(constant)))
    }

    /// The sum with this as its first stage; `None` where that is not part of it, cuts
    /// what a factor has as one, or would have nothing left in it but what divides.
    pub fn form(&self, along: &[Span]) -> Option<Form> {
        let inside = along.iter().all(|a| self.summed.iter().any(|whole| a.within(*whole)));
        if !inside || along.is_empty() {
            return None;
        }
        let factors = self.product.factors.iter().flat_map(|factor| &factor.spans);
        Cuts::of(self.elements, factors.chain(&self.kept).chain(along).copied())?;
        let varies =
            |factor: &Factor, spans: &[Span]| spans.iter().any(|&span| factor.varies_along(span));
        let (mut core, rest): (Vec<Factor>, Vec<Factor>) =
            self.product.factors.iter().cloned().partition(|factor| varies(factor, along));
        let (between, after): (Vec<Factor>, Vec<Factor>) =
            rest.into_iter().partition(|factor| varies(factor, &self.summed));
        // What is scaled is not what scales.
        let first = self.product.factors.first().filter(|_| self.law == Law::Scale);
        let stays = first.is_none_or(|first| core.contains(first));
        if !stays || core.iter().all(|factor| factor.divides) {
            return None;
        }
        core.sort_unstable();
        let Self { elements, monoid, law, .. } = *self;
        let core = Core { factors: core, along: along.to_vec(), elements, monoid, law };
        Some(Form { core, between, after })
    }
}

impl Form {
    /// Whether it is the sum as it was, with nothing pulled out.
    pub fn is_whole(&self, sum: &Sum) -> bool {
        self.core.along == sum.summed
            && self.between.is_empty()
            && self.after.is_empty()
            && !sum.product.negative
    }
}

/// For each of these sums the form to give it, so that there are few different
/// cores; `None` for those to leave. A sum that shares its core with no other is
/// given a form only if `alone` says so, and if something comes out of it.
///
/// A set of cores that covers all sums, greedily: the core first that most sums can
/// have, of these the one that sums most; for a sum alone, that of the fewest factors.
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

/// The sums that can have a core, each in the form that has it.
type Takers = SmallVec<[(usize, Form); 4]>;

/// The cores that any sum suggests, each with all sums that can have it.
fn offered(sums: &[Sum]) -> Vec<Takers> {
    let mut stages: Vec<Vec<Span>> = Vec::new();
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
    offered
}

/// How many sums can have a core; how few factors it has, where that frees a lone sum
/// from waiting for the others; and how many elements it sums to one.
type Merit = (usize, Reverse<usize>, i64);

/// What most of the open sums can have.
fn most_wanted<'a>(offered: &'a [Takers], open: &[bool]) -> Option<Vec<&'a (usize, Form)>> {
    let mut best: Option<(Merit, Vec<&(usize, Form)>)> = None;
    for takers in offered {
        let takers: Vec<_> = takers.iter().filter(|(sum, _)| open[*sum]).collect();
        let Some((_, form)) = takers.first() else { continue };
        let factors = if takers.len() == 1 { form.core.factors.len() } else { 0 };
        let summed = form.core.along.iter().map(|span| span.size()).product();
        let merit = (takers.len(), Reverse(factors), summed);
        if best.as_ref().is_none_or(|(most, _)| merit > *most) {
            best = Some((merit, takers));
        }
    }
    best.map(|(_, takers)| takers)
}
