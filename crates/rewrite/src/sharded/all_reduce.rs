//! **Exchange less where a program says itself what devices combine.**
//!
//! ```text
//! reduce(all-reduce(x))             = all-reduce(reduce(x))
//! all-reduce(broadcast(x))          = broadcast(all-reduce(x))
//! all-reduce(x) + all-reduce(y)     = all-reduce(x + y)
//! all-reduce(s * broadcast(q))      = s * broadcast(all-reduce(q))    s the same on all devices
//! sum on n devices (s) = n * s,  max on all devices (s) = s           s the same on all devices
//! ```
//!
//! `shard_map`, `pmap` and XLA's partitioner write all-reduces. Devices are one more reduced axis,
//! so the laws of sums hold across them. Devices combine the result of a reduce instead of its
//! operand, the operand of a broadcast instead of its result, and two arrays in one round. They do
//! not combine a value that is the same on all of them.
//!
//! Preconditions: all-reduces of one array by one monoid that leave layouts free; one that is moved
//! has no other user. The order of a float sum changes, as it does between XLA's own algorithms. A
//! scale may leave a float sum only if the sum overflows without it no sooner. Equal
//! exchanges are merged, and unused ones removed, by `cse` and `dce`.
//!
//! A cost-gated pass: it saves rounds and bytes. XLA joins exchanges of one kind that do not wait for
//! each other by itself.

use std::sync::LazyLock;

use rustc_hash::FxHashSet;
use tilewright_ir::ops::collective::AllReduceAttrs;
use tilewright_ir::reducer::Monoid;
use tilewright_ir::{
    ArrayLiteral, ArrayShape, CompId, EditError, InstId, Literal, Module, Op, Opcode, Patch, Value,
};

use crate::analysis::reduce::MonoidReduce;
use crate::analysis::whole_number::whole_number;
use crate::canonicalize::dce::remove_cascade;
use crate::driver::Place;
use crate::driver::module_trial::{ModuleTrial, RewriteNote};
use crate::driver::numbers::{Class, FloatMode};
use crate::driver::{Context, Pass};
use crate::pattern::{Match, Pattern, Replacement, Rule, any, broadcast, multiply, op, reduce};
use crate::sums::bound::is_bounded;

/// The most instructions that are followed to find out whether a value is the same on all devices.
const MOST_STEPS: usize = 256;

/// See the module.
pub struct AllReduces;

impl Pass for AllReduces {
    fn name(&self) -> &'static str {
        "all-reduce"
    }

    fn summary(&self) -> &'static str {
        "combine less between devices, where the program says what they combine"
    }

    fn class(&self) -> Class {
        Class::Bounded
    }

    fn is_cost_gated(&self) -> bool {
        true
    }

    fn run(&self, module: &mut Module, cx: &mut Context<'_>) -> Result<usize, EditError> {
        let computations = module.computations().to_vec();
        let Some(place) = first_place(module, &computations, cx.float_mode) else { return Ok(0) };
        let mut trial = ModuleTrial::of(module, cx)?;
        let float_mode = cx.float_mode;
        let made = trial.attempt(self, module, cx, |module| {
            let mut done = Vec::new();
            for &computation in &computations {
                rewrite(module, computation, float_mode, &mut done)?;
            }
            Ok(Some((vec![RewriteNote { place, what: words(&done) }], done.len())))
        })?;
        trial.leave(cx);
        Ok(made.unwrap_or(0))
    }
}

/// Returns the place of the first instruction that a rule rewrites.
fn first_place(module: &Module, computations: &[CompId], float_mode: FloatMode) -> Option<Place> {
    let exchanges = computations.iter().flat_map(|&one| exchanges(module, one));
    let (at, ..) = exchanges.filter_map(|id| found(module, id, &RULES, float_mode)).next()?;
    Some(Place::of(module, at))
}

fn exchanges(module: &Module, computation: CompId) -> Vec<InstId> {
    let all = module.instructions(computation);
    all.filter(|&id| module.opcode(id) == Opcode::AllReduce).collect()
}

