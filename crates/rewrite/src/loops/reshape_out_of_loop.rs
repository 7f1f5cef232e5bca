//! **Carry values around loops in the form in which the body computes them.**
//!
//! ```text
//! (r f r⁻¹)ⁿ r = r fⁿ
//!
//!   reshape                                     │
//!   while { reshape → f → reshape }  becomes    while { f }
//!      │                                        reshape
//! ```
//!
//! `r` is a reshape or a transpose, `f` is the body's computation on an element of the loop's
//! state. The new form of an element is the operand of the reshape or transpose that ends an
//! iteration, or else the form into which the body first brings the element. The initial and the
//! next value are brought into the new form, unless they were made from it. Readers of the old
//! form, in the loop or after it, get it by the inverse op.
//!
//! Cost-gated, with the body counted as often as it runs. Preconditions: the state is a tuple whose users all take
//! single elements; no other instruction calls the body or condition; arrays are static and
//! row-major; nothing is attached to the loop, its state, the element, or the removed reshapes.

use tilewright_ir::ops::shaping::TransposeAttrs;
use tilewright_ir::{Dims, EditError, InstId, Module, Op, Patch, Shape, Value};

use super::state::{Callers, CarriedForm, Element, Loop, element_of, part_of, plain_change};
use crate::analysis::reduce::{is_plain, reshape_op};
use crate::analysis::trip_count::trip_count;
use crate::cost::{CostModel, as_f64};
use crate::driver::Place;
use crate::driver::candidate::{Candidate, Cycles, Scope};
use crate::driver::numbers::Class;
use crate::driver::{Context, Pass};

/// See the module.
pub struct ReshapeOutOfLoop;

impl Pass for ReshapeOutOfLoop {
    fn name(&self) -> &'static str {
        "reshape-out-of-loop"
    }

    fn summary(&self) -> &'static str {
        "carry values around loops in the dims in which their bodies compute"
    }

    fn class(&self) -> Class {
        Class::Exact
    }

    fn is_cost_gated(&self) -> bool {
        true
    }

    fn run(&self, module: &mut Module, cx: &mut Context<'_>) -> Result<usize, EditError> {
        let callers = Callers::of(module);
        let mut changes = 0;
        for computation in module.computations().to_vec() {
            let loops: Vec<InstId> = module
                .instructions(computation)
                .filter(|&id| matches!(module.op(id), Op::While(_)))
                .collect();
            for id in loops {
                if let Some(found) = Loop::of(module, id, &callers) {
                    changes += self.change(module, &found, cx)?;
                }
            }
        }
        Ok(changes)
    }
}

impl ReshapeOutOfLoop {
    /// Changes the form of those elements of a loop for which that pays; returns their number.
    fn change(
        &self,
        module: &mut Module,
        found: &Loop,
        cx: &mut Context<'_>,
    ) -> Result<usize, EditError> {
        let (mut elements, mut changes) = (Vec::new(), 0);
        for (was, reads) in reads_of(module, found).into_iter().enumerate() {
            let carried = Carried { module, found, place: was, reads };
            let mut form = None;
            if let Some(other) = carried.other_form() {
                let candidate = carried.candidate(&other, cx);
                form = cx.accept(self.name(), candidate).then_some(other);
            }
            changes += usize::from(form.is_some());
            elements.push(Element { was, form });
        }
        if changes > 0 {
            found.restate(module, &elements)?;
        }
        Ok(changes)
    }
}

/// The readers of an element of a state: after the loop, in the body, in the condition.
type Reads = [Vec<InstId>; 3];

fn reads_of(module: &Module, found: &Loop) -> Vec<Reads> {
    let mut reads: Vec<Reads> = Vec::new();
    reads.resize_with(module.operands(found.root).len(), Reads::default);
    for (i, state) in found.states().into_iter().enumerate() {
        for read in module.users(state) {
            let of_element = element_of(module, read).and_then(|(_, place)| reads.get_mut(place));
            if let Some(of_element) = of_element {
                of_element[i].push(read);
            }
        }
    }
    reads
}

/// An element of a loop's state, with its readers.
struct Carried<'a> {
    module: &'a Module,
    found: &'a Loop,
    place: usize,
    reads: Reads,
}

