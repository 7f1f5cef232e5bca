//! **What is centred is centred anew for each reduction.**
//!
//! ```text
//! x - c = x + (-c) = x - clamp(-inf, c, inf)        to the last bit
//!
//! d = x - c        sum d*d,  sum q*d,  r*d      d is stored for the sums
//! becomes          d = x - c         r*d        computed where it is used
//!                  e = x + (-c)      sum e*e
//!                  f = x - clamp(c)  sum q*f    from x, which is there anyway
//! ```
//!
//! A target that fuses into a reduction only what nothing else uses stores every
//! centred image, to read it again at once. Copies would do if the compiler did not
//! find that they are equal, and one of them; these it does not know to be.
//!
//! Preconditions: c is broadcast from a much smaller array; x is stored for other
//! reasons; static dims, nothing attached. Exact, so done under `--exact`, too. Where c
//! is the same all along rows, a single reduction is left alone: XLA:CPU's library is
//! slower where it has to spread numbers over rows while it adds them up.
//!
//! Made where the module costs less for it on the target, which is where
//! `fuses_shared` is false. It comes last: equal sums are to be found before.

use std::collections::BTreeMap;

use tilewright_ir::{
    ArrayShape, EditError, ElementType, InstId, Literal, Module, Op, Opcode, Patch, Shape, Value,
};

use super::weight::{replace, together};
use crate::analysis::cost::{CostModel, takes_minor};
use crate::analysis::monoid::Monoid;
use crate::analysis::reduce::is_plain;
use crate::analysis::shared::{Shared, shared_values};
use crate::pass::{Context, Pass};
use crate::report::place_of;

/// See the module.
pub struct Unshare;

/// What is subtracted has at most one in so many elements.
const SMALL: i64 = 16;

impl Pass for Unshare {
    fn name(&self) -> &'static str {
        "unshare"
    }

    fn summary(&self) -> &'static str {
        "centre an image anew for each reduction, where the target would store it for them"
    }

    fn is_heart(&self) -> bool {
        true
    }

    fn run(&self, module: &mut Module, cx: &mut Context<'_>) -> Result<usize, EditError> {
        if cx.target.fuses_shared {
            return Ok(0);
        }
        let model = CostModel { target: cx.target };
        let mut found = Vec::new();
        for &computation in module.computations() {
            let fused = |id: InstId| model.is_fused(module, id);
            let mut shared: BTreeMap<InstId, Vec<Shared>> = BTreeMap::new();
            for one in shared_values(module, computation, &fused) {
                shared.entry(one.value).or_default().push(one);
            }
            found.extend(shared.into_values().filter_map(|by| Centred::of(module, by, &fused)));
        }
        let mut changes = 0;
        for some in found.chunks(together(module, found.len())) {
            changes += unshare(module, some, cx)?;
        }
        Ok(changes)
    }
}

/// Gives the reductions of these arrays copies, if that pays.
fn unshare(
    module: &mut Module,
    found: &[Centred],
    cx: &mut Context<'_>,
) -> Result<usize, EditError> {
    let Some(first) = found.first() else { return Ok(0) };
    let mut changed = module.clone();
    for centred in found {
        centred.copy(&mut changed)?;
    }
    let (place, what) = (place_of(module, first.value), words(module, found));
    let made = replace(&Unshare, module, changed, (place, &what), cx)?;
    Ok(if made { found.len() } else { 0 })
}

fn words(module: &Module, found: &[Centred]) -> String {
    match found {
        [Centred { value, copies, .. }] => {
            let name = |(_, by): &(Form, Shared)| format!("`{}`", module.name_of(by.reduction));
            let reductions: Vec<String> = copies.iter().map(name).collect();
            format!("`{}` anew for {}", module.name_of(*value), reductions.join(", "))
        }
        _ => format!("{} centred arrays anew for their reductions", found.len()),
    }
}

/// How a copy is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// `x + (-c)`
    Negated,
    /// `x - clamp(-inf, c, inf)`
    Clamped,
    /// `x + clamp(-inf, -c, inf)`
    Both,
}

impl Form {
    const ALL: [Self; 3] = [Self::Negated, Self::Clamped, Self::Both];
}

/// An array less a small one, which reductions share.
struct Centred {
    value: InstId,
    x: InstId,
    /// The broadcast that is subtracted.
    spread: InstId,
    /// What it is the broadcast of.
    c: InstId,
    /// Which reduction is given a copy, and in which form.
    copies: Vec<(Form, Shared)>,
}