/// Applies the rules to the exchanges of a computation, and to those that they leave, until none
/// applies, which ends: each leaves fewer elements to exchange, or fewer exchanges. Adds the words
/// for each rewrite to `done`.
fn rewrite(
    module: &mut Module,
    computation: CompId,
    float_mode: FloatMode,
    done: &mut Vec<&'static str>,
) -> Result<(), EditError> {
    let effectful = module.effectful_computations();
    // A round that is left out is worth more than one with less to exchange.
    for rules in [RULES.get(..1).unwrap_or_default(), &RULES] {
        let mut open = exchanges(module, computation);
        while let Some(id) = open.pop() {
            if module.instruction(id).parent().is_none() {
                continue;
            }
            let Some((at, what, patch)) = found(module, id, rules, float_mode) else { continue };
            let made = patch.apply(module)?;
            done.push(what);
            remove_cascade(module, &effectful, vec![at])?;
            open.extend(made.iter().filter(|&&id| module.opcode(id) == Opcode::AllReduce));
            open.push(id);
        }
    }
    Ok(())
}

/// Returns a rewrite of an exchange, or of what reads it: the instruction that is replaced, what is
/// done, and the edits.
fn found(
    module: &Module,
    exchange: InstId,
    rules: &[Named],
    float_mode: FloatMode,
) -> Option<(InstId, &'static str, Patch)> {
    let users = module.uses(exchange).map(|found| found.user);
    let mut places = [exchange].into_iter().chain(users).filter(|&id| module.is_live(id));
    places.find_map(|at| {
        rules.iter().find_map(|(what, rule)| Some((at, *what, rule.patch(module, at, float_mode)?)))
    })
}