impl Carried<'_> {
    /// Returns the form in which the body computes the element, if it differs from the carried
    /// one.
    fn other_form(&self) -> Option<CarriedForm> {
        let module = self.module;
        let plain = |&read: &InstId| {
            module.extras(read).is_none() && module.array_shape(read).is_some_and(is_plain)
        };
        if !self.reads.iter().flatten().all(plain) {
            return None;
        }
        let next = part_of(module, self.found.root, self.place)?;
        form_from(module, next).or_else(|| {
            let [_, body, _] = &self.reads;
            let mut users = body.iter().flat_map(|&read| module.users(read));
            users.find_map(|user| form_to(module, user))
        })
    }

    /// Returns the rewrite that carries the element in another form.
    fn candidate(&self, form: &CarriedForm, cx: &Context<'_>) -> Candidate {
        let (before, after) = self.costs(form, &cx.model());
        let shape = form.shape.without_layout();
        let what = format!("element {} of the loop's state as {shape}", self.place);
        Candidate {
            place: Place::of(self.module, self.found.id),
            done: format!("carried {what}"),
            would: format!("carrying {what}"),
            also: String::new(),
            cycles: Cycles { before, after, of: Scope::Instructions },
        }
    }

    /// Returns the cycles of the changes of form, now and after the rewrite.
    fn costs(&self, form: &CarriedForm, model: &CostModel<'_>) -> (f64, f64) {
        let module = self.module;
        let turns = as_f64(trip_count(module, self.found.id).unwrap_or(1));
        // After the loop, in its body, in its condition.
        let times = [1.0, turns, turns + 1.0];
        let [_, body, _] = &self.reads;
        let tuples = [Some(self.found.init), Some(self.found.root), None];
        let (mut before, mut after) = (0.0, 0.0);
        for ((reads, tuple), times) in self.reads.iter().zip(tuples).zip(times) {
            let mut costs =
                FormCosts { module, model, before: 0.0, after: 0.0, patch: Patch::new() };
            reads.iter().for_each(|&read| self.weigh_read(form, read, &mut costs));
            if let Some(tuple) = tuple {
                let part = part_of(module, tuple, self.place);
                if part.is_none_or(|part| !body.contains(&part)) {
                    self.weigh_part(form, tuple, part, &mut costs);
                }
            }
            let (now, then) = costs.cycles();
            before += times * now;
            after += times * then;
        }
        (before, after)
    }

    /// Adds the costs of one reader of the element to both sides.
    fn weigh_read(&self, form: &CarriedForm, read: InstId, costs: &mut FormCosts<'_>) {
        let module = self.module;
        let carried = costs.element(read, form.shape.clone());
        let mut back = module.is_root(read);
        for user in module.users(read) {
            let handed_on =
                user == self.found.root && part_of(module, user, self.place) == Some(read);
            if form.leads_to(module, user) || form.merges_with(module, user) {
                costs.remove(user);
                if !form.leads_to(module, user) {
                    let (op, shape) = (module.op(user).clone(), module.shape(user).clone());
                    costs.patch.add(user, op, shape, [carried]);
                }
            } else {
                back |= !handed_on || module.uses(read).filter(|u| u.user == user).count() > 1;
            }
        }
        if back {
            costs.patch.add(read, form.back.clone(), module.shape(read).clone(), [carried]);
        }
    }

    /// Adds the costs of the element's initial or next value to both sides.
    fn weigh_part(
        &self,
        form: &CarriedForm,
        tuple: InstId,
        part: Option<InstId>,
        costs: &mut FormCosts<'_>,
    ) {
        let module = self.module;
        let Some(part) = part else {
            let like = self.reads.iter().flatten().next();
            if let Some(&read) = like {
                let part = costs.element(read, module.shape(read).clone());
                costs.patch.add(tuple, form.there.clone(), form.shape.clone(), [part]);
            }
            return;
        };
        costs.before += costs.store_cycles(part);
        let origin = form.origin(module, part);
        if origin != part && module.instruction(part).use_count() == 1 {
            costs.remove(part);
        }
        if form.source(module, part).is_some() {
            costs.after += costs.store_cycles(origin);
        } else {
            let (op, shape) = (form.there.clone(), form.shape.clone());
            costs.patch.add(tuple, op, shape, [Value::Old(origin)]);
        }
    }
}

/// The costs of the removed and of the added instructions.
struct FormCosts<'a> {
    module: &'a Module,
    model: &'a CostModel<'a>,
    before: f64,
    after: f64,
    /// The instructions that the rewrite would add; the patch is only estimated, never applied.
    patch: Patch,
}

impl FormCosts<'_> {
    /// Returns a free stand-in for an element of the state: costing the whole state for each
    /// element would not be linear.
    fn element(&mut self, read: InstId, shape: Shape) -> Value {
        self.patch.add(read, Op::Bitcast, shape, [Value::Old(read)])
    }

    fn remove(&mut self, id: InstId) {
        self.before += self.model.of(self.module, id).cycles;
    }

    /// Returns the cycles to store a value that would otherwise be computed in its reader: a
    /// state is stored.
    fn store_cycles(&self, id: InstId) -> f64 {
        let operand = self.model.operand(self.module, id);
        if operand.fused { self.model.store_cost(operand.value).cycles } else { 0.0 }
    }

    /// Returns the cycles before and after.
    fn cycles(&self) -> (f64, f64) {
        let (costs, fused) = self.model.patch_costs(self.module, &self.patch);
        let planned = self.patch.planned().iter().zip(costs).zip(fused);
        let come = planned.map(|((planned, cost), fused)| {
            let stored = self.model.store_cost(self.model.with_footprint(&planned.shape));
            cost.cycles + if fused { stored.cycles } else { 0.0 }
        });
        (self.before, self.after + come.sum::<f64>())
    }
}

/// Returns the form into which an instruction brings its operand.
fn form_to(module: &Module, id: InstId) -> Option<CarriedForm> {
    let there = module.op(id).clone();
    let back = inverse(&there)?;
    plain_change(module, id)?;
    Some(CarriedForm { shape: module.shape(id).clone(), there, back })
}

/// Returns the form of the operand of an instruction that changes form.
fn form_from(module: &Module, id: InstId) -> Option<CarriedForm> {
    let back = module.op(id).clone();
    let there = inverse(&back)?;
    let source = plain_change(module, id)?;
    Some(CarriedForm { shape: module.shape(source).clone(), there, back })
}

/// Returns the inverse of a reshape or a transpose.
fn inverse(op: &Op) -> Option<Op> {
    match op {
        Op::Reshape(attrs) if attrs.inferred_dimension.is_none() => Some(reshape_op()),
        Op::Transpose(attrs) => {
            let order = &attrs.dimensions;
            let place = |dim: usize| order.iter().position(|&d| usize::try_from(d) == Ok(dim));
            let dimensions = (0..order.len())
                .map(|dim| i64::try_from(place(dim)?).ok())
                .collect::<Option<Dims>>()?;
            Some(Op::Transpose(Box::new(TransposeAttrs { dimensions })))
        }
        _ => None,
    }
}