impl Centred {
    /// What these reductions share, if each of them can have its own.
    fn of(module: &Module, by: Vec<Shared>, fused: &dyn Fn(InstId) -> bool) -> Option<Self> {
        let value = by.first()?.value;
        let (Op::Subtract, &[x, spread]) = (module.op(value), module.operands(value)) else {
            return None;
        };
        let (Op::Broadcast(attrs), &[c]) = (module.op(spread), module.operands(spread)) else {
            return None;
        };
        let along_rows = |array| takes_minor(array, &attrs.dimensions);
        if by.len() == 1 && !module.array_shape(spread).is_some_and(along_rows) {
            return None;
        }
        let plain = |id| module.array_shape(id).is_some_and(is_plain);
        let attached = [value, spread].iter().any(|&id| module.extras(id).is_some());
        let elements = |id| module.array_shape(id).and_then(ArrayShape::num_elements);
        let is_small = elements(c)?.checked_mul(SMALL)? <= elements(x)?;
        if fused(x) || attached || !is_small || ![x, spread, c].into_iter().all(plain) {
            return None;
        }
        infinities(module.array_shape(c)?.element_type)?;
        if by.len() > Form::ALL.len() + 1 {
            return None;
        }
        // What nothing else uses, the last of them keeps.
        let is_reader = |user: &InstId| by.iter().any(|shared| shared.readers.contains(user));
        let copies = by.len() - usize::from(module.users(value).iter().all(is_reader));
        let users = module.users(x).into_iter();
        let taken: Vec<Form> = users.filter_map(|user| form_of(module, user, c)).collect();
        let free = Form::ALL.into_iter().filter(|form| !taken.contains(form));
        let by: Vec<(Form, Shared)> = free.zip(by).take(copies).collect();
        (by.len() == copies).then_some(Self { value, x, spread, c, copies: by })
    }

    /// Writes the copies, and has the reductions read them.
    fn copy(&self, module: &mut Module) -> Result<(), EditError> {
        for (form, shared) in &self.copies {
            let Some(patch) = self.patch(module, *form) else { continue };
            let made = patch.apply(module)?;
            let Some(&copy) = made.last() else { continue };
            for &reader in &shared.readers {
                for place in 0..module.operands(reader).len() {
                    if module.operands(reader).get(place) == Some(&self.value) {
                        module.set_operand(reader, place, copy)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn patch(&self, module: &Module, form: Form) -> Option<Patch> {
        let small = module.shape(self.c);
        let element_type = small.as_array()?.element_type;
        let mut patch = Patch::new();
        let mut add = |op: Op, shape: &Shape, operands: &[Value]| {
            patch.add(self.value, op, shape.clone(), operands.iter().copied())
        };
        let mut c = Value::Old(self.c);
        if form != Form::Clamped {
            c = add(Op::Negate, small, &[c]);
        }
        if form != Form::Negated {
            let [low, high] = infinities(element_type)?.map(|infinity| {
                add(Op::Constant(Box::new(infinity)), &Shape::scalar(element_type), &[])
            });
            c = add(Op::Clamp, small, &[low, c, high]);
        }
        let spread = module.op(self.spread).clone();
        let spread = add(spread, module.shape(self.spread), &[c]);
        let op = if form == Form::Clamped { Op::Subtract } else { Op::Add };
        add(op, module.shape(self.value), &[Value::Old(self.x), spread]);
        Some(patch)
    }
}

/// The form in which an instruction leaves something less c, if that is one of these.
fn form_of(module: &Module, id: InstId, c: InstId) -> Option<Form> {
    let &[_, spread] = module.operands(id) else { return None };
    let operand = |id: InstId, opcode: Opcode, place: usize| {
        let is = module.opcode(id) == opcode;
        module.operands(id).get(place).copied().filter(|_| is)
    };
    let small = operand(spread, Opcode::Broadcast, 0)?;
    let is_negated = |id| operand(id, Opcode::Negate, 0) == Some(c);
    match (module.opcode(id), operand(small, Opcode::Clamp, 1)) {
        (Opcode::Add, None) => is_negated(small).then_some(Form::Negated),
        (Opcode::Add, Some(inner)) => is_negated(inner).then_some(Form::Both),
        (Opcode::Subtract, Some(inner)) => (inner == c).then_some(Form::Clamped),
        _ => None,
    }
}

/// What no float is less, or greater, than.
fn infinities(element_type: ElementType) -> Option<[Literal; 2]> {
    let bound = |opcode| Monoid { opcode, element_type }.identity();
    let is_float = element_type.is_float();
    is_float.then(|| Some([bound(Opcode::Maximum)?, bound(Opcode::Minimum)?]))?
}