fn words(done: &[&'static str]) -> String {
    let mut kinds: Vec<&str> = done.to_vec();
    kinds.sort_unstable();
    kinds.dedup();
    kinds.join(", ")
}

/// A rule, and what it does.
type Named = (&'static str, Rule);

/// The rules; the first leaves out rounds.
static RULES: LazyLock<Vec<Named>> = LazyLock::new(|| {
    let mut rules = vec![
        ("combining no values that devices share", shared()),
        ("combining before broadcasting", of_broadcast()),
        ("scaling what devices have combined", of_scaled()),
        ("reducing before devices combine", reduce_first()),
    ];
    let joins = JOINS.map(|opcode| ("combining two values at once", two_at_once(opcode)));
    rules.extend(joins);
    rules
});

fn exchange(of: Pattern) -> Pattern {
    op(Opcode::AllReduce, [of])
}

/// `reduce(all-reduce(x)) = all-reduce(reduce(x))`
fn reduce_first() -> Rule {
    let first = exchange(any("x").row_major()).named("exchange").used_once();
    Rule::new("reduce-before-all-reduce", reduce(first, any("init")).named("reduce"))
        .with_law("reduce(all-reduce(x)) = all-reduce(reduce(x))")
        .with_class(Class::Regrouping)
        .with_class_of(|found| Some(class_of(combined(found, "exchange")?)))
        .replace(|found, new| {
            let monoid = combined(found, "exchange")?;
            let module = found.module();
            let reduce = MonoidReduce::of(module, found.root(), FloatMode::Guarded)?;
            let init = found.get("init")?;
            let is_neutral = module.constant(init).is_some_and(|init| monoid.is_neutral(init));
            let is_one = is_neutral && reduce.reducer.monoid() == Some(monoid);
            let within = is_one.then(|| [found.get("x"), Some(init)].into_iter().flatten())?;
            let within = new.op_like_root(found.op("reduce")?.clone(), within)?;
            new.op_like_root(found.op("exchange")?.clone(), [within])
        })
}

/// `all-reduce(broadcast(x)) = broadcast(all-reduce(x))`
fn of_broadcast() -> Rule {
    let wide = broadcast(any("x")).named("wide");
    Rule::new("all-reduce-of-broadcast", exchange(wide).named("exchange"))
        .with_law("all-reduce(broadcast(x)) = broadcast(all-reduce(x))")
        .with_class(Class::Exact)
        .replace(|found, new| {
            attributes(found, "exchange")?;
            is_smaller(found, "x", "exchange").then_some(())?;
            let small = found.shape("x")?.clone();
            let small =
                new.op_with_shape(found.op("exchange")?.clone(), small, [found.get("x")?])?;
            new.op_like_root(found.op("wide")?.clone(), [small])
        })
}

/// `all-reduce(s * broadcast(q)) = s * broadcast(all-reduce(q))`
fn of_scaled() -> Rule {
    let wide = broadcast(any("q")).named("wide");
    Rule::new("all-reduce-of-scaled", exchange(multiply(any("s"), wide)).named("exchange"))
        .with_law("all-reduce(s * q) = s * all-reduce(q)")
        .with_class(Class::FastMath)
        .with_class_of(|found| {
            let monoid = combined(found, "exchange")?;
            let element_type = monoid.element_type;
            Some(match element_type.is_float() {
                false => Class::Exact,
                true if element_type.bits() < 16 => Class::FastMath,
                true if is_bounded(found.module(), found.get("q")?) => Class::Bounded,
                true => Class::FastMath,
            })
        })
        .replace(|found, new| {
            let attrs = attributes(found, "exchange")?;
            let is_sum = combined(found, "exchange")?.opcode == Opcode::Add;
            let scale = found.get("s")?;
            let is_one = is_sum
                && is_smaller(found, "q", "exchange")
                && is_same_on_all(found.module(), scale, attrs);
            let small = is_one.then(|| found.shape("q").cloned()).flatten()?;
            let small =
                new.op_with_shape(found.op("exchange")?.clone(), small, [found.get("q")?])?;
            let wide = found.shape("wide")?.clone();
            let wide = new.op_with_shape(found.op("wide")?.clone(), wide, [small])?;
            new.op_like_root(Op::Multiply, [Value::Old(scale), wide])
        })
}

/// The ops that combine two combined values.
const JOINS: [Opcode; 8] = [
    Opcode::Add,
    Opcode::Subtract,
    Opcode::Multiply,
    Opcode::Maximum,
    Opcode::Minimum,
    Opcode::And,
    Opcode::Or,
    Opcode::Xor,
];

/// `all-reduce(x) + all-reduce(y) = all-reduce(x + y)`, and so on for each monoid, and for
/// differences of sums.
fn two_at_once(opcode: Opcode) -> Rule {
    let one = exchange(any("x")).named("one").used_once();
    let other = exchange(any("y")).named("other").used_once();
    Rule::new("two-all-reduces", op(opcode, [one, other]).named("joined"))
        .with_law("all-reduce(x) + all-reduce(y) = all-reduce(x + y)")
        .with_class(Class::Regrouping)
        .with_class_of(|found| Some(class_of(combined(found, "one")?)))
        .replace(move |found, new| {
            let (one, other) = (attributes(found, "one")?, attributes(found, "other")?);
            let monoid = combined(found, "one")?;
            let is_sum = monoid.opcode == Opcode::Add;
            let is_one = opcode == monoid.opcode || (opcode == Opcode::Subtract && is_sum);
            let fits = is_one && are_alike(one, other) && combined(found, "other")? == monoid;
            let pair = fits.then(|| [found.get("x"), found.get("y")].into_iter().flatten())?;
            let pair = new.op_like_root(found.op("joined")?.clone(), pair)?;
            new.op_like_root(found.op("one")?.clone(), [pair])
        })
}

/// A value that is the same on all devices is `n` times itself in a sum of `n` devices, and itself in
/// a maximum.
fn shared() -> Rule {
    Rule::new("all-reduce-of-shared", exchange(any("s")).named("exchange"))
        .with_law("sum on n devices (s) = n * s")
        .with_class(Class::Regrouping)
        .with_class_of(|found| {
            let is_alone = participants(attributes(found, "exchange")?) == Some(1);
            Some(if is_alone { Class::Exact } else { class_of(combined(found, "exchange")?) })
        })
        .replace(|found, new| {
            let attrs = attributes(found, "exchange")?;
            let monoid = combined(found, "exchange")?;
            let (module, value) = (found.module(), found.get("s")?);
            let count = participants(attrs)?;
            if count != 1 && !is_same_on_all(module, value, attrs) {
                return None;
            }
            if count == 1 || monoid.is_idempotent() {
                return Some(Value::Old(value));
            }
            (monoid.opcode == Opcode::Add).then_some(())?;
            times(count, value, found, new)
        })
}

/// Plans the product of a value and a number.
fn times(count: i64, value: InstId, found: &Match<'_>, new: &mut Replacement<'_>) -> Option<Value> {
    let element_type = found.array("exchange")?.element_type;
    let count = ArrayLiteral::new(element_type, [], whole_number(element_type, count)?);
    let count = new.constant(Literal::Array(count.ok()?))?;
    let shape = found.shape("exchange")?.clone();
    let count = new.op_with_shape(Op::Broadcast(Box::default()), shape, [count])?;
    new.op_like_root(Op::Multiply, [Value::Old(value), count])
}

fn class_of(monoid: Monoid) -> Class {
    if monoid.regroups_exactly() { Class::Exact } else { Class::Regrouping }
}

/// Returns the attributes of an exchange that may be moved.
fn attributes<'m>(found: &Match<'m>, name: &str) -> Option<&'m AllReduceAttrs> {
    match found.op(name)? {
        Op::AllReduce(attrs) if !attrs.constrain_layout => Some(attrs),
        _ => None,
    }
}

