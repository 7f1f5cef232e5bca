//! Regions that can be computed in three lists of dims. Compares the result of repeated cuts with
//! the best of all choices, each of which is built and weighed as a whole module.

use crate::common;
use std::collections::HashMap;

use tilewright_ir::{Builder, ElementType, InstId, Op, Opcode, Shape, Verified};
use tilewright_rewrite::{Options, module_cost};

/// The dims of a region, and two others that its reshapes lead to.
const DIMS: [[&[i64]; 3]; 5] = [
    [&[8, 24, 4, 10], &[8, 24, 40], &[192, 40]],
    [&[4, 16, 2, 128], &[4, 16, 256], &[64, 256]],
    [&[12, 8, 6], &[96, 6], &[12, 48]],
    [&[16, 64], &[1024], &[4, 4, 64]],
    [&[6, 5, 7, 33], &[210, 33], &[6, 35, 33]],
];

/// There are three choices for each.
const MOST_OPS: usize = 5;

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(0x9e37_79b9);
        (self.0 >> 33) as usize % n
    }
}

/// The source of an op's operand.
#[derive(Clone, Copy)]
enum Source {
    LiveIn(usize),
    Op(usize),
}

/// A region: live-ins and live-outs each have dims of their own.
struct Recipe {
    dims: [&'static [i64]; 3],
    live_ins: Vec<usize>,
    ops: Vec<Vec<Source>>,
    /// An op's value, and the dims in which it is needed.
    live_outs: Vec<(usize, usize)>,
}

impl Recipe {
    fn random(random: &mut Random) -> Self {
        let dims = DIMS[random.below(DIMS.len())];
        let live_ins: Vec<usize> = (0..2 + random.below(3)).map(|_| random.below(3)).collect();
        let mut ops: Vec<Vec<Source>> = Vec::new();
        for number in 0..2 + random.below(MOST_OPS - 1) {
            let mut pick = || match random.below(2) {
                0 if number > 0 => Source::Op(random.below(number)),
                _ => Source::LiveIn(random.below(live_ins.len())),
            };
            let first = if number > 0 { Source::Op(number - 1) } else { pick() };
            ops.push(if number % 3 == 1 { vec![first] } else { vec![first, pick()] });
        }
        let mut live_outs = vec![(ops.len() - 1, random.below(3))];
        live_outs.extend((0..random.below(4)).map(|_| (random.below(ops.len()), random.below(3))));
        live_outs.sort_unstable();
        live_outs.dedup();
        Self { dims, live_ins, ops, live_outs }
    }

    /// The module in which each op is computed in the dims given for it.
    fn module(&self, domains: &[usize]) -> Verified {
        let mut build = Build { recipe: self, b: Builder::new("m"), made: HashMap::new() };
        for (number, &domain) in self.live_ins.iter().enumerate() {
            let shape = Shape::array(ElementType::F32, self.dims[domain].iter().copied());
            let live_in = build.b.parameter(&format!("x{number}"), shape).expect("a parameter");
            build.made.insert((number, domain), live_in);
        }
        for (number, sources) in self.ops.iter().enumerate() {
            let domain = domains[number];
            let operands: Vec<InstId> =
                sources.iter().map(|&source| build.value(source, domain, domains)).collect();
            let op = match *operands.as_slice() {
                [one] => build.b.unary(Opcode::Negate, one),
                [one, other] => build.b.binary(Opcode::Add, one, other),
                _ => panic!("one operand or two"),
            };
            build.made.insert((self.live_ins.len() + number, domain), op.expect("an op"));
        }
        let live_outs: Vec<InstId> = self
            .live_outs
            .iter()
            .map(|&(op, domain)| {
                let value = build.value(Source::Op(op), domain, domains);
                build.b.op(Op::Copy, [value]).expect("a copy")
            })
            .collect();
        let root = build.b.op(Op::Tuple, &live_outs).expect("a tuple");
        build.b.finish(root).expect("a module")
    }
}

struct Build<'a> {
    recipe: &'a Recipe,
    b: Builder,
    /// Values by number, live-ins first, and dims.
    made: HashMap<(usize, usize), InstId>,
}

impl Build<'_> {
    /// Returns a value in these dims: reshaped once for all ops that read it there.
    fn value(&mut self, source: Source, domain: usize, domains: &[usize]) -> InstId {
        let (number, home) = match source {
            Source::LiveIn(live_in) => (live_in, self.recipe.live_ins[live_in]),
            Source::Op(op) => (self.recipe.live_ins.len() + op, domains[op]),
        };
        if let Some(&value) = self.made.get(&(number, domain)) {
            return value;
        }
        let reshaped = self.b.reshape(self.made[&(number, home)], self.recipe.dims[domain]);
        let reshaped = reshaped.expect("as many elements");
        self.made.insert((number, domain), reshaped);
        reshaped
    }
}

/// Every choice for so many ops among some of the lists of dims.
fn choices(among: &[usize], ops: usize) -> impl Iterator<Item = Vec<usize>> {
    let power = |place: usize| among.len().pow(place.try_into().expect("few ops"));
    (0..power(ops)).map(move |number| {
        (0..ops).map(|place| among[number / power(place) % among.len()]).collect()
    })
}

#[test]
fn repeated_cuts_come_close_to_the_best_of_three() {
    let mut random = Random(11);
    let target = common::target("tpu-like");
    let (mut best_found, mut worst, mut possible, mut saved) = (0, 1.0f64, 0.0, 0.0);
    let mut regions = 0;
    for seed in 0..400 {
        let recipe = Recipe::random(&mut random);
        let ops = recipe.ops.len();
        let before = recipe.module(&vec![0; ops]);
        let least = |among: &[usize]| {
            let cost = |domains: Vec<usize>| module_cost(&recipe.module(&domains), &target).cycles;
            choices(among, ops).map(cost).fold(f64::INFINITY, f64::min)
        };
        // Dims that no reshape leads to are not available.
        let offered = |domain: &usize| {
            recipe.live_ins.contains(domain)
                || recipe.live_outs.iter().any(|live_out| live_out.1 == *domain)
        };
        if ![1, 2].iter().all(offered) {
            continue;
        }
        let best = least(&[0, 1, 2]);
        let mut options = Options::new(target.clone());
        options.target.least_gain = 1.0;
        let report = common::optimized(&before, &options).report;
        let (start, found) = (report.before.cycles, report.after.cycles);
        assert!(found >= best - 0.01, "seed {seed}: {found} is less than the best, {best}");
        // The first cut is the best of those between two, and no step costs more.
        let best_of_two = least(&[0, 1]).min(least(&[0, 2]));
        assert!(found <= best_of_two + 0.01, "seed {seed}: {found}, but two give {best_of_two}");
        regions += 1;
        best_found += usize::from(found <= best + 0.01);
        worst = worst.max(found / best);
        possible += start - best;
        saved += start - found;
    }
    println!(
        "the best for {best_found} of {regions} regions, {:.1} % of what could be saved, \
         at worst {worst:.2} times the best",
        100.0 * saved / possible
    );
    assert!(regions > 250 && best_found * 100 >= regions * 98 && saved >= 0.99 * possible);
}