/// Returns the monoid by which devices combine an array.
fn combined(found: &Match<'_>, name: &str) -> Option<Monoid> {
    let attrs = attributes(found, name)?;
    let element_type = found.array(name)?.element_type;
    let monoid = Monoid::of(found.module(), attrs.to_apply)?;
    (monoid.element_type == element_type).then_some(monoid)
}

/// Checks whether two all-reduces are between the same devices.
fn are_alike(one: &AllReduceAttrs, other: &AllReduceAttrs) -> bool {
    one.replica_groups == other.replica_groups
        && one.channel_id.is_some() == other.channel_id.is_some()
        && one.use_global_device_ids == other.use_global_device_ids
}

/// Returns how many devices combine their values, if all groups are of one size that the groups
/// alone say.
fn participants(attrs: &AllReduceAttrs) -> Option<i64> {
    // With a channel, the groups may number replicas, each of several partitions.
    if attrs.channel_id.is_some() != attrs.use_global_device_ids {
        return None;
    }
    let lists = attrs.replica_groups.lists()?;
    let count = lists.first()?.len();
    let is_even = lists.iter().all(|list| list.len() == count);
    is_even.then(|| i64::try_from(count).ok()).flatten()
}

fn is_smaller(found: &Match<'_>, small: &str, large: &str) -> bool {
    let elements = |name| found.array(name).and_then(ArrayShape::num_elements);
    matches!((elements(small), elements(large)), (Some(small), Some(large)) if small < large)
}

/// Checks whether all devices between which an all-reduce is compute the same value: from constants
/// and from what they have combined.
fn is_same_on_all(module: &Module, value: InstId, attrs: &AllReduceAttrs) -> bool {
    let (mut seen, mut open) = (FxHashSet::default(), vec![value]);
    while let Some(id) = open.pop() {
        if !seen.insert(id) {
            continue;
        }
        if seen.len() > MOST_STEPS {
            return false;
        }
        match module.op(id) {
            Op::AllReduce(other) if are_alike(attrs, other) => {}
            op if is_the_same_for_the_same(op) => open.extend_from_slice(module.operands(id)),
            _ => return false,
        }
    }
    true
}

/// Checks whether an op gives the same result on all devices if it gets the same operands.
fn is_the_same_for_the_same(op: &Op) -> bool {
    matches!(
        op,
        Op::Constant(_)
            | Op::Iota(_)
            | Op::Broadcast(_)
            | Op::Reshape(_)
            | Op::Transpose(_)
            | Op::Slice(_)
            | Op::Pad(_)
            | Op::Concatenate(_)
            | Op::Reverse(_)
            | Op::Reduce(_)
            | Op::Dot(_)
    ) || op.opcode().is_elementwise()
}
